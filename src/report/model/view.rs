//! The values that the templates lay out.

use serde::Serialize;

use crate::report::charts::Swatch;

/// The page.
#[derive(Debug, Serialize)]
pub struct Page {
    pub title: String,
    pub tool: String,
    pub palette: &'static [Swatch],
    /// What each metric means, as the tables' schema has it.
    pub definitions: Vec<Fact>,
    pub runs: Vec<RunView>,
}

/// A name with its value.
#[derive(Debug, Serialize)]
pub struct Fact {
    pub name: String,
    pub value: String,
}

/// One run.
#[derive(Debug, Serialize)]
pub struct RunView {
    pub id: String,
    pub anchor: String,
    pub scenario: String,
    pub facts: Vec<Fact>,
    pub runtimes: Vec<RuntimeView>,
    pub counts: Vec<Count>,
    pub sentences: Vec<String>,
    pub panels: Vec<Panel>,
    pub failures: Vec<Failure>,
    pub environment: Vec<Section>,
    pub warnings: Vec<String>,
    pub problems: Vec<String>,
}

/// How many cells ended so.
#[derive(Debug, Serialize)]
pub struct Count {
    pub status: &'static str,
    pub n: usize,
}

/// A runtime as the manifest has it.
#[derive(Debug, Serialize)]
pub struct RuntimeView {
    pub key: String,
    pub backend: String,
    pub state: &'static str,
    pub text: String,
}

/// Some facts under a heading.
#[derive(Debug, Serialize)]
pub struct Section {
    pub title: String,
    pub facts: Vec<Fact>,
}

/// One class on one device.
#[derive(Debug, Serialize)]
pub struct Panel {
    pub anchor: String,
    pub title: String,
    pub class: String,
    pub device: String,
    pub emulator: bool,
    pub note: String,
    pub pairs: Vec<Pairing>,
    pub unpaired: Option<String>,
    pub sets: Vec<Set>,
    pub layers: Vec<Chart>,
}

/// The cells of one model in one quantisation.
#[derive(Debug, Serialize)]
pub struct Set {
    pub anchor: String,
    pub title: String,
    pub rows: Vec<CellRow>,
    /// Whether any row counts.
    pub measured: bool,
    /// How the first token was timed, where all rows agree.
    pub timing: Option<String>,
    pub notes: Vec<Note>,
    pub charts: Vec<Chart>,
    pub details: Vec<Grid>,
}

/// A footnote.
#[derive(Debug, Serialize)]
pub struct Note {
    pub mark: String,
    pub text: String,
}

/// One row of the comparison.
#[derive(Debug, Serialize)]
pub struct CellRow {
    pub key: String,
    pub id: String,
    pub backend: String,
    pub workload: String,
    pub axes: String,
    /// Empty when it counts, else the status and the reason.
    pub out: Option<String>,
    pub status: &'static str,
    pub values: Vec<Value>,
    /// How its first token was timed, where the rows of the set differ.
    pub timing: Option<String>,
    pub n: String,
    pub n_title: String,
    pub stability: Badge,
    pub badges: Vec<Badge>,
    pub unit: String,
    pub checks: Vec<Badge>,
}

/// One figure of a table.
#[derive(Debug, Clone, Serialize, PartialEq)]
pub struct Value {
    pub text: String,
    pub interval: Option<String>,
    pub title: String,
    pub mark: Option<String>,
}

/// A small label.
#[derive(Debug, Clone, Serialize)]
pub struct Badge {
    /// good, bad or quiet.
    pub tone: &'static str,
    pub text: String,
    pub title: String,
}

/// A drawing with its legend and the table behind it.
#[derive(Debug, Serialize)]
pub struct Chart {
    pub title: String,
    pub caption: String,
    /// Half the page's width, else a third.
    pub wide: bool,
    pub svg: String,
    pub legend: Vec<LegendKey>,
    pub table: Grid,
}

/// A line of a legend; `key` is a drawing of ours.
#[derive(Debug, Serialize)]
pub struct LegendKey {
    pub key: String,
    pub text: String,
}

/// A plain table; the first column is text, the others are figures unless `text` is set.
#[derive(Debug, Default, Serialize)]
pub struct Grid {
    pub title: String,
    pub columns: Vec<String>,
    pub rows: Vec<Vec<String>>,
    pub text: bool,
    /// Unfolded, on the screen and in print.
    pub open: bool,
}

/// Two backends on the same artifacts.
#[derive(Debug, Serialize)]
pub struct Pairing {
    pub title: String,
    pub above: String,
    pub below: String,
    pub rows: Vec<PairRow>,
    pub notes: Vec<String>,
}

/// One workload of a pairing.
#[derive(Debug, Serialize)]
pub struct PairRow {
    pub workload: String,
    pub quant: String,
    pub artifact: String,
    pub metrics: Vec<PairMetric>,
}

/// One metric of a pairing.
#[derive(Debug, Serialize)]
pub struct PairMetric {
    pub above: String,
    pub below: String,
    pub ratio: String,
    pub interval: String,
    pub verdict: String,
    pub title: String,
}

/// A cell that is in no chart.
#[derive(Debug, Serialize)]
pub struct Failure {
    pub id: String,
    pub backend: String,
    pub workload: String,
    pub place: String,
    pub status: &'static str,
    pub kind: String,
    pub reason: String,
    pub launches: String,
}
