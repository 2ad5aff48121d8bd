//! Distributions and values over time, for the cells of one workload.

use super::figures::{DASH, number};
use super::groups::{Colours, Group, readable, workload};
use super::view::{Chart, Grid, LegendKey};
use crate::report::ReportError;
use crate::report::charts::{Curve, Plot, curves, line_svg};
use crate::report::load::{Cell, Run, Timeline};
use crate::stats;

/// Points of a drawn distribution or of a line over time: more than a screen shows.
const POINTS: usize = 240;
/// Distributions in one chart.
const DISTRIBUTIONS: usize = 8;
/// Lines over time in one chart: they cross less tidily.
const OVER_TIME: usize = 6;

/// Cumulative distributions of the gaps between tokens.
pub fn gaps(run: &Run, group: &Group, cells: &[&Cell], colours: &Colours, of: (i64, i64)) -> Result<Option<Chart>, ReportError> {
    // A cell without ITL in cells.csv has no event for each token: what tokens.csv holds of it is not a gap between tokens (rule R5).
    let having: Vec<(&Cell, &Vec<f64>)> = cells
        .iter()
        .filter(|cell| cell.metrics.contains_key("itl_p50_ms"))
        .filter_map(|cell| Some((*cell, run.gaps.get(&cell.key).filter(|gaps| gaps.len() > 1)?)))
        .collect();
    if having.is_empty() {
        return Ok(None);
    }
    let mut table =
        Grid { columns: ["Cell", "gaps", "p50, ms", "p90, ms", "p99, ms", "longest, ms"].map(str::to_owned).to_vec(), ..Grid::default() };
    for (cell, gaps) in &having {
        let quantiles =
            stats::quantiles(gaps, [0.5, 0.9, 0.99, 1.0]).map_or_else(|| [(); 4].map(|()| DASH.to_owned()), |all| all.map(number));
        table.rows.push([group.label(cell), gaps.len().to_string()].into_iter().chain(quantiles).collect());
    }
    let (drawn, cut) = readable(&having, DISTRIBUTIONS, |(cell, _)| &cell.backend, "cells");
    let (mut lines, mut legend) = (Vec::new(), Vec::new());
    for (cell, gaps) in drawn {
        let mut ascending = (*gaps).clone();
        ascending.sort_by(f64::total_cmp);
        let points = ascending.len().min(POINTS);
        let share = |at: usize| at as f64 / (points - 1) as f64;
        let path =
            (0..points).map(|at| (ascending[((ascending.len() - 1) as f64 * share(at)).round() as usize], share(at) * 100.0)).collect();
        push(&mut lines, &mut legend, group, cell, colours, path);
    }
    let title = format!("Token latency, {} tokens", workload(of));
    let name = format!("{title}: cumulative distribution of {} cells, quantiles in the table below", lines.len());
    let svg = curves(&lines, Plot::Shares, "gap between tokens, ms", "gaps at or under, %", &name)?;
    let caption = format!(
        "Gaps between tokens of all counted queries, pooled: further left is shorter, a long tail bends right at the top. Cells without an event for each token are left out.{cut}"
    );
    Ok(Some(Chart { title, caption, wide: false, svg, legend, table }))
}

/// Resident memory over time.
pub fn memory(run: &Run, group: &Group, cells: &[&Cell], colours: &Colours, of: (i64, i64)) -> Result<Option<Chart>, ReportError> {
    let memory = |cell: &Cell| run.timelines.get(&cell.key).map(Timeline::memory).filter(|points| points.len() > 1);
    let having: Vec<(&Cell, Vec<(f64, f64)>)> = cells.iter().filter_map(|cell| Some((*cell, memory(cell)?))).collect();
    if having.is_empty() {
        return Ok(None);
    }
    let mut table =
        Grid { columns: ["Cell", "samples", "seconds", "highest, MB", "last, MB"].map(str::to_owned).to_vec(), ..Grid::default() };
    for (cell, points) in &having {
        let most = points.iter().map(|point| point.1).fold(0.0, f64::max);
        let last = points[points.len() - 1];
        table.rows.push(vec![group.label(cell), points.len().to_string(), number(last.0), number(most), number(last.1)]);
    }
    let (drawn, cut) = readable(&having, OVER_TIME, |(cell, _)| &cell.backend, "cells");
    let (mut lines, mut legend) = (Vec::new(), Vec::new());
    for (cell, points) in drawn {
        push(&mut lines, &mut legend, group, cell, colours, thinned(points));
    }
    let title = format!("Memory over time, {} tokens", workload(of));
    let name = format!("{title}: {} lines, peaks in the table below", lines.len());
    let svg = curves(&lines, Plot::Time, "seconds since the start of the process", "resident, MB (10⁶ bytes)", &name)?;
    let caption = format!(
        "Resident memory of the process tree in the first measured launch: loading, the discarded query, the measured ones. Between samples it may have been higher.{cut}"
    );
    Ok(Some(Chart { title, caption, wide: false, svg, legend, table }))
}

fn push(lines: &mut Vec<Curve>, legend: &mut Vec<LegendKey>, group: &Group, cell: &Cell, colours: &Colours, points: Vec<(f64, f64)>) {
    let line = Curve { colour: colours.get(&cell.backend), style: group.style(cell), points, intervals: Vec::new() };
    legend.push(LegendKey { key: line_svg(line.colour, line.style), text: group.label(cell) });
    lines.push(line);
}

/// About [`POINTS`] points, with the least and the most of each stretch of time.
pub fn thinned(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    stats::extremes(points, POINTS / 2)
}
