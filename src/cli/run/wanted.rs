//! What the command line asks for: a scenario, two as the sides of an A/B run, or the stored plans of a run that goes on.

use std::{fs, path::Path};

use bench_backend_api::DeviceFacts;

use super::Args;
use crate::{
    cli::{
        exit::{Code, Failed},
        load, plan, usage,
    },
    results::folder::{Folder, FolderError},
    scenario::{DeviceChoice, Plan, Power, Scenario},
};

/// One or two: of an A/B run side A first.
pub enum Wanted {
    Scenarios(Vec<Scenario>),
    Plans(Vec<Plan>),
}

impl Wanted {
    /// What is wanted, and the folders that are there of it.
    pub fn of(args: &Args) -> anyhow::Result<(Self, Vec<Folder>)> {
        if let Some(run) = &args.resume {
            let (plans, folders) = resume(run, args.scenario.as_deref())?;
            return Ok((Self::Plans(plans), folders));
        }
        let scenarios = match (&args.ab, &args.scenario) {
            (Some(files), _) => files.iter().map(|file| plan::scenario(file)).collect::<anyhow::Result<Vec<_>>>()?,
            (None, Some(file)) => vec![plan::scenario(file)?],
            (None, None) => return Err(usage("name a scenario, two of them after --ab, or a run to --resume")),
        };
        if args.ab.is_some() && scenarios.iter().any(|s| s.ab.is_some()) {
            return Err(usage("one of these scenarios has an [ab] of its own: run it alone, or take that section out"));
        }
        Ok((Self::Scenarios(scenarios.into_iter().flat_map(plan::sides).collect()), Vec::new()))
    }

    /// The devices that are meant.
    pub fn device(&self) -> anyhow::Result<&DeviceChoice> {
        let device = match self {
            Self::Scenarios(all) => all.first().map(|scenario| &scenario.device),
            Self::Plans(all) => all.first().map(|plan| &plan.device),
        };
        device.ok_or_else(|| usage("there is nothing to run"))
    }

    /// The plans for one device.
    pub fn plans(&self, args: &Args, facts: &DeviceFacts, chosen: &DeviceChoice) -> anyhow::Result<Vec<Plan>> {
        let mut plans = match self {
            Self::Scenarios(all) => all.iter().map(|s| plan::of(s, facts, args.only.as_deref())).collect::<anyhow::Result<Vec<_>>>()?,
            Self::Plans(all) => all.clone(),
        };
        if let [a, b] = &mut plans[..]
            && a.ab.is_none()
        {
            plan::paired(a, b)?;
        }
        for plan in &mut plans {
            plan.device = chosen.clone();
            if args.on_battery {
                let power = plan.power.get_or_insert_with(Power::by_hand);
                if !power.usb_off.is_empty() {
                    return Err(usage("--on-battery, while the scenario's [power] usb-off cuts the cable: one of them"));
                }
                power.on_battery = true;
            }
            if plan.cells.is_empty() {
                return Err(Failed { code: Code::Nothing, message: "the scenario has no cell".to_owned() }.into());
            }
        }
        Ok(plans)
    }
}

/// The stored plans of a run; a scenario named beside it must be the one that the run was made from.
fn resume(run: &Path, scenario: Option<&Path>) -> anyhow::Result<(Vec<Plan>, Vec<Folder>)> {
    let (plan, folder) = stored(run)?;
    if let Some(path) = scenario {
        let now = load(path).map_err(|problems| bad(run, &format!("{} problems in {}", problems.problems.len(), problems.file)))?;
        if now.sha256 != plan.scenario_sha256 {
            let words = format!("{} is not the scenario of this run any more: leave it out to use the stored plan", path.display());
            return Err(bad(run, &words));
        }
    }
    let Some(ab) = &plan.ab else { return Ok((vec![plan], vec![folder])) };
    let (partner, of_partner) = stored(&run.with_file_name(&ab.partner)).map_err(|e| match e.downcast_ref::<FolderError>() {
        Some(FolderError::Damaged { .. }) => bad(run, &format!("it is one side of an A/B run, and the other can't be used: {e}")),
        _ => e,
    })?;
    let mut sides = [(plan, folder), (partner, of_partner)];
    sides.sort_by_key(|(plan, _)| plan.ab.as_ref().map(|ab| ab.side));
    Ok(sides.into_iter().unzip())
}

fn bad(run: &Path, words: &str) -> anyhow::Error {
    Failed { code: Code::Usage, message: format!("{}: {words}", run.join("plan.toml").display()) }.into()
}

fn stored(run: &Path) -> anyhow::Result<(Plan, Folder)> {
    let folder = Folder::open(run.to_path_buf())?;
    let text = fs::read_to_string(run.join("plan.toml")).map_err(|e| bad(run, &e.to_string()))?;
    Ok((Plan::from_toml(&text).map_err(|e| bad(run, &e.to_string()))?, folder))
}
