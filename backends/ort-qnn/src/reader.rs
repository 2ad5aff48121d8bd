//! `bench parse ort-qnn`: onnxruntime_perf_test, the profiling CSV of the QNN execution provider, and ONNX Runtime's own trace.

pub(crate) mod fallbacks;
pub mod log;
mod perf_test;
pub mod trace;

use std::io::BufRead;

use bench_backend_api::{Reader, Reading, SourceFile, Unreadable, text};
use bench_backend_qnn::{codes, csv, finish, first_line, is_binary, merge, stem, streamed};

/// Reads the outputs of ONNX Runtime's tools; several files are one run.
#[derive(Debug, Clone, Copy, Default)]
pub struct OrtQnnReader;

impl Reader for OrtQnnReader {
    fn id(&self) -> &'static str {
        "ort-qnn"
    }

    fn read(&self, files: &[SourceFile]) -> Result<Reading, Unreadable> {
        let unreadable = |file: &SourceFile, message: String| Unreadable { file: file.name.clone(), message };
        let mut reading = Reading::default();
        let (mut tables, mut logs, mut traces) = (Vec::new(), Vec::new(), Vec::new());
        for file in files {
            if is_binary(&file.bytes) {
                return Err(unreadable(file, "a binary file; `*_qnn.log` is for `qnn-profile-viewer --input_log`".to_owned()));
            }
            let text = text::of(file);
            let trimmed = text.trim();
            if trimmed.is_empty() {
                if files.len() == 1 {
                    return Err(unreadable(file, "the file is empty".to_owned()));
                }
                reading.warnings.push(format!("{}: the file is empty", file.name));
            } else if trace::is_trace(trimmed) {
                traces.push(trace::reading(trimmed, false).map_err(|message| unreadable(file, message))?);
            } else if csv::is_csv(&text) {
                tables.push((stem(&file.name).to_owned(), text));
            } else if perf_test::is_output(&text)
                || perf_test::is_result_file(&text)
                || log::is_log(&text)
                || (files.len() > 1 && codes::crash(&text).is_some())
            {
                logs.push(text);
            } else {
                return Err(unreadable(
                    file,
                    format!("neither onnxruntime_perf_test's output nor a QNN profile nor a trace: line 1 is `{}`", first_line(trimmed)),
                ));
            }
        }
        for text in &logs {
            merge(&mut reading, if perf_test::is_result_file(text) { perf_test::result_file(text) } else { perf_test::reading(text) });
        }
        let tables: Vec<(&str, &str)> = tables.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
        let profile = csv::reading(&tables);
        // The tool's own latency counts; a profile beside it slows nothing but itself, and adds its operations.
        for part in std::iter::once(profile).chain(traces) {
            add_profile(&mut reading, part);
        }
        fallback(&mut reading, &logs);
        if reading.measurements.is_empty() && reading.layers.is_empty() && reading.failure.is_none() && reading.warnings.is_empty() {
            reading.warnings.push("no figures in this output".to_owned());
        }
        finish(&mut reading);
        Ok(reading)
    }

    fn stream(&self, name: &str, head: &str, from: &mut dyn BufRead) -> Option<Result<Reading, Unreadable>> {
        if trace::is_trace(head) {
            return Some(streamed(name, trace::stream(from)));
        }
        csv::is_csv(head).then(|| streamed(name, csv::stream(stem(name), from)))
    }
}

/// Adds a profile: its figures where there are none yet, else under `reported` of the first measurement.
fn add_profile(reading: &mut Reading, mut profile: Reading) {
    if let Some(first) = reading.measurements.first_mut() {
        for (key, value) in profile.measurements.drain(..).flat_map(|measurement| measurement.reported) {
            first.reported.entry(key).or_insert(value);
        }
    }
    merge(reading, profile);
}

/// A provider that could not be set up: the session is made, and everything runs on the CPU. Its figures are then those of the CPU, and no metrics
/// of this backend.
fn fallback(reading: &mut Reading, logs: &[String]) {
    let failures: Vec<_> = logs.iter().filter_map(|text| log::outcome(text)).collect();
    for outcome in failures {
        reading.warnings.extend(outcome.warnings);
        let has_figures = reading.measurements.iter().any(|measurement| !measurement.metrics.is_empty());
        match outcome.failure {
            Some(failure) if outcome.on_cpu => {
                for measurement in &mut reading.measurements {
                    for (name, value) in std::mem::take(&mut measurement.metrics) {
                        measurement.reported.insert(format!("{name} (CPU)"), value);
                    }
                }
                if has_figures {
                    reading.warnings.push("the figures are those of the CPU: they are reported, but are no metrics of QNN".to_owned());
                }
                reading.failure = Some(failure);
            }
            Some(failure) if has_figures && !outcome.fatal && reading.failure.is_none() => {
                reading.warnings.push(format!("the log reports an error although the run finished: {}", failure.message));
            }
            // The log's reason says more than a missing average does.
            Some(failure) => reading.failure = Some(failure),
            None => {}
        }
    }
}

#[cfg(test)]
mod tests;
