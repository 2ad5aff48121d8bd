//! For a pull request or the summary of a CI job.

use std::fmt::Write;

use super::super::{Gate, Verdict};
use super::{word, words};
use crate::safe::markdown as escaped;

/// A heading, what is worse or not known as a table, and the rest folded.
pub fn markdown(gate: &Gate) -> String {
    let mut out = format!("### bench gate: {}\n\n{}\n\n{}\n", word(gate), escaped(&words::title(gate)), words::counts(gate));
    if !gate.notes.is_empty() {
        out.push('\n');
        gate.notes.iter().for_each(|note| line(&mut out, &format!("- {}", escaped(note))));
    }
    let (quiet, loud): (Vec<_>, Vec<_>) = gate.rows.iter().partition(|row| row.verdict == Verdict::Unchanged);
    for (rows, folded) in [(loud, false), (quiet, true)] {
        if rows.is_empty() {
            continue;
        }
        out.push('\n');
        if folded {
            line(&mut out, &format!("<details><summary>{} unchanged</summary>\n", rows.len()));
        }
        line(
            &mut out,
            "| | cell | metric | tonight | change [95 %] | counts from | finds | nights | |\n|---|---|---|---|---|---|---|---|---|",
        );
        for row in rows {
            let cells = [
                row.verdict.word().to_owned(),
                format!("{} on {}", row.key.cell, row.key.device),
                words::subject(row).to_owned(),
                words::figure(row.tonight),
                words::change(row),
                words::percent(row.tolerance),
                words::percent(row.mde),
                row.baseline.to_string(),
                words::remarks(row).join("; "),
            ];
            line(&mut out, &format!("| {} |", cells.map(|cell| escaped(&cell)).join(" | ")));
        }
        if folded {
            line(&mut out, "\n</details>");
        }
    }
    if !gate.requirements.is_empty() {
        line(&mut out, "\n| required | cell | | measured | | |\n|---|---|---|---|---|---|");
        for j in &gate.requirements {
            let cells = [j.words.clone(), j.cell.clone(), j.met.word().to_owned(), words::measured(j), words::slack(j), j.why.clone()];
            line(&mut out, &format!("| {} |", cells.map(|cell| escaped(&cell)).join(" | ")));
        }
    }
    line(&mut out, &format!("\n{}", gate.odds()));
    out
}

fn line(out: &mut String, text: &str) {
    let _ = writeln!(out, "{text}");
}
