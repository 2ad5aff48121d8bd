//! What Genie's programs print.
//!
//! An answer can hold any text, the program's own markers included: figures and errors are looked for outside of `[BEGIN]: ` ... the last `[END]`.

use bench_backend_api::{
    Failure, FailureKind, ReadMeasurement, Reading,
    text::{plausible_ms, plausible_rate, quantity, to_ms},
};
use bench_backend_qnn::{codes, ops};

use crate::TABLE;

/// Whether the text is the output of a Genie program, or a log of one.
pub fn is_output(text: &str) -> bool {
    const MARKS: [&str; 16] = [
        "libGenie.so",
        "Genie.dll",
        "genie-t2t-run",
        "genie-t2e-run",
        "genie-app",
        "[PROMPT]:",
        "[BEGIN]:",
        "[KPIS]",
        "[PROMPT TOKENS]",
        "Failed to create the dialog",
        "Failed to query",
        "Failure to initialize model",
        "Context Size was exceeded",
        "GENERATED EMBEDDING SIZE",
        "Invalid --profile argument",
        "QnnDsp",
    ];
    MARKS.iter().any(|mark| text.contains(mark))
        || text.lines().any(|line| {
            let line = line.trim_start();
            line.starts_with("ERROR at line ")
                || line.starts_with("[ERROR] \"")
                || line.starts_with("[ERROR]  \"")
                || line.starts_with("map::at:")
                || line.contains("QnnHtp")
        })
        || text.lines().any(|line| line.contains("context binary") || line.contains("context from binary"))
}

/// The parts of an output.
struct Parts<'a> {
    /// Before the prompt or answer.
    head: Vec<&'a str>,
    /// Behind the last `[END]`, or everything behind the answer's begin when there is no end.
    tail: &'a str,
    began: bool,
    ended: bool,
}

fn parts(text: &str) -> Parts<'_> {
    let begin = text.find("[BEGIN]:");
    let end = text.rfind("[END]").filter(|&end| begin.is_none_or(|begin| end > begin));
    let head = &text[..begin.or(end).unwrap_or(text.len())];
    // The prompt may speak of errors too: from its marker on, the head is the user's text, and what Genie logs stands before it.
    let head = head.find("[PROMPT]:").map_or(head, |at| &head[..at]);
    let tail = match (begin, end) {
        (_, Some(end)) => &text[end + "[END]".len()..],
        (Some(begin), None) => &text[begin + "[BEGIN]:".len()..],
        (None, None) => text.find("[PROMPT]:").map_or("", |at| &text[at + "[PROMPT]:".len()..]),
    };
    Parts { head: head.lines().collect(), tail, began: begin.is_some(), ended: end.is_some() }
}

/// Reads the output; `has_profile` says that the figures are known from a profile.
pub fn reading(text: &str, has_profile: bool) -> Reading {
    let mut reading = Reading::default();
    let parts = parts(text);
    let runs = text.lines().filter(|line| line.starts_with("Using libGenie.so version")).count();
    if runs > 1 {
        reading.warnings.push(format!("the output holds {runs} runs: the figures of the last one are read"));
    }
    let kpis = kpis(parts.tail, &mut reading.warnings).or_else(|| (!parts.began).then(|| kpis(text, &mut reading.warnings)).flatten());
    let figures = kpis.is_some();
    reading.measurements.extend(kpis);

    // Log lines are errors anywhere outside of the answer; in an answer without end only those that Genie itself writes at a line's start.
    let tail_errors = parts.tail.lines().filter(|line| parts.ended || own_error(line));
    let failure = failure(parts.head.iter().copied().chain(tail_errors));
    let crash = codes::crash(if parts.began { parts.tail } else { text });
    let done = (parts.began && parts.ended)
        || figures
        || (has_profile && !parts.began)
        || text.contains("Embedding vectors saved")
        || text.contains("GENERATED EMBEDDING SIZE");
    let fatal = parts.tail.lines().any(|line| FATAL.iter().any(|mark| line.contains(mark))) && parts.ended;
    match (failure, crash) {
        (Some(failure), _) if done && !fatal => {
            reading.warnings.push(format!("the log reports an error although the query finished: {}", failure.message));
        }
        (Some(failure), _) => reading.failure = Some(failure),
        (None, Some(line)) if done => reading.warnings.push(format!("crash at exit after a finished query: {line}")),
        (None, Some(line)) => {
            reading.failure = Some(Failure {
                kind: FailureKind::Runtime,
                message: format!("Genie crashed: {line}"),
                hint: Some("run it again with --log verbose and look at logcat".to_owned()),
            });
        }
        (None, None) if parts.began && !parts.ended => {
            reading.failure = Some(Failure {
                kind: FailureKind::Runtime,
                message: "the answer has no [END]: the output is cut, or the process died while generating".to_owned(),
                hint: Some("look at the exit status, stderr and logcat".to_owned()),
            });
        }
        (None, None) => {}
    }
    if reading.failure.is_none() && !figures && !has_profile {
        reading
            .warnings
            .push("this output has no figures (newer Genie versions print none): run with --profile FILE and give that file".to_owned());
    }
    reading
}

const FATAL: [&str; 4] = ["Failed to query", "Context Size was exceeded", "Failed to create", "Failure to initialize"];

/// Error lines that Genie writes itself, at the beginning of a line.
fn own_error(line: &str) -> bool {
    let line = line.trim_start();
    let starts =
        ["Failed to ", "Failure to ", "Context Size was exceeded", "[ERROR]", "ERROR at line ", "ERROR:", "map::at", "terminate called"];
    starts.iter().any(|start| line.starts_with(start))
}

/// The failure of these lines. Genie has errors that say nothing of an error: those are added to what the QNN family prints.
fn failure<'a>(lines: impl Iterator<Item = &'a str>) -> Option<Failure> {
    const SILENT: [&str; 7] =
        ["Missing ", "Unknown QnnHtp config key", "Unknown ", "map::at", "Context Size was exceeded", "terminate called", "Invalid "];
    let lines: Vec<&str> = lines.collect();
    let silent = lines.iter().find(|line| {
        SILENT.iter().any(|start| line.trim_start().trim_start_matches("[ERROR]").trim_start_matches([' ', '"']).starts_with(start))
    });
    let found = codes::failure_by(&TABLE, lines.iter().copied());
    let (Some(silent), found) = (silent, found.clone()) else { return found };
    // The cause first: `Missing QnnHtp field: X` before `Failed to create the dialog config`.
    let cause = codes::message(silent);
    let message = match found {
        Some(failure) if failure.message.contains(&cause) => failure.message,
        Some(failure) => format!("{cause}; {}", failure.message),
        None => cause,
    };
    let message = codes::shorten(&message);
    Some(match TABLE.nearest(message.split("; ")) {
        Some(known) => known.failure(message.clone()),
        None => Failure::new(FailureKind::Runtime, message),
    })
}

/// The `[KPIS]` block of Genie up to 1.1, the last one of the text.
fn kpis(text: &str, warnings: &mut Vec<String>) -> Option<ReadMeasurement> {
    let block = &text[text.rfind("[KPIS]")?..];
    let mut measurement = ReadMeasurement::new("query 1");
    let mut value = |name: &str| -> Option<(f64, String)> {
        let at = block.find(name)?;
        let rest = block[at + name.len()..].trim_start_matches([' ', '\t']).strip_prefix(':')?;
        let rest = rest.lines().next().unwrap_or("");
        let Some((value, unit)) = quantity(rest) else {
            warnings.push(format!("{name}: `{}` is not a plain number, it is left out", rest.split_whitespace().next().unwrap_or("")));
            return None;
        };
        ops::report(&mut measurement, &if unit.is_empty() { name.to_owned() } else { format!("{name} ({unit})") }, value);
        Some((value, unit.to_owned()))
    };
    let (init, prompt, generation) = ("Init Time", "Prompt Processing Time", "Token Generation Time");
    let times = [("load_ms", init, value(init)), ("ttft_ms", prompt, value(prompt)), ("", generation, value(generation))];
    let (prefill, decode) = ("Prompt Processing Rate", "Token Generation Rate");
    let rates = [("prefill_tok_s", prefill, value(prefill), prompt), ("decode_tok_s", decode, value(decode), generation)];
    // A rate whose time is no measurement is none either: Genie prints 1.0 when the time is 0.
    let mut bad = Vec::new();
    for (metric, name, time) in times {
        let Some((value, unit)) = time else { continue };
        match to_ms(value, &unit).filter(|&ms| plausible_ms(ms)) {
            Some(ms) if !metric.is_empty() => {
                measurement.metric(metric, ms);
            }
            Some(_) => {}
            None => {
                bad.push(name);
                warnings.push(format!("{name}: {value} {unit} can not be a measurement, it is left out"));
            }
        }
    }
    for (metric, name, rate, of) in rates {
        let Some((value, unit)) = rate else { continue };
        if bad.contains(&of) {
            warnings.push(format!("{name}: {value} {unit} is left out with its time"));
        } else if plausible_rate(value) && unit.to_ascii_lowercase().starts_with("tok") {
            measurement.metric(metric, value);
        } else {
            warnings.push(format!("{name}: {value} {unit} can not be a measurement, it is left out"));
        }
    }
    if measurement.metrics.contains_key("decode_tok_s") {
        warnings.push(
            "[KPIS] prints no token counts: the rates are Genie's own, and its decode may count the first token, whose time is not in it"
                .to_owned(),
        );
    }
    (!measurement.metrics.is_empty() || !measurement.reported.is_empty()).then_some(measurement)
}
