//! How a candidate stands to each requirement: its worst cell decides.

use std::cmp::Ordering;

use super::{
    candidates::{Entry, Pick},
    sessions::Session,
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
pub fn findings(pick: &Pick, wish: &Wish, sessions: &[Session], judged: &[Vec<Judged>]) -> Vec<Finding> {
    let about = |requirement: &Requirement| {
        let mut choice = requirement.clone();
        choice.cells.retain(|key, _| !OF_WORKLOAD.contains(&key.as_str()));
        pick.entries.iter().any(|entry| choice.selects(&entry.planned.cell))
    };
    let needs = wish.requirements.iter().enumerate().filter(|(_, requirement)| about(requirement));
    needs.map(|(need, _)| finding(need, pick, sessions, judged)).collect()
}

fn finding(need: usize, pick: &Pick, sessions: &[Session], judged: &[Vec<Judged>]) -> Finding {
    let all = judged.iter().enumerate().flat_map(|(session, judged)| judged.iter().map(move |one| (session, one)));
    let own = |(session, one): &(usize, &Judged)| {
        let is = |entry: &Entry| entry.session == *session && entry.key.cell == one.cell && entry.key.device == one.device;
        one.requirement == need && pick.entries.iter().any(is)
    };
    // The first of equals: the order is that of the sessions, and of the plan.
    let worst = all.filter(own).reduce(|worst, next| if worse(next.1, worst.1) == Ordering::Greater { next } else { worst });
    match worst {
        None => Finding { need, standing: Standing::NotMeasured, judged: None, run: None, why: "no cell has these conditions".to_owned() },
        Some((session, worst)) => {
            let known = ["not measured: ", DAMAGED].into_iter().find_map(|beginning| worst.why.strip_prefix(beginning));
            let why = known.unwrap_or(&worst.why).to_owned();
            let run = (sessions.len() > 1).then(|| sessions[session].run.id.clone());
            Finding { need, standing: standing(worst), judged: Some(worst.clone()), run, why }
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
