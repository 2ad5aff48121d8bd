//! What the Python side prints: benchmark_e2e.py's averages and its CSV, and the `--timings` line of the examples.

use bench_backend_api::{
    ReadMeasurement, Reading,
    text::{number, plausible_count, plausible_ms, plausible_rate, quantity, to_ms},
};
use bench_backend_qnn::ops::{json, report};

/// Takes a figure as a time in ms or a rate, by its own unit.
fn add(measurement: &mut ReadMeasurement, metric: &str, value: f64, unit: &str) -> Result<(), String> {
    let good = if metric.ends_with("_ms") {
        to_ms(value, unit).filter(|&ms| plausible_ms(ms))
    } else {
        Some(value).filter(|&rate| plausible_rate(rate))
    };
    let Some(good) = good else { return Err(format!("{metric}: {value} {unit} can not be a measurement, it is left out")) };
    measurement.metric(metric, good);
    Ok(())
}

/// The averages of benchmark_e2e.py, and timing lines of the examples; `None` without either.
pub fn reading(text: &str) -> Option<Reading> {
    let mut reading = Reading::default();
    let mut averages = ReadMeasurement::new("inference");
    let mut queries = 0;
    for (index, line) in text.lines().enumerate() {
        let trimmed = line.trim();
        if let Some(query) = timings(trimmed) {
            queries += 1;
            let mut measurement = ReadMeasurement::new(format!("query {queries}"));
            measurement.metrics = query.metrics;
            measurement.reported = query.reported;
            reading.measurements.push(measurement);
            continue;
        }
        // `Average Prompt Processing Throughput (per token): 9259.8 tps`, with or without `Average`.
        let Some((name, value)) = trimmed.split_once(':') else { continue };
        let plain = name.strip_prefix("Average ").unwrap_or(name);
        let plain = plain.strip_suffix("(per token)").unwrap_or(plain).trim();
        let metric = match plain {
            "Time to First Token" => "ttft_ms",
            "Prompt Processing Throughput" => "prefill_tok_s",
            "Token Generation Throughput" => "decode_tok_s",
            "Wall Clock Time" => "e2e_ms",
            "Tokenization Latency"
            | "Tokenization Throughput"
            | "Prompt Processing Latency"
            | "Token Generation Latency"
            | "Sampling Latency"
            | "Sampling Throughput"
            | "Wall Clock Throughput" => "",
            _ => continue,
        };
        let Some((value, unit)) = quantity(value) else {
            reading.warnings.push(format!("line {}: {name}: `{}` is not a plain number, it is left out", index + 1, value.trim()));
            continue;
        };
        report(&mut averages, &format!("{name} ({unit})"), value);
        if !metric.is_empty()
            && let Err(warning) = add(&mut averages, metric, value, unit)
        {
            reading.warnings.push(format!("line {}: {warning}", index + 1));
        }
    }
    if !averages.reported.is_empty() {
        reading.measurements.insert(0, averages);
    }
    (!reading.measurements.is_empty()).then_some(reading)
}

/// `Prompt length: 21, New tokens: 85, Time to first: 2.62s, Prompt tokens per second: 8.02 tps, New tokens per second: 5.09 tps`.
fn timings(line: &str) -> Option<ReadMeasurement> {
    let at = line.find("Prompt length:")?;
    if !line.contains("New tokens:") {
        return None;
    }
    let mut measurement = ReadMeasurement::new("query");
    for part in line[at..].split(", ") {
        let Some((name, value)) = part.split_once(':') else { continue };
        let Some((value, unit)) = quantity(value) else { continue };
        match name.trim() {
            "Prompt length" if plausible_count(value) => {
                measurement.metrics.insert("prompt_tokens".to_owned(), json(value));
            }
            "New tokens" if plausible_count(value) => {
                measurement.metrics.insert("generated_tokens".to_owned(), json(value));
            }
            "Time to first" => {
                add(&mut measurement, "ttft_ms", value, unit).ok();
            }
            "Prompt tokens per second" => {
                add(&mut measurement, "prefill_tok_s", value, unit).ok();
            }
            "New tokens per second" => {
                add(&mut measurement, "decode_tok_s", value, unit).ok();
            }
            _ => {}
        }
        report(&mut measurement, name.trim(), value);
    }
    Some(measurement)
}

/// The CSV of benchmark_e2e.py, by the names of its columns; `None` for other text.
pub fn table(text: &str) -> Option<Reading> {
    let mut lines =
        text.lines().enumerate().skip_while(|(_, line)| !(line.contains("Prompt Length") && line.contains("Token Generation Throughput")));
    let header: Vec<&str> = lines.next()?.1.split(',').map(str::trim).collect();
    let mut reading = Reading::default();
    for (index, line) in lines.filter(|(_, line)| !line.trim().is_empty()) {
        let fields: Vec<&str> = line.split(',').map(str::trim).collect();
        if fields.len() != header.len() {
            reading.warnings.push(format!(
                "line {}: {} fields instead of {}, skipped (a decimal comma?)",
                index + 1,
                fields.len(),
                header.len()
            ));
            continue;
        }
        let value = |name: &str| header.iter().position(|column| *column == name).and_then(|at| number(fields[at]));
        let (prompt, generated) = (value("Prompt Length"), value("Tokens Generated"));
        let label = match (prompt, generated) {
            (Some(prompt), Some(generated)) => format!("pp{prompt}+tg{generated}"),
            _ => "inference".to_owned(),
        };
        let mut measurement = ReadMeasurement::new(label);
        for (name, value) in [("prompt_tokens", prompt), ("generated_tokens", generated)] {
            if let Some(value) = value.filter(|&value| plausible_count(value)) {
                measurement.metrics.insert(name.to_owned(), json(value));
            }
        }
        let columns = [
            ("prefill_tok_s", "Prompt Processing Throughput (tps)", ""),
            ("decode_tok_s", "Token Generation Throughput (tps)", ""),
            ("e2e_ms", "Wall Clock Time (s)", "s"),
        ];
        for (metric, column, unit) in columns {
            if let Some(value) = value(column)
                && let Err(warning) = add(&mut measurement, metric, value, unit)
            {
                reading.warnings.push(format!("line {}: {warning}", index + 1));
            }
        }
        for (name, field) in header.iter().zip(&fields) {
            if let Some(value) = number(field) {
                report(&mut measurement, name, value);
            }
        }
        reading.measurements.push(measurement);
    }
    (!reading.measurements.is_empty() || !reading.warnings.is_empty()).then_some(reading)
}
