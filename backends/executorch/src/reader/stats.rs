//! The line `PyTorchObserver {...}` that the runners of language models print at their end: moments in ms since 1970.

use bench_backend_api::{ReadMeasurement, Reading, text::plausible_ms};
use serde_json::{Map, Value};

/// What the line begins with.
pub(super) const MARK: &str = "PyTorchObserver {";

/// Reads the last of these lines, since a model may write one of its own before it; `None` without one.
pub(super) fn reading(content: &str) -> Option<Reading> {
    let (line, at) = content.lines().zip(1_usize..).filter_map(|(line, n)| Some((&line[line.find(MARK)? + MARK.len() - 1..], n))).last()?;
    let mut reading = Reading::default();
    match serde_json::from_str::<Value>(line.trim()) {
        Ok(Value::Object(fields)) => reading.measurements.push(query(&fields, at, &mut reading.warnings)),
        Ok(_) => reading.warnings.push(format!("line {at}: the statistics are no object")),
        Err(error) => reading.warnings.push(format!("line {at}: the statistics are not whole: {error}")),
    }
    Some(reading)
}

fn query(fields: &Map<String, Value>, line: usize, warnings: &mut Vec<String>) -> ReadMeasurement {
    let mut measurement = ReadMeasurement::new("query 1");
    let number = |name: &str| fields.get(name).and_then(Value::as_f64);
    let scale = number("SCALING_FACTOR_UNITS_PER_SECOND").filter(|units| *units > 0.0).unwrap_or(1000.0);
    let mut between = |from: &str, to: &str| {
        let ms = (number(to)? - number(from)?) / scale * 1e3;
        if plausible_ms(ms) {
            return Some(ms);
        }
        warnings.push(format!("line {line}: {to} - {from} is {ms} ms, which can not be a measurement"));
        None
    };
    let load = between("model_load_start_ms", "model_load_end_ms");
    let prefill = between("inference_start_ms", "prompt_eval_end_ms");
    let ttft = between("inference_start_ms", "first_token_ms");
    let decode = between("prompt_eval_end_ms", "inference_end_ms");
    let e2e = between("inference_start_ms", "inference_end_ms");
    let [prompt, generated] = ["prompt_tokens", "generated_tokens"].map(|name| number(name).filter(|n| *n > 0.0 && n.fract() == 0.0));
    for (name, value) in [("load_ms", load), ("ttft_ms", ttft), ("e2e_ms", e2e)] {
        value.map(|ms| measurement.metric(name, ms));
    }
    for (name, value) in [("prompt_tokens", prompt), ("generated_tokens", generated)] {
        value.map(|n| measurement.metrics.insert(name.to_owned(), Value::from(n as u64)));
    }
    // The first token comes from the prefill, so that N tokens out are N - 1 steps.
    for (name, tokens, ms) in [("prefill_tok_s", prompt, prefill), ("decode_tok_s", generated.map(|n| n - 1.0), decode)] {
        if let Some((tokens, ms)) = tokens.filter(|n| *n > 0.0).zip(ms) {
            measurement.metric(name, tokens / ms * 1e3);
        }
    }
    for (name, value) in fields {
        let moment = ["_start_ms", "_end_ms", "first_token_ms"].iter().any(|end| name.ends_with(end));
        if let Some(value) = value.as_f64().filter(|_| !moment && !matches!(name.as_str(), "prompt_tokens" | "generated_tokens")) {
            measurement.report(name, value);
        }
    }
    measurement
}
