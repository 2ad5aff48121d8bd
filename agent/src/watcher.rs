//! A process beside the supervisor that asks Android for its thermal status now and then. It must not be a descendant of the agent, whose
//! descendants are the command's processes: they are sampled, ended and accounted for. So it is started twice removed, before the agent becomes
//! a subreaper, and belongs to init. It lives as long as the agent holds the other end of its standard input.
//!
//! A line an answer: `STATUS CPU_US` or `- CPU_US TROUBLE`, the CPU time being that of the watcher and all it has run.

use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::resource::{UsageWho, getrusage};

/// Android's.
pub const PROGRAM: &str = "/system/bin/dumpsys";
/// What is said where there is no such program.
pub const NONE: &str = "no dumpsys: not Android";
/// What is said where there is one, and the watcher of it did not start.
pub const UNWATCHED: &str = "the process that asks it did not start";
/// The word of the command line by which the agent becomes a watcher.
pub const WORD: &str = "watch-thermalservice";
const PERIOD: Duration = Duration::from_secs(5);
/// The most that one answer may take.
const LIMIT: Duration = Duration::from_secs(2);
/// The answer of a phone has some 10 kB.
const MOST_BYTES: usize = 256 << 10;

/// What was heard, for the end of the run.
#[derive(Default)]
pub struct Heard {
    /// Statuses.
    pub answers: AtomicU64,
    /// CPU time of the watcher, microseconds.
    pub cpu_us: AtomicU64,
    /// The last trouble.
    pub trouble: Mutex<Option<String>>,
    /// The watcher ends when this is closed.
    alive: Mutex<Option<PipeWriter>>,
}

impl Heard {
    /// Takes a line of the watcher; gives the status if it is one.
    pub fn line(&self, line: &str) -> Option<u8> {
        let mut words = line.trim_end().splitn(3, ' ');
        let (status, cpu) = (words.next()?, words.next()?.parse().ok()?);
        self.cpu_us.store(cpu, Ordering::Relaxed);
        if status == "-" {
            *self.trouble.lock().unwrap_or_else(PoisonError::into_inner) = words.next().map(str::to_owned);
            return None;
        }
        status.parse().ok().filter(|status| *status <= 6)
    }

    /// Lets the watcher end.
    pub fn dismiss(&self) {
        *self.alive.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// The agent's side of it.
pub struct Watcher {
    /// Its lines.
    pub lines: PipeReader,
    /// What was heard of them.
    pub heard: Arc<Heard>,
}

impl Watcher {
    /// Starts one, where there is the program; to be called before the agent becomes a subreaper.
    pub fn start() -> Option<Self> {
        if !Path::new(PROGRAM).exists() {
            return None;
        }
        let (lines, theirs) = io::pipe().ok()?;
        let (stdin, alive) = io::pipe().ok()?;
        let exe = std::env::current_exe().ok()?;
        let mut command = Command::new(exe);
        command.args([WORD, "detach"]).stdin(stdin).stdout(theirs).stderr(Stdio::null());
        command.status().ok().filter(std::process::ExitStatus::success)?;
        Some(Self { lines, heard: Arc::new(Heard { alive: Mutex::new(Some(alive)), ..Heard::default() }) })
    }
}

/// The first generation: starts the second and leaves it to init.
pub fn detach() -> io::Result<()> {
    // Not in a folder that somebody may want to remove.
    Command::new(std::env::current_exe()?)
        .current_dir("/")
        .arg(WORD)
        .stdin(Stdio::inherit())
        .stdout(Stdio::inherit())
        .stderr(Stdio::null())
        .spawn()
        .map(drop)
}

/// The second: asks until its standard input is closed.
pub fn watch() -> io::Result<()> {
    let gone = || readable(&io::stdin(), Duration::ZERO);
    loop {
        let begun = Instant::now();
        let answer = ask(PROGRAM, &gone);
        let cpu = cpu_us();
        let line = match answer {
            Ok(status) => format!("{status} {cpu}\n"),
            Err(trouble) => format!("- {cpu} {trouble}\n"),
        };
        io::stdout().write_all(line.as_bytes())?;
        io::stdout().flush()?;
        if readable(&io::stdin(), PERIOD.saturating_sub(begun.elapsed())) {
            return Ok(());
        }
    }
}

fn cpu_us() -> i64 {
    let used = |who| {
        getrusage(who).map_or(0, |usage| {
            let times = [usage.user_time(), usage.system_time()];
            times.iter().map(|t| t.tv_sec() * 1_000_000 + t.tv_usec()).sum()
        })
    };
    used(UsageWho::RUSAGE_SELF) + used(UsageWho::RUSAGE_CHILDREN)
}

fn readable(file: &impl AsFd, limit: Duration) -> bool {
    let timeout = PollTimeout::try_from(limit.as_millis()).unwrap_or(PollTimeout::MAX);
    poll(&mut [PollFd::new(file.as_fd(), PollFlags::POLLIN)], timeout).is_ok_and(|n| n > 0)
}

/// Asks once. Killed after 2 s, or when `gone` says that nobody wants to know any more.
///
/// # Errors
///
/// In words, beginning with `refused` if this user may not ask.
pub fn ask(program: &str, gone: &dyn Fn() -> bool) -> Result<u8, String> {
    if !Path::new(program).exists() {
        return Err(NONE.to_owned());
    }
    let mut child = Command::new(program)
        .arg("thermalservice")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|e| if e.kind() == io::ErrorKind::PermissionDenied { format!("refused: {e}") } else { e.to_string() })?;
    let until = Instant::now() + LIMIT;
    let mut text = Vec::new();
    let mut buffer = [0; 8192];
    let mut whole = false;
    if let Some(mut stdout) = child.stdout.take() {
        while Instant::now() < until && text.len() < MOST_BYTES && !gone() {
            if !readable(&stdout, Duration::from_millis(20)) {
                continue;
            }
            if let Ok(n @ 1..) = stdout.read(&mut buffer) {
                text.extend_from_slice(&buffer[..n]);
            } else {
                whole = true;
                break;
            }
        }
    }
    if !whole {
        let _ = child.kill();
    }
    let _ = child.wait();
    match parse(&String::from_utf8_lossy(&text)) {
        Err(_) if !whole => Err(format!("no answer in {} s", LIMIT.as_secs())),
        answer => answer,
    }
}

/// The status in what dumpsys printed.
fn parse(text: &str) -> Result<u8, String> {
    if let Some(status) = text.lines().find_map(|line| line.trim().strip_prefix("Thermal Status:")) {
        return status.trim().parse().ok().filter(|s| *s <= 6).ok_or_else(|| "a thermal status outside of 0 to 6".to_owned());
    }
    if text.contains("Permission Denial") || text.contains("SecurityException") {
        return Err("refused by the thermal service".to_owned());
    }
    Err(if text.contains("Can't find service") { "no thermal service".to_owned() } else { "no thermal status in its answer".to_owned() })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn answers() {
        assert_eq!(parse("IsStatusOverride: false\nThermal Status: 3\nCached temperatures:\n"), Ok(3));
        for (text, word) in [
            ("Thermal Status: 9\n", "outside"),
            ("Permission Denial: can't dump\n", "refused"),
            ("Can't find service: thermalservice\n", "no thermal service"),
            ("", "no thermal status"),
        ] {
            assert!(parse(text).unwrap_err().starts_with(word) || parse(text).unwrap_err().contains(word), "{text}");
        }
    }

    #[test]
    fn a_program_that_hangs_is_killed() {
        let path = std::env::temp_dir().join(format!("bench-agent-dumpsys-{}", std::process::id()));
        std::fs::write(&path, "#!/bin/sh\nexec sleep 1000\n").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(ask(path.to_str().unwrap(), &|| false), Err("no answer in 2 s".to_owned()));
        // At once when nobody listens any more.
        assert!(ask(path.to_str().unwrap(), &|| true).is_err());
        std::fs::remove_file(&path).unwrap();
        assert_eq!(ask("/nonexistent", &|| false), Err(NONE.to_owned()));
    }

    #[test]
    fn lines_of_the_watcher() {
        let heard = Heard::default();
        assert_eq!(heard.line("2 1500\n"), Some(2));
        assert_eq!(heard.line("- 1700 refused by the thermal service\n"), None);
        assert_eq!(heard.cpu_us.load(Ordering::Relaxed), 1700);
        assert_eq!(heard.trouble.lock().unwrap().as_deref(), Some("refused by the thermal service"));
        assert_eq!((heard.line(""), heard.line("7 1"), heard.line("x y")), (None, None, None));
    }
}
