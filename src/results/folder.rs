//! The layout of a run folder, its lock, and writing files so that they are whole or not there.

use std::{
    fs::{self, File, TryLockError},
    io::{self, Write},
    path::{Path, PathBuf},
};

use bench_backend_api::Pass;
use thiserror::Error;

/// What can be wrong with a run folder.
#[derive(Debug, Error)]
pub enum FolderError {
    /// The file system refused.
    #[error("{path}: {source}")]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Another process works in it.
    #[error("{0} is in use by another bench process: wait for it, or end it")]
    Locked(PathBuf),
    /// A file of the folder can't be read as what it should be.
    #[error("{path}: {message}")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong and what to do.
        message: String,
    },
}
impl FolderError {
    /// An I/O error with its path.
    pub fn io(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { path, source }
    }

    /// The disk is full: nothing more can be recorded, but everything before is safe.
    pub fn disk_full(&self) -> bool {
        matches!(self, Self::Io { source, .. } if matches!(source.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded))
    }
}

/// A run folder, locked for as long as the value lives.
#[derive(Debug)]
pub struct Folder {
    /// Its path.
    pub path: PathBuf,
    _lock: File,
}

impl Folder {
    /// Makes a new run folder, which must not exist.
    pub fn create(path: PathBuf) -> Result<Self, FolderError> {
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(FolderError::io(parent))?;
        }
        fs::create_dir(&path).map_err(FolderError::io(&path))?;
        Self::lock(path)
    }

    /// Opens an existing one.
    pub fn open(path: PathBuf) -> Result<Self, FolderError> {
        // The plan is its first file: a run that was killed before it wrote an event can be resumed too.
        if !path.join("plan.toml").is_file() {
            return Err(FolderError::Damaged { path, message: "is not a run folder (it has no plan.toml): start a new run".to_owned() });
        }
        // To go on without the journal would measure everything again, over what is there.
        if path.join("logs").is_dir() && !path.join("journal.jsonl").is_file() {
            let message = "is missing, and logs/ holds launches that only it can name: put it back, or start a new run".to_owned();
            return Err(FolderError::Damaged { path: path.join("journal.jsonl"), message });
        }
        // It is written before the first launch; without it nobody knows whether runtime and device are still those of the launches.
        if path.join("logs").is_dir() && !path.join("manifest.json").is_file() {
            let message = "is missing, and only it tells what the launches of logs/ were measured with: put it back, or start a new run";
            return Err(FolderError::Damaged { path: path.join("manifest.json"), message: message.to_owned() });
        }
        Self::lock(path)
    }

    fn lock(path: PathBuf) -> Result<Self, FolderError> {
        let file = path.join("lock");
        let lock = File::create(&file).map_err(FolderError::io(&file))?;
        match lock.try_lock() {
            Ok(()) => Ok(Self { path, _lock: lock }),
            Err(TryLockError::WouldBlock) => Err(FolderError::Locked(path)),
            Err(TryLockError::Error(source)) => Err(FolderError::Io { path: file, source }),
        }
    }

    /// The run's id: the folder's name.
    pub fn id(&self) -> String {
        id_of(&self.path)
    }
}

/// The id of a run: its folder's name.
pub fn id_of(path: &Path) -> String {
    path.file_name().map_or_else(|| "run".to_owned(), |n| n.to_string_lossy().into_owned())
}

/// `logs/<device>/<cell>/<pass>-<launch>` (design 2b.2).
pub fn launch_dir(run: &Path, device: &str, cell: &str, pass: Pass, launch: u32) -> PathBuf {
    device_dir(run, device).join(safe(cell)).join(format!("{pass}-{launch:03}"))
}

/// `logs/<device>`.
pub fn device_dir(run: &Path, device: &str) -> PathBuf {
    run.join("logs").join(safe(device))
}

fn safe(s: &str) -> String {
    s.replace(|c: char| !(c.is_ascii_alphanumeric() || "-_.=".contains(c)), "_")
}

/// Writes a file so that a reader sees the old content or the new, never a part.
pub fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), FolderError> {
    let temporary = path.with_extension("tmp");
    let write = || -> io::Result<()> {
        let mut file = File::create(&temporary)?;
        file.write_all(bytes)?;
        file.sync_data()?;
        fs::rename(&temporary, path)
    };
    write().map_err(|source| {
        let _ = fs::remove_file(&temporary);
        FolderError::Io { path: path.to_path_buf(), source }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn launches_without_their_journal_are_not_measured_over() {
        let dir = tempfile::tempdir().unwrap();
        let run = dir.path().join("run");
        fs::create_dir_all(run.join("logs")).unwrap();
        assert!(Folder::open(run.clone()).unwrap_err().to_string().contains("no plan.toml"));
        fs::write(run.join("plan.toml"), "").unwrap();
        assert!(Folder::open(run.clone()).unwrap_err().to_string().contains("journal.jsonl: is missing"));
        fs::write(run.join("journal.jsonl"), "").unwrap();
        assert!(Folder::open(run.clone()).unwrap_err().to_string().contains("manifest.json: is missing"));
        fs::write(run.join("manifest.json"), "").unwrap();
        Folder::open(run).unwrap();
    }
}
