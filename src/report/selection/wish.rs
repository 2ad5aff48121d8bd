//! What is needed and preferred: the scenario's words, a preset's, or what is usual.

use super::{
    standing::OF_WORKLOAD,
    types::{Need, Origin, UseCase, Weight},
};
use crate::scenario::{Plan, Preset, Requirement, preset};

/// What candidates are held against.
#[derive(Debug, Clone)]
pub struct Wish {
    /// The preset.
    pub use_case: Option<UseCase>,
    /// What is needed, as it is shown; the same places as in `requirements`.
    pub needs: Vec<Need>,
    /// What is needed, as it is judged.
    pub requirements: Vec<Requirement>,
    /// What is preferred; the shares sum to 1.
    pub weights: Vec<Weight>,
}

/// What counts where nobody says what does: TTFT and decode alike, as in the overall scores of Procyon's text generation benchmark (the root of
/// the product of both) and MLPerf Client (a geometric mean of each).
const USUAL: [&str; 2] = ["ttft", "decode"];

impl Wish {
    /// Of a plan, with the preset that it names or, first of all, the one that is asked for: that one's weights then count, since those of the
    /// scenario are for its own use. The scenario's requirements stay in any case, and one of them that is about all candidates takes the
    /// place of a preset's of its metric.
    pub fn of(plan: &Plan, asked: Option<&Preset>) -> Self {
        let named = plan.prefer.as_ref().and_then(|prefer| preset(prefer.use_case.as_deref()?));
        let chosen = asked.or(named);
        let own = plan.require.iter().map(|requirement| (need(requirement, Origin::Scenario, None, None), requirement.clone()));
        let proposed = chosen.into_iter().flat_map(|preset| &preset.require);
        // One that is about some candidates only leaves the preset's to the others.
        let of_all = |own: &&Requirement| own.cells.keys().all(|key| OF_WORKLOAD.contains(&key.as_str()));
        let proposed = proposed.filter(|p| plan.require.iter().filter(of_all).all(|own| own.metric != p.requirement.metric));
        let proposed =
            proposed.map(|p| (need(&p.requirement, Origin::Preset, Some(p.reason.clone()), p.source.clone()), p.requirement.clone()));
        let (needs, requirements) = own.chain(proposed).unzip();
        Self { use_case: chosen.map(use_case), needs, requirements, weights: weights(plan, asked, chosen) }
    }
}

fn weights(plan: &Plan, asked: Option<&Preset>, chosen: Option<&Preset>) -> Vec<Weight> {
    let own =
        plan.prefer.iter().flat_map(|prefer| &prefer.weights).map(|(metric, weight)| (metric.clone(), *weight, Origin::Scenario, None));
    let of = |preset: &Preset| {
        let weigh = |w: &crate::scenario::Weighed| (w.metric.clone(), w.weight, Origin::Preset, Some(w.reason.clone()));
        preset.weights.iter().map(weigh).collect::<Vec<_>>()
    };
    let mut all: Vec<_> = if asked.is_none() { own.collect() } else { Vec::new() };
    if let Some(preset) = chosen.filter(|_| all.is_empty()) {
        all = of(preset);
    }
    if all.is_empty() {
        all = USUAL.iter().map(|word| ((*word).to_owned(), 1.0, Origin::Default, None)).collect();
    }
    // By the largest first: a sum of weights near the end of what a number can be would be none.
    let largest = all.iter().map(|(_, weight, ..)| *weight).fold(f64::MIN_POSITIVE, f64::max);
    let sum: f64 = all.iter().map(|(_, weight, ..)| weight / largest).sum();
    all.into_iter().map(|(metric, weight, origin, reason)| Weight { metric, share: weight / largest / sum, origin, reason }).collect()
}

fn need(requirement: &Requirement, origin: Origin, reason: Option<String>, source: Option<String>) -> Need {
    // Without a condition of its own it is about every cell.
    Need { words: requirement.words().replace(" ()", ""), origin, reason, source }
}

fn use_case(preset: &Preset) -> UseCase {
    let Preset { name, title, what, unasked, .. } = preset.clone();
    UseCase { name, title, what, unasked }
}
