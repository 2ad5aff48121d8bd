//! `bench trace RUN`.

use std::{
    fs::{self, File},
    io::BufWriter,
    path::{Path, PathBuf},
};

use super::exit::{Code, Failed};
use crate::trace::{self, Drawn, TraceError, Wanted};

/// Writes a run as a timeline for ui.perfetto.dev and chrome://tracing
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Run folder
    run: PathBuf,
    /// The file; by default trace.json in the run folder
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Only cells whose id has this in it
    #[arg(long, value_name = "TEXT", default_value = "")]
    cell: String,
    /// Only launches of this number
    #[arg(long, value_name = "N")]
    launch: Option<u32>,
    /// Every launch, however large the file becomes
    #[arg(long)]
    all: bool,
}

pub fn main(args: &Args) -> anyhow::Result<Code> {
    let out = args.out.clone().unwrap_or_else(|| args.run.join("trace.json"));
    let wanted = Wanted { cell: args.cell.clone(), launch: args.launch, all: args.all };
    let drawn = write(&args.run, &wanted, &out).map_err(|e| {
        let (code, message) = match e {
            TraceError::Io(e) => (Code::Unavailable, format!("{}: {e}", out.display())),
            e => (Code::Usage, e.to_string()),
        };
        Failed { code, message }
    })?;
    drawn.notes.iter().for_each(|note| super::note(&super::console::printable(&format!("note: {note}"))));
    let count = drawn.count;
    let words = format!(
        "{} launches, {} stretches, {} moments, {} counter values: open it in ui.perfetto.dev or chrome://tracing",
        drawn.launches, count.spans, count.instants, count.counters
    );
    super::note(&words);
    super::print(&format!("{}\n", out.display()))?;
    Ok(Code::Done)
}

/// A reader finds the whole file or none; a pipe or a device, which can't be replaced, takes it as it comes.
fn write(run: &Path, wanted: &Wanted, out: &Path) -> Result<Drawn, TraceError> {
    if !run.is_dir() {
        return Err(TraceError::Nothing(run.to_path_buf()));
    }
    if fs::metadata(out).is_ok_and(|found| !found.is_file()) {
        return trace::write(run, wanted, BufWriter::new(File::options().write(true).open(out)?));
    }
    // Behind a link stands the file that is meant.
    let target = fs::canonicalize(out).unwrap_or_else(|_| out.to_owned());
    let mut name = target.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.part", std::process::id()));
    let part = target.with_file_name(name);
    // Nobody's file is written over.
    let file = File::create_new(&part)?;
    let drawn = trace::write(run, wanted, BufWriter::new(file)).and_then(|drawn| Ok(fs::rename(&part, &target).map(|()| drawn)?));
    if drawn.is_err() {
        let _ = fs::remove_file(&part);
    }
    drawn
}
