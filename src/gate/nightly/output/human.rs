//! For a terminal.

use super::super::Gate;
use super::words;
use crate::{lang::say_cells, safe::printable, words::aligned};

/// The table. No text makes lines of its own or steers a terminal.
pub fn human(gate: &Gate) -> String {
    let several = gate.rows.iter().any(|row| row.key.device != gate.rows[0].key.device);
    let mut lines = vec![words::title(gate)];
    lines.extend(gate.notes.iter().map(|note| format!("note: {note}")));
    let mut table = vec![["", "cell", "metric", "tonight", "change [95 %]", "counts from", "finds", "nights"].map(str::to_owned).to_vec()];
    for row in &gate.rows {
        let cell = if several { format!("{} on {}", row.key.cell, row.key.device) } else { row.key.cell.clone() };
        let nights = if row.metric.is_empty() { String::new() } else { row.baseline.to_string() };
        let (tonight, change) = (words::figure(row.tonight), words::change(row));
        let verdict = row.verdict.word().to_owned();
        table.push(vec![
            verdict,
            cell,
            words::subject(row).to_owned(),
            tonight,
            change,
            words::percent(row.tolerance),
            words::percent(row.mde),
            nights,
        ]);
    }
    if !gate.rows.is_empty() {
        let shown = aligned(&say_cells(table), |_| true);
        lines.push(shown[0].clone());
        for (row, line) in gate.rows.iter().zip(&shown[1..]) {
            lines.push(line.clone());
            lines.extend(words::remarks(row).into_iter().map(|remark| format!("            {remark}")));
        }
    }
    if !gate.requirements.is_empty() {
        let table: Vec<Vec<String>> = gate
            .requirements
            .iter()
            .map(|j| vec![j.met.word().to_owned(), j.cell.clone(), j.words.clone(), words::measured(j), words::slack(j), j.why.clone()])
            .collect();
        lines.push("required:".to_owned());
        lines.extend(aligned(&say_cells(table), |_| true));
    }
    lines.extend([words::counts(gate), gate.odds()]);
    lines.iter().map(|line| printable(line)).collect::<Vec<_>>().join("\n") + "\n"
}
