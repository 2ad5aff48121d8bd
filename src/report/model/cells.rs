//! The comparison table of a set.

use std::collections::{BTreeMap, BTreeSet};

use super::details::is_stated;
use super::figures::{Notes, intervals_note, number, value};
use super::filters::keys;
use super::groups::{Colours, Group, Timing, listed, workload};
use super::view::{Badge, Block, CellRow};
use crate::report::charts::swatch_svg;
use crate::report::load::{Cell, Run};
use crate::stats;

/// Metrics of the comparison, in the order of the template's columns. The others are in the table of all metrics.
const COMPARED: [&str; 8] = ["ttft_ms", "prefill_tok_s", "decode_tok_s", "itl_p50_ms", "itl_p99_ms", "e2e_ms", "load_ms", "peak_mem_mb"];

/// Fewest launches among which one can be said to stand apart.
const FEWEST_FOR_OUTLIERS: usize = 6;

/// The rows that count, by workload. `mixed`: the first token was timed in different ways.
pub fn blocks(run: &Run, group: &Group, colours: &Colours, mixed: bool, notes: &mut Notes) -> Vec<Block> {
    let mut blocks: Vec<((i64, i64), Block)> = Vec::new();
    let ways: Vec<Timing> = group.comparable().into_iter().map(|(way, _)| way).collect();
    for cell in group.counted() {
        let key = (cell.prompt, cell.generate);
        let row = row(run, group, cell, colours, mixed.then_some(ways.as_slice()), notes);
        match blocks.last_mut() {
            Some((known, block)) if *known == key => block.rows.push(row),
            _ => blocks.push((key, Block { workload: workload(key), rows: vec![row] })),
        }
    }
    blocks.into_iter().map(|(_, block)| block).collect()
}

/// How the intervals of the table were made.
pub fn intervals(group: &Group) -> String {
    let shown = |cell: &Cell| COMPARED.iter().filter_map(|metric| cell.metrics.get(metric)?.n).collect::<Vec<_>>();
    let ns: BTreeSet<usize> = group.counted().into_iter().flat_map(shown).collect();
    let load = if group.counted().iter().any(|cell| cell.text("first_launch_load_ms").is_some()) {
        " Load leaves out the very first launch, which is kept apart."
    } else {
        ""
    };
    intervals_note(&ns) + load
}

/// What peak memory is the sum of, where the rows differ in it: a device lets one program's buffers be read and another's not.
pub fn memory(group: &Group) -> Option<String> {
    let counted = group.counted();
    let measured = counted.iter().filter(|cell| cell.metrics.contains_key("peak_mem_mb"));
    let mut methods: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for cell in measured {
        methods.entry(cell.text("peak_mem_method").unwrap_or("unknown")).or_default().insert(&cell.backend);
    }
    let told = |(method, backends): (&&str, &BTreeSet<&str>)| format!("{method} ({})", listed(&backends.iter().collect::<Vec<_>>()));
    let parts: Vec<String> = methods.iter().map(told).collect();
    (parts.len() > 1).then(|| format!("Peak memory is not the same sum in all rows, and compares only within one: {}.", parts.join("; ")))
}

fn row(run: &Run, group: &Group, cell: &Cell, colours: &Colours, ways: Option<&[Timing]>, notes: &mut Notes) -> CellRow {
    let (n, n_title) = repetitions(cell);
    CellRow {
        key: swatch_svg(colours.get(&cell.backend)),
        keys: keys(&[cell]),
        apart: apart(ways.unwrap_or_default(), cell),
        id: cell.key.cell.clone(),
        backend: cell.backend.clone(),
        quant: cell.quant.clone(),
        bits: bits(cell),
        stated: native(cell).is_some() && is_stated(cell),
        axes: group.axes(cell),
        values: COMPARED.iter().map(|metric| value(cell, metric, notes)).collect(),
        timing: ways.map(|_| Timing::of(cell).words()),
        n,
        n_title,
        stability: stability(cell),
        badges: badges(run, cell),
        unit: unit(cell),
        checks: checks(cell),
    }
}

/// The number of a row's way to time; what is composed comes after all others (rule R11).
fn apart(ways: &[Timing], cell: &Cell) -> usize {
    if cell.is_composed() { ways.len() } else { ways.iter().position(|way| *way == Timing::of(cell)).unwrap_or(0) }
}

/// The native name of the quantisation, where it says more than the class.
fn native(cell: &Cell) -> Option<String> {
    cell.text("quant_native").filter(|name| !name.eq_ignore_ascii_case(&cell.quant)).map(str::to_owned)
}

/// What stands beside the class of the quantisation: its native name, measured bits per weight, and the group that shares a scale.
fn bits(cell: &Cell) -> String {
    let measured = cell.number("bits_per_weight").map(number);
    let group = cell.number("group").filter(|group| *group > 0.0).map(|group| format!("group {group}"));
    [native(cell), measured, group].into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn repetitions(cell: &Cell) -> (String, String) {
    let launches = cell.text("launches").unwrap_or("?");
    let stop = cell.text("stop").map_or_else(String::new, |stop| format!("; ended by {stop}"));
    (launches.to_owned(), format!("{launches} launches, each gives the median of its warm queries{stop}"))
}

/// No word where there are too few launches for one: the interval is there.
fn stability(cell: &Cell) -> Option<Badge> {
    match cell.text("stability") {
        Some("stable") => Some(badge("good", "stable", "spread of the launches' decode rates within 5 %")),
        Some("unstable") => {
            // Runs before the column had no other reason.
            let why = cell.text("stability_reason").unwrap_or("spread over 5 %");
            Some(badge("bad", "unstable", &format!("the launches' decode rates: {why}; read the interval, not the median")))
        }
        _ => None,
    }
}

fn badges(run: &Run, cell: &Cell) -> Vec<Badge> {
    let mut found = Vec::new();
    let rates = run.launches.get(&cell.key).map_or(&[] as &[f64], |launches| &launches.decode_tok_s);
    let apart = stats::outliers(rates).into_iter().filter(|apart| *apart).count();
    if apart > 0 && rates.len() >= FEWEST_FOR_OUTLIERS {
        let title = "launches whose decode rate has a modified z-score over 3.5: counted here, and in all figures".to_owned();
        found.push(Badge { tone: "quiet", text: format!("{apart} apart"), title });
    }
    if let Some(padded) = cell.number("padded_prompt_tokens").filter(|padded| *padded > cell.prompt as f64) {
        let title = "the static prefill graph computes whole chunks, so this prompt pays for padding".to_owned();
        found.push(Badge { tone: "quiet", text: format!("padded to {padded}"), title });
    }
    if let Some(drifts) = cell.text("drift").filter(|drifts| *drifts != "none") {
        let change = cell.number("drift_pct").map_or_else(String::new, |change| format!(" {change:+.0} %"));
        let title =
            format!("{drifts}: from the first launch to the last, beyond what noise does; the median is that of the middle of the run");
        found.push(Badge { tone: "bad", text: format!("drifts{change}"), title });
    }
    if cell.number("not_warmed_up").is_some_and(|n| n > 0.0) {
        let title = "launches whose queries were still getting faster or slower when the most were discarded: raise `max` of `warmup`";
        found.push(badge("bad", "not warmed up", title));
    }
    found.extend(roof(cell));
    if cell.text("stop") == Some("interrupted") {
        found.push(badge("bad", "interrupted", "the run ended before this cell had all its launches"));
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

/// How near the decode rate is to what the memory allows; where that says nothing about a cell, nothing is shown.
fn roof(cell: &Cell) -> Option<Badge> {
    let share = cell.number("roof_share")?;
    let note = cell.text("roof_note").unwrap_or_default();
    let tone = if note.starts_with("warning") { "bad" } else { "quiet" };
    Some(Badge { tone, text: format!("{:.0} % of the roof", share * 100.0), title: format!("decode rate, derived: {note}") })
}

fn badge(tone: &'static str, text: &str, title: &str) -> Badge {
    Badge { tone, text: text.into(), title: title.into() }
}

fn unit(cell: &Cell) -> String {
    let asked = cell.text("unit_requested").unwrap_or("?");
    match cell.text("unit_found") {
        Some(found) if found == asked => asked.to_owned(),
        Some(found) => format!("{asked} → {found}"),
        None => format!("{asked}, unproven"),
    }
}

fn checks(cell: &Cell) -> Vec<Badge> {
    let one = |column: &str, word: &str, extra: String| {
        // The sign alone in the table, whose head names them; the title says it in words.
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
    let none = String::new;
    vec![
        one("check_count", "count", none()),
        one("check_prefix", "prompts prefilled whole", none()),
        one("check_tokens", "tokens", agreement),
        one("check_unit", "unit", none()),
    ]
}
