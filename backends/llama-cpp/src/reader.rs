//! `bench parse llama-cpp`: `llama-bench` in every format, and the timings of the other tools.

mod failures;
mod hexagon;
mod json;
mod perf;
mod row;
mod tables;
#[cfg(test)]
mod tests;
mod value;

use bench_backend_api::{
    Failure, FailureKind, Layer, Reader, Reading, SourceFile, Unreadable,
    knowledge::{Mark, Weight, exit_status, settle},
    text,
};
use failures::Evidence;
use perf::Timings;
use row::Row;
use serde_json::Value;
use value::Place;

const READS: &str = "`bench parse llama-cpp` reads llama-bench's -o json, jsonl, csv, md and sql, the timings that llama-cli, llama-completion, \
    llama-perplexity and llama-server print, and GGML_HEXAGON_PROFILE's profile-op lines";

/// Reads what llama.cpp's own tools print.
#[derive(Debug, Clone, Copy, Default)]
pub struct LlamaCppReader;

/// What one file says.
#[derive(Default)]
struct Part {
    file: String,
    /// Tests of llama-bench by format: `-o json -oe md` prints each twice.
    groups: Vec<Vec<Row>>,
    timings: Timings,
    layers: Vec<Layer>,
    warnings: Vec<String>,
    marks: Vec<Mark>,
    evidence: Evidence,
    status: Option<i32>,
    broken: Option<Unreadable>,
    /// llama-bench began and stopped: told only if nothing else explains it.
    stopped: Option<Failure>,
    /// Told only if nothing was measured at all.
    excuse: Option<Failure>,
    known: bool,
    foreign: Option<&'static str>,
    empty: bool,
    lines: usize,
}

impl Reader for LlamaCppReader {
    fn id(&self) -> &'static str {
        "llama-cpp"
    }

    fn read(&self, files: &[SourceFile]) -> Result<Reading, Unreadable> {
        let mut parts = Vec::new();
        for file in files {
            parts.push(part(&file.name, &text::of(file)).unwrap_or_else(|error| Part {
                file: file.name.clone(),
                broken: Some(error),
                known: true,
                ..Part::default()
            }));
        }
        merge(parts)
    }
}

fn part(file: &str, content: &str) -> Result<Part, Unreadable> {
    let lines: Vec<&str> = content.lines().collect();
    let mut part = Part { file: file.to_owned(), empty: content.trim().is_empty(), lines: lines.len(), ..Part::default() };
    documents(&mut part, content)?;
    let tables = tables::read(file, &lines)?;
    part.known |= tables.known;
    part.groups.extend(tables.groups);
    part.warnings.extend(tables.warnings);
    if tables.foreign {
        part.foreign = Some("it holds a table of MNN's llm_bench: use `bench parse mnn`");
    }
    part.timings.append(perf::read(file, &lines)?);
    part.layers = hexagon::layers(&lines);
    part.known |= is_llama(&lines) || !part.timings.is_empty() || !part.layers.is_empty();
    let spoken = !part.timings.is_empty() && part.groups.iter().all(Vec::is_empty);
    let mut errors = Vec::new();
    for line in &lines {
        part.status = exit_status(line).or(part.status);
        part.evidence.note(line);
        // A file with timings holds the text of a model too, in which only lines of log count.
        if spoken && !failures::is_log(line) {
            continue;
        }
        if line.trim_start().starts_with("error: ") {
            errors.push(line.trim());
        }
        part.marks.extend(failures::mark(line));
    }
    // `error: invalid device: X` and `error: invalid parameter for argument: -dev` are one message on two lines.
    if errors.len() > 1 {
        for mark in part.marks.iter_mut().filter(|mark| mark.failure.kind == FailureKind::Usage) {
            mark.failure.message = errors.join("; ");
        }
    }
    part.known |= !part.marks.is_empty();
    if lines.iter().any(|line| line.starts_with("usage:") && line.contains("llama") || line.trim() == "example usage:") {
        part.known = true;
        part.excuse = Some(Failure {
            kind: FailureKind::Usage,
            message: "the tool printed its help and ran nothing".to_owned(),
            hint: Some("an error in the arguments is on stderr: give that file too".to_owned()),
        });
    } else if let Some(at) = lines.iter().position(|line| line.trim() == "Available devices:") {
        part.known = true;
        let devices: Vec<&str> = lines[at + 1..].iter().map(|line| line.trim()).filter(|line| !line.is_empty()).collect();
        part.excuse = Some(Failure {
            kind: FailureKind::Usage,
            message: format!("a list of devices and no measurement; devices: {}", devices.join(", ")),
            hint: Some("run llama-bench without --list-devices".to_owned()),
        });
    }
    Ok(part)
}

/// Objects of JSON and JSONL.
fn documents(part: &mut Part, content: &str) -> Result<(), Unreadable> {
    let found = json::read(content);
    let mut rows = Vec::new();
    let mut others = 0;
    for (line, fields) in found.objects {
        let place = Place { file: &part.file, line };
        if row::is_test(&fields) {
            rows.push(row::from_fields(fields, place, &mut part.warnings)?);
        } else if let Some(row) = perf::from_server(&fields) {
            part.timings.requests.push(row);
        } else {
            others += 1;
        }
    }
    part.known |= !rows.is_empty();
    if let Some((line, reason)) = found.broken {
        part.known = true;
        part.broken = Some(Place { file: &part.file, line }.error(&reason));
    }
    let starts_so = content.lines().map(str::trim).any(|line| line == "[");
    if found.open.is_some() && (starts_so || !rows.is_empty()) {
        let tests = rows.len();
        part.stopped = Some(Failure {
            kind: FailureKind::Runtime,
            message: format!("llama-bench stopped after {tests} finished tests: its array has no end"),
            hint: Some("its error is on stderr: give that file too".to_owned()),
        });
    } else if found.empty.is_some() && rows.is_empty() {
        part.stopped = Some(Failure {
            kind: FailureKind::Runtime,
            message: "llama-bench printed an empty array: no test ended".to_owned(),
            hint: Some("its error is on stderr: give that file too".to_owned()),
        });
    }
    if others > 0 && rows.is_empty() {
        part.foreign = Some("it is JSON of something else than llama-bench");
    }
    part.groups.push(rows);
    Ok(())
}

impl Timings {
    fn is_empty(&self) -> bool {
        [&self.process, &self.requests, &self.bare, &self.summaries].iter().all(|rows| rows.is_empty())
    }

    fn append(&mut self, other: Self) {
        self.process.extend(other.process);
        self.requests.extend(other.requests);
        self.bare.extend(other.bare);
        self.summaries.extend(other.summaries);
        self.warnings.extend(other.warnings);
    }

    /// The queries of a run. The four kinds say the same of the same query, so that only the first that is there counts.
    fn queries(mut self, warnings: &mut Vec<String>) -> Vec<Row> {
        warnings.append(&mut self.warnings);
        // A process prints its statistics once, at its end; what looks like them before that is the model's text.
        if self.process.len() > 1 {
            let last = self.process.len() - 1;
            if self.process[..last].iter().any(|row| row.measurement != self.process[last].measurement) {
                warnings.push(format!("{} blocks of timings: the last one counts; give the output of one run at a time", last + 1));
            }
            self.process.drain(..last);
        }
        let mut rows = [self.process, self.requests, self.bare].into_iter().find(|rows| !rows.is_empty()).unwrap_or_default();
        rows.dedup_by(|a, b| a.measurement == b.measurement);
        if rows.is_empty() {
            rows = self.summaries;
        } else if let (1, Some(summary)) = (rows.len(), self.summaries.last()) {
            for (name, value) in &summary.measurement.reported {
                rows[0].report(name, value.clone());
            }
        }
        for (at, row) in rows.iter_mut().enumerate() {
            row.measurement.label = format!("query {}", at + 1);
        }
        rows
    }
}

/// Lines that llama.cpp's tools print at their start.
fn is_llama(lines: &[&str]) -> bool {
    const SIGNS: &[&str] = &[
        "load_backend: ",
        "llama_model_loader:",
        "ggml_",
        "ggml-hex",
        "llama_context",
        "llama-bench",
        "llama-cli",
        "build: ",
        "llama_bench",
    ];
    lines.iter().any(|line| SIGNS.iter().any(|sign| line.contains(sign)))
}

fn merge(parts: Vec<Part>) -> Result<Reading, Unreadable> {
    let mut reading = Reading::default();
    let mut rows: Vec<Row> = Vec::new();
    let mut timings = Timings::default();
    let mut marks = Vec::new();
    let mut evidence = Evidence::default();
    let (mut status, mut broken, mut stopped, mut excuse) = (None, None, None, None);
    let nothing = unreadable(&parts);
    for part in parts {
        for group in part.groups {
            join(&mut rows, group);
        }
        timings.append(part.timings);
        if reading.layers.is_empty() {
            reading.layers = part.layers;
        }
        reading.warnings.extend(part.warnings);
        marks.extend(part.marks);
        evidence = evidence.join(part.evidence);
        status = status.or(part.status);
        broken = broken.or(part.broken);
        stopped = stopped.or(part.stopped);
        excuse = excuse.or(part.excuse);
    }
    // llama-bench -v logs the timings of each test too, all zero.
    if rows.is_empty() {
        rows = timings.queries(&mut reading.warnings);
    }
    let measured = rows.iter().any(Row::measured);
    sort_sessions(&mut marks, &rows, evidence, measured);
    reading.failure = settle(&mut reading.warnings, rows.iter().filter_map(|row| row.trouble.as_ref()), marks, status, measured);
    if let Some(failure) = stopped {
        reading.failure.get_or_insert(failure);
    }
    match broken {
        // The failure is the answer; the broken file is a consequence of it.
        Some(error) if reading.failure.is_some() => reading.warnings.push(error.to_string()),
        Some(error) => return Err(error),
        None => {}
    }
    warn_of_unit(&rows, evidence, &mut reading.warnings);
    reading.measurements = rows.into_iter().map(|row| row.measurement).collect();
    if reading.failure.is_none() && !measured && reading.layers.is_empty() {
        reading.failure = Some(excuse.ok_or(nothing)?);
    }
    Ok(reading)
}

/// The error for files without a result.
fn unreadable(parts: &[Part]) -> Unreadable {
    let error = |at: usize, message: String| Unreadable { file: parts.get(at).map_or_else(String::new, |part| part.file.clone()), message };
    if let Some((at, why)) = parts.iter().enumerate().find_map(|(at, part)| Some((at, part.foreign?))) {
        return error(at, format!("line 1: {why}; {READS}"));
    }
    if let Some(at) = parts.iter().position(|part| part.known && !part.empty) {
        return error(
            at,
            format!("line {}: a log of llama.cpp that ends without a result; give the file with the results too. {READS}", parts[at].lines),
        );
    }
    match parts.iter().position(|part| !part.empty) {
        Some(at) => error(at, format!("line 1: not the output of a tool of llama.cpp; {READS}")),
        None => error(0, format!("empty; {READS}")),
    }
}

/// Adds the rows of one format, each to the row of another format or file that is the same test, else at the end.
fn join(rows: &mut Vec<Row>, group: Vec<Row>) {
    let known = rows.len();
    let mut taken = vec![false; known];
    for row in group {
        match (0..known).find(|&at| !taken[at] && rows[at].same(&row)) {
            Some(at) => {
                taken[at] = true;
                rows[at].absorb(row);
            }
            None => rows.push(row),
        }
    }
}

/// The backends that a row names; they are those of the build, not those that worked.
fn backends(row: &Row) -> Option<&str> {
    row.reported(&["backends", "backend"]).and_then(Value::as_str)
}

/// Whether a row's options leave the NPU and the GPU out.
fn wants_cpu(row: &Row) -> bool {
    let none = row.reported(&["devices", "dev"]).and_then(Value::as_str) == Some("none");
    let layers = row.reported(&["n_gpu_layers", "ngl"]).and_then(Value::as_f64);
    none || layers == Some(0.0) || backends(row).is_some_and(|names| names == "CPU")
}

/// A session of the NPU that did not open is a failure where the NPU was wanted and no other session opened.
fn sort_sessions(marks: &mut [Mark], rows: &[Row], evidence: Evidence, measured: bool) {
    let harmless = measured && (evidence.npu || rows.iter().all(wants_cpu));
    for mark in marks.iter_mut().filter(|mark| mark.weight == Weight::Elsewhere) {
        mark.weight = if harmless { Weight::Soft } else { Weight::Hard };
        if measured && !harmless {
            mark.failure.message = format!("{}: the NPU was not used, the figures are another unit's", mark.failure.message);
        }
    }
}

/// Says where the output leaves open what computed, or says that it was the CPU.
fn warn_of_unit(rows: &[Row], evidence: Evidence, warnings: &mut Vec<String>) {
    let mut add = |warning: String| {
        if !warnings.contains(&warning) {
            warnings.push(warning);
        }
    };
    if evidence.none_offloaded && rows.iter().any(Row::measured) {
        add("no layer was offloaded: it ran on the CPU".to_owned());
    }
    for row in rows {
        let Some(names) = backends(row) else { continue };
        let layers = row.reported(&["n_gpu_layers", "ngl"]).and_then(Value::as_f64);
        let device = row.reported(&["devices", "dev"]).and_then(Value::as_str).unwrap_or("auto");
        if names == "CPU" {
            if let Some(layers) = layers.filter(|&layers| layers > 0.0) {
                add(format!("-ngl {layers} was asked for, but this build or device has the CPU backend alone: it ran on the CPU"));
            }
        } else if wants_cpu(row) {
            add(format!("backend says {names}, but with -ngl 0 or no device it ran on the CPU"));
        } else if device == "auto" && !evidence.npu && !evidence.gpu {
            add(format!(
                "backend {names} lists what the build holds, not where it ran: give the log too (-v), its buffer and session lines show it"
            ));
        }
    }
}
