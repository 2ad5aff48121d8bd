//! Android's own verdict on the heat: `Thermal Status: N` of `dumpsys thermalservice`, 0 (none) to 6 (shutdown), as
//! `android.os.PowerManager.THERMAL_STATUS_*`. It costs a process and a call into the system server, hence every five seconds only, and by
//! [`crate::watcher`], so that the process is not one of the command's.

use std::io::{PipeReader, Read};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::{Opened, Pace, Reader, Rows};
use crate::done::SourceState;
use crate::watcher::{self, Heard, Watcher};

/// A status that was asked for once.
struct Once(Option<u8>);

/// What the watcher says.
struct Watched {
    lines: PipeReader,
    heard: Arc<Heard>,
    rest: Vec<u8>,
}

/// Asks now, for those who measure nothing.
pub fn ask() -> Opened {
    match watcher::ask(watcher::PROGRAM, &|| false) {
        Ok(status) => Opened::available("dumpsys, every 5 s", vec![Box::new(Once(Some(status)))]),
        Err(trouble) => missing(&trouble),
    }
}

/// Listens to the watcher, if there is one.
pub fn listen(watcher: Option<Watcher>) -> (Opened, Option<Arc<Heard>>) {
    match watcher {
        None if std::path::Path::new(watcher::PROGRAM).exists() => (missing(watcher::UNWATCHED), None),
        None => (missing(watcher::NONE), None),
        Some(Watcher { lines, heard }) => {
            let reader = Watched { lines, heard: Arc::clone(&heard), rest: Vec::new() };
            (Opened::available("dumpsys, every 5 s", vec![Box::new(reader)]), Some(heard))
        }
    }
}

/// Whether trouble is a refusal.
pub fn state_of(trouble: &str) -> SourceState {
    if trouble.starts_with("refused") { SourceState::Denied } else { SourceState::Absent }
}

fn missing(trouble: &str) -> Opened {
    let mut opened = Opened::missing(None).because(trouble);
    opened.state = state_of(trouble);
    opened
}

impl Reader for Once {
    fn pace(&self) -> Pace {
        Pace::Slow
    }

    fn sample(&mut self, rows: &mut Rows) {
        if let Some(status) = self.0.take() {
            rows.push("thermalservice", "status", status, "code");
        }
    }
}

impl Reader for Watched {
    fn pace(&self) -> Pace {
        // Only looks whether there is a line.
        Pace::Slow
    }

    fn label(&self) -> String {
        "thermalservice".to_owned()
    }

    fn sample(&mut self, rows: &mut Rows) {
        let mut buffer = [0; 1024];
        let ready = |lines: &PipeReader| poll(&mut [PollFd::new(lines.as_fd(), PollFlags::POLLIN)], PollTimeout::ZERO).is_ok_and(|n| n > 0);
        while ready(&self.lines) {
            match self.lines.read(&mut buffer) {
                Ok(n @ 1..) => self.rest.extend_from_slice(&buffer[..n]),
                _ => break,
            }
            while let Some(end) = self.rest.iter().position(|&b| b == b'\n') {
                let line: Vec<u8> = self.rest.drain(..=end).collect();
                if let Some(status) = self.heard.line(&String::from_utf8_lossy(&line)) {
                    self.heard.answers.fetch_add(1, Ordering::Relaxed);
                    rows.push("thermalservice", "status", status, "code");
                }
            }
        }
    }
}
