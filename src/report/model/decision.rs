//! What to ship: the selection as sentences and tables.

use std::collections::BTreeSet;

use bench_backend_api::Fact;

use super::figures::DASH;
use super::view::{Decision, DecisionGroup, Grid};
use crate::registry::card;
use crate::report::selection::{
    Candidate, Finding, Group, Joint, Place, Selection, deciding, figure_words, first_words, ordered, sure_words,
};
use crate::words::{percent, tenths};

/// What the page says beside a run of the selection that it is part of, or of why there is none. One of several sessions stands beside the first.
pub fn decision(selected: &[Joint], run: usize) -> Decision {
    let Some(joint) = selected.iter().find(|joint| joint.places.contains(&run)) else { return Decision::default() };
    match &joint.selected {
        Ok(found) if joint.places[0] != run => Decision { with: found.runs.first().cloned(), ..Decision::default() },
        Err(why) => Decision { why_not: Some(sentence(&why.to_string())), ..Decision::default() },
        Ok(found) => Decision {
            with: None,
            why_not: None,
            sessions: found.sessions(),
            preset: found.use_case.as_ref().map(|u| format!("{}: {}", u.title, u.what)).unwrap_or_default(),
            groups: found.groups.iter().map(|group| view(found, group)).collect(),
            cards: cards(found),
            needs: needs(found),
            weights: weights(found),
        },
    }
}

/// A message as a sentence of the page.
fn sentence(message: &str) -> String {
    let mut signs = message.chars();
    signs.next().into_iter().flat_map(char::to_uppercase).chain(signs).collect::<String>() + "."
}

fn view(selection: &Selection, group: &Group) -> DecisionGroup {
    let mut sentences = selection.of_group(group).into_iter();
    DecisionGroup {
        title: format!("{} on {}", group.model, group.device),
        class: group.class.clone(),
        answer: sentences.next().unwrap_or_default(),
        sentences: sentences.collect(),
        notes: group.rankings.iter().map(|ranking| format!("Timed {}: {}.", ranking.timing, sure_words(ranking))).collect(),
        candidates: candidates(selection, group),
        findings: findings(selection, group),
    }
}

/// A row a candidate, best first.
fn candidates(selection: &Selection, group: &Group) -> Grid {
    let dims: Vec<&str> = selection.weights.iter().map(|weight| weight.metric.as_str()).collect();
    let columns = ["Candidate", "State", "Score", "First in", "Pareto front"].into_iter().chain(dims.iter().copied());
    let columns = columns.map(str::to_owned).chain(["Cells".to_owned(), "What decides".to_owned()]).collect();
    let rows = ordered(group).into_iter().map(|at| {
        let candidate = &group.candidates[at];
        let ranked = group.rankings.iter().find_map(|ranking| Some((ranking, ranking.places.iter().find(|place| place.candidate == at)?)));
        let of_place = |text: fn(&Place) -> String| ranked.map_or_else(|| DASH.to_owned(), |(_, place)| text(place));
        let values = dims.iter().map(|metric| {
            let found = ranked.and_then(|(ranking, place)| {
                let at = ranking.dims.iter().position(|dim| dim.metric == **metric)?;
                Some(figure_words(place.values[at], &ranking.dims[at].unit))
            });
            found.unwrap_or_else(|| DASH.to_owned())
        });
        let head = [
            candidate.name.clone(),
            candidate.state.word().to_owned(),
            of_place(|place| format!("{:.3}", place.score)),
            of_place(|place| first_words(place.first)),
            of_place(|place| if place.on_front { "yes" } else { "no" }.to_owned()),
        ];
        let tail = [format!("{} of {}", candidate.cells.len(), candidate.cells.len() + candidate.lost), deciding(selection, candidate)];
        head.into_iter().chain(values).chain(tail).collect()
    });
    Grid { title: "Candidates".to_owned(), columns, rows: rows.collect(), text: true, open: true }
}

/// A row for each requirement at each candidate.
fn findings(selection: &Selection, group: &Group) -> Grid {
    let columns = ["Candidate", "Requirement", "From", "Standing", "Worst cell", "Value", "95 % interval", "n", "Room", "Tells", "Why"];
    let row = |candidate: &Candidate, finding: &Finding| {
        let (need, judged) = (&selection.needs[finding.need], finding.judged.as_ref());
        let figure = |value: Option<f64>| value.zip(judged).map(|(value, judged)| figure_words(value, judged.unit));
        let value = judged.and_then(|judged| judged.found.clone()).or_else(|| figure(judged?.value));
        let interval = judged.and_then(|judged| Some(format!("{} to {}", figure(judged.lo)?, figure(judged.hi)?)));
        let room = judged.and_then(|judged| Some(format!("{} %", tenths(judged.slack?))));
        let dash = |text: Option<String>| text.unwrap_or_else(|| DASH.to_owned());
        vec![
            candidate.name.clone(),
            need.words.clone(),
            need.origin.word().to_owned(),
            finding.standing.word().to_owned(),
            dash(judged.map(|judged| finding.run.iter().fold(judged.cell.clone(), |cell, run| format!("{cell} ({run})")))),
            dash(value),
            dash(interval),
            dash(judged.filter(|judged| judged.n > 0).map(|judged| judged.n.to_string())),
            dash(room),
            dash(figure(judged.and_then(|judged| judged.mde))),
            finding.why.clone(),
        ]
    };
    let rows = ordered(group).into_iter().map(|at| &group.candidates[at]);
    let rows = rows.flat_map(|candidate| candidate.findings.iter().map(move |finding| row(candidate, finding))).collect();
    Grid {
        title: "Each requirement at each candidate".to_owned(),
        columns: columns.map(str::to_owned).into(),
        rows,
        text: true,
        open: false,
    }
}

/// What no measurement says of the frameworks of the run; programs of a scenario have no card.
fn cards(selection: &Selection) -> Grid {
    let ids: BTreeSet<&str> = selection.groups.iter().flat_map(|group| &group.candidates).map(|c| c.backend.as_str()).collect();
    let cards = ids.into_iter().filter_map(|id| Some((id, card(id)?)));
    let rows = cards.flat_map(|(id, card)| {
        let row = |(about, fact): (&str, &Fact)| {
            let dash = |text: &Option<String>| text.clone().unwrap_or_else(|| DASH.to_owned());
            let text = fact.text.clone().or_else(|| fact.absent.clone()).unwrap_or_default();
            vec![id.to_owned(), about.to_owned(), text, dash(&fact.source), dash(&fact.seen)]
        };
        card.facts().map(row)
    });
    let columns = ["Framework", "About", "Fact", "Source", "Seen"].map(str::to_owned).into();
    Grid { title: "What no measurement says".to_owned(), columns, rows: rows.collect(), text: true, open: false }
}

fn needs(selection: &Selection) -> Grid {
    let rows = selection.needs.iter().map(|need| {
        let (reason, source) = (need.reason.clone().unwrap_or_default(), need.source.clone());
        let source = source.unwrap_or_else(|| if need.reason.is_some() { "no public source".to_owned() } else { String::new() });
        vec![need.words.clone(), need.origin.word().to_owned(), reason, source]
    });
    let columns = ["Requirement", "From", "Why this value", "Source"].map(str::to_owned).into();
    Grid { title: "What is required".to_owned(), columns, rows: rows.collect(), text: true, open: false }
}

fn weights(selection: &Selection) -> Grid {
    let rows = selection.weights.iter().map(|weight| {
        vec![weight.metric.clone(), percent(weight.share), weight.origin.word().to_owned(), weight.reason.clone().unwrap_or_default()]
    });
    let columns = ["Metric", "Weight", "From", "Why"].map(str::to_owned).into();
    Grid { title: "What is preferred".to_owned(), columns, rows: rows.collect(), text: true, open: false }
}
