//! `bench plan SCENARIO`: the cells and the time, without running anything.

use std::{io::IsTerminal, path::PathBuf, time::Duration};

use bench_backend_api::DeviceFacts;
use serde_json::json;

use super::{
    Format,
    exit::{Code, Failed},
};
use crate::{
    device, registry,
    scenario::{Assumptions, Filter, Plan, Problems, Scenario, estimate},
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
    let mut plan = scenario.plan(&registry::with(&own), facts);
    if let Some(text) = only {
        let filter = Filter::parse(text).map_err(|e| super::usage(format!("--only: {e}")))?;
        if plan.retain(&filter) == 0 {
            return Err(Failed { code: Code::Nothing, message: format!("--only {text} selects none of the scenario's cells") }.into());
        }
    }
    Ok(plan)
}

/// Prints the problems of a scenario; the error to end with.
pub fn invalid(problems: &Problems) -> anyhow::Error {
    super::note(problems.render(std::io::stderr().is_terminal()).trim_end());
    let message = format!("{}: the scenario is invalid", problems.file);
    Failed { code: Code::Scenario, message }.into()
}

pub fn main(args: &Args) -> anyhow::Result<Code> {
    let scenario = scenario(&args.scenario)?;
    let plan = of(&scenario, &facts(&scenario), args.only.as_deref())?;
    let own = registry::commands(&plan.commands);
    let time = estimate(&plan, &registry::with(&own), &Assumptions::default());
    if args.format == Format::Json {
        let cells: Vec<_> = plan.cells.iter().map(|c| json!({"cell": c.id, "skipped": c.skipped})).collect();
        let value = json!({"scenario": plan.name, "seed": plan.seed, "cells": cells, "launches": time.launches,
            "soaks": soaks(&plan),
            "expected_s": time.expected.as_secs_f64(), "worst_s": time.worst.as_secs_f64()});
        super::print(&format!("{}\n", serde_json::to_string_pretty(&value)?))?;
        return Ok(Code::Done);
    }
    let mut lines: Vec<String> = plan
        .cells
        .iter()
        .map(|cell| match &cell.skipped {
            None => format!("run   {}", cell.id),
            Some(reason) => format!("skip  {}: {reason}", cell.id),
        })
        .collect();
    lines.extend(plan.no_soak().map(str::to_owned));
    if let (Some(soak), cells @ 1..) = (&plan.soak, time.soaks) {
        let [usual, most] = soak.disk_bytes(plan.telemetry_rate_hz).map(|bytes| bytes.div_ceil(1_000_000));
        let duration = seconds(Duration::from_millis(soak.duration_ms));
        lines.push(format!(
            "{cells} soaks of {duration} after them; the evidence of one takes about {usual} MB on the device at 20 tokens a second, and never more than {most} MB"
        ));
    }
    lines.push(format!(
        "{} cells to run, {} skipped; {} launches; expected {} (an estimate before anything is measured), worst {}\n",
        plan.runnable().len(),
        plan.cells.len() - plan.runnable().len(),
        time.launches,
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

fn seconds(time: Duration) -> humantime::FormattedDuration {
    humantime::format_duration(Duration::from_secs(time.as_secs_f64().ceil() as u64))
}
