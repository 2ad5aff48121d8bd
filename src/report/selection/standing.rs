//! How a candidate stands to each requirement: its worst cell decides.

use std::cmp::Ordering;

use super::{
    candidates::Pick,
    types::{Finding, Standing},
    wish::Wish,
};
use crate::{
    gate::require::{DAMAGED, Judged, Met},
    scenario::Requirement,
};

/// Conditions that name a workload: where no cell of a candidate has them, nothing was measured. The others name candidates: it is not about those
/// that don't have them.
pub const OF_WORKLOAD: [&str; 4] = ["prompt-tokens", "gen-tokens", "context", "batch"];

/// What is said of each requirement that is about a candidate.
pub fn findings(pick: &Pick, wish: &Wish, judged: &[Judged]) -> Vec<Finding> {
    let about = |requirement: &Requirement| {
        let mut choice = requirement.clone();
        choice.cells.retain(|key, _| !OF_WORKLOAD.contains(&key.as_str()));
        pick.entries.iter().any(|entry| choice.selects(&entry.planned.cell))
    };
    let needs = wish.requirements.iter().enumerate().filter(|(_, requirement)| about(requirement));
    needs.map(|(need, _)| finding(need, pick, judged)).collect()
}

fn finding(need: usize, pick: &Pick, judged: &[Judged]) -> Finding {
    let own = |one: &&Judged| {
        one.requirement == need && pick.entries.iter().any(|entry| entry.key.cell == one.cell && entry.key.device == one.device)
    };
    // The first of equals: the order is that of the plan.
    let worst = judged.iter().filter(own).reduce(|worst, next| if worse(next, worst) == Ordering::Greater { next } else { worst });
    match worst {
        None => Finding { need, standing: Standing::NotMeasured, judged: None, why: "no cell has these conditions".to_owned() },
        Some(worst) => {
            let known = ["not measured: ", DAMAGED].into_iter().find_map(|beginning| worst.why.strip_prefix(beginning));
            let why = known.unwrap_or(&worst.why).to_owned();
            Finding { need, standing: standing(worst), judged: Some(worst.clone()), why }
        }
    }
}

/// How a verdict of one cell stands.
pub fn standing(judged: &Judged) -> Standing {
    match judged.met {
        Met::Passed => Standing::Passed,
        Met::Violated => Standing::Violated,
        Met::NotTried => Standing::NotMeasured,
        Met::Undecided if judged.why.starts_with(DAMAGED) => Standing::Damaged,
        Met::Undecided if judged.value.is_none() && judged.found.is_none() => Standing::NotMeasured,
        Met::Undecided => Standing::Undecided,
    }
}

fn worse(a: &Judged, b: &Judged) -> Ordering {
    let room = |one: &Judged| one.slack.unwrap_or(f64::INFINITY);
    standing(a).cmp(&standing(b)).then_with(|| room(b).total_cmp(&room(a)))
}
