//! `bench parse qnn`: the outputs of the QAIRT command-line tools.

pub mod codes;
pub mod csv;
mod events;
mod netrun;
pub mod npu;
pub mod ops;
mod qhas;
mod throughput;
mod viewer;

use std::io::{self, BufRead};

use bench_backend_api::{Reader, Reading, SourceFile, Unreadable, text};

/// Reads qnn-profile-viewer's text, CSV and QHAS JSON, qnn-throughput-net-run's table, and what qnn-net-run and qnn-platform-validator print.
#[derive(Debug, Clone, Copy, Default)]
pub struct QnnReader;

impl Reader for QnnReader {
    fn id(&self) -> &'static str {
        "qnn"
    }

    fn read(&self, files: &[SourceFile]) -> Result<Reading, Unreadable> {
        let unreadable = |file: &SourceFile, message: String| Unreadable { file: file.name.clone(), message };
        let mut reading = Reading::default();
        let (mut tables, mut logs): (Vec<(String, String)>, Vec<String>) = (Vec::new(), Vec::new());
        let all_empty = files.iter().all(|file| text::of(file).trim().is_empty());
        for file in files {
            if is_binary(&file.bytes) {
                return Err(unreadable(
                    file,
                    "a binary file; turn qnn-profiling-data_0.log into text with `qnn-profile-viewer --input_log FILE`".to_owned(),
                ));
            }
            let text = text::of(file);
            let trimmed = text.trim();
            if trimmed.is_empty() {
                if all_empty {
                    return Err(unreadable(file, "the file is empty".to_owned()));
                }
                reading.warnings.push(format!("{}: the file is empty", file.name));
            } else if trimmed.starts_with('{') {
                let value: serde_json::Value =
                    serde_json::from_str(trimmed).map_err(|error| unreadable(file, format!("not complete JSON: {error}")))?;
                if !qhas::is_summary(&value) {
                    return Err(unreadable(file, "JSON that is not a QHAS summary of qnn-profile-viewer".to_owned()));
                }
                merge(&mut reading, qhas::reading(&value));
            } else if csv::is_csv(&text) {
                tables.push((stem(&file.name).to_owned(), text));
            } else {
                // A second file may hold no more than the shell's word of a crash.
                let mut known = netrun::is_output(&text) || (files.len() > 1 && codes::crash(&text).is_some());
                for part in [viewer::reading(&text), throughput::reading(&text)].into_iter().flatten() {
                    known = true;
                    merge(&mut reading, part);
                }
                if !known {
                    return Err(unreadable(file, format!("not the output of a QNN tool: line 1 is `{}`", first_line(trimmed))));
                }
                logs.push(text);
            }
        }
        let tables: Vec<(&str, &str)> = tables.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
        merge(&mut reading, csv::reading(&tables));

        let figures = !reading.measurements.is_empty() || !reading.layers.is_empty();
        let outcomes: Vec<netrun::Outcome> = logs.iter().map(|log| netrun::outcome(log, figures)).collect();
        for outcome in outcomes {
            reading.warnings.extend(outcome.warnings);
            reading.failure = reading.failure.or(outcome.failure);
        }
        finish(&mut reading);
        Ok(reading)
    }

    fn stream(&self, name: &str, head: &str, from: &mut dyn BufRead) -> Option<Result<Reading, Unreadable>> {
        csv::is_csv(head).then(|| streamed(name, csv::stream(stem(name), from)))
    }
}

/// A profile that was read in pieces.
///
/// # Errors
/// What broke while it was read.
pub fn streamed(name: &str, read: io::Result<Reading>) -> Result<Reading, Unreadable> {
    let mut reading = read.map_err(|e| Unreadable { file: name.to_owned(), message: e.to_string() })?;
    finish(&mut reading);
    Ok(reading)
}

const MOST: usize = 20;

/// Gives every failure a hint, and keeps the first warnings: a file in a foreign number format has one a line.
pub fn finish(reading: &mut Reading) {
    if let Some(failure) = &mut reading.failure {
        failure.hint.get_or_insert_with(|| "run again with the tool's most verbose log level, and look at logcat".to_owned());
    }
    let more = reading.warnings.len().saturating_sub(MOST);
    if more > 1 {
        reading.warnings.truncate(MOST);
        reading.warnings.push(format!("and {more} more warnings"));
    }
}

/// Adds one reading to another.
pub fn merge(into: &mut Reading, from: Reading) {
    into.measurements.extend(from.measurements);
    into.layers.extend(from.layers);
    into.dram.extend(from.dram);
    into.npu = bench_backend_api::npu::merged(into.npu.take(), from.npu.as_ref());
    into.warnings.extend(from.warnings);
    into.failure = into.failure.take().or(from.failure);
}

/// A file's name without folders and extension.
pub fn stem(name: &str) -> &str {
    let name = name.rsplit(['/', '\\']).next().unwrap_or(name);
    name.rsplit_once('.').map_or(name, |(stem, _)| if stem.is_empty() { name } else { stem })
}

/// The first line of a text, short enough for a message.
pub fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or("").chars().take(60).collect()
}

/// Whether the bytes are no text: a NUL early on, unless a byte-order mark says UTF-16.
pub fn is_binary(bytes: &[u8]) -> bool {
    !bytes.starts_with(&[0xff, 0xfe]) && !bytes.starts_with(&[0xfe, 0xff]) && bytes.iter().take(512).filter(|&&byte| byte == 0).count() > 4
}

#[cfg(test)]
mod tests;
