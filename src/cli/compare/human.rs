//! The table on a terminal.

use crate::{
    cli::console::printable,
    lang::say_cells,
    report::comparison::{Change, Comparison, Difference, Row},
    words::aligned,
};

/// Differences first, then the figures.
pub fn table(view: &Comparison) -> String {
    let mut lines = Vec::new();
    for (name, side) in [("A", &view.a), ("B", &view.b)] {
        lines.push(format!("{name}  {}  {}  {}", side.run, side.scenario, side.started));
    }
    lines.extend(view.method.iter().cloned());
    section(&mut lines, "To know first", view.problems.clone());
    if view.serious.is_empty() {
        lines.extend([
            String::new(),
            "Nothing differs that could explain a difference of figures, as far as the manifests tell.".to_owned(),
        ]);
    }
    section(&mut lines, "Not the same in both, and could explain a difference by itself", view.serious.iter().map(words).collect());
    section(&mut lines, "Not the same either", view.minor.iter().map(words).collect());
    for table in &view.tables {
        lines.extend([String::new(), format!("{}  {}  ({})", table.metric, table.class, table.better)]);
        let head = ["", "A", "B", "launches", "B/A", "95 % interval", "verdict"].map(str::to_owned);
        let overall = table.overall.iter().map(|(n, change)| overall(*n, change));
        let rows: Vec<_> = std::iter::once(head).chain(table.rows.iter().map(cells)).chain(overall).collect();
        // Names and verdicts to the left, figures to the right.
        lines.extend(aligned(&say_cells(rows), |at| at == 0 || at == 6));
        lines.extend(table.decide.iter().map(|(words, n)| format!("  would decide {n} of them: {words}")));
    }
    section(
        &mut lines,
        "What else would decide undecided rows",
        view.decide.iter().map(|(words, n)| format!("{words} ({n} rows)")).collect(),
    );
    let refused = |refused: &crate::report::comparison::Refused| format!("{}: {}", refused.reason, refused.what.join("; "));
    section(&mut lines, "Not compared", view.refused.iter().map(refused).collect());
    lines.extend([String::new(), counts(view)]);
    lines.iter().map(|line| printable(line.trim_end()) + "\n").collect()
}

/// `2 regressed, 3 unchanged`.
pub fn counts(view: &Comparison) -> String {
    if view.counts.is_empty() {
        return "Nothing was compared.".to_owned();
    }
    view.counts.iter().map(|(word, n)| format!("{n} {word}")).collect::<Vec<_>>().join(", ")
}

fn section(lines: &mut Vec<String>, title: &str, entries: Vec<String>) {
    if !entries.is_empty() {
        lines.extend([String::new(), format!("{title}:")]);
        lines.extend(entries.into_iter().map(|entry| format!("  {entry}")));
    }
}

fn words(difference: &Difference) -> String {
    let Difference { what, a, b, cells, bars } = difference;
    let values = if a == b { format!("{a} in both") } else { format!("{a} in A, {b} in B") };
    let cells = if cells.is_empty() { String::new() } else { format!(" ({cells})") };
    format!("{what}: {values}{cells}{}", if *bars { " - not compared" } else { "" })
}

fn cells(row: &Row) -> [String; 7] {
    let device = if row.device.is_empty() { String::new() } else { format!(" on {}", row.device) };
    let composed = if row.composed { " (composed, an upper bound)" } else { "" };
    let name = format!("  {}{device}{composed}", row.cell);
    [name, row.a.clone(), row.b.clone(), row.n.clone(), row.change.figure(), row.change.between(), row.verdict()]
}

fn overall(n: usize, change: &Change) -> [String; 7] {
    let nothing = String::new;
    let name = format!("  geometric mean of {n} cells");
    [name, nothing(), nothing(), nothing(), change.figure(), change.between(), change.verdict.to_owned()]
}
