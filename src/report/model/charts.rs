//! The charts of a set: bars over all workloads, TTFT against prompt length, and what `lines` adds for the largest workload.

use super::figures::{interval_words, median, whole};
use super::groups::{Colours, Group, Timing, readable, workload};
use super::lines::{gaps, memory};
use super::view::{Chart, Grid, LegendKey};
use crate::report::ReportError;
use crate::report::charts::{Bar, Curve, Plot, bars, curves, line_svg};
use crate::report::load::{Cell, Run};

/// Bars that a reader still takes in at a glance.
const BARS: usize = 24;
/// Lines of a chart against prompt length.
const LINES: usize = 8;

/// All charts of a set in the order of the page.
pub fn charts(run: &Run, group: &Group, colours: &Colours) -> Result<Vec<Chart>, ReportError> {
    let mut found = Vec::new();
    let subsets = group.comparable();
    for (timing, cells) in &subsets {
        let scope = if subsets.len() > 1 { format!(" — {}", timing.words()) } else { String::new() };
        for (metric, title, axis, how) in [
            ("ttft_ms", "Time to first token", "ms, lower is better", timing.words()),
            ("decode_tok_s", "Decode rate", "tokens per second, higher is better", timing.decode_words().into()),
        ] {
            found.extend(bar_chart(group, cells, colours, metric, &format!("{title}{scope}"), axis, &how)?);
        }
        found.extend(lengths(group, cells, colours, &scope, *timing)?);
    }
    // Of the largest workload alone: the deepest context, the most tokens, the highest peak. The others are in the tables.
    // A process that holds one graph, and runs it many times over, says nothing of a model's memory.
    let measured: Vec<&Cell> = group.counted().into_iter().filter(|cell| !cell.is_composed()).collect();
    if let Some((largest, cells)) = largest(&measured) {
        found.extend(gaps(run, group, &cells, colours, largest)?);
        found.extend(memory(run, group, &cells, colours, largest)?);
    }
    Ok(found)
}

/// The largest workload and its cells.
pub fn largest<'a>(cells: &[&'a Cell]) -> Option<((i64, i64), Vec<&'a Cell>)> {
    let most = cells.iter().map(|cell| (cell.prompt, cell.generate)).max()?;
    Some((most, cells.iter().copied().filter(|cell| (cell.prompt, cell.generate) == most).collect()))
}

fn bar_chart(
    group: &Group,
    cells: &[&Cell],
    colours: &Colours,
    metric: &str,
    title: &str,
    axis: &str,
    how: &str,
) -> Result<Option<Chart>, ReportError> {
    let having: Vec<&Cell> = cells.iter().copied().filter(|cell| cell.metrics.contains_key(metric)).collect();
    let Some((most, of_largest)) = largest(&having) else { return Ok(None) };
    let columns = ["Workload", "Cell", "median", "interval and its making"].map(str::to_owned).to_vec();
    let mut table = Grid { columns, text: true, ..Grid::default() };
    for cell in &having {
        let estimate = &cell.metrics[metric];
        let making = estimate.n.map_or_else(|| "number of launches unknown".into(), interval_words);
        let row = [workload((cell.prompt, cell.generate)), group.label(cell), median(estimate), format!("{}; {making}", whole(estimate))];
        table.rows.push(row.to_vec());
    }
    let (candidates, only) = if having.len() > BARS {
        (of_largest, format!(" Drawn: the largest workload, {}; the table has them all.", workload(most)))
    } else {
        (having, String::new())
    };
    let (drawn, cut) = readable(&candidates, BARS, |cell| &cell.backend, "cells");
    let mut rows: Vec<Bar> = Vec::new();
    let mut last = None;
    for cell in drawn {
        let (estimate, key) = (&cell.metrics[metric], (cell.prompt, cell.generate));
        rows.push(Bar {
            label: group.label(cell),
            colour: colours.get(&cell.backend),
            value: estimate.median,
            interval: estimate.interval.filter(|_| estimate.n != Some(1)),
            figure: whole(estimate),
            heading: (last != Some(key)).then(|| format!("{} tokens", workload(key))),
        });
        last = Some(key);
    }
    let name = format!("{title}: horizontal bars of {} cells with intervals; the values are in the table below", rows.len());
    let caption = format!("Median of the launches with its interval; {how}. One axis from zero; the order ranks nothing.{only}{cut}");
    Ok(Some(Chart { title: title.into(), caption, wide: true, svg: bars(&rows, axis, &name)?, legend: Vec::new(), table }))
}

/// One line for each backend, quantisation and generated length that was run with several prompts.
fn lengths(group: &Group, cells: &[&Cell], colours: &Colours, scope: &str, timing: Timing) -> Result<Option<Chart>, ReportError> {
    let many = cells.iter().any(|cell| cell.generate != cells[0].generate);
    let label = |cell: &Cell| if many { format!("{}, {} tokens out", group.label(cell), cell.generate) } else { group.label(cell) };
    let mut series: Vec<(String, Vec<&Cell>)> = Vec::new();
    for cell in cells.iter().copied().filter(|cell| cell.metrics.contains_key("ttft_ms")) {
        match series.iter_mut().find(|(known, _)| *known == label(cell)) {
            Some((_, cells)) => cells.push(cell),
            None => series.push((label(cell), vec![cell])),
        }
    }
    if !series.iter().any(|(_, cells)| cells.len() > 1) {
        return Ok(None);
    }
    let mut table = Grid { columns: ["Series", "prompt tokens", "TTFT, ms"].map(str::to_owned).to_vec(), ..Grid::default() };
    for (label, cells) in &series {
        table.rows.extend(cells.iter().map(|cell| vec![label.clone(), cell.prompt.to_string(), whole(&cell.metrics["ttft_ms"])]));
    }
    let (drawn, cut) = readable(&series, LINES, |(_, cells)| &cells[0].backend, "lines");
    let (mut lines, mut legend) = (Vec::new(), Vec::new());
    for (label, cells) in drawn {
        let mut line = Curve { colour: colours.get(&cells[0].backend), style: group.style(cells[0]), ..Curve::default() };
        for cell in cells {
            let estimate = &cell.metrics["ttft_ms"];
            line.points.push((cell.prompt.max(1) as f64, estimate.median));
            line.intervals.push(estimate.interval.filter(|_| estimate.n != Some(1)));
        }
        legend.push(LegendKey { key: line_svg(line.colour, line.style), text: label.clone() });
        lines.push(line);
    }
    let title = format!("Time to first token against prompt length{scope}");
    let svg =
        curves(&lines, Plot::Lengths, "prompt tokens", "TTFT, ms", &format!("{title}: {} lines, values in the table below", lines.len()))?;
    let caption =
        format!("Median with interval at each length that was run; {}. Between the points nothing was measured.{cut}", timing.words());
    Ok(Some(Chart { title, caption, wide: false, svg, legend, table }))
}
