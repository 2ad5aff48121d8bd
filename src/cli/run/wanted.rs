//! What the command line asks for: a scenario, two as the sides of an A/B run, or the stored plans of earlier runs.

use std::{
    fs,
    path::{Path, PathBuf},
};

use bench_backend_api::DeviceFacts;

use super::Args;
use crate::{
    cli::{
        exit::{Code, Failed},
        language, load, plan, usage,
    },
    results::{
        folder::{Folder, FolderError},
        manifest::Manifest,
    },
    scenario::{DeviceChoice, Plan, Power, Scenario, level},
};

/// One or two sides: of an A/B run side A first.
pub struct Wanted(Vec<Source>);

/// Where a plan comes from.
enum Source {
    Scenario(Box<Scenario>),
    /// Of a run that goes on, or as it stands.
    Plan(Box<Plan>),
    /// Of an earlier run, to be measured again; with what that run was made with.
    Again(Box<Plan>, Box<Manifest>),
}

impl Wanted {
    /// What is wanted, and the folders that are there of it.
    pub fn of(args: &Args) -> anyhow::Result<(Self, Vec<Folder>)> {
        if let Some(run) = &args.resume {
            let (plans, folders) = resume(run, args.scenario.as_deref())?;
            return Ok((Self::of_plans(plans), folders));
        }
        Ok((Self::named(args.scenario.as_deref(), args.ab.as_deref())?, Vec::new()))
    }

    /// A scenario, or the two after `--ab`.
    pub fn named(scenario: Option<&Path>, ab: Option<&[PathBuf]>) -> anyhow::Result<Self> {
        let sides = match (ab, scenario) {
            (Some(paths), _) => paths.iter().map(|path| side(path)).collect::<anyhow::Result<Vec<_>>>()?,
            (None, Some(file)) => plan::sides(plan::scenario(file)?).into_iter().map(|s| Source::Scenario(Box::new(s))).collect(),
            (None, None) => return Err(usage("name a scenario, two of them after --ab, or a run to --resume")),
        };
        Ok(Self(sides))
    }

    /// These plans.
    pub fn of_plans(plans: Vec<Plan>) -> Self {
        Self(plans.into_iter().map(|plan| Source::Plan(Box::new(plan))).collect())
    }

    /// The devices that are meant: of an A/B run with an earlier one those of side B.
    pub fn device(&self) -> anyhow::Result<&DeviceChoice> {
        let device = self.0.last().map(|side| match side {
            Source::Scenario(scenario) => &scenario.device,
            Source::Plan(plan) | Source::Again(plan, _) => &plan.device,
        });
        device.ok_or_else(|| usage("there is nothing to run"))
    }

    /// What the run of each side was made with, where it is an earlier one's.
    pub fn origins(&self) -> impl Iterator<Item = Option<&Manifest>> {
        self.0.iter().map(|side| if let Source::Again(_, manifest) = side { Some(&**manifest) } else { None })
    }

    /// The plans for a device, of two the pairs of cells.
    pub fn planned(&self, facts: &DeviceFacts, only: Option<&str>) -> anyhow::Result<Vec<Plan>> {
        let plans = self.0.iter().map(|side| match side {
            Source::Scenario(scenario) => plan::of(scenario, facts),
            Source::Plan(plan) | Source::Again(plan, _) => Plan::clone(plan),
        });
        let mut plans: Vec<Plan> = plans.collect();
        if let [a, b] = &mut plans[..]
            && a.ab.is_none()
            && self.0.iter().any(|side| !matches!(side, Source::Scenario(_)))
        {
            level(a, b);
        }
        plans.iter().for_each(language::keep_plan);
        plan::narrow(&mut plans, only)?;
        Ok(plans)
    }

    /// The same as this command line measures them.
    pub fn plans(&self, args: &Args, facts: &DeviceFacts, chosen: &DeviceChoice) -> anyhow::Result<Vec<Plan>> {
        let mut plans = self.planned(facts, args.only.as_deref())?;
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

/// A side of `--ab`: a scenario file, or the folder of an earlier run, which is only read.
fn side(path: &Path) -> anyhow::Result<Source> {
    if path.is_dir() {
        let manifest = Manifest::read(path)?;
        let plan = read_plan(path)?;
        return Ok(Source::Again(Box::new(Plan { ab: None, ..plan }), Box::new(manifest)));
    }
    let scenario = plan::scenario(path)?;
    if scenario.ab.is_some() {
        return Err(usage(format!("{} has an [ab] of its own: run it alone, or take that section out", path.display())));
    }
    Ok(Source::Scenario(Box::new(scenario)))
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
    Ok((read_plan(run)?, folder))
}

fn read_plan(run: &Path) -> anyhow::Result<Plan> {
    let text = fs::read_to_string(run.join("plan.toml")).map_err(|e| bad(run, &e.to_string()))?;
    Plan::from_toml(&text).map_err(|e| bad(run, &e.to_string()))
}
