//! What qnn-net-run, qnn-throughput-net-run and qnn-platform-validator say on the terminal: no times, but whether the run was one.

use bench_backend_api::{Failure, FailureKind};

use super::codes;

/// What a terminal output says.
#[derive(Debug, Default, PartialEq)]
pub struct Outcome {
    /// The failed run that it shows.
    pub failure: Option<Failure>,
    /// What was odd.
    pub warnings: Vec<String>,
}

/// Whether the text is the output of one of these tools, or their log.
pub fn is_output(text: &str) -> bool {
    const MARKS: [&str; 22] = [
        "qnn-net-run",
        "qnn-throughput-net-run",
        "qnn-context-binary",
        "QNN SDK v",
        "Executing Graphs",
        "Processing inference input",
        "Creating context from binary",
        "PerformanceMonitor",
        "PF_VALIDATOR",
        "QnnDsp",
        "QnnHtp",
        "QnnBackend",
        "QnnContext",
        "context binary",
        "Context with Name",
        "fastrpc",
        "Unit Test on the backend",
        "Backend Hardware",
        "qnn_",
        "<E>",
        "Starting stage:",
        "for backend DSP on the device",
    ];
    MARKS.iter().any(|mark| text.contains(mark)) || text.lines().any(|line| line.contains("[ ERROR ]") && codes::code_in(line).is_some())
}

/// Reads the text. `figures` says that the run's figures are known, from here or from another file: then errors are remarks.
pub fn outcome(text: &str, figures: bool) -> Outcome {
    let validator = validator(text);
    if validator.failure.is_some() {
        return validator;
    }
    let finished = text.contains("Finished Executing Graphs");
    let failure = codes::failure(text.lines());
    let crash = codes::crash(text);
    let started = text.contains("Processing inference input") || text.contains("Executing Graphs");
    let done = finished || (figures && !started);
    let mut outcome = validator;
    match (failure, crash) {
        (Some(failure), _) if done => {
            outcome.warnings.push(format!("the log reports an error although the run finished: {}", failure.message));
        }
        (Some(failure), _) => outcome.failure = Some(failure),
        (None, Some(line)) if !done => {
            outcome.failure = Some(Failure {
                kind: FailureKind::Runtime,
                message: format!("the tool crashed: {line}"),
                hint: Some("run it again with --log_level verbose and look at logcat for the fault's address".to_owned()),
            });
        }
        (None, None) if started && !finished => {
            outcome.failure = Some(Failure {
                kind: FailureKind::Runtime,
                message: "the output ends before `Finished Executing Graphs`: the run was cut short".to_owned(),
                hint: Some("look at stderr and logcat, and at the exit status".to_owned()),
            });
        }
        _ => {}
    }
    if let Some(line) = crash.filter(|_| done) {
        outcome.warnings.push(format!("crash at exit after valid results: {line}"));
    }
    if !figures && outcome.failure.is_none() {
        outcome.warnings.push(
            if finished {
                "qnn-net-run prints no times: run it with --profiling_level basic and give the text or CSV of qnn-profile-viewer"
            } else if text.contains("Unit Test") {
                "qnn-platform-validator found nothing wrong; it measures nothing"
            } else {
                "no figures in this output"
            }
            .to_owned(),
        );
    }
    outcome
}

/// qnn-platform-validator: a test that failed, hardware or libraries that are not there.
fn validator(text: &str) -> Outcome {
    let mut outcome = Outcome::default();
    let is_validator =
        text.contains("PF_VALIDATOR") || text.contains("Backend = ") || text.contains("on the backend ") || text.contains("for backend ");
    if !is_validator {
        return outcome;
    }
    let bad = |line: &&str| {
        let lower = line.to_ascii_lowercase();
        let value = lower.rsplit(':').next().unwrap_or("").trim().trim_end_matches('.').to_owned();
        (lower.contains("unit test") && value == "failed")
            || lower.contains("not supported for backend")
            || (lower.contains("backend hardware") && value == "not supported")
            || (lower.contains("backend libraries") && value == "not found")
            || (lower.contains("prerequisites") && value == "not present")
    };
    let lines: Vec<&str> = text.lines().map(str::trim).filter(bad).collect();
    if lines.is_empty() {
        return outcome;
    }
    // The errors before it say why, with the code.
    let mut parts: Vec<String> = text
        .lines()
        .filter(|line| line.contains("ERROR:"))
        .map(|line| {
            let rest = line.split_once("ERROR:").map_or(line, |(_, rest)| rest);
            rest.trim().to_owned()
        })
        .take(1)
        .collect();
    parts.extend(lines.iter().map(|line| (*line).to_owned()));
    let reason = codes::failure(text.lines());
    outcome.failure = Some(Failure {
        kind: FailureKind::Device,
        message: codes::shorten(&parts.join("; ")),
        hint: reason
            .and_then(|failure| failure.hint)
            .or_else(|| Some("run the validator with --debug, and check ADSP_LIBRARY_PATH".to_owned())),
    });
    outcome
}
