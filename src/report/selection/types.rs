//! What a selection says, as data: for the page, the console, and `bench report --format json`.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::gate::require::Judged;

/// The selection of one run, or of several that are sessions of one scenario on one device.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Selection {
    /// Ids of the runs.
    pub runs: Vec<String>,
    /// The preset that was used.
    pub use_case: Option<UseCase>,
    /// What is needed: the scenario's requirements, then the preset's that it has none of.
    pub needs: Vec<Need>,
    /// What is preferred among those that meet them.
    pub weights: Vec<Weight>,
    /// One for each class, device and model: between those nothing is ranked.
    pub groups: Vec<Group>,
}

/// A preset: proposals of this project, no measurements.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UseCase {
    /// Its name.
    pub name: String,
    /// The same for a reader.
    pub title: String,
    /// What is meant by it.
    pub what: String,
    /// What it needs and nobody can judge yet.
    pub unasked: Vec<String>,
}

/// Who says what is needed or preferred.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// The scenario.
    Scenario,
    /// A preset.
    Preset,
    /// Nobody: what is usual.
    Default,
}
impl Origin {
    /// As it is shown.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Scenario => "scenario",
            Self::Preset => "preset",
            Self::Default => "default",
        }
    }
}

/// A requirement.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Need {
    /// In words, with its conditions.
    pub words: String,
    /// Who asks for it.
    pub origin: Origin,
    /// Why this value, of a preset.
    pub reason: Option<String>,
    /// Public address that the reason rests on.
    pub source: Option<String>,
}
impl Need {
    /// As it is shown: who asks for it, where that is not the scenario.
    pub fn shown(&self) -> String {
        let preset = if self.origin == Origin::Preset { ", preset" } else { "" };
        format!("{}{preset}", self.words)
    }
}

/// A preference.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Weight {
    /// Word of the metric.
    pub metric: String,
    /// Its share of all weights that are given.
    pub share: f64,
    /// Who gives it.
    pub origin: Origin,
    /// Why so much.
    pub reason: Option<String>,
}

/// What may be ranked at most: one class, device and model.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Group {
    /// phone, board, pc or emulator.
    pub class: String,
    /// Name of the device.
    pub device: String,
    /// Name of the model.
    pub model: String,
    /// How far the candidates ran the same model (rule R13).
    pub identity: String,
    /// In the order of the scenario.
    pub candidates: Vec<Candidate>,
    /// One for each way in which TTFT was timed (rule R6), best first within each.
    pub rankings: Vec<Ranking>,
    /// What to ship.
    pub verdict: Verdict,
    /// What was not measured and can't be promised, of what is recommended or else of all.
    pub unpromised: Vec<String>,
    /// The requirement with the least room, of what is recommended: what would change the choice first.
    pub closest: Option<Closest>,
}

/// A choice that can be made: backend, quantisation, and the settings that are one.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Candidate {
    /// `genie · w4a16, perf-profile burst`.
    pub name: String,
    /// Id of the backend.
    pub backend: String,
    /// Class of the quantisation.
    pub quant: String,
    /// What else was chosen, by axis.
    pub axes: BTreeMap<String, String>,
    /// What ran behind the backend, as far as it is known (rule R14).
    pub engine: Option<String>,
    /// How its first token was timed: scope and method.
    pub timing: Option<String>,
    /// Whether it can be chosen.
    pub state: State,
    /// Why, where that is not what the findings say: the cells' own reasons.
    pub reason: Option<String>,
    /// What is said of each requirement that is about it.
    pub findings: Vec<Finding>,
    /// Ids of its cells that count, of each session.
    pub cells: Vec<String>,
    /// How many of its cells do not count.
    pub lost: usize,
}

/// Whether a candidate can be chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// It meets every requirement.
    Passes,
    /// It violates none, and at least one is not decided.
    Undecided,
    /// A measured figure violates a requirement.
    Vetoed,
    /// Composed of graph times: a bound that no engine reaches, never ranked (rule R11).
    Headroom,
    /// None of its cells counts.
    Failed,
    /// All of its cells were skipped.
    NotTried,
}
impl State {
    /// As it is shown.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Passes => "passes",
            Self::Undecided => "undecided",
            Self::Vetoed => "vetoed",
            Self::Headroom => "headroom",
            Self::Failed => "failed",
            Self::NotTried => "not tried",
        }
    }
}

/// A requirement at a candidate.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Finding {
    /// Place in [`Selection::needs`].
    pub need: usize,
    /// What is found.
    pub standing: Standing,
    /// The cell that stands worst, with its figures; absent where no cell of the candidate has the conditions.
    pub judged: Option<Judged>,
    /// Id of the run in which it does, of several.
    pub run: Option<String>,
    /// Why it is not decided.
    pub why: String,
}

/// What is found of a requirement at a candidate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Standing {
    /// Met at every cell.
    Passed,
    /// Measured, and not told from the limit.
    Undecided,
    /// Nothing measured it: it can't be promised.
    NotMeasured,
    /// The run's tables have figures of it that can't be, or not all that they count.
    Damaged,
    /// Violated at a cell.
    Violated,
}
impl Standing {
    /// As it is shown.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Undecided => "undecided",
            Self::NotMeasured => "not measured",
            Self::Damaged => "damaged",
            Self::Violated => "violated",
        }
    }
}

/// Candidates in their order, all timed in one way.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Ranking {
    /// Scope and method of TTFT.
    pub timing: String,
    /// Who is ranked.
    pub among: Among,
    /// What was weighed, with the shares that count.
    pub dims: Vec<Dim>,
    /// Preferences that could not be weighed, and why.
    pub dropped: Vec<Dropped>,
    /// Best first.
    pub places: Vec<Place>,
    /// How sure the first place is.
    pub sure: Sure,
    /// Sessions that were weighed: launches tell how sure an order is within each, and only several how it comes out another time.
    pub sessions: usize,
    /// In how many of them the first place has the highest score of what was measured there.
    pub led: usize,
    /// What the Pareto front looks at.
    pub front_over: Vec<String>,
    /// What it can't look at, since not every candidate has it.
    pub front_without: Vec<String>,
}

/// Who is ranked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Among {
    /// Those that meet every requirement.
    Passing,
    /// No one does: those that violate none.
    NotVetoed,
}

/// A metric that was weighed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Dim {
    /// Word of the metric.
    pub metric: String,
    /// Unit of its values.
    pub unit: String,
    /// Share of the weights that count here.
    pub share: f64,
    /// Workloads that all have.
    pub workloads: Vec<String>,
    /// Some have more workloads.
    pub cut: bool,
    /// Each value is of one soak: its spread is not known and in no share.
    pub of_one_soak: bool,
}

/// A preference that could not be weighed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Dropped {
    /// Word of the metric.
    pub metric: String,
    /// Who lacks it.
    pub why: String,
}

/// A candidate in a ranking.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Place {
    /// Place in [`Group::candidates`].
    pub candidate: usize,
    /// Weighted geometric mean of its ratios to the best of each metric and workload: 1 is best in everything.
    pub score: f64,
    /// Geometric mean over the workloads, for each of [`Ranking::dims`], in its unit.
    pub values: Vec<f64>,
    /// Share of the resamples in which it is first; absent without a bootstrap.
    pub first: Option<f64>,
    /// Nobody ranked here is as good in all that [`Ranking::front_over`] names and better in some of it, by the medians.
    pub on_front: bool,
}

/// How sure a first place is.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "by")]
pub enum Sure {
    /// There is nobody else.
    Alone,
    /// What was weighed is what it is, without a spread: sizes, agreements.
    Exact {
        /// How many share the first place.
        equals: usize,
    },
    /// Launches were drawn with replacement, so many times.
    Bootstrap {
        /// How often.
        resamples: usize,
        /// Share with the same first.
        first: f64,
        /// Fewest launches behind a value.
        launches: usize,
    },
    /// Too few launches for that: the bad ends of its 95 % intervals against the good ends of the others'.
    Intervals {
        /// Fewest launches behind a value.
        launches: usize,
        /// It is ahead all the same.
        ahead: bool,
    },
    /// Too few launches for an interval even.
    Unknown {
        /// Fewest launches behind a value.
        launches: usize,
    },
}

/// What to ship.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Verdict {
    /// What kind of answer it is.
    pub kind: Answer,
    /// Places in [`Group::candidates`]: one, or those that are not told apart, or none.
    pub candidates: Vec<usize>,
    /// Why, in a sentence.
    pub reason: String,
}

/// What kind of answer a selection is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// One candidate.
    Recommended,
    /// Several that are not told apart.
    NotToldApart,
    /// None.
    NoRecommendation,
}

/// The requirement with the least room.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Closest {
    /// Place in [`Selection::needs`].
    pub need: usize,
    /// Place in [`Group::candidates`].
    pub candidate: usize,
    /// Room to the limit, as a share of the limit.
    pub slack: f64,
}
