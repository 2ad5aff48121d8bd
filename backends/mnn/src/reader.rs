//! `bench parse mnn`: `llm_bench` (table and JSON), `llm_demo`, and the tools for plain networks.

mod demo;
mod failures;
mod json;
mod net;
mod row;
mod table;
#[cfg(test)]
mod tests;
mod value;

use bench_backend_api::{
    Failure, FailureKind, Layer, Reader, Reading, SourceFile, Unreadable,
    knowledge::{Mark, Weight, exit_status, settle},
    text,
};
use row::{Row, number};

const READS: &str = "`bench parse mnn` reads the table of llm_bench (stdout or its -fp file), its JSON (-j), the statistics of llm_demo, and the \
    output of MNNV2Basic.out, ModuleBasic.out, timeProfile.out and benchmark.out";

/// A decode-only speed above this many times that of the same length behind a prompt hints at an early end of the generation.
const EOS_RATIO: f64 = 1.4;

/// Reads what MNN's own tools print.
#[derive(Debug, Clone, Copy, Default)]
pub struct MnnReader;

/// What one file says.
#[derive(Default)]
struct Part {
    file: String,
    /// Rows by format: the table and the JSON of a run print the same tests.
    groups: Vec<Vec<Row>>,
    layers: Vec<Layer>,
    warnings: Vec<String>,
    marks: Vec<Mark>,
    /// Told only if nothing was measured at all.
    excuse: Option<Failure>,
    status: Option<i32>,
    /// The backends that a command line in the file asks for.
    asked: Option<String>,
    lines: usize,
    /// Whether the file is MNN's.
    known: bool,
    foreign: Option<&'static str>,
    empty: bool,
}

impl Reader for MnnReader {
    fn id(&self) -> &'static str {
        "mnn"
    }

    fn read(&self, files: &[SourceFile]) -> Result<Reading, Unreadable> {
        let mut parts = Vec::new();
        let mut broken = None;
        for file in files {
            match part(&file.name, &text::of(file)) {
                Ok(part) => parts.push(part),
                Err(error) => broken = broken.or(Some(error)),
            }
        }
        merge(parts, broken)
    }
}

fn part(file: &str, content: &str) -> Result<Part, Unreadable> {
    let lines: Vec<&str> = content.lines().collect();
    let mut part =
        Part { file: file.to_owned(), empty: content.trim().is_empty(), lines: lines.len(), asked: asked(&lines), ..Part::default() };
    if is_json(content.trim()) {
        let before = content.len() - content.trim_start().len();
        let line = content[..before].matches('\n').count() + 1;
        match json::read(file, content.trim(), line)? {
            Some(rows) => {
                part.known = true;
                part.groups.push(rows);
            }
            None => part.foreign = Some("it is JSON of something else than `llm_bench -j`"),
        }
        return Ok(part);
    }
    // Text that a model wrote can hold tables and figures, so that a file of llm_demo is read for its statistics alone.
    let (written, has_log) = if let Some(demo) = demo::read(file, &lines)? {
        part.known = true;
        part.warnings.extend(demo.warnings);
        let done = demo.row.as_ref().is_some_and(Row::measured);
        if demo.row.is_none() {
            part.excuse = Some(demo::no_block(&lines));
        }
        part.groups.push(demo.row.into_iter().collect());
        (if done { demo.written } else { 0..0 }, demo.has_log)
    } else {
        tables_and_nets(&mut part, file, &lines)?;
        (0..0, true)
    };
    for (at, line) in lines.iter().enumerate() {
        part.status = exit_status(line).or(part.status);
        let Some(mark) = failures::mark(line) else { continue };
        // A model can write any of these words. Without the log above it, only whole lines of MNN's own wording count.
        let own = !has_log && (line.starts_with("Can't Find type=") || line.starts_with("[Error]:"));
        if written.contains(&at) && !own {
            part.warnings.push(format!("{file} line {}: within the generated text: {}", at + 1, line.trim()));
        } else {
            part.marks.push(mark);
        }
    }
    part.known |= !part.marks.is_empty() || is_mnn(&lines);
    if part.excuse.is_none() && lines.iter().any(|line| line.starts_with("usage:") && line.contains("llm_bench")) {
        part.excuse = Some(Failure {
            kind: FailureKind::Usage,
            message: "llm_bench printed its help and ran nothing".to_owned(),
            hint: Some("run it with -m DIR/config.json".to_owned()),
        });
    }
    Ok(part)
}

/// Whether a file is one JSON value, whole or cut. A file of several lines that begin with one is read line by line.
fn is_json(content: &str) -> bool {
    let first = content.lines().next().unwrap_or("").trim_end();
    match content.as_bytes() {
        [b'{', ..] => !first.ends_with('}') || first.len() == content.len(),
        [b'[', rest @ ..] => rest.iter().find(|byte| !byte.is_ascii_whitespace()).is_some_and(|byte| matches!(byte, b'{' | b']')),
        _ => false,
    }
}

/// The tables and JSON of `llm_bench` and the figures of the plain-network tools.
fn tables_and_nets(part: &mut Part, file: &str, lines: &[&str]) -> Result<(), Unreadable> {
    let tables = table::read(file, lines)?;
    if tables.headers > 1 && !tables.rows.is_empty() {
        part.warnings.push(format!("{file}: {} tables in one file (-fp appends): their tests may be of several runs", tables.headers));
    }
    part.known |= tables.headers > 0;
    if tables.foreign {
        part.foreign = Some("it holds a table of llama-bench: use `bench parse llama-cpp`");
    }
    part.warnings.extend(tables.warnings);
    part.groups.push(tables.rows);
    for (at, line) in lines.iter().enumerate().filter(|(_, line)| line.starts_with('{') && line.contains("\"results\"")) {
        part.groups.extend(json::read(file, line, at + 1)?);
    }
    let net = net::read(file, lines)?;
    part.known |= !net.rows.is_empty() || !net.layers.is_empty();
    part.groups.push(net.rows);
    part.layers = net.layers;
    part.warnings.extend(net.warnings);
    Ok(())
}

/// Lines that MNN's tools print at their start or with their help.
fn is_mnn(lines: &[&str]) -> bool {
    const SIGNS: &[&str] = &[
        "The device supports:",
        "The device support i8sdot",
        "CPU Group: [",
        "Load Cache file error",
        "-m, --model <filename>",
        "llm_bench",
        "llm_demo",
        "MNN benchmark",
    ];
    lines.iter().any(|line| SIGNS.iter().any(|sign| line.contains(sign)))
}

/// What the command line of a transcript asks for with `-a`.
fn asked(lines: &[&str]) -> Option<String> {
    let command = lines.iter().find(|line| line.contains("llm_bench ") && line.contains(" -m ") && line.contains(" -a "))?;
    Some(command.split_whitespace().skip_while(|word| *word != "-a").nth(1)?.to_ascii_lowercase())
}

/// A backend that llm_bench does not know is the CPU, without a word.
fn unlike_asked(asked: &str, rows: &[Row]) -> Option<Failure> {
    let printed: Vec<&str> = rows.iter().filter_map(backend).collect();
    let missing = asked.split(',').find(|name| !printed.is_empty() && !printed.iter().any(|backend| backend.eq_ignore_ascii_case(name)))?;
    Some(Failure {
        kind: FailureKind::Usage,
        message: format!(
            "backend `{missing}` was asked for and the table says {}: llm_bench runs a name that it does not know on the CPU",
            printed[0]
        ),
        hint: Some("-a takes cpu, opencl, metal, cuda and hexagon".to_owned()),
    })
}

fn backend(row: &Row) -> Option<&str> {
    row.measurement.reported.get("backend")?.as_str()
}

fn merge(parts: Vec<Part>, broken: Option<Unreadable>) -> Result<Reading, Unreadable> {
    let mut reading = Reading::default();
    let mut rows: Vec<Row> = Vec::new();
    let mut marks: Vec<Mark> = Vec::new();
    let (mut status, mut excuse, mut asked) = (None, None, None);
    let nothing = unreadable(&parts);
    for part in parts {
        for group in part.groups {
            join(&mut rows, group);
        }
        if reading.layers.is_empty() {
            reading.layers = part.layers;
        }
        reading.warnings.extend(part.warnings);
        marks.extend(part.marks);
        status = status.or(part.status);
        excuse = excuse.or(part.excuse);
        asked = asked.or(part.asked);
    }
    if let Some(mark) = marks.iter().find(|mark| mark.weight == Weight::Elsewhere) {
        // Rows of the CPU itself are what they say.
        for row in rows.iter_mut().filter(|row| row.measured() && backend(row) != Some("CPU")) {
            row.void(mark.failure.clone());
            row.report("backend_used", "CPU");
        }
    }
    if let Some(failure) = asked.and_then(|asked| unlike_asked(&asked, &rows)) {
        for row in rows.iter_mut().filter(|row| row.measured()) {
            row.void(failure.clone());
        }
        marks.push(failures::fell_back(failure));
    }
    let measured = rows.iter().any(Row::measured);
    reading.failure = settle(&mut reading.warnings, rows.iter().filter_map(|row| row.trouble.as_ref()), marks, status, measured);
    match broken {
        // The failure is the answer; the broken file is a consequence of it.
        Some(error) if reading.failure.is_some() => reading.warnings.push(error.to_string()),
        Some(error) => return Err(error),
        None => {}
    }
    warn_of_eos(&rows, &mut reading.warnings);
    reading.measurements = rows.into_iter().map(|row| row.measurement).collect();
    if reading.failure.is_none() && !measured && reading.layers.is_empty() {
        reading.failure = Some(excuse.ok_or(nothing)?);
    }
    Ok(reading)
}

/// The error for files without a result.
fn unreadable(parts: &[Part]) -> Unreadable {
    let error = |at: usize, message: String| Unreadable { file: parts.get(at).map_or_else(String::new, |part| part.file.clone()), message };
    if let Some(at) = parts.iter().position(|part| part.known && !part.empty) {
        let message = format!(
            "line {}: the output ends without a result; if llm_bench wrote its table with -fp, give that file. {READS}",
            parts[at].lines
        );
        return error(at, message);
    }
    if let Some((at, why)) = parts.iter().enumerate().find_map(|(at, part)| Some((at, part.foreign?))) {
        return error(at, format!("line 1: {why}; {READS}"));
    }
    match parts.iter().position(|part| !part.empty) {
        Some(at) => error(at, format!("line 1: not the output of a tool of MNN; {READS}")),
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

/// `-n` divides the asked length by the time, also when the model ended early. The same length behind a prompt shows it.
fn warn_of_eos(rows: &[Row], warnings: &mut Vec<String>) {
    let reported = |row: &Row, name: &str| row.measurement.reported.get(name).map(ToString::to_string);
    for row in rows.iter().filter(|row| row.measurement.label.starts_with("tg")) {
        let Some(alone) = number(&row.measurement, "decode_tok_s") else { continue };
        let length = number(&row.measurement, "generated_tokens");
        let twin = rows.iter().find(|other| {
            other.measurement.label.contains("+tg")
                && number(&other.measurement, "generated_tokens") == length
                && ["model", "threads", "backend", "precision"].iter().all(|name| reported(other, name) == reported(row, name))
        });
        let Some(behind) = twin.and_then(|twin| number(&twin.measurement, "decode_tok_s")) else { continue };
        if alone > behind * EOS_RATIO {
            warnings.push(format!(
                "{}: {alone:.2} tok/s is {:.1} times the decode speed behind a prompt ({behind:.2}): an early end of sequence inflates -n; prefer -pg",
                row.measurement.label,
                alone / behind
            ));
        }
    }
}
