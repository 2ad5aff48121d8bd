//! `bench report RUN...`.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use super::exit::{Code, Failed};
use crate::{
    report::{Fonts, Kind, PngError, Report, ReportError},
    results::{folder, journal, manifest::Manifest, tables},
    run::events::Event,
    scenario::Plan,
    words,
};

/// Makes the page of one or more runs, its summaries (summary.md, summary.csv) and its pictures
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Run folders
    #[arg(required = true)]
    runs: Vec<PathBuf>,
    /// Folder for the page; it becomes OUT/<run>/index.html
    #[arg(long, default_value = "reports")]
    out: PathBuf,
    /// Writes each chart of the page as an SVG file too, into DIR or else into `pictures` beside the page
    #[arg(long, value_name = "DIR", num_args = 0..=1)]
    svg: Option<Option<PathBuf>>,
    /// The same as PNG files, written with the fonts of this system
    #[arg(long, value_name = "DIR", num_args = 0..=1)]
    png: Option<Option<PathBuf>>,
}

pub fn main(args: &Args) -> anyhow::Result<Code> {
    for (place, run) in args.runs.iter().enumerate() {
        let same = |other: &PathBuf| other.canonicalize().ok() == run.canonicalize().ok();
        if args.runs[..place].iter().any(same) {
            return Err(super::usage(format!("{} is named twice", run.display())));
        }
        if !run.join("manifest.json").is_file() {
            return Err(super::usage(format!("{}: not a run folder (it has no manifest.json)", run.display())));
        }
        if stale(run) {
            derive(run)?;
        }
    }
    let asked = [(Kind::Svg, &args.svg), (Kind::Png, &args.png)];
    for folder in asked.iter().filter_map(|(_, folder)| folder.as_ref()?.as_ref()) {
        // `--svg RUN` takes the run for the folder.
        if folder.join("manifest.json").exists() {
            return Err(super::usage(format!(
                "{} is a run folder, and no place for pictures: name another, or give runs first",
                folder.display()
            )));
        }
    }
    let folder = folder_of(&args.runs, &args.out);
    let report = Report::of(&args.runs).map_err(failed)?;
    let page = report.write(&folder).map_err(failed)?;
    super::print(&format!("{}\n", page.display()))?;
    let mut refused = Vec::new();
    for (kind, place) in asked {
        let Some(place) = place else { continue };
        let place = place.clone().unwrap_or_else(|| folder.join("pictures"));
        let written = report.pictures(&place, kind, &Fonts::system()).map_err(failed)?;
        super::print(&format!("{}: {}\n", place.display(), words::count(written.files.len(), &format!("{kind} picture"))))?;
        refused.extend(written.refused);
    }
    if refused.is_empty() { Ok(Code::Done) } else { Err(lacking(&refused)) }
}

/// Makes the page and says where it is.
pub fn page(runs: &[PathBuf], out: &Path) -> anyhow::Result<PathBuf> {
    Report::of(runs).and_then(|report| report.write(&folder_of(runs, out))).map_err(failed)
}

fn folder_of(runs: &[PathBuf], out: &Path) -> PathBuf {
    out.join(folder::id_of(&runs[0].canonicalize().unwrap_or_else(|_| runs[0].clone())))
}

fn failed(e: ReportError) -> anyhow::Error {
    let code = match e {
        ReportError::Io { .. } | ReportError::Png(PngError::NoFont | PngError::Missing(_)) => Code::Unavailable,
        ReportError::Chart(_) | ReportError::Template(_) | ReportError::Png(PngError::Drawing(_)) => Code::Bug,
        ReportError::NothingToReport | ReportError::NotARun(_) | ReportError::Table(_) => Code::Usage,
    };
    Failed { code, message: e.to_string() }.into()
}

/// The pictures that are not there for want of a font, and how it is come by; those that lack the same letters together.
fn lacking(refused: &[(String, PngError)]) -> anyhow::Error {
    let mut by_reason: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for (name, error) in refused {
        by_reason.entry(error.to_string()).or_default().push(name);
    }
    let told = |(reason, names): (String, Vec<&str>)| {
        format!("{} not written ({}): {reason}", words::count(names.len(), "PNG picture"), names.join(", "))
    };
    let message = by_reason.into_iter().map(told).collect::<Vec<_>>().join("\n");
    Failed { code: Code::Unavailable, message: crate::safe::printable_lines(&message) }.into()
}

/// Whether the tables are missing, or older than what the journal knows: a run that was killed made none of its last launches. The
/// last word of a run that ended comes after its tables.
fn stale(run: &Path) -> bool {
    let time = |file: &str| std::fs::metadata(run.join(file)).and_then(|m| m.modified()).ok();
    let Some(tables) = time("cells.csv") else { return true };
    let later = time("journal.jsonl").is_some_and(|journal| journal > tables) && run.join("plan.toml").is_file();
    let ended = || journal::read(run).is_ok_and(|(all, _)| all.last().is_some_and(|e| matches!(e.event, Event::RunEnd { .. })));
    later && !ended()
}

/// Makes the tables of a run that was killed before it could, and says what could not be read.
fn derive(run: &Path) -> anyhow::Result<()> {
    let path = run.join("plan.toml");
    let bad = |e: String| super::usage(format!("{}: {e}", path.display()));
    let text = std::fs::read_to_string(&path).map_err(|e| bad(e.to_string()))?;
    let plan = Plan::from_toml(&text).map_err(|e| bad(e.to_string()))?;
    let (recorded, _) = tables::write(run, &plan, &Manifest::read(run)?)?;
    recorded.warnings.iter().for_each(|warning| super::note(&super::console::printable(&format!("warning: {warning}"))));
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::*;
    use crate::results::journal::Journal;

    #[test]
    fn tables_older_than_the_journal_are_stale_unless_the_run_ended() {
        let dir = tempfile::tempdir().unwrap();
        let run = dir.path();
        let (journal, _) = Journal::open(run).unwrap();
        journal.append(&Event::Warning { text: "a launch".to_owned() }).unwrap();
        assert!(stale(run), "no tables");
        std::fs::write(run.join("plan.toml"), "").unwrap();
        let tables = std::fs::File::create(run.join("cells.csv")).unwrap();
        tables.set_modified(SystemTime::now() + Duration::from_mins(1)).unwrap();
        assert!(!stale(run));
        tables.set_modified(SystemTime::now() - Duration::from_mins(1)).unwrap();
        assert!(stale(run));
        journal.append(&Event::RunEnd { ok: 1, failed: 0, skipped: 0, unverified: 0 }).unwrap();
        assert!(!stale(run));
    }
}
