//! The runner's event file (JSON lines), followed for the ends of phases. Woken by inotify once it exists, so that the PSS sample is
//! taken right at the end of the phase and not somewhere in the next one.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify};
use serde::Deserialize;

/// The events at which PSS, dma-bufs and the split of RSS are read. Not at `query_end`: the next query begins at once, and the reading, which holds the
/// command's memory lock for milliseconds, would fall into its prefill. After `load_end` comes the discarded query.
const ENDS: [&str; 2] = ["load_end", "end"];
/// Bytes read at a wake, and the longest line that is looked at.
const CHUNK: usize = 16 << 10;

/// Follows one file.
pub struct PhaseFile {
    path: PathBuf,
    file: Option<File>,
    offset: u64,
    /// The beginning of an unfinished line.
    partial: Vec<u8>,
    buffer: Vec<u8>,
    /// Wakes on writes, where the file system has it.
    pub inotify: Option<Inotify>,
}

#[derive(Deserialize)]
struct Event<'a> {
    event: &'a str,
}

impl PhaseFile {
    /// Follows `path` from its present end on (an earlier run's events are not ours), from its beginning if it does not exist yet.
    pub fn new(path: PathBuf) -> Self {
        let offset = std::fs::metadata(&path).map_or(0, |m| m.len());
        Self { path, file: None, offset, partial: Vec::new(), buffer: vec![0; CHUNK], inotify: None }
    }

    /// The ends of phases since the last call, in order.
    pub fn poll(&mut self) -> Vec<&'static str> {
        if let Some(inotify) = &self.inotify {
            // Only to empty the queue: what happened is read from the file.
            let _ = inotify.read_events();
        }
        if self.file.is_none() {
            self.open();
        }
        let mut found = Vec::new();
        let Some(file) = &self.file else { return found };
        if file.metadata().is_ok_and(|m| m.len() < self.offset) {
            // Truncated: the runner began anew.
            self.offset = 0;
            self.partial.clear();
        }
        while let Ok(n @ 1..) = file.read_at(&mut self.buffer, self.offset) {
            self.offset += n as u64;
            feed(&mut self.partial, &self.buffer[..n], &mut found);
            if n < self.buffer.len() {
                // The end, as far as it matters: more would wake us again.
                break;
            }
        }
        found
    }

    fn open(&mut self) {
        self.file = File::open(&self.path).ok();
        if self.file.is_some() {
            self.inotify = Inotify::init(InitFlags::IN_NONBLOCK | InitFlags::IN_CLOEXEC)
                .and_then(|inotify| inotify.add_watch(&self.path, AddWatchFlags::IN_MODIFY).map(|_| inotify))
                .ok();
        }
    }
}

fn feed(partial: &mut Vec<u8>, bytes: &[u8], found: &mut Vec<&'static str>) {
    for piece in bytes.split_inclusive(|&b| b == b'\n') {
        if partial.len() < CHUNK {
            partial.extend_from_slice(piece);
        }
        if piece.ends_with(b"\n") {
            found.extend(end_of_phase(partial));
            partial.clear();
        }
    }
}

fn end_of_phase(line: &[u8]) -> Option<&'static str> {
    // Hundreds of token lines come for each end of a phase: they are not worth a JSON parser.
    if !line.windows(4).any(|w| w == b"end\"") {
        return None;
    }
    let event: Event = serde_json::from_slice(line).ok()?;
    ENDS.into_iter().find(|end| *end == event.event)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn lines_in_any_pieces() {
        let text = b"{\"v\":1,\"event\":\"load_begin\"}\n{\"v\":1,\"event\":\"load_end\",\"t_ns\":5}\nnot json end\"\n{\"event\":\"token\",\"text\":\"end\"}\n{\"event\": \"query_end\"}\n{\"event\": \"end\"}\n{\"event\":\"end\"}";
        for size in 1..text.len() {
            let (mut partial, mut found) = (Vec::new(), Vec::new());
            for piece in text.chunks(size) {
                feed(&mut partial, piece, &mut found);
            }
            assert_eq!(found, ["load_end", "end"], "pieces of {size}");
        }
    }

    #[test]
    fn a_file_that_appears_grows_and_starts_anew() {
        let path = std::env::temp_dir().join(format!("bench-agent-phase-{}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        let mut phases = PhaseFile::new(path.clone());
        assert!(phases.poll().is_empty());
        let mut file = File::create(&path).unwrap();
        file.write_all(b"{\"event\":\"load_end\"}\n{\"event\":\"en").unwrap();
        assert_eq!(phases.poll(), ["load_end"]);
        file.write_all(b"d\"}\n").unwrap();
        assert_eq!(phases.poll(), ["end"]);
        std::fs::write(&path, "{\"event\":\"end\"}\n").unwrap();
        assert_eq!(phases.poll(), ["end"]);
        assert_eq!(PhaseFile::new(path.clone()).poll(), [""; 0]);
        std::fs::remove_file(&path).unwrap();
    }
}
