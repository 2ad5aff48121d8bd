//! What a line says: where it stands tonight, and where it stepped.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    attribute,
    scan::Run,
    series::{Key, Point, Series},
    table::{Figure, Gap},
};
use crate::{
    gate::{
        busy,
        compare::session::assumed,
        nights::{self, Judgement, Night},
        run,
        unlike::Difference,
        verdict::Verdict,
    },
    results::schema::Metric,
    stats,
};

/// Share of histories without any step in which one is found: of a thousand cells one.
const LEVEL: f64 = 0.001;

/// Nights that a new level has to last. One bad night is none.
const FEWEST: usize = 3;

/// A line with what is said of it.
#[derive(Debug)]
pub struct Trend {
    /// The line.
    pub series: Series,
    /// Of the last run of its scenario on its device, against those before.
    pub tonight: Result<Judgement, NoFigure>,
    /// Where it changed, the oldest first.
    pub steps: Vec<Step>,
}

/// Why nothing is said of the last run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoFigure {
    /// It has no figure of this cell.
    Gap(Gap),
    /// The cell was not in it, or the metric was had in another way.
    NotInIt,
}

/// A change of level that lasts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Step {
    /// Run with the last figure before it.
    pub before: usize,
    /// Run with the first figure after it.
    pub at: usize,
    /// Log of the new level over the old one, turned over where higher is better: above 0 is worse.
    pub log: f64,
    /// Share of random orders of the same nights with a step as clear.
    pub p: f64,
}

/// Cells of one device and class that stepped between the same two runs: classes never mix.
#[derive(Debug)]
pub struct StepNight {
    /// Class of the device for these cells.
    pub class: String,
    /// Run before.
    pub before: usize,
    /// Run at which the new level begins.
    pub at: usize,
    /// Which lines, by their place, and how far.
    pub lines: Vec<(usize, f64)>,
    /// What changed between the two runs, as far as anybody wrote it down; or why that can't be said.
    pub changed: Result<Vec<Difference>, String>,
}

/// Judges a line. `last` is the last run of its scenario on its device, `asked` the change that matters (0.02 for 2 %).
pub fn trend(series: Series, metric: &Metric, runs: &[Run], last: Option<usize>, asked: f64) -> Trend {
    let of_last = series.points.last().filter(|point| Some(point.run) == last);
    let tonight = match of_last.map(|point| point.figure) {
        Some(Figure::None(gap)) => Err(NoFigure::Gap(gap)),
        _ => last.and_then(|last| tonight(&series, metric, runs, last, asked)).map(|(judgement, _)| judgement).ok_or(NoFigure::NotInIt),
    };
    let steps = steps(&nights(&series, metric, runs), asked);
    Trend { series, tonight, steps }
}

/// The nights of a line, by run. What a busy computer measured is no night of a metric that it touches.
pub fn nights(series: &Series, metric: &Metric, runs: &[Run]) -> Vec<(usize, Night)> {
    let counts = |point: &&Point| runs[point.run].busy.is_none() || !busy::touches(metric.name);
    series.points.iter().filter(counts).filter_map(|point| Some((point.run, night(point, metric)?))).collect()
}

fn night(point: &Point, metric: &Metric) -> Option<Night> {
    match point.figure {
        Figure::Value { at, mad, n, .. } => Night::of_row(at, mad, n as usize, metric.higher_is_better),
        Figure::None(_) => None,
    }
}

/// The figure of a run held against all the nights before it, which are given too: a loss stays one until a history begins with the night that is
/// accepted. `None` when the run has no figure. On a busy computer nothing is decided.
pub fn tonight(series: &Series, metric: &Metric, runs: &[Run], run: usize, asked: f64) -> Option<(Judgement, Vec<(usize, Night)>)> {
    let own = series.points.iter().find(|point| point.run == run).and_then(|point| night(point, metric))?;
    let mut before = nights(series, metric, runs);
    before.retain(|(place, _)| *place < run);
    let levels: Vec<Night> = before.iter().map(|(_, night)| *night).collect();
    let mut found = nights::judge(&levels, own, asked, assumed(&series.key.class, metric.name));
    if let Some(load) = runs[run].busy.as_ref().filter(|_| busy::touches(metric.name)) {
        found.verdict = Verdict::Undecided;
        found.nights_needed = None;
        found.reasons.push(format!("the computer may have been busy with something else, {load}: measure again when it is not"));
    }
    Some((found, before))
}

/// Changes of level that last for [`FEWEST`] nights and are at least half of what matters.
fn steps(nights: &[(usize, Night)], asked: f64) -> Vec<Step> {
    let values: Vec<f64> = nights.iter().map(|(_, night)| night.at).collect();
    stats::steps(&values, LEVEL, FEWEST)
        .into_iter()
        .filter(|step| step.size.abs() >= asked.ln_1p() / 2.0)
        .map(|step| Step { before: nights[step.at - 1].0, at: nights[step.at].0, log: step.size, p: step.p })
        .collect()
}

/// The steps of all lines by the runs that they lie between, the newest first, with what changed there.
pub fn step_nights(trends: &[Trend], runs: &[Run], metric: &Metric) -> Vec<StepNight> {
    let mut found = BTreeMap::<_, Vec<(usize, f64)>>::new();
    for (place, trend) in trends.iter().enumerate() {
        let Key { device, class, .. } = &trend.series.key;
        for step in &trend.steps {
            found.entry((step.at, step.before, device, class)).or_default().push((place, step.log));
        }
    }
    found.into_iter().rev().map(|((at, before, _, class), lines)| StepNight::of((before, at), class, lines, trends, runs, metric)).collect()
}

impl StepNight {
    fn of((before, at): (usize, usize), class: &str, lines: Vec<(usize, f64)>, trends: &[Trend], runs: &[Run], metric: &Metric) -> Self {
        let key = |&(place, _): &(usize, f64)| {
            let Key { device, cell, .. } = &trends[place].series.key;
            run::Key { device: device.clone(), cell: cell.clone() }
        };
        let cells: BTreeSet<run::Key> = lines.iter().map(key).collect();
        Self { class: class.to_owned(), before, at, changed: attribute::changes(&runs[before], &runs[at], &cells, metric.name), lines }
    }

    /// The part of it that some lines made, with what changed for their cells; `None` where they made none.
    pub fn of_these(&self, these: impl Fn(&Trend) -> bool, trends: &[Trend], runs: &[Run], metric: &Metric) -> Option<Self> {
        let lines: Vec<_> = self.lines.iter().copied().filter(|(place, _)| these(&trends[*place])).collect();
        (!lines.is_empty()).then(|| Self::of((self.before, self.at), &self.class, lines, trends, runs, metric))
    }
}

/// Runs of the same scenario and device that lie between two runs.
pub fn between(runs: &[Run], before: usize, at: usize) -> usize {
    runs[before + 1..at].iter().filter(|run| run.scenario == runs[at].scenario && run.device == runs[at].device).count()
}

/// The step, at most two runs away, that more cells made: with noise a single cell's date can be off by as much.
pub fn near<'a>(step: &StepNight, steps: &'a [StepNight], runs: &[Run]) -> Option<&'a StepNight> {
    let of = |step: &StepNight| (&runs[step.at].scenario, &runs[step.at].device);
    let same = |other: &&StepNight| of(other) == of(step) && other.class == step.class;
    let close = |other: &&StepNight| other.at != step.at && between(runs, other.at.min(step.at), other.at.max(step.at)) < 2;
    steps.iter().filter(same).filter(close).filter(|other| other.lines.len() > step.lines.len()).max_by_key(|other| other.lines.len())
}

/// Places of the runs that can go when the last `keep` of each scenario and device stay, and those in `beside`.
pub fn old(runs: &[Run], beside: &BTreeSet<usize>, keep: usize) -> Vec<usize> {
    let mut newer: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    let mut old: Vec<usize> = Vec::new();
    for (place, run) in runs.iter().enumerate().rev() {
        let count = newer.entry((&run.scenario, &run.device)).or_default();
        *count += 1;
        if *count > keep && !beside.contains(&place) {
            old.push(place);
        }
    }
    old.reverse();
    old
}
