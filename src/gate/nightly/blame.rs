//! What was not the same in the run in which a change began: the runtime's version, the firmware, the tool.

use std::{collections::BTreeMap, path::PathBuf};

use crate::gate::{
    history,
    run::{self, Key, Run},
    unlike::{Difference, between},
};

/// Runs that were read for their differences, each once.
#[derive(Default)]
pub struct Blame {
    read: BTreeMap<PathBuf, Option<Run>>,
}

impl Blame {
    /// What changed for a cell (all of its metrics when `metric` is empty) from one run to the next, in words, the heaviest first.
    pub fn changed(&mut self, [before, after]: [&history::Run; 2], key: &Key, metric: &str) -> Vec<String> {
        for one in [before, after] {
            self.read.entry(one.folder.clone()).or_insert_with(|| run::load(&one.folder).ok());
        }
        let of = |one: &history::Run| self.read.get(&one.folder).and_then(Option::as_ref);
        let (Some(a), Some(b)) = (of(before), of(after)) else { return Vec::new() };
        let pair = a.cells.get_key_value(key).zip(b.cells.get(key)).map(|((key, one), other)| (key, one, other));
        let of_metric = |d: &Difference| d.changed() && (metric.is_empty() || d.touches(metric));
        between(a, b, pair).iter().filter(|d| of_metric(d)).map(|d| format!("{}: {} -> {}", d.what, d.a, d.b)).collect()
    }
}
