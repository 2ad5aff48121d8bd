//! The log and the errors of ONNX Runtime: `[E:onnxruntime:, file.cc:499 Function] message`, exceptions, and what a shell says of a crash.

use bench_backend_api::{Failure, FailureKind, knowledge::Entry};
use bench_backend_qnn::codes;

use crate::TABLE;

/// What a log says.
#[derive(Debug, Default, PartialEq)]
pub struct Outcome {
    /// The failure that it shows.
    pub failure: Option<Failure>,
    /// The QNN provider could not be set up, so that the CPU did the work.
    pub on_cpu: bool,
    /// The program itself says that it gave up.
    pub fatal: bool,
    /// What was odd.
    pub warnings: Vec<String>,
}

const LOG_MARKS: [&str; 5] =
    ["QNN SetupBackend failed", "qnn_backend_manager.cc", "OrtException", "OnnxRuntimeException", "explicitly disabled by the user"];

/// Whether the text holds lines of ONNX Runtime's log or its errors.
pub fn is_log(text: &str) -> bool {
    let level = |line: &str| {
        ["[E:onnxruntime", "[W:onnxruntime", "[F:onnxruntime", "[I:onnxruntime", "[V:onnxruntime"].iter().any(|mark| line.contains(mark))
    };
    text.lines().any(|line| level(line) || is_fatal(line) || LOG_MARKS.iter().any(|mark| line.contains(mark)))
        || (text.contains("onnxruntime") && codes::crash(text).is_some())
}

const NO_FALLBACK: &str = "explicitly disabled by the user";

/// Reads the log; `None` when it reports nothing.
pub fn outcome(text: &str) -> Option<Outcome> {
    let mut outcome = Outcome::default();
    // A provider error through ONNX Runtime's logger, or logcat's onnxruntime tag.
    let set_up: Vec<&str> = text.lines().filter(|line| is_setup_failure(line)).collect();
    let disabled = text.lines().find(|line| line.contains(NO_FALLBACK));
    let gave_up = text.lines().rev().find(|line| is_fatal(line));
    let errors: Vec<&str> = text.lines().filter(|line| line.contains("[E:onnxruntime") || line.contains("[F:onnxruntime")).collect();
    outcome.fatal = gave_up.is_some() || disabled.is_some();

    if let Some(first) = set_up.first() {
        // The line with a code says the most.
        let line = set_up.iter().find(|line| codes::code_in(line).is_some()).unwrap_or(first);
        let mut message = message(line);
        if let Some(line) = disabled {
            message = format!("{message}; {}", self::message(line));
        }
        outcome.on_cpu = !outcome.fatal;
        let consequence = TABLE.get("ort-on-cpu").filter(|_| outcome.on_cpu).map(Entry::hint);
        let lines = set_up.iter().copied().chain(text.lines().filter(|line| codes::is_error(line)));
        let cause = TABLE.nearest(lines).map(|found| found.hint());
        let mut hints: Vec<String> = consequence.into_iter().chain(cause).collect();
        hints.dedup();
        outcome.failure = Some(Failure { kind: FailureKind::Runtime, message: codes::shorten(&message), hint: Some(hints.join("; ")) });
        return Some(outcome);
    }
    let line = disabled.or(gave_up).or(errors.last().copied());
    if let Some(line) = line {
        outcome.failure = Some(explained(&message(line)));
    } else if let Some(crash) = codes::crash(text) {
        outcome.failure = Some(Failure {
            kind: FailureKind::Runtime,
            message: format!("the tool crashed: {crash}"),
            hint: Some("look at logcat for the fault's address".to_owned()),
        });
    }
    if text.contains("perf_test [options") && outcome.failure.is_none() {
        outcome.failure = Some(Failure {
            kind: FailureKind::Usage,
            message: "the tool printed its usage: an option is wrong or the model is missing".to_owned(),
            hint: Some("check the command line".to_owned()),
        });
    }
    if text.contains("were not assigned to the preferred execution providers") {
        outcome.warnings.push("some nodes were not given to the QNN provider and run on the CPU: the figures are of both".to_owned());
    }
    (outcome != Outcome::default()).then_some(outcome)
}

/// The provider's own stages, which its errors name.
const STAGES: [&str; 8] = [
    "getcapability",
    "setupbackend",
    "createdevice",
    "initializebackend",
    "loadbackend",
    "createcontext",
    "failed to create device",
    "no qnn device",
];

fn is_setup_failure(line: &str) -> bool {
    let lower = line.to_ascii_lowercase();
    let of_provider = lower.contains("[e:onnxruntime") && lower.contains("qnn") && STAGES.iter().any(|stage| lower.contains(stage));
    of_provider
        || lower.contains("setupbackend failed")
        || lower.contains("failed to setup qnn backend")
        || (lower.contains("qnn") && lower.contains("unable to load backend"))
        || lower.contains("qnnexecutionprovider is not available")
        || lower.contains("unsupported provider 'qnn'")
        || (lower.contains("qnn")
            && (lower.contains("falling back to cpu") || lower.contains("fallback to cpu ep") && !lower.contains(NO_FALLBACK)))
}

const FATAL_STARTS: [&str; 9] = [
    "Run failed:",
    "terminate called",
    "what():",
    "RuntimeError:",
    "Exception:",
    "onnxruntime::OnnxRuntimeException",
    "Failed to create session",
    "Session creation failed",
    "Load model from",
];

/// Lines in which the program itself ends.
fn is_fatal(line: &str) -> bool {
    let text = line.trim_start();
    FATAL_STARTS.iter().any(|start| text.starts_with(start))
        || text.contains("OrtException")
        || text.contains("Exception:")
        || text.contains("FAIL : ")
        || text.contains("Fatal error")
}

/// A log line without time, level and place.
pub fn message(line: &str) -> String {
    let text = line.trim();
    // `2024-04-04 21:24:37 [E:onnxruntime:, file.cc:499 Function] message`
    let text = text.find(":onnxruntime").and_then(|at| Some((at, text[at..].find("] ")?))).map_or(text, |(at, end)| &text[at + end + 2..]);
    let text = text.strip_prefix("what():").unwrap_or(text);
    codes::message(text)
}

/// What kind of failure a message of ONNX Runtime tells of.
pub fn explained(message: &str) -> Failure {
    let message = codes::shorten(message);
    match TABLE.nearest(message.split("; ")) {
        Some(found) => found.failure(message.clone()),
        None => Failure {
            kind: FailureKind::Runtime,
            message,
            hint: Some("run again with a lower log severity level (-v) for the lines before the error".to_owned()),
        },
    }
}
