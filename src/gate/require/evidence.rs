//! What requirements look at beside the values of launches: single queries for quantiles, and the windows of soaks.

use std::{collections::BTreeMap, path::Path};

use polars::prelude::{col, lit};

use super::super::run::{Cell, Key};
use crate::{
    results::{
        read::{TableError, read},
        schema::{METRICS, SAMPLES, SOAK, SUPPORT},
    },
    scenario::{Requirement, Source, Statistic},
};

/// Values that only some requirements need; those that none asks for are not read.
#[derive(Debug, Default)]
pub struct Evidence {
    /// Warm queries by metric and cell, apart by launch.
    queries: BTreeMap<(&'static str, Key), BTreeMap<i64, Vec<f64>>>,
    /// Windows of soaks by cell, in their order.
    windows: BTreeMap<Key, Vec<Window>>,
    /// Verdicts of support.csv, which a run of an older bench does not have.
    support: BTreeMap<Combination, Supported>,
}

/// What a verdict of support.csv is about: device, model, quantisation, backend and the unit asked for.
type Combination = [String; 5];

/// A verdict of support.csv.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Supported {
    /// Its word.
    pub word: String,
    /// The operation that it is about, by name or else type; empty where it is about none.
    pub op: String,
    /// Why, in the runtime's or the run's words.
    pub reason: String,
}

/// A window of a soak.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Window {
    /// When it ends, in s after the soak's first query.
    pub end_s: f64,
    /// Its length in s.
    pub length_s: f64,
    /// Tokens a second.
    pub rate: f64,
}

impl Evidence {
    /// The values behind a quantile, apart by launch: queries, or for a metric of launches one value each.
    pub fn values(&self, metric: &'static str, key: &Key, cell: &Cell) -> Vec<Vec<f64>> {
        match self.queries.get(&(metric, key.clone())) {
            Some(launches) => launches.values().cloned().collect(),
            None => cell.values(metric).into_iter().map(|value| vec![value]).collect(),
        }
    }

    /// The windows of a cell's soak.
    pub fn windows(&self, key: &Key) -> &[Window] {
        self.windows.get(key).map_or(&[], Vec::as_slice)
    }

    /// The verdict over a cell's combination.
    pub fn support(&self, key: &Key, cell: &Cell) -> Option<&Supported> {
        let [model, quant, backend, unit] = ["model", "quant", "backend", "unit_requested"].map(|column| cell.field(column).to_owned());
        self.support.get(&[key.device.clone(), model, quant, backend, unit])
    }

    #[cfg(test)]
    pub(super) fn add_support(&mut self, combination: [&str; 5], supported: Supported) {
        self.support.insert(combination.map(str::to_owned), supported);
    }

    #[cfg(test)]
    pub(super) fn add_queries(&mut self, metric: &'static str, key: &Key, launch: i64, values: &[f64]) {
        self.queries.entry((metric, key.clone())).or_default().insert(launch, values.to_vec());
    }

    #[cfg(test)]
    pub(super) fn add_windows(&mut self, key: &Key, windows: Vec<Window>) {
        self.windows.insert(key.clone(), windows);
    }
}

/// Reads what some requirements need of a run folder.
pub fn gather(folder: &Path, requirements: &[Requirement]) -> Result<Evidence, TableError> {
    let mut evidence = Evidence::default();
    let mut metrics: Vec<&'static str> = Vec::new();
    let (mut soaks, mut support) = (false, false);
    for requirement in requirements {
        match requirement.subject().map(|s| s.source) {
            Some(Source::Metric(name)) if requirement.statistic.is_some_and(|s| s != Statistic::Median) => {
                metrics.extend(METRICS.iter().filter(|m| m.per_query && m.name == name).map(|m| m.name));
            }
            Some(Source::Soak | Source::SoakRatio) => soaks = true,
            Some(Source::Support(_)) => support = true,
            _ => {}
        }
    }
    if !metrics.is_empty() {
        let wanted: Vec<&str> = ["device", "cell", "launch"].into_iter().chain(metrics.iter().copied()).collect();
        let counted = col("pass").eq(lit("measure")).and(col("status").eq(lit("ok"))).and(col("query_kind").eq(lit("warm_query")));
        if let Some(mut table) = read(folder, &SAMPLES, &wanted, Some(counted))? {
            let (devices, cells, launches) = (table.text("device"), table.text("cell"), table.int("launch"));
            for name in metrics {
                for (row, value) in table.float(name).into_iter().enumerate() {
                    let (Some(device), Some(cell)) = (devices[row].clone(), cells[row].clone()) else { continue };
                    let (Some(value), Some(launch)) = (value, launches[row]) else { continue };
                    evidence.queries.entry((name, Key { device, cell })).or_default().entry(launch).or_default().push(value);
                }
            }
        }
    }
    if soaks && let Some(mut table) = read(folder, &SOAK, &["device", "cell", "t_s", "length_s", "tok_s"], None)? {
        let (devices, cells) = (table.text("device"), table.text("cell"));
        let (start, length, rate) = (table.float("t_s"), table.float("length_s"), table.float("tok_s"));
        for row in 0..table.rows() {
            let (Some(device), Some(cell)) = (devices[row].clone(), cells[row].clone()) else { continue };
            let (Some(t), Some(length_s), Some(tokens)) = (start[row], length[row], rate[row]) else { continue };
            evidence.windows.entry(Key { device, cell }).or_default().push(Window { end_s: t + length_s, length_s, rate: tokens });
        }
    }
    let wanted = ["device", "model", "quant", "backend", "unit", "support", "op", "op_type", "reason"];
    if support && let Some(table) = read(folder, &SUPPORT, &wanted, None)? {
        let columns = wanted.map(|name| table.text(name).into_iter().map(Option::unwrap_or_default).collect::<Vec<_>>());
        let rows = (0..table.rows()).map(|row| {
            let [device, model, quant, backend, unit, word, op, op_type, reason] = columns.each_ref().map(|column| column[row].clone());
            ([device, model, quant, backend, unit], Supported { word, op: if op.is_empty() { op_type } else { op }, reason })
        });
        evidence.support = rows.collect();
    }
    Ok(evidence)
}
