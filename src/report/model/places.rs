//! Which processor ran what: asked against found, operations that fell back, and what runs at all.

use std::collections::HashMap;

use super::figures::{DASH, number};
use super::groups::{Group, workload};
use super::view::Grid;
use super::why::{chosen, label, told};
use crate::report::load::{Cell, Fallback, Run, Status, Support};

/// Fallbacks on the page.
const FALLBACKS: usize = 40;

/// Cells that ran on another processor than the one asked for, whether they count or not.
pub fn alarms(groups: &[Group]) -> Vec<String> {
    let mut found = Vec::new();
    for group in groups {
        for cell in group.cells.iter().filter(|cell| cell.status != Status::Skipped) {
            let asked = cell.text("unit_requested").filter(|asked| *asked != "hybrid");
            if let Some((asked, ran)) = asked.zip(cell.text("unit_found")).filter(|(asked, ran)| asked != ran) {
                found.push((label(groups, group, cell), format!("{} was asked for, {} did the work.", name(asked), name(ran))));
            }
        }
    }
    told(found)
}

/// `NPU`; what is no processor's name stays as it is written.
fn name(unit: &str) -> String {
    match unit {
        "npu" | "gpu" | "cpu" => format!("the {}", unit.to_uppercase()),
        "hybrid" => "a mix of processors".into(),
        other => other.to_owned(),
    }
}

/// Operations and share by processor.
pub fn placement(run: &Run, groups: &[Group]) -> Option<Grid> {
    let mut rows = Vec::new();
    for group in groups {
        for cell in chosen(group) {
            for placed in run.placement.get(&cell.key).into_iter().flatten() {
                let percent = |share: Option<f64>| share.map_or_else(|| DASH.to_owned(), |share| format!("{:.1}", 100.0 * share));
                rows.push(vec![
                    label(groups, group, cell),
                    workload((cell.prompt, cell.generate)),
                    word(&placed.phase),
                    word(cell.text("unit_requested").unwrap_or_default()),
                    word(&placed.unit),
                    placed.ops.map_or_else(|| DASH.to_owned(), |ops| ops.to_string()),
                    placed.folded.to_string(),
                    placed.value.map_or_else(|| DASH.to_owned(), |value| format!("{} {}", number(value), placed.value_unit)),
                    percent(placed.share),
                    percent(placed.accounted),
                    placed.method.clone(),
                ]);
            }
        }
    }
    let columns = [
        "Cell",
        "workload",
        "phase",
        "asked",
        "on",
        "operations",
        "of them folded",
        "sum",
        "share of phase, %",
        "operations account for, % of the graph",
        "method",
    ];
    grid("Placement: which processor ran how many operations", &columns, rows)
}

/// Operations that ran elsewhere than asked; those that several cells share once.
pub fn fallbacks(run: &Run, groups: &[Group]) -> Option<Grid> {
    let mut found: Vec<(String, &Fallback, usize)> = Vec::new();
    let mut places: HashMap<(String, &str, &str, &str), usize> = HashMap::new();
    for group in groups {
        for cell in &group.cells {
            let label = label(groups, group, cell);
            for fallback in run.fallbacks.get(&cell.key).into_iter().flatten() {
                let key = (label.clone(), fallback.op.as_str(), fallback.unit.as_str(), fallback.reason.as_str());
                let place = *places.entry(key).or_insert(found.len());
                if place == found.len() {
                    found.push((label.clone(), fallback, 0));
                }
                found[place].2 += 1;
            }
        }
    }
    let left = found.len().saturating_sub(FALLBACKS);
    found.truncate(FALLBACKS);
    let row = |(label, fallback, cells): (String, &Fallback, usize)| {
        let ran = if fallback.unit.is_empty() { "nowhere: the launch failed".to_owned() } else { fallback.unit.clone() };
        let op = if fallback.op.is_empty() { "the whole model".to_owned() } else { fallback.op.clone() };
        let reason = if fallback.reason.is_empty() { "the runtime gives none".to_owned() } else { fallback.reason.clone() };
        vec![label, op, word(&fallback.op_type), fallback.asked.clone(), ran, reason, fallback.source.clone(), cells.to_string()]
    };
    let columns = ["Cell", "operation", "type", "asked", "ran on", "reason", "told by", "cells"];
    let title = if left > 0 {
        format!("Operations that did not run on the processor asked for; {left} more are in fallbacks.csv")
    } else {
        "Operations that did not run on the processor asked for".to_owned()
    };
    grid(&title, &columns, found.into_iter().map(row).collect())
}

/// Models in their quantisations against backends.
pub fn support(run: &Run, cells: &[&Cell]) -> Option<Grid> {
    let here = cells.first()?;
    let of_panel: Vec<&Support> = run.support.iter().filter(|row| row.class == here.class && row.device == here.key.device).collect();
    let mut backends: Vec<&str> = of_panel.iter().map(|row| row.backend.as_str()).collect();
    backends.sort_unstable();
    backends.dedup();
    let mut rows: Vec<([&str; 3], Vec<String>)> = Vec::new();
    for row in &of_panel {
        let key = [row.model.as_str(), &row.quant, &row.unit];
        let at = rows.iter().position(|(known, _)| *known == key).unwrap_or_else(|| {
            rows.push((key, vec![DASH.to_owned(); backends.len()]));
            rows.len() - 1
        });
        if let Some(column) = backends.iter().position(|backend| *backend == row.backend) {
            rows[at].1[column] = verdict(row);
        }
    }
    let columns: Vec<&str> = ["Model", "quant", "asked"].into_iter().chain(backends).collect();
    let rows = rows.into_iter().map(|(key, verdicts)| key.map(str::to_owned).into_iter().chain(verdicts).collect()).collect();
    grid("What runs: models against backends (a dash: not in this run)", &columns, rows)
}

fn verdict(row: &Support) -> String {
    let because = |words: &str| if row.reason.is_empty() { words.to_owned() } else { format!("{words}: {}", row.reason) };
    let at = |words: &str| if row.op.is_empty() { because(words) } else { format!("{words}: {}", row.op) };
    match row.verdict.as_str() {
        "runs" => "✓ runs".into(),
        "runs-with-fallback" => at("◐ runs, with fallback"),
        "fails-at-op" => at("✗ fails at an operation"),
        "fails" => because("✗ fails"),
        "not-tried" => because("○ not tried"),
        other => other.to_owned(),
    }
}

fn word(text: &str) -> String {
    if text.is_empty() { DASH.to_owned() } else { text.to_owned() }
}

/// A table that stands open, unless it has no rows.
fn grid(title: &str, columns: &[&str], rows: Vec<Vec<String>>) -> Option<Grid> {
    let columns = columns.iter().map(|column| (*column).to_owned()).collect();
    (!rows.is_empty()).then(|| Grid { title: title.to_owned(), columns, rows, text: true, open: true })
}
