//! What can go wrong between here and a device.

use std::{io, path::PathBuf, time::Duration};

use thiserror::Error;

/// An error of the adb path. Every text says what to do where something can be done.
#[derive(Debug, Error)]
pub enum AdbError {
    /// Nothing answers at the server's address.
    #[error("no adb server at {address}: {why}")]
    NoServer {
        /// Where it should be.
        address: String,
        /// What was tried, and the remedy.
        why: String,
    },
    /// `ADB_SERVER_SOCKET` or a flag can't be understood.
    #[error("{0:?} is no address of an adb server: tcp:HOST:PORT, tcp:PORT or localfilesystem:PATH")]
    Address(String),
    /// The device, its daemon or the server went away, or the device is in a state in which nothing can be asked of it.
    #[error("{serial} was lost during {during}: {why}")]
    Lost {
        /// The device.
        serial: String,
        /// What was going on.
        during: String,
        /// How it showed.
        why: String,
    },
    /// Our own limit: the device or the server did not answer, although nobody says that it is gone.
    #[error("{serial} did not answer within {} during {during}", humane(*.after))]
    TimedOut {
        /// The device, or the server's address.
        serial: String,
        /// What was going on.
        during: String,
        /// The limit.
        after: Duration,
    },
    /// The server or the daemon refused, in its own words.
    #[error("{during}: {said}")]
    Refused {
        /// What was asked.
        during: String,
        /// The answer.
        said: String,
    },
    /// An answer that is not ADB.
    #[error("{during}: the answer is not what the protocol has there ({what})")]
    Protocol {
        /// What was asked.
        during: String,
        /// What came.
        what: String,
    },
    /// A file on the device.
    #[error("{path} on the device: {said}")]
    Remote {
        /// The file.
        path: String,
        /// The device's words.
        said: String,
    },
    /// A file of this machine.
    #[error("{path}: {source}")]
    Host {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// More came than the caller takes.
    #[error("{what} gives more than the limit of {limit} bytes")]
    TooMuch {
        /// The file or command.
        what: String,
        /// The limit.
        limit: u64,
    },
    /// The device is there, but the work on it came to nothing: rebooted, agent gone.
    #[error("{serial}: {what}")]
    Broken {
        /// The device.
        serial: String,
        /// What happened.
        what: String,
    },
}

impl AdbError {
    /// Whether the same request may succeed on a new connection: the link, not the request, was at fault.
    pub fn is_lost(&self) -> bool {
        matches!(self, Self::Lost { .. } | Self::TimedOut { .. } | Self::NoServer { .. })
    }

    /// Whether it is about the device (lost, restarted, its agent gone) rather than about this machine or a request.
    pub fn is_device(&self) -> bool {
        self.is_lost() || matches!(self, Self::Broken { .. })
    }

    /// The device's storage or this machine's disk is full.
    pub fn disk_full(&self) -> bool {
        match self {
            // The agent's last words may be that it finds no room.
            Self::Remote { said, .. } | Self::Refused { said, .. } | Self::Broken { what: said, .. } => {
                said.contains("No space left on device") || said.contains("Disk quota exceeded")
            }
            Self::Host { source, .. } => matches!(source.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded),
            _ => false,
        }
    }

    /// A host file's error with its path.
    pub(super) fn host(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Host { path, source }
    }
}

fn humane(limit: Duration) -> String {
    if limit.as_secs() == 0 { format!("{} ms", limit.as_millis()) } else { format!("{} s", limit.as_secs()) }
}
