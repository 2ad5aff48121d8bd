//! The blocks of model_benchmark (C++): indented by tabs or spaces, times in us or ms, numbers also in scientific notation. The mean is read, not p50.

use bench_backend_api::{
    Failure, FailureKind, ReadMeasurement, Reading,
    text::{count, number, plausible_ms, plausible_rate, to_ms},
};
use bench_backend_qnn::ops::{json, report};

/// The parts of a test.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Part {
    Prompt,
    Generation,
    Sampling,
    EndToEnd,
}
impl Part {
    const fn name(self) -> &'static str {
        match self {
            Self::Prompt => "Prompt processing",
            Self::Generation => "Token generation",
            Self::Sampling => "Token sampling",
            Self::EndToEnd => "E2E generation",
        }
    }

    fn of(line: &str) -> Option<Self> {
        let line = line.trim();
        // `Prompt processing (time to first token):`, `Token generation: (per token)`: nothing but words, brackets and the colon.
        let rest = |part: &Self| {
            line.strip_prefix(part.name()).is_some_and(|rest| rest.contains(':') && !rest.contains(|c: char| c.is_ascii_digit()))
        };
        [Self::Prompt, Self::Generation, Self::Sampling, Self::EndToEnd].into_iter().find(rest)
    }
}

/// A statistic with the word in its brackets.
struct Figure {
    part: Part,
    name: String,
    unit: String,
    value: f64,
}

#[derive(Default)]
struct Test {
    batch: Option<f64>,
    prompt: Option<f64>,
    generate: Option<f64>,
    figures: Vec<Figure>,
    /// Repetitions and tokens of each: `n: 5 * 128 token(s)`.
    counts: Vec<(Part, f64, f64)>,
    peak_bytes: Option<f64>,
}
impl Test {
    fn get(&self, part: Part, name: &str, unit: &[&str]) -> Option<(f64, &str)> {
        let wanted =
            |figure: &&Figure| figure.part == part && figure.name == name && (unit.is_empty() || unit.contains(&figure.unit.as_str()));
        self.figures.iter().find(wanted).map(|figure| (figure.value, figure.unit.as_str()))
    }

    fn time(&self, part: Part, warnings: &mut Vec<String>) -> Option<f64> {
        let figure =
            self.figures.iter().find(|figure| figure.part == part && figure.name == "avg" && to_ms(1.0, &figure.unit).is_some())?;
        let ms = to_ms(figure.value, &figure.unit).filter(|&ms| plausible_ms(ms));
        if ms.is_none() {
            warnings.push(format!("{}: avg {} {} can not be a measurement, it is left out", part.name(), figure.value, figure.unit));
        }
        ms
    }

    fn rate(&self, part: Part, warnings: &mut Vec<String>) -> Option<f64> {
        let (value, unit) = self.get(part, "avg", &["tokens/s", "tokens/sec", "token/s", "tps"])?;
        if !plausible_rate(value) {
            warnings.push(format!("{}: avg {value} {unit} can not be a measurement, it is left out", part.name()));
            return None;
        }
        Some(value)
    }

    fn counted(&self, part: Part) -> Option<(f64, f64)> {
        self.counts.iter().find(|(of, ..)| *of == part).map(|(_, repetitions, tokens)| (*repetitions, *tokens))
    }
}

/// Reads the blocks; `None` without one.
pub fn reading(text: &str) -> Option<Reading> {
    let mut reading = Reading::default();
    let mut tests: Vec<Test> = Vec::new();
    let mut part = None;
    for (index, line) in text.lines().enumerate() {
        if let Some(test) = head(line) {
            tests.push(test);
            part = None;
        } else if let Some(new) = Part::of(line) {
            // A block without its head, or the next one of an output whose heads are lost.
            let again =
                tests.last().is_none_or(|test| new == Part::Prompt && test.figures.iter().any(|figure| figure.part == Part::Prompt));
            if again {
                tests.push(Test::default());
            }
            part = Some(new);
        } else if let Some(bytes) = peak(line) {
            if let Some(test) = tests.last_mut() {
                test.peak_bytes = Some(bytes);
            }
        } else if let (Some(part), Some(test)) = (part, tests.last_mut())
            && let Err(warning) = statistic(line, part, test)
        {
            reading.warnings.push(format!("line {}: {warning}", index + 1));
        }
    }
    tests.retain(|test| !test.figures.is_empty() || test.prompt.is_some());
    if tests.is_empty() {
        return None;
    }
    for test in &tests {
        let measurement = measurement(test, &mut reading.warnings);
        reading.measurements.push(measurement);
    }
    if tests.iter().all(|test| test.figures.is_empty()) && reading.warnings.is_empty() {
        reading.failure = Some(Failure {
            kind: FailureKind::Runtime,
            message: "the output ends before the first figures: the run did not finish".to_owned(),
            hint: Some("look at stderr, logcat and the exit status".to_owned()),
        });
    }
    Some(reading)
}

/// `Batch size: 1, prompt tokens: 128, tokens to generate: 128`.
fn head(line: &str) -> Option<Test> {
    let at = line.find("Batch size:")?;
    let value = |name: &str| -> Option<f64> {
        let rest = &line[line.find(name)? + name.len()..];
        count(rest.split(',').next()?)
    };
    let test =
        Test { batch: value("Batch size:"), prompt: value("prompt tokens:"), generate: value("tokens to generate:"), ..Test::default() };
    (at < 120 && test.prompt.is_some()).then_some(test)
}

/// `Peak working set size: N bytes (X GB)` and `Peak working set size (bytes): N`.
fn peak(line: &str) -> Option<f64> {
    let rest = line.trim().strip_prefix("Peak working set size")?;
    rest.split([':', ' ']).find_map(number)
}

/// `avg (us): 140607`, `n: 5 * 2 token(s)`.
fn statistic(line: &str, part: Part, test: &mut Test) -> Result<(), String> {
    let Some((name, value)) = line.trim().split_once(':') else { return Ok(()) };
    let (name, value) = (name.trim(), value.trim());
    if name == "n" {
        let mut words = value.split_whitespace();
        let repetitions = words.next().and_then(count);
        let tokens = if words.next() == Some("*") { words.next().and_then(count) } else { Some(1.0) };
        if let (Some(repetitions), Some(tokens)) = (repetitions, tokens) {
            test.counts.push((part, repetitions, tokens));
        }
        return Ok(());
    }
    let Some((name, unit)) = name.split_once('(') else { return Ok(()) };
    let (name, unit) = (name.trim(), unit.trim_end_matches(')').trim());
    if !matches!(name, "avg" | "mean" | "p50" | "stddev" | "min" | "max" | "p90" | "p95" | "p99" | "p25" | "p75") {
        return Ok(());
    }
    let Some(parsed) = number(value) else {
        return Err(format!("{}, {name} ({unit}): `{value}` is not a plain number, it is left out", part.name()));
    };
    let name = if name == "mean" { "avg" } else { name };
    test.figures.push(Figure { part, name: name.to_owned(), unit: unit.to_ascii_lowercase(), value: parsed });
    Ok(())
}

fn measurement(test: &Test, warnings: &mut Vec<String>) -> ReadMeasurement {
    let prompt = test.prompt.or_else(|| Some(test.counted(Part::Prompt)?.1 / test.batch.unwrap_or(1.0)));
    let repetitions = test.counted(Part::Prompt).map(|(repetitions, _)| repetitions).filter(|&count| count > 0.0);
    // `n: 635 * 1`: 5 repetitions of 127, since the first token is the prompt's.
    let generated =
        test.counted(Part::Generation).and_then(|(count, tokens)| Some(count * tokens / test.batch.unwrap_or(1.0) / repetitions? + 1.0));
    let generated_whole = generated.filter(|count| count.fract() == 0.0);
    match (generated, test.generate) {
        (Some(generated), Some(wanted)) if (generated - wanted).abs() > 1e-9 => {
            warnings.push(format!("{generated} tokens were generated, not {wanted}: an early end"));
        }
        _ => {}
    }
    let label = match (prompt, test.generate.or(generated_whole)) {
        (Some(prompt), Some(generate)) => format!("pp{prompt}+tg{generate}"),
        (Some(prompt), None) => format!("pp{prompt}"),
        _ => "inference".to_owned(),
    };
    let mut measurement = ReadMeasurement::new(label);
    let ttft = test.time(Part::Prompt, warnings);
    let per_token = test.time(Part::Generation, warnings);
    let prefill = test.rate(Part::Prompt, warnings).or_else(|| Some(prompt? * test.batch.unwrap_or(1.0) / ttft? * 1e3));
    let decode = test.rate(Part::Generation, warnings).or_else(|| Some(test.batch.unwrap_or(1.0) * 1e3 / per_token?));
    let end_to_end = test.time(Part::EndToEnd, warnings);
    for (name, value) in [("ttft_ms", ttft), ("prefill_tok_s", prefill), ("decode_tok_s", decode), ("e2e_ms", end_to_end)] {
        if let Some(value) = value {
            measurement.metric(name, value);
        }
    }
    // What was asked for was generated only if there was a generation.
    let began = test.figures.iter().any(|figure| figure.part == Part::Generation);
    let counted = test.counted(Part::Generation).is_some() && repetitions.is_some();
    let generated = if counted { generated_whole } else { test.generate.filter(|_| began) };
    for (name, value) in [("prompt_tokens", prompt), ("generated_tokens", generated)] {
        if let Some(value) = value.filter(|value| value.fract() == 0.0) {
            measurement.metrics.insert(name.to_owned(), json(value));
        }
    }
    for (part, rate, time, tokens) in [(Part::Prompt, prefill, ttft, prompt), (Part::Generation, decode, per_token, Some(1.0))] {
        if let (Some(rate), Some(time), Some(tokens)) = (rate, time, tokens) {
            let expected = tokens * test.batch.unwrap_or(1.0) / time * 1e3;
            if (rate - expected).abs() > 0.02 * expected {
                warnings.push(format!("{}: {rate} tokens/s does not follow from {tokens} token(s) in {time} ms", part.name()));
            }
        }
    }
    for figure in &test.figures {
        report(&mut measurement, &format!("{} {} ({})", figure.part.name(), figure.name, figure.unit), figure.value);
    }
    for (part, repetitions, tokens) in &test.counts {
        measurement.reported.insert(format!("{} n", part.name()), format!("{repetitions} * {tokens} token(s)").into());
    }
    if let Some(batch) = test.batch {
        report(&mut measurement, "Batch size", batch);
    }
    if let Some(bytes) = test.peak_bytes {
        report(&mut measurement, "Peak working set size (bytes)", bytes);
    }
    measurement
}
