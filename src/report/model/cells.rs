//! The comparison table of a set.

use std::collections::BTreeMap;

use super::figures::{Notes, value};
use super::groups::{Colours, Group, Timing, workload};
use super::view::{Badge, CellRow};
use crate::report::charts::swatch_svg;
use crate::report::load::{Cell, Run};
use crate::stats;

/// Metrics of the comparison, in the order of the template's columns. The others are in the table of all metrics.
pub const COMPARED: [&str; 8] =
    ["ttft_ms", "prefill_tok_s", "decode_tok_s", "itl_p50_ms", "itl_p99_ms", "e2e_ms", "load_ms", "peak_mem_mb"];

/// Share of the variance between launches from which a pooled interval is called too narrow.
const LAUNCH_EFFECT: f64 = 0.6;

/// One row.
pub fn row(run: &Run, group: &Group, cell: &Cell, colours: &Colours, mixed: bool, notes: &mut Notes) -> CellRow {
    let out = (!cell.counts()).then(|| cell.text("reason").unwrap_or("no reason given").to_owned());
    let values = if out.is_some() { Vec::new() } else { COMPARED.iter().map(|metric| value(cell, metric, notes)).collect() };
    let (n, n_title) = repetitions(cell);
    CellRow {
        key: swatch_svg(colours.get(&cell.backend), 0),
        id: cell.key.cell.clone(),
        backend: cell.backend.clone(),
        workload: workload(cell),
        axes: group.axes(cell),
        out,
        status: cell.status.word(),
        values,
        timing: (mixed && cell.counts()).then(|| Timing::of(cell).words()),
        n,
        n_title,
        stability: stability(cell),
        badges: badges(run, cell),
        unit: unit(cell),
        checks: checks(cell),
    }
}

fn repetitions(cell: &Cell) -> (String, String) {
    let launches = cell.text("launches").unwrap_or("?");
    let stop = cell.text("stop").map_or_else(String::new, |stop| format!("; ended by {stop}"));
    match cell.metrics.get("decode_tok_s").or_else(|| cell.metrics.get("ttft_ms")).and_then(|estimate| estimate.n) {
        Some(n) => (format!("{n} / {launches}"), format!("{n} values in {launches} launches{stop}")),
        None => (format!("? / {launches}"), format!("{launches} launches{stop}")),
    }
}

fn stability(cell: &Cell) -> Badge {
    match cell.text("stability") {
        Some("stable") => badge("good", "stable", "spread of the decode rate within 5 %"),
        Some("unstable") => badge("bad", "unstable", "spread of the decode rate over 5 %: read the interval, not the median"),
        _ => badge("quiet", "unknown", "no verdict on stability: too few values, or no decode rate"),
    }
}

fn badges(run: &Run, cell: &Cell) -> Vec<Badge> {
    let mut found = Vec::new();
    if cell.text("n_small") == Some("1") {
        found.push(badge(
            "quiet",
            "few values",
            "fewer than 10 values: intervals from order statistics, with the coverage said in each figure's title",
        ));
    }
    let mut launches: BTreeMap<i64, Vec<f64>> = BTreeMap::new();
    for sample in run.samples.get(&cell.key).into_iter().flatten() {
        if let Some(rate) = sample.decode_tok_s {
            launches.entry(sample.launch).or_default().push(rate);
        }
    }
    let launches: Vec<Vec<f64>> = launches.into_values().collect();
    let apart = stats::outliers(&launches.concat()).into_iter().filter(|apart| *apart).count();
    if apart > 0 {
        let text = if apart == 1 { "1 outlier".to_owned() } else { format!("{apart} outliers") };
        let title = "decode rates with a modified z-score over 3.5: counted here, and in all figures".to_owned();
        found.push(Badge { tone: "quiet", text, title });
    }
    if let Some(effect) = stats::launch_effect(&launches).filter(|effect| *effect > LAUNCH_EFFECT) {
        let title = format!(
            "{:.0} % of the variance of the decode rate lies between launches: the interval, which takes queries as independent, is too narrow",
            effect * 100.0
        );
        found.push(Badge { tone: "bad", text: "launches differ".into(), title });
    }
    if cell.number("launches_failed").is_some_and(|failed| failed > 0.0) {
        let failed = cell.text("launches_failed").unwrap_or_default();
        found.push(Badge {
            tone: "bad",
            text: format!("{failed} lost"),
            title: format!("{failed} launches failed or were contradicted and are not in the figures"),
        });
    }
    found
}

fn badge(tone: &'static str, text: &str, title: &str) -> Badge {
    Badge { tone, text: text.into(), title: title.into() }
}

fn unit(cell: &Cell) -> String {
    let asked = cell.text("unit_requested").unwrap_or("?");
    match cell.text("unit_found") {
        Some(found) if found == asked => asked.to_owned(),
        Some(found) => format!("{asked} → {found}"),
        None => format!("{asked} → no evidence"),
    }
}

fn checks(cell: &Cell) -> Vec<Badge> {
    let one = |column: &str, word: &str, extra: String| {
        // The sign alone in the table, whose head names the three; the title says it in words.
        let (tone, sign, title) = match cell.text(column) {
            Some("confirmed") => ("good", "✓", "confirmed"),
            Some("contradicted") => ("bad", "✗", "contradicted"),
            Some("not-checkable") => ("quiet", "○", "not checkable here"),
            _ => ("quiet", "○", "not checked"),
        };
        Badge { tone, text: sign.into(), title: format!("{word}: {title}{extra}") }
    };
    let agreement = cell
        .number("token_agreement")
        .map_or_else(String::new, |share| format!("; {:.1} % of the tokens before the first divergence", share * 100.0));
    vec![one("check_count", "count", String::new()), one("check_tokens", "tokens", agreement), one("check_unit", "unit", String::new())]
}
