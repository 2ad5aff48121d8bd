//! The spine: everything that happens in a run is one of these events. Progress bars, plain log lines, JSON output and the
//! journal consume the same stream; nothing else prints.

use bench_backend_api::{Failure, Pass};
use serde::{Deserialize, Serialize};

/// Status of a launch or of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// Measured, and nothing contradicts it.
    Ok,
    /// It gave no measurement.
    Failed,
    /// It was never tried.
    Skipped,
    /// It gave numbers that a check contradicts: kept, and kept out of every aggregate.
    Unverified,
}
impl Status {
    /// The word in tables.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Failed => "failed",
            Self::Skipped => "skipped",
            Self::Unverified => "unverified",
        }
    }
}

/// One event of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// A run begins or is resumed.
    RunBegin {
        /// Id of the run.
        run: String,
        /// Name of the scenario.
        scenario: String,
        /// 0, plus one for every resume.
        segment: u32,
        /// Folder of the run.
        folder: String,
    },
    /// Something is installed or made before the first launch.
    Preparing {
        /// What.
        what: String,
    },
    /// It is there.
    Prepared {
        /// What.
        what: String,
        /// Seconds that it took.
        seconds: f64,
        /// It was in the cache.
        cached: bool,
    },
    /// Everything that can be measured here has what it needs.
    Ready {
        /// Cells that are measured, in this segment or before it.
        cells: usize,
        /// Launches at most, the profiling pass included; those of earlier segments count.
        launches: usize,
        /// Launches of earlier segments that need not be repeated.
        #[serde(default)]
        done: usize,
        /// Cells of them that run on an emulated NPU.
        #[serde(default)]
        emulated: usize,
    },
    /// A cell that will not be measured.
    CellSkipped {
        /// The cell.
        cell: String,
        /// Why.
        reason: String,
    },
    /// A cell that can't be measured because what it needs could not be made.
    CellFailed {
        /// The cell.
        cell: String,
        /// Why.
        failure: Failure,
    },
    /// A block begins.
    BlockBegin {
        /// Number, from 0.
        block: u32,
        /// Launches in it.
        launches: usize,
    },
    /// The device is not yet in the state that the scenario asks for before a block.
    SettleBegin {
        /// Block.
        block: u32,
        /// What is missing, in words.
        lacks: Vec<String>,
    },
    /// The wait before a block is over.
    Settled {
        /// Block.
        block: u32,
        /// Seconds that it took.
        seconds: f64,
        /// What was waited for, at any time.
        waited_for: Vec<String>,
        /// What is missing still, in words; empty when the device is ready.
        lacks: Vec<String>,
        /// Why no more is waited; absent when the device is ready.
        why: Option<String>,
    },
    /// A launch begins.
    LaunchBegin {
        /// The cell.
        cell: String,
        /// The pass.
        pass: Pass,
        /// Number within the cell and pass.
        launch: u32,
        /// Block.
        block: u32,
    },
    /// A launch is over and its folder complete.
    LaunchEnd {
        /// The cell.
        cell: String,
        /// The pass.
        pass: Pass,
        /// Number within the cell and pass.
        launch: u32,
        /// Block.
        block: u32,
        /// Segment of the run in which it was measured.
        segment: u32,
        /// How it went.
        status: Status,
        /// Why it is not ok.
        failure: Option<Failure>,
        /// Median TTFT of its measured queries, in ms.
        ttft_ms: Option<f64>,
        /// Median decode rate of its measured queries, in tokens per second.
        decode_tok_s: Option<f64>,
        /// Both are composed from graph times (rule R11): bounds, not measurements.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        composed: bool,
        /// They are the runtime's own figures, not measured ones (rule R6).
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        reported: bool,
    },
    /// No further launch of a cell will come.
    CellDone {
        /// The cell.
        cell: String,
        /// What ended it: `until-ci`, `max`, `failed`, `budget`, `interrupted`.
        stop: String,
    },
    /// The user has something to do, now.
    Ask {
        /// What.
        text: String,
    },
    /// A cell whose soak can't be begun.
    SoakSkipped {
        /// The cell.
        cell: String,
        /// Why.
        reason: String,
        /// The device's surroundings are why: a resume tries it again.
        #[serde(default)]
        again: bool,
    },
    /// Something odd that does not stop the run.
    Warning {
        /// What.
        text: String,
    },
    /// The run was interrupted.
    Interrupted {
        /// By what.
        by: String,
    },
    /// The run is over.
    RunEnd {
        /// Cells measured.
        ok: usize,
        /// Cells failed.
        failed: usize,
        /// Cells skipped.
        skipped: usize,
        /// Cells whose numbers are contradicted.
        unverified: usize,
    },
}

/// A consumer of events.
pub trait Sink: Send + Sync {
    /// Takes one event.
    fn emit(&self, event: &Event);
}
