//! Failures of the QNN family (qnn-net-run, Genie, the QNN execution provider): which lines report one, the code in them, and what to do.
//!
//! What a line means stands in `failures.toml`, with its sources. A code stands anywhere in a line: kernel messages are printed into the middle of
//! other lines, so that nothing here is anchored to a whole line.

use std::sync::LazyLock;

use bench_backend_api::{
    Failure, FailureKind,
    knowledge::{DSP, Found, SYSTEM, Table, numbers},
};

/// QNN's own failures, for the tables of every backend over QNN.
pub const FAILURES: &str = include_str!("../../failures.toml");

/// What is known of failures here: of the device, its DSP, and QNN.
pub static TABLE: LazyLock<Table> = LazyLock::new(|| Table::embedded(&[SYSTEM, DSP, FAILURES]));

/// The error code in a line that reports an error. One that means something wins over one that does not; the first of each sort.
pub fn code_in(line: &str) -> Option<&str> {
    let numbers = numbers(line);
    let unknown = |text: &str| !text.starts_with("0x") && text.bytes().any(|byte| matches!(byte, b'1'..=b'9'));
    let known = numbers.iter().find(|number| TABLE.knows(number));
    known.or_else(|| numbers.iter().find(|n| n.introduced && (n.is_remote() || unknown(n.text)))).map(|number| number.text)
}

const ERROR_MARKS: [&str; 17] = [
    "[ error ]",
    "[error]",
    "<e>",
    "error:",
    "error at line",
    "failed",
    "failure",
    "could not",
    "unable to",
    "does not exist in",
    "not supported",
    "does not support",
    "cannot open shared object",
    "cannot link executable",
    "inaccessible or not found",
    "permission denied",
    "no such file or directory",
];

/// Whether a line of a QNN-family log reports an error.
pub fn is_error(line: &str) -> bool {
    let lower = line.to_ascii_lowercase();
    if is_harmless(&lower) {
        return false;
    }
    ERROR_MARKS.iter().any(|mark| lower.contains(mark))
        || (lower.starts_with(|c: char| c.is_ascii_digit())
            && (line.contains(" E ") || line.contains(" F "))
            && line.contains(':')
            && is_logcat(line))
}

/// Lower levels of a log, and lines known to mean nothing.
fn is_harmless(lower: &str) -> bool {
    const MARKS: [&str; 11] = [
        "[warn]",
        "[ warn ]",
        "[ warning ]",
        "[warning]",
        "[info]",
        "[ info ]",
        "[debug]",
        "[ debug ]",
        "[ verbose ]",
        "unable to initialize logging",
        "returned status = 0",
    ];
    MARKS.iter().any(|mark| lower.contains(mark)) || ["<w>", "<i>", "<v>", "<d>"].iter().any(|mark| lower.contains(mark))
}

/// `01-05 15:23:12.072 29837 29837 E tag: message`.
fn is_logcat(line: &str) -> bool {
    let mut words = line.split_whitespace();
    let date = words.next().is_some_and(|word| word.len() == 5 && word.as_bytes()[2] == b'-');
    date && words.next().is_some_and(|word| word.matches(':').count() == 2)
}

/// A line without what loggers put before the message: times, levels, tags, quotes.
pub fn message(line: &str) -> String {
    let mut text = line.trim();
    if is_logcat(text)
        && let Some(at) = text.find(" E ").or_else(|| text.find(" F "))
    {
        text = text[at + 3..].trim_start();
        if let Some(at) = text.find(": ") {
            text = text[at + 2..].trim_start();
        }
    }
    for mark in ["[ ERROR ]", "[ERROR]", "<E>", "PF_VALIDATOR: ERROR:", "ERROR:"] {
        if let Some(at) = text.find(mark).filter(|&at| at < 48) {
            text = text[at + mark.len()..].trim_start();
        }
    }
    // `date [/path/file.cpp:12] message`: the message.
    let text = text.find("] ").filter(|&at| text[..at].contains(".cpp:")).map_or(text, |at| &text[at + 2..]);
    let text = text.strip_prefix("QnnDsp").map_or(text, str::trim_start).trim_start_matches("<E>");
    text.trim_matches(['"', ' ', ':', '\t']).to_owned()
}

/// The failure that these lines report: the first error line, then those with a code of their own, four at most. `None` without any.
pub fn failure<'a>(lines: impl IntoIterator<Item = &'a str>) -> Option<Failure> {
    failure_by(&TABLE, lines)
}

/// The same, explained by the table of another backend over QNN.
pub fn failure_by<'a>(table: &Table, lines: impl IntoIterator<Item = &'a str>) -> Option<Failure> {
    let mut parts: Vec<String> = Vec::new();
    let mut codes: Vec<String> = Vec::new();
    let mut last = None;
    let mut cause: Option<Found<'_>> = None;
    for line in lines.into_iter().filter(|line| is_error(line)) {
        let text = message(line);
        if text.is_empty() || parts.contains(&text) {
            continue;
        }
        if let Some(found) = table.find(line).filter(|found| cause.as_ref().is_none_or(|cause| found.rank < cause.rank)) {
            cause = Some(found);
        }
        let code = code_in(line).map(str::to_ascii_lowercase);
        let fresh = code.is_some_and(|code| !codes.contains(&code) && (codes.push(code), true).1);
        if parts.is_empty() || (fresh && parts.len() < 3) {
            parts.push(text);
        } else {
            last = Some(text);
        }
    }
    if let Some(last) = last.filter(|last| !parts.contains(last)) {
        parts.push(last);
    }
    if parts.is_empty() {
        return None;
    }
    let message = shorten(&parts.join("; "));
    Some(cause.map_or_else(|| Failure::new(FailureKind::Runtime, message.clone()), |cause| cause.failure(message.clone())))
}

/// A message short enough for a table.
pub fn shorten(text: &str) -> String {
    const MAX: usize = 500;
    if text.chars().count() <= MAX { text.to_owned() } else { text.chars().take(MAX).chain(['…']).collect() }
}

/// The line of a crash of the process itself, as shells and libc report it.
pub fn crash(text: &str) -> Option<&str> {
    const MARKS: [&str; 6] = ["segmentation fault", "sigsegv", "return_code: 139", "rc=139", "bus error", "fatal signal"];
    text.lines().rev().take(30).map(str::trim).find(|line| {
        let lower = line.to_ascii_lowercase();
        // An answer of a model may speak of a crash; the shell's line is a short one.
        line.len() < 120 && (lower.starts_with("aborted") || MARKS.iter().any(|mark| lower.contains(mark)))
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_table_is_sound() {
        assert_eq!(super::TABLE.problems(), Vec::<String>::new());
    }
    #[test]
    fn every_failed_run_of_the_fixtures_is_explained() {
        for (name, id) in [
            ("netrun-fail.txt", "qnn-skel"),
            ("throughput-wrong-context.txt", "qnn-wrong-backend"),
            ("validator-fail.txt", "qnn-validator"),
            ("throughput-segfault.txt", "crash"),
        ] {
            let text = std::fs::read_to_string(format!("{}/fixtures/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap();
            assert_eq!(super::TABLE.nearest(text.lines()).map(|found| found.entry.id.as_str()), Some(id), "{name}");
        }
    }
}
