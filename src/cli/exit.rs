//! Exit codes (design 7 and 2b.17).

use std::process::ExitCode;

use thiserror::Error;

use crate::{results::folder::FolderError, run::RunError};

/// Every way to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Code {
    /// Done.
    Done = 0,
    /// A bug.
    Bug = 1,
    /// The command line makes no sense.
    Usage = 2,
    /// A scenario is invalid.
    Scenario = 3,
    /// There is nothing to run.
    Nothing = 4,
    /// A device or runtime is unavailable, or the disk is full.
    Unavailable = 5,
    /// Some cells failed, or a parsed output shows a failed run.
    Failed = 6,
    /// Something is worse than it may be: a regression, or a requirement that is violated.
    Regressed = 10,
    /// Too little is known to judge.
    Undecided = 11,
    /// Ctrl-C.
    Interrupted = 130,
}

/// For `bench --help`.
pub const HELP: &str = "Exit codes: 0 done, 1 a bug, 2 usage, 3 scenario invalid, 4 nothing to run, 5 device or runtime unavailable or disk full, \
6 some cells failed, 10 regression or requirement violated, 11 undecided, 130 interrupted";

impl From<Code> for ExitCode {
    fn from(code: Code) -> Self {
        Self::from(code as u8)
    }
}

/// An expected error with its exit code.
#[derive(Debug, Error)]
#[error("{message}")]
pub struct Failed {
    /// How the program ends.
    pub code: Code,
    /// What happened and what to do.
    pub message: String,
}

/// The exit code of an error.
pub fn of(error: &anyhow::Error) -> Code {
    if let Some(failed) = error.downcast_ref::<Failed>() {
        return failed.code;
    }
    if let Some(run) = error.downcast_ref::<RunError>() {
        return if run.disk_full() { Code::Unavailable } else { folder(run) };
    }
    if let Some(e) = error.downcast_ref::<FolderError>() {
        return if e.disk_full() { Code::Unavailable } else { Code::Usage };
    }
    Code::Bug
}

fn folder(run: &RunError) -> Code {
    match run {
        RunError::Changed(_) | RunError::Folder(FolderError::Locked(_) | FolderError::Damaged { .. }) => Code::Usage,
        RunError::Folder(_) | RunError::Launch(_) | RunError::Device(_) => Code::Unavailable,
    }
}
