//! Cells that are in no chart, those that share a reason in one row.

use std::collections::BTreeSet;

use super::filters::keys;
use super::groups::{Colours, listed, workload};
use super::panel::class_title;
use super::view::{Count, Gone};
use crate::report::charts::swatch_svg;
use crate::report::load::{Cell, Run, Status};

/// How many cells ended how.
pub fn counts(run: &Run) -> Vec<Count> {
    let all = [Status::Ok, Status::Unverified, Status::Failed, Status::Skipped, Status::Unknown];
    let count = |status| run.cells.iter().filter(|cell| cell.status == status).count();
    all.into_iter()
        .map(|status| Count { status: status.word(), n: count(status) })
        .filter(|count| count.n > 0 || count.status == "ok")
        .collect()
}

/// Every cell of these that does not count: failed, then unverified, then skipped. What is the same but for quantisation and workload is one row.
pub fn gone(cells: &[&Cell], colours: &Colours) -> Vec<Gone> {
    let rank = |status| match status {
        Status::Failed | Status::Unknown => 0,
        Status::Unverified => 1,
        _ => 2,
    };
    let mut out: Vec<&Cell> = cells.iter().copied().filter(|cell| !cell.counts()).collect();
    // A stable sort: within a rank and a backend the order of the panel stays.
    out.sort_by_key(|cell| (rank(cell.status), cell.backend.as_str()));
    let mut rows: Vec<Vec<&Cell>> = Vec::new();
    for cell in out {
        match rows.iter_mut().find(|row| alike(row[0], cell)) {
            Some(row) => row.push(cell),
            None => rows.push(vec![cell]),
        }
    }
    rows.iter().map(|row| view(row, colours)).collect()
}

fn alike(a: &Cell, b: &Cell) -> bool {
    let same = |column: &str| a.text(column) == b.text(column);
    (a.status, &a.backend, &a.class, &a.key.device) == (b.status, &b.backend, &b.class, &b.key.device)
        && ["reason", "failure_kind", "launches", "launches_failed"].into_iter().all(same)
}

fn view(row: &[&Cell], colours: &Colours) -> Gone {
    let cell = row[0];
    let mut quants: Vec<&str> = Vec::new();
    for cell in row {
        if !quants.contains(&cell.quant.as_str()) {
            quants.push(&cell.quant);
        }
    }
    let workloads: BTreeSet<(i64, i64)> = row.iter().map(|cell| (cell.prompt, cell.generate)).collect();
    let workloads: Vec<String> = workloads.into_iter().map(workload).collect();
    let n = if row.len() == 1 { String::new() } else { format!("{} cells: ", row.len()) };
    Gone {
        key: swatch_svg(colours.get(&cell.backend)),
        keys: keys(row),
        backend: cell.backend.clone(),
        what: format!("{n}{} at {}", listed(&quants), listed(&workloads)),
        ids: row.iter().map(|cell| cell.key.cell.clone()).collect(),
        place: format!("{}, {}", class_title(&cell.class), cell.key.device),
        status: cell.status.word(),
        kind: cell.text("failure_kind").unwrap_or_default().to_owned(),
        reason: cell.text("reason").unwrap_or("no reason given").to_owned(),
        launches: match (cell.text("launches"), cell.text("launches_failed")) {
            (Some("0"), Some("0")) => "none".to_owned(),
            (Some(good), Some(lost)) => format!("{good} good, {lost} lost"),
            _ => String::new(),
        },
    }
}
