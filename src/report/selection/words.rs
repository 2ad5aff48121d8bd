//! A selection in words: the decision path for a reader, and a table to check it by.

use super::{
    types::{Among, Answer, Candidate, Finding, Group, Origin, Ranking, Selection, Standing, State, Sure},
    verdict::{share_words, within},
};
use crate::words::{aligned, count, figure, percent, tenths};

/// Vetoes that are told one by one.
const TOLD_VETOES: usize = 3;

impl Selection {
    /// The decision path, group by group: a handful of sentences each.
    pub fn sentences(&self) -> Vec<String> {
        self.sessions().into_iter().chain(self.groups.iter().flat_map(|group| self.of_group(group))).collect()
    }

    /// Of which sessions it is, where there are several.
    pub fn sessions(&self) -> Option<String> {
        let n = self.runs.len();
        (n > 1).then(|| {
            format!(
                "From {n} sessions of one scenario on one device: {}. A requirement has to be met in each; sessions count alike.",
                self.runs.join(", ")
            )
        })
    }

    /// The decision path of one group: the answer first, then how it came about.
    pub fn of_group(&self, group: &Group) -> Vec<String> {
        let mut all = vec![answer(group)];
        if group.class != "emulator" {
            all.push(self.counted(group));
        }
        all.extend(self.proposals(group));
        all.extend(self.vetoes(group));
        all.extend(group.rankings.iter().map(|ranking| self.ranked(group, ranking)));
        all.extend(headroom(group));
        if group.class != "emulator" && !group.identity.is_empty() {
            all.push(group.identity.clone());
        }
        all.extend(self.closest(group));
        if !group.unpromised.is_empty() && group.class != "emulator" {
            let damaged = group.unpromised.iter().any(|said| said.contains("damaged"));
            let what = if damaged { "Not measured or damaged" } else { "Not measured" };
            all.push(format!("{what}, so that nobody can promise it: {}.", group.unpromised.join("; ").trim_end_matches('.')));
        }
        all
    }

    fn counted(&self, group: &Group) -> String {
        let in_state = |state: State| group.candidates.iter().filter(|candidate| candidate.state == state).count();
        let states = [State::Passes, State::Undecided, State::Vetoed, State::Headroom, State::Failed, State::NotTried];
        let found: Vec<String> = states
            .into_iter()
            .map(|state| (state, in_state(state)))
            .filter(|(_, n)| *n > 0)
            .map(|(state, n)| {
                let word = match state {
                    State::Passes if self.needs.is_empty() && n == 1 => "has figures",
                    State::Passes if self.needs.is_empty() => "have figures",
                    State::Passes if n == 1 => "meets every requirement",
                    State::Passes => "meet every requirement",
                    State::Undecided => "undecided",
                    State::Headroom => "composed of graph times and never ranked",
                    other => other.word(),
                };
                format!("{n} {word}")
            })
            .collect();
        let required = match self.needs.len() {
            0 => "Nothing is required".to_owned(),
            n => format!("Held against {}", count(n, "requirement")),
        };
        format!("{required}; of {}: {}.", count(group.candidates.len(), "candidate"), found.join(", "))
    }

    /// What is the house's and not the scenario's.
    fn proposals(&self, group: &Group) -> Option<String> {
        let use_case = self.use_case.as_ref().filter(|_| group.class != "emulator")?;
        let needs = self.needs.iter().filter(|need| need.origin == Origin::Preset).count();
        let weighed = self.weights.iter().any(|weight| weight.origin == Origin::Preset);
        let what = match (needs, weighed) {
            (0, false) => return None,
            (0, true) => "The weights are".to_owned(),
            (n, true) => format!("{} and the weights are", count(n, "limit")),
            (1, false) => "1 limit is".to_owned(),
            (n, false) => format!("{} are", count(n, "limit")),
        };
        Some(format!("{what} those of the preset “{}”: proposals with reasons, not measurements.", use_case.title))
    }

    fn vetoes(&self, group: &Group) -> Option<String> {
        let vetoed: Vec<&Candidate> = group.candidates.iter().filter(|candidate| candidate.state == State::Vetoed).collect();
        let one = |candidate: &&Candidate| {
            let worst = candidate.findings.iter().filter(|finding| finding.standing == Standing::Violated).min_by(|a, b| {
                let slack = |finding: &Finding| finding.judged.as_ref().and_then(|judged| judged.slack).unwrap_or(f64::NEG_INFINITY);
                slack(a).total_cmp(&slack(b))
            })?;
            Some(format!("{} by {}", candidate.name, self.finding(worst)))
        };
        let told: Vec<String> = vetoed.iter().take(TOLD_VETOES).filter_map(one).collect();
        let more = vetoed.len().saturating_sub(TOLD_VETOES);
        let more = if more > 0 { format!("; and {more} more") } else { String::new() };
        (!told.is_empty()).then(|| format!("Vetoed: {}{more}.", told.join("; ")))
    }

    /// A finding with its figure: `ttft p95 <= 380ms (prompt-tokens 128), measured 520 ms, 36.8 % over`.
    pub fn finding(&self, finding: &Finding) -> String {
        let need = &self.needs[finding.need];
        let words = need.shown();
        let Some(judged) = &finding.judged else { return format!("{words}: {}", finding.why) };
        let found = match (&judged.found, judged.value) {
            (Some(word), _) => format!(", found {word}"),
            (None, Some(value)) => format!(", measured {}", figure_words(value, judged.unit)),
            (None, None) => String::new(),
        };
        let room = judged.slack.map_or_else(String::new, |slack| {
            if slack < 0.0 { format!(", {} % beyond the limit", tenths(-slack)) } else { format!(", {} % of room", tenths(slack)) }
        });
        // A figure says by itself how a limit is violated, a word does not.
        let by_figure = finding.standing == Standing::Violated && judged.found.is_none();
        let why = if by_figure || finding.why.is_empty() { String::new() } else { format!(": {}", finding.why) };
        let session = finding.run.as_ref().map_or_else(String::new, |run| format!(", in the session {run}"));
        format!("{words}{found}{room}{session}{why}")
    }

    fn ranked(&self, group: &Group, ranking: &Ranking) -> String {
        let who = match (ranking.among, self.needs.is_empty()) {
            (Among::Passing, true) => "Ranked",
            (Among::Passing, false) => "Ranked among those that pass",
            (Among::NotVetoed, _) => "None is shown to pass; ranked among those that are not vetoed",
        };
        let timing = if group.rankings.len() > 1 { format!(" (timed: {})", ranking.timing) } else { String::new() };
        if ranking.places.is_empty() {
            return format!("{who}{timing}: nobody, since nothing of what is preferred was measured for all.");
        }
        let dims: Vec<String> = ranking.dims.iter().map(|dim| format!("{} {}", dim.metric, percent(dim.share))).collect();
        let usual = self.weights.iter().all(|weight| weight.origin == Origin::Default);
        let usual = if usual { ", which count alike where no [prefer] says otherwise" } else { "" };
        let workloads = ranking.dims.iter().map(|dim| dim.workloads.len()).max().unwrap_or(0);
        let places: Vec<String> =
            ranking.places.iter().take(3).map(|place| format!("{} {:.2}", group.candidates[place.candidate].name, place.score)).collect();
        let more = ranking.places.len().saturating_sub(3);
        let more = if more > 0 { format!(", and {more} more") } else { String::new() };
        let front: Vec<&str> =
            ranking.places.iter().filter(|place| place.on_front).map(|place| group.candidates[place.candidate].name.as_str()).collect();
        let front = match front.len() {
            _ if ranking.places.len() < 2 || ranking.front_over.len() < 2 => String::new(),
            n if n > 4 => format!(" On the Pareto front of {}: {n} of them.", ranking.front_over.join(", ")),
            _ => format!(" On the Pareto front of {}: {}.", ranking.front_over.join(", "), front.join(", ")),
        };
        let without = match &ranking.front_without[..] {
            without if without.is_empty() || front.is_empty() => String::new(),
            without => format!(" Not in the front: {}, which not all have in one way.", without.join(", ")),
        };
        let soaked: Vec<&str> = ranking.dims.iter().filter(|dim| dim.of_one_soak).map(|dim| dim.metric.as_str()).collect();
        let soaked =
            if soaked.is_empty() { String::new() } else { format!(" Of one soak each, its spread in no share: {}.", soaked.join(", ")) };
        format!(
            "{who}{timing} by {}{usual}, over {}: {}{more} (1 is best in everything).{soaked}{front}{without}",
            dims.join(", "),
            count(workloads, "workload"),
            places.join(", ")
        )
    }

    fn closest(&self, group: &Group) -> Option<String> {
        let closest = group.closest.as_ref()?;
        Some(format!(
            "What would change it first: {}, which {} keeps with {} % of room.",
            self.needs[closest.need].shown(),
            group.candidates[closest.candidate].name,
            tenths(closest.slack)
        ))
    }
}

fn answer(group: &Group) -> String {
    let place = format!("{} on {} ({})", group.model, group.device, group.class);
    let names: Vec<&str> = group.verdict.candidates.iter().map(|at| group.candidates[*at].name.as_str()).collect();
    let reason = &group.verdict.reason;
    match group.verdict.kind {
        Answer::Recommended => format!("{place}: {}. {reason}.", names.join(", ")),
        Answer::NotToldApart => format!("{place}: no recommendation between {}. {reason}.", names.join(", ")),
        Answer::NoRecommendation => format!("{place}: no recommendation, since {reason}."),
    }
}

fn headroom(group: &Group) -> Option<String> {
    let names: Vec<&str> = group.candidates.iter().filter(|c| c.state == State::Headroom).map(|c| c.name.as_str()).collect();
    (!names.is_empty())
        .then(|| format!("Headroom, not a choice: {}, composed of graph times, a bound that no engine reaches.", names.join(", ")))
}

/// A figure with its unit.
pub fn figure_words(value: f64, unit: &str) -> String {
    if unit.is_empty() { figure(value) } else { format!("{} {unit}", figure(value)) }
}

/// What a place's first says: `97 %`, or a dash where nothing was drawn.
pub fn first_words(first: Option<f64>) -> String {
    first.map_or_else(|| "—".to_owned(), share_words)
}

/// How sure a ranking is, in words.
pub fn sure_words(ranking: &Ranking) -> String {
    let within = within(ranking);
    match &ranking.sure {
        Sure::Alone => "one candidate: nothing to order".to_owned(),
        Sure::Exact { .. } => "what was weighed has no spread".to_owned(),
        Sure::Bootstrap { resamples, launches, .. } => {
            format!("{resamples} resamples of the launches ({launches} or more behind each value), {within}")
        }
        Sure::Intervals { launches, .. } => {
            format!("{} behind a value at least: too few for a bootstrap, so that intervals decide, {within}", count(*launches, "launch"))
        }
        Sure::Unknown { launches } => format!("{} behind a value: too few to tell how sure the order is", count(*launches, "launch")),
    }
}

/// The table of a selection as plain text: every candidate, best first, with what decides about it. Of an emulator nothing is selected.
pub fn table(selection: &Selection) -> Vec<String> {
    let mut lines = Vec::new();
    for group in selection.groups.iter().filter(|group| group.class != "emulator") {
        lines.push(format!("{} on {} ({})", group.model, group.device, group.class));
        let rows: Vec<[String; 5]> = ordered(group).into_iter().map(|at| row(selection, group, at)).collect();
        lines.extend(aligned(&rows, |column| column != 2 && column != 3).into_iter().map(|line| format!("  {line}")));
    }
    lines
}

/// Places of the candidates: as ranked, then the others by state.
pub fn ordered(group: &Group) -> Vec<usize> {
    let mut all: Vec<usize> = group.rankings.iter().flat_map(|ranking| &ranking.places).map(|place| place.candidate).collect();
    let mut others: Vec<usize> = (0..group.candidates.len()).filter(|at| !all.contains(at)).collect();
    others.sort_by_key(|at| group.candidates[*at].state);
    all.extend(others);
    all
}

fn row(selection: &Selection, group: &Group, at: usize) -> [String; 5] {
    let candidate = &group.candidates[at];
    let place = group.rankings.iter().flat_map(|ranking| &ranking.places).find(|place| place.candidate == at);
    let (score, first) = place.map_or_else(Default::default, |place| (format!("{:.3}", place.score), first_words(place.first)));
    [candidate.name.clone(), candidate.state.word().to_owned(), score, first, deciding(selection, candidate)]
}

/// What decides about a candidate: the findings that are not passed, or its own reason.
pub fn deciding(selection: &Selection, candidate: &Candidate) -> String {
    // A figure decides; what was not measured is named, since its reason is as a rule the same for all.
    let telling = if candidate.state == State::Vetoed { Standing::Violated } else { Standing::Undecided };
    let stand = |standing: Standing| candidate.findings.iter().filter(move |finding| finding.standing == standing);
    let mut found: Vec<String> = stand(telling).map(|finding| selection.finding(finding)).collect();
    found.extend(stand(Standing::Damaged).map(|finding| {
        let need = selection.needs[finding.need].shown();
        format!("{need}: damaged: {}", finding.why)
    }));
    let lacking: Vec<String> = stand(Standing::NotMeasured).map(|finding| selection.needs[finding.need].shown()).collect();
    if !lacking.is_empty() && matches!(candidate.state, State::Passes | State::Undecided) {
        found.push(format!("not measured: {}", lacking.join(", ")));
    }
    let own = candidate.reason.clone().filter(|_| found.is_empty() || candidate.state == State::Failed);
    own.into_iter().chain(found).collect::<Vec<_>>().join("; ")
}
