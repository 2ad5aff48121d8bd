//! `phases.csv`: where the time of a load, of a prompt and of a decode step goes.

use bench_backend_api::Pass;
use bench_runner_protocol::Phase;

use super::{
    launches::{Record, Recorded},
    manifest::Manifest,
    schema::FORMAT_VERSION,
    tables::Row,
};
use crate::{
    analysis::phases::{REST, Stage, StageTimes, of_launch},
    run::{LoadState, events::Status, load_state, warmup},
    scenario::{Plan, PlannedCell},
    stats::Summary,
};

/// The rows of every cell, in the plan's order; launches that failed or were contradicted feed none.
pub fn rows(plan: &Plan, manifest: &Manifest, recorded: &Recorded) -> Vec<Row> {
    let mut rows = Vec::new();
    for (planned, pass) in plan.cells.iter().flat_map(|planned| [(planned, Pass::Measure), (planned, Pass::Profile)]) {
        let counted = |r: &&Record| r.cell == planned.id && r.pass == pass && r.status == Status::Ok;
        let mut stages: Vec<(&'static str, StageTimes)> = Vec::new();
        for record in recorded.launches.iter().map(|(_, record)| record).filter(counted) {
            let discarded = warmup(&plan.measure, pass, &record.parsed).discarded;
            let found = of_launch(&record.parsed, discarded, planned.cell.workload.prompt_tokens());
            stages.extend(found.into_iter().map(|times| (name(&times, record), times)));
        }
        for stage in ["load", "load_cold", "prefill", "decode"] {
            let launches: Vec<&StageTimes> = stages.iter().filter(|(name, _)| *name == stage).map(|(_, times)| times).collect();
            rows.extend(of_stage(&launches, || base(planned, pass, manifest, stage)));
        }
    }
    rows
}

/// A cold load is another stage than a warm one (rule R8).
fn name(times: &StageTimes, record: &Record) -> &'static str {
    let cold = || load_state(record.steps.first().and_then(|step| step.done.as_ref())).0 == LoadState::Cold;
    if times.stage == Stage::Load && cold() { "load_cold" } else { times.stage.as_str() }
}

fn base(planned: &PlannedCell, pass: Pass, manifest: &Manifest, stage: &str) -> Row {
    let mut row = Row::default();
    row.set("format_version", FORMAT_VERSION).set("run", &manifest.run).set("device", &manifest.device.name);
    row.maybe("device_class", manifest.cells.get(&planned.id).map(|c| c.device_class)).set("cell", &planned.id);
    row.set("backend", &planned.cell.backend).set("pass", pass).set("stage", stage);
    row
}

/// The parts of one stage over its launches.
fn of_stage(launches: &[&StageTimes], base: impl Fn() -> Row) -> Vec<Row> {
    // A launch that can't be split is no part beside the parts of those that can.
    let split: Vec<&StageTimes> = launches.iter().copied().filter(|times| times.pieces.len() > 1).collect();
    let launches = if split.is_empty() { launches } else { &split };
    let mut phases: Vec<&str> = Vec::new();
    for piece in launches.iter().flat_map(|times| &times.pieces) {
        if !phases.contains(&piece.phase.as_str()) {
            phases.push(&piece.phase);
        }
    }
    phases.sort_by_key(|phase| place(phase));
    let whole: f64 = launches.iter().map(|times| times.whole_us).sum();
    let one = |(i, phase): (usize, &str)| {
        let found: Vec<_> =
            launches.iter().filter_map(|times| times.pieces.iter().find(|p| p.phase == phase).map(|p| (*times, p))).collect();
        let summary = Summary::of(&found.iter().map(|(times, p)| p.us / 1e3 / times.units).collect::<Vec<_>>())?;
        let mut row = base();
        row.set("i", i).set("phase", phase).set("n", summary.n).number("ms", Some(summary.median));
        if summary.n > 1 {
            row.number("ms_lo", Some(summary.lo)).number("ms_hi", Some(summary.hi)).number("ms_coverage", Some(summary.coverage));
        }
        row.number("share", Some(found.iter().map(|(_, p)| p.us).sum::<f64>() / whole));
        row.maybe("method", found.first().map(|(_, p)| &p.method));
        Some(row)
    };
    phases.into_iter().enumerate().filter_map(one).collect()
}

/// In the order in which a program comes to them, parts of a part behind it, the rest at the end; equal ones stay as they are.
fn place(phase: &str) -> usize {
    let known = Phase::ALL.len();
    let top = phase.split('/').next().unwrap_or(phase);
    Phase::ALL.iter().position(|p| p.as_str() == top).unwrap_or(if top == REST { known + 1 } else { known })
}
