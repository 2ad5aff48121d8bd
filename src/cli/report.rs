//! `bench report RUN...`.

mod site;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use serde_json::{Value, json};

use super::{
    Format,
    exit::{Code, Failed},
    metric::{metrics, named},
};
use crate::{
    gate::nightly::USUAL,
    report::{
        Fonts, Kind, PngError, Report, ReportError,
        selection::{self, Joint, Selected},
    },
    results::{
        folder, journal, launches,
        manifest::Manifest,
        read::{has_sources, remedy},
        schema::{CELLS, Metric},
        tables,
    },
    run::events::Event,
    safe::{printable, printable_lines},
    scenario::{self, Plan, Preset},
    words,
};

pub use site::keep_gate;

/// Options that a site has no use for.
const OF_A_PAGE: [&str; 5] = ["out", "use_case", "format", "svg", "png"];

/// Makes the page of one or more runs, its summaries and its pictures, and says what to ship; or makes the site of a lab
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Run folders; with --site also one folder that holds them (default there: results)
    #[arg(required_unless_present = "site")]
    runs: Vec<PathBuf>,
    /// Folder for the page; it becomes OUT/<run>/index.html
    #[arg(long, default_value = "reports")]
    out: PathBuf,
    /// Selects for another use than the scenario's: with that preset's weights, and its limits where the scenario has none of that metric
    #[arg(long = "use", value_name = "NAME", value_parser = use_case)]
    use_case: Option<&'static Preset>,
    /// How page and selection are told
    #[arg(long, value_enum, default_value_t = Format::Human)]
    format: Format,
    /// Keeps the site of a lab in this folder: an index of all runs beside these, pages of trends of each device and each model, and a
    /// page of each of these runs, unless it has one that is newer than its tables
    #[arg(long, value_name = "DIR", conflicts_with_all = OF_A_PAGE)]
    site: Option<PathBuf>,
    /// With --site: metrics that are judged and drawn, by their columns in cells.csv or their words in [[require]]; `all` takes every one
    #[arg(long, value_name = "METRIC,...", value_delimiter = ',', default_values = USUAL, value_parser = metrics, requires = "site", conflicts_with_all = OF_A_PAGE)]
    metric: Vec<&'static [Metric]>,
    /// With --site: change that matters
    #[arg(long, value_name = "PERCENT", default_value = "2%", value_parser = words::share_above_0, requires = "site", conflicts_with_all = OF_A_PAGE)]
    tolerance: f64,
    /// Writes each chart of the page as an SVG file too, into DIR or else into `pictures` beside the page
    #[arg(long, value_name = "DIR", num_args = 0..=1)]
    #[expect(clippy::option_option, reason = "clap's form of an option whose value may be left out")]
    svg: Option<Option<PathBuf>>,
    /// The same as PNG files, written with the fonts of this system
    #[arg(long, value_name = "DIR", num_args = 0..=1)]
    #[expect(clippy::option_option, reason = "clap's form of an option whose value may be left out")]
    png: Option<Option<PathBuf>>,
}

/// The preset of a name.
fn use_case(name: &str) -> Result<&'static Preset, String> {
    scenario::preset(name).ok_or_else(|| {
        let names: Vec<&str> = scenario::presets().iter().map(|preset| preset.name.as_str()).collect();
        format!("no such use case, there are: {}", names.join(", "))
    })
}

pub fn main(args: &Args) -> anyhow::Result<Code> {
    if let Some(out) = &args.site {
        let metrics = named(&args.metric);
        return site::main(&site::Asked { metrics, tolerance: args.tolerance, given: &args.runs, out });
    }
    for (place, run) in args.runs.iter().enumerate() {
        let same = |other: &PathBuf| other.canonicalize().ok() == run.canonicalize().ok();
        if args.runs[..place].iter().any(same) {
            return Err(super::usage(format!("{} is named twice", run.display())));
        }
        ready(run)?;
        super::language::keep_run(run);
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
    let folder = args.out.join(name(&args.runs[0]));
    let report = Report::of(&args.runs, args.use_case).map_err(|e| failed(&e))?;
    let page = report.write(&folder).map_err(|e| failed(&e))?;
    let (mut pictures, mut refused) = (Vec::new(), Vec::new());
    for (kind, place) in asked {
        let Some(place) = place else { continue };
        let place = place.clone().unwrap_or_else(|| folder.join("pictures"));
        let written = report.pictures(&place, kind, &Fonts::system()).map_err(|e| failed(&e))?;
        pictures.push((place, kind, written.files.len()));
        refused.extend(written.refused);
    }
    match args.format {
        Format::Human => {
            report.selected().iter().for_each(|joint| tell(&joint.selected));
            super::print(&format!("{}\n", page.display()))?;
            for (place, kind, n) in &pictures {
                super::say(&format!("{}: {}\n", place.display(), words::count(*n, &format!("{kind} picture"))))?;
            }
        }
        Format::Json => {
            let selections: Vec<Value> = report.selected().iter().map(|joint| machine(joint, &args.runs)).collect();
            let pictures: Vec<Value> =
                pictures.iter().map(|(place, kind, n)| json!({ "folder": place, "kind": kind.to_string(), "files": n })).collect();
            let told = json!({ "page": page, "pictures": pictures, "selections": selections });
            super::print(&format!("{}\n", serde_json::to_string_pretty(&told)?))?;
        }
    }
    if refused.is_empty() { Ok(Code::Done) } else { Err(lacking(&refused)) }
}

/// The decision path and its table on the terminal: names of devices and models are a stranger's.
fn tell(selected: &Selected) {
    let text = match selected {
        Ok(found) => found.sentences().iter().chain(&selection::table(found)).map(|line| printable(line)).collect::<Vec<_>>().join("\n"),
        Err(why) => why.to_string(),
    };
    super::note(&printable_lines(&text));
}

fn machine(joint: &Joint, folders: &[PathBuf]) -> Value {
    match &joint.selected {
        Ok(found) => {
            let mut told = serde_json::to_value(found).unwrap_or_default();
            told["sentences"] = json!(found.sentences());
            told
        }
        Err(why) => {
            let runs: Vec<String> = joint.places.iter().map(|place| folder::id_of(&folders[*place])).collect();
            json!({ "runs": runs, "error": why.to_string() })
        }
    }
}

/// Sees that a run folder has its tables.
fn ready(run: &Path) -> anyhow::Result<()> {
    if run.join("manifest.json").symlink_metadata().is_err() {
        return Err(super::usage(format!("{}: not a run folder (it has no manifest.json)", run.display())));
    }
    // A pipe in place of a file would be waited for.
    for (name, remedy) in [("manifest.json", "put the file back"), ("plan.toml", ELSE), ("journal.jsonl", ELSE)] {
        let file = run.join(name);
        match file.metadata() {
            Ok(found) if !found.is_file() => return Err(super::usage(format!("{}: is no regular file: {remedy}", file.display()))),
            // A loop of links is there, and can't be read.
            Err(e) if file.symlink_metadata().is_ok() => return Err(super::usage(format!("{}: {e}: {remedy}", file.display()))),
            _ => {}
        }
    }
    match (stale(run), has_sources(run)) {
        (true, true) => match launches::all_named(run) {
            Err(e) if run.join(CELLS.file).exists() => {
                super::note(&printable_lines(&format!("warning: {e}; the tables are read as they are")));
                Ok(())
            }
            named => named.map_err(Into::into).and_then(|()| derive(run)),
        },
        (true, false) if !run.join(CELLS.file).exists() => {
            let cells = run.join(CELLS.file);
            Err(super::usage(format!("{} can't be read: {}", cells.display(), remedy(&cells))))
        }
        // Made anew without their launches, tables would lose what they have.
        _ => Ok(()),
    }
}

/// What to do about a file that a run folder can do without.
const ELSE: &str = "put the file back, or remove it";

/// Makes the page and says where it is.
pub fn page(runs: &[PathBuf], out: &Path) -> anyhow::Result<PathBuf> {
    Report::of(runs, None).and_then(|report| report.write(&out.join(name(&runs[0])))).map_err(|e| failed(&e))
}

/// The name of a run's page: its folder's own, wherever a link to it stands.
fn name(run: &Path) -> String {
    folder::id_of(&run.canonicalize().unwrap_or_else(|_| run.to_owned()))
}

fn failed(e: &ReportError) -> anyhow::Error {
    let code = match e {
        ReportError::Io { .. } | ReportError::Png(PngError::NoFont | PngError::Missing(_)) => Code::Unavailable,
        ReportError::Chart(_) | ReportError::Template(_) | ReportError::Png(PngError::Drawing(_)) => Code::Bug,
        ReportError::NothingToReport
        | ReportError::InTheWay(..)
        | ReportError::Another(..)
        | ReportError::NotARun(_)
        | ReportError::Table(_) => Code::Usage,
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
    Failed { code: Code::Unavailable, message: printable_lines(&message) }.into()
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
