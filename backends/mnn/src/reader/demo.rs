//! The block of statistics that `llm_demo` prints at its end. It is looked for from the end, for the generated text before it can hold
//! anything, such a block included. It sums over all prompts of the prompt file.

use std::ops::Range;

use bench_backend_api::{Failure, FailureKind, Unreadable};

use super::{
    row::{Place, Row, checked, number_value},
    value,
};

/// Names of the lines over the years; new ones are taken too when they stand alone on their line.
const KEYS: &[&str] = &[
    "prompt tokens num",
    "decode tokens num",
    "output tokens num",
    "total tokens num",
    "audio process time",
    "audio input time",
    "audio E2E time",
    "vision time",
    "audio time",
    "prefill time",
    "decode time",
    "sample time",
    "total time",
    "prefill speed",
    "decode speed",
    "vision speed",
    "total speed",
    "chat speed",
    "audio RTF",
    "pixels_mp",
];

/// A run of `llm_demo`.
#[derive(Debug)]
pub(super) struct Demo {
    /// Its block, if it is there.
    pub(super) row: Option<Row>,
    /// Lines that a model wrote: no marker in them counts.
    pub(super) written: Range<usize>,
    /// Whether the log before the generated text is in the file.
    pub(super) has_log: bool,
    /// What was odd.
    pub(super) warnings: Vec<String>,
}

/// A line `key = value unit`.
fn figure(line: &str) -> Option<(&str, &str)> {
    let (left, right) = line.split_once('=')?;
    let left = left.trim_end();
    let known =
        KEYS.iter().find(|key| left.strip_suffix(**key).is_some_and(|before| before.is_empty() || before.ends_with([' ', '\t', ':'])));
    let plain = left.trim();
    let key = match known {
        Some(key) => *key,
        None if !plain.is_empty() && plain.len() < 40 && plain.chars().all(|c| c.is_ascii_alphanumeric() || c == ' ' || c == '_') => plain,
        None => return None,
    };
    let value = right.split_whitespace().next()?;
    value.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '-' | '+' | 'n' | 'i')).then_some((key, right.trim()))
}

/// The line of `#` around the block, behind a log's prefix too.
fn is_rule(line: &str) -> bool {
    line.trim_end().ends_with("########")
}

/// Reads the block and finds what was generated. `None` if nothing in the file is of `llm_demo`.
pub(super) fn read(file: &str, lines: &[&str]) -> Result<Option<Demo>, Unreadable> {
    let prompt_line = lines.iter().position(|line| line.trim_start().starts_with("prompt file is "));
    let config_line = lines.iter().position(|line| line.trim_start().starts_with("config path is "));
    let has_log = prompt_line.or(config_line).is_some();
    let is_count = |line: &str, key: &str| figure(line).is_some_and(|(found, _)| found == key);
    let Some(start) = lines.iter().rposition(|line| is_count(line, "prompt tokens num")) else {
        let written = prompt_line.map_or(lines.len(), |at| at + 1)..lines.len();
        return Ok(has_log.then(|| Demo { row: None, written, has_log, warnings: Vec::new() }));
    };
    let first = if start > 0 && is_count(lines[start - 1], "total tokens num") { start - 1 } else { start };
    let end = lines[start..].iter().position(|line| is_rule(line)).map_or(lines.len(), |at| start + at);
    let mut warnings = Vec::new();
    let mut row = Row::new("query 1");
    for (at, line) in lines.iter().enumerate().take(end).skip(first) {
        let Some((key, text)) = figure(line) else { continue };
        if row.measurement.reported.contains_key(key) {
            continue;
        }
        let place = Place { file, line: at + 1 };
        let token = text.split_whitespace().next().unwrap_or("");
        let unit = text[token.len()..].trim();
        // The two ratios are 0/0 without vision and audio.
        let Some(value) = (if matches!(key, "audio RTF" | "vision speed") && value::number(token).is_err() {
            None
        } else {
            checked(value::number(token), token, place, &mut warnings)?
        }) else {
            row.report(key, text);
            continue;
        };
        if let Some(number) = number_value(value) {
            if unit.is_empty() { row.report(key, number) } else { row.report(key, text) }
        }
        match (key, unit) {
            ("prefill speed", "tok/s") => row.speed("prefill_tok_s", value),
            ("decode speed", "tok/s") => row.speed("decode_tok_s", value),
            ("prompt tokens num", "") if value >= 0.0 => {
                row.measurement.metric("prompt_tokens", value);
            }
            ("decode tokens num" | "output tokens num", "") if value >= 0.0 => {
                row.measurement.metric("generated_tokens", value);
            }
            _ => {}
        }
    }
    whole(&mut row);
    if row.measurement.metrics.get("generated_tokens").and_then(serde_json::Value::as_f64).is_none_or(|count| count < 1.0) {
        row.void(Failure {
            kind: FailureKind::Runtime,
            message: "llm_demo decoded no token".to_owned(),
            hint: Some("the model ended at once or failed: look at the log before the statistics".to_owned()),
        });
    }
    if let Some(load) = load_ms(&lines[..first]) {
        row.measurement.metric("load_ms", load);
    }
    let written = prompt_line.filter(|&at| at < first).map_or(0, |at| at + 1)..first;
    Ok(Some(Demo { row: Some(row), written, has_log, warnings }))
}

/// Counts are printed as whole numbers and stay such.
fn whole(row: &mut Row) {
    for name in ["prompt_tokens", "generated_tokens"] {
        if let Some(count) = row.measurement.metrics.get(name).and_then(serde_json::Value::as_f64).and_then(number_value) {
            row.measurement.metrics.insert(name.to_owned(), count);
        }
    }
}

/// `llm_demo` times its `load()` in a scope, whose line comes before the tuning's.
fn load_ms(lines: &[&str]) -> Option<f64> {
    let tuning = lines.iter().position(|line| line.trim() == "Prepare for tuning opt Begin")?;
    let line = lines[..tuning].iter().rev().find(|line| line.trim_start().starts_with("main,") && line.contains("cost time:"))?;
    let text = line.split("cost time:").nth(1)?.trim();
    let value = value::number(text.strip_suffix("ms")?).ok()?;
    (value > 0.0).then_some(value)
}

/// Why there is no block.
pub(super) fn no_block(lines: &[&str]) -> Failure {
    let failure = |kind, message: &str, hint: &str| Failure { kind, message: message.to_owned(), hint: Some(hint.to_owned()) };
    if lines.iter().any(|line| line.trim_start().starts_with("User:")) {
        return failure(
            FailureKind::Usage,
            "llm_demo ran as a chat, which prints no statistics",
            "give it a prompt file: llm_demo config.json prompt.txt",
        );
    }
    match lines.iter().find_map(|line| line.trim().strip_prefix("prompt file is ")) {
        Some(path) => failure(
            FailureKind::Runtime,
            &format!("llm_demo printed no statistics after `prompt file is {path}`"),
            "the prompt file is missing, empty or all comments (llm_demo says nothing about it), or the tool was ended before it was done",
        ),
        None => failure(
            FailureKind::Runtime,
            "llm_demo printed no statistics",
            "it was ended before it was done, or had no prompt file; a log build (-DMNN_USE_LOGCAT=ON) prints to `adb logcat -s MNNJNI`",
        ),
    }
}
