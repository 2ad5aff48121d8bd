//! What is said of the candidates of one class, device and model.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    candidates::{Entry, Pick, Pool},
    rank::{Term, front, led, middle, order, scores, sure},
    samples::{Sample, damage, sample, way},
    types::{Among, Dim, Dropped, Finding, Group, Place, Ranking, Standing, State, Weight},
    verdict,
    wish::Wish,
};
use crate::{
    report::load::{Ran, Sameness, is_self_made, sameness},
    scenario::{Requirement, Source, Subject},
    words::{count, percent},
};

/// What the front looks at: speed, memory, energy, and what is left of the speed in the heat.
const FRONT: [&str; 5] = ["ttft", "decode", "memory", "energy", "sustained-ratio"];

type Workload = (u32, u32, u32, String);
/// By workload and session.
type Measured = BTreeMap<(Workload, usize), Sample>;

/// What is said of a pool. `busy`: what else its computer did, in words.
pub fn group(pool: &Pool, wish: &Wish, busy: Option<&str>) -> Group {
    let rankings = if pool.class == "emulator" { Vec::new() } else { rankings(&pool.picks, &wish.weights) };
    let mut group = Group {
        class: pool.class.clone(),
        device: pool.device.clone(),
        model: pool.model.clone(),
        identity: identity(&pool.picks, wish),
        candidates: pool.picks.iter().map(|pick| pick.candidate.clone()).collect(),
        rankings,
        verdict: verdict::nothing(String::new()),
        unpromised: Vec::new(),
        closest: None,
    };
    group.verdict = verdict::verdict(&group, wish, busy);
    group.closest = verdict::closest(&group);
    group.unpromised = verdict::unpromised(&group, wish);
    group
}

/// One ranking for each way of timing: of those that pass, or where nobody does of those that are not vetoed.
fn rankings(picks: &[Pick], weights: &[Weight]) -> Vec<Ranking> {
    let timings: BTreeSet<&String> = picks.iter().filter_map(|pick| pick.candidate.timing.as_ref()).collect();
    let of = |timing: &String, state: State| -> Vec<usize> {
        let is = |pick: &Pick| pick.candidate.timing.as_ref() == Some(timing) && pick.candidate.state == state;
        (0..picks.len()).filter(|place| is(&picks[*place])).collect()
    };
    let found = timings.into_iter().filter_map(|timing| {
        let (passing, open) = (of(timing, State::Passes), of(timing, State::Undecided));
        let (among, places) = if passing.is_empty() { (Among::NotVetoed, open) } else { (Among::Passing, passing) };
        (!places.is_empty()).then(|| ranking(timing, among, &places, picks, weights))
    });
    found.collect()
}

fn ranking(timing: &str, among: Among, places: &[usize], picks: &[Pick], weights: &[Weight]) -> Ranking {
    let all: Vec<&Pick> = places.iter().map(|place| &picks[*place]).collect();
    let (mut dims, mut dropped, mut terms, mut values) = (Vec::new(), Vec::new(), vec![Vec::new(); all.len()], vec![Vec::new(); all.len()]);
    let mut common: Vec<(&Weight, &Subject, Common)> = Vec::new();
    for weight in weights {
        let Some(subject) = Subject::parse(&weight.metric) else { continue };
        match shared(&all, subject) {
            Ok(found) => common.push((weight, subject, found)),
            Err(why) => dropped.push(Dropped { metric: weight.metric.clone(), why }),
        }
    }
    // What can't be weighed leaves its share to the others.
    let sum: f64 = common.iter().map(|(weight, ..)| weight.share).sum();
    for (weight, subject, found) in common {
        let share = weight.share / sum;
        for (place, samples) in found.samples.iter().enumerate() {
            values[place].push(found.geometric_mean(samples));
            let term = |(part, sample): (&Part, &Sample)| Term {
                exponent: signed(subject, share * part.share),
                sample: sample.clone(),
                session: part.session,
            };
            terms[place].extend(found.parts.iter().zip(samples).map(term));
        }
        let unit = subject.units.first().map_or("", |(unit, _)| unit).to_owned();
        let workloads = found.workloads.iter().map(words).collect();
        let of_one_soak = matches!(subject.source, Source::Soak | Source::SoakRatio);
        dims.push(Dim { metric: weight.metric.clone(), unit, share, workloads, cut: found.cut, of_one_soak });
    }
    let (on_front, front_over, front_without) = pareto(&all);
    let scores = scores(&terms);
    let (sure, firsts) = sure(&terms);
    let best = order(&scores);
    let (sessions, led) = best.first().map_or((0, 0), |best| led(&terms, *best));
    let place = |place: usize| Place {
        candidate: places[place],
        score: scores[place],
        values: values[place].clone(),
        first: firsts[place],
        on_front: on_front[place],
    };
    // Without anything to weigh there is no order.
    let places = if dims.is_empty() { Vec::new() } else { best.into_iter().map(place).collect() };
    Ranking { timing: timing.to_owned(), among, dims, dropped, places, sure, sessions, led, front_over, front_without }
}

/// What all candidates have of a metric.
struct Common {
    workloads: Vec<Workload>,
    /// Some have more.
    cut: bool,
    /// Workloads in sessions.
    parts: Vec<Part>,
    /// By candidate, in the order of the parts.
    samples: Vec<Vec<Sample>>,
}

/// A workload in a session.
struct Part {
    session: usize,
    /// Its share of the metric: workloads count alike, and so do the sessions of each.
    share: f64,
}

impl Common {
    /// Over workloads and sessions.
    fn geometric_mean(&self, samples: &[Sample]) -> f64 {
        self.parts.iter().zip(samples).map(|(part, sample)| part.share * middle(sample).ln()).sum::<f64>().exp()
    }
}

/// The workloads at which all have a metric, or who lacks it.
fn shared(all: &[&Pick], subject: &Subject) -> Result<Common, String> {
    let damaged = |entry: &Entry| Some(format!("damaged at {}: {}", entry.key.cell, damage(subject, entry)?));
    if let Some(words) = all.iter().flat_map(|pick| pick.counted()).find_map(damaged) {
        return Err(words);
    }
    let measured: Vec<Measured> = all
        .iter()
        .map(|pick| pick.counted().filter_map(|entry| Some(((entry.workload(), entry.session), sample(subject, entry)?))).collect())
        .collect();
    let lacking: Vec<&str> = all.iter().zip(&measured).filter(|(_, own)| own.is_empty()).map(|(p, _)| p.candidate.name.as_str()).collect();
    match lacking[..] {
        [] => {}
        _ if lacking.len() == all.len() => return Err("not measured".to_owned()),
        [one] => return Err(format!("not measured for {one}")),
        [first, ..] => return Err(format!("not measured for {} and {} more", first, lacking.len() - 1)),
    }
    let every: BTreeSet<&(Workload, usize)> = measured.iter().flat_map(BTreeMap::keys).collect();
    let common: Vec<&(Workload, usize)> = every.iter().copied().filter(|key| measured.iter().all(|own| own.contains_key(key))).collect();
    if common.is_empty() {
        return Err("no workload was measured for all".to_owned());
    }
    let mut sessions: BTreeMap<&Workload, usize> = BTreeMap::new();
    for (workload, _) in &common {
        *sessions.entry(workload).or_default() += 1;
    }
    let part =
        |(workload, session): &&(Workload, usize)| Part { session: *session, share: 1.0 / (sessions.len() * sessions[workload]) as f64 };
    let weighed = |entry: &&Entry| common.contains(&&(entry.workload(), entry.session));
    let ways: BTreeSet<String> = all.iter().flat_map(|pick| pick.counted().filter(weighed).map(|entry| way(subject, entry))).collect();
    if ways.len() > 1 {
        return Err(format!("measured in {} ways, which are not set against each other", ways.len()));
    }
    let samples = measured.iter().map(|own| common.iter().filter_map(|key| own.get(key).cloned()).collect()).collect();
    let workloads = sessions.keys().copied().cloned().collect();
    Ok(Common { cut: every.len() > common.len(), parts: common.iter().map(part).collect(), workloads, samples })
}

fn pareto(all: &[&Pick]) -> (Vec<bool>, Vec<String>, Vec<String>) {
    let (mut over, mut without, mut values) = (Vec::new(), Vec::new(), vec![Vec::new(); all.len()]);
    for word in FRONT {
        let Some(subject) = Subject::parse(word) else { continue };
        match shared(all, subject) {
            Err(_) => without.push(word.to_owned()),
            Ok(found) => {
                over.push(word.to_owned());
                for (own, samples) in values.iter_mut().zip(&found.samples) {
                    own.push(signed(subject, found.geometric_mean(samples)));
                }
            }
        }
    }
    (front(&values), over, without)
}

fn signed(subject: &Subject, value: f64) -> f64 {
    if subject.higher_is_better { value } else { -value }
}

fn words((prompt, generated, context, batch): &Workload) -> String {
    let batch = if batch == "1" { String::new() } else { format!(", batch {batch}") };
    format!("{prompt} → {generated} tokens, context {context}{batch}")
}

/// How far the candidates ran the same model (rule R13).
fn identity(picks: &[Pick], wish: &Wish) -> String {
    let ran: Vec<Ran> = picks.iter().flat_map(|pick| pick.counted().map(|entry| of_entry(&pick.candidate.name, entry))).collect();
    let n = picks.iter().filter(|pick| pick.counted().next().is_some()).count();
    if n < 2 {
        return String::new();
    }
    let same = sameness(&ran);
    if same == Sameness::One {
        return "All ran the same model: one artifact.".to_owned();
    }
    if picks.iter().all(|pick| agrees(pick, wish)) {
        return agreed(picks, wish, &ran, &same);
    }
    match same {
        Sameness::Unknown(who) => {
            format!("No artifact of {} is known: speed is ranked here, and nothing tells whether all ran the same model.", who.join(", "))
        }
        Sameness::Source(words) => {
            format!("{words}: speed is ranked here, and nobody has shown that the answers are equally good.")
        }
        Sameness::One => String::new(),
    }
}

fn of_entry<'a>(who: &'a str, entry: &'a Entry) -> Ran<'a> {
    let field = |column| entry.row.field(column);
    Ran { who, artifact: field("artifact"), quant: entry.planned.cell.quant.as_str() }
}

/// The tokens of all agree with the reference: that is shown, whatever is known of the artifacts.
fn agreed(picks: &[Pick], wish: &Wish, ran: &[Ran], same: &Sameness) -> String {
    let counted: Vec<&Entry> = picks.iter().flat_map(Pick::counted).collect();
    let artifacts: BTreeSet<&str> = ran.iter().map(|ran| ran.artifact).collect();
    let asked = if wish.requirements.iter().any(is_agreement) { "is required" } else { "the scenario asks" };
    let candidates = count(picks.iter().filter(|pick| pick.counted().next().is_some()).count(), "candidate");
    let least = least(&counted).map_or_else(String::new, |share| format!(", at least {} before the first divergence", percent(share)));
    let agree = format!("the tokens of all {candidates} agree with the reference as far as {asked}{least}");
    // Of artifacts of bench's own the reference is the computation with the same quantised weights.
    let own = artifacts.iter().any(|artifact| is_self_made(artifact));
    let own = if own { ", which tests the engines and not what a quantisation costs in quality" } else { "" };
    match same {
        Sameness::Unknown(who) => {
            format!("No artifact of {} is known, and nothing but their tokens tells what they ran; {agree}{own}.", who.join(", "))
        }
        Sameness::Source(words) if !ran.iter().all(|ran| is_self_made(ran.artifact)) => format!("{words}; {agree}{own}."),
        _ => format!("Same source model in {}; {agree}{own}.", count(artifacts.len(), "artifact")),
    }
}

fn is_agreement(requirement: &Requirement) -> bool {
    requirement.subject().is_some_and(|subject| subject.source == Source::Exact("token_agreement"))
}

/// Whether the tokens of all cells of a candidate that count agree with the reference: as far as the product requires, and where it says nothing
/// as far as the run checks.
fn agrees(pick: &Pick, wish: &Wish) -> bool {
    let required = |finding: &&Finding| is_agreement(&wish.requirements[finding.need]);
    let met = pick.candidate.findings.iter().filter(required).all(|finding| finding.standing == Standing::Passed);
    let judged = |entry: &Entry| wish.requirements.iter().any(|asked| is_agreement(asked) && asked.selects(&entry.planned.cell));
    let contradicted = |entry: &Entry| entry.row.field("check_tokens") == "contradicted";
    met && !pick.entries.iter().any(contradicted)
        && pick.counted().all(|entry| judged(entry) || entry.row.field("check_tokens") == "confirmed")
}

/// The least share of tokens before the first divergence, where all cells have one.
fn least(counted: &[&Entry]) -> Option<f64> {
    let share = |entry: &&Entry| entry.row.field("token_agreement").parse().ok().filter(|share| (0.0..=1.0).contains(share));
    counted.iter().map(share).collect::<Option<Vec<f64>>>()?.into_iter().reduce(f64::min)
}
