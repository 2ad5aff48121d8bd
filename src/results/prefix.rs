//! Rule R3 over the launches of a run: a cell whose prompts were not prefilled whole feeds no figure.

use std::collections::BTreeMap;

use bench_backend_api::{Check, Failure, FailureKind, Pass};

use super::launches::{Record, Recorded};
use crate::{
    analysis::{Early, LEAST_SHARE, Prefix, prefix},
    run::{events::Status, query_metrics, warmup},
    scenario::Plan,
};

const HINT: &str = "switch the runtime's prefix cache off, or have the KV cache emptied before each query; if the first measured query is still \
                    a slow one, discard more of them (`warmup` of [measure])";

/// The check of each cell that has launches to judge. Launches of a cell with a reused prefix become unverified.
pub fn check(recorded: &mut Recorded, plan: &Plan) -> BTreeMap<String, Check> {
    let mut checks = BTreeMap::new();
    for cell in &plan.cells {
        let counted = |r: &Record| r.cell == cell.id && r.pass == Pass::Measure && r.status == Status::Ok;
        let launches: Vec<Vec<(u32, f64)>> = recorded
            .launches
            .iter()
            .filter(|(_, r)| counted(r))
            .map(|(_, r)| warm(r, warmup(&plan.measure, r.pass, &r.parsed).discarded))
            .collect();
        if launches.is_empty() {
            continue;
        }
        let (check, early) = match prefix(&launches) {
            Prefix::Whole => (Check::Confirmed, None),
            Prefix::Unknown => (Check::NotCheckable, None),
            Prefix::Suspected(early) => (Check::NotCheckable, Some(early)),
            Prefix::Reused(early) => (Check::Contradicted, Some(early)),
        };
        checks.insert(cell.id.clone(), check);
        let Some(words) = early.map(words) else { continue };
        if check == Check::NotCheckable {
            recorded.warnings.push(format!("{}: {words}; three launches can tell", cell.id));
            continue;
        }
        for (_, record) in recorded.launches.iter_mut().filter(|(_, r)| counted(r)) {
            record.status = Status::Unverified;
            let message = format!("prefix reused: {words}");
            record.failure = Some(Failure { kind: FailureKind::Verify, message, hint: Some(HINT.to_owned()) });
        }
    }
    checks
}

/// Number and TTFT of each warm query. A mean of several is none.
fn warm(record: &Record, warmup: u32) -> Vec<(u32, f64)> {
    let timed = record.parsed.queries.iter().filter(|q| q.query >= warmup && q.aggregate_n.is_none_or(|n| n == 1));
    timed.filter_map(|q| Some((q.query, query_metrics(&record.parsed, q).ttft_ms?))).collect()
}

fn words(early: Early) -> String {
    let Early { query, launches, of, share } = early;
    format!(
        "query {query} has its first token after {share:.2} of the TTFT of the first warm query, under {LEAST_SHARE} in {launches} of {of} launches"
    )
}
