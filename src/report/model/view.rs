//! The values that the templates lay out.

use serde::Serialize;

use crate::report::charts::Swatch;

/// The page.
#[derive(Debug, Serialize)]
pub struct Page {
    /// The tag that says what it is made of; whoever reads the runs knows.
    pub origin: String,
    pub title: String,
    pub tool: String,
    /// An artifact was made by bench itself, which limits what its token check says.
    pub self_made: bool,
    pub palette: Vec<Swatch>,
    /// What each metric means, as the tables' schema has it.
    pub definitions: Vec<Fact>,
    /// The runs are the two sides of one A/B run.
    pub paired: bool,
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
    /// Whether there is a manifest to say so.
    pub manifest: bool,
    pub counts: Vec<Count>,
    pub sentences: Vec<String>,
    pub headlines: Vec<Headline>,
    /// So many cells that a browser better lays out only what is seen of them.
    pub many: bool,
    /// What rows can be filtered by; nothing in a small run.
    pub filters: Vec<Choice>,
    pub decision: Decision,
    pub panels: Vec<Panel>,
    pub failures: Vec<Gone>,
    pub environment: Vec<Section>,
    pub warnings: Vec<String>,
    pub problems: Vec<String>,
}

/// What to ship.
#[derive(Debug, Default, Serialize)]
pub struct Decision {
    /// The run beside which the selection stands, where this one is another session of the same.
    pub with: Option<String>,
    /// Of which sessions it is, where there are several.
    pub sessions: Option<String>,
    /// Why nothing was selected.
    pub why_not: Option<String>,
    /// The preset, in a sentence; empty without one.
    pub preset: String,
    pub groups: Vec<DecisionGroup>,
    /// What no measurement says, a row a framework and fact.
    pub cards: Grid,
    pub needs: Grid,
    pub weights: Grid,
}

/// What to ship of one class, device and model.
#[derive(Debug, Serialize)]
pub struct DecisionGroup {
    pub title: String,
    pub class: String,
    pub answer: String,
    /// How it came about.
    pub sentences: Vec<String>,
    /// How sure each ranking is.
    pub notes: Vec<String>,
    pub candidates: Grid,
    pub findings: Grid,
}

/// What was found for one class, on the first screen.
#[derive(Debug, Serialize)]
pub struct Headline {
    pub anchor: String,
    pub title: String,
    pub device: String,
    pub emulator: bool,
    /// Which workload the rows are of.
    pub workload: String,
    /// Which model, where there is one.
    pub model: String,
    /// How the intervals were made.
    pub intervals: String,
    pub rows: Vec<HeadRow>,
    pub sentences: Vec<String>,
}

/// One backend and quantisation of a headline.
#[derive(Debug, Serialize)]
pub struct HeadRow {
    pub key: String,
    pub backend: String,
    pub quant: String,
    pub values: Vec<Value>,
}

/// What a row is about, for the filters; a row of several cells has several values, one a line.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Keys {
    /// Its backend.
    pub backend: String,
    /// Its model.
    pub model: String,
    /// Its quantisation.
    pub quant: String,
    /// Prompt and generated tokens: `512 → 128`.
    pub workload: String,
    /// How it ended; of a comparison, its verdict.
    pub status: String,
    /// Class of its device.
    pub class: String,
}

/// One filter.
#[derive(Debug, Serialize)]
pub struct Choice {
    /// Field of [`Keys`].
    pub name: &'static str,
    pub label: &'static str,
    pub values: Vec<Pick>,
}

/// A value that rows have.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Pick {
    pub key: String,
    pub text: String,
    /// A word of ours, not a name.
    pub ours: bool,
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
    /// ready, missing or refused.
    pub state: &'static str,
    pub text: String,
    /// What to do about it.
    pub remedy: Option<String>,
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
    pub why: Option<Why>,
    pub layers: Vec<Chart>,
    /// Backends without times per operation, where others have them.
    pub unprofiled: Option<String>,
}

/// Where the time goes on one class and device.
#[derive(Debug, Serialize)]
pub struct Why {
    /// Processors that were asked for and did not do the work.
    pub alarms: Vec<String>,
    /// By part of the model, from the profile pass.
    pub parts: Vec<Chart>,
    /// Parts of load, prefill and decode, as measured.
    pub stages: Vec<Chart>,
    /// The same in the profile pass.
    pub profiled: Vec<Chart>,
    /// Placement, fallbacks, support.
    pub tables: Vec<Grid>,
    /// Decode under the memory's roof.
    pub roof: Option<Chart>,
    /// Why there is no roof.
    pub no_roof: Option<String>,
}

/// The cells of one model.
#[derive(Debug, Serialize)]
pub struct Set {
    pub anchor: String,
    pub title: String,
    /// What may be compared with what.
    pub note: Option<String>,
    /// One metric each, all backends by all workloads.
    pub matrix: Vec<Matrix>,
    /// Rows that count, by workload.
    pub blocks: Vec<Block>,
    /// Cells that don't, those with one reason together.
    pub gone: Vec<Gone>,
    /// How the intervals were made.
    pub intervals: String,
    /// How the first token was timed, where all rows agree.
    pub timing: Option<String>,
    /// What peak memory is the sum of, where the rows differ in it.
    pub memory: Option<String>,
    pub notes: Vec<Note>,
    pub charts: Vec<Chart>,
    /// Why a picture that another run has is not here, a sentence each.
    pub undrawn: Vec<String>,
    pub timelines: Vec<Chart>,
    pub soak: Option<SoakView>,
    pub details: Vec<Grid>,
}

/// The soaks of a set.
#[derive(Debug, Serialize)]
pub struct SoakView {
    pub table: Grid,
    pub charts: Vec<Chart>,
    pub events: Option<Grid>,
}

/// One metric of a set: a row for each backend, quantisation and set of axes, a column for each workload.
#[derive(Debug, Serialize)]
pub struct Matrix {
    pub title: &'static str,
    pub unit: &'static str,
    pub columns: Vec<String>,
    pub rows: Vec<MatrixRow>,
}

/// One row of it.
#[derive(Debug, Serialize)]
pub struct MatrixRow {
    pub key: String,
    pub keys: Keys,
    pub backend: String,
    pub quant: String,
    pub axes: String,
    /// How its first tokens were timed, where rows differ.
    pub timing: Option<String>,
    pub cells: Vec<MatrixCell>,
}

/// A figure, or how a cell without one ended, or neither where it was not asked for.
#[derive(Debug, Default, Serialize)]
pub struct MatrixCell {
    pub value: Option<Value>,
    pub status: Option<&'static str>,
    pub reason: String,
}

/// Rows of one workload.
#[derive(Debug, Serialize)]
pub struct Block {
    pub workload: String,
    pub rows: Vec<CellRow>,
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
    pub keys: Keys,
    /// Rows with another number were timed in another way, and are not sorted among each other (rule R6).
    pub apart: usize,
    pub id: String,
    pub backend: String,
    pub quant: String,
    /// What the class stands for, as the artifact says (rule R29).
    pub bits: String,
    /// The native name in it is the scenario's word.
    pub stated: bool,
    pub axes: String,
    pub values: Vec<Value>,
    /// How its first token was timed, where the rows of the set differ.
    pub timing: Option<String>,
    pub n: String,
    pub n_title: String,
    pub stability: Option<Badge>,
    pub badges: Vec<Badge>,
    pub unit: String,
    pub checks: Vec<Badge>,
}

/// One figure of a table.
#[derive(Debug, Clone, Serialize, PartialEq)]
pub struct Value {
    pub text: String,
    /// All digits of it, to sort by.
    pub exact: Option<f64>,
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
#[derive(Debug, Clone, Serialize)]
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
#[derive(Debug, Clone, Serialize)]
pub struct LegendKey {
    pub key: String,
    pub text: String,
}

/// A plain table; the first column is text, the others are figures unless `text` is set.
#[derive(Debug, Clone, Default, Serialize)]
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
    /// How the ends of the ratios were made.
    pub ends: Vec<String>,
    pub notes: Vec<String>,
}

/// One workload of a pairing.
#[derive(Debug, Serialize)]
pub struct PairRow {
    pub keys: Keys,
    pub workload: String,
    pub quant: String,
    /// The end of its name, which tells it from others.
    pub artifact: String,
    pub artifact_whole: String,
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

/// Cells of one backend and class that are in no chart, all for one reason.
#[derive(Debug, Clone, Serialize)]
pub struct Gone {
    pub key: String,
    pub keys: Keys,
    pub backend: String,
    /// Quantisations and workloads.
    pub what: String,
    pub ids: Vec<String>,
    pub place: String,
    pub status: &'static str,
    pub kind: String,
    pub reason: String,
    pub launches: String,
}
