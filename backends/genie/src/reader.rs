//! `bench parse genie`: profile JSON of `--profile`, and what genie-t2t-run, genie-t2e-run and genie-app print.

mod profile;
mod stdout;

use bench_backend_api::{Reader, Reading, SourceFile, Unreadable, text};
use bench_backend_qnn::{codes, finish, first_line, is_binary, merge};

/// Reads Genie's profile and terminal output; several files are one run.
#[derive(Debug, Clone, Copy, Default)]
pub struct GenieReader;

impl Reader for GenieReader {
    fn id(&self) -> &'static str {
        "genie"
    }

    fn read(&self, files: &[SourceFile]) -> Result<Reading, Unreadable> {
        let unreadable = |file: &SourceFile, message: String| Unreadable { file: file.name.clone(), message };
        let mut profiles = Reading::default();
        let mut logs: Vec<String> = Vec::new();
        let texts: Vec<String> = files.iter().map(text::of).collect();
        for (file, text) in files.iter().zip(texts) {
            if is_binary(&file.bytes) {
                return Err(unreadable(file, "a binary file, not Genie's output".to_owned()));
            }
            let trimmed = text.trim();
            if trimmed.is_empty() {
                if files.len() == 1 {
                    return Err(unreadable(file, "the file is empty; Genie writes no profile when a query fails".to_owned()));
                }
                profiles.warnings.push(format!("{}: the file is empty", file.name));
            } else if trimmed.starts_with('{') {
                let part = profile::reading(trimmed).map_err(|message| unreadable(file, message))?;
                merge(&mut profiles, part);
            } else if stdout::is_output(&text) || (files.len() > 1 && codes::crash(&text).is_some()) {
                // A profile printed behind the output with `cat`.
                if let Some(part) = profile::embedded(&text) {
                    merge(&mut profiles, part);
                }
                logs.push(text);
            } else if files.len() > 1 && !text.contains('{') {
                profiles.warnings.push(format!("{}: not Genie's output, skipped: line 1 is `{}`", file.name, first_line(trimmed)));
            } else {
                return Err(unreadable(file, format!("not Genie's output: line 1 is `{}`", first_line(trimmed))));
            }
        }
        if profiles.measurements.is_empty()
            && logs.is_empty()
            && !profiles.warnings.iter().any(|warning| warning.starts_with("the profile"))
        {
            let name = files.first().map_or(String::new(), |file| file.name.clone());
            return Err(Unreadable { file: name, message: "none of the files holds Genie's output".to_owned() });
        }
        profile::number_queries(&mut profiles);
        let mut reading = combine(profiles, &logs);
        finish(&mut reading);
        Ok(reading)
    }
}

/// The profile counts where there is one; the terminal output adds figures only when there is none.
fn combine(mut reading: Reading, logs: &[String]) -> Reading {
    let has_profile = !reading.measurements.is_empty();
    // stdout and stderr of one run may come as two files: an error in one explains a missing answer in the other.
    let whole = logs.join("\n");
    if whole.trim().is_empty() {
        return reading;
    }
    let mut part = stdout::reading(&whole, has_profile);
    if has_profile {
        part.measurements.clear();
    }
    merge(&mut reading, part);
    reading
}

#[cfg(test)]
mod tests;
