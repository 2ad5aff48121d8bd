//! `bench parse ort-genai`: model_benchmark, benchmark_e2e.py, the `--timings` of the examples, errors, and ONNX Runtime's trace.

mod benchmark;
mod python;

use bench_backend_api::{Failure, FailureKind, Reader, Reading, SourceFile, Unreadable, text};
use bench_backend_ort_qnn::{log, trace};
use bench_backend_qnn::{codes, finish, first_line, is_binary, merge};

/// Reads the outputs of onnxruntime-genai; several files are one run.
#[derive(Debug, Clone, Copy, Default)]
pub struct OrtGenaiReader;

impl Reader for OrtGenaiReader {
    fn id(&self) -> &'static str {
        "ort-genai"
    }

    fn read(&self, files: &[SourceFile]) -> Result<Reading, Unreadable> {
        let unreadable = |file: &SourceFile, message: String| Unreadable { file: file.name.clone(), message };
        let mut reading = Reading::default();
        let mut traces = Vec::new();
        let mut failure = None;
        for file in files {
            if is_binary(&file.bytes) {
                return Err(unreadable(file, "a binary file".to_owned()));
            }
            let text = text::of(file);
            let trimmed = text.trim();
            if trimmed.is_empty() {
                if files.len() == 1 {
                    return Err(unreadable(file, "the file is empty".to_owned()));
                }
                reading.warnings.push(format!("{}: the file is empty", file.name));
                continue;
            }
            if trace::is_trace(trimmed) {
                traces.push(trace::reading(trimmed, true).map_err(|message| unreadable(file, message))?);
                continue;
            }
            let mut known = false;
            for part in [benchmark::reading(&text), python::reading(&text), python::table(&text)].into_iter().flatten() {
                known = true;
                merge(&mut reading, part);
            }
            let (found, warnings) = errors(&text, known || files.len() > 1);
            reading.warnings.extend(warnings);
            failure = failure.or(found);
            if !known && failure.is_none() {
                return Err(unreadable(
                    file,
                    format!(
                        "not the output of model_benchmark or another benchmark of onnxruntime-genai: line 1 is `{}`",
                        first_line(trimmed)
                    ),
                ));
            }
        }
        let figures = reading.measurements.iter().any(|measurement| measurement.metrics.keys().any(|name| !name.ends_with("_tokens")));
        for mut part in traces {
            // A trace's forward passes are no measurement of the loop when there is one.
            if figures {
                part.measurements.clear();
            }
            merge(&mut reading, part);
        }
        match failure {
            Some((failure, _)) if figures && reading.failure.is_none() && is_remark(&failure) => {
                reading.warnings.push(format!("the log reports an error although the run finished: {}", failure.message));
            }
            Some((failure, _)) => reading.failure = Some(failure),
            None => {}
        }
        finish(&mut reading);
        Ok(reading)
    }
}

/// A crash behind the figures says nothing against them.
fn is_remark(failure: &Failure) -> bool {
    failure.message.starts_with(CRASHED)
}

const CRASHED: &str = "the tool crashed: ";

/// The error of an output and its line (a crash counts in what is `known` to be one), and what was odd. With several, the first: a script that goes on repeats what follows from it.
fn errors(text: &str, known: bool) -> (Option<(Failure, usize)>, Vec<String>) {
    let mut warnings = Vec::new();
    // ONNX Runtime's provider log first: it explains what the exception behind it says.
    if let Some(outcome) = log::outcome(text).filter(|outcome| outcome.on_cpu) {
        return (outcome.failure.map(|failure| (failure, 0)), warnings);
    }
    // `Error:` alone is printed by anything: it counts where the text is known to be of this family.
    let family = known || ["onnx", "genai", "oga", "model.onnx"].iter().any(|word| text.to_ascii_lowercase().contains(word));
    let generic = |line: &str| ["Error:", "Exception:", "what():"].iter().any(|start| line.trim_start().starts_with(start));
    let lines: Vec<(usize, &str)> =
        text.lines().enumerate().filter(|(_, line)| is_error(line) && (family || !generic(line) || explains(line))).collect();
    let Some(&(at, line)) = lines.first() else {
        let usage = |line: &&str| line.trim_start().to_ascii_lowercase().starts_with("usage:") && line.contains("benchmark");
        if let Some((at, line)) = text.lines().enumerate().find(|(_, line)| usage(line)) {
            let hint = Some("an option is wrong or missing".to_owned());
            let message = format!("the tool printed its usage: {}", line.trim());
            return (Some((Failure { kind: FailureKind::Usage, message, hint }, at)), warnings);
        }
        let crash = codes::crash(text).filter(|_| known || text.contains("genai") || text.contains("onnxruntime"));
        let failure = crash.map(|line| {
            let hint = Some("look at logcat or dmesg for the fault's address".to_owned());
            (Failure { kind: FailureKind::Runtime, message: format!("{CRASHED}{line}"), hint }, 0)
        });
        return (failure, warnings);
    };
    let exceptions = lines.iter().filter(|(_, line)| !line.contains("[E:onnxruntime")).count();
    if exceptions > 1 {
        warnings.push(format!("the output reports {exceptions} errors: the first is given"));
    }
    (Some((log::explained(&message(line)), at)), warnings)
}

const STARTS: [&str; 10] = [
    "RuntimeError:",
    "OgaException",
    "onnxruntime_genai.onnxruntime_genai",
    "terminate called",
    "what():",
    "Error:",
    "Exception:",
    "FileNotFoundError:",
    "ModuleNotFoundError:",
    "ImportError:",
];

/// Lines in which Python, C++ or the benchmark itself reports an error.
fn is_error(line: &str) -> bool {
    let text = line.trim_start();
    (STARTS.iter().any(|start| text.starts_with(start)) && !text.starts_with("terminate called after throwing"))
        || text.contains("[E:onnxruntime")
        || text.contains("[F:onnxruntime")
}

/// Whether a generic error line has words of this runtime.
fn explains(line: &str) -> bool {
    ["provider", "input_ids", "max_length", "max length", "Protobuf", "QNN", "node"].iter().any(|word| line.contains(word))
}

fn message(line: &str) -> String {
    let text = log::message(line);
    let text = ["RuntimeError:", "what():", "Error:", "Exception:"].iter().find_map(|start| text.strip_prefix(start)).unwrap_or(&text);
    text.trim().to_owned()
}

#[cfg(test)]
mod tests;
