//! An output stream of the command: always read, never a reason to wait for the child, bounded on the disk. The head goes to the file as
//! it comes, the end is kept in memory until the stream is over, what is between is dropped and counted.

use std::fs::File;
use std::io::{ErrorKind, PipeReader, Read, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::mpsc::Sender;
use std::thread;

use nix::fcntl::{FcntlArg, OFlag, fcntl};

use crate::clock::{self, Woken};

/// The most that is kept of a stream's end (it is held in memory).
const MAX_TAIL: u64 = 1 << 20;

/// What became of a stream.
#[derive(Debug, Default)]
pub struct Pumped {
    /// All bytes that came.
    pub bytes: u64,
    /// The middle is missing.
    pub truncated: bool,
    /// The first error of the file.
    pub error: Option<String>,
}

/// Starts a thread that reads `from` into `to` until its end, or until the writer of `stop` is gone and nothing more is waiting.
pub fn start<R: Read + AsFd + Send + 'static>(
    mut from: R,
    to: PathBuf,
    limit: u64,
    stop: PipeReader,
    done: Sender<Pumped>,
) -> std::io::Result<()> {
    // A full pipe makes the child wait: 1 MiB (the kernel's usual limit) bridges a moment in which we don't get a CPU. Without it, 64 KiB.
    let _ = fcntl(&from, FcntlArg::F_SETPIPE_SZ(1 << 20));
    // Only our end: the write end is another open file, so the child still has an ordinary pipe.
    let _ = fcntl(&from, FcntlArg::F_SETFL(OFlag::O_NONBLOCK));
    let name = to.file_name().map_or_else(String::new, |n| n.to_string_lossy().into_owned());
    thread::Builder::new().name(name).stack_size(256 << 10).spawn(move || {
        let mut kept = Kept::new(&to, limit);
        let mut buffer = vec![0; 64 << 10];
        let mut stopping = false;
        for round in 1_u64.. {
            // A survivor that floods the pipe would never let us see an empty one.
            if round.is_multiple_of(1024) && !clock::wait(0, &stop) {
                break;
            }
            match from.read(&mut buffer) {
                Ok(0) => break,
                Ok(n) => kept.take(&buffer[..n]),
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) if e.kind() == ErrorKind::WouldBlock && !stopping => {
                    stopping = clock::wait_for(u64::MAX, &stop, &[&from]) == Woken::Stop;
                }
                // Whoever holds the other end now is no longer waited for.
                Err(_) => break,
            }
        }
        let _ = done.send(kept.finish());
    })?;
    Ok(())
}

/// Head and tail of a stream.
struct Kept {
    path: PathBuf,
    file: Option<File>,
    head_left: u64,
    tail: Ring,
    out: Pumped,
}

impl Kept {
    fn new(path: &Path, limit: u64) -> Self {
        let tail = (limit / 2).min(MAX_TAIL);
        let mut kept =
            Self { path: path.to_owned(), file: None, head_left: limit - tail, tail: Ring::new(tail as usize), out: Pumped::default() };
        match File::create(path) {
            Ok(file) => kept.file = Some(file),
            Err(e) => kept.fail(&e),
        }
        kept
    }

    fn take(&mut self, bytes: &[u8]) {
        self.out.bytes += bytes.len() as u64;
        let (head, rest) = bytes.split_at(bytes.len().min(usize::try_from(self.head_left).unwrap_or(usize::MAX)));
        self.head_left -= head.len() as u64;
        self.write(head);
        self.tail.push(rest);
    }

    fn finish(mut self) -> Pumped {
        let dropped = self.tail.total - self.tail.bytes.len() as u64;
        if dropped > 0 {
            self.out.truncated = true;
            self.write(format!("\n[bench-agent: {dropped} bytes dropped here]\n").as_bytes());
        }
        let tail = std::mem::take(&mut self.tail);
        let (old, new) = tail.bytes.split_at(tail.at);
        self.write(new);
        self.write(old);
        // To the disk before done.json is: a phone that reboots after an NPU run must not leave evidence beside an empty file.
        if let Some(Err(e)) = self.file.as_ref().map(File::sync_all)
            // What has no disk (a test's device file) can't be synced.
            && e.kind() != ErrorKind::InvalidInput
        {
            self.fail(&e);
        }
        self.out
    }

    fn write(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        if let Some(Err(e)) = self.file.as_mut().map(|file| file.write_all(bytes)) {
            // Not tried again: a file with a hole in its middle that nobody announced would be worse than one that ends.
            self.file = None;
            self.fail(&e);
        }
    }

    fn fail(&mut self, error: &std::io::Error) {
        self.out.error.get_or_insert_with(|| format!("{}: {error}", self.path.display()));
    }
}

/// The last bytes of what was pushed; `at` is where the oldest is once the ring is full.
#[derive(Default)]
struct Ring {
    size: usize,
    bytes: Vec<u8>,
    at: usize,
    total: u64,
}

impl Ring {
    fn new(size: usize) -> Self {
        Self { size, ..Self::default() }
    }

    fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let bytes = &bytes[bytes.len().saturating_sub(self.size)..];
        let (fill, mut rest) = bytes.split_at(bytes.len().min(self.size - self.bytes.len()));
        self.bytes.extend_from_slice(fill);
        while !rest.is_empty() {
            let room = (self.size - self.at).min(rest.len());
            self.bytes[self.at..self.at + room].copy_from_slice(&rest[..room]);
            self.at = (self.at + room) % self.size;
            rest = &rest[room..];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keep(limit: u64, chunks: &[&[u8]]) -> (String, Pumped) {
        let path = std::env::temp_dir().join(format!("bench-agent-pump-{}-{:?}", std::process::id(), thread::current().id()));
        let mut kept = Kept::new(&path, limit);
        for chunk in chunks {
            kept.take(chunk);
        }
        let out = kept.finish();
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        (text, out)
    }

    #[test]
    fn what_fits_is_whole() {
        let (text, out) = keep(10, &[b"abcd", b"efg", b"hij"]);
        assert_eq!((text.as_str(), out.bytes, out.truncated), ("abcdefghij", 10, false));
        assert_eq!(keep(1, &[b"x"]).0, "x");
        assert_eq!(keep(0, &[]).0, "");
    }

    #[test]
    fn head_and_tail_stay() {
        let alphabet: Vec<u8> = (b'a'..=b'z').collect();
        let wanted = "abcde\n[bench-agent: 16 bytes dropped here]\nvwxyz";
        for size in 1..27 {
            let chunks: Vec<&[u8]> = alphabet.chunks(size).collect();
            let (text, out) = keep(10, &chunks);
            assert_eq!((text.as_str(), out.bytes, out.truncated), (wanted, 26, true), "chunks of {size}");
        }
        assert_eq!(keep(0, &[b"xyz"]).0, "\n[bench-agent: 3 bytes dropped here]\n");
    }

    #[test]
    fn a_full_disk_is_said_and_counted_on() {
        let mut kept = Kept::new(Path::new("/dev/full"), 100);
        kept.take(b"abc");
        kept.take(b"def");
        let out = kept.finish();
        assert_eq!(out.bytes, 6);
        assert!(out.error.unwrap().starts_with("/dev/full: "));
    }
}
