//! What an A/B run says when it ends: what was not the same on its two sides, and each metric of each pair of cells. `bench compare A B` says it
//! again, with more.

use std::path::Path;

use serde_json::json;

use crate::{
    cli::{Format, console::Console},
    gate::{
        compare::{Compared, Comparison, Outcome, Row, Settings, USUAL, compare, session::Sessions},
        run,
    },
};

/// Differences that do not matter.
const TOLERANCE: f64 = 0.02;

/// Prints it. The tables are on the disk: that they can't be compared is a warning.
pub fn print(format: Format, console: &Console, (a, b): (&Path, &Path)) {
    let read = |folder: &Path| run::load(folder).map_err(|e| e.to_string());
    let compared = read(a).and_then(|a| {
        let settings = Settings { tolerance: TOLERANCE, metrics: USUAL.to_vec(), sessions: Sessions::default() };
        compare(&a, &read(b)?, &settings).map_err(|e| e.to_string())
    });
    match (compared, format) {
        (Err(e), _) => console.line(&format!("warning: the two sides can't be compared: {e}")),
        (Ok(comparison), Format::Json) => {
            let _ = crate::cli::print(&format!("{}\n", json!({"event": "ab", "comparison": comparison})));
        }
        (Ok(comparison), Format::Human) => lines(&comparison).iter().for_each(|line| console.line(line)),
    }
}

fn lines(comparison: &Comparison) -> Vec<String> {
    let mut lines = vec!["A/B, B against A:".to_owned()];
    let changed = comparison.differences.iter().filter(|d| d.serious() && d.changed());
    lines.extend(changed.map(|difference| format!("  not the same  {}", difference.words())));
    lines.extend(comparison.not_ok.iter().map(|cell| format!("  not compared  {}: {} in A, {} in B", cell.key.cell, cell.a, cell.b)));
    lines.extend(comparison.rows.iter().map(line));
    lines
}

fn line(row: &Row) -> String {
    let words = match &row.outcome {
        Outcome::Not { not_compared } => format!("not compared  {not_compared}"),
        Outcome::Compared(compared) => figures(compared),
    };
    let of = if row.composed { " (composed)" } else { "" };
    format!("  {words}  {}{of}  {}", row.metric, row.key.cell)
}

fn figures(compared: &Compared) -> String {
    let percent = |ratio: f64| format!("{:+.1}", 100.0 * (ratio - 1.0));
    let interval = compared
        .interval
        .map_or_else(|| "no interval: too few pairs".to_owned(), |(lo, hi)| format!("95 % interval {} to {} %", percent(lo), percent(hi)));
    let pairs = compared.pairs.map_or_else(String::new, |n| format!(", {n} pairs"));
    let mde = compared.mde.map_or_else(String::new, |mde| format!(", detectable from {:.1} %", 100.0 * mde));
    format!("{:<10}  {} % ({interval}{pairs}{mde})", compared.verdict.word(), percent(compared.ratio))
}
