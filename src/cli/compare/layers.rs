//! `bench compare --layers A B`.

use std::path::Path;

use serde_json::json;

use super::{Args, load};
use crate::{
    cli::{
        self, Format,
        console::printable,
        exit::{Code, Failed},
    },
    gate::{
        profiles::{self, Change, Measure, Pair, Profiles},
        run::Cell,
    },
    lang::{self, say_cells},
    results::schema::{CELLS, FORMAT_VERSION},
    safe::markdown as escape,
    words::{self, aligned, figure, tenths},
};

/// Cells by columns of cells.csv: all must agree.
#[derive(Debug, Clone)]
pub struct Pick(Vec<(String, String)>);

impl Pick {
    fn takes(&self, cell: &Cell) -> bool {
        self.0.iter().all(|(column, value)| cell.field(column) == value)
    }
}

/// Reads `backend=mnn,quant=w4`.
pub fn pick(text: &str) -> Result<Pick, String> {
    let pair = |part: &str| {
        let (column, value) =
            part.split_once('=').ok_or_else(|| format!("`{part}` is not column=value: write for instance backend=mnn"))?;
        let column = column.trim().replace('-', "_");
        let known = CELLS.columns.iter().any(|known| known.name == column);
        known.then(|| (column.clone(), value.trim().to_owned())).ok_or_else(|| format!("cells.csv has no column `{column}`"))
    };
    text.split(',').map(pair).collect::<Result<_, _>>().map(Pick)
}

pub fn main(args: &Args) -> anyhow::Result<Code> {
    let (a, b) = (load(&args.a)?, load(&args.b)?);
    let takes = |pick: &Option<Pick>| {
        let pick = pick.clone();
        move |cell: &Cell| pick.as_ref().is_none_or(|pick| pick.takes(cell))
    };
    let profiles = profiles::compare(&a, &b, [&takes(&args.a_cells), &takes(&args.b_cells)]).map_err(|e| cli::usage(e.to_string()))?;
    let markdown = args.markdown.as_deref();
    if let Some(file) = markdown.filter(|file| *file != Path::new("-")) {
        let failed = |e: std::io::Error| Failed { code: Code::Unavailable, message: format!("{}: {e}", file.display()) };
        std::fs::write(file, lang::say_markdown(&in_markdown(&profiles))).map_err(failed)?;
    }
    let text = match (args.format, markdown) {
        (Format::Json, _) => {
            let mut value = serde_json::to_value(&profiles)?;
            (value["format_version"], value["a"], value["b"]) = (json!(FORMAT_VERSION), json!(a.id), json!(b.id));
            serde_json::to_string_pretty(&value)? + "\n"
        }
        (Format::Human, Some(file)) if file == Path::new("-") => lang::say_markdown(&in_markdown(&profiles)),
        (Format::Human, _) => lang::say(&in_words(&profiles)).into_owned(),
    };
    cli::print(&text)?;
    Ok(if profiles.pairs.is_empty() { Code::Nothing } else { Code::Done })
}

/// What holds for every pair.
const METHOD: &str =
    "One profiled launch on each side: no intervals, and profiling slows what it times. Where a difference lies, not whether there is one.";

fn in_words(profiles: &Profiles) -> String {
    let mut lines = vec![METHOD.to_owned()];
    for pair in &profiles.pairs {
        lines.extend([String::new(), format!("{}: A {}, B {}", phase(pair), pair.a, pair.b), format!("  {}", numbers(pair))]);
        for (title, changes) in groups(pair) {
            lines.push(format!("  {title}"));
            lines.extend(aligned(&say_cells(table(pair, changes)), |at| at == 0).into_iter().map(|line| format!("    {line}")));
        }
        lines.extend(unknown(pair).map(|words| format!("  {words}")));
    }
    lines.extend(profiles.notes.iter().map(|note| format!("note: {note}")));
    lines.iter().map(|line| printable(line.trim_end()) + "\n").collect()
}

fn in_markdown(profiles: &Profiles) -> String {
    let mut lines = vec!["### bench compare --layers".to_owned(), String::new(), METHOD.to_owned()];
    for pair in &profiles.pairs {
        lines.extend([String::new(), format!("**{}**: A {}, B {}", escape(phase(pair)), escape(&pair.a), escape(&pair.b))]);
        lines.extend([String::new(), escape(&numbers(pair))]);
        for (title, changes) in groups(pair) {
            let rows = table(pair, changes);
            let row = |cells: &[String; 7]| format!("| {} |", cells.iter().map(|cell| escape(cell)).collect::<Vec<_>>().join(" | "));
            lines.extend([
                String::new(),
                row(&rows[0]).replacen("|  |", &format!("| {title} |"), 1),
                "|---|--:|--:|--:|--:|--:|--:|".to_owned(),
            ]);
            lines.extend(rows[1..].iter().map(row));
        }
        lines.extend(unknown(pair).into_iter().flat_map(|words| [String::new(), words]));
    }
    lines.push(String::new());
    lines.extend(profiles.notes.iter().map(|note| format!("- {}", escape(note))));
    lines.join("\n") + "\n"
}

fn phase(pair: &Pair) -> &str {
    if pair.phase.is_empty() { "whole graph" } else { &pair.phase }
}

fn groups(pair: &Pair) -> impl Iterator<Item = (&'static str, &Vec<Change>)> {
    let groups =
        [("part of the model", &pair.parts), ("kind of operation", &pair.kinds), ("operations that differ most", &pair.operations)];
    groups.into_iter().filter(|(_, changes)| !changes.is_empty())
}

/// What the numbers are, and the totals.
fn numbers(pair: &Pair) -> String {
    let words = |Measure { unit, means, method }: &Measure| {
        let means = if means.is_empty() { String::new() } else { format!(" ({})", means.replace('-', " ")) };
        let of = if pair.class == "emulator" { " of the emulator" } else { "" };
        format!("{unit}{of}{means} by {method}")
    };
    let [a, b] = &pair.measures;
    let [of_a, of_b] = pair.totals.map(figure);
    match pair.difference {
        Some(difference) if a == b => format!("{}: {of_a} in A, {of_b} in B, {}", words(a), more(difference)),
        Some(difference) => format!("{of_a} {} in A, {of_b} {} in B, {}", words(a), words(b), more(difference)),
        None => {
            let why = pair.unlike.as_deref().unwrap_or_default();
            format!("A has {of_a} {}, B {of_b} {}: {why}, only shares stand side by side", words(a), words(b))
        }
    }
}

fn unknown(pair: &Pair) -> Option<String> {
    let [a, b] = pair.unknown;
    (a + b > 0).then(|| format!("no value is known of {a} operations in A and {b} in B"))
}

fn more(difference: f64) -> String {
    if difference == 0.0 {
        return "no difference".to_owned();
    }
    format!("{} {}", figure(difference.abs()), if difference < 0.0 { "less" } else { "more" })
}

fn table(pair: &Pair, changes: &[Change]) -> Vec<[String; 7]> {
    // Of next to no difference every part is many times the whole.
    let tells = pair.difference.is_some_and(|whole| whole.abs() > 0.02 * pair.totals[0].max(pair.totals[1]));
    let difference = match (pair.difference, tells) {
        (None, _) => "",
        (Some(_), true) => "B-A (of all)",
        (Some(_), false) => "B-A",
    };
    let head = ["", "A", "B", "A, %", "B, %", difference, "ops"].map(str::to_owned);
    let share = |share: Option<f64>| share.map_or("-".to_owned(), tenths);
    let row = |change: &Change| {
        let [a, b] = change.values.map(|value| value.map_or("-".to_owned(), figure));
        let of = change.of_difference.filter(|_| tells).map_or(String::new(), |of| format!(" ({} %)", words::signed(of)));
        let difference = change.difference.map_or(String::new(), |difference| format!("{}{of}", signed(difference)));
        let ops = if change.ops[0] == change.ops[1] { change.ops[0].to_string() } else { format!("{}, {}", change.ops[0], change.ops[1]) };
        [change.name.clone(), a, b, share(change.shares[0]), share(change.shares[1]), difference, ops]
    };
    std::iter::once(head).chain(changes.iter().map(row)).collect()
}

fn signed(value: f64) -> String {
    if value > 0.0 { format!("+{}", figure(value)) } else { figure(value) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_picked_by_columns() {
        let cell = Cell { fields: [("backend", "mnn".to_owned()), ("perf_profile", "burst".to_owned())].into(), ..Cell::default() };
        assert!(pick("backend=mnn, perf-profile=burst").unwrap().takes(&cell) && !pick("backend=genie").unwrap().takes(&cell));
        assert!(
            pick("backend").unwrap_err().contains("not column=value") && pick("colour=red").unwrap_err().contains("no column `colour`")
        );
    }

    #[test]
    fn differences_are_more_or_less() {
        assert_eq!(
            [signed(2.0), signed(-2.0), more(-3.0), more(0.5), more(0.0)],
            ["+2.000", "-2.000", "3.000 less", "0.5000 more", "no difference"]
        );
    }
}
