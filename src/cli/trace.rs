//! `bench trace RUN`.

use std::{
    fs::File,
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
    let temporary = out.with_extension("tmp");
    let drawn = write(&args.run, &wanted, &temporary).and_then(|drawn| Ok(std::fs::rename(&temporary, &out).map(|()| drawn)?));
    let drawn = drawn.map_err(|e| {
        let _ = std::fs::remove_file(&temporary);
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

/// A reader finds the whole file or none.
fn write(run: &Path, wanted: &Wanted, temporary: &Path) -> Result<Drawn, TraceError> {
    if !run.is_dir() {
        return Err(TraceError::Nothing(run.to_path_buf()));
    }
    trace::write(run, wanted, BufWriter::new(File::create(temporary)?))
}
