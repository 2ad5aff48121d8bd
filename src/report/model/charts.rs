//! The charts of a set: bars over all workloads, what `against` draws over length and depth, and what `lines` and `costs` add for the
//! largest workload; and in words what could not be drawn.

use super::against::{DEPTH, LENGTH, against};
use super::costs;
use super::figures::{interval_words, median, whole};
use super::groups::{BEHIND, Colours, Group, readable, workload};
use super::lines::{gaps, memory};
use super::view::{Chart, Grid};
use crate::report::ReportError;
use crate::report::charts::{Bar, bars};
use crate::report::load::{Cell, Run};

/// Bars that a reader still takes in at a glance.
const BARS: usize = 24;
/// Reasons of one absence.
const REASONS: usize = 3;

/// All charts of a set in the order of the page, and why others are not there.
pub fn charts(run: &Run, group: &Group, colours: &Colours) -> Result<(Vec<Chart>, Vec<String>), ReportError> {
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
        for what in [&LENGTH, &DEPTH] {
            found.extend(against(group, cells, colours, what, &scope, *timing)?);
        }
    }
    // Of the largest workload alone: the deepest context, the most tokens, the highest peak. The others are in the tables.
    // A process that holds one graph, and runs it many times over, says nothing of a model's memory.
    let measured: Vec<&Cell> = group.counted().into_iter().filter(|cell| !cell.is_composed()).collect();
    if let Some((largest, cells)) = largest(&measured) {
        found.extend(gaps(run, group, &cells, colours, largest)?);
        found.extend(memory(run, group, &cells, colours, largest)?);
        found.extend(costs::memory_by_phase(group, &cells, colours, largest)?);
    }
    found.extend(costs::energy(group, &measured, colours)?);
    let undrawn = if group.counted().is_empty() { Vec::new() } else { absences(run, group, &found) };
    Ok((found, undrawn))
}

/// Pictures that every set could have, how their titles begin, the metric without which there is none, and why that may be.
const EXPECTED: [(&str, &str, &str); 5] = [
    (LENGTH.title, "ttft_ms", "one prompt length was run"),
    (DEPTH.title, "decode_tok_s", "one depth was run"),
    ("Token latency", "itl_p50_ms", "tokens.csv has no gaps between tokens"),
    ("Memory by phase", "mem_load_mb", "cells.csv gives no reason"),
    ("Net energy per generated token", "energy_j_per_tok", "cells.csv gives no reason"),
];

/// Why a picture that another run has is not here.
fn absences(run: &Run, group: &Group, found: &[Chart]) -> Vec<String> {
    let counted = group.counted();
    let missing = EXPECTED.into_iter().filter(|(title, ..)| !found.iter().any(|chart| chart.title.starts_with(title)));
    let mut said: Vec<String> = missing
        .map(|(title, metric, otherwise)| {
            if metric == "energy_j_per_tok" && !run.power_asked {
                return format!("{title}: the scenario has no [power].");
            }
            let mut reasons: Vec<&str> = Vec::new();
            for cell in &counted {
                let reason =
                    if cell.metrics.contains_key(metric) { otherwise } else { cell.absent.get(metric).map_or(otherwise, String::as_str) };
                if !reasons.contains(&reason) {
                    reasons.push(reason);
                }
            }
            let more = if reasons.len() > REASONS { "; and others" } else { "" };
            format!("{title}: {}{more}.", reasons[..reasons.len().min(REASONS)].join("; "))
        })
        .collect();
    if !group.cells.iter().any(|cell| cell.text("soak_ended").is_some()) {
        said.push("Thermal soak: none was run.".to_owned());
    }
    if !counted.iter().any(|cell| run.timelines.contains_key(&cell.key)) {
        said.push("Values over time: telemetry.csv has none of these cells.".to_owned());
    }
    said
}

/// The largest workload and its cells.
pub fn largest<'a>(cells: &[&'a Cell]) -> Option<((i64, i64), Vec<&'a Cell>)> {
    let most = cells.iter().map(|cell| (cell.prompt, cell.generate)).max()?;
    Some((most, cells.iter().copied().filter(|cell| (cell.prompt, cell.generate) == most).collect()))
}

pub fn bar_chart(
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
    let behind = if having.len() > BEHIND { &of_largest } else { &having };
    for cell in behind {
        let estimate = &cell.metrics[metric];
        let making = estimate.n.map_or_else(|| "number of launches unknown".into(), interval_words);
        let row = [workload((cell.prompt, cell.generate)), group.label(cell), median(estimate), format!("{}; {making}", whole(estimate))];
        table.rows.push(row.to_vec());
    }
    let (candidates, only) = if having.len() > BARS {
        let all = if having.len() > BEHIND { "comparison above" } else { "table" };
        (of_largest, format!(" Drawn: the largest workload, {}; the {all} has them all.", workload(most)))
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
