//! What the site says: words and figures, decided by whoever judged.

use serde::Serialize;

/// A name, with a page where there is one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Link {
    /// As it is shown.
    pub text: String,
    /// Relative to the site's folder, ready for an attribute.
    pub href: Option<String>,
}

/// The index and all pages of trends.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Site {
    /// Program and version.
    pub tool: String,
    /// Runs, the newest first.
    pub runs: Vec<RunRow>,
    /// Devices, by name.
    pub devices: Vec<DeviceRow>,
    /// Models, by name.
    pub models: Vec<ModelRow>,
    /// What is worse in the last run of a scenario on a device.
    pub worse: Vec<Worse>,
    /// How many of those chance gives; nothing where nothing was judged.
    pub odds: Option<String>,
    /// The last gate of each scenario and device, the newest first.
    pub gates: Vec<GateRow>,
    /// What does not count, with the reason.
    pub left_out: Vec<LeftOut>,
    /// Pages beside those of the runs.
    pub others: Vec<Link>,
    /// What is odd.
    pub remarks: Vec<String>,
    /// What is judged, and which change matters, in words.
    pub asked: String,
    /// Pages of trends, of devices and of models.
    pub pages: Vec<TrendPage>,
}

/// One run.
#[derive(Debug, Clone, Default, Serialize)]
pub struct RunRow {
    /// Its id.
    pub run: Link,
    /// When it began, to the minute, UTC.
    pub started: String,
    /// Its scenario.
    pub scenario: String,
    /// Its device.
    pub device: Link,
    /// How many cells ended how, in words.
    pub cells: String,
    /// Verdict of its gate: regressed, undecided or passed; empty where none was kept.
    pub gate: String,
    /// Why there is no page, or what is odd about it.
    pub note: String,
}

/// One device.
#[derive(Debug, Clone, Default, Serialize)]
pub struct DeviceRow {
    /// Its name and page.
    pub device: Link,
    /// Classes of its cells.
    pub classes: String,
    /// Its processor.
    pub chip: String,
    /// Number of runs.
    pub runs: usize,
    /// The last one.
    pub last: Link,
    /// Verdicts of the last runs, in words.
    pub tally: String,
}

/// One model.
#[derive(Debug, Clone, Default, Serialize)]
pub struct ModelRow {
    /// Its name and page.
    pub model: Link,
    /// Backends with a cell of it.
    pub backends: String,
    /// Devices with a cell of it.
    pub devices: Vec<Link>,
    /// Cells of all devices.
    pub cells: usize,
    /// The last run with one of them.
    pub last: Link,
    /// Verdicts of the last runs, in words.
    pub tally: String,
}

/// A figure that is worse than the nights before it.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Worse {
    /// The cell in words, and in which way and on which chip where that differs.
    pub cell: String,
    /// Its id.
    pub id: String,
    /// The device.
    pub device: Link,
    /// The scenario.
    pub scenario: String,
    /// Class of the device for this cell.
    pub class: String,
    /// The metric.
    pub metric: &'static str,
    /// How much, with its interval.
    pub words: String,
    /// The run that says so.
    pub run: Link,
}

/// The judgement of a gate.
#[derive(Debug, Clone, Default, Serialize)]
pub struct GateRow {
    /// The run.
    pub run: Link,
    /// Its scenario.
    pub scenario: String,
    /// Its device.
    pub device: String,
    /// regressed, undecided, passed, or empty when it can't be read.
    pub verdict: String,
    /// Counts, and what it was held against, in words.
    pub words: Vec<String>,
    /// What is worse than it may be.
    pub worse: Vec<String>,
}

/// What does not count.
#[derive(Debug, Clone, Default, Serialize)]
pub struct LeftOut {
    /// The run or folder.
    pub name: Link,
    /// Why.
    pub why: String,
}

/// The page of trends of a device, or of a model.
#[derive(Debug, Clone, Default, Serialize)]
pub struct TrendPage {
    /// Its file in the site's folder.
    pub file: String,
    /// What it is of: `Device` or `Model`.
    pub of: &'static str,
    /// The name of that.
    pub name: String,
    /// What is known of it: a name, and one or more values.
    pub facts: Vec<(&'static str, Vec<Link>)>,
    /// Verdicts of the last runs, in words.
    pub tally: String,
    /// Runs that it is in, the newest first.
    pub runs: Vec<RunRow>,
    /// The trends by scenario, class and metric, and by device on a model's page.
    pub trends: Vec<Trends>,
    /// What was never measured, and has no trend.
    pub never: Vec<Never>,
}

/// Metrics that no run has measured.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Never {
    /// Scenario and class, and device on a model's page.
    pub of: String,
    /// Columns.
    pub metrics: String,
}

/// The cells of one scenario, class and metric.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Trends {
    /// The scenario.
    pub scenario: String,
    /// The device, where the page is not its own.
    pub device: Option<Link>,
    /// Class of the device for these cells.
    pub class: String,
    /// Column of the metric.
    pub metric: &'static str,
    /// `higher is better` or `lower is better`.
    pub better: &'static str,
    /// Verdicts in words.
    pub tally: String,
    /// The cells.
    pub rows: Vec<Trend>,
    /// Changes of level, the newest first.
    pub steps: Vec<Step>,
}

/// One cell over the nights.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Trend {
    /// The cell in words, and in which way and on which chip where that differs.
    pub cell: String,
    /// Its id.
    pub id: String,
    /// A value for each run of its scenario and device.
    #[serde(skip)]
    pub values: Vec<Option<f64>>,
    /// Places in them at which a new level begins.
    #[serde(skip)]
    pub steps: Vec<usize>,
    /// The last figure.
    pub last: String,
    /// improved, unchanged, undecided, regressed; empty where the last run has no figure.
    pub verdict: &'static str,
    /// The change, or why there is none.
    pub words: String,
}

/// A change of level.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Step {
    /// When, how many cells, how far.
    pub title: String,
    /// Which cells, and what changed that night.
    pub lines: Vec<String>,
}
