//! A comparison in words and short figures: what table, Markdown and page show alike.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::{
    gate::{
        compare::{Advice, Compared, Comparison, Outcome, Row},
        unlike::{self, Weight},
        verdict::{Effect, Verdict},
    },
    report::comparison as shown,
    results::{read::visible, schema::FORMAT_VERSION},
    words::{self, percent},
};

/// In the order of a table.
const CLASSES: [&str; 4] = ["phone", "board", "pc", "emulator"];

/// Most names that stand in one line.
const MOST_NAMES: usize = 4;

/// For programs.
pub fn json(comparison: &Comparison) -> Value {
    let count = |verdict| comparison.count(verdict);
    let verdict = comparison.verdicts().max();
    let mut value = serde_json::to_value(comparison).unwrap_or_default();
    value["format_version"] = json!(FORMAT_VERSION);
    value["verdict"] = json!(verdict);
    value["counts"] = ALL.iter().map(|verdict| (verdict.word().to_owned(), json!(count(*verdict)))).collect();
    value
}

const ALL: [Verdict; 4] = [Verdict::Regressed, Verdict::Undecided, Verdict::Unchanged, Verdict::Improved];

/// For people.
pub fn of(comparison: &Comparison) -> shown::Comparison {
    let side = |side: &crate::gate::compare::Side| shown::Side {
        run: visible(&side.run),
        scenario: visible(&side.scenario),
        started: visible(&side.started_utc),
    };
    let said = [("A", &comparison.a), ("B", &comparison.b)];
    let of_runs = said.iter().flat_map(|(name, side)| side.problems.iter().map(move |problem| format!("{name}: {}", visible(problem))));
    let (serious, minor): (Vec<_>, Vec<_>) = comparison.differences.iter().partition(|difference| difference.serious());
    let later = comparison.rows.iter().filter_map(Row::compared).flat_map(|compared| compared.decide.iter().skip(1));
    shown::Comparison {
        tool: concat!("bench ", env!("CARGO_PKG_VERSION")).to_owned(),
        a: side(&comparison.a),
        b: side(&comparison.b),
        counts: ALL.iter().map(|verdict| (verdict.word(), comparison.count(*verdict))).filter(|(_, n)| *n > 0).collect(),
        method: method(comparison),
        problems: comparison.notes.iter().map(|note| visible(note)).chain(of_runs).collect(),
        serious: serious.into_iter().map(difference).collect(),
        minor: minor.into_iter().map(difference).collect(),
        tables: tables(comparison),
        refused: refused(comparison),
        decide: advice(later),
    }
}

fn method(comparison: &Comparison) -> Vec<String> {
    let spreads: BTreeSet<(&str, String)> = comparison
        .rows
        .iter()
        .filter_map(|row| Some((row.class.as_str(), &row.compared()?.spread)))
        .map(|(class, spread)| (class, spread.words()))
        .collect();
    let mut found = vec![format!(
        "Differences up to {} do not matter. One value a launch; figures are locations of their logarithms, intervals 95 %.",
        percent(comparison.tolerance)
    )];
    if comparison.rows.iter().filter_map(Row::compared).any(|compared| compared.pairs.is_some()) {
        found.push("A and B are the sides of one A/B run: figures are of pairs of launches, made one right after the other.".to_owned());
    } else if !spreads.is_empty() {
        let (first, more) = (spreads.iter().take(MOST_NAMES), spreads.len().saturating_sub(MOST_NAMES));
        let list: Vec<String> = first.map(|(class, words)| format!("{class} {words}")).collect();
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        found.push(format!(
            "A and B are two sessions. What sessions differ by beyond the noise of their launches is in every interval ({}{more}).",
            list.join("; ")
        ));
    }
    found
}

fn difference(difference: &unlike::Difference) -> shown::Difference {
    let cells: BTreeSet<&str> = difference.cells.iter().map(|key| key.cell.as_str()).collect();
    shown::Difference {
        what: visible(&difference.what),
        a: visible(&difference.a),
        b: visible(&difference.b),
        cells: names(&cells.into_iter().collect::<Vec<_>>(), "cells"),
        bars: difference.weight == Weight::Bars,
    }
}

/// Few names as they are, many as their number.
fn names(all: &[&str], what: &str) -> String {
    if all.len() > MOST_NAMES { format!("{} {what}", all.len()) } else { visible(&all.join(", ")) }
}

/// The same advice once, with the number of rows. Those that differ in counts alone are one.
fn advice<'a>(all: impl Iterator<Item = &'a Advice>) -> Vec<(String, usize)> {
    let mut kinds: BTreeMap<String, Vec<&Advice>> = BTreeMap::new();
    for advice in all {
        let kind = match advice {
            Advice::Launches { .. } => "0".to_owned(),
            Advice::Sessions { spread, .. } => format!("1{spread:?}"),
            Advice::Quiet => "2".to_owned(),
            Advice::Tolerance => "4".to_owned(),
            Advice::Same { what } => format!("3{what}"),
        };
        kinds.entry(kind).or_default().push(advice);
    }
    kinds.into_values().map(|all| (visible(&Advice::words(&all)), all.len())).collect()
}

fn tables(comparison: &Comparison) -> Vec<shown::Table> {
    let devices: BTreeSet<&str> = comparison.rows.iter().map(|row| row.key.device.as_str()).collect();
    let first = |metric: &str, class: &str| {
        let of_table = comparison.rows.iter().filter(|row| row.metric == metric && row.class == class);
        advice(of_table.filter_map(|row| row.compared()?.decide.first()))
    };
    let mut found: Vec<shown::Table> = Vec::new();
    for row in &comparison.rows {
        let Some(compared) = row.compared() else { continue };
        let same = |table: &&mut shown::Table| table.metric == row.metric && table.class == row.class;
        let entry = shown_row(row, compared, devices.len() > 1, comparison.tolerance);
        if let Some(table) = found.iter_mut().find(same) {
            table.rows.push(entry);
            continue;
        }
        let overall = comparison.overall.iter().find(|overall| overall.metric == row.metric && overall.class == row.class);
        let overall = overall.map(|overall| {
            let change = shown::Change { ratio: overall.ratio, interval: Some(overall.interval), verdict: overall.verdict.word() };
            (overall.cells, change)
        });
        let better = if row.higher_is_better { "higher is better" } else { "lower is better" };
        found.push(shown::Table {
            metric: row.metric,
            class: visible(&row.class),
            better,
            rows: vec![entry],
            overall,
            decide: first(row.metric, &row.class),
        });
    }
    // Stable: metrics keep their order within a class.
    found.sort_by_key(|table| CLASSES.iter().position(|class| *class == table.class).unwrap_or(CLASSES.len()));
    found
}

fn shown_row(row: &Row, compared: &Compared, device: bool, tolerance: f64) -> shown::Row {
    let n = |figure: Option<crate::gate::compare::Figure>| figure.map_or(0, |figure| figure.n);
    let (of_a, of_b) = (n(row.a), n(row.b));
    let figure =
        |figure: Option<crate::gate::compare::Figure>| figure.map_or_else(|| "—".to_owned(), |figure| words::figure(figure.centre));
    let alone =
        compared.within.map(|(lo, hi)| Effect::oriented(compared.ratio.ln(), lo.ln(), hi.ln(), row.higher_is_better).verdict(tolerance));
    let alone = alone.filter(|verdict| compared.verdict == Verdict::Undecided && *verdict != Verdict::Undecided);
    let [backend, model, quant, prompt, generate] = row.of.each_ref().map(|text| visible(text));
    let keys = shown::Keys {
        backend,
        model,
        quant,
        workload: if prompt.is_empty() && generate.is_empty() { String::new() } else { format!("{prompt} → {generate}") },
        status: compared.verdict.word().to_owned(),
        class: visible(&row.class),
    };
    shown::Row {
        keys,
        cell: visible(&row.key.cell),
        device: if device { visible(&row.key.device) } else { String::new() },
        a: figure(row.a),
        b: figure(row.b),
        n: match (compared.pairs, compared.mde) {
            (Some(pairs), Some(mde)) => format!("{pairs} pairs, detect {}", percent(mde)),
            (Some(pairs), None) => format!("{pairs} pairs"),
            (None, _) if of_a == of_b => of_a.to_string(),
            (None, _) => format!("{of_a}, {of_b}"),
        },
        composed: row.composed,
        change: shown::Change { ratio: compared.ratio, interval: compared.interval, verdict: compared.verdict.word() },
        alone: alone.map_or("", Verdict::word),
        decide: compared.decide.first().map(|advice| visible(&Advice::words(&[advice]))).unwrap_or_default(),
    }
}

/// What is not compared, each reason once.
fn refused(comparison: &Comparison) -> Vec<shown::Refused> {
    let mut by_reason: BTreeMap<String, BTreeMap<&str, Vec<&str>>> = BTreeMap::new();
    let mut add = |reason: String, metric, cell| by_reason.entry(reason).or_default().entry(metric).or_default().push(cell);
    for lone in &comparison.lone {
        let other = if lone.only_in == "A" { "B" } else { "A" };
        add(format!("only in {}: {other} has no such cell", lone.only_in), "", lone.key.cell.as_str());
    }
    for cell in &comparison.not_ok {
        let states = if cell.a == cell.b { format!("in both {}", cell.a) } else { format!("A: {}; B: {}", cell.a, cell.b) };
        add(states, "", cell.key.cell.as_str());
    }
    for row in &comparison.rows {
        if let Outcome::Not { not_compared } = &row.outcome {
            add(not_compared.clone(), row.metric, row.key.cell.as_str());
        }
    }
    let what = |(metric, cells): (&str, Vec<&str>)| {
        let cells = names(&cells, "cells");
        if metric.is_empty() { cells } else { format!("{metric} of {cells}") }
    };
    let one = |(reason, metrics): (String, BTreeMap<&str, Vec<&str>>)| shown::Refused {
        reason: visible(&reason),
        what: metrics.into_iter().map(what).collect(),
    };
    by_reason.into_iter().map(one).collect()
}
