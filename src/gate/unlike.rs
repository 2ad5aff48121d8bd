//! What was not the same around two runs, or around one cell in both: the first thing that a comparison says (rules R6, R10, R19, R29).
//!
//! Nothing here judges a figure. A difference that makes two figures different things (another chip, class, way of timing) bars their
//! comparison; one that could by itself explain a difference of figures is serious; the rest is for the record.

mod cells;
mod runs;

use std::collections::BTreeMap;

use serde::Serialize;

use super::run::{Cell, Key, Run};

/// What a difference means for a comparison. The order is from least to most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Weight {
    /// For the record.
    Minor,
    /// Could by itself explain a difference of figures: stands above the table.
    Serious,
    /// The figures are of different things: not compared.
    Bars,
}

impl Weight {
    /// What it is when one side does not state it: nobody knows whether there is a difference.
    fn in_doubt(self) -> Self {
        match self {
            Self::Bars => Self::Serious,
            Self::Serious | Self::Minor => Self::Minor,
        }
    }
}

/// One difference.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// What differs, in words.
    pub what: String,
    /// What it was in A.
    pub a: String,
    /// What it was in B.
    pub b: String,
    /// What it means.
    pub weight: Weight,
    /// The metrics that it touches; empty = all.
    pub metrics: &'static [&'static str],
    /// The cells that it touches, by their names in A; empty = the whole run.
    pub cells: Vec<Key>,
}

/// What stands for a value that nobody stated.
pub const UNSTATED: &str = "unstated";

/// Temperatures further apart than this are a difference (rule R19), in degrees Celsius.
pub const FAR_C: f64 = 3.0;

impl Difference {
    fn new(what: impl Into<String>, a: impl Into<String>, b: impl Into<String>, weight: Weight) -> Self {
        Self { what: what.into(), a: a.into(), b: b.into(), weight, metrics: &[], cells: Vec::new() }
    }

    /// Two statements, either of which may be missing; `None` when they are the same.
    fn of(what: impl Into<String>, a: Option<String>, b: Option<String>, weight: Weight) -> Option<Self> {
        if a == b {
            return None;
        }
        let weight = if a.is_none() || b.is_none() { weight.in_doubt() } else { weight };
        let word = |value: Option<String>| value.unwrap_or_else(|| UNSTATED.to_owned());
        Some(Self::new(what, word(a), word(b), weight))
    }

    /// Whether it stands above the table.
    pub fn serious(&self) -> bool {
        self.weight >= Weight::Serious
    }

    /// Whether something changed: an ambient temperature that neither side states is a warning and no change.
    pub fn changed(&self) -> bool {
        self.a != self.b
    }

    /// Whether it touches a metric.
    pub fn touches(&self, metric: &str) -> bool {
        self.metrics.is_empty() || self.metrics.contains(&metric)
    }

    /// In one line.
    pub fn words(&self) -> String {
        if self.changed() {
            format!("{}: {} in A, {} in B", self.what, self.a, self.b)
        } else {
            format!("{}: {} in both", self.what, self.a)
        }
    }
}

pub use cells::of_cells;
pub use runs::of_runs;

/// All differences between two runs: those of the runs, then those of the paired cells, one that several cells share once. The heaviest
/// come first.
pub fn between<'a>(a: &'a Run, b: &'a Run, pairs: impl IntoIterator<Item = (&'a Key, &'a Cell, &'a Cell)>) -> Vec<Difference> {
    let mut found = of_runs(a, b);
    let mut shared: BTreeMap<(String, String, String), Difference> = BTreeMap::new();
    for (key, one, other) in pairs {
        for difference in of_cells(one, other) {
            let name = (difference.what.clone(), difference.a.clone(), difference.b.clone());
            shared.entry(name).or_insert(difference).cells.push(key.clone());
        }
    }
    found.extend(shared.into_values());
    found.sort_by_key(|difference| std::cmp::Reverse(difference.weight));
    found
}

#[cfg(test)]
mod tests;
