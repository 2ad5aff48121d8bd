//! The figures of each cell over the runs.

use std::collections::BTreeMap;

use super::{
    scan::{LeftOut, Run, Scan},
    table::{self, Figure, Found},
};
use crate::{
    results::schema::{CELLS, Metric},
    words::count,
};

/// What belongs to one line: figures of another scenario, device, class, processor or way of measuring are another line.
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
    /// Processor of the device.
    pub chip: String,
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
    /// Its model, as the last run has it.
    pub model: String,
    /// Its backend.
    pub backend: String,
    /// In the order of the runs; a run that has no row for the cell is not in it.
    pub points: Vec<Point>,
}
impl Series {
    /// The cell's id in words: `mnn · tiny · w4 · 32 → 16 · threads 4`; an id that is no such one stays.
    pub fn name(&self) -> String {
        self.in_words().unwrap_or_else(|| self.key.cell.clone())
    }

    /// Behind model and backend, which may hold any sign, an id has quantisation, lengths, the axes that were asked for, and a hash.
    fn in_words(&self) -> Option<String> {
        let rest = self.key.cell.strip_prefix(&self.backend)?.strip_prefix('.')?.strip_prefix(&self.model)?.strip_prefix('.')?;
        let mut parts = rest.rsplit_once('-')?.0.split('.');
        let (quant, prompt, generated) = (parts.next()?, parts.next()?.strip_prefix('p')?, parts.next()?.strip_prefix('g')?);
        let plain = [&self.backend, &self.model, quant].map(str::to_owned).into_iter().chain([format!("{prompt} → {generated}")]);
        Some(plain.chain(parts.map(|axis| axis.replacen('=', " ", 1))).collect::<Vec<_>>().join(" · "))
    }
}

/// What is looked at.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    /// The metrics.
    pub metrics: &'a [&'static Metric],
    /// Part of the ids of cells; empty takes all.
    pub cell: &'a str,
    /// The only device.
    pub device: Option<&'a str>,
    /// The only scenario.
    pub scenario: Option<&'a str>,
    /// The last so many runs of each scenario and device.
    pub nights: Option<usize>,
}

/// Reads the figures of all runs: the lines of each metric, as they were asked for, and what is odd in words. The runs that are not wanted
/// are taken out of the scan; a run whose table can't be read is moved to those left out.
pub fn collect(scan: &mut Scan, wanted: Wanted<'_>) -> (Vec<Vec<Series>>, Vec<String>) {
    let is = |name: &str, only: Option<&str>| only.is_none_or(|only| only == name);
    scan.runs.retain(|run| is(&run.device, wanted.device) && is(&run.scenario, wanted.scenario));
    if let Some(nights) = wanted.nights {
        last(&mut scan.runs, nights);
    }
    let mut lines: Vec<BTreeMap<Key, Series>> = wanted.metrics.iter().map(|_| BTreeMap::new()).collect();
    let (mut kept, mut remarks): (Vec<Run>, Vec<String>) = (Vec::new(), Vec::new());
    let mut without = vec![(0, 0); wanted.metrics.len()];
    for run in scan.runs.drain(..) {
        let found = match table::read(&run.folder, wanted.metrics) {
            Ok(found) => found,
            Err(why) => {
                scan.left_out.push(LeftOut::unreadable(&run.folder, why));
                continue;
            }
        };
        for (place, counts) in without.iter_mut().enumerate() {
            let median = |row: &table::Row| matches!(row.metrics[place].figure, Figure::Value { median: true, .. });
            counts.0 += usize::from(found.without.contains(&place));
            counts.1 += usize::from(found.rows.iter().any(median));
        }
        remarks.extend(odd(&run, &found));
        for row in found.rows.into_iter().filter(|row| row.cell.contains(wanted.cell)) {
            for (lines, had) in lines.iter_mut().zip(row.metrics) {
                let (scenario, device, chip) = (run.scenario.clone(), row.device.clone(), run.chip.clone());
                let key = Key { scenario, device, class: row.class.clone(), cell: row.cell.clone(), chip, method: had.method };
                let empty = |key: &Key| Series { key: key.clone(), model: String::new(), backend: String::new(), points: Vec::new() };
                let (line, point) = (lines.entry(key).or_insert_with_key(empty), Point { run: kept.len(), figure: had.figure });
                // Of two rows of one cell the last counts, as for comparisons.
                line.points.pop_if(|last| last.run == point.run);
                line.points.push(point);
                line.model.clone_from(&row.model);
                line.backend.clone_from(&row.backend);
            }
        }
        kept.push(run);
    }
    for (Metric { name, .. }, (without, medians)) in wanted.metrics.iter().zip(without) {
        if without > 0 {
            let runs = kept.len();
            remarks.push(format!("{without} of {runs} runs have no column {name}: they count as without a figure"));
        }
        if medians > 0 {
            remarks.push(format!(
                "{medians} of {} runs have no {name}_centre (an older bench): the medians of their cells stand for it",
                kept.len()
            ));
        }
    }
    scan.left_out.sort_by(|a, b| a.name.cmp(&b.name));
    let shared: Vec<&Run> = kept.iter().filter(|run| run.busy.is_some()).collect();
    if let Some(last) = shared.last() {
        remarks.push(format!(
            "{} of {} runs were made on a computer that may have been busy with something else, the last being {} ({}): they decide nothing about times, and no level holds them",
            shared.len(),
            kept.len(),
            last.id,
            last.busy.as_deref().unwrap_or_default()
        ));
    }
    scan.runs = kept;
    (lines.into_iter().map(|lines| lines.into_values().collect()).collect(), remarks)
}

fn odd(run: &Run, found: &Found) -> Vec<String> {
    let mut words = Vec::new();
    if found.unreadable > 0 {
        let figures = count(found.unreadable, "figure");
        words.push(format!("{}: {figures} in {} are not numbers and count as absent", run.id, CELLS.file));
    }
    if found.cut {
        words.push(format!("{}: {} ends within a line, which is not counted: it was cut off", run.id, CELLS.file));
    }
    if found.rows.len() < run.cells {
        let (rows, cells) = (count(found.rows.len(), "row"), count(run.cells, "cell"));
        words.push(format!("{}: {} has {rows} for {cells}: the others count as not in it", run.id, CELLS.file));
    }
    words
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_is_called_by_what_its_id_says() {
        let called = |cell: &str, backend: &str, model: &str| {
            let key = Key {
                scenario: String::new(),
                device: String::new(),
                class: String::new(),
                cell: cell.to_owned(),
                chip: String::new(),
                method: String::new(),
            };
            Series { key, model: model.to_owned(), backend: backend.to_owned(), points: Vec::new() }.name()
        };
        assert_eq!(called("mnn.tiny.w4.p32.g16-0a1b2c3d", "mnn", "tiny"), "mnn · tiny · w4 · 32 → 16");
        assert_eq!(
            called("ort-qnn.llama-3.2-1b.w4a16.p512.g128.unit=gpu.perf-profile=burst-0a1b2c3d", "ort-qnn", "llama-3.2-1b"),
            "ort-qnn · llama-3.2-1b · w4a16 · 512 → 128 · unit gpu · perf-profile burst"
        );
        for other in ["mine", "mnn.tiny.w4", "mnn.tiny.w4.p32-1", ""] {
            assert_eq!(called(other, "mnn", "tiny"), other);
        }
    }
}
