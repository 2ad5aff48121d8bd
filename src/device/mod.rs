//! A device: something that holds files and runs the agent. `local` is this machine, `adb` phones and boards; both pass the same
//! conformance tests.

pub mod adb;
mod ask;
mod clock;
mod facts;
mod identify;
pub mod keep;
pub mod local;
pub mod pins;
pub mod soc;
pub mod zones;

pub use ask::{Answer, Reading, ReadingError, readings};
pub use clock::{ClockReading, DeviceClock};
pub use facts::{local as local_facts, phone as phone_facts};
pub use identify::{Identified, SCENARIO, Stated, identify};

use std::{
    io,
    path::{Path, PathBuf},
    time::Duration,
};

use bench_agent::spec::{Done, Spec};
use bench_backend_api::DeviceFacts;
use thiserror::Error;
use tokio::sync::{Notify, watch};

use crate::run::logs::Window;
use keep::Keep;

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
    /// A short command that did not end in its time; the device is there.
    #[error("{command} did not answer within {}", humantime::format_duration(*.limit))]
    Slow {
        /// The command.
        command: String,
        /// Its time.
        limit: Duration,
    },
    /// The device's log did not come; nothing else is the matter.
    #[error("the device's log is missing: {0}")]
    Log(String),
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
            Self::Agent(_) | Self::Slow { .. } | Self::Log(_) => false,
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

/// What is there of a launch that an earlier bench began.
#[derive(Debug)]
pub struct Adopted {
    /// Its work folder.
    pub work: String,
    /// The agent's evidence; `None` where it left none.
    pub done: Option<Done>,
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
    /// What the system has logged since then, as [`crate::run::logs`] reads it; `None` where nobody asks for
    /// it: on this machine the log is other people's business.
    fn log(&self, window: &Window) -> impl Future<Output = Result<Option<String>, DeviceError>> + Send {
        let _ = window;
        async { Ok(None) }
    }
    /// Runs a short command without the agent, with an empty standard input; a program without a slash is looked up in the PATH. When the
    /// device is lost meanwhile and comes back, the command is run again: it must be one that may be run twice.
    fn ask(&self, argv: &[String], limit: Duration) -> impl Future<Output = Result<Answer, DeviceError>> + Send;
    /// Path of the agent's program on the device; it is sent if it is not there.
    fn agent(&self) -> impl Future<Output = Result<String, DeviceError>> + Send;
    /// The folder below which the agent's evidence of a run in the host's folder `run` grows.
    fn grows_in(&self, run: &Path) -> String {
        run.to_string_lossy().into_owned()
    }
    /// Bytes that are free for this user in the file system of a folder; `None` where the device does not tell.
    fn free(&self, folder: &str) -> impl Future<Output = Result<Option<u64>, DeviceError>> + Send {
        let argv = ["stat", "-f", "-c", "%a %S", folder].map(str::to_owned);
        async move { Ok(ask::free(&self.ask(&argv, SENSE).await?)) }
    }
    /// One round of everything that the agent can read.
    fn sense(&self) -> impl Future<Output = Result<Vec<Reading>, DeviceError>> + Send {
        async { sampled(&self.ask(&[self.agent().await?, "sample".to_owned()], SENSE).await?) }
    }
    /// What its `CLOCK_MONOTONIC` is to this machine's clock, from several round trips; `None` where the agent does not tell.
    fn clock(&self) -> impl Future<Output = Result<Option<ClockReading>, DeviceError>> + Send {
        async { clock::read(self, &self.agent().await?).await }
    }
    /// Where what has to be put back is kept; `None` where nothing is changed but by the user.
    fn keep(&self) -> Option<Keep> {
        None
    }
    /// Puts back what this bench or an earlier one has changed. Only for whoever has the device to himself.
    fn put_back(&self) -> impl Future<Output = Result<PutBack, DeviceError>> + Send {
        async {
            let Some(keep) = self.keep() else { return Ok(PutBack::default()) };
            let said = self.ask(&["sh".to_owned(), "-c".to_owned(), keep.put_back()], PUT_BACK).await?;
            let text = said.text();
            let what = Some(text.trim()).filter(|w| !w.is_empty()).map(str::to_owned);
            Ok(if said.ok() { PutBack { what, failed: None } } else { PutBack { what, failed: Some(said.words()) } })
        }
    }
    /// Copies what an agent without evidence has left of a run in a work folder: `telemetry.csv`, `windows.csv`, the streams.
    fn rescue(&self, folder: &str, host: &Path) -> impl Future<Output = Result<(), DeviceError>> + Send;
    /// Waits for the end of a run that an earlier bench began in the work folder of this name, and copies the agent's evidence to `host`.
    /// `None` if there is nothing of it.
    fn adopt(&self, name: &str, host: &Path, cancel: Cancel) -> impl Future<Output = Result<Option<Adopted>, DeviceError>> + Send;
    /// Removes a work folder.
    fn remove(&self, folder: &str) -> impl Future<Output = ()> + Send;
    /// Ends what a killed bench left running; `launches` are the host's folders of the launches that were in flight. What was ended, in
    /// words. Only for whoever has the device to himself.
    fn end_orphans(&self, launches: &[PathBuf]) -> impl Future<Output = Result<Vec<String>, DeviceError>> + Send;
}

/// What was put back on a device.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PutBack {
    /// What, in words; `None` when there was nothing to put back.
    pub what: Option<String>,
    /// What of it could not be, in the device's words: it stays to be.
    pub failed: Option<String>,
}

/// How long putting back may take: a `settings` of Android's takes a second on a slow phone.
const PUT_BACK: Duration = Duration::from_mins(1);

/// How long one round of readings may take: a phone's zones alone take a fifth of a second, a slow service some seconds.
const SENSE: Duration = Duration::from_secs(20);

/// The readings in what `bench-agent sample` printed.
fn sampled(answer: &Answer) -> Result<Vec<Reading>, DeviceError> {
    if !answer.ok() {
        return Err(DeviceError::Agent(format!("`bench-agent sample`: {}", answer.words())));
    }
    readings(&answer.text()).map_err(|e| DeviceError::Agent(e.to_string()))
}
