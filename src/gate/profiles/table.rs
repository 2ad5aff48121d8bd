//! `layers.csv` as comparisons see it.

use std::{collections::BTreeMap, path::Path};

use super::Measure;
use crate::{
    gate::run::Key,
    results::{
        read::{TableError, read},
        schema::LAYERS,
    },
};

/// One operation.
#[derive(Debug, Clone, PartialEq)]
pub struct Op {
    pub phase: String,
    pub name: String,
    pub part: Option<String>,
    pub kind: Option<String>,
    /// `None` where the tool does not know it.
    pub value: Option<f64>,
    pub measure: Measure,
}

/// The operations of a run's cells, without those that became part of others.
///
/// # Errors
/// A table that can't be read, or that does not tell parts.
pub fn ops(folder: &Path, notes: &mut Vec<String>) -> Result<BTreeMap<Key, Vec<Op>>, TableError> {
    const WANTED: [&str; 12] =
        ["device", "cell", "phase", "name", "part", "op_kind", "value", "value_unit", "value_means", "method", "folded", "op_class"];
    let mut found: BTreeMap<Key, Vec<Op>> = BTreeMap::new();
    let Some(mut table) = read(folder, &LAYERS, &WANTED, None)? else { return Ok(found) };
    if table.rows() > 0 && !table.has("op_class") {
        let message = "it is of an older bench, which did not tell the parts of a model".to_owned();
        return Err(TableError::of(&folder.join(LAYERS.file), message));
    }
    let [device, cell, phase, name, part, kind, unit, means, method, folded] =
        ["device", "cell", "phase", "name", "part", "op_kind", "value_unit", "value_means", "method", "folded"].map(|c| table.text(c));
    // More than ten days of ns is no operation's time, and no count of its cycles.
    let values: Vec<Option<f64>> = table.float("value").into_iter().map(|value| value.filter(|v| (0.0..1e15).contains(v))).collect();
    notes.extend(table.complaint());
    for row in (0..table.rows()).filter(|row| folded[*row].is_none()) {
        let word = |column: &[Option<String>]| column[row].clone().unwrap_or_default();
        found.entry(Key { device: word(&device), cell: word(&cell) }).or_default().push(Op {
            phase: word(&phase),
            name: word(&name),
            part: part[row].clone(),
            kind: kind[row].clone(),
            value: values[row],
            measure: Measure { unit: word(&unit), means: word(&means), method: word(&method) },
        });
    }
    Ok(found)
}
