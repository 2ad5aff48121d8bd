//! What to ship, what would change it, and what nobody can promise.

use super::{
    rank::TOLD,
    types::{Among, Answer, Candidate, Closest, Finding, Group, Ranking, Standing, State, Sure, Verdict},
    wish::Wish,
};
use crate::{
    gate::busy,
    scenario::{Source, Subject},
    words::{count, percent},
};

/// Share of the draws from which on a candidate may be first after all.
const MAY_BE_FIRST: f64 = 1.0 - TOLD;

/// No recommendation.
pub fn nothing(reason: String) -> Verdict {
    Verdict { kind: Answer::NoRecommendation, candidates: Vec::new(), reason }
}

/// What to ship of a group. Undecidable is an answer. `busy`: what else its computer did, which decides nothing about times (as in `gate`).
pub fn verdict(group: &Group, wish: &Wish, busy: Option<&str>) -> Verdict {
    let in_state = |state: State| group.candidates.iter().filter(|c| c.state == state).count();
    if group.class == "emulator" {
        return nothing("emulator time is not device time: nothing is ranked and nothing is selected from it".to_owned());
    }
    let touched =
        wish.weights.iter().map(|w| &w.metric).chain(wish.requirements.iter().map(|r| &r.metric)).any(|metric| is_touched(metric));
    let measured = group.candidates.iter().any(|candidate| !candidate.cells.is_empty());
    if let Some(busy) = busy.filter(|_| touched && measured) {
        return nothing(format!(
            "the computer may have been busy with something else ({busy}), and times that were measured then decide nothing"
        ));
    }
    let passing: Vec<&Ranking> = group.rankings.iter().filter(|ranking| ranking.among == Among::Passing).collect();
    let [ranking] = passing[..] else {
        let (passes, open, vetoed) = (in_state(State::Passes), in_state(State::Undecided), in_state(State::Vetoed));
        return nothing(match (passing.len(), passes, open, vetoed) {
            (0, 1.., ..) => "what passes was timed in different ways within itself".to_owned(),
            (0, _, 1.., _) => {
                format!(
                    "no candidate is shown to meet every requirement; {} not vetoed, and what would decide stands in the table",
                    is_are(open)
                )
            }
            (0, _, _, 1..) => "a measured figure vetoes every candidate that was measured".to_owned(),
            (0, ..) => "no candidate has figures that count and can be ranked".to_owned(),
            (n, ..) => format!("candidates that pass were timed in {n} ways, and nothing is ranked across them"),
        });
    };
    let Some(first) = ranking.places.first().map(|place| place.candidate) else {
        let damaged = ranking.dropped.iter().find(|dropped| dropped.why.starts_with("damaged "));
        return nothing(damaged.map_or_else(
            || "nothing of what is preferred was measured for all candidates".to_owned(),
            |dropped| format!("nothing of what is preferred can be weighed: {} is {}", dropped.metric, dropped.why),
        ));
    };
    let unranked = in_state(State::Passes) - ranking.places.len();
    if unranked > 0 {
        return nothing(format!("{} timed in different ways within itself, passes and can be held against nobody", was_were(unranked)));
    }
    let name = &group.candidates[first].name;
    let open = caveats(group, ranking, first);
    let within = within(ranking);
    // How far, beside how sure: a difference of nothing can be sure.
    let lead = ranking.places.get(1).map_or_else(String::new, |next| {
        format!("{} ahead of the next, ", percent((1e3 * (ranking.places[0].score / next.score - 1.0)).round() / 1e3))
    });
    let steady = ranking.led as f64 >= TOLD * ranking.sessions as f64;
    match &ranking.sure {
        Sure::Alone if wish.needs.is_empty() => {
            nothing(format!("{name} is the only candidate with figures, and nothing is required: there is no choice to make"))
        }
        Sure::Alone => recommended(first, format!("{name} is the only candidate that is shown to meet every requirement{open}")),
        // What launches can't tell: the next session may come out as the odd one did.
        Sure::Exact { .. } | Sure::Bootstrap { .. } | Sure::Intervals { .. } if !steady => not_told(
            ranking,
            format!("{name} leads by the medians of all sessions together, and only in {} of the {}", ranking.led, ranking.sessions),
        ),
        Sure::Exact { equals: 1 } => recommended(first, format!("{name} is first in figures that have no spread{open}")),
        Sure::Exact { equals } => {
            let candidates = ranking.places.iter().take(*equals).map(|place| place.candidate).collect();
            Verdict { kind: Answer::NotToldApart, candidates, reason: "they are equal in all that was weighed".to_owned() }
        }
        Sure::Bootstrap { resamples, first: share, .. } if *share >= TOLD => recommended(
            first,
            format!("{name} is first in {} of {resamples} resamples of the launches, {lead}{within}{open}", share_words(*share)),
        ),
        Sure::Intervals { launches, ahead: true } => recommended(
            first,
            format!(
                "{name} is ahead even with the bad ends of its 95 % intervals against the good ends of the others'; {launches} launches are too few for a bootstrap, and it holds {within}{open}"
            ),
        ),
        Sure::Bootstrap { resamples, first: share, .. } => {
            let may = |place: &&super::types::Place| place.candidate == first || place.first.is_some_and(|share| share >= MAY_BE_FIRST);
            let candidates: Vec<usize> = ranking.places.iter().filter(may).map(|place| place.candidate).collect();
            let reason =
                format!("{name} leads and is first in {} of {resamples} resamples of the launches only, {within}", share_words(*share));
            Verdict { kind: Answer::NotToldApart, candidates, reason }
        }
        Sure::Intervals { launches, ahead: false } => not_told(
            ranking,
            format!(
                "{name} leads by the medians and its intervals overlap those of others; {launches} launches are too few for a bootstrap"
            ),
        ),
        Sure::Unknown { launches } => not_told(
            ranking,
            format!(
                "{name} leads by the medians, and how sure that is nobody can tell: {} too few for an interval",
                is_are_launches(*launches)
            ),
        ),
    }
}

/// Where an order holds.
pub fn within(ranking: &Ranking) -> String {
    match ranking.sessions {
        0 | 1 => "within this session only".to_owned(),
        n if n == ranking.led => format!("within {n} sessions, in each of which it leads ({})", by_luck(n)),
        n => format!("within {n} sessions, in {} of which it leads", ranking.led),
    }
}

/// How often one of two that are alike leads in so many sessions: the first has some leader, and each other has the same one half of the times.
/// More than two agree less often.
fn by_luck(sessions: usize) -> String {
    format!(
        "were two alike, the same one would lead in all of them by luck one time in {:.0}",
        2_f64.powi(i32::try_from(sessions).unwrap_or(i32::MAX) - 1)
    )
}

/// What stands behind a recommendation: cells that do not count, workloads that were not weighed, candidates that are not decided.
fn caveats(group: &Group, ranking: &Ranking, first: usize) -> String {
    let Candidate { lost, cells, .. } = &group.candidates[first];
    let undecided = |same: bool| {
        let is = |c: &&Candidate| c.state == State::Undecided && (c.timing.as_ref() == Some(&ranking.timing)) == same;
        group.candidates.iter().filter(is).count()
    };
    let (rivals, others) = (undecided(true), undecided(false));
    let all = [
        (*lost > 0).then(|| format!("; {lost} of its {} cells do not count and are in no figure", lost + cells.len())),
        ranking.dims.iter().any(|dim| dim.cut).then(|| match ranking.sessions {
            0 | 1 => "; only workloads that all have were weighed".to_owned(),
            _ => "; of each session only workloads that all have there were weighed".to_owned(),
        }),
        (!ranking.dropped.is_empty()).then(|| {
            let metrics: Vec<&str> = ranking.dropped.iter().map(|dropped| dropped.metric.as_str()).collect();
            format!("; not weighed though preferred: {}", metrics.join(" and "))
        }),
        (rivals > 0).then(|| format!("; {} not decided and could still come first", is_are(rivals))),
        (others > 0).then(|| format!("; {} not decided and timed in another way, and nothing is ranked across that", is_are(others))),
    ];
    all.into_iter().flatten().collect()
}

/// Whether what else a computer did is in a metric.
fn is_touched(metric: &str) -> bool {
    match Subject::parse(metric).map(|subject| subject.source) {
        Some(Source::Metric(column)) => busy::touches(column),
        Some(Source::Exact(_) | Source::Support(_)) => false,
        _ => true,
    }
}

fn recommended(candidate: usize, reason: String) -> Verdict {
    Verdict { kind: Answer::Recommended, candidates: vec![candidate], reason }
}

fn not_told(ranking: &Ranking, reason: String) -> Verdict {
    Verdict { kind: Answer::NotToldApart, candidates: ranking.places.iter().map(|place| place.candidate).collect(), reason }
}

fn is_are(n: usize) -> String {
    format!("{} {}", count(n, "candidate"), if n == 1 { "is" } else { "are" })
}

fn was_were(n: usize) -> String {
    format!("{} {}", count(n, "candidate"), if n == 1 { "was" } else { "were" })
}

fn is_are_launches(n: usize) -> String {
    format!("{} {}", count(n, "launch"), if n == 1 { "is" } else { "are" })
}

/// A share in words, not rounded to certainty.
pub fn share_words(share: f64) -> String {
    if share < 1.0 && share > 0.999 { "over 99.9 %".to_owned() } else { percent((share * 1e3).round() / 1e3) }
}

/// The passed requirement with the least room, of what is recommended.
pub fn closest(group: &Group) -> Option<Closest> {
    let [candidate] = group.verdict.candidates[..] else { return None };
    let room = |finding: &Finding| {
        let slack = finding.judged.as_ref()?.slack.filter(|_| finding.standing == Standing::Passed)?;
        Some(Closest { need: finding.need, candidate, slack })
    };
    group.candidates[candidate].findings.iter().filter_map(room).min_by(|a, b| a.slack.total_cmp(&b.slack))
}

/// What was not measured: of what is recommended; without a recommendation, what is measured of no candidate.
pub fn unpromised(group: &Group, wish: &Wish) -> Vec<String> {
    let shown = |finding: &&Finding| matches!(finding.standing, Standing::NotMeasured | Standing::Damaged);
    let damaged = |finding: &Finding| if finding.standing == Standing::Damaged { "damaged: " } else { "" };
    let words = |finding: &Finding| format!("{}: {}{}", wish.needs[finding.need].shown(), damaged(finding), finding.why);
    let measured: Vec<&Candidate> = match group.verdict.candidates[..] {
        [one] => vec![&group.candidates[one]],
        _ => group.candidates.iter().filter(|c| !c.cells.is_empty() && c.state != State::Headroom).collect(),
    };
    let mut all: Vec<String> = Vec::new();
    for need in 0..wish.needs.len() {
        let findings: Vec<&Finding> = measured.iter().flat_map(|c| c.findings.iter().filter(|finding| finding.need == need)).collect();
        if let Some(first) = findings.first().filter(|_| findings.iter().all(shown)) {
            all.push(words(first));
        }
    }
    let dropped = group.rankings.iter().flat_map(|ranking| &ranking.dropped);
    for words in dropped.map(|dropped| format!("{} is preferred and not weighed: {}", dropped.metric, dropped.why)) {
        if !all.contains(&words) {
            all.push(words);
        }
    }
    all.extend(wish.use_case.iter().flat_map(|use_case| use_case.unasked.clone()));
    all
}
