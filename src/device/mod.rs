//! A device: something that holds files and runs the agent. `local` is this machine, `adb` phones and boards; both pass the same
//! conformance tests.

pub mod adb;
mod facts;
mod identify;
pub mod local;
pub mod soc;

pub use facts::{local as local_facts, phone as phone_facts};
pub use identify::{Identified, SCENARIO, Stated, identify};

use std::{io, path::Path, path::PathBuf, time::Duration};

use bench_agent::spec::{Done, Spec};
use bench_backend_api::DeviceFacts;
use thiserror::Error;
use tokio::sync::{Notify, watch};

/// What can go wrong on a device. None of it says anything about a runtime's speed.
#[derive(Debug, Error)]
pub enum DeviceError {
    /// The file system refused.
    #[error("{path}: {source}")]
    Io {
        /// The file or folder on the device, or the host's in a transfer.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The agent can't be started or did not leave its evidence.
    #[error("bench-agent: {0}")]
    Agent(String),
    /// Everything over ADB, the loss of the device included.
    #[error(transparent)]
    Adb(#[from] adb::AdbError),
}
impl DeviceError {
    /// An I/O error with its path.
    pub fn io(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { path, source }
    }

    /// The disk is full.
    pub fn disk_full(&self) -> bool {
        match self {
            Self::Io { source, .. } => matches!(source.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded),
            Self::Adb(e) => e.disk_full(),
            Self::Agent(_) => false,
        }
    }

    /// It is about the device, not about this machine or a request.
    pub fn is_device(&self) -> bool {
        matches!(self, Self::Adb(e) if e.is_device())
    }

    /// The device is out of reach: nothing is known about what was asked of it.
    pub fn is_lost(&self) -> bool {
        matches!(self, Self::Adb(e) if e.is_lost())
    }
}

/// Asked to stop: becomes true once.
pub type Cancel = watch::Receiver<bool>;

/// What a file of a work folder holds.
#[derive(Debug, Clone, Copy)]
pub enum Content<'a> {
    /// What a file of this machine holds. It is not copied where that is possible.
    Host(&'a Path),
    /// These bytes.
    Bytes(&'a [u8]),
}

/// A run during which the device may be out of reach on purpose.
#[derive(Debug, Clone, Copy)]
pub struct Away<'a> {
    /// Told once the agent works on the device.
    pub started: &'a Notify,
    /// How long the device may be gone.
    pub absence: Duration,
}

/// A file that is put into a work folder.
#[derive(Debug, Clone, Copy)]
pub struct Placed<'a> {
    /// Path relative to the work folder.
    pub name: &'a str,
    /// What it holds.
    pub content: Content<'a>,
    /// Whether it is a program.
    pub executable: bool,
}

/// Where a measurement runs.
pub trait Device: Send + Sync {
    /// What it is.
    fn facts(&self) -> &DeviceFacts;
    /// What else it says about itself and about the way to it, for the manifest; `null` when there is nothing.
    fn says(&self) -> serde_json::Value {
        serde_json::Value::Null
    }
    /// Requests made to it so far; 0 where there is no way to go.
    fn round_trips(&self) -> u64 {
        0
    }
    /// Makes an empty work folder of this name and returns its path on the device.
    fn work_folder(&self, name: &str) -> impl Future<Output = Result<String, DeviceError>> + Send;
    /// Puts files into a work folder.
    fn place(&self, folder: &str, files: &[Placed<'_>]) -> impl Future<Output = Result<(), DeviceError>> + Send;
    /// Puts one host file into a work folder under a name.
    fn stage(&self, host: &Path, folder: &str, name: &str) -> impl Future<Output = Result<(), DeviceError>> + Send {
        async move { self.place(folder, &[Placed { name, content: Content::Host(host), executable: false }]).await }
    }
    /// Writes bytes into a work folder under a name.
    fn write(&self, folder: &str, name: &str, bytes: &[u8]) -> impl Future<Output = Result<(), DeviceError>> + Send {
        async move { self.place(folder, &[Placed { name, content: Content::Bytes(bytes), executable: false }]).await }
    }
    /// Runs one command under the agent; the agent's evidence is in `spec.out_dir` afterwards.
    fn run(&self, spec: &Spec, cancel: Cancel) -> impl Future<Output = Result<Done, DeviceError>> + Send;
    /// The same for a run whose way to the device is cut on purpose once it has begun.
    fn run_away(&self, spec: &Spec, cancel: Cancel, away: Away<'_>) -> impl Future<Output = Result<Done, DeviceError>> + Send {
        async move {
            away.started.notify_one();
            self.run(spec, cancel).await
        }
    }
    /// Whether the way to it is the cable that it is charged by.
    fn cabled(&self) -> bool {
        false
    }
    /// Fetches a file of the work folder; `false` when it does not exist. At most `limit` bytes are taken.
    fn fetch(&self, folder: &str, name: &str, host: &Path, limit: u64) -> impl Future<Output = Result<bool, DeviceError>> + Send;
    /// What the system has logged in the last seconds, as [`crate::run::logs`] reads it; `None` where nobody asks for
    /// it: on this machine the log is other people's business.
    fn log(&self, seconds: u64) -> impl Future<Output = Result<Option<String>, DeviceError>> + Send {
        let _ = seconds;
        async { Ok(None) }
    }
    /// Removes a work folder.
    fn remove(&self, folder: &str) -> impl Future<Output = ()> + Send;
    /// Ends what a killed bench left running; `launches` are the host's folders of the launches that were in flight. What was ended, in
    /// words. Only for whoever has the device to himself.
    fn end_orphans(&self, launches: &[PathBuf]) -> impl Future<Output = Result<Vec<String>, DeviceError>> + Send;
}
