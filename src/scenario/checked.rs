//! A scenario whose every word is known to mean something.

use std::{collections::BTreeMap, fmt, path::PathBuf};

use bench_agent::spec::Make;
use bench_backend_api::{Axis, Model, Quant, Recipe};
use serde::{Deserialize, Serialize};

use super::{
    command::Command,
    key::Selector,
    power::Power,
    prefer::Prefer,
    problem::Problems,
    require::Requirement,
    soak::Soak,
    state::{Environment, Pin, Settle},
};

/// A checked scenario. [`super::check_text`] and [`super::load()`] make one; [`Scenario::plan`] turns it into cells.
#[derive(Debug, Clone)]
pub struct Scenario {
    /// Its name.
    pub name: String,
    /// SHA-256 of the file's bytes, in hex.
    pub sha256: String,
    /// Folder of the file, absolute.
    pub dir: PathBuf,
    /// The device.
    pub device: DeviceChoice,
    /// The models by name.
    pub models: BTreeMap<String, ModelSpec>,
    /// Artifacts that were made beforehand.
    pub artifacts: Vec<ArtifactSpec>,
    /// The combinations.
    pub matrix: Matrix,
    /// How often and in which order.
    pub measure: Measure,
    /// Cells that differ in lengths only share their launches.
    pub share_launches: bool,
    /// Seed of the order, and of the prompts of models that are not made on the spot.
    pub seed: u64,
    /// What tokens are compared with.
    pub verify: Verify,
    /// Samples per second of every telemetry source; 0 is off.
    pub telemetry_rate_hz: f64,
    /// What is waited for before each block.
    pub settle: Option<Settle>,
    /// What is around the device.
    pub environment: Environment,
    /// What is set on the device for the time of the run.
    pub pins: Vec<Pin>,
    /// The soak after the measurement, if there is one.
    pub soak: Option<Soak>,
    /// What is done about power; absent without `[power]`.
    pub power: Option<Power>,
    /// What the product needs.
    pub require: Vec<Requirement>,
    /// What the selection prefers.
    pub prefer: Option<Prefer>,
    /// Programs of the user.
    pub commands: Vec<Command>,
    /// Where runtimes are taken from instead of where they are usually.
    pub runtimes: Roots,
    /// The second side of an A/B run: this scenario with the keys of `[ab]`.
    pub ab: Option<Box<Scenario>>,
    /// What is probably not meant as it is written; empty when all is well.
    pub warnings: Problems,
}

/// Folders of runtimes that a scenario names, absolute.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Roots {
    /// Root of a QAIRT SDK.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub qairt: Option<PathBuf>,
    /// Folder with sets of libraries that the user has built, as `<set>/<target>/<name>`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sets: Option<PathBuf>,
}

/// Which devices are measured.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceChoice {
    /// This computer.
    pub local: bool,
    /// Serials of the devices; empty when any may match.
    #[serde(default)]
    pub serial: Vec<String>,
    /// Every device that matches, instead of the only one.
    #[serde(default)]
    pub all: bool,
    /// Part number of the SoC, for instance `SM8650`: the one that a device has to have, or that an emulated NPU stands for. Empty when
    /// the device is to say it.
    pub soc: String,
    /// Its QNN `soc_model`; 0 when the device is to say it.
    pub soc_model: u32,
    /// Its Hexagon architecture (75 = v75); 0 when the device is to say it.
    pub htp_arch: u32,
    /// Tightly coupled memory of its NPU in MB, where the user states it.
    #[serde(default)]
    pub vtcm_mb: Option<u32>,
}

/// A model of the scenario.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelSpec {
    /// The model as cells hold it.
    pub model: Model,
    /// Absolute path of its own `tokenizer.json`.
    pub tokenizer: Option<String>,
    /// What its prompts are.
    pub template: Template,
}

/// What a prompt is (rule R4).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Template {
    /// Text, or token ids, as they are.
    #[default]
    Raw,
    /// Text as the user's message in the model's own chat template, whose tokens count.
    Chat,
}
impl fmt::Display for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Raw => "raw",
            Self::Chat => "chat",
        })
    }
}

/// An artifact that was made beforehand, and the cells it is for.
#[derive(Debug, Clone, PartialEq)]
pub struct ArtifactSpec {
    /// Name of the model.
    pub model: String,
    /// Class of the quantisation.
    pub quant: Quant,
    /// Id of the backend.
    pub backend: String,
    /// Values of axes that it is only for.
    pub axes: BTreeMap<Axis, String>,
    /// Its files, or why its cells are skipped: files that are not there yet, and how to get them.
    pub source: Result<ArtifactSource, String>,
    /// Place in the scenario, in bytes.
    pub(super) span: (usize, usize),
}

/// Where a cell's artifact comes from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ArtifactSource {
    /// Files that were made beforehand.
    Files {
        /// Absolute folder: the deepest one that holds all the files.
        root: String,
        /// The framework's configuration file, relative to the root; it is one of `files`.
        config: Option<String>,
        /// Every file, relative to the root, `/` between folders, sorted.
        files: Vec<String>,
        /// The name that its own world has for the quantisation, as the scenario says it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        quant_native: Option<String>,
    },
    /// Made by `bench`.
    Recipe(Recipe),
}
impl ArtifactSource {
    /// The name that the scenario has for the quantisation.
    pub fn stated(&self) -> Option<&str> {
        match self {
            Self::Files { quant_native, .. } => quant_native.as_deref(),
            Self::Recipe(_) => None,
        }
    }
}

/// The lists whose combinations are the cells.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Matrix {
    /// Ids of backends.
    pub backend: Vec<String>,
    /// Names of models.
    pub model: Vec<String>,
    /// Classes of quantisation.
    pub quant: Vec<Quant>,
    /// Tokens that are prefilled.
    pub prompt_tokens: Vec<u32>,
    /// Tokens that come out.
    pub gen_tokens: Vec<u32>,
    /// Values of the optional axes that the scenario names.
    pub axes: BTreeMap<Axis, Vec<String>>,
    /// What is left out, before axes collapse.
    pub exclude: Vec<Selector>,
}

/// Order of the launches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// Blocks over all cells, each shuffled.
    Interleaved,
    /// All launches of a cell before the next cell.
    Sequential,
}

/// Profiling pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Profile {
    /// None.
    Off,
    /// One launch of each cell after the last block, with the time of every operation.
    Layers,
}

/// What is done to the page cache before each launch (rule R8).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Load {
    /// Nothing.
    #[default]
    Any,
    /// The model's files are dropped from it.
    Cold,
    /// They are read.
    Warm,
}

impl Load {
    /// The word that the agent knows.
    pub const fn make(self) -> Make {
        match self {
            Self::Any => Make::Asis,
            Self::Cold => Make::Cold,
            Self::Warm => Make::Warm,
        }
    }
}

/// How often and in which order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Measure {
    /// Measured queries in a launch.
    pub queries: u32,
    /// Fewest discarded queries at the start of a launch.
    pub warmup: u32,
    /// Most discarded queries; 0 in plans of older versions, which discard a fixed number.
    #[serde(default)]
    pub warmup_max: u32,
    /// Fewest launches of a cell.
    pub repetitions_min: u32,
    /// Most launches of a cell.
    pub repetitions_max: u32,
    /// Half-width of the confidence interval over the median at which a cell has enough launches (0.02 = 2 %).
    pub until_ci: Option<f64>,
    /// Time in launches of a cell after which it gets no more than the fewest, in ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_time_ms: Option<u64>,
    /// Order of the launches.
    pub order: Order,
    /// Longest time of one launch, in ms.
    pub timeout_ms: u64,
    /// Time after which no new block begins, in ms.
    pub budget_ms: Option<u64>,
    /// What is done to the page cache before each launch.
    #[serde(default)]
    pub load: Load,
    /// Profiling pass.
    pub profile: Profile,
}

impl Measure {
    /// Most discarded queries at the start of a launch.
    pub const fn warmup_most(&self) -> u32 {
        if self.warmup_max > self.warmup { self.warmup_max } else { self.warmup }
    }

    /// Queries that a launch is asked for.
    pub const fn asked_queries(&self) -> u32 {
        self.warmup_most() + self.queries
    }
}

/// What generated tokens are compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reference {
    /// A float32 computation from the geometry and its seed.
    Fp32,
    /// Nothing.
    None,
}

/// How generated tokens are judged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Verify {
    /// What they are compared with.
    pub reference: Reference,
    /// Least share of tokens before the first difference (0 to 1) that a quantised model has to reach.
    pub min_agreement: Option<f64>,
}
