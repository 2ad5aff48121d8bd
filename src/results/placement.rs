//! Where each cell's operations ran: `placement.csv`, `fallbacks.csv`, and the alarm when they ran elsewhere than asked. A cell with operations on
//! another unit feeds no figure: its times are of both.

use std::collections::{BTreeMap, BTreeSet};

use bench_backend_api::{Check, Failure, FailureKind, Fallback, Pass, Unit};

use super::{
    launches::{Record, Recorded},
    tables::Row,
};
use crate::{
    analysis::placement::{self, Placed},
    run::events::Status,
    scenario::Plan,
};

const HINT: &str = "fallbacks.csv names the operations; ask for unit hybrid if this is meant";

/// Where a cell's operations ran.
#[derive(Debug, Clone, PartialEq)]
pub struct CellPlaced {
    /// The unit asked for.
    pub asked: Unit,
    /// Counts and sums of its profile.
    pub placed: Vec<Placed>,
    /// Operations that did not run on the unit asked for, of all its launches.
    pub fallbacks: Vec<Fallback>,
}

impl CellPlaced {
    /// Operations on another unit than asked.
    fn elsewhere(&self) -> impl Iterator<Item = &Fallback> {
        self.fallbacks.iter().filter(|op| op.unit.is_some())
    }

    /// The alarm: how many operations ran elsewhere, and their share where that is known.
    fn alarm(&self) -> Option<String> {
        let first = self.elsewhere().next()?;
        let name = |op: &Fallback| if op.op.is_empty() { "the whole model".to_owned() } else { op.op.clone() };
        let (asked, unit, n) = (self.asked, first.unit.as_deref().unwrap_or_default(), self.elsewhere().count());
        let share =
            self.asked_share().map(|share| format!("; {:.1} % of the profile is on the {asked}", 100.0 * share)).unwrap_or_default();
        let others = if n > 1 { format!(" and {} others", n - 1) } else { String::new() };
        Some(format!("{asked} asked, {} ran on the {unit}{others}{share}", name(first)))
    }

    /// Share of the time or cycles that is on the unit asked for, the lowest of its phases; nothing where several were asked for.
    fn asked_share(&self) -> Option<f64> {
        let mut phases: BTreeMap<(&str, &str, &str), f64> = BTreeMap::new();
        // What nobody says of a unit is on none.
        for (row, share) in self.placed.iter().filter(|row| row.unit.is_some()).filter_map(|row| Some((row, row.share?))) {
            let here = row.unit.as_deref() == Some(self.asked.as_str());
            *phases.entry((&row.phase, &row.method, &row.value_unit)).or_default() += if here { share } else { 0.0 };
        }
        // Cycles and times are no parts of one whole.
        let kinds: BTreeSet<(&str, &str)> = phases.keys().map(|(phase, method, _)| (*phase, *method)).collect();
        if kinds.len() < phases.len() {
            return None;
        }
        phases.into_values().reduce(f64::min).filter(|_| self.asked != Unit::Hybrid)
    }
}

/// Whether what a launch says of its operations is a profile of this model: it is when all that is wrong with it is where they ran.
pub fn is_profile(record: &Record) -> bool {
    let elsewhere = |r: &Record| {
        let of = |c: Check| c != Check::Contradicted;
        r.status == Status::Unverified && r.checks.as_ref().is_some_and(|checks| of(checks.count) && of(checks.tokens))
    };
    record.pass == Pass::Profile && (record.status == Status::Ok || elsewhere(record))
}

/// Looks at every cell with a profile or a fallback. Launches of one with operations on another unit than asked become unverified.
pub fn check(recorded: &mut Recorded, plan: &Plan) -> BTreeMap<String, CellPlaced> {
    let mut found = BTreeMap::new();
    for planned in &plan.cells {
        let asked = planned.cell.unit;
        let launches = || recorded.launches.iter().map(|(_, r)| r).filter(|r| r.cell == planned.id);
        let placed = launches().find(|r| is_profile(r)).map(|r| placement::placement(&r.parsed.layers)).unwrap_or_default();
        let mut known = BTreeSet::new();
        // Where all went well, something ran every operation.
        let happened = |op: &Fallback, r: &Record| op.unit.is_some() || r.status != Status::Ok;
        let told = launches().flat_map(|r| placement::fallbacks(asked, &r.parsed).into_iter().filter(move |op| happened(op, r)));
        let mut fallbacks: Vec<Fallback> = Vec::new();
        for op in told {
            if known.insert((op.op.clone(), op.unit.clone())) {
                fallbacks.push(op);
            } else if let Some(first) = fallbacks.iter_mut().find(|first| (&first.op, &first.unit) == (&op.op, &op.unit)) {
                // One launch names the operation, another one says why.
                first.op_type = first.op_type.take().or(op.op_type);
                first.reason = first.reason.take().or(op.reason);
            }
        }
        if placed.is_empty() && fallbacks.is_empty() {
            continue;
        }
        let cell = CellPlaced { asked, placed, fallbacks };
        if let Some(alarm) = cell.alarm() {
            for (_, record) in recorded.launches.iter_mut().filter(|(_, r)| r.cell == planned.id && r.status == Status::Ok) {
                record.status = Status::Unverified;
                record.failure = Some(Failure { kind: FailureKind::Verify, message: alarm.clone(), hint: Some(HINT.to_owned()) });
                if let Some(checks) = &mut record.checks {
                    (checks.unit, checks.unit_found) = (Check::Contradicted, Some(Unit::Hybrid.as_str().to_owned()));
                }
            }
        }
        found.insert(planned.id.clone(), cell);
    }
    found
}

/// The columns of a cell.
pub fn cell(row: &mut Row, placed: Option<&CellPlaced>) {
    let Some(cell) = placed else { return };
    // Two profiles of one graph would count its operations twice.
    let method = cell.placed.first().map(|row| row.method.as_str());
    let of_method = || cell.placed.iter().filter(|row| Some(row.method.as_str()) == method);
    for (column, unit) in [("ops_npu", "npu"), ("ops_gpu", "gpu"), ("ops_cpu", "cpu")] {
        let known = of_method().any(|row| row.unit.is_some());
        let ops: Option<usize> = of_method().filter(|row| row.unit.as_deref() == Some(unit)).map(|row| row.ops).sum();
        row.maybe(column, ops.filter(|_| known));
    }
    row.maybe("ops_folded", method.map(|_| of_method().map(|row| row.folded).sum::<usize>()));
    row.number("asked_unit_share", cell.asked_share()).maybe("placement_method", method);
    row.maybe("placement_alarm", cell.alarm());
}

/// The rows of one cell in `placement.csv`, each made of `base`.
pub fn rows(cell: &CellPlaced, base: &Row) -> Vec<Row> {
    let row = |placed: &Placed| {
        let mut row = base.clone();
        row.set("phase", &placed.phase).set("unit_requested", cell.asked).maybe("unit", placed.unit.as_ref()).maybe("ops", placed.ops);
        row.set("ops_folded", placed.folded).number("value", placed.value).set("value_unit", &placed.value_unit);
        row.number("share", placed.share).number("accounted", placed.accounted).set("method", &placed.method);
        row
    };
    cell.placed.iter().map(row).collect()
}

/// The rows of one cell in `fallbacks.csv`, each made of `base`.
pub fn fallback_rows(cell: &CellPlaced, base: &Row) -> Vec<Row> {
    let row = |op: &Fallback| {
        let mut row = base.clone();
        row.set("unit_requested", cell.asked).set("op", &op.op).maybe("op_type", op.op_type.as_ref()).maybe("unit", op.unit.as_ref());
        row.maybe("reason", op.reason.as_ref()).set("source", &op.source);
        row
    };
    cell.fallbacks.iter().map(row).collect()
}

#[cfg(test)]
pub(super) mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// A launch in which everything went well, with what is said of its operations.
    pub fn launch(cell: &str, pass: &str, layers: &Value, fallbacks: &Value) -> (std::path::PathBuf, Record) {
        let checks = json!({"count": "confirmed", "tokens": "confirmed", "unit": "confirmed", "token_agreement": 1.0, "unit_found": "npu", "reasons": []});
        let record = json!({"format_version": 1, "cell": cell, "pass": pass, "launch": 0, "block": 0, "segment": 0, "status": "ok",
            "failure": null, "checks": checks, "steps": [],
            "parsed": {"load_ns": null, "unit_reported": null, "queries": [], "layers": layers, "fallbacks": fallbacks, "notes": {}, "warnings": []}});
        (std::path::PathBuf::new(), serde_json::from_value(record).unwrap())
    }

    fn op(name: &str, phase: &str, unit: &str, value: f64) -> Value {
        json!({"graph": "", "phase": phase, "index": 0, "name": name, "op_type": null, "unit": unit, "value": value, "value_unit": "us", "count": 1, "method": "trace"})
    }

    /// The committed example's plan: its first cells ask for the NPU.
    pub fn plan() -> Plan {
        Plan::from_toml(include_str!("../../results/example-pc/plan.toml")).unwrap()
    }

    fn columns(placed: Option<&CellPlaced>) -> Vec<String> {
        let mut row = Row::default();
        cell(&mut row, placed);
        let of = ["ops_npu", "ops_gpu", "ops_cpu", "ops_folded", "asked_unit_share", "placement_method", "placement_alarm"];
        of.map(|column| row.get(column).unwrap_or_default().to_owned()).to_vec()
    }

    #[test]
    fn one_operation_of_four_elsewhere_is_an_alarm() {
        let plan = plan();
        let (mixed, whole) = (&plan.cells[0].id, &plan.cells[1].id);
        assert_eq!((plan.cells[0].cell.unit, plan.cells[1].cell.unit), (Unit::Npu, Unit::Npu));
        // 30 of 40 us of the prefill and all of the decode are the NPU's.
        let layers = json!([
            op("a", "prefill", "npu", 30.0),
            op("softmax", "prefill", "cpu", 10.0),
            op("a", "decode", "npu", 5.0),
            op("b", "decode", "npu", 0.0)
        ]);
        let npu = json!([op("a", "prefill", "npu", 30.0)]);
        let none = json!([]);
        let launches = vec![
            launch(mixed, "measure", &none, &none),
            launch(mixed, "profile", &layers, &none),
            launch(whole, "measure", &none, &none),
            launch(whole, "profile", &npu, &none),
        ];
        let mut recorded = Recorded { launches, ..Recorded::default() };
        let found = check(&mut recorded, &plan);
        let statuses: Vec<Status> = recorded.launches.iter().map(|(_, r)| r.status).collect();
        assert_eq!(statuses, [Status::Unverified, Status::Unverified, Status::Ok, Status::Ok]);
        let of_mixed = &recorded.launches[0].1;
        assert_eq!(of_mixed.checks.as_ref().map(|c| (c.unit, c.unit_found.as_deref())), Some((Check::Contradicted, Some("hybrid"))));
        // What ran elsewhere is still a profile of this model; what generated wrong tokens is not.
        assert!(is_profile(&recorded.launches[1].1) && !is_profile(of_mixed));
        let mut wrong = recorded.launches[1].1.clone();
        wrong.checks.as_mut().unwrap().tokens = Check::Contradicted;
        assert!(!is_profile(&wrong));
        let alarm = "npu asked, softmax ran on the cpu; 75.0 % of the profile is on the npu";
        assert_eq!(columns(found.get(mixed)), ["3", "0", "1", "0", "0.75", "trace", alarm]);
        assert_eq!(of_mixed.failure.as_ref().map(|f| f.message.as_str()), Some(alarm));
        assert_eq!(columns(found.get(whole)), ["1", "0", "0", "0", "1", "trace", ""]);
        assert_eq!(columns(None), [""; 7]);
        let rows = rows(&found[mixed], &Row::default());
        let row = |row: &Row| ["phase", "unit", "ops", "value", "share"].map(|c| row.get(c).unwrap_or_default().to_owned());
        assert_eq!(
            rows.iter().map(row).collect::<Vec<_>>(),
            [["prefill", "cpu", "1", "10", "0.25"], ["prefill", "npu", "1", "30", "0.75"], ["decode", "npu", "2", "5", "1"]]
        );
    }

    #[test]
    fn what_a_log_tells_without_a_profile() {
        let plan = plan();
        let id = &plan.cells[0].id;
        let whole = json!([{"op": "", "op_type": null, "unit": "cpu", "reason": "Can't Find type=3 backend", "source": "log"}]);
        // The same of every launch is one thing.
        let launches = vec![launch(id, "measure", &json!([]), &whole), launch(id, "measure", &json!([]), &whole)];
        let mut recorded = Recorded { launches, ..Recorded::default() };
        let found = check(&mut recorded, &plan);
        assert_eq!(columns(found.get(id)), ["", "", "", "", "", "", "npu asked, the whole model ran on the cpu"]);
        let row = fallback_rows(&found[id], &Row::default());
        assert_eq!((row.len(), row[0].get("op"), row[0].get("reason")), (1, None, Some("Can't Find type=3 backend")));
        // An operation that nobody ran is no alarm: the launch has failed already.
        let nobody = json!([{"op": "x", "op_type": "Mod", "unit": null, "reason": null, "source": "log"}]);
        let mut recorded = Recorded { launches: vec![launch(id, "measure", &json!([]), &nobody)], ..Recorded::default() };
        assert_eq!(check(&mut recorded, &plan).get(id), None, "all went well, so that something ran it");
        recorded.launches[0].1.status = Status::Failed;
        let found = check(&mut recorded, &plan);
        assert_eq!((found[id].alarm(), found[id].fallbacks.len()), (None, 1));
    }
}
