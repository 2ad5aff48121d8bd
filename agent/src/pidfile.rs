//! `agent.pid` and `child.pid`: `pid starttime`. A pid alone may belong to somebody else by now, with the start time it can't.

use std::fmt;
use std::str::FromStr;

use crate::procfs;

/// A process, told apart from a later one with the same pid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessId {
    /// The process id.
    pub pid: i32,
    /// Field 22 of `/proc/PID/stat`: clock ticks between boot and the start of the process.
    pub start_time: u64,
}

impl ProcessId {
    /// Reads the identity of a living process; `None` if there is none or `/proc` hides it.
    pub fn of(pid: i32) -> Option<Self> {
        // The main thread's file and not /proc/PID/stat: qemu-user makes up the latter for the program it runs.
        let text = std::fs::read(format!("/proc/{pid}/task/{pid}/stat")).ok()?;
        procfs::parse_stat(&text).map(|stat| Self { pid, start_time: stat.start_time })
    }

    /// Whether this very process still runs, by the text of its `/proc/PID/stat` as read elsewhere (over adb, say). A zombie does not.
    pub fn matches(&self, stat: &[u8]) -> bool {
        procfs::parse_stat(stat).is_some_and(|s| s.pid == self.pid && s.start_time == self.start_time && s.state != b'Z')
    }

    /// Whether this very process still runs on this machine.
    pub fn is_alive(&self) -> bool {
        let path = format!("/proc/{0}/task/{0}/stat", self.pid);
        std::fs::read(path).is_ok_and(|text| self.matches(&text))
    }
}

impl fmt::Display for ProcessId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.pid, self.start_time)
    }
}

impl FromStr for ProcessId {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut words = text.split_ascii_whitespace();
        let (Some(pid), Some(start), None) = (words.next(), words.next(), words.next()) else {
            return Err(format!("a pid file holds `pid starttime`, this one {text:?}"));
        };
        match (pid.parse(), start.parse()) {
            (Ok(pid), Ok(start_time)) if pid > 0 => Ok(Self { pid, start_time }),
            _ => Err(format!("a pid file holds `pid starttime`, this one {text:?}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_back() {
        let id: ProcessId = "123 456789\n".parse().unwrap();
        assert_eq!(id, ProcessId { pid: 123, start_time: 456_789 });
        assert_eq!(id.to_string(), "123 456789");
        for bad in ["", "123", "x 1", "-1 5", "1 2 3"] {
            assert!(bad.parse::<ProcessId>().is_err(), "{bad}");
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_reused_pid_is_somebody_else() {
        let mine = ProcessId::of(std::process::id().cast_signed()).unwrap();
        assert!(mine.is_alive());
        assert!(!ProcessId { start_time: mine.start_time + 1, ..mine }.is_alive());
    }
}
