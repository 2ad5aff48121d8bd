//! The profile JSON of Genie.
//!
//! A metric is `{"value": N, "unit": "us"}`. The printed rates are `1e6 / floor(us / n)`; in the generation, older versions count the first token in
//! although the time begins behind it (QAIRT 2.36), newer ones do not (2.51). So decode is computed as (n - 1) / token-generation-time, prefill as
//! prompt tokens / time-to-first-token, and the printed rates are only reported.

use bench_backend_api::{
    ReadMeasurement, Reading, TOKENS_PER_STEP,
    text::{number, plausible_count, plausible_ms, plausible_rate, to_ms},
};
use bench_backend_qnn::ops;
use serde_json::{Deserializer, Map, Value};

/// Reads one or more profiles behind each other.
pub fn reading(text: &str) -> Result<Reading, String> {
    let mut reading = Reading::default();
    let values = Deserializer::from_str(text).into_iter::<Value>();
    let mut read = 0;
    for value in values {
        match value {
            Ok(value) if value["components"].is_array() => {
                profile(&value, &mut reading);
                read += 1;
            }
            Ok(value) if read == 0 => return Err(what_else(&value)),
            Err(error) if read == 0 => return Err(format!("not a complete Genie profile: {error}")),
            Err(error) if error.is_eof() => return Err(format!("the profile number {} is cut: {error}", read + 1)),
            _ => {
                reading.warnings.push("text behind the profile is skipped".to_owned());
                break;
            }
        }
    }
    if reading.measurements.is_empty() {
        reading.warnings.push("the profile holds no query: Genie records only those that succeed".to_owned());
    }
    Ok(reading)
}

/// A profile somewhere in a terminal's output.
pub fn embedded(text: &str) -> Option<Reading> {
    if !text.contains("GENIE_PROFILE") {
        return None;
    }
    let starts: Vec<usize> = text.match_indices("\n{").map(|(at, _)| at + 1).collect();
    starts.into_iter().rev().find_map(|at| reading(&text[at..]).ok())
}

fn what_else(value: &Value) -> String {
    let what = if ["dialog", "text-generator", "embedding"].iter().any(|key| value.get(key).is_some()) {
        "a Genie configuration, not a profile"
    } else if value.get("devices").is_some() || value.get("backend_extensions").is_some() {
        "an HTP configuration, not a profile"
    } else {
        "JSON without `components`, so no Genie profile"
    };
    format!("{what}; give the file of genie-t2t-run's --profile")
}

fn profile(value: &Value, reading: &mut Reading) {
    let components = value["components"].as_array().map_or(&[][..], Vec::as_slice);
    let mut load = None;
    for event in components.iter().filter_map(|component| component["events"].as_array()).flatten().filter_map(Value::as_object) {
        let kind = event.get("type").and_then(Value::as_str).unwrap_or("");
        if kind.ends_with("_create") && event.contains_key("init-time") {
            if let Some(ms) = duration(event, "init-time", &mut reading.warnings) {
                load = Some(load.unwrap_or(0.0) + ms);
            }
        } else if ["_query", "_tokenQuery", "_embeddingQuery", "_generate", "_execute"].iter().any(|end| kind.ends_with(end)) {
            let mut query = query(event, &mut reading.warnings);
            // The dialog is loaded once: its time stands at the first query behind it.
            if let Some(ms) = load.take() {
                query.metric("load_ms", ms);
            }
            reading.measurements.push(query);
        } else if kind.ends_with("_applyLora")
            && let (Some(ms), Some(last)) =
                (duration(event, "lora-adapter-switching-time", &mut reading.warnings), reading.measurements.last_mut())
        {
            ops::report(last, "lora-adapter-switching-time (ms)", ms);
        }
    }
    if let Some(ms) = load {
        let mut only = ReadMeasurement::new("load");
        only.metric("load_ms", ms);
        reading.measurements.push(only);
        reading.warnings.push("the profile holds no query behind its last create: Genie records only those that succeed".to_owned());
    }
}

/// Gives the queries of all profiles their numbers.
pub fn number_queries(reading: &mut Reading) {
    let mut number = 0;
    for measurement in reading.measurements.iter_mut().filter(|measurement| measurement.label != "load") {
        number += 1;
        measurement.label = format!("query {number}");
    }
}

/// The number and unit of a metric; a bare number has no unit.
fn quantity(event: &Map<String, Value>, name: &str) -> Option<(f64, String)> {
    let metric = event.get(name)?;
    let (value, unit) = match metric {
        Value::Object(fields) => (fields.get("value")?, fields.get("unit").and_then(Value::as_str).unwrap_or("")),
        other => (other, ""),
    };
    let value = value.as_f64().or_else(|| value.as_str().and_then(number))?;
    Some((value, unit.trim().to_owned()))
}

fn duration(event: &Map<String, Value>, name: &str, warnings: &mut Vec<String>) -> Option<f64> {
    if !event.contains_key(name) {
        return None;
    }
    let Some((value, unit)) = quantity(event, name) else {
        warnings.push(format!("{name} is not a number, it is left out"));
        return None;
    };
    let Some(ms) = to_ms(value, &unit) else {
        warnings.push(format!("{name}: `{unit}` is not a unit of time, {value} is left out"));
        return None;
    };
    if !plausible_ms(ms) {
        warnings.push(format!("{name}: {value} {unit} can not be a measurement, it is left out"));
        return None;
    }
    Some(ms)
}

fn tokens(event: &Map<String, Value>, name: &str, warnings: &mut Vec<String>) -> Option<f64> {
    let (value, unit) = quantity(event, name)?;
    let counted = unit.is_empty() || unit.to_ascii_lowercase().starts_with("tok") || unit == "count";
    if counted && plausible_count(value) {
        return Some(value);
    }
    warnings.push(format!("{name}: {value} {unit} is not a count of tokens, it is left out"));
    None
}

/// A printed rate in tokens per second.
fn rate(event: &Map<String, Value>, name: &str) -> Option<f64> {
    let (value, unit) = quantity(event, name)?;
    let per_second = ["/s", "/sec", "/second", "ps"].iter().any(|end| unit.to_ascii_lowercase().ends_with(end));
    (per_second && plausible_rate(value)).then_some(value)
}

fn query(event: &Map<String, Value>, warnings: &mut Vec<String>) -> ReadMeasurement {
    let mut measurement = ReadMeasurement::new("query");
    let prompt = tokens(event, "num-prompt-tokens", warnings);
    let generated = tokens(event, "num-generated-tokens", warnings);
    let ttft = duration(event, "time-to-first-token", warnings);
    // A single token has no generation behind the first one.
    let generation = if generated.is_some_and(|count| count < 2.0) { None } else { duration(event, "token-generation-time", warnings) };

    if let Some(ttft) = ttft {
        measurement.metric("ttft_ms", ttft);
    }
    for (name, value) in [("prompt_tokens", prompt), ("generated_tokens", generated)] {
        if let Some(value) = value {
            measurement.metrics.insert(name.to_owned(), ops::json(value));
        }
    }
    let rates = [
        ("prefill_tok_s", "prompt-processing-rate", prompt, prompt, ttft),
        ("decode_tok_s", "token-generation-rate", generated.map(|count| count - 1.0), generated, generation),
    ];
    for (metric, name, count, counted, time) in rates {
        let printed = rate(event, name);
        match (count.filter(|&count| count > 0.0), time) {
            (Some(count), Some(ms)) => {
                measurement.metric(metric, count / ms * 1e3);
                if let (Some(printed), Some(counted)) = (printed, counted)
                    && !agrees(printed, counted, ms)
                    && !agrees(printed, count, ms)
                {
                    warnings.push(format!("the printed {name} of {printed} does not follow from the printed counts and times"));
                }
            }
            (None, Some(_)) if counted.is_none() => {
                if let Some(printed) = printed {
                    measurement.metric(metric, printed);
                    warnings.push(format!("no token count in the profile: {metric} is the printed {name}"));
                }
            }
            _ => {}
        }
    }
    // Of a speculative dialog, whose steps are called iterations.
    if let Some((rate, unit)) = quantity(event, "token-acceptance-rate")
        && unit.ends_with("/iteration")
    {
        measurement.metric(TOKENS_PER_STEP, rate);
    }
    if let Some(us) = event.get("duration").and_then(Value::as_f64) {
        // `duration`, `start` and `stop` have no unit of their own: us, as the format says.
        if plausible_ms(us / 1e3) {
            measurement.metric("e2e_ms", us / 1e3);
        }
    }
    for name in event.keys().filter(|name| !matches!(name.as_str(), "type" | "duration" | "start" | "stop")) {
        let Some((value, unit)) = quantity(event, name) else { continue };
        // The figures that became metrics are not repeated.
        let taken = matches!(name.as_str(), "num-prompt-tokens" | "num-generated-tokens");
        if !taken {
            let name = if unit.is_empty() || name.ends_with("-rate") { name.clone() } else { format!("{name} ({unit})") };
            ops::report(&mut measurement, &name, value);
        }
    }
    measurement
}

/// Genie prints `1e6 / floor(us / n)`; others may print `n / t`. Both are fine within two percent.
fn agrees(printed: f64, count: f64, ms: f64) -> bool {
    let plain = count / ms * 1e3;
    let floored = 1e6 / (ms * 1e3 / count).floor().max(1.0);
    [plain, floored].iter().any(|expected| (printed - expected).abs() <= 0.02 * expected)
}
