//! The comparison matrix of a set: every combination that was asked for, measured or not, at one look.

use std::collections::BTreeSet;

use super::figures::{Notes, value};
use super::filters::keys;
use super::groups::{Colours, Group, Timing, workload};
use super::view::{Matrix, MatrixCell, MatrixRow};
use crate::report::charts::swatch_svg;
use crate::report::load::Cell;

/// Metrics that have one.
const METRICS: [(&str, &str, &str); 2] =
    [("ttft_ms", "Time to first token by workload", "ms"), ("decode_tok_s", "Decode rate by workload", "tok/s")];

/// One for each metric; none where there is one workload, whose matrix is the comparison itself. `mixed`: first tokens were timed in
/// different ways.
pub fn matrix(group: &Group, colours: &Colours, mixed: bool, notes: &mut Notes) -> Vec<Matrix> {
    let workloads: Vec<(i64, i64)> =
        group.cells.iter().map(|cell| (cell.prompt, cell.generate)).collect::<BTreeSet<_>>().into_iter().collect();
    if workloads.len() < 2 || group.counted().is_empty() {
        return Vec::new();
    }
    let mut rows: Vec<(String, Vec<&Cell>)> = Vec::new();
    for cell in &group.cells {
        let label = group.label(cell);
        match rows.iter_mut().find(|(known, _)| *known == label) {
            Some((_, cells)) => cells.push(cell),
            None => rows.push((label, vec![cell])),
        }
    }
    METRICS
        .into_iter()
        .filter(|(metric, ..)| group.counted().iter().any(|cell| cell.metrics.contains_key(metric)))
        .map(|(metric, title, unit)| Matrix {
            title,
            unit,
            columns: workloads.iter().map(|of| workload(*of)).collect(),
            rows: rows
                .iter()
                .map(|(_, cells)| MatrixRow {
                    key: swatch_svg(colours.get(&cells[0].backend)),
                    keys: keys(cells),
                    backend: cells[0].backend.clone(),
                    quant: cells[0].quant.clone(),
                    axes: group.axes(cells[0]),
                    timing: timing(cells).filter(|_| mixed),
                    cells: workloads.iter().map(|of| one(cells, *of, metric, notes)).collect(),
                })
                .collect(),
        })
        .collect()
}

fn timing(cells: &[&Cell]) -> Option<String> {
    cells.iter().find(|cell| cell.counts()).map(|cell| Timing::of(cell).words())
}

/// Of several cells in one place (what failed has axes that are not told apart) the one that counts, else the first.
fn one(row: &[&Cell], of: (i64, i64), metric: &str, notes: &mut Notes) -> MatrixCell {
    let here = || row.iter().filter(|cell| (cell.prompt, cell.generate) == of);
    let Some(cell) = here().find(|cell| cell.counts()).or_else(|| here().next()) else { return MatrixCell::default() };
    if cell.counts() {
        return MatrixCell { value: Some(value(cell, metric, notes)), ..MatrixCell::default() };
    }
    MatrixCell { value: None, status: Some(cell.status.word()), reason: cell.text("reason").unwrap_or("no reason given").to_owned() }
}
