//! Timings of `llama-cli`, `llama-completion`, `llama-perplexity` and `llama-server`, of all ages:
//! `llama_print_timings:` until 2024-09, then `llama_perf_context_print:`, the server's lines without a name, and the summary
//! `[ Prompt: 200.0 t/s | Generation: 30.0 t/s ]` of 2026.

use bench_backend_api::{Unreadable, text};
use serde_json::Value;

use super::{
    row::Row,
    value::{Bad, Place, number, number_value, real_speed},
};

/// What was read of a file.
#[derive(Debug, Default)]
pub(super) struct Timings {
    /// The process's own statistics, printed once at its end.
    pub(super) process: Vec<Row>,
    /// Requests of a server.
    pub(super) requests: Vec<Row>,
    /// Queries whose lines stand bare.
    pub(super) bare: Vec<Row>,
    /// Summaries of turns.
    pub(super) summaries: Vec<Row>,
    /// What was odd.
    pub(super) warnings: Vec<String>,
}

/// Who printed a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum By {
    Process,
    Server,
    Nobody,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    Sampling,
    Load,
    Prompt,
    Eval,
    Total,
}

/// Longer names before their endings.
const KEYS: &[(&str, Key)] = &[
    ("prompt eval time", Key::Prompt),
    ("generation eval time", Key::Eval),
    ("eval time", Key::Eval),
    ("load time", Key::Load),
    ("sampling time", Key::Sampling),
    ("sample time", Key::Sampling),
    ("total time", Key::Total),
];

/// One line of timing.
struct Line<'a> {
    key: Key,
    name: &'static str,
    by: By,
    rest: &'a str,
}

/// Whether what stands before a line is a log's prefix: `0.02.432.302 I `, `[2026-01-01 12:00:00][DEBUG] `, `I `.
fn is_prefix(text: &str) -> bool {
    text.split_whitespace().all(|word| {
        let word = word.trim_matches(['[', ']', '|']);
        matches!(word, "slot" | "srv")
            || word.len() <= 1
            || word.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b':' | b'-' | b'T' | b'Z'))
            || word.contains("][")
    })
}

fn timing(line: &str) -> Option<Line<'_>> {
    let (left, rest) = line.split_once('=')?;
    let left = left.trim_end();
    let (before, name, key) = KEYS.iter().find_map(|(name, key)| Some((left.strip_suffix(name)?, *name, *key)))?;
    let functions = [("llama_perf", By::Process), ("llama_print_timings", By::Process), ("print_timing", By::Server)];
    let (start, by) = functions.iter().find_map(|(function, by)| Some((before.find(function)?, *by))).unwrap_or((before.len(), By::Nobody));
    is_prefix(&before[..start]).then_some(Line { key, name, by, rest: rest.trim() })
}

/// Duration, count and printed rate: `149.19 ms /     7 tokens (   21.31 ms per token,    46.92 tokens per second)`.
#[derive(Debug, Default, Clone, Copy)]
struct Figures {
    ms: f64,
    count: Option<f64>,
    rate: Option<f64>,
}

fn figures(rest: &str, place: Place<'_>) -> Result<Option<Figures>, Unreadable> {
    let Some((ms, unit)) = text::quantity(rest) else {
        let word = rest.split_whitespace().next().unwrap_or("");
        return if number(word) == Err(Bad::Comma) { Err(place.comma(word)) } else { Ok(None) };
    };
    let Some(ms) = text::to_ms(ms, unit).filter(|ms| *ms == 0.0 || text::plausible_ms(*ms)) else { return Ok(None) };
    let count = rest.split_once('/').and_then(|(_, count)| count.split_whitespace().next()).and_then(text::count);
    let per_second =
        rest.find("tokens per second").and_then(|end| rest[..end].split_whitespace().next_back()).map(|word| word.trim_matches('('));
    let printed = match per_second.map(number) {
        Some(Err(Bad::Comma)) => return Err(place.comma(rest)),
        Some(Ok(rate)) => Some(rate),
        _ => None,
    };
    // 2023 printed no rate beside the time.
    let rate = if per_second.is_some() { printed } else { count.filter(|_| ms > 0.0).map(|count| count * 1e3 / ms) };
    Ok(Some(Figures { ms, count, rate }))
}

/// A query under construction.
struct Group {
    row: Row,
    keys: Vec<Key>,
    by: By,
}

/// Reads all timings of a file.
pub(super) fn read(file: &str, lines: &[&str]) -> Result<Timings, Unreadable> {
    let mut timings = Timings::default();
    let mut groups: Vec<Group> = Vec::new();
    let mut turn_ended = true;
    let mut perplexity: Option<Value> = None;
    for (at, line) in lines.iter().enumerate() {
        let place = Place { file, line: at + 1 };
        if let Some(row) = summary(line, place)? {
            // Within one answer of a model only the last counts: the others may be its own words.
            if !turn_ended {
                timings.summaries.pop();
            }
            timings.summaries.push(row);
            turn_ended = false;
        } else if line.starts_with("> ") || line.trim_end() == ">" {
            turn_ended = true;
        }
        if let Some(found) = timing(line) {
            let Some(read) = figures(found.rest, place)? else {
                timings.warnings.push(format!("{file} line {}: `{}` is no time", at + 1, found.rest));
                continue;
            };
            // A process prints sampling and loading before the rest.
            let first = matches!(found.key, Key::Sampling | Key::Load);
            let fresh = groups.last().is_none_or(|group| {
                let begun = group.keys.contains(&Key::Prompt) || group.keys.contains(&Key::Eval);
                group.keys.contains(&found.key) || group.by != found.by || first && begun
            });
            if fresh {
                groups.push(Group { row: Row::new("query 1"), keys: Vec::new(), by: found.by });
            }
            if let Some(group) = groups.last_mut() {
                add(group, &found, read, place, &mut timings.warnings);
            }
        } else if let Some((left, right)) = line.split_once('=')
            && left.trim_end().ends_with("graphs reused")
            && let Some(count) = text::number(right).and_then(number_value)
            && let Some(group) = groups.last_mut()
        {
            group.row.report("graphs reused", count);
        } else if let Some((_, estimate)) = line.split_once("Final estimate: PPL =")
            && let Some((value, _)) = text::quantity(estimate)
        {
            timings.warnings.push(format!("{file}: llama-perplexity: the prompt time is that of scoring a text"));
            perplexity = number_value(value);
        }
    }
    if let (Some(value), Some(group)) = (perplexity, groups.last_mut()) {
        group.row.report("perplexity", value);
    }
    for mut group in groups {
        if !(group.keys.contains(&Key::Prompt) || group.keys.contains(&Key::Eval)) {
            continue;
        }
        if !group.row.measured() {
            group.row.measurement.metrics.clear();
        }
        match group.by {
            By::Process => timings.process.push(group.row),
            By::Server => timings.requests.push(group.row),
            By::Nobody => timings.bare.push(group.row),
        }
    }
    Ok(timings)
}

fn add(group: &mut Group, line: &Line<'_>, read: Figures, place: Place<'_>, warnings: &mut Vec<String>) {
    group.keys.push(line.key);
    let printed = line.rest.split('(').next().unwrap_or("").split_whitespace().collect::<Vec<_>>().join(" ");
    group.row.report(line.name, printed);
    let measurement = &mut group.row.measurement;
    let (speed, tokens) = match line.key {
        Key::Load => {
            if read.ms > 0.0 {
                measurement.metric("load_ms", read.ms);
            }
            return;
        }
        Key::Total => {
            if read.ms > 0.0 {
                measurement.metric("e2e_ms", read.ms);
            }
            return;
        }
        Key::Sampling => return,
        Key::Prompt => ("prefill_tok_s", "prompt_tokens"),
        Key::Eval => ("decode_tok_s", "generated_tokens"),
    };
    match read.rate.filter(|&rate| real_speed(rate) && read.ms > 0.0) {
        Some(rate) => {
            measurement.metric(speed, rate);
            if let Some(count) = read.count.and_then(number_value) {
                measurement.metrics.insert(tokens.to_owned(), count);
            }
        }
        // Nothing was decoded: llama.cpp counts at least one run.
        None => warnings.push(format!("{} line {}: {} of {} ms is no measurement", place.file, place.line, line.name, read.ms)),
    }
}

/// `[ Prompt: 200.0 t/s | Generation: 30.0 t/s ]`.
fn summary(line: &str, place: Place<'_>) -> Result<Option<Row>, Unreadable> {
    let Some(start) = line.find("[ Prompt:") else { return Ok(None) };
    let Some(inner) = line[start..].trim_end().strip_prefix('[').and_then(|inner| inner.strip_suffix(']')) else { return Ok(None) };
    if !inner.contains("Generation:") {
        return Ok(None);
    }
    let mut row = Row::new("query 1");
    for part in inner.split('|') {
        let Some((name, value)) = part.split_once(':') else { continue };
        let (name, value) = (name.trim(), value.trim());
        row.report(name, value);
        let metric = match name {
            "Prompt" => "prefill_tok_s",
            "Generation" => "decode_tok_s",
            _ => continue,
        };
        let mut words = value.split_whitespace();
        let (figure, unit) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
        match number(figure) {
            Ok(rate) if real_speed(rate) && unit == "t/s" => {
                row.measurement.metric(metric, rate);
            }
            Err(Bad::Comma) => return Err(place.comma(figure)),
            _ => {}
        }
    }
    Ok(Some(row))
}

/// A query from the `timings` of llama-server's JSON answer.
pub(super) fn from_server(answer: &serde_json::Map<String, Value>) -> Option<Row> {
    let timings = answer.get("timings")?.as_object()?;
    let mut row = Row::new("query 1");
    let figure = |name: &str| timings.get(name).and_then(Value::as_f64);
    for (rate, metric, count, tokens) in [
        ("prompt_per_second", "prefill_tok_s", "prompt_n", "prompt_tokens"),
        ("predicted_per_second", "decode_tok_s", "predicted_n", "generated_tokens"),
    ] {
        if let Some(rate) = figure(rate).filter(|&rate| real_speed(rate)) {
            row.measurement.metric(metric, rate);
            if let Some(count) = figure(count).filter(|&count| text::plausible_count(count)).and_then(number_value) {
                row.measurement.metrics.insert(tokens.to_owned(), count);
            }
        }
    }
    row.measurement.reported.clone_from(timings);
    row.measured().then_some(row)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_prefixes() {
        let cases = [
            ("llama_perf_context_print: prompt eval time =     149.19 ms /     7 tokens", Some((Key::Prompt, By::Process))),
            ("0.02.432.302 I llama_perf_context_print:        eval time =    1921.32 ms /    63 runs", Some((Key::Eval, By::Process))),
            (
                "[2026-09-14 12:02:53][DEBUG] 4.33.290 I slot print_timing: id  1 | task 78 |        eval time = 1.0 ms / 2 tokens",
                Some((Key::Eval, By::Server)),
            ),
            ("      total time =    9619.68 ms /    36 tokens", Some((Key::Total, By::Nobody))),
            ("4.33.290.330 I       total time =    9619.68 ms", Some((Key::Total, By::Nobody))),
            ("It prints llama_perf_context_print: prompt eval time = 5.00 ms / 5 tokens", None),
            ("They say the prompt eval time = 5.00 ms / 5 tokens", None),
            ("x = 3", None),
        ];
        for (line, expected) in cases {
            assert_eq!(timing(line).map(|found| (found.key, found.by)), expected, "{line}");
        }
    }
}
