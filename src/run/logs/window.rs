//! The time of which a device's log is asked for, and whether its wall clock could tell that time. Pure.
//!
//! logcat knows wall time alone, and that may be set at any moment: by the network (NITZ, NTP), by the user, after a battery ran empty. So the
//! script says both the wall time and the time since boot, and the agent's evidence has both for the start of the command.

use bench_agent::spec::Done;

use super::{KERNEL, LIMIT};

/// The line that says what the clocks are when the log is fetched.
const CLOCK: &str = "--------- clock";

/// Seconds of difference between two clocks that are no jump: both are read to whole seconds, and a network sets a clock by less.
const SLACK_S: i64 = 3;

/// Since when the log is wanted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Window {
    /// How long it took, as this machine sees it, in seconds. A computer that was suspended meanwhile sees less.
    pub seconds: u64,
    /// The command's start by the device's clocks; absent when it left no evidence.
    pub start: Option<Start>,
}

/// A moment by the device's clocks, in whole seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Start {
    /// Since boot, suspended time included (`CLOCK_BOOTTIME`, the first number of `/proc/uptime`).
    pub boot_s: i64,
    /// Since 1970 (`CLOCK_REALTIME`).
    pub wall_s: i64,
}

impl Start {
    /// From the agent's evidence.
    pub fn of(done: &Done) -> Option<Self> {
        let boot_ns = done.start_ns.cast_signed().checked_add(done.boottime_minus_monotonic_ns[0])?;
        let wall: jiff::Timestamp = done.utc_start.parse().ok()?;
        Some(Self { boot_s: boot_ns.div_euclid(1_000_000_000), wall_s: wall.as_second() })
    }
}

/// A script for the device's shell that says its clocks, then prints logcat of the window, by the device's own clock, which may differ from this
/// machine's; then the kernel's log where it may be read. A device without logcat prints an empty part; nothing of it fails. Of a clock
/// that was set forward the lines before are printed too. After a reboot the time since boot tells nothing.
pub fn command(window: &Window) -> String {
    let Window { seconds, start } = window;
    let (by_boot, by_wall) = match start {
        Some(Start { boot_s, wall_s }) => (
            format!("[ -z \"$up\" ] || [ \"$up\" -lt {boot_s} ] || s=$((now - up + {boot_s} - 2))"),
            format!("[ \"$s\" -le {wall_s} ] || s={wall_s}"),
        ),
        None => ("true".to_owned(), "true".to_owned()),
    };
    // What hangs is ended on the device too, some time after this side has given up.
    format!(
        "now=$(date +%s); up=; read -r up rest 2>/dev/null </proc/uptime; up=${{up%%.*}}; echo \"{CLOCK} $now $up\"\n\
         s=$((now - {seconds})); {by_boot}; {by_wall}\n\
         t=; command -v timeout >/dev/null && t='timeout 10'\n\
         $t logcat -d -v threadtime -v epoch -b main -b system -b crash -T $s.000 2>/dev/null | tail -c {LIMIT}; \
         echo; echo '{KERNEL}'; $t dmesg 2>/dev/null | tail -c {LIMIT}; true"
    )
}

/// By how many seconds the device's wall clock was set forward (or back, negative) between a start and the fetching of a log. `None` when it
/// was not, or when nobody knows.
pub fn jump(text: &str, start: Start) -> Option<i64> {
    let said = text.lines().next()?.strip_prefix(CLOCK)?;
    let mut numbers = said.split_whitespace().map(|n| n.parse::<i64>().ok());
    let (now, up) = (numbers.next()??, numbers.next()??);
    // A device that was restarted has not jumped.
    if up < start.boot_s {
        return None;
    }
    let jumped = now.checked_sub(up)?.checked_sub(start.wall_s.checked_sub(start.boot_s)?)?;
    (jumped.abs() > SLACK_S).then_some(jumped)
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Start = Start { boot_s: 5_000, wall_s: 1_800_000_000 };

    #[test]
    fn a_clock_that_was_set_is_told_from_one_that_ran() {
        let at = |now: i64, up: i64| jump(&format!("{CLOCK} {now} {up}\n1800000001.0 1 1 I x: y\n"), START);
        assert_eq!(at(1_800_000_060, 5_060), None);
        assert_eq!(at(1_800_000_062, 5_060), None, "whole seconds, and a clock that is trimmed");
        assert_eq!(at(1_800_000_060 - 86_400, 5_060), Some(-86_400));
        assert_eq!(at(1_800_000_060 + 31_536_000, 5_060), Some(31_536_000));
        assert_eq!(at(1_800_000_060, 20), None, "it was restarted");
        for odd in ["", "no clock", CLOCK, "--------- clock 1800000060 ", "--------- clock x 1", "--------- clock 9223372036854775807 -9"] {
            assert_eq!(jump(odd, START), None, "{odd:?}");
        }
    }

    /// What `-T` of logcat would get, by the script itself.
    #[cfg(unix)]
    fn since(window: Window, now: i64, up: &str) -> String {
        let script =
            command(&window).replace("$(date +%s)", &now.to_string()).replace("/proc/uptime", "uptime").replace("$t dmesg", "true");
        let dir = tempfile::tempdir().unwrap();
        if !up.is_empty() {
            std::fs::write(dir.path().join("uptime"), up).unwrap();
        }
        let script = format!("logcat() {{ for w; do l=$w; done; echo \"$l\"; }}; {}", script.replace("$t logcat", "logcat"));
        let out = std::process::Command::new("sh").arg("-c").arg(script).current_dir(dir.path()).output().unwrap();
        String::from_utf8(out.stdout).unwrap().lines().nth(1).unwrap_or_default().to_owned()
    }

    #[cfg(unix)]
    #[test]
    fn the_devices_own_clocks_say_since_when() {
        let window = Window { seconds: 30, start: Some(START) };
        // The computer slept: it saw 30 s of the hour.
        assert_eq!(since(window, 1_800_003_600, "8600.55 1.0\n"), "1799999998.000");
        // A year forward: from the start by the clock of then.
        assert_eq!(since(window, 1_800_000_060 + 31_536_000, "5060.99 1.0\n"), "1800000000.000");
        // A day back.
        assert_eq!(since(window, 1_800_000_060 - 86_400, "5060.00 1.0\n"), (1_800_000_000 - 86_400 - 2).to_string() + ".000");
        assert_eq!(since(Window { start: None, ..window }, 1_800_000_060, "5060.00 1.0\n"), "1800000030.000");
        // Restarted 20 s ago.
        assert_eq!(since(window, 1_800_000_060, "20.00 1.0\n"), "1800000000.000");
        // Without the time since boot the computer's count has to do.
        assert_eq!(since(window, 1_800_000_010, ""), "1799999980.000");
    }
}
