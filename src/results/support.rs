//! `support.csv`: which model runs through which backend on which unit, from the cells of a run.

use std::collections::BTreeSet;

use bench_backend_api::{FailureKind, Fallback};

use super::{placement::CellPlaced, tables::Row};
use crate::{run::events::Status, scenario::PlannedCell};

/// How a cell ended, as far as support is concerned.
#[derive(Debug, Clone)]
pub struct Ended<'a> {
    planned: &'a PlannedCell,
    status: Status,
    failure: Option<FailureKind>,
    reason: Option<String>,
    placed: Option<&'a CellPlaced>,
}

impl<'a> Ended<'a> {
    /// Of a cell with its row in cells.csv.
    pub fn of(planned: &'a PlannedCell, status: Status, row: &Row, placed: Option<&'a CellPlaced>) -> Self {
        let failure = row.get("failure_kind").and_then(FailureKind::parse);
        Self { planned, status, failure, reason: row.get("reason").map(str::to_owned), placed }
    }

    /// The first operation that ran elsewhere, or nowhere.
    fn fallback(&self, ran: bool) -> Option<&'a Fallback> {
        self.placed?.fallbacks.iter().find(|op| op.unit.is_some() == ran)
    }

    /// A failure of the surroundings says nothing about the cell.
    fn was_tried(&self) -> bool {
        self.status != Status::Skipped && !self.failure.is_some_and(FailureKind::is_surroundings)
    }
}

/// The verdict over the cells of one combination, with the operation that it is about.
fn verdict<'a>(cells: &[&Ended<'a>]) -> (&'static str, Option<&'a Fallback>) {
    let fallback = |ran: bool| cells.iter().find_map(|cell| cell.fallback(ran));
    // What came to its end, with operations elsewhere; a launch that broke proves nothing by where its first operations ran.
    let ended = cells.iter().filter(|cell| matches!(cell.status, Status::Ok | Status::Unverified));
    if let Some(op) = ended.filter_map(|cell| cell.fallback(true)).find(|op| !op.op.is_empty()) {
        return ("runs-with-fallback", Some(op));
    }
    if cells.iter().any(|cell| cell.status == Status::Ok) {
        return ("runs", None);
    }
    if let Some(op) = fallback(true).filter(|op| op.op.is_empty()) {
        return ("fails", Some(op));
    }
    match fallback(false) {
        Some(op) => ("fails-at-op", Some(op)),
        None if cells.iter().any(|cell| cell.was_tried()) => ("fails", None),
        None => ("not-tried", None),
    }
}

/// The rows, in the order of the plan; `base` gives the columns that say where a cell was measured.
pub fn rows(cells: &[Ended<'_>], base: impl Fn(&PlannedCell) -> Row) -> Vec<Row> {
    let key = |ended: &Ended<'_>| {
        let cell = &ended.planned.cell;
        (cell.model.name.clone(), cell.quant, cell.backend.clone(), cell.unit)
    };
    let mut seen = BTreeSet::new();
    let firsts = cells.iter().filter(|ended| seen.insert(key(ended)));
    let row = |first: &Ended<'_>| {
        let same: Vec<&Ended<'_>> = cells.iter().filter(|ended| key(ended) == key(first)).collect();
        let (support, op) = verdict(&same);
        let unwell = same.iter().find(|ended| ended.status != Status::Ok);
        let mut row = base(first.planned);
        let (model, quant, backend, unit) = key(first);
        row.set("model", model).set("quant", quant).set("backend", backend).set("unit", unit).set("support", support);
        row.maybe("op", op.map(|op| &op.op)).maybe("op_type", op.and_then(|op| op.op_type.as_ref()));
        row.set("cells", same.len()).set("cells_ok", same.iter().filter(|ended| ended.status == Status::Ok).count());
        row.maybe("reason", op.and_then(|op| op.reason.as_ref()).or(unwell.and_then(|ended| ended.reason.as_ref())));
        row
    };
    firsts.map(row).collect()
}

#[cfg(test)]
mod tests {
    use bench_backend_api::Unit;

    use super::*;
    use crate::results::placement::tests::plan;

    fn ended<'a>(planned: &'a PlannedCell, status: Status, kind: &str, reason: &str, placed: Option<&'a CellPlaced>) -> Ended<'a> {
        let mut row = Row::default();
        row.set("failure_kind", kind).set("reason", reason);
        Ended::of(planned, status, &row, placed)
    }

    fn told(cells: &[Ended<'_>]) -> Vec<[String; 5]> {
        let columns = ["support", "op", "cells", "cells_ok", "reason"];
        rows(cells, |_| Row::default()).iter().map(|row| columns.map(|c| row.get(c).unwrap_or_default().to_owned())).collect()
    }

    #[test]
    fn the_verdict_is_over_all_cells_of_a_combination() {
        let plan = plan();
        let first = &plan.cells[0];
        let other = plan.cells.iter().find(|cell| cell.cell.backend != first.cell.backend).unwrap();
        let fell = |unit: Option<&str>| {
            let op =
                Fallback { op: "/x/Mod".to_owned(), unit: unit.map(str::to_owned), reason: Some("fmod".to_owned()), ..Fallback::default() };
            CellPlaced { asked: Unit::Npu, placed: Vec::new(), fallbacks: vec![op] }
        };
        let (elsewhere, nowhere, mut whole) = (fell(Some("cpu")), fell(None), fell(Some("cpu")));
        whole.fallbacks[0].op.clear();
        let (ok, failed, skipped, unverified) = (Status::Ok, Status::Failed, Status::Skipped, Status::Unverified);
        let cases = [
            (vec![ended(first, ok, "", "", None), ended(first, failed, "runtime", "too long", None)], ["runs", "", "2", "1", "too long"]),
            (vec![ended(first, unverified, "verify", "alarm", Some(&elsewhere))], ["runs-with-fallback", "/x/Mod", "1", "0", "fmod"]),
            (vec![ended(first, unverified, "verify", "alarm", Some(&whole))], ["fails", "", "1", "0", "fmod"]),
            (vec![ended(first, failed, "runtime", "no", Some(&nowhere))], ["fails-at-op", "/x/Mod", "1", "0", "fmod"]),
            (vec![ended(first, failed, "runtime", "crash", None)], ["fails", "", "1", "0", "crash"]),
            (vec![ended(first, unverified, "verify", "wrong tokens", None)], ["fails", "", "1", "0", "wrong tokens"]),
            (vec![ended(first, failed, "infra", "cable", None)], ["not-tried", "", "1", "0", "cable"]),
            (vec![ended(first, skipped, "", "no SDK", None)], ["not-tried", "", "1", "0", "no SDK"]),
        ];
        for (cells, expected) in cases {
            assert_eq!(told(&cells), [expected], "{cells:?}");
        }
        let two = [ended(first, ok, "", "", None), ended(other, skipped, "", "no SDK", None), ended(first, ok, "", "", None)];
        assert_eq!(told(&two), [["runs", "", "2", "2", ""], ["not-tried", "", "1", "0", "no SDK"]]);
    }
}
