//! What a cell costs the device: memory by phase, energy per token.

use std::collections::BTreeMap;

use super::charts::bar_chart;
use super::figures::{DASH, whole};
use super::groups::{Colours, Group, readable, workload};
use super::view::{Chart, Grid};
use crate::report::ReportError;
use crate::report::charts::{Bar, bars};
use crate::report::load::Cell;

/// Phases in the order of a launch.
const PHASES: [(&str, &str); 4] =
    [("mem_load_mb", "after load"), ("mem_prefill_mb", "after prefill"), ("mem_end_mb", "at the end"), ("peak_mem_mb", "peak")];
/// Cells of one picture, with a bar for each phase.
const CELLS: usize = 6;

/// Bars of memory after load, after prefill, at the end and at the peak: one chart for each way to sum memory up, since the sums are of
/// different things.
pub fn memory_by_phase(group: &Group, cells: &[&Cell], colours: &Colours, of: (i64, i64)) -> Result<Vec<Chart>, ReportError> {
    let mut methods: BTreeMap<&str, Vec<&Cell>> = BTreeMap::new();
    for cell in cells.iter().filter(|cell| cell.metrics.contains_key("mem_load_mb")) {
        methods.entry(cell.text("peak_mem_method").unwrap_or("unknown")).or_default().push(cell);
    }
    let several = methods.len() > 1;
    methods.into_iter().map(|(method, cells)| phases(group, &cells, colours, of, method, several)).collect()
}

fn phases(group: &Group, cells: &[&Cell], colours: &Colours, of: (i64, i64), method: &str, several: bool) -> Result<Chart, ReportError> {
    let columns = std::iter::once("Cell").chain(PHASES.iter().map(|(_, words)| *words)).map(str::to_owned);
    let mut table = Grid { columns: columns.collect(), ..Grid::default() };
    for cell in cells {
        let figures = PHASES.iter().map(|(metric, _)| cell.metrics.get(metric).map_or_else(|| DASH.to_owned(), whole));
        table.rows.push(std::iter::once(group.label(cell)).chain(figures).collect());
    }
    let (drawn, cut) = readable(cells, CELLS, |cell| &cell.backend, "cells");
    let mut rows = Vec::new();
    for cell in drawn {
        let there = PHASES.iter().filter_map(|(metric, words)| Some((words, cell.metrics.get(metric)?)));
        for (at, (words, estimate)) in there.enumerate() {
            rows.push(Bar {
                label: (*words).to_owned(),
                colour: colours.get(&cell.backend),
                value: estimate.median,
                interval: estimate.interval.filter(|_| estimate.n != Some(1)),
                figure: whole(estimate),
                heading: (at == 0).then(|| group.label(cell)),
            });
        }
    }
    let scope = if several { format!(" — {method}") } else { String::new() };
    let title = format!("Memory by phase, {} tokens{scope}", workload(of));
    let name = format!("{title}: horizontal bars of {} figures with intervals; the values are in the table below", rows.len());
    let caption = format!(
        "Median of the launches with its interval, one axis from zero. Summed: {method}. Between samples it may have been higher.{cut}"
    );
    Ok(Chart { title, caption, wide: true, svg: bars(&rows, "MB (10⁶ bytes), lower is better", &name)?, legend: Vec::new(), table })
}

/// Bars of net energy for each generated token: one chart for each way to measure power and to tell the phases apart.
pub fn energy(group: &Group, cells: &[&Cell], colours: &Colours) -> Result<Vec<Chart>, ReportError> {
    let mut methods: BTreeMap<(&str, &str), Vec<&Cell>> = BTreeMap::new();
    for cell in cells {
        let text = |column| cell.text(column).unwrap_or("unknown");
        methods.entry((text("power_method"), text("energy_phase_method"))).or_default().push(cell);
    }
    let mut found = Vec::new();
    for ((power, phases), cells) in methods {
        let how =
            format!("the whole device's energy less what it draws idle, by {power}, told apart by {phases}; never that of an NPU alone");
        let title = "Net energy per generated token";
        found.extend(bar_chart(group, &cells, colours, "energy_j_per_tok", title, "joules per token, lower is better", &how)?);
    }
    Ok(found)
}
