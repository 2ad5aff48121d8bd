//! Reads the runner protocol: the file named by `BENCH_EVENTS` of our own runners and of users' programs.

use bench_runner_protocol::{ErrorKind, Event, Finish, MAX_WARNINGS, Unit, parse_events};

use crate::{
    captured::Captured,
    measurement::{Failure, FailureKind, ParseError, Parsed, Query, Token},
};

/// Message of a run that left no event at all.
pub const NO_EVENTS: &str = "the runner printed no event";

/// The most that repeated notes of one key grow to, in bytes.
const MAX_NOTE: usize = 16 << 10;

/// What the events of a launch say. How the process ended is judged by the caller.
pub fn parsed_from_events(captured: &Captured) -> Result<Parsed, ParseError> {
    const FILE: &str = "events.jsonl";
    let bytes = captured.files.get(FILE).map(Vec::as_slice).unwrap_or_default();
    let (events, warnings) = parse_events(bytes);
    if events.is_empty() {
        let first = warnings.first().map(|w| format!(" ({w})")).unwrap_or_default();
        return Err(ParseError { file: FILE.to_owned(), message: format!("{NO_EVENTS}{first}") });
    }
    let mut parsed = Parsed { warnings, ..Parsed::default() };
    let mut load_begin = None;
    for event in events {
        match event {
            Event::LoadBegin { t_ns } => load_begin = Some(t_ns),
            Event::LoadEnd { t_ns, unit, .. } => {
                parsed.load_ns = load_begin.filter(|b| *b <= t_ns).map(|b| (b, t_ns));
                parsed.unit_reported = unit.map(unit_word);
            }
            Event::Prompt { t_ns, query, tokens } => {
                if parsed.queries.iter().any(|q| q.query == query) {
                    return Err(ParseError { file: FILE.to_owned(), message: format!("query {query} begins twice") });
                }
                parsed.queries.push(Query { query, start_ns: t_ns, prompt_tokens: Some(tokens), ..Query::default() });
            }
            Event::Token { query, id, t_ns, .. } => {
                if let Some(q) = find(&mut parsed, query) {
                    q.tokens.push(Token { id, t_ns });
                }
            }
            Event::QueryEnd { query, t_ns, prompt_tokens, generated_tokens, finish, reported } => {
                if let Some(q) = find(&mut parsed, query) {
                    q.end_ns = Some(t_ns);
                    q.prompt_tokens_reported = prompt_tokens;
                    q.generated_reported = generated_tokens;
                    q.finish = Some(finish_word(finish));
                    q.reported = reported;
                }
            }
            Event::Note { key, value, .. } => {
                // One note a graph is usual: they stand beside each other.
                let more = |old: &mut String| {
                    if old.len() + value.len() < MAX_NOTE {
                        old.extend(["; ", &value]);
                    }
                };
                parsed.notes.entry(key).and_modify(more).or_insert_with(|| value.clone());
            }
            Event::Error { kind, message, .. } => {
                let kind = match kind {
                    ErrorKind::Usage => FailureKind::Usage,
                    ErrorKind::Model => FailureKind::Model,
                    ErrorKind::Runtime | ErrorKind::Other => FailureKind::Runtime,
                };
                parsed.failure.get_or_insert(Failure::new(kind, message));
            }
            Event::Memory { .. } | Event::Layer { .. } | Event::End { .. } => {}
        }
    }
    for q in &parsed.queries {
        let first_ok = q.tokens.first().is_none_or(|t| t.t_ns >= q.start_ns);
        if !first_ok || q.tokens.windows(2).any(|w| w[1].t_ns < w[0].t_ns) {
            return Err(ParseError { file: FILE.to_owned(), message: format!("query {}: time stamps go backwards", q.query) });
        }
    }
    Ok(parsed)
}

fn unit_word(unit: Unit) -> String {
    match unit {
        Unit::Npu => "npu",
        Unit::Cpu => "cpu",
        Unit::Gpu => "gpu",
    }
    .to_owned()
}

fn finish_word(finish: Finish) -> String {
    match finish {
        Finish::Length => "length",
        Finish::Eos => "eos",
        Finish::Error => "error",
        Finish::Context => "context",
        Finish::Other => "other",
    }
    .to_owned()
}

fn find(parsed: &mut Parsed, query: u32) -> Option<&mut Query> {
    let found = parsed.queries.iter().position(|q| q.query == query);
    if found.is_none() {
        let warning = format!("an event of query {query}, which never began");
        // One for each query is enough, and a file of garbage names no end of them.
        if parsed.warnings.len() < 2 * MAX_WARNINGS && !parsed.warnings.contains(&warning) {
            parsed.warnings.push(warning);
        }
    }
    found.map(|i| &mut parsed.queries[i])
}
