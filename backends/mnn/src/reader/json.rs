//! The JSON of `llm_bench -j`: one object, written when the process ends well. Its configuration is that of the first instance alone.

use bench_backend_api::{Failure, FailureKind, Unreadable};
use serde_json::{Map, Value};

use super::{
    row::{Row, number_value},
    table::{missing_weights, tokens},
    value,
};

/// The rows of a JSON text, `None` if it is a JSON of something else.
pub(super) fn read(file: &str, text: &str, line: usize) -> Result<Option<Vec<Row>>, Unreadable> {
    let value: Value = serde_json::from_str(&finite(text)).map_err(|error| Unreadable {
        file: file.to_owned(),
        message: format!(
            "line {}: {}: {}",
            line + error.line().max(1) - 1,
            if error.is_eof() {
                "the JSON is cut off (llm_bench was ended while it wrote, or the copy is incomplete)"
            } else {
                "neither a log nor one JSON object"
            },
            error.to_string().split(" at line ").next().unwrap_or("")
        ),
    })?;
    let Some((config, results)) = parts(&value) else { return Ok(None) };
    let size = config.get("modelSize").and_then(Value::as_f64);
    let void = size.filter(|&gib| !value::real_gib(gib)).map(|gib| missing_weights(&format!("{gib:.2} GiB")));
    let mut rows = Vec::new();
    for result in results {
        let Some(result) = result.as_object() else { continue };
        let mut row = self::row(config, result);
        if let Some(failure) = &void {
            row.void(failure.clone());
        }
        rows.push(row);
    }
    Ok(Some(rows))
}

fn parts(value: &Value) -> Option<(&Map<String, Value>, &Vec<Value>)> {
    let object = value.as_object()?;
    let results = object.get("results")?.as_array()?;
    ["model", "modelSize", "backend", "threads"].iter().any(|key| object.contains_key(*key)).then_some((object, results))
}

fn row(config: &Map<String, Value>, result: &Map<String, Value>) -> Row {
    let count = |name: &str| result.get(name).and_then(Value::as_u64).and_then(|count| u32::try_from(count).ok());
    let kind = result.get("type").and_then(Value::as_str).unwrap_or("");
    let (prompt, generate) = match kind {
        "prefill" => (count("prompt_len"), None),
        "decode" => (None, count("generate_len")),
        _ => (count("prompt_len"), count("generate_len")),
    };
    let label = value::label(prompt, generate);
    let mut row = Row::new(if label.is_empty() { kind.to_owned() } else { label });
    row.exact = true;
    for (name, value) in config.iter().filter(|(name, _)| *name != "results").chain(result.iter().filter(|(name, _)| *name != "type")) {
        let whole = value.as_f64().and_then(number_value);
        row.report(name, whole.unwrap_or_else(|| value.clone()));
    }
    let names: &[(&str, &str)] = match (prompt, generate) {
        (Some(_), None) => &[("tps", "prefill_tok_s")],
        (None, Some(_)) => &[("tps", "decode_tok_s")],
        (Some(_), Some(_)) => &[("prefill_tps", "prefill_tok_s"), ("decode_tps", "decode_tok_s")],
        (None, None) => &[],
    };
    for (key, metric) in names {
        match result.get(*key).and_then(Value::as_f64) {
            Some(tok_s) => row.speed(metric, tok_s),
            None if row.trouble.is_none() => {
                let message = format!("{}: the JSON has no `{key}`", row.measurement.label);
                let hint = "the test gave no result: look at the log of llm_bench".to_owned();
                row.trouble = Some(Failure { kind: FailureKind::Runtime, message, hint: Some(hint) });
            }
            None => {}
        }
    }
    tokens(&mut row, prompt, generate);
    if let Some(seconds) = result.get("loading_time").and_then(Value::as_f64).filter(|&seconds| seconds > 0.0) {
        row.measurement.metric("load_ms", seconds * 1e3);
    }
    row.settle();
    row
}

/// C++ streams print `nan` and `inf`, which are no JSON: they become `null`, and so no metric.
fn finite(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for (at, part) in text.split('"').enumerate() {
        if at > 0 {
            out.push('"');
        }
        // Keys and values of this file hold no escaped quotes, so that every second part is outside of strings.
        if at % 2 == 0 && (part.contains("nan") || part.contains("inf")) {
            let part = ["-nan", "nan", "-inf", "inf"].iter().fold(part.to_owned(), |part, word| part.replace(word, "null"));
            out.push_str(&part);
        } else {
            out.push_str(part);
        }
    }
    out
}
