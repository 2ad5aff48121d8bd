//! Reads the runner protocol: the file named by `BENCH_EVENTS` of our own runners and of users' programs.

use std::collections::BTreeMap;

use bench_runner_protocol::{ErrorKind, Event, Finish, MAX_WARNINGS, Unit, parse_events};

use crate::{
    captured::Captured,
    measurement::{Failure, FailureKind, Layer, ParseError, Parsed, Query, Token, ValueMeans, note},
    phases::Phases,
};

/// Message of a run that left no event at all.
pub const NO_EVENTS: &str = "the runner printed no event";

/// No job has as many queries (a soak of twelve hours, one every 43 ms); a file of garbage may.
/// The test reads fewer: a debug build takes ten seconds for so many.
const MAX_QUERIES: usize = if cfg!(test) { 20_000 } else { 1_000_000 };

/// The most operations of a launch: a model of a hundred blocks has some ten thousand of them, in each phase.
const MAX_LAYERS: usize = 200_000;

/// The most that repeated notes of one key grow to, in bytes.
const MAX_NOTE: usize = 16 << 10;

/// What the events of a launch say. How the process ended is judged by the caller.
///
/// # Errors
/// No event at all, and the first one that contradicts those before it or the launch.
pub fn parsed_from_events(captured: &Captured) -> Result<Parsed, ParseError> {
    match read(captured, MAX_QUERIES)? {
        (parsed, None) => Ok(parsed),
        (_, Some(wrong)) => Err(wrong),
    }
}

/// What the events say before the first one that is wrong, and what is wrong with it: hours of a soak count although its last minute does not.
///
/// # Errors
/// No event at all.
pub fn parsed_until_wrong(captured: &Captured) -> Result<(Parsed, Option<ParseError>), ParseError> {
    read(captured, MAX_QUERIES)
}

fn read(captured: &Captured, most: usize) -> Result<(Parsed, Option<ParseError>), ParseError> {
    const FILE: &str = "events.jsonl";
    let bytes = captured.files.get(FILE).map(Vec::as_slice).unwrap_or_default();
    let (events, warnings) = parse_events(bytes);
    if events.is_empty() {
        let first = warnings.first().map(|w| format!(" ({w})")).unwrap_or_default();
        return Err(ParseError { file: FILE.to_owned(), message: format!("{NO_EVENTS}{first}") });
    }
    let mut parsed = Parsed { warnings, ..Parsed::default() };
    let mut open = Open::default();
    // Of every query its place in the list: a soak has too many to look through.
    let mut places: BTreeMap<u32, usize> = BTreeMap::new();
    let wrong = |message: String| ParseError { file: FILE.to_owned(), message };
    let mut stopped = None;
    for event in events {
        if let Err(message) = take(event, (captured.ended.window_ns, most), &mut parsed, &mut open, &mut places) {
            stopped = Some(wrong(message));
            break;
        }
    }
    let (phases, odd) = open.phases.finish();
    parsed.phases = phases;
    parsed.warnings.extend(odd);
    if open.idle_unknown {
        let text = "idle_end without an idle_begin between load_end and the first query: not taken for idle";
        parsed.warnings.push(text.to_owned());
    }
    if parsed.idle_ns.zip(parsed.queries.first()).is_some_and(|((_, end), first)| first.start_ns < end) {
        parsed.queries.clear();
        stopped = Some(wrong("the first query begins before idle_end".to_owned()));
    }
    if let Some((place, message)) = disordered(&parsed.queries) {
        parsed.queries.truncate(place);
        stopped = Some(wrong(message));
    }
    parsed.ended &= stopped.is_none();
    Ok((parsed, stopped))
}

/// Begins of what has not ended.
#[derive(Default)]
struct Open {
    load: Option<u64>,
    idle: Option<u64>,
    /// An idle time was told whose begin, or what it was, is not known.
    idle_unknown: bool,
    /// Operations so far, by graph and phase.
    places: BTreeMap<(String, String), u32>,
    phases: Phases,
}

/// Takes one event: within the window, and of so many queries at most.
fn take(
    event: Event,
    (window_ns, most): (Option<(u64, u64)>, usize),
    parsed: &mut Parsed,
    open: &mut Open,
    places: &mut BTreeMap<u32, usize>,
) -> Result<(), String> {
    in_window(&event, window_ns)?;
    // The last line says that everything was done: what comes after it contradicts it.
    parsed.ended = matches!(event, Event::End { .. });
    match event {
        Event::LoadBegin { t_ns } => open.load = Some(t_ns),
        Event::LoadEnd { t_ns, unit, graphs } => {
            if !graphs.is_empty() {
                parsed.notes.insert(note::GRAPHS.to_owned(), graphs.join(", ").chars().take(MAX_NOTE).collect());
            }
            parsed.load_ns = open.load.filter(|b| *b <= t_ns).map(|b| (b, t_ns));
            parsed.unit_reported = unit.map(unit_word);
        }
        Event::IdleBegin { t_ns } => open.idle = Some(t_ns),
        Event::IdleEnd { t_ns } => match open.idle.take() {
            // The model has to be there, and nothing may have been asked of it.
            Some(begin) if parsed.queries.is_empty() && parsed.load_ns.is_some_and(|(_, loaded)| loaded <= begin) && begin <= t_ns => {
                parsed.idle_ns = Some((begin, t_ns));
            }
            _ => open.idle_unknown = true,
        },
        Event::Prompt { t_ns, query, tokens } => {
            if places.insert(query, parsed.queries.len()).is_some() {
                return Err(format!("query {query} begins twice"));
            }
            if parsed.queries.len() == most {
                return Err(format!("more than {most} queries"));
            }
            parsed.queries.push(Query { query, start_ns: t_ns, prompt_tokens: Some(tokens), ..Query::default() });
        }
        Event::Token { query, i, id, t_ns } => {
            if let Some(q) = find(parsed, places, query) {
                if i as usize != q.tokens.len() {
                    return Err(format!("query {query}: token {} has i = {i}", q.tokens.len()));
                }
                q.tokens.push(Token { id, t_ns });
            }
        }
        Event::QueryEnd { query, t_ns, prompt_tokens, generated_tokens, finish, reported } => {
            if let Some(q) = find(parsed, places, query) {
                q.end_ns = Some(t_ns);
                q.prompt_tokens_reported = prompt_tokens;
                q.generated_reported = generated_tokens;
                q.finish = Some(finish_word(finish));
                q.reported = reported;
            }
        }
        Event::PhaseBegin { t_ns, phase, query, i } => open.phases.begin(query, i, phase, t_ns),
        Event::PhaseEnd { t_ns, phase, query } => open.phases.end(query, &phase, t_ns, window_ns),
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
        Event::Layer { name, graph, phase, op, unit, duration_us, cycles, count, method, .. } => {
            let known = |v: f64| (v.is_finite() && v >= 0.0).then_some(v);
            let cycles = cycles.filter(|_| duration_us.is_none()).map(|n| n as f64);
            if parsed.layers.len() == MAX_LAYERS {
                return Err(format!("more than {MAX_LAYERS} layers"));
            }
            let (graph, phase) =
                (graph.unwrap_or_default(), phase.filter(|p| matches!(p.as_str(), "prefill" | "decode")).unwrap_or_default());
            let index = open.places.entry((graph.clone(), phase.clone())).or_default();
            parsed.layers.push(Layer {
                graph,
                phase,
                index: *index,
                name,
                op_type: op,
                unit: unit.map(unit_word),
                value: duration_us.or(cycles).and_then(known),
                value_unit: if cycles.is_some() { "cycles" } else { "us" }.to_owned(),
                count,
                method: method.unwrap_or_else(|| "runner".to_owned()),
                value_means: cycles.is_none().then_some(ValueMeans::WallTime),
                ..Layer::default()
            });
            *index += 1;
        }
        // Tokens of several in a line come as single ones.
        Event::End { .. } | Event::Tokens { .. } | Event::Memory { .. } => {}
    }
    Ok(())
}

/// The place of the first query whose times are in no order, and what is wrong with them.
fn disordered(queries: &[Query]) -> Option<(usize, String)> {
    let backwards = queries.iter().position(|q| {
        let first_ok = q.tokens.first().is_none_or(|t| t.t_ns >= q.start_ns);
        !first_ok || q.tokens.windows(2).any(|w| w[1].t_ns < w[0].t_ns)
    });
    if let Some(place) = backwards {
        return Some((place, format!("query {}: time stamps go backwards", queries[place].query)));
    }
    // A query that waits for another would count the wait as its own.
    let over = |q: &Query| q.tokens.last().map_or(q.start_ns, |t| t.t_ns).max(q.end_ns.unwrap_or(0));
    let place = queries.windows(2).position(|pair| pair[1].start_ns < over(&pair[0]))?;
    let (before, after) = (queries[place].query, queries[place + 1].query);
    Some((place + 1, format!("query {after} begins before query {before} is over: answer one after the other")))
}

/// What is timed happened while the command ran. Another clock, or times that were made up, would give figures of nothing.
fn in_window(event: &Event, window_ns: Option<(u64, u64)>) -> Result<(), String> {
    let (what, t_ns) = match event {
        Event::LoadBegin { t_ns } => ("load_begin", *t_ns),
        Event::LoadEnd { t_ns, .. } => ("load_end", *t_ns),
        Event::IdleBegin { t_ns } => ("idle_begin", *t_ns),
        Event::IdleEnd { t_ns } => ("idle_end", *t_ns),
        Event::Prompt { t_ns, .. } => ("prompt", *t_ns),
        Event::Token { t_ns, .. } | Event::Tokens { t_ns, .. } => ("token", *t_ns),
        Event::QueryEnd { t_ns, .. } => ("query_end", *t_ns),
        Event::End { t_ns } => ("end", *t_ns),
        // Phases outside are left out, with a warning.
        Event::PhaseBegin { .. }
        | Event::PhaseEnd { .. }
        | Event::Note { .. }
        | Event::Memory { .. }
        | Event::Layer { .. }
        | Event::Error { .. } => return Ok(()),
    };
    match window_ns {
        Some((start, end)) if t_ns < start || t_ns > end => {
            Err(format!("time stamps are not CLOCK_MONOTONIC of this launch: {what} at {t_ns} ns, the program ran from {start} to {end}"))
        }
        _ => Ok(()),
    }
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

fn find<'a>(parsed: &'a mut Parsed, places: &BTreeMap<u32, usize>, query: u32) -> Option<&'a mut Query> {
    let found = places.get(&query).copied();
    if found.is_none() {
        let warning = format!("an event of query {query}, which never began");
        // One for each query is enough, and a file of garbage names no end of them.
        if parsed.warnings.len() < 2 * MAX_WARNINGS && !parsed.warnings.contains(&warning) {
            parsed.warnings.push(warning);
        }
    }
    found.map(|i| &mut parsed.queries[i])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Check, Ended, Expected, check_count};

    const GOOD: &str = r#"{"v":1,"event":"load_begin","t_ns":10}
{"v":1,"event":"load_end","t_ns":11}
{"v":1,"event":"prompt","t_ns":12,"query":0,"tokens":4}
{"v":1,"event":"token","t_ns":13,"query":0,"i":0,"id":5}
{"v":1,"event":"token","t_ns":14,"query":0,"i":1,"id":6}
{"v":1,"event":"query_end","t_ns":15,"query":0,"finish":"length"}
{"v":1,"event":"end","t_ns":20}
"#;

    fn parse(text: &str, window_ns: Option<(u64, u64)>) -> Result<Parsed, ParseError> {
        let files = [("events.jsonl".to_owned(), text.as_bytes().to_vec())].into();
        parsed_from_events(&Captured { files, ended: Ended { window_ns, ..Ended::default() }, ..Captured::default() })
    }

    #[test]
    fn what_comes_before_a_wrong_event_is_kept() {
        let more = GOOD
            .replace("{\"v\":1,\"event\":\"end\",\"t_ns\":20}\n", "{\"v\":1,\"event\":\"prompt\",\"t_ns\":16,\"query\":1,\"tokens\":4}\n");
        for (bad, words, kept) in [
            ("{\"v\":1,\"event\":\"token\",\"t_ns\":99,\"query\":1,\"i\":0,\"id\":5}\n", "are not CLOCK_MONOTONIC", 2),
            ("{\"v\":1,\"event\":\"token\",\"t_ns\":15,\"query\":1,\"i\":0,\"id\":5}\n", "query 1: time stamps go backwards", 1),
            ("{\"v\":1,\"event\":\"prompt\",\"t_ns\":14,\"query\":2,\"tokens\":4}\n", "query 2 begins before query 1 is over", 2),
            ("{\"v\":1,\"event\":\"prompt\",\"t_ns\":17,\"query\":0,\"tokens\":4}\n", "query 0 begins twice", 2),
        ] {
            let files = [("events.jsonl".to_owned(), format!("{more}{bad}").into_bytes())].into();
            let captured = Captured { files, ended: Ended { window_ns: Some((10, 30)), ..Ended::default() }, ..Captured::default() };
            let (parsed, wrong) = parsed_until_wrong(&captured).unwrap();
            let wrong = wrong.unwrap_or_else(|| panic!("nothing wrong with {bad}"));
            assert!(wrong.message.contains(words), "{words} in {wrong}");
            assert_eq!((parsed.queries.len(), parsed.ended, parsed.queries[0].tokens.len()), (kept, false, 2), "{bad}");
            assert_eq!(parsed_from_events(&captured).unwrap_err(), wrong);
        }
    }

    fn counted(text: &str) -> (Check, String) {
        let expected = Expected { prompt_tokens: 4, gen_tokens: 2, queries: 1, ..Expected::default() };
        let (check, reasons) = check_count(&expected, &parse(text, None).expect("events"));
        (check, reasons.join("; "))
    }

    fn with(old: &str, new: &str) -> String {
        assert!(GOOD.contains(old), "{old}");
        GOOD.replace(old, new)
    }

    #[test]
    fn a_whole_answer_is_confirmed_and_anything_less_contradicted() {
        assert_eq!(counted(GOOD), (Check::Confirmed, String::new()));
        for (text, words) in [
            (with("\"length\"", "\"error\""), "query 0: ended by `error`, not `length`"),
            (with("\"length\"", "\"bored\""), "query 0: ended by `other`, not `length`"),
            (with("query_end", "new_event"), "query 0: no event `query_end`"),
            (with("\"end\"", "\"fin\""), "without the event `end`"),
            (
                format!("{}{GOOD}", r#"{"v":1,"event":"end","t_ns":9}"#.to_owned() + "\n")
                    .replace("\"end\",\"t_ns\":20", "\"fin\",\"t_ns\":20"),
                "without the event `end`",
            ),
        ] {
            let (check, reasons) = counted(&text);
            assert!(check == Check::Contradicted && reasons.contains(words), "{words}: {reasons}");
        }
    }

    #[test]
    fn the_place_of_a_token_is_its_i() {
        for text in [with("\"i\":1", "\"i\":2"), with("\"i\":1", "\"i\":0")] {
            assert!(parse(&text, None).expect_err("wrong i").message.starts_with("query 0: token 1 has i = "));
        }
    }

    #[test]
    fn queries_are_answered_one_after_the_other() {
        let second = r#"{"v":1,"event":"prompt","t_ns":T,"query":1,"tokens":4}"#;
        let with = |t: &str| with("{\"v\":1,\"event\":\"end\"", &format!("{}\n{{\"v\":1,\"event\":\"end\"", second.replace('T', t)));
        assert!(parse(&with("15"), None).is_ok());
        for t in ["14", "12", "1"] {
            let error = parse(&with(t), None).expect_err("overlap");
            assert_eq!(error.message, "query 1 begins before query 0 is over: answer one after the other");
        }
    }

    #[test]
    fn layers_keep_their_order_within_a_phase() {
        let lines = r#"{"v":1,"event":"layer","t_ns":16,"name":"embed","phase":"prefill","op":"Gather","unit":"cpu","duration_us":2.5,"count":3,"method":"mnn-callback"}
{"v":1,"event":"layer","t_ns":16,"name":"embed","phase":"decode","cycles":7}
{"v":1,"event":"layer","t_ns":16,"name":"lm_head","phase":"prefill","duration_us":-1.0}
{"v":1,"event":"layer","t_ns":16,"name":"x","phase":"<b>"}
"#;
        let parsed = parse(&with("{\"v\":1,\"event\":\"end\"", &format!("{lines}{{\"v\":1,\"event\":\"end\"")), None).unwrap();
        let told: Vec<_> = parsed
            .layers
            .iter()
            .map(|l| (l.phase.as_str(), l.index, l.name.as_str(), l.value, l.value_unit.as_str(), l.method.as_str()))
            .collect();
        assert_eq!(
            told,
            [
                ("prefill", 0, "embed", Some(2.5), "us", "mnn-callback"),
                ("decode", 0, "embed", Some(7.0), "cycles", "runner"),
                // Less than nothing is no time.
                ("prefill", 1, "lm_head", None, "us", "runner"),
                ("", 0, "x", None, "us", "runner"),
            ]
        );
        assert_eq!(
            (parsed.layers[0].op_type.as_deref(), parsed.layers[0].unit.as_deref(), parsed.layers[0].count),
            (Some("Gather"), Some("cpu"), Some(3))
        );
    }

    #[test]
    fn endless_queries_are_refused_soon() {
        let line = |q: u32| format!("{{\"v\":1,\"event\":\"prompt\",\"t_ns\":1,\"query\":{q},\"tokens\":1}}");
        let many: Vec<String> = (0..5000).map(line).collect();
        let files = [("events.jsonl".to_owned(), (many.join("\n") + "\n").into_bytes())].into();
        let (parsed, wrong) = read(&Captured { files, ..Captured::default() }, 4000).unwrap();
        assert_eq!((parsed.queries.len(), wrong.unwrap().message.as_str()), (4000, "more than 4000 queries"));
    }

    #[test]
    fn idle_is_after_the_load_and_before_the_first_query() {
        let idle = |from: u64, to: u64| {
            format!("{{\"v\":1,\"event\":\"idle_begin\",\"t_ns\":{from}}}\n{{\"v\":1,\"event\":\"idle_end\",\"t_ns\":{to}}}\n")
        };
        let before = |event: &str, lines: &str| {
            let at = format!("{{\"v\":1,\"event\":\"{event}\"");
            with(&at, &format!("{lines}{at}"))
        };
        assert_eq!(parse(GOOD, None).unwrap().idle_ns, None);
        let whole = parse(&before("prompt", &idle(11, 12)), Some((10, 20))).unwrap();
        assert_eq!((whole.idle_ns, whole.load_ns, whole.warnings.len()), (Some((11, 12)), Some((10, 11)), 0));
        // Without the model, after a query, backwards, without its begin: what that was is not known.
        for text in [
            before("load_end", &idle(10, 11)),
            before("end", &idle(16, 17)),
            before("prompt", &idle(12, 11)),
            before("prompt", idle(11, 12).split_once('\n').unwrap().1),
        ] {
            let parsed = parse(&text, None).unwrap();
            assert_eq!((parsed.idle_ns, parsed.warnings.len()), (None, 1), "{text}");
        }
        assert_eq!(parse(&before("prompt", &idle(11, 13)), None).unwrap_err().message, "the first query begins before idle_end");
        assert!(parse(&before("prompt", &idle(11, 12)), Some((10, 11))).is_err());
    }

    #[test]
    fn time_stamps_lie_within_the_launch() {
        assert!(parse(GOOD, Some((10, 20))).is_ok());
        for window in [(11, 20), (10, 19), (1000, 2000)] {
            let error = parse(GOOD, Some(window)).expect_err("outside");
            assert!(error.message.starts_with("time stamps are not CLOCK_MONOTONIC of this launch: "), "{error}");
        }
    }
}
