//! `bench plan SCENARIO`: the cells and the time, without running anything.

mod flash;
mod lacks;

use std::{io::IsTerminal, path::PathBuf, time::Duration};

use bench_backend_api::DeviceFacts;
use serde_json::json;

use self::{
    flash::flash,
    lacks::{Lack, lacks},
};
use super::{
    Format,
    exit::{Code, Failed},
};
use crate::{
    device, registry,
    runtimes::Cache,
    scenario::{AbError, Assumptions, Estimate, Filter, Plan, PlannedCell, Problems, Scenario, Side, estimate, pair},
    words::count,
};

/// Prints the cells and the time that a scenario will take, without running anything
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Scenario file
    scenario: PathBuf,
    /// Only these cells, for instance backend=genie,quant=w4a16
    #[arg(long, value_name = "KEY=VALUE,...")]
    only: Option<String>,
    /// How the plan is printed
    #[arg(long, value_enum, default_value_t = Format::Human)]
    format: Format,
}

/// Facts of the device that a scenario names, as far as they are known before it is asked and matter to a plan.
pub fn facts(scenario: &Scenario) -> DeviceFacts {
    let choice = &scenario.device;
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
        super::note(scenario.warnings.render(std::io::stderr().is_terminal()).trim_end());
    }
    Ok(scenario)
}

/// The plan of a scenario on a device.
pub fn of(scenario: &Scenario, facts: &DeviceFacts, only: Option<&str>) -> anyhow::Result<Plan> {
    let own = registry::commands(&scenario.commands);
    self::only(scenario.plan(&registry::with(&own), facts), only)
}

/// The cells of a plan that are wanted.
pub fn only(mut plan: Plan, only: Option<&str>) -> anyhow::Result<Plan> {
    if let Some(text) = only {
        let filter = Filter::parse(text).map_err(|e| super::usage(format!("--only: {e}")))?;
        if plan.retain(&filter) == 0 {
            return Err(Failed { code: Code::Nothing, message: format!("--only {text} selects none of the scenario's cells") }.into());
        }
    }
    Ok(plan)
}

/// A scenario, and the second side that its [ab] describes.
pub fn sides(mut scenario: Scenario) -> Vec<Scenario> {
    let second = scenario.ab.take();
    [Some(scenario), second.map(|b| *b)].into_iter().flatten().collect()
}

/// Brings the cells of two plans into pairs; says which have no partner.
pub fn paired(a: &mut Plan, b: &mut Plan) -> anyhow::Result<()> {
    let alone = pair(a, b).map_err(|e| {
        let code = if matches!(e, AbError::NoPair(_)) { Code::Nothing } else { Code::Scenario };
        Failed { code, message: e.to_string() }
    })?;
    for words in alone {
        super::note(&format!("left out, without a partner: {words}"));
    }
    Ok(())
}

/// Prints the problems of a scenario; the error to end with.
pub fn invalid(problems: &Problems) -> anyhow::Error {
    super::note(problems.render(std::io::stderr().is_terminal()).trim_end());
    let message = format!("{}: the scenario is invalid", problems.file);
    Failed { code: Code::Scenario, message }.into()
}

pub fn main(args: &Args) -> anyhow::Result<Code> {
    let scenarios = sides(scenario(&args.scenario)?);
    let plans = scenarios.iter().map(|scenario| of(scenario, &facts(scenario), args.only.as_deref()));
    let mut plans = plans.collect::<anyhow::Result<Vec<_>>>()?;
    if let [a, b] = &mut plans[..] {
        paired(a, b)?;
    }
    let own: Vec<_> = plans.iter().map(|plan| registry::commands(&plan.commands)).collect();
    let times = plans.iter().zip(&own).map(|(plan, own)| estimate(plan, &registry::with(own), &Assumptions::default()));
    let Some(time) = times.reduce(Estimate::and) else { return Ok(Code::Done) };
    let cells = || plans.iter().zip(Side::ALL).flat_map(|(plan, side)| plan.cells.iter().map(move |cell| (side, cell)));
    let (ab, plan) = (plans.len() > 1, &plans[0]);
    // Without a home folder nothing is installed that could be looked for.
    let cache = Cache::locate();
    let mut missing: Vec<Lack> = Vec::new();
    for ((plan, own), scenario) in plans.iter().zip(&own).zip(&scenarios) {
        let found = cache.as_ref().map_or_else(Vec::new, |cache| lacks(plan, &registry::with(own), &facts(scenario), cache));
        missing.extend(found.into_iter().filter(|lack| !missing.iter().any(|known| known.backend == lack.backend)).collect::<Vec<_>>());
    }
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
        Some(reason) => format!("{}  {}: {reason}", word("skip", side), cell.id),
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
        "{} to run, {} skipped; {}; expected {} (an estimate before anything is measured), worst {}\n",
        count(cells().filter(|(_, cell)| cell.skipped.is_none()).count(), "cell"),
        cells().filter(|(_, cell)| cell.skipped.is_some()).count(),
        count(time.launches, "launch"),
        seconds(time.expected),
        seconds(time.worst),
    ));
    super::print(&lines.join("\n"))?;
    Ok(Code::Done)
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
