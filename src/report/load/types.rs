//! What the tables hold, as structs.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::Value;

use super::identity::{Ran, artifact};
use super::phases::PhaseShare;
use super::places::{Fallback, Placed, Support};

/// One run folder.
#[derive(Debug, Default)]
pub struct Run {
    /// Name of the folder: the id where the manifest has none.
    pub folder: String,
    /// `manifest.json`, or null.
    pub manifest: Value,
    /// `plan.toml` has `[power]`.
    pub power_asked: bool,
    /// `cells.csv`, in its order.
    pub cells: Vec<Cell>,
    /// What each launch that counts gives, from `samples.csv`.
    pub launches: BTreeMap<CellKey, Launches>,
    /// Gaps between tokens in ms, of those queries, from `tokens.csv`.
    pub gaps: BTreeMap<CellKey, Vec<f64>>,
    /// The first measured launch of each cell over time, from `telemetry.csv` and `tokens.csv`.
    pub timelines: BTreeMap<CellKey, Timeline>,
    /// Windows and events of soaks, from `soak.csv` and `soak_events.csv`.
    pub soaks: BTreeMap<CellKey, Soak>,
    /// Where the time of each stage goes, from `phases.csv`, in its order.
    pub phases: BTreeMap<CellKey, Vec<PhaseShare>>,
    /// `layers.csv`.
    pub layers: BTreeMap<CellKey, Vec<Layer>>,
    /// `placement.csv`.
    pub placement: BTreeMap<CellKey, Vec<Placed>>,
    /// `fallbacks.csv`.
    pub fallbacks: BTreeMap<CellKey, Vec<Fallback>>,
    /// `support.csv`, in its order.
    pub support: Vec<Support>,
    /// Tables that are missing and values that make no sense, in words.
    pub problems: Vec<String>,
}

/// What makes a cell one of a kind within a run.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct CellKey {
    /// Name of the device.
    pub device: String,
    /// Id of the cell.
    pub cell: String,
}

/// One launch over time. Times are seconds since its spawn.
#[derive(Debug, Clone, Default)]
pub struct Timeline {
    /// What was sampled, by source and name.
    pub series: BTreeMap<(String, String), Series>,
    /// Arrivals of tokens, in order.
    pub tokens: Vec<f64>,
    /// What the runner did, in order; between them it did nothing that was told.
    pub phases: Vec<Stretch>,
}

impl Timeline {
    /// The series of a source, in the order of their names.
    pub fn of<'a>(&'a self, source: &'a str) -> impl Iterator<Item = (&'a str, &'a Series)> {
        self.series.iter().filter(move |((from, _), _)| from == source).map(|((_, name), series)| (name.as_str(), series))
    }

    /// Resident memory of the process tree, MB. A process that has ended has none: the last sample may come after it.
    pub fn memory(&self) -> Vec<(f64, f64)> {
        let resident = self.of("process").filter(|(name, _)| matches!(*name, "rss_kb" | "rss_mb"));
        resident.flat_map(|(_, series)| series.megabytes()).filter(|(_, mb)| *mb > 0.0).collect()
    }

    /// Seconds until the last thing that is known of it.
    pub fn seconds(&self) -> f64 {
        let sampled = self.series.values().filter_map(|series| series.points.last()).map(|point| point.0);
        sampled.chain(self.tokens.last().copied()).fold(0.0, f64::max)
    }
}

/// One sampled quantity.
#[derive(Debug, Clone, Default)]
pub struct Series {
    /// As the table says.
    pub unit: String,
    /// Seconds and values, in order.
    pub points: Vec<(f64, f64)>,
}

impl Series {
    /// Memory in MB; nothing where the unit is none of memory. The kernel's kB are 1,024 bytes; our MB are 10^6.
    pub fn megabytes(&self) -> Vec<(f64, f64)> {
        let factor = match self.unit.as_str() {
            "kB" | "KiB" => 1.024e-3,
            "MB" => 1.0,
            "B" => 1e-6,
            _ => return Vec::new(),
        };
        self.points.iter().map(|(t, value)| (*t, value * factor)).collect()
    }
}

/// One soak. Times are seconds since its first measured query.
#[derive(Debug, Clone, Default)]
pub struct Soak {
    /// Figures of the windows by column of `soak.csv`, each in the middle of its window.
    pub series: BTreeMap<&'static str, Vec<(f64, f64)>>,
    /// Until the end of the last window.
    pub seconds: f64,
    /// Length of a window.
    pub window_s: f64,
    /// What happened, in the order of the table.
    pub events: Vec<SoakEvent>,
}

/// Something that happened in a soak.
#[derive(Debug, Clone)]
pub struct SoakEvent {
    /// When; negative before the first measured query.
    pub t_s: f64,
    /// throttle, wrong-tokens, ...
    pub kind: String,
    /// Temperature of the cell's part of the device.
    pub temp_c: Option<f64>,
    /// In words.
    pub what: String,
}

/// What a runner does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// From the spawn to the first query.
    Load,
    /// From submission to the first token.
    Prefill,
    /// From the first token to the last.
    Decode,
}

/// A phase with its time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stretch {
    /// Which.
    pub phase: Phase,
    /// Seconds.
    pub from: f64,
    /// Seconds.
    pub to: f64,
}

/// How a cell ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Status {
    /// Measured, and no check contradicts it.
    Ok,
    /// Measured, but a check contradicts it.
    Unverified,
    /// Tried and failed.
    Failed,
    /// Not tried.
    Skipped,
    /// A word that this version doesn't know: treated like a failure, shown as written.
    Unknown,
}

impl Status {
    pub(super) fn of(word: &str) -> Self {
        match word {
            "ok" => Self::Ok,
            "unverified" => Self::Unverified,
            "failed" => Self::Failed,
            "skipped" => Self::Skipped,
            _ => Self::Unknown,
        }
    }

    /// The word of the tables.
    pub fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Unverified => "unverified",
            Self::Failed => "failed",
            Self::Skipped => "skipped",
            Self::Unknown => "unknown",
        }
    }
}

/// One metric of one cell.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// Median.
    pub median: f64,
    /// Ends of its interval.
    pub interval: Option<(f64, f64)>,
    /// Median absolute deviation.
    pub mad: Option<f64>,
    /// Values behind it.
    pub n: Option<usize>,
}

/// One row of `cells.csv`.
#[derive(Debug, Clone)]
pub struct Cell {
    /// Device and id.
    pub key: CellKey,
    /// phone, board, pc or emulator.
    pub class: String,
    /// Id of the backend.
    pub backend: String,
    /// Model of the scenario.
    pub model: String,
    /// Class of the quantisation.
    pub quant: String,
    /// Prompt tokens asked for.
    pub prompt: i64,
    /// Tokens to generate.
    pub generate: i64,
    /// How it ended.
    pub status: Status,
    /// Metrics by column name.
    pub metrics: BTreeMap<&'static str, Estimate>,
    /// Why a metric is absent.
    pub absent: BTreeMap<String, String>,
    /// Every other column that is not empty, by name.
    pub fields: BTreeMap<&'static str, String>,
}

impl Cell {
    /// A column as text.
    pub fn text(&self, column: &str) -> Option<&str> {
        self.fields.get(column).map(String::as_str)
    }

    /// A column as a number.
    pub fn number(&self, column: &str) -> Option<f64> {
        self.text(column)?.parse().ok().filter(|value: &f64| value.is_finite())
    }

    /// The artifact that it ran; `None` where no file of the model is known.
    pub fn artifact(&self) -> Option<&str> {
        artifact(self.text("artifact")?)
    }

    /// What is known of the model that it ran.
    pub fn ran(&self) -> Ran<'_> {
        let text = |column| self.text(column).unwrap_or_default();
        Ran { who: &self.backend, artifact: text("artifact"), quant: &self.quant }
    }

    /// Its figures are composed from graph times: a bound that no engine reaches, and nothing that was measured (rule R11).
    pub fn is_composed(&self) -> bool {
        is_composed(|column| self.text(column))
    }

    /// Whether it may stand in a chart, a ratio or a sentence.
    pub fn counts(&self) -> bool {
        self.status == Status::Ok
    }
}

/// One value a launch: the median of its warm queries that count. Queries of one launch are not independent, launches are.
#[derive(Debug, Clone, Default)]
pub struct Launches {
    /// Times to first token.
    pub ttft_ms: Vec<f64>,
    /// Rates of decoding.
    pub decode_tok_s: Vec<f64>,
    /// The tool printed one aggregate for all queries of a launch: the value of a launch is then the tool's own mean.
    pub aggregate: bool,
}

/// One operation of a graph.
#[derive(Debug, Clone)]
pub struct Layer {
    /// Name as printed.
    pub name: Arc<str>,
    /// What many operations have in common.
    pub sort: Arc<Sort>,
    /// The compiler made it part of another operation.
    pub folded: bool,
    /// Time or cycles.
    pub value: f64,
    /// Executions behind the value.
    pub count: Option<i64>,
}

/// What many operations have in common. Words are empty where the table does not say.
#[derive(Debug)]
pub struct Sort {
    /// prefill or decode, and the graph's name, as far as they are known.
    pub graph: String,
    /// prefill or decode.
    pub phase: String,
    /// Type, where it is printed.
    pub op_type: String,
    /// Part of the model.
    pub part: String,
    /// What kind of operation.
    pub kind: String,
    /// compute or movement.
    pub class: String,
    /// Processor.
    pub unit: String,
    /// us or cycles.
    pub value_unit: String,
    /// As in the table.
    pub means: String,
    /// Where the value comes from.
    pub method: String,
}

impl Sort {
    /// Whether it moves data and computes nothing.
    pub fn moves(&self) -> bool {
        self.class == "movement"
    }
}

/// Whether any speed of a cell is composed from graph times, by what its columns say.
pub fn is_composed<'a>(column: impl Fn(&'static str) -> Option<&'a str>) -> bool {
    ["ttft_method", "prefill_method", "decode_method"].into_iter().any(|name| column(name) == Some("composed"))
}
