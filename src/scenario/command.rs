//! `[backends.<id>]`: programs of the user that speak the runner protocol.

use bench_backend_api::{Axis, AxisFit, Unit};
use serde::{Deserialize, Serialize};

/// A user's program that speaks the runner protocol.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Command {
    /// Id of the backend.
    pub id: String,
    /// The program (an absolute path, or a name on PATH) and its arguments.
    pub command: Vec<String>,
    /// Which words (from 0) are files of this machine: they are staged onto a device that is another one.
    #[serde(default)]
    pub files: Vec<usize>,
    /// The processor that it uses.
    pub unit: Unit,
}
impl Command {
    /// What a command backend can set: the job tells the program its threads, profile and variant, and nothing else.
    pub const fn axis(axis: Axis) -> AxisFit {
        match axis {
            Axis::Threads | Axis::PerfProfile | Axis::Variant => AxisFit::Settable,
            Axis::Unit | Axis::Context | Axis::Kv | Axis::Batch => AxisFit::NotApplicable,
        }
    }
}
