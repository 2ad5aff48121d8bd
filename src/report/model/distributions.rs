//! The charts of a set, each with its table.

use std::collections::BTreeMap;

use super::figures::{DASH, interval_words, median, number, whole};
use super::groups::{Colours, Group, Timing};
use super::view::{Chart, Grid, LegendKey};
use crate::report::ReportError;
use crate::report::charts::{Bar, Curve, Plot, bars, curves, swatch_svg};
use crate::report::load::{Cell, Run};
use crate::results::schema::METRICS;
use crate::stats;

/// Points of a drawn distribution or of a line over time: more than a screen shows.
const POINTS: usize = 240;

/// All charts of a set in the order of the page.
pub fn charts(run: &Run, group: &Group, colours: &Colours) -> Result<Vec<Chart>, ReportError> {
    let mut found = Vec::new();
    let subsets = group.comparable();
    for (timing, cells) in &subsets {
        let scope = if subsets.len() > 1 { format!(" — {}", timing.words()) } else { String::new() };
        found.extend(bar_chart(
            group,
            cells,
            colours,
            "ttft_ms",
            &format!("Time to first token{scope}"),
            "ms, lower is better",
            &timing.words(),
        )?);
        found.extend(bar_chart(
            group,
            cells,
            colours,
            "decode_tok_s",
            &format!("Decode rate{scope}"),
            "tokens per second, higher is better",
            "(N−1) tokens over the time from the first to the last",
        )?);
        found.extend(lengths(group, cells, colours, &scope, *timing)?);
    }
    let cells: Vec<&Cell> = group.cells.iter().copied().filter(|cell| cell.counts()).collect();
    // Of the largest workload alone: the deepest context, the most tokens, the highest peak. The others are in the tables.
    if let Some(workload) = cells.iter().map(|cell| (cell.prompt, cell.generate)).max() {
        let largest: Vec<&Cell> = cells.into_iter().filter(|cell| (cell.prompt, cell.generate) == workload).collect();
        found.extend(gaps(run, group, &largest, colours, workload)?);
        found.extend(memory(run, group, &largest, colours, workload)?);
    }
    Ok(found)
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
    let mut rows: Vec<Bar> = Vec::new();
    let mut table =
        Grid { columns: ["Cell", "median", "interval and its making"].map(str::to_owned).to_vec(), text: true, ..Grid::default() };
    let mut last = None;
    for cell in cells {
        let Some(estimate) = cell.metrics.get(metric) else { continue };
        let workload = (cell.prompt, cell.generate);
        let (label, figure) = (group.label(cell), whole(estimate));
        let interval = estimate.interval.filter(|_| estimate.n != Some(1));
        table.rows.push(vec![
            label.clone(),
            median(estimate),
            format!("{figure}; {}", estimate.n.map_or_else(|| "n unknown".into(), interval_words)),
        ]);
        rows.push(Bar {
            label,
            colour: colours.get(&cell.backend),
            value: estimate.median,
            interval,
            figure,
            new_group: last.is_some_and(|last| last != workload),
        });
        last = Some(workload);
    }
    if rows.is_empty() {
        return Ok(None);
    }
    let name = format!("{title}: horizontal bars of {} cells with intervals; the values are in the table below", rows.len());
    let caption = format!("Median with its interval; {how}. Grouped by workload, in alphabetical order, on one axis from zero.");
    Ok(Some(Chart { title: title.into(), caption, wide: true, svg: bars(&rows, axis, &name)?, legend: Vec::new(), table }))
}

fn lengths(group: &Group, cells: &[&Cell], colours: &Colours, scope: &str, timing: Timing) -> Result<Option<Chart>, ReportError> {
    let mut series: BTreeMap<String, Vec<&Cell>> = BTreeMap::new();
    for cell in cells.iter().filter(|cell| cell.metrics.contains_key("ttft_ms")) {
        let axes = group.axes(cell);
        let comma = if axes.is_empty() { "" } else { ", " };
        series.entry(format!("{} g{}{comma}{axes}", cell.backend, cell.generate)).or_default().push(cell);
    }
    if !series.values().any(|cells| cells.len() > 1) {
        return Ok(None);
    }
    let mut table = Grid { columns: ["Series", "prompt tokens", "TTFT, ms"].map(str::to_owned).to_vec(), ..Grid::default() };
    let (mut lines, mut legend) = (Vec::new(), Vec::new());
    for (at, (label, cells)) in series.into_iter().enumerate() {
        let mut line = Curve { colour: colours.get(&cells[0].backend), marker: at, ..Curve::default() };
        for cell in cells {
            let estimate = &cell.metrics["ttft_ms"];
            line.points.push((cell.prompt.max(1) as f64, estimate.median));
            line.intervals.push(estimate.interval);
            table.rows.push(vec![label.clone(), cell.prompt.to_string(), whole(estimate)]);
        }
        legend.push(LegendKey { key: swatch_svg(line.colour, line.marker), text: label });
        lines.push(line);
    }
    let title = format!("Time to first token against prompt length{scope}");
    let svg =
        curves(&lines, Plot::Lengths, "prompt tokens", "TTFT, ms", &format!("{title}: {} lines, values in the table below", lines.len()))?;
    let caption = format!("Median with interval at each length that was run; {}. The lines between them are not measured.", timing.words());
    Ok(Some(Chart { title, caption, wide: false, svg, legend, table }))
}

fn gaps(
    run: &Run,
    group: &Group,
    cells: &[&Cell],
    colours: &Colours,
    (prompt, generate): (i64, i64),
) -> Result<Option<Chart>, ReportError> {
    let mut table =
        Grid { columns: ["Cell", "gaps", "p50, ms", "p90, ms", "p99, ms", "longest, ms"].map(str::to_owned).to_vec(), ..Grid::default() };
    let (mut lines, mut legend) = (Vec::new(), Vec::new());
    // A cell without ITL in cells.csv has no event for each token: what tokens.csv holds of it is not a gap between tokens (rule R5).
    for cell in cells.iter().filter(|cell| cell.metrics.contains_key("itl_p50_ms")) {
        let Some(gaps) = run.gaps.get(&cell.key).filter(|gaps| gaps.len() > 1) else { continue };
        let mut ascending = gaps.clone();
        ascending.sort_by(f64::total_cmp);
        let points = ascending.len().min(POINTS);
        let share = |at: usize| at as f64 / (points - 1) as f64;
        let path =
            (0..points).map(|at| (ascending[((ascending.len() - 1) as f64 * share(at)).round() as usize], share(at) * 100.0)).collect();
        let line = Curve { colour: colours.get(&cell.backend), marker: lines.len(), points: path, intervals: Vec::new() };
        legend.push(LegendKey { key: swatch_svg(line.colour, line.marker), text: group.label(cell) });
        lines.push(line);
        let quantile = |p| stats::quantile(gaps, p).map_or_else(|| DASH.to_owned(), number);
        table.rows.push(vec![group.label(cell), gaps.len().to_string(), quantile(0.5), quantile(0.9), quantile(0.99), quantile(1.0)]);
    }
    if lines.is_empty() {
        return Ok(None);
    }
    let title = format!("Token latency, {prompt} → {generate}");
    let svg = curves(
        &lines,
        Plot::Shares,
        "gap between tokens, ms",
        "gaps at or under, %",
        &format!("{title}: cumulative distribution of {} cells, quantiles in the table below", lines.len()),
    )?;
    let caption = "Gaps between tokens of all counted queries, pooled: a line further left has shorter gaps, a long tail bends to the right at the top. Cells without an event for each token are left out.".into();
    Ok(Some(Chart { title, caption, wide: false, svg, legend, table }))
}

fn memory(
    run: &Run,
    group: &Group,
    cells: &[&Cell],
    colours: &Colours,
    (prompt, generate): (i64, i64),
) -> Result<Option<Chart>, ReportError> {
    let mut table =
        Grid { columns: ["Cell", "samples", "seconds", "highest, MB", "last, MB"].map(str::to_owned).to_vec(), ..Grid::default() };
    let (mut lines, mut legend) = (Vec::new(), Vec::new());
    for cell in cells {
        let Some(points) = run.memory.get(&cell.key).filter(|points| points.len() > 1) else { continue };
        let line = Curve { colour: colours.get(&cell.backend), marker: lines.len(), points: thinned(points), intervals: Vec::new() };
        legend.push(LegendKey { key: swatch_svg(line.colour, line.marker), text: group.label(cell) });
        let most = points.iter().map(|point| point.1).fold(0.0, f64::max);
        let last = points[points.len() - 1];
        table.rows.push(vec![group.label(cell), points.len().to_string(), number(last.0), number(most), number(last.1)]);
        lines.push(line);
    }
    if lines.is_empty() {
        return Ok(None);
    }
    let title = format!("Memory over time, {prompt} → {generate}");
    let svg = curves(
        &lines,
        Plot::Time,
        "seconds since the start of the process",
        "resident, MB (10⁶ bytes)",
        &format!("{title}: {} lines, peaks in the table below", lines.len()),
    )?;
    let caption = "Resident memory of the process tree in the first measured launch: loading, the discarded query, the measured ones. Between samples it may have been higher.".into();
    Ok(Some(Chart { title, caption, wide: false, svg, legend, table }))
}

/// At most [`POINTS`] points; of each stretch the highest stays, so that no peak is lost.
fn thinned(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let stretch = points.len().div_ceil(POINTS);
    points.chunks(stretch).filter_map(|chunk| chunk.iter().copied().max_by(|a, b| a.1.total_cmp(&b.1))).collect()
}

/// Whether a higher value of the metric is better.
pub fn higher_is_better(metric: &str) -> bool {
    METRICS.iter().any(|known| known.name == metric && known.higher_is_better)
}

#[cfg(test)]
mod tests {
    use super::thinned;

    #[test]
    fn thinning_keeps_the_peak() {
        let points: Vec<(f64, f64)> = (0..10_000).map(|i| (f64::from(i), if i == 7_777 { 9.0 } else { 1.0 })).collect();
        let thin = thinned(&points);
        assert!(thin.len() <= super::POINTS && thin.contains(&(7_777.0, 9.0)));
    }
}
