//! The program that runs ON the device. It starts one command, gives it a hard end, samples telemetry beside it and leaves
//! `done.json` as evidence. It needs no connection: a run survives a dead cable.
//!
//! The orchestrator uses [`spec`] (the wire types), [`pidfile`] and [`procfs`] (to recognise an orphaned agent). The rest is the program.

pub mod done;
pub mod pidfile;
pub mod procfs;
pub mod spec;

#[cfg(target_os = "linux")]
mod child;
#[cfg(target_os = "linux")]
mod clock;
#[cfg(target_os = "linux")]
mod digest;
#[cfg(target_os = "linux")]
mod evidence;
#[cfg(target_os = "linux")]
mod lanes;
#[cfg(target_os = "linux")]
mod observe;
#[cfg(target_os = "linux")]
mod outdir;
#[cfg(target_os = "linux")]
mod pagecache;
#[cfg(target_os = "linux")]
mod phase;
#[cfg(target_os = "linux")]
mod pump;
#[cfg(target_os = "linux")]
mod reaper;
#[cfg(target_os = "linux")]
mod sources;
#[cfg(target_os = "linux")]
mod supervise;
#[cfg(target_os = "linux")]
mod telemetry;
#[cfg(target_os = "linux")]
mod tree;
#[cfg(target_os = "linux")]
mod trip;
#[cfg(target_os = "linux")]
pub mod watcher;

#[cfg(target_os = "linux")]
pub use clock::monotonic_ns as now_ns;
#[cfg(target_os = "linux")]
pub use sources::{probe, sample};
#[cfg(target_os = "linux")]
pub use supervise::{AgentError, run};
