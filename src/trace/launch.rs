//! One launch on its tracks.

use std::io::{self, Write};

use bench_backend_api::{Parsed, PhaseSpan, Query};
use serde_json::json;

use super::{
    spans::{Span, nested, ns},
    writer::{Args, Track, Writer},
};

/// Tracks of a process that is a device's clock.
pub const HARNESS: u32 = 1;
const RUNNER: u32 = 2;
const TOKENS: u32 = 3;
const PHASES: u32 = 4;
const WINDOWS: u32 = 5;
/// Where moments go: throttling, trips, failures.
pub const MARKS: u32 = 6;

/// Which launch: cell, pass, number.
pub type Key = (String, String, u32);

/// A moment worth a look.
#[derive(Debug, Clone, PartialEq)]
pub struct Mark {
    /// When, ns.
    pub at: u64,
    /// What.
    pub name: String,
}

/// A launch, as far as it can be drawn; times in ns of the one clock that it has.
#[derive(Debug, Default)]
pub struct Launch {
    /// Which.
    pub key: Key,
    /// Boot of the device: the clock begins anew with each. `None` where it is not known.
    pub boot: Option<String>,
    /// Begin of its first step and end of its last, as far as known.
    pub window: (u64, Option<u64>),
    /// Its steps, where there are several.
    pub steps: Vec<Span>,
    /// What the runner told.
    pub parsed: Parsed,
    /// Windows of a soak.
    pub windows: Vec<Span>,
    /// Figures that hold from a moment on, ns: name, unit, value.
    pub figures: Vec<(u64, &'static str, &'static str, f64)>,
    /// Moments.
    pub marks: Vec<Mark>,
    /// Further words.
    pub args: Args,
}

impl Launch {
    /// Its name in the viewer.
    pub fn title(&self) -> String {
        let (cell, pass, number) = &self.key;
        format!("{cell} {pass}-{number:03}")
    }

    /// The launch, its steps, its load, its queries and their phases.
    fn runner(&self) -> Vec<Span> {
        let parsed = &self.parsed;
        let (begin, end) = (ns(self.window.0), self.window.1.map(ns));
        let queries: Vec<Span> = parsed.queries.iter().flat_map(query).collect();
        let inner = queries.iter().chain(&self.steps).map(|span| span.to).max();
        // In six digits a launch may end before its last token.
        let whole = Span { args: self.args.clone(), ..Span::new(self.title(), begin, end.max(inner).unwrap_or(begin)) };
        let part = |name: &str, at: Option<(u64, u64)>| at.map(|(from, to)| Span::new(name, ns(from), ns(to)));
        let parts = [part("load", parsed.load_ns), part("idle, model in memory", parsed.idle_ns)];
        nested([whole].into_iter().chain(self.steps.iter().cloned()).chain(parts.into_iter().flatten()).chain(queries).collect())
    }

    /// Every token from the one before it, the first from the submission: the width is the latency.
    fn tokens(&self) -> Vec<Span> {
        let of = |q: &Query| {
            let mut before = ns(q.start_ns);
            let number = q.query;
            let span = |(i, token): (usize, &bench_backend_api::Token)| {
                let from = std::mem::replace(&mut before, ns(token.t_ns));
                let mut span = Span::new(if i == 0 { "first token".to_owned() } else { format!("token {i}") }, from, ns(token.t_ns));
                span.args.insert("query".to_owned(), number.into());
                span.args.extend(token.id.map(|id| ("id".to_owned(), id.into())));
                span
            };
            q.tokens.iter().enumerate().map(span).collect::<Vec<_>>()
        };
        nested(self.parsed.queries.iter().flat_map(of).collect())
    }

    /// What the runner tells of the parts of its load and its queries.
    fn phases(&self) -> Vec<Span> {
        let span = |phase: &PhaseSpan| {
            let mut span = Span::new(phase.phase.clone(), ns(phase.begin_ns), ns(phase.end_ns));
            span.args.extend(phase.query.map(|query| ("query".to_owned(), query.into())));
            span.args.extend(phase.token.map(|token| ("token".to_owned(), token.into())));
            span
        };
        nested(self.parsed.phases.iter().map(span).collect())
    }

    /// Draws it into a process.
    pub fn draw<W: Write>(&self, pid: u32, writer: &mut Writer<W>) -> io::Result<()> {
        let windows = nested(self.windows.clone());
        let tracks = [
            (RUNNER, "runner", self.runner()),
            (TOKENS, "tokens", self.tokens()),
            (PHASES, "phases of the runner", self.phases()),
            (WINDOWS, "windows of soaks", windows),
        ];
        for (tid, name, spans) in tracks {
            if !spans.is_empty() {
                writer.thread(Track { pid, tid }, name)?;
                writer.spans(Track { pid, tid }, spans)?;
            }
        }
        for (at, name, unit, value) in &self.figures {
            writer.counter(pid, name, unit, ns(*at), *value)?;
        }
        for mark in &self.marks {
            self::mark(writer, pid, &mark.name, ns(mark.at))?;
        }
        Ok(())
    }
}

/// A moment worth a look.
pub fn mark<W: Write>(writer: &mut Writer<W>, pid: u32, name: &str, at: i64) -> io::Result<()> {
    let track = Track { pid, tid: MARKS };
    writer.thread(track, "markers")?;
    writer.instant(track, name, at, Args::new())
}

/// A query with its prefill and its decode. A mean of several that the tool told has no place in time.
fn query(q: &Query) -> Vec<Span> {
    if q.aggregate_n.is_some() {
        return Vec::new();
    }
    let (first, last) = (q.tokens.first().map(|t| ns(t.t_ns)), q.tokens.last().map(|t| ns(t.t_ns)));
    let start = ns(q.start_ns);
    let mut whole = Span::new(format!("query {}", q.query), start, q.end_ns.map(ns).or(last).unwrap_or(start));
    let words = json!({"prompt_tokens": q.prompt_tokens, "tokens": q.tokens.len(), "finish": q.finish, "reported": q.reported});
    let told = |value: &serde_json::Value| !value.is_null() && value.as_object().is_none_or(|all| !all.is_empty());
    whole.args.extend(words.as_object().into_iter().flatten().filter(|(_, value)| told(value)).map(|(k, v)| (k.clone(), v.clone())));
    let part = |name: &str, from, to| (from < to).then(|| Span::new(name, from, to));
    let prefill = first.and_then(|first| part("prefill", start, first));
    let decode = first.zip(last).and_then(|(first, last)| part("decode", first, last));
    [Some(whole), prefill, decode].into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use bench_backend_api::Token;

    use super::*;

    fn told(spans: &[Span]) -> Vec<(&str, i64, i64)> {
        spans.iter().map(|s| (s.name.as_str(), s.from, s.to)).collect()
    }

    #[test]
    fn a_launch_by_hand() {
        let tokens = [20, 25, 31].map(|t_ns| Token { id: Some(7), t_ns }).to_vec();
        let answered = Query { query: 0, start_ns: 10, end_ns: Some(32), tokens, prompt_tokens: Some(4), ..Query::default() };
        let mean = Query { query: 1, aggregate_n: Some(5), ..Query::default() };
        let parsed = Parsed { load_ns: Some((2, 8)), queries: vec![answered, mean], ..Parsed::default() };
        let launch = Launch { key: ("c".into(), "measure".into(), 3), window: (1, Some(40)), parsed, ..Launch::default() };
        let wanted = [("c measure-003", 1, 40), ("load", 2, 8), ("query 0", 10, 32), ("prefill", 10, 20), ("decode", 20, 31)];
        assert_eq!(told(&launch.runner()), wanted);
        assert_eq!(told(&launch.tokens()), [("first token", 10, 20), ("token 1", 20, 25), ("token 2", 25, 31)]);
        let args = &launch.runner()[2].args;
        assert_eq!(args.keys().collect::<Vec<_>>(), ["prompt_tokens", "tokens"]);
    }
}
