//! What the page of a comparison says: words and figures, decided by whoever compared.

use serde::Serialize;

pub use crate::report::model::view::Keys;
use crate::words;

/// Two runs, compared.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Comparison {
    /// Program and version that compared.
    pub tool: String,
    /// The run that is the measure.
    pub a: Side,
    /// The run that is judged.
    pub b: Side,
    /// How often each verdict was given, those that were not left out.
    pub counts: Vec<(&'static str, usize)>,
    /// How it was compared.
    pub method: Vec<String>,
    /// What is odd or missing.
    pub problems: Vec<String>,
    /// What was not the same and could by itself explain a difference.
    pub serious: Vec<Difference>,
    /// The rest of what was not the same.
    pub minor: Vec<Difference>,
    /// One table a class and metric.
    pub tables: Vec<Table>,
    /// What is not compared, by reason.
    pub refused: Vec<Refused>,
    /// What else would decide undecided rows, with the number of rows.
    pub decide: Vec<(String, usize)>,
}

/// One run.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Side {
    /// Its id.
    pub run: String,
    /// Its scenario.
    pub scenario: String,
    /// When it began.
    pub started: String,
}

/// One difference.
#[derive(Debug, Clone, Serialize)]
pub struct Difference {
    /// What differs.
    pub what: String,
    /// In A.
    pub a: String,
    /// In B.
    pub b: String,
    /// Which cells; empty = the whole run.
    pub cells: String,
    /// It forbids the comparison.
    pub bars: bool,
}

/// One metric of one class.
#[derive(Debug, Clone, Serialize)]
pub struct Table {
    /// Column name of the metric.
    pub metric: &'static str,
    /// Device class.
    pub class: String,
    /// `higher is better` or `lower is better`.
    pub better: &'static str,
    /// Its cells.
    pub rows: Vec<Row>,
    /// Geometric mean over them, and of how many.
    pub overall: Option<(usize, Change)>,
    /// What would decide its undecided rows, with their number.
    pub decide: Vec<(String, usize)>,
}

/// One cell.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    /// What it is about, for the filters; its status is its verdict.
    pub keys: Keys,
    /// Its id.
    pub cell: String,
    /// Its device, where there are several.
    pub device: String,
    /// A's figure.
    pub a: String,
    /// B's figure.
    pub b: String,
    /// Launches of the two.
    pub n: String,
    /// Composed and not measured.
    pub composed: bool,
    /// From A to B.
    pub change: Change,
    /// For an undecided one: the verdict on the launches alone, where there is one.
    pub alone: &'static str,
    /// What would decide it first.
    pub decide: String,
}

impl Row {
    /// Its verdict in words.
    pub fn verdict(&self) -> String {
        if self.alone.is_empty() {
            return self.change.verdict.to_owned();
        }
        format!("{}, within these two sessions {}", self.change.verdict, self.alone)
    }
}

/// A ratio of B over A with its verdict.
#[derive(Debug, Clone, Serialize)]
pub struct Change {
    /// B over A.
    pub ratio: f64,
    /// Its interval, sessions included.
    pub interval: Option<(f64, f64)>,
    /// `improved`, `unchanged`, `undecided` or `regressed`.
    pub verdict: &'static str,
}

/// What is not compared.
#[derive(Debug, Clone, Serialize)]
pub struct Refused {
    /// Why.
    pub reason: String,
    /// What: metrics and cells.
    pub what: Vec<String>,
}

impl Change {
    /// The ratio as text, with the decimals that its interval supports.
    pub fn figure(&self) -> String {
        self.text(self.ratio)
    }

    /// Its interval as text, or a dash.
    pub fn between(&self) -> String {
        self.interval.map_or_else(|| "—".to_owned(), |(lo, hi)| format!("{} to {}", self.text(lo), self.text(hi)))
    }

    fn text(&self, ratio: f64) -> String {
        if ratio.abs() < 1e6 { format!("{ratio:.*}", self.decimals()) } else { words::figure(ratio) }
    }

    /// A narrow interval must not be rounded onto 1.
    fn decimals(&self) -> usize {
        match self.interval {
            Some((lo, hi)) if hi - lo < 0.01 => 4,
            Some((lo, hi)) if hi - lo > 0.5 => 2,
            _ => 3,
        }
    }
}
