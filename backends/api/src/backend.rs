//! The adapter of one framework.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    captured::Captured,
    cell::{Axis, Cell, DeviceClass, Pass, Quant, Unit},
    checks::{Checks, Expected},
    knowledge::{self, Table},
    measurement::{Failure, Hint, ParseError, Parsed},
    timeline::{self, Timeline},
};

/// What a device is, as far as an adapter cares.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeviceFacts {
    /// Name in tables: `local` or the serial.
    pub name: String,
    /// Class of the device itself; a cell's class may differ (an emulated NPU on a PC).
    pub class: DeviceClass,
    /// `linux` or `android`.
    pub os: String,
    /// `x86_64` or `aarch64`.
    pub arch: String,
    /// Marketing or part name of the processor.
    pub cpu: Option<String>,
    /// Logical cores.
    pub cores: Option<u32>,
    /// Memory in MB (10^6 bytes).
    pub memory_mb: Option<u64>,
    /// Kernel release.
    pub kernel: Option<String>,
    /// QNN `soc_model` that context binaries are built for (57 = SM8650).
    pub soc_model: u32,
    /// Hexagon architecture (75 = v75).
    pub htp_arch: u32,
    /// It is another machine: paths of this one mean nothing there, and everything that runs there has to be staged.
    #[serde(default)]
    pub remote: bool,
    /// Part number of its chip, where there is one with an NPU.
    #[serde(default)]
    pub soc: Option<String>,
    /// Tightly coupled memory of its NPU, in MB (2^20 bytes).
    #[serde(default)]
    pub vtcm_mb: Option<u32>,
    /// Why its NPU can't hold a language model, where it can't.
    #[serde(default)]
    pub no_llm: Option<String>,
}
impl DeviceFacts {
    /// Rust's name of what programs for it are built for.
    pub fn triple(&self) -> &'static str {
        match (self.os.as_str(), self.arch.as_str()) {
            ("android", "aarch64") => "aarch64-linux-android",
            (_, "aarch64") => "aarch64-unknown-linux-gnu",
            _ => "x86_64-unknown-linux-gnu",
        }
    }

    /// The QAIRT SDK's name of the same, as its folders `bin/<name>` and `lib/<name>` have it (formats/qnn.md).
    pub fn qairt_target(&self) -> &'static str {
        match self.triple() {
            "aarch64-linux-android" => "aarch64-android",
            "aarch64-unknown-linux-gnu" => "aarch64-oe-linux-gcc11.2",
            _ => "x86_64-linux-clang",
        }
    }
}

/// Something that has to be there before a backend can run.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Need {
    /// A package of the pinned Python environment; found as the package's folder in site-packages.
    PythonPackage {
        /// Name of the distribution, for instance `onnxruntime-qnn`.
        distribution: String,
        /// Folder of its module in site-packages, for instance `onnxruntime_qnn`.
        module: String,
    },
    /// The interpreter of the pinned Python environment.
    Python,
    /// A file of the user's own QAIRT SDK, relative to its root.
    QairtFile {
        /// For instance `bin/x86_64-linux-clang/qnn-net-run`.
        path: String,
    },
    /// A library for a device that is another machine, of one set of libraries that belong together: versions of two sets never
    /// meet in one process.
    DeviceLibrary {
        /// `qairt` (the user's SDK) or `onnxruntime` (ONNX Runtime, its QNN provider, and the QNN libraries made for it).
        set: String,
        /// For instance `libQnnHtpV75Skel.so`.
        name: String,
    },
    /// A program of ours that `cargo build` makes, for this machine or for the device ([`DeviceFacts::triple`]).
    Runner {
        /// File name, for instance `bench-genie-runner`.
        name: String,
    },
    /// A program named by the scenario, looked up on PATH.
    Program {
        /// Name or path.
        name: String,
    },
}

/// Where a need was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Found {
    /// Absolute path on this machine.
    pub path: String,
    /// Version, where it has one.
    pub version: Option<String>,
}

/// What is there, by need.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Installed(pub BTreeMap<Need, Found>);
impl Installed {
    /// Where a need was found.
    pub fn get(&self, need: &Need) -> Option<&Found> {
        self.0.get(need)
    }
    /// Path of a need, or an empty text; for needs that [`Backend::probe`] has already insisted on.
    pub fn path(&self, need: &Need) -> &str {
        self.get(need).map_or("", |f| f.path.as_str())
    }
    /// The first need of a list that is not there.
    pub fn missing<'a>(&self, needs: &'a [Need]) -> Option<&'a Need> {
        needs.iter().find(|n| !self.0.contains_key(n))
    }
}

/// Whether a backend can run on a device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Availability {
    /// It can.
    Ready {
        /// Version of the runtime.
        version: String,
    },
    /// Something is missing that can be installed.
    Missing {
        /// What.
        what: String,
        /// The command or step that mends it.
        remedy: String,
    },
    /// It can't run on this device at all.
    Refused {
        /// Why.
        reason: String,
    },
}

/// How an optional axis fits a backend.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AxisFit {
    /// The value can be set.
    Settable,
    /// The value is a property of the artifact: its files have to be declared for it, or the recipe has to make it so.
    OfArtifact,
    /// The backend has this one value only.
    Fixed(&'static str),
    /// The axis means nothing here.
    NotApplicable,
    /// The axis can be set, but not to this value; the reason.
    Unsupported(String),
}

/// How an artifact can be made: a kind that `src/prepare` knows, with its arguments.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Recipe {
    /// `text`, `qnn-context`, `mnn-llm`.
    pub kind: String,
    /// Arguments beside the geometry.
    pub args: BTreeMap<String, Value>,
}

/// The artifact of a cell: a folder of files and the facts about them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Artifact {
    /// File names (relative, `/` between folders) in the artifact's folder.
    pub files: Vec<String>,
    /// `meta.json` of a made artifact; of a user's own files what they tell of their quantisation, theirs if there is one, and `config`.
    pub meta: Value,
}

/// One launch of one cell: a process that loads the model and answers queries (design 2b.1).
#[derive(Debug, Clone, Copy)]
pub struct Launch<'a> {
    /// The cell.
    pub cell: &'a Cell,
    /// The pass.
    pub pass: Pass,
    /// Token ids of each query's prompt, BOS first; the first query is discarded.
    pub prompts: &'a [Vec<u32>],
    /// The same prompts as text, without BOS, for tools that take text only; empty when they are token ids and nothing else.
    pub texts: &'a [String],
    /// The artifact.
    pub artifact: &'a Artifact,
    /// What is installed.
    pub installed: &'a Installed,
    /// The device.
    pub device: &'a DeviceFacts,
}

/// Where a staged file comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// A file of the cell's artifact.
    Artifact(String),
    /// Bytes that the adapter made.
    Bytes(Vec<u8>),
    /// Where a need was found on this machine: how runtimes get onto a device that is another machine.
    Need(Need),
}

/// A file in the work folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StagedFile {
    /// Path relative to the work folder.
    pub name: String,
    /// Where its content comes from.
    pub source: Source,
}

/// Paths that only the orchestrator knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Paths {
    /// The work folder: CWD of every tool.
    pub work: String,
    /// The file named by `BENCH_EVENTS`.
    pub events: String,
}

/// The program of an invocation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Program {
    /// Where a need was found.
    Need(Need),
    /// An absolute path, or a name on PATH.
    Path(String),
    /// A staged file, by its name in the work folder; it is made executable.
    Staged(String),
}

/// One command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Invocation {
    /// What is started.
    pub program: Program,
    /// Its arguments.
    pub args: Vec<String>,
    /// Environment beside the small fixed one (PATH, HOME, LANG, BENCH_EVENTS).
    pub env: BTreeMap<String, String>,
    /// Files, relative to the work folder, that are kept when they exist afterwards.
    pub outputs: Vec<String>,
}

/// One step of a launch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// Name for logs: `query`, `prefill`, `decode`, `viewer`.
    pub name: String,
    /// The command.
    pub invocation: Invocation,
}

/// What a backend is, for listings and the report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Description {
    /// Name as its makers write it.
    pub name: &'static str,
    /// The processor used when the scenario does not ask for one.
    pub default_unit: Unit,
    /// Quantisations for which [`Backend::recipe`] can make an artifact.
    pub makes: &'static [Quant],
    /// A profiling pass gives the time of single operations.
    pub layers: bool,
}

/// The adapter of one framework. Pure: no I/O, no clock, no async.
pub trait Backend: Sync {
    /// The id that scenarios and tables use.
    fn id(&self) -> &str;
    /// What it is.
    fn describe(&self) -> Description;
    /// Everything that has to be installed.
    fn needs(&self, device: &DeviceFacts) -> Vec<Need>;
    /// Whether it can run here.
    fn probe(&self, device: &DeviceFacts, installed: &Installed) -> Availability;
    /// How a value of an optional axis fits.
    fn axis(&self, axis: Axis, value: &str) -> AxisFit;
    /// What the numbers of a cell are about on this device (design 2b.6).
    fn device_class(&self, cell: &Cell, device: &DeviceFacts) -> DeviceClass;
    /// How the cell's artifact can be made, if it can.
    fn recipe(&self, cell: &Cell, device: &DeviceFacts) -> Option<Recipe>;
    /// Whether one process can answer queries of several lengths for this cell: where its launches have a job ([`crate::JOB_FILE`]), which tells
    /// the length of each query. What is known before anything is looked for: a launch without a job is not shared after all.
    fn mixes_lengths(&self, cell: &Cell, device: &DeviceFacts) -> bool {
        let _ = (cell, device);
        false
    }
    /// The files of the work folder.
    fn stage(&self, launch: &Launch<'_>) -> Result<Vec<StagedFile>, Failure>;
    /// The commands of the launch, in order.
    fn steps(&self, launch: &Launch<'_>, paths: &Paths) -> Vec<Step>;
    /// Why a step that ended badly counts all the same: a tool that crashes at exit, after whole results. It becomes a warning.
    fn excuse(&self, step: &str, captured: &Captured) -> Option<String> {
        let _ = (step, captured);
        None
    }
    /// Reads what the launch left.
    fn parse(&self, captured: &Captured) -> Result<Parsed, ParseError>;
    /// Compares what was asked with what happened.
    fn verify(&self, cell: &Cell, expected: &Expected, parsed: &Parsed, captured: &Captured) -> Checks;
    /// What a file of a launch says over time: a trace or a profile of the framework's own. Empty for any other file.
    fn timelines(&self, file: &str, bytes: &[u8]) -> Vec<Timeline> {
        timeline::chrome(bytes).map(|trace| Timeline { title: file.to_owned(), ..trace }).into_iter().collect()
    }
    /// What is known of its failures. The log of a device is read with it too.
    fn knowledge(&self) -> &'static Table {
        &knowledge::DEVICE
    }
    /// What to do about a failure: its own hint with what the launch adds to it, else one of the table.
    fn explain(&self, failure: &Failure, launch: &Launch<'_>) -> Option<Hint> {
        let _ = launch;
        failure.hint.clone().or_else(|| self.knowledge().explain(failure).map(|found| found.hint()))
    }
}
