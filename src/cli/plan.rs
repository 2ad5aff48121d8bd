//! `bench plan SCENARIO`: the cells and the time, without running anything.

mod flash;
mod lacks;

use std::{io::IsTerminal, path::PathBuf, time::Duration};

use bench_backend_api::DeviceFacts;
use bench_backend_command::CommandBackend;
use serde_json::json;

use self::{
    flash::flash,
    lacks::{Lack, lacks},
};
use super::{
    Format,
    exit::{Code, Failed},
    run::Wanted,
};
use crate::{
    device, registry,
    run::NO_PARTNER,
    runtimes::Cache,
    safe::{printable, printable_lines},
    scenario::{AbError, Assumptions, DeviceChoice, Estimate, Filter, Plan, PlannedCell, Problems, Scenario, Side, estimate, pair},
    words::count,
};

/// Prints the cells and the time that a scenario will take, without running anything
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Scenario file
    #[arg(required_unless_present = "ab")]
    scenario: Option<PathBuf>,
    /// Two scenarios, or the folders of two earlier runs, as `bench run --ab` takes them
    #[arg(long, num_args = 2, value_names = ["A", "B"], conflicts_with = "scenario")]
    ab: Option<Vec<PathBuf>>,
    /// Only these cells, for instance backend=genie,quant=w4a16; of an A/B run those of either side
    #[arg(long, value_name = "KEY=VALUE,...")]
    only: Option<String>,
    /// How the plan is printed
    #[arg(long, value_enum, default_value_t = Format::Human)]
    format: Format,
}

/// Facts of the device that is meant, as far as they are known before it is asked and matter to a plan.
pub fn facts(choice: &DeviceChoice) -> DeviceFacts {
    if choice.local {
        device::local_facts(choice.soc_model, choice.htp_arch)
    } else {
        device::phone_facts(choice.soc_model, choice.htp_arch)
    }
}

/// Loads a scenario; problems are printed here.
pub fn scenario(path: &std::path::Path) -> anyhow::Result<Scenario> {
    let scenario = super::load(path).map_err(|problems| invalid(&problems))?;
    if !scenario.warnings.problems.is_empty() {
        super::note_problems(&scenario.warnings, std::io::stderr().is_terminal());
    }
    Ok(scenario)
}

/// The plan of a scenario on a device.
pub fn of(scenario: &Scenario, facts: &DeviceFacts) -> Plan {
    let own = registry::commands(&scenario.commands);
    scenario.plan(&registry::with(&own), facts)
}

/// Leaves the cells of a plan that are wanted. Two plans are brought into pairs, unless they are the sides of a run that goes on; it says which
/// cells have no partner. Where only one side has what is asked for (ids differ where the sides do), it takes its partners along.
pub fn narrow(plans: &mut [Plan], only: Option<&str>) -> anyhow::Result<()> {
    let filter = only.map(Filter::parse).transpose().map_err(|e| super::usage(format!("--only: {e}")))?.unwrap_or_default();
    let everywhere = plans.iter().all(|plan| plan.cells.iter().any(|cell| filter.selects(cell)));
    if everywhere || plans.len() == 1 {
        for plan in plans.iter_mut() {
            plan.retain(&filter);
        }
    }
    if let [a, b] = plans {
        if a.ab.is_none() {
            paired(a, b)?;
        }
        let wanted: Vec<bool> = a.cells.iter().zip(&b.cells).map(|(a, b)| filter.selects(a) || filter.selects(b)).collect();
        for plan in [a, b] {
            let mut wanted = wanted.iter();
            plan.cells.retain(|_| wanted.next() == Some(&true));
        }
    }
    match only.filter(|_| plans.iter().any(|plan| plan.cells.is_empty())) {
        Some(text) => Err(Failed { code: Code::Nothing, message: format!("--only {text} selects none of the scenario's cells") }.into()),
        None => Ok(()),
    }
}

/// A scenario, and the second side that its [ab] describes.
pub fn sides(mut scenario: Scenario) -> Vec<Scenario> {
    let second = scenario.ab.take();
    [Some(scenario), second.map(|b| *b)].into_iter().flatten().collect()
}

/// Brings the cells of two plans into pairs; says which have no partner.
fn paired(a: &mut Plan, b: &mut Plan) -> anyhow::Result<()> {
    let alone = pair(a, b).map_err(|e| {
        let code = if matches!(e, AbError::NoPair(_)) { Code::Nothing } else { Code::Scenario };
        Failed { code, message: e.to_string() }
    })?;
    for words in alone {
        super::note(&printable(&format!("left out, without a partner: {words}")));
    }
    Ok(())
}

/// Prints the problems of a scenario; the error to end with.
pub fn invalid(problems: &Problems) -> anyhow::Error {
    super::note_problems(problems, std::io::stderr().is_terminal());
    let message = format!("{}: the scenario is invalid", problems.file);
    Failed { code: Code::Scenario, message }.into()
}

pub fn main(args: &Args) -> anyhow::Result<Code> {
    let wanted = Wanted::named(args.scenario.as_deref(), args.ab.as_deref())?;
    let facts = facts(wanted.device()?);
    let mut plans = wanted.planned(&facts, args.only.as_deref())?;
    let own: Vec<_> = plans.iter().map(|plan| registry::commands(&plan.commands)).collect();
    let missing = skip_missing(&mut plans, &own, &facts);
    let times = plans.iter().zip(&own).map(|(plan, own)| estimate(plan, &registry::with(own), &Assumptions::default()));
    let Some(time) = times.reduce(Estimate::and) else { return Ok(Code::Done) };
    let cells = || plans.iter().zip(Side::ALL).flat_map(|(plan, side)| plan.cells.iter().map(move |cell| (side, cell)));
    let (ab, plan) = (plans.len() > 1, &plans[0]);
    let staged = (!plan.device.local).then(|| flash(&plans));
    if args.format == Format::Json {
        let side = |side: Side| ab.then_some(side);
        let cells: Vec<_> = cells().map(|(of, c)| json!({"cell": c.id, "skipped": c.skipped, "side": side(of)})).collect();
        let value = json!({"scenario": plan.name, "seed": plan.seed, "cells": cells, "launches": time.launches,
            "soaks": soaks(plan), "missing": missing, "staged_bytes": staged.map(|s| s.files + s.made),
            "expected_s": time.expected.as_secs_f64(), "worst_s": time.worst.as_secs_f64()});
        super::print(&format!("{}\n", serde_json::to_string_pretty(&value)?))?;
        return Ok(Code::Done);
    }
    let word = |verb: &str, side: Side| if ab { format!("{verb} {}", side.as_str()) } else { verb.to_owned() };
    let line = |(side, cell): (Side, &PlannedCell)| match &cell.skipped {
        None => format!("{}   {}", word("run", side), cell.id),
        // What is missing of it is said once, below.
        Some(reason) => {
            let reason = if missing.iter().any(|lack| lack.why == *reason) { "its backend is missing" } else { reason };
            format!("{}  {}: {reason}", word("skip", side), cell.id)
        }
    };
    let mut lines: Vec<String> = cells().map(line).collect();
    lines.extend(missing.iter().map(|lack| format!("{}: its cells are skipped unless this is mended: {}", lack.backend, lack.why)));
    lines.extend(staged.map(|s| {
        let made = if s.made > 0 { format!(", about {} of them of models that are made first", megabytes(s.made)) } else { String::new() };
        format!("models take {} on the device's flash{made}; what is there already is not sent again", megabytes(s.files + s.made))
    }));
    lines.extend(plan.no_soak().map(str::to_owned));
    if let (Some(soak), soaked @ 1..) = (&plan.soak, time.soaks) {
        let [usual, most] = soak.disk_bytes(plan.telemetry_rate_hz).map(|bytes| bytes.div_ceil(1_000_000));
        let duration = seconds(Duration::from_millis(soak.duration_ms));
        lines.push(format!(
            "{} of {duration} after them; the evidence of one takes about {usual} MB on the device at 20 tokens a second, and never more than {most} MB",
            count(soaked, "soak")
        ));
    }
    lines.push(format!(
        "{} to run, {} skipped; {}; expected {} (an estimate before anything is measured), worst {}",
        count(cells().filter(|(_, cell)| cell.skipped.is_none()).count(), "cell"),
        cells().filter(|(_, cell)| cell.skipped.is_some()).count(),
        count(time.launches, "launch"),
        seconds(time.expected),
        seconds(time.worst),
    ));
    if let Some(budget) = plan.measure.budget_ms.map(Duration::from_millis).filter(|budget| time.worst > *budget) {
        lines.push(format!(
            "worst is over the budget of {}, which ends the measurement only after the block in which it is spent: every launch of that block may hang",
            seconds(budget)
        ));
    }
    super::say(&(printable_lines(&lines.join("\n")) + "\n"))?;
    Ok(Code::Done)
}

/// Skips the cells that a run which began now would skip as well: those of backends that are missing, and of two sides their partners. So both count
/// the same. Returns what is missing.
fn skip_missing(plans: &mut [Plan], own: &[Vec<CommandBackend>], facts: &DeviceFacts) -> Vec<Lack> {
    // Without a home folder nothing is installed that could be looked for.
    let Some(cache) = Cache::locate() else { return Vec::new() };
    let mut missing: Vec<Lack> = Vec::new();
    for (plan, own) in plans.iter_mut().zip(own) {
        for lack in lacks(plan, &registry::with(own), facts, &cache) {
            let cells = plan.cells.iter_mut().filter(|planned| planned.skipped.is_none() && planned.cell.backend == lack.backend);
            cells.for_each(|planned| planned.skipped = Some(lack.why.clone()));
            if !missing.iter().any(|known| known.backend == lack.backend) {
                missing.push(lack);
            }
        }
    }
    if let [a, b] = plans {
        for (a, b) in a.cells.iter_mut().zip(&mut b.cells) {
            if a.skipped.is_some() != b.skipped.is_some() {
                let alone = if a.skipped.is_some() { b } else { a };
                alone.skipped = Some(NO_PARTNER.to_owned());
            }
        }
    }
    missing
}

fn soaks(plan: &Plan) -> serde_json::Value {
    let cells: Vec<&str> = plan.soaked().into_iter().map(|place| plan.cells[place].id.as_str()).collect();
    let disk = plan.soak.as_ref().map(|s| s.disk_bytes(plan.telemetry_rate_hz));
    json!({"cells": cells, "duration_s": plan.soak.as_ref().map(|s| s.duration_ms as f64 / 1e3),
        "disk_bytes_usual": disk.map(|d| d[0]), "disk_bytes_most": disk.map(|d| d[1])})
}

fn megabytes(bytes: u64) -> String {
    format!("{} MB", bytes.div_ceil(1_000_000))
}

fn seconds(time: Duration) -> humantime::FormattedDuration {
    humantime::format_duration(Duration::from_secs(time.as_secs_f64().ceil() as u64))
}
