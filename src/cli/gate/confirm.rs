//! `bench gate --confirm`: what looks regressed is measured again, on the same device.

use std::{collections::BTreeSet, fs, path::Path};

use super::Args;
use crate::{
    cli::{exit::Code, plan, run, usage},
    gate::{
        compare::{self, compare, session::Sessions},
        nightly::{Gate, confirm},
        run::{Run, load},
    },
    scenario::{Plan, Profile},
};

/// Measures and takes the result into the judgement. Whatever goes wrong leaves it as it is, with a note: a regression is not forgotten
/// because the phone is away.
pub fn confirm(args: &Args, gate: &mut Gate) {
    let cells = confirm::suspicious(gate);
    if cells.is_empty() {
        gate.notes.push("nothing looks regressed, so nothing was measured again".to_owned());
        return;
    }
    if let Err(why) = measured(args, gate, &cells) {
        gate.notes.push(format!("not confirmed, so it stands as it is: {why}"));
    }
}

fn measured(args: &Args, gate: &mut Gate, cells: &BTreeSet<String>) -> anyhow::Result<()> {
    let mut plans = vec![stored(&args.run)?];
    if let Some(old) = &args.confirm_against {
        plans.insert(0, of(old)?);
    }
    for plan in &mut plans {
        only(plan, cells);
        anyhow::ensure!(!plan.runnable().is_empty(), "{} has none of the cells that look regressed", plan.name);
    }
    let parent = args.run.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new(".")).to_owned();
    let out = args.out.clone().unwrap_or(parent);
    let (code, folders) = run::again(plans, &out, &args.servers)?;
    anyhow::ensure!(code != Code::Interrupted, "interrupted");
    match &folders[..] {
        [second] => {
            let second = load(second)?;
            gate.notes
                .push(format!("measured once more, {}: it tells a bad night from a lasting change, and nothing of its cause", second.id));
            busy(gate, &second);
            confirm::again(gate, &second);
        }
        [old, new] => {
            let (old, new) = (load(old)?, load(new)?);
            let settings = compare::Settings { tolerance: args.limit, metrics: gate.metrics.clone(), sessions: Sessions::default() };
            let found = compare(&old, &new, &settings)?;
            gate.notes.push(format!("old and new measured pair by pair, {} and {}", old.id, new.id));
            busy(gate, &new);
            let differ: Vec<String> =
                found.differences.iter().filter(|d| d.changed()).map(|d| format!("{}: {} -> {}", d.what, d.a, d.b)).collect();
            gate.notes.push(if differ.is_empty() {
                "old and new do not differ in anything that is known: this A/B compares a thing with itself".to_owned()
            } else {
                format!("old and new differ in {}", differ.join("; "))
            });
            confirm::against(gate, &found);
        }
        more => anyhow::bail!("it was measured on {} devices, and one is asked for", more.len()),
    }
    Ok(())
}

/// A busy computer can only make a loss look lasting, which stands anyway: what it excludes is excluded.
fn busy(gate: &mut Gate, second: &Run) {
    let words =
        |load: String| format!("the computer may have been busy with something else meanwhile, {load}: it confirms no loss of time");
    gate.notes.extend(second.busy().map(words));
}

/// The plan of a run.
fn stored(folder: &Path) -> anyhow::Result<Plan> {
    let path = folder.join("plan.toml");
    let bad = |words: String| usage(format!("{}: {words}: without its plan a run can't be measured again", path.display()));
    let text = fs::read_to_string(&path).map_err(|e| bad(e.to_string()))?;
    Plan::from_toml(&text).map_err(|e| bad(e.to_string()))
}

/// The plan of a run folder or of a scenario.
fn of(path: &Path) -> anyhow::Result<Plan> {
    if path.is_dir() {
        return stored(path);
    }
    let scenario = plan::scenario(path)?;
    Ok(plan::of(&scenario, &plan::facts(&scenario.device)))
}

/// Leaves what is to be measured again, with its share of the budget. Under a name of its own, so that it is no night of the history.
fn only(plan: &mut Plan, cells: &BTreeSet<String>) {
    let all = plan.runnable().len();
    plan.cells.retain(|cell| cells.contains(&cell.id));
    plan.measure.budget_ms = plan.measure.budget_ms.map(|budget| share(budget, plan.runnable().len(), all));
    plan.name = format!("{}-confirm", plan.name);
    (plan.soak, plan.ab, plan.measure.profile) = (None, None, Profile::Off);
    plan.require.clear();
}

/// Of a budget for `all` cells what `some` of them have.
fn share(budget: u64, some: usize, all: usize) -> u64 {
    (budget * some as u64).div_ceil(all.max(1) as u64)
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_budget_is_cut_to_the_cells_that_are_left() {
        assert_eq!([super::share(3_600_000, 1, 4), super::share(10, 1, 3), super::share(10, 0, 0)], [900_000, 4, 0]);
    }
}
