//! Failures of the QNN family (qnn-net-run, Genie, the QNN execution provider): which lines report one, the code in them, and what to do.
//!
//! The codes are those of the public QNN error tables and of FastRPC. A code stands anywhere in a line: kernel messages are printed into the
//! middle of other lines, so that nothing here is anchored to a whole line.

use bench_backend_api::{Failure, FailureKind};

/// What a code means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Known {
    /// The code as printed.
    pub code: &'static str,
    /// Who is to blame.
    pub kind: FailureKind,
    /// What to do.
    pub hint: &'static str,
}

const fn known(code: &'static str, kind: FailureKind, hint: &'static str) -> Known {
    Known { code, kind, hint }
}

const SKEL: &str = "put the Stub and Skel libraries of the device's Hexagon version in one folder, quote ADSP_LIBRARY_PATH (it holds `;`), and do not mix them with the vendor's libraries in LD_LIBRARY_PATH";
const SSR: &str = "the DSP process died or was restarted: run again, and look at dmesg for a subsystem restart";
const OTHER_CHIP: &str = "the context binary does not fit this chip or this QAIRT version: prepare it for the device's soc_model and Hexagon version with the QAIRT version that runs it";

/// The codes that say something by themselves.
pub const KNOWN: [Known; 27] = [
    known("1000", FailureKind::Runtime, "this backend does not support what was asked"),
    known("1002", FailureKind::Runtime, "out of memory or VTCM: use a smaller context or graph, or close other users of the NPU"),
    known("1003", FailureKind::Device, SKEL),
    known("1006", FailureKind::Device, SKEL),
    known("1007", FailureKind::Device, SSR),
    known("1008", FailureKind::Runtime, "libraries of different QAIRT versions are mixed: take all of them from one version"),
    known("1009", FailureKind::Device, SKEL),
    known("1011", FailureKind::Device, SSR),
    known("1100", FailureKind::Runtime, "run again with --log_level verbose and look at logcat"),
    known(
        "3110",
        FailureKind::Model,
        "an operation or its data types are not supported on this Hexagon version: quantize or convert the model differently",
    ),
    known("4000", FailureKind::Device, SKEL),
    known("5000", FailureKind::Model, OTHER_CHIP),
    known("5004", FailureKind::Model, OTHER_CHIP),
    known("5005", FailureKind::Model, OTHER_CHIP),
    known("5010", FailureKind::Usage, "a key of the backend configuration is not known to this version"),
    known("6001", FailureKind::Runtime, SSR),
    known("6022", FailureKind::Model, "the graph can not be prepared: the lines before name the operation"),
    known("6031", FailureKind::Runtime, SSR),
    known("8003", FailureKind::Device, "memory could not be mapped: push libcdsprpc's users with the right permissions, or free memory"),
    known("14001", FailureKind::Device, SKEL),
    known("14002", FailureKind::Device, "the NPU is not available to this user or is in use"),
    known("0x80000406", FailureKind::Device, SKEL),
    known("0x80000414", FailureKind::Device, SKEL),
    known("0x80000416", FailureKind::Device, SKEL),
    known("0x8000040d", FailureKind::Device, SSR),
    known("0x80000442", FailureKind::Device, SSR),
    known("0xffffffff", FailureKind::Device, SKEL),
];

/// What a code means, when it is a known one. A small hexadecimal code is looked up as the decimal one.
pub fn explain(code: &str) -> Option<&'static Known> {
    let lower = code.to_ascii_lowercase();
    let decimal = lower.strip_prefix("0x").and_then(|hex| u32::from_str_radix(hex, 16).ok()).filter(|&value| value < 0x1_0000);
    let lower = decimal.map_or(lower, |value| value.to_string());
    KNOWN.iter().find(|entry| entry.code == lower)
}

/// The error code in a line that reports an error.
pub fn code_in(line: &str) -> Option<&str> {
    let mut before = "";
    let mut found = None;
    let tokens = tokens(line);
    for (place, &token) in tokens.iter().enumerate() {
        let last = place + 1 == tokens.len();
        let hexadecimal = token.strip_prefix("0x").or_else(|| token.strip_prefix("0X")).is_some_and(|hex| {
            hex.len() <= 8 && u32::from_str_radix(hex, 16).is_ok_and(|value| value >= 0x8000_0000 || explain(token).is_some())
        });
        let number = token.strip_prefix('-').unwrap_or(token);
        let decimal = !number.is_empty()
            && number.len() <= 6
            && number.bytes().all(|byte| byte.is_ascii_digit())
            && number.bytes().any(|byte| byte != b'0');
        let introduced = ["err", "error", "code", "status", "symbols", "statuscode"].iter().any(|word| before.eq_ignore_ascii_case(word));
        let is_code = hexadecimal || (decimal && (introduced || (explain(token).is_some() && last)));
        // A code that means something wins over one that does not; the first of each sort.
        if is_code && found.is_none_or(|old| explain(old).is_none() && explain(token).is_some()) {
            found = Some(token);
        }
        before = token;
    }
    found
}

/// The words and numbers of a line; a minus belongs to a number only behind a space, `=` or `:`.
fn tokens(line: &str) -> Vec<&str> {
    line.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '-'))
        .map(|token| {
            if token.starts_with('-') && !token[1..].starts_with(|c: char| c.is_ascii_digit()) {
                token.trim_start_matches('-')
            } else {
                token
            }
        })
        .filter(|token| !token.is_empty())
        .collect()
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
    let mut parts: Vec<String> = Vec::new();
    let mut codes: Vec<String> = Vec::new();
    let mut last = None;
    for line in lines.into_iter().filter(|line| is_error(line)) {
        let text = message(line);
        if text.is_empty() || parts.contains(&text) {
            continue;
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
    let known = codes.iter().find_map(|code| explain(code));
    let message = parts.join("; ");
    let phrase = by_phrase(&message);
    let kind = known.map(|known| known.kind).or(phrase.map(|(kind, _)| kind)).unwrap_or(FailureKind::Runtime);
    let hint = known.map(|known| known.hint).or(phrase.map(|(_, hint)| hint)).map(str::to_owned);
    Some(Failure { kind, message: shorten(&message), hint })
}

/// Failures that have words but no code.
fn by_phrase(message: &str) -> Option<(FailureKind, &'static str)> {
    let lower = message.to_ascii_lowercase();
    let table: [(&[&str], FailureKind, &str); 10] = [
        (
            &["valid interface", "getqnninterface"],
            FailureKind::Runtime,
            "QNN libraries of another version are found first: put your own folder first in LD_LIBRARY_PATH and leave /vendor/lib64 out",
        ),
        (
            &["context size was exceeded", "context limit", "context exceeded"],
            FailureKind::Usage,
            "prompt and answer do not fit the context: shorten them or use a bundle with a larger context",
        ),
        (
            &["missing qnnhtp field", "unknown qnnhtp config key", "missing field", "dialog config", "invalid config", "key not found"],
            FailureKind::Usage,
            "the Genie configuration does not fit this Genie version: compare its keys with the version's own example",
        ),
        (
            &["testsig", "sum function"],
            FailureKind::Device,
            "the unit test could not load its Skel library: point ADSP_LIBRARY_PATH at the folder with the Skel and Calculator libraries; this alone does not mean that the NPU is broken",
        ),
        (
            &["context binary returned", "does not exist in this backend", "context from binary", "binary version"],
            FailureKind::Model,
            "the context binary was made for another backend, chip or QAIRT version: use the backend library that it was prepared for",
        ),
        (&["permission denied", "can't execute"], FailureKind::Infra, "chmod +x the program, and run it from /data/local/tmp"),
        (
            &["no such file", "not found", "cannot open shared object", "cannot link executable", "already exists"],
            FailureKind::Infra,
            "a file is missing or in the way on the device: push everything again into an empty folder",
        ),
        (
            &["mandatory argument", "invalid argument", "unrecognized option", "unknown option", "unrecognized argument", "invalid --"],
            FailureKind::Usage,
            "an option is wrong or missing: see the tool's --help",
        ),
        (&["out of memory", "bad_alloc", "alloc"], FailureKind::Runtime, "not enough memory: use a smaller model or context"),
        (&["skel", "transport", "remote symbols", "opensession"], FailureKind::Device, SKEL),
    ];
    table.into_iter().find(|(phrases, ..)| phrases.iter().any(|phrase| lower.contains(phrase))).map(|(_, kind, hint)| (kind, hint))
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
