//! One launch: the parts of its stages, by what its runner timed, or by what is known of the whole alone.

use std::collections::BTreeMap;

use bench_backend_api::{Parsed, PhaseSpan, Query};
use bench_runner_protocol::Phase;

use super::parts;
use crate::analysis::compose;

/// Name of what no part accounts for.
pub const REST: &str = "unaccounted";
/// Sums of a runner may exceed the time between its events by this share: the clock is read twice at an edge.
const EXCESS: f64 = 0.01;

/// A stage of a launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// From `load_begin` to `load_end`.
    Load,
    /// From a query's submission to its first token.
    Prefill,
    /// From the first token to the last.
    Decode,
}
impl Stage {
    /// The word in tables and in a profile's parts.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Load => "load",
            Self::Prefill => "prefill",
            Self::Decode => "decode",
        }
    }
}

/// A part of a stage.
#[derive(Debug, Clone, PartialEq)]
pub struct Piece {
    /// Its name; `execute/rpc` is a part of the part `execute`.
    pub phase: String,
    /// Time in all that was counted, us.
    pub us: f64,
    /// Where it comes from.
    pub method: String,
}

/// A stage of one launch: parts without a `/` sum to the whole.
#[derive(Debug, Clone, PartialEq)]
pub struct StageTimes {
    /// Which.
    pub stage: Stage,
    /// Its time in all that was counted, us.
    pub whole_us: f64,
    /// Loads, prompts or decode steps that were counted; decode steps of a tool's mean need not be whole.
    pub units: f64,
    /// Its parts.
    pub pieces: Vec<Piece>,
}

/// The stages of a launch without its first `discarded` queries. One of which nothing is known is left out; one of which only the whole is
/// known is one piece.
pub fn of_launch(parsed: &Parsed, discarded: u32, prompt_tokens: u32) -> Vec<StageTimes> {
    let mut stages = Vec::from_iter(load(parsed));
    if parsed.queries.is_empty() {
        stages.extend(composed(parsed, prompt_tokens));
        return stages;
    }
    let mut spans: BTreeMap<u32, Vec<&PhaseSpan>> = BTreeMap::new();
    for span in &parsed.phases {
        if let Some(query) = span.query {
            spans.entry(query).or_default().push(span);
        }
    }
    let counted: Vec<&Query> = parsed.queries.iter().filter(|q| q.query >= discarded).collect();
    for stage in [Stage::Prefill, Stage::Decode] {
        let Some(mut times) = queries(stage, &counted, &spans) else { continue };
        let all = parsed.queries.iter().filter_map(|q| Some((window(stage, q)?, spans.get(&q.query)?)));
        let executed = executed(all);
        parts::split(&mut times.pieces, &parsed.parts, stage, executed);
        stages.push(times);
    }
    stages
}

fn load(parsed: &Parsed) -> Option<StageTimes> {
    let (from, to) = parsed.load_ns.filter(|(from, to)| to > from)?;
    let mut sums = Sums::default();
    for span in parsed.phases.iter().filter(|span| span.query.is_none()) {
        sums.add(&span.phase, within(span, (from, to)));
    }
    let prepared: f64 = sums.0.iter().filter(|(phase, _)| phase == Phase::Prepare.as_str()).map(|(_, us)| us).sum();
    let mut times = sums.stage(Stage::Load, (to - from) as f64 / 1e3, 1.0, "events", "load");
    parts::split(&mut times.pieces, &parsed.parts, Stage::Load, parts::Executed::of_means(&[prepared]));
    Some(times)
}

/// The stretch of a query that a stage is; none where the first event holds several tokens (rule R5).
fn window(stage: Stage, q: &Query) -> Option<(u64, u64)> {
    let (first, last) = (q.tokens.first()?.t_ns, q.tokens.last()?.t_ns);
    let together = q.tokens.get(1).is_some_and(|second| second.t_ns == first);
    let (from, to) = if stage == Stage::Prefill { (q.start_ns, first) } else { (first, last) };
    (to > from && !together).then_some((from, to))
}

/// Time of a span inside a window, us.
fn within(span: &PhaseSpan, (from, to): (u64, u64)) -> f64 {
    span.end_ns.min(to).saturating_sub(span.begin_ns.max(from)) as f64 / 1e3
}

fn queries(stage: Stage, counted: &[&Query], spans: &BTreeMap<u32, Vec<&PhaseSpan>>) -> Option<StageTimes> {
    let (mut whole_us, mut units) = (0.0, 0.0);
    let (mut by_events, mut by_sums) = (Sums::default(), Sums::default());
    let mut reported = false;
    for q in counted {
        if let Some((from, to)) = window(stage, q) {
            whole_us += (to - from) as f64 / 1e3;
            units += if stage == Stage::Prefill { 1.0 } else { (q.tokens.len() - 1) as f64 };
            for span in spans.get(&q.query).into_iter().flatten() {
                by_events.add(&span.phase, within(span, (from, to)));
            }
        } else if let Some((us, n)) = told(stage, q) {
            (whole_us, units, reported) = (whole_us + us, units + n, true);
        } else {
            continue;
        }
        for phase in Phase::ALL.map(Phase::as_str) {
            by_sums.add(phase, figure(q, &format!("{}_{phase}_us", stage.as_str())).unwrap_or(0.0));
        }
    }
    if whole_us <= 0.0 || units <= 0.0 {
        return None;
    }
    let whole = if reported { "runtime_reported" } else { "whole" };
    let fits = |sums: &Sums| !sums.0.is_empty() && sums.total() <= whole_us * (1.0 + EXCESS);
    Some(if fits(&by_events) {
        by_events.stage(stage, whole_us, units, "events", "query")
    } else if fits(&by_sums) {
        by_sums.stage(stage, whole_us, units, if reported { whole } else { "sums" }, "query")
    } else {
        StageTimes { stage, whole_us, units, pieces: vec![piece("query", whole_us, whole)] }
    })
}

/// What a tool without time stamps tells of a query: us, and prompts or steps.
fn told(stage: Stage, q: &Query) -> Option<(f64, f64)> {
    q.aggregate_n?;
    match stage {
        Stage::Prefill => Some((figure(q, "ttft_us").or(figure(q, "prefill_us"))?, 1.0)),
        _ => Some((figure(q, "decode_us")?, figure(q, "decode_steps")?)),
    }
}

fn figure(q: &Query, key: &str) -> Option<f64> {
    q.reported.get(key).copied().filter(|us| us.is_finite() && *us > 0.0)
}

/// Executions of a stage, and their time in us, by single spans.
fn executed<'a>(queries: impl Iterator<Item = ((u64, u64), &'a Vec<&'a PhaseSpan>)>) -> parts::Executed {
    let mut executed = parts::Executed::default();
    for (window, spans) in queries {
        for us in spans.iter().filter(|span| span.phase == Phase::Execute.as_str()).map(|span| within(span, window)).filter(|us| *us > 0.0)
        {
            executed.add(us);
        }
    }
    executed
}

/// A tool without a token loop: a stage is its graphs, one after the other (rule R11).
fn composed(parsed: &Parsed, prompt_tokens: u32) -> Vec<StageTimes> {
    let Ok(whole) = compose(&parsed.graphs, prompt_tokens) else { return Vec::new() };
    [(Stage::Prefill, whole.ttft_ms), (Stage::Decode, whole.tpot_ms)]
        .into_iter()
        .map(|(stage, ms)| {
            let mut pieces = vec![piece("execute", ms * 1e3, "composed")];
            let graphs = parsed.graphs.iter().filter(|g| g.phase == stage.as_str());
            let means: Vec<f64> = graphs.map(|g| g.latency_ms * 1e3).collect();
            parts::split(&mut pieces, &parsed.parts, stage, parts::Executed::of_means(&means));
            StageTimes { stage, whole_us: ms * 1e3, units: 1.0, pieces }
        })
        .collect()
}

fn piece(phase: &str, us: f64, method: &str) -> Piece {
    Piece { phase: phase.to_owned(), us, method: method.to_owned() }
}

/// Time by phase, us, in the order of first sight.
#[derive(Debug, Default)]
struct Sums(Vec<(String, f64)>);
impl Sums {
    fn add(&mut self, phase: &str, us: f64) {
        if us > 0.0 {
            match self.0.iter_mut().find(|(known, _)| known == phase) {
                Some((_, sum)) => *sum += us,
                None => self.0.push((phase.to_owned(), us)),
            }
        }
    }

    fn total(&self) -> f64 {
        self.0.iter().map(|(_, us)| us).sum()
    }

    /// The stage with these parts and the rest; without any part it is one piece of the name `whole`.
    fn stage(self, stage: Stage, whole_us: f64, units: f64, method: &str, whole: &str) -> StageTimes {
        let rest = (whole_us - self.total()).max(0.0);
        let mut pieces: Vec<Piece> = self.0.iter().map(|(phase, us)| piece(phase, *us, method)).collect();
        pieces.push(if pieces.is_empty() { piece(whole, whole_us, "whole") } else { piece(REST, rest, "rest") });
        StageTimes { stage, whole_us, units, pieces }
    }
}
