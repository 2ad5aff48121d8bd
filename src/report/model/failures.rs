//! Cells that are in no chart, with their reasons.

use super::groups::workload;
use super::panel::class_title;
use super::view::{Count, Failure};
use crate::report::load::{Run, Status};

/// How many cells ended how.
pub fn counts(run: &Run) -> Vec<Count> {
    let all = [Status::Ok, Status::Unverified, Status::Failed, Status::Skipped, Status::Unknown];
    let count = |status| run.cells.iter().filter(|cell| cell.status == status).count();
    all.into_iter()
        .map(|status| Count { status: status.word(), n: count(status) })
        .filter(|count| count.n > 0 || count.status == "ok")
        .collect()
}

/// Every cell that does not count: failed, then unverified, then skipped.
pub fn failures(run: &Run) -> Vec<Failure> {
    let rank = |status| match status {
        Status::Failed | Status::Unknown => 0,
        Status::Unverified => 1,
        _ => 2,
    };
    let mut cells: Vec<_> = run.cells.iter().filter(|cell| !cell.counts()).collect();
    cells.sort_by_key(|cell| (rank(cell.status), &cell.backend, &cell.key));
    let row = |cell: &&crate::report::load::Cell| Failure {
        id: cell.key.cell.clone(),
        backend: cell.backend.clone(),
        workload: format!("{} {}", cell.quant, workload(cell)),
        place: format!("{}, {}", class_title(&cell.class), cell.key.device),
        status: cell.status.word(),
        kind: cell.text("failure_kind").unwrap_or_default().to_owned(),
        reason: cell.text("reason").unwrap_or("no reason given").to_owned(),
        launches: match (cell.text("launches"), cell.text("launches_failed")) {
            (Some("0"), Some("0")) => "none".to_owned(),
            (Some(good), Some(lost)) => format!("{good} good, {lost} lost"),
            _ => String::new(),
        },
    };
    cells.iter().map(row).collect()
}
