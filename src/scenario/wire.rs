//! The scenario file as it is written. The doc comments are the descriptions of `scenarios/schema.json` and the help of error
//! messages. Every key is optional here, `#[schemars(required)]` marks the needed ones: the walk reports what is missing, and
//! the checks then go on with the rest of the file.

mod power;
mod prefer;
mod require;
mod soak;
mod state;

use std::collections::BTreeMap;

use bench_backend_api::Axis;
use schemars::JsonSchema;
use serde::Deserialize;

use super::value::{At, List, Overlay, QuantWord, Texts, UnitWord};

pub use power::{Meter, Method as PowerMethod, Power};
pub use prefer::Prefer;
pub use require::{Require, Where};
pub use soak::{Keep, Soak, Trip};
pub use state::{Band, Environment, OnOff, Settle, SettlePolicy, YesNo};

/// What a name may be made of: it becomes a part of file names and command lines.
pub const NAME_PATTERN: &str = "^[a-z0-9][-a-z0-9.]*$";

/// A scenario of `bench`: which cells are measured on which device, and how. Paths are relative to this file.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[schemars(title = "bench scenario")]
#[expect(dead_code, reason = "`ab` is laid over the file before it is read: it is here for the schema")]
pub struct File {
    /// Name of the scenario: small letters, digits, `-` and `.`.
    #[schemars(required, regex(pattern = NAME_PATTERN))]
    pub name: Option<At<String>>,
    /// The device that is measured.
    #[schemars(required)]
    pub device: Option<At<Device>>,
    /// The models by name.
    #[schemars(required)]
    pub models: Option<BTreeMap<At<String>, Model>>,
    /// Files that were made for a model beforehand. Cells without one are made by `bench` where their backend knows how.
    pub artifact: Option<Vec<At<Artifact>>>,
    /// The cells: every combination of these lists.
    #[schemars(required)]
    pub matrix: Option<At<Matrix>>,
    /// How often and in which order the cells are measured.
    pub measure: Option<Measure>,
    /// What generated tokens are compared with.
    pub verify: Option<Verify>,
    /// What is sampled while a cell runs.
    pub telemetry: Option<Telemetry>,
    /// Programs of your own that speak the runner protocol, by backend id.
    pub backends: Option<BTreeMap<At<String>, Program>>,
    /// The state that the device has to be in before each block of launches.
    pub settle: Option<Settle>,
    /// Running for long to see throttling.
    pub soak: Option<Soak>,
    /// What the product needs.
    pub require: Option<Vec<At<Require>>>,
    /// What the selection prefers.
    pub prefer: Option<At<Prefer>>,
    /// Power and energy.
    pub power: Option<At<Power>>,
    /// What is around the device, in the user's words.
    pub environment: Option<Environment>,
    /// What is set on a phone or board for the time of the run: it is read back, kept in the manifest, and put back afterwards, also after a
    /// crash. A name that does not exist is answered with the list; each is described in `src/device/pins.toml`.
    pub pin: Option<BTreeMap<At<String>, At<String>>>,
    /// Where runtimes are taken from instead of where they are usually.
    pub runtimes: Option<Runtimes>,
    /// The second side of an A/B run: keys of this file with other values, for instance `runtimes = { qairt = "..." }`. Everything else is as in
    /// the first side, and the two are measured pair by pair. Not for the device, its state, and how often is measured.
    pub ab: Option<Overlay>,
}

/// Where runtimes are taken from. Two versions of one can be the sides of an A/B run.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Runtimes {
    /// Root of a QAIRT SDK, instead of `QAIRT_SDK_ROOT` or the one that bench has installed.
    pub qairt: Option<At<String>>,
    /// Folder with sets of libraries that you have built for devices, as `<set>/<target>/<name>` (`mnn/aarch64-android/libMNN.so`), looked at before
    /// `BENCH_LIBEXEC`.
    pub sets: Option<At<String>>,
}

/// The device that is measured.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Device {
    /// `true` measures on this computer; a Snapdragon NPU is emulated there.
    pub local: Option<At<bool>>,
    /// Part number of the SoC, for instance `SM8650`: the phones and boards to measure, or the one that this computer's emulated NPU stands for.
    pub soc: Option<At<String>>,
    /// Serial numbers of phones and boards, as `bench devices` shows them.
    pub serial: Option<List<String>>,
    /// `true` measures every device that matches; without it there must be exactly one.
    pub all: Option<At<bool>>,
    /// QNN's number of a SoC that the catalogue does not have, for instance `57` (not the kernel's soc_id).
    #[schemars(range(min = 1))]
    pub soc_model: Option<At<u32>>,
    /// Hexagon version of a SoC that the catalogue does not have, for instance `v75`.
    #[schemars(regex(pattern = "^v[0-9]{2,3}$"))]
    pub hexagon: Option<At<String>>,
    /// MB of VTCM of a SoC that the catalogue does not have, for instance `8`.
    #[schemars(range(min = 1))]
    pub vtcm_mb: Option<At<u32>>,
}

/// A model, as its artifacts were built.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Model {
    /// Context length that the artifacts were built for, in tokens.
    #[schemars(required, range(min = 1))]
    pub context: Option<At<u32>>,
    /// Tokens that one run of the prefill graph takes, called AR. For what is made on the spot the default is 128, or the context if that is shorter.
    #[schemars(range(min = 1))]
    pub chunk: Option<At<u32>>,
    /// TOML file with the model's shape: layers, hidden, heads. With a `seed` in it, `bench` makes prompts and artifacts on the spot.
    pub geometry: Option<At<String>>,
    /// The `tokenizer.json` of a model of your own: prompts are English text of exactly the asked number of its tokens.
    pub tokenizer: Option<At<String>>,
    /// What a prompt is (default `raw`). `chat` needs the model's `tokenizer`, and beside it its `chat_template.jinja`, or a
    /// `tokenizer_config.json` that has it.
    pub template: Option<At<Template>>,
}

/// What a prompt is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum Template {
    /// Text as it is.
    Raw,
    /// Text as the user's message in the model's own chat template. The prompt has as many tokens as asked, those of the template included.
    Chat,
}

/// Files that were made for a model beforehand, and the cells they are for.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Artifact {
    /// Name of the model.
    #[schemars(required)]
    pub model: Option<At<String>>,
    /// Class of the quantisation.
    #[schemars(required, with = "QuantWord")]
    pub quant: Option<At<String>>,
    /// The name that its own world has for the quantisation, for instance `HQQ int4 block 64`; where the files tell one, theirs stands in the tables.
    #[schemars(length(min = 1, max = 100))]
    pub quant_native: Option<At<String>>,
    /// Id of the backend.
    #[schemars(required)]
    pub backend: Option<At<String>>,
    /// The framework's own configuration file.
    pub config: Option<At<String>>,
    /// The files: paths or globs, relative to the scenario.
    pub files: Option<List<String>>,
    /// How to get the files. With it, files that are not there are no error: their cells are skipped, and this text says what to do.
    pub origin: Option<At<String>>,
    /// Only for cells of this processor.
    #[schemars(with = "Option<UnitWord>")]
    pub unit: Option<At<String>>,
    /// Only for cells of this context length, in tokens.
    #[schemars(range(min = 1))]
    pub context: Option<At<u32>>,
    /// Only for cells of this KV cache precision.
    pub kv: Option<At<String>>,
    /// Only for cells of this batch size.
    #[schemars(range(min = 1))]
    pub batch: Option<At<u32>>,
    /// Only for cells of this number of threads.
    #[schemars(range(min = 1))]
    pub threads: Option<At<u32>>,
    /// Only for cells of this performance profile.
    pub perf_profile: Option<At<String>>,
    /// Only for cells of this variant.
    pub variant: Option<At<String>>,
}

/// The cells: every combination of these lists, less the excluded ones.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Matrix {
    /// Ids of backends; `bench runtimes` lists them.
    #[schemars(required)]
    pub backend: Option<List<String>>,
    /// Names of models of this file.
    #[schemars(required)]
    pub model: Option<List<String>>,
    /// Classes of quantisation.
    #[schemars(required, with = "List<QuantWord>")]
    pub quant: Option<List<String>>,
    /// Tokens that are prefilled, BOS included.
    #[schemars(required)]
    pub prompt_tokens: Option<List<Count>>,
    /// Tokens that are generated, the first of them from the prefill.
    #[schemars(required)]
    pub gen_tokens: Option<List<Count>>,
    /// Processors that should do the work (default: the backend's own).
    #[schemars(with = "Option<List<UnitWord>>")]
    pub unit: Option<List<String>>,
    /// Context lengths other than the model's, in tokens.
    pub context: Option<List<Count>>,
    /// Precisions of the KV cache.
    pub kv: Option<List<String>>,
    /// Batch sizes.
    pub batch: Option<List<Count>>,
    /// Numbers of CPU threads.
    pub threads: Option<List<Count>>,
    /// Performance profiles of the NPU, for instance `burst`.
    pub perf_profile: Option<List<String>>,
    /// Variants that the backend knows.
    pub variant: Option<List<String>>,
    /// Combinations that are left out: an entry leaves out what agrees with all of its keys.
    pub exclude: Option<Vec<At<Exclude>>>,
}

/// Combinations that are left out: those that agree with all of these keys.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Exclude {
    /// Ids of backends.
    pub backend: Option<List<String>>,
    /// Names of models.
    pub model: Option<List<String>>,
    /// Classes of quantisation.
    #[schemars(with = "Option<List<QuantWord>>")]
    pub quant: Option<List<String>>,
    /// Tokens that are prefilled.
    pub prompt_tokens: Option<List<Count>>,
    /// Tokens that are generated.
    pub gen_tokens: Option<List<Count>>,
    /// Processors.
    #[schemars(with = "Option<List<UnitWord>>")]
    pub unit: Option<List<String>>,
    /// Context lengths, in tokens.
    pub context: Option<List<Count>>,
    /// Precisions of the KV cache.
    pub kv: Option<List<String>>,
    /// Batch sizes.
    pub batch: Option<List<Count>>,
    /// Numbers of CPU threads.
    pub threads: Option<List<Count>>,
    /// Performance profiles.
    pub perf_profile: Option<List<String>>,
    /// Variants.
    pub variant: Option<List<String>>,
}

macro_rules! axis_of {
    ($($wire:ty),+) => { $(impl $wire {
        /// The values given for an optional axis, as text.
        pub fn axis(&self, axis: Axis) -> Vec<At<String>> {
            match axis {
                Axis::Unit => self.unit.texts(),
                Axis::Context => self.context.texts(),
                Axis::Kv => self.kv.texts(),
                Axis::Batch => self.batch.texts(),
                Axis::Threads => self.threads.texts(),
                Axis::PerfProfile => self.perf_profile.texts(),
                Axis::Variant => self.variant.texts(),
            }
        }
    })+ };
}
axis_of!(Artifact, Matrix, Exclude);
use axis_of;

/// A number of tokens, threads or sequences: at least 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(inline)]
pub struct Count(#[schemars(range(min = 1))] pub u32);
impl std::fmt::Display for Count {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// How often and in which order the cells are measured.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Measure {
    /// Measured queries in each launch (default 3).
    #[schemars(range(min = 1, max = 10_000))]
    pub queries: Option<At<u32>>,
    /// Discarded queries at the start of each launch (default 1).
    pub warmup: Option<At<Warmup>>,
    /// Launches of each cell (default 5).
    pub repetitions: Option<At<Repetitions>>,
    /// Order of the launches (default `interleaved`).
    pub order: Option<Order>,
    /// Seed of the shuffled order and of the prompts (default 1); those of a model that is made on the spot come from its own seed.
    #[schemars(range(min = 0, max = i64::MAX))]
    pub seed: Option<At<u64>>,
    /// Longest time of one launch, for instance `90s` (default `10m`).
    pub timeout: Option<At<String>>,
    /// Time after which no new block of launches begins, for instance `2h`.
    pub budget: Option<At<String>>,
    /// What is done to the page cache before each launch: nothing, or the model's files are dropped from it or read into it (default `any`).
    pub load: Option<Load>,
    /// Whether cells that differ in prompt and generated length only share their launches where the backend can do it: one process loads the model once and answers the queries of all of them (default true; false with `[power]`, since the energy of one cell needs a process of its own).
    pub share_launches: Option<At<bool>>,
    /// Profiling pass after the measurement (default `off`).
    pub profile: Option<Profile>,
}

/// Discarded queries at the start of each launch.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Warmup {
    /// Fewest discarded queries.
    #[schemars(required, range(min = 1, max = 1000))]
    pub min: Option<At<u32>>,
    /// Most discarded queries (default: `min`). Above `min`, each launch discards until a query takes as long as those after it; all of them are asked for in any case.
    #[schemars(range(min = 1, max = 1000))]
    pub max: Option<At<u32>>,
}

/// Launches of each cell.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Repetitions {
    /// Fewest launches of a cell.
    #[schemars(required, range(min = 1, max = 100_000))]
    pub min: Option<At<u32>>,
    /// Most launches of a cell (default: `min`).
    #[schemars(range(min = 1, max = 100_000))]
    pub max: Option<At<u32>>,
    /// Time in launches of a cell after which it gets no more than `min` of them, for instance `20m`.
    pub max_time: Option<At<String>>,
    /// Stop once the half-width of the confidence interval is under this share of the median, for instance `2%`.
    pub until_ci: Option<At<String>>,
}

/// Order of the launches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum Order {
    /// Blocks over all cells, each shuffled, so that drift hits every cell alike.
    Interleaved,
    /// All launches of a cell before the next cell.
    Sequential,
}

/// What is done to the page cache before each launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum Load {
    /// Nothing: a load is what it happens to be, and marked as that.
    Any,
    /// The model's files are dropped from the page cache, as far as the kernel does it.
    Cold,
    /// The model's files are read.
    Warm,
}

/// Profiling pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum Profile {
    /// No profiling.
    Off,
    /// One more launch of each cell with the time of every operation; it feeds no other figure.
    Layers,
}

/// What generated tokens are compared with.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Verify {
    /// `fp32` (computed from the geometry's seed) or `none` (default `none`).
    pub reference: Option<At<String>>,
    /// Least share of tokens before the first difference that a quantised model has to reach, from 0 to 1.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub min_agreement: Option<At<f64>>,
}

/// What is sampled while a cell runs.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Telemetry {
    /// Samples per second of every source, from `0Hz` (off) to `50Hz` (default `10Hz`).
    pub rate: Option<At<String>>,
}

/// A program of your own that speaks the runner protocol.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Program {
    /// The program and its arguments. One that begins with `./` or `../` is taken relative to the scenario.
    #[schemars(required, length(min = 1))]
    pub command: Option<Vec<At<String>>>,
    /// The processor that it uses (default `cpu`).
    #[schemars(with = "Option<UnitWord>")]
    pub unit: Option<At<String>>,
}
