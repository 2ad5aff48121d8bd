//! The folder of one run: who works in it, and the writing of `done.json`.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::done::Done;
use crate::pidfile::ProcessId;

/// Room for `done.json` is taken at the start, so that a disk that fills up during the run can't keep the evidence from being written.
const RESERVE: usize = 64 << 10;
const DONE: &str = "done.json";
const UNFINISHED: &str = "done.json.tmp";
/// What an earlier run in the same folder may have left, `done.json` first: nothing of it may pass for ours.
const OURS: [&str; 7] = [DONE, UNFINISHED, "stdout.txt", "stderr.txt", "telemetry.csv", "windows.csv", "child.pid"];

/// The folder, locked for this agent.
pub struct OutDir {
    path: PathBuf,
    /// `done.json.tmp`, filled with blanks.
    reserve: Option<File>,
    /// Keeps the lock.
    _lock: File,
}

/// Why a folder can't be used.
#[derive(Debug)]
pub enum OutDirError {
    /// Another agent works in it.
    Busy(PathBuf),
    /// An error of the file system.
    Io(PathBuf, io::Error),
}

impl OutDir {
    /// Makes the folder, takes its lock, writes `agent.pid`, removes the files of an earlier run and takes room for the new one.
    pub fn claim(path: &Path) -> Result<Self, OutDirError> {
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |e| OutDirError::Io(path, e)
        };
        fs::create_dir_all(path).map_err(failed(path))?;
        let pid = path.join("agent.pid");
        // Not truncated before it is ours: the pid of a living agent must stay readable.
        let lock = File::options().create(true).write(true).truncate(false).open(&pid).map_err(failed(&pid))?;
        match lock.try_lock() {
            Err(fs::TryLockError::WouldBlock) => return Err(OutDirError::Busy(path.to_owned())),
            // A file system without locks: go on without.
            Ok(()) | Err(fs::TryLockError::Error(_)) => {}
        }
        for old in OURS {
            match fs::remove_file(path.join(old)) {
                Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(OutDirError::Io(path.join(old), e)),
                _ => {}
            }
        }
        let me = std::process::id().cast_signed();
        let me = ProcessId::of(me).unwrap_or(ProcessId { pid: me, start_time: 0 });
        lock.set_len(0).and_then(|()| lock.write_all_at(format!("{me}\n").as_bytes(), 0)).map_err(failed(&pid))?;
        let reserve = File::create(path.join(UNFINISHED)).and_then(|file| file.write_all_at(&vec![b' '; RESERVE], 0).map(|()| file)).ok();
        Ok(Self { path: path.to_owned(), reserve, _lock: lock })
    }

    /// The path of a file in it.
    pub fn join(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Notes the command's process for whoever has to clean up after a killed agent.
    pub fn note_child(&self, pid: i32) -> io::Result<()> {
        let child = ProcessId::of(pid).unwrap_or(ProcessId { pid, start_time: 0 });
        fs::write(self.join("child.pid"), format!("{child}\n"))
    }

    /// Writes `done.json`: into the reserved room, to the disk, then under its name. If even that fails for want of room, the ends of the
    /// large files are given up for it (and said so): the evidence of how a run ended is worth more than its last lines.
    pub fn finish(&mut self, mut done: Done) -> io::Result<()> {
        let error = match self.write(&done) {
            Ok(()) => return Ok(()),
            Err(e) => e,
        };
        let mut given_up = Vec::new();
        for name in ["telemetry.csv", "stdout.txt", "stderr.txt"] {
            let path = self.join(name);
            if let Ok(file) = File::options().write(true).open(&path)
                && let Ok(length @ 1..) = file.metadata().map(|m| m.len())
                && file.set_len(length.saturating_sub(RESERVE as u64)).is_ok()
            {
                given_up.push(name);
            }
        }
        if given_up.is_empty() {
            return Err(error);
        }
        let note = format!("done.json: {error}; made room by cutting the ends of {}", given_up.join(", "));
        done.write_error = Some(done.write_error.map_or(note.clone(), |first| format!("{first}; {note}")));
        self.write(&done)
    }

    fn write(&mut self, done: &Done) -> io::Result<()> {
        let mut text = serde_json::to_vec_pretty(done).map_err(io::Error::other)?;
        text.push(b'\n');
        let unfinished = self.join(UNFINISHED);
        let file = match self.reserve.take() {
            Some(file) => file,
            None => File::create(&unfinished)?,
        };
        file.write_all_at(&text, 0)?;
        file.set_len(text.len() as u64)?;
        // Not every file system can (the evidence is complete for this boot anyway), but a full one says so here at the latest.
        match file.sync_all() {
            Err(e) if e.kind() == io::ErrorKind::StorageFull => return Err(e),
            _ => {}
        }
        fs::rename(&unfinished, self.join(DONE))?;
        let _ = File::open(&self.path).and_then(|folder| folder.sync_all());
        Ok(())
    }
}
