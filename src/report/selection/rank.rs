//! The order of candidates, how sure its first place is, and the Pareto front. Plain numbers in, plain numbers out.

use std::collections::BTreeSet;

use super::{samples::Sample, types::Sure};
use crate::stats::{self, DEFAULT_SEED, FEWEST_FOR_RATIO, Factor, N_SMALL, Values, first_shares, interval};

/// Draws behind a share: its Monte-Carlo error is half a percentage point at 95 %.
pub const DRAWS: usize = 2_000;

/// Share of the draws from which on a first place is told from the others.
pub const TOLD: f64 = 0.95;

/// One factor of a score: a metric at a workload. Those of all candidates stand in one order.
#[derive(Debug, Clone)]
pub struct Term {
    /// Exponent of the value: the share of its weight, below 0 where less is better.
    pub exponent: f64,
    /// What was measured.
    pub sample: Sample,
    /// In which session.
    pub session: usize,
}

/// The score of each candidate: the product of its values, each over the best one and to the power of its weight, that is the weighted geometric
/// mean of ratios to the best. 1 is best in everything. The order does not depend on who else is there: a ratio of two scores is that of the
/// two candidates' values alone.
pub fn scores(candidates: &[Vec<Term>]) -> Vec<f64> {
    let logs: Vec<Vec<f64>> = candidates.iter().map(|terms| terms.iter().map(|term| log(term, middle(&term.sample))).collect()).collect();
    let best = |place: usize| logs.iter().map(|own| own[place]).fold(f64::NEG_INFINITY, f64::max);
    logs.iter().map(|own| own.iter().enumerate().map(|(place, log)| log - best(place)).sum::<f64>().exp()).collect()
}

/// How many sessions there are, and in how many this candidate has the highest score of what was measured there.
pub fn led(candidates: &[Vec<Term>], who: usize) -> (usize, usize) {
    let sessions: BTreeSet<usize> = candidates.iter().flatten().map(|term| term.session).collect();
    let leads = |session: &&usize| {
        let within = |terms: &Vec<Term>| terms.iter().filter(|term| term.session == **session).cloned().collect::<Vec<_>>();
        let scores = scores(&candidates.iter().map(within).collect::<Vec<_>>());
        scores.iter().all(|score| *score <= scores[who])
    };
    (sessions.len(), sessions.iter().filter(leads).count())
}

/// Places of the candidates, best first; those with one score stay in their order.
pub fn order(scores: &[f64]) -> Vec<usize> {
    let mut places: Vec<usize> = (0..scores.len()).collect();
    places.sort_by(|a, b| scores[*b].total_cmp(&scores[*a]));
    places
}

/// How sure the best of these is, and the share of the draws in which each is first where launches are drawn.
pub fn sure(candidates: &[Vec<Term>]) -> (Sure, Vec<Option<f64>>) {
    let none = vec![None; candidates.len()];
    let scores = scores(candidates);
    let best = match order(&scores)[..] {
        [] | [_] => return (Sure::Alone, none),
        [best, ..] => best,
    };
    // What soaks add is not known; it is said, and what launches tell is told.
    let counts = candidates.iter().flatten().filter_map(|term| match &term.sample {
        Sample::Exact(_) | Sample::Soak(_) => None,
        Sample::Launches { values, .. } => Some(values.len()),
    });
    let Some(launches) = counts.min() else {
        if candidates.iter().flatten().any(|term| matches!(term.sample, Sample::Soak(_))) {
            return (Sure::Unknown { launches: 1 }, none);
        }
        let equals = scores.iter().filter(|score| **score >= scores[best]).count();
        return (Sure::Exact { equals }, none);
    };
    if launches >= N_SMALL {
        let firsts = firsts(candidates);
        let sure = Sure::Bootstrap { resamples: DRAWS, first: firsts[best], launches };
        return (sure, firsts.into_iter().map(Some).collect());
    }
    if launches >= FEWEST_FOR_RATIO {
        let ends: Vec<(f64, f64)> = candidates.iter().map(|terms| ends(terms)).collect();
        let others = ends.iter().enumerate().filter(|(place, _)| *place != best).map(|(_, (_, good))| *good);
        let ahead = ends[best].0 > others.fold(f64::NEG_INFINITY, f64::max);
        return (Sure::Intervals { launches, ahead }, none);
    }
    (Sure::Unknown { launches }, none)
}

/// Sum of the logarithms with all values at the bad ends of their 95 % intervals, and at the good ends.
pub fn ends(terms: &[Term]) -> (f64, f64) {
    terms.iter().fold((0.0, 0.0), |(bad, good), term| {
        let own = match &term.sample {
            Sample::Exact(value) | Sample::Soak(value) => (*value, *value),
            Sample::Launches { .. } => {
                interval(&term.sample.values(), DEFAULT_SEED).map_or((f64::NAN, f64::NAN), |found| (found.lo, found.hi))
            }
        };
        let (lo, hi) = (log(term, own.0), log(term, own.1));
        (bad + lo.min(hi), good + lo.max(hi))
    })
}

/// Share of the draws in which each candidate has the highest score.
fn firsts(candidates: &[Vec<Term>]) -> Vec<f64> {
    let factors: Vec<Vec<Factor>> = candidates.iter().map(|terms| factors(terms)).collect();
    first_shares(&factors, DRAWS, DEFAULT_SEED)
}

/// Metrics of the same launches are drawn together: those of one bundle whose launches have the same numbers.
fn factors(terms: &[Term]) -> Vec<Factor> {
    let mut bundles: Vec<(&str, Vec<i64>)> = Vec::new();
    let mut all = Vec::new();
    for term in terms {
        let values = match &term.sample {
            Sample::Exact(value) | Sample::Soak(value) => Values::Known(*value),
            Sample::Launches { values, bundle } => {
                let own = (bundle.as_str(), values.iter().map(|(launch, _)| *launch).collect());
                let place = bundles.iter().position(|known| *known == own).unwrap_or_else(|| {
                    bundles.push(own);
                    bundles.len() - 1
                });
                Values::Launches(term.sample.values(), place)
            }
        };
        all.push(Factor { exponent: term.exponent, values });
    }
    all
}

/// The middle of what was measured.
pub fn middle(sample: &Sample) -> f64 {
    stats::median(&sample.values()).unwrap_or(f64::NAN)
}

fn log(term: &Term, value: f64) -> f64 {
    term.exponent * value.ln()
}

/// Which of these are not dominated: nobody is as good in everything and better in something. More is better in every value.
pub fn front(candidates: &[Vec<f64>]) -> Vec<bool> {
    let dominates = |a: &[f64], b: &[f64]| a.iter().zip(b).all(|(a, b)| a >= b) && a.iter().zip(b).any(|(a, b)| a > b);
    candidates.iter().map(|own| !candidates.iter().any(|other| dominates(other, own))).collect()
}
