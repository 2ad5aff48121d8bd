//! Where operations ran, which fell back, and what runs at all.

use std::collections::BTreeMap;
use std::path::Path;

use super::run::keys;
use super::types::{CellKey, Run};
use crate::report::ReportError;
use crate::results::read::{Loaded, read};
use crate::results::schema::{FALLBACKS, PLACEMENT, SUPPORT};

/// The operations of one phase of a cell on one unit.
#[derive(Debug, Clone)]
pub struct Placed {
    /// `prefill`, `decode`, or empty.
    pub phase: String,
    /// `npu`, `gpu`, `cpu`; empty when the profile does not say.
    pub unit: String,
    /// Operations; a profile by types has no number of them.
    pub ops: Option<i64>,
    /// Of these, made part of others.
    pub folded: i64,
    /// Sum of the known values.
    pub value: Option<f64>,
    /// us or cycles.
    pub value_unit: String,
    /// Of the phase, 0 to 1.
    pub share: Option<f64>,
    /// Sum over what the tool prints for the graphs.
    pub accounted: Option<f64>,
    /// Where the values come from.
    pub method: String,
}

/// An operation that ran elsewhere than asked. Fields are empty where nothing says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fallback {
    /// Unit asked for.
    pub asked: String,
    /// Name.
    pub op: String,
    /// Type.
    pub op_type: String,
    /// Where it ran.
    pub unit: String,
    /// Why.
    pub reason: String,
    /// What said so.
    pub source: String,
}

/// Whether a model in a quantisation runs on a unit through a backend.
#[derive(Debug, Clone)]
pub struct Support {
    /// Name of the device.
    pub device: String,
    /// phone, board, pc or emulator.
    pub class: String,
    /// Name of the model.
    pub model: String,
    /// Class of the quantisation.
    pub quant: String,
    /// Id of the backend.
    pub backend: String,
    /// Asked for.
    pub unit: String,
    /// runs, runs-with-fallback, fails-at-op, fails or not-tried.
    pub verdict: String,
    /// The operation that it is about, name or else type.
    pub op: String,
    /// In words.
    pub reason: String,
}

/// Reads the three tables. A run of an older bench has none, and nothing is said.
pub fn places(dir: &Path, run: &mut Run) -> Result<(), ReportError> {
    let wanted = ["device", "cell", "phase", "unit", "ops", "ops_folded", "value", "value_unit", "share", "accounted", "method"];
    if let Some(mut table) = read(dir, &PLACEMENT, &wanted, None)? {
        run.placement = placement(&mut table);
        run.problems.extend(table.complaint());
    }
    let wanted = ["device", "cell", "unit_requested", "op", "op_type", "unit", "reason", "source"];
    if let Some(table) = read(dir, &FALLBACKS, &wanted, None)? {
        let [asked, op, op_type, unit, reason, source] =
            ["unit_requested", "op", "op_type", "unit", "reason", "source"].map(|name| words(&table, name));
        for (row, key) in keys(&table).into_iter().enumerate() {
            let [asked, op, op_type, unit, reason, source] =
                [&asked, &op, &op_type, &unit, &reason, &source].map(|column| column[row].clone());
            run.fallbacks.entry(key).or_default().push(Fallback { asked, op, op_type, unit, reason, source });
        }
        run.problems.extend(table.complaint());
    }
    let wanted = ["device", "device_class", "model", "quant", "backend", "unit", "support", "op", "op_type", "reason"];
    if let Some(table) = read(dir, &SUPPORT, &wanted, None)? {
        let columns = wanted.map(|name| words(&table, name));
        for row in 0..table.rows() {
            let [device, class, model, quant, backend, unit, verdict, op, op_type, reason] =
                columns.each_ref().map(|column| column[row].clone());
            let op = if op.is_empty() { op_type } else { op };
            run.support.push(Support { device, class, model, quant, backend, unit, verdict, op, reason });
        }
        run.problems.extend(table.complaint());
    }
    Ok(())
}

fn placement(table: &mut Loaded) -> BTreeMap<CellKey, Vec<Placed>> {
    let [phase, unit, value_unit, method] = ["phase", "unit", "value_unit", "method"].map(|name| words(table, name));
    let [value, share, accounted] = ["value", "share", "accounted"].map(|name| table.float(name));
    let [ops, folded] = ["ops", "ops_folded"].map(|name| table.int(name));
    let mut found: BTreeMap<CellKey, Vec<Placed>> = BTreeMap::new();
    for (row, key) in keys(table).into_iter().enumerate() {
        found.entry(key).or_default().push(Placed {
            phase: phase[row].clone(),
            unit: unit[row].clone(),
            ops: ops[row],
            folded: folded[row].unwrap_or(0),
            value: value[row],
            value_unit: value_unit[row].clone(),
            share: share[row],
            accounted: accounted[row],
            method: method[row].clone(),
        });
    }
    found
}

/// A column, in which nothing is an empty word.
pub(super) fn words(table: &Loaded, name: &str) -> Vec<String> {
    table.text(name).into_iter().map(Option::unwrap_or_default).collect()
}
