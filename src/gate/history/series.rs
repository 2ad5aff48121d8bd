//! The figures of each cell over the runs.

use std::collections::BTreeMap;

use super::{
    scan::{LeftOut, Run, Scan},
    table::{self, Figure},
};
use crate::results::schema::{CELLS, Metric};

/// What belongs to one line: figures of another scenario, device, class or way of measuring are another line.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// Scenario.
    pub scenario: String,
    /// Device.
    pub device: String,
    /// Class of the device for this cell.
    pub class: String,
    /// Id of the cell.
    pub cell: String,
    /// How the metric was had; empty = measured, or the only way.
    pub method: String,
}

/// A cell's figure in one run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// Place of the run in [`Scan::runs`].
    pub run: usize,
    /// The figure.
    pub figure: Figure,
}

/// One line.
#[derive(Debug)]
pub struct Series {
    /// Whose.
    pub key: Key,
    /// In the order of the runs; a run that has no row for the cell is not in it.
    pub points: Vec<Point>,
}

impl Series {
    /// The points that have a value: run, and value.
    pub fn values(&self) -> impl DoubleEndedIterator<Item = (usize, f64)> + '_ {
        self.points.iter().filter_map(|point| match point.figure {
            Figure::Value { at, .. } => Some((point.run, at)),
            Figure::None(_) => None,
        })
    }
}

/// What is looked at.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    /// The metric.
    pub metric: &'static Metric,
    /// Part of the ids of cells; empty takes all.
    pub cell: &'a str,
    /// The last so many runs of each scenario and device.
    pub nights: Option<usize>,
}

/// Reads the figures of all runs. A run whose table can't be read is moved to those left out; what is odd about others is told in words.
pub fn collect(scan: &mut Scan, wanted: Wanted<'_>) -> (Vec<Series>, Vec<String>) {
    if let Some(nights) = wanted.nights {
        last(&mut scan.runs, nights);
    }
    let (mut lines, mut remarks): (BTreeMap<Key, Vec<Point>>, Vec<String>) = Default::default();
    let (mut kept, mut without): (Vec<Run>, usize) = Default::default();
    for run in scan.runs.drain(..) {
        let found = match table::read(&run.folder, wanted.metric) {
            Ok(found) => found,
            Err(why) => {
                scan.left_out.push(LeftOut::new(&run.folder, why));
                continue;
            }
        };
        without += usize::from(found.without_metric);
        if found.unreadable > 0 {
            remarks.push(format!("{}: {} figures in {} are not numbers and count as absent", run.id, found.unreadable, CELLS.file));
        }
        if found.rows.len() < run.cells {
            let (rows, cells) = (found.rows.len(), run.cells);
            remarks.push(format!("{}: {} has {rows} rows for {cells} cells: the others count as not run", run.id, CELLS.file));
        }
        for row in found.rows.into_iter().filter(|row| row.cell.contains(wanted.cell)) {
            let table::Row { device, class, cell, method, figure } = row;
            let point = Point { run: kept.len(), figure };
            let line = lines.entry(Key { scenario: run.scenario.clone(), device, class, cell, method }).or_default();
            match line.last_mut().filter(|last| last.run == point.run) {
                Some(last) => {
                    remarks.push(format!("{}: a cell has two rows: the last counts", run.id));
                    *last = point;
                }
                None => line.push(point),
            }
        }
        kept.push(run);
    }
    if without > 0 {
        remarks.push(format!("{without} of {} runs have no column {}: nothing of theirs counts", kept.len(), wanted.metric.name));
    }
    scan.runs = kept;
    (lines.into_iter().map(|(key, points)| Series { key, points }).collect(), remarks)
}

/// Keeps the last runs of each scenario and device.
fn last(runs: &mut Vec<Run>, nights: usize) {
    let mut counts: BTreeMap<(String, String), usize> = BTreeMap::new();
    let mut kept: Vec<Run> = runs
        .drain(..)
        .rev()
        .filter(|run| {
            let count = counts.entry((run.scenario.clone(), run.device.clone())).or_default();
            *count += 1;
            *count <= nights
        })
        .collect();
    kept.reverse();
    *runs = kept;
}
