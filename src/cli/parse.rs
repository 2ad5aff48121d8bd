//! `bench parse BACKEND FILE...`: reads output that a user already has.

use std::{
    fs::File,
    io::{BufRead, BufReader, Read},
    path::{Path, PathBuf},
};

use bench_backend_api::{Reader, Reading, SourceFile, Unreadable, text};
use serde_json::{Value, json};

use super::{
    Format,
    exit::{Code, Failed},
};
use crate::registry;

/// Reads the output of a framework's own tool
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The framework; another word lists them
    backend: String,
    /// Files of ONE run: a profile, standard output, standard error
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// How the result is printed
    #[arg(long, value_enum, default_value_t = Format::Json)]
    format: Format,
}

/// A larger file is no tool's summary, but it may be a profile.
const LIMIT: u64 = 256 << 20;
/// How much of its beginning tells what it is.
const HEAD: usize = 64 << 10;

pub fn main(args: &Args) -> anyhow::Result<Code> {
    let ids = registry::reader_ids();
    let reader = registry::READERS
        .iter()
        .find(|r| r.id() == args.backend)
        .ok_or_else(|| super::usage(format!("no backend `{}`: {}", args.backend, ids.join(", "))))?;
    let unread = |e| super::usage(format!("{e} (read as {})", args.backend));
    let streamed = match args.files.as_slice() {
        [one] => stream(*reader, one)?.transpose().map_err(unread)?,
        _ => None,
    };
    let mut reading = if let Some(reading) = streamed {
        reading
    } else {
        let files = args.files.iter().map(|path| read(path)).collect::<anyhow::Result<Vec<_>>>()?;
        let mut reading = reader.read(&files).map_err(unread)?;
        cut(&files, &mut reading);
        reading
    };
    doubts(&mut reading);
    let name = |path: &PathBuf| Value::String(path.display().to_string());
    let source = match args.files.as_slice() {
        [one] => name(one),
        several => several.iter().map(name).collect(),
    };
    let code = if reading.failure.is_some() { Code::Failed } else { Code::Done };
    let text = match args.format {
        Format::Json => {
            let mut object = json!({"backend": args.backend, "source": source});
            if let (Some(object), Value::Object(rest)) = (object.as_object_mut(), serde_json::to_value(&reading)?) {
                object.extend(rest);
            }
            serde_json::to_string_pretty(&object)?
        }
        Format::Human => human(&reading),
    };
    super::print(&format!("{text}\n"))?;
    Ok(code)
}

/// A large profile, if the reader takes it in pieces.
fn stream(reader: &dyn Reader, path: &Path) -> anyhow::Result<Option<Result<Reading, Unreadable>>> {
    let name = path.display().to_string();
    let unreadable = |e: std::io::Error| Failed { code: Code::Usage, message: format!("{name}: {e}") };
    let file = File::open(path).map_err(unreadable)?;
    if file.metadata().map_err(unreadable)?.len() <= LIMIT {
        return Ok(None);
    }
    let mut from = BufReader::with_capacity(HEAD, file);
    let head = text::clean(&text::decode(from.fill_buf().map_err(unreadable)?));
    Ok(reader.stream(&name, &head, &mut from))
}

/// A number at the end of a file.
fn cut(files: &[SourceFile], reading: &mut Reading) {
    for file in files {
        let text = text::decode(&file.bytes);
        let cut = text::cut_number(&text);
        if !cut.is_empty() {
            let line = text.lines().count();
            reading
                .warnings
                .push(format!("{} line {line}: the file ends in `{cut}`, which may be half a number: it is left out", file.name));
        }
    }
}

/// What holds for the output of every tool: a sign that it is not whole.
fn doubts(reading: &mut Reading) {
    let empty = reading.measurements.iter().all(|m| m.metrics.is_empty());
    if empty && reading.failure.is_none() && reading.warnings.is_empty() {
        reading.warnings.push("no figure of a whole run in this output: it may have been cut".to_owned());
    }
}

/// Reads a file, or what a pipe (`<(adb shell ...)`) gives, up to the limit.
fn read(path: &Path) -> anyhow::Result<SourceFile> {
    let name = path.display().to_string();
    let unreadable = |e: String| Failed { code: Code::Usage, message: format!("{name}: {e}") };
    let mut bytes = Vec::new();
    let opened = File::open(path).and_then(|file| file.take(LIMIT + 1).read_to_end(&mut bytes));
    opened.map_err(|e| unreadable(e.to_string()))?;
    if bytes.len() as u64 > LIMIT {
        return Err(unreadable(format!(
            "more than {} MB; so much is read of one plain file alone: QNN's CSV, ONNX Runtime's trace with one event a line",
            LIMIT >> 20
        ))
        .into());
    }
    Ok(SourceFile { name, bytes })
}

fn human(reading: &Reading) -> String {
    let mut lines = Vec::new();
    for m in &reading.measurements {
        let metrics: Vec<String> = m.metrics.iter().map(|(k, v)| format!("{k} {v}")).collect();
        lines.push(format!("{}: {}", m.label, metrics.join(", ")));
    }
    if !reading.layers.is_empty() {
        lines.push(format!("{} operations", reading.layers.len()));
    }
    lines.extend(reading.warnings.iter().map(|w| format!("warning: {w}")));
    if let Some(f) = &reading.failure {
        lines.push(format!("failed: {f}{}", f.hint.as_ref().map(|h| format!(" -> {h}")).unwrap_or_default()));
    }
    lines.iter().map(|l| super::console::printable(l)).collect::<Vec<_>>().join("\n")
}
