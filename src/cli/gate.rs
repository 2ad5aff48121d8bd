//! `bench gate RUN`.

mod confirm;

use std::path::{Path, PathBuf};

use super::{
    Format, adb,
    exit::{Code, Failed},
    metric::{metrics, named},
};
use crate::{
    gate::nightly::{self, Gate, InputError, Settings, USUAL, output},
    lang::{self, Voice},
    results::schema::Metric,
    safe::printable_lines,
    words::share_above_0,
};

/// Judges a run: against a baseline, the nights before it, and what its scenario requires
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Run folder
    run: PathBuf,
    /// A run that is accepted; with --history the nights from it on count
    #[arg(long, value_name = "RUN")]
    baseline: Option<PathBuf>,
    /// Folder that holds the runs of the nights before; the run itself may be in it
    #[arg(long, value_name = "DIR")]
    history: Option<PathBuf>,
    /// Change that must not pass
    #[arg(long, value_name = "PERCENT", default_value = "2%", value_parser = share_above_0)]
    limit: f64,
    /// Metrics that are gated, by their columns in cells.csv or their words in [[require]]; `all` takes every one
    #[arg(long, value_name = "METRIC,...", value_delimiter = ',', default_values = USUAL, value_parser = metrics)]
    metric: Vec<&'static [Metric]>,
    /// Gate figures that are composed of graph times too
    #[arg(long)]
    composed: bool,
    /// Measure what looks regressed again, on the same device: it tells a bad night from a lasting change
    #[arg(long)]
    confirm: bool,
    /// Confirm by an A/B of this older state (a scenario, or a run whose runtimes and files are still there) and the run's, pair by pair
    #[arg(long, value_name = "SCENARIO|RUN")]
    confirm_against: Option<PathBuf>,
    /// Folder for the runs of --confirm (default: that of the run)
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    #[command(flatten)]
    servers: adb::Servers,
    /// Write a JUnit report
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Write a summary for a pull request
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
    /// Leave the result in this lab's site, beside the run's page; `bench report --site` then shows it
    #[arg(long, value_name = "DIR")]
    site: Option<PathBuf>,
    /// Print annotations of GitHub Actions to standard error; there they are printed unasked
    #[arg(long)]
    annotations: bool,
    /// How the judgement is printed
    #[arg(long, value_enum, default_value_t = Format::Human)]
    format: Format,
}

pub fn main(args: &Args) -> anyhow::Result<Code> {
    let settings = Settings {
        baseline: args.baseline.clone(),
        history: args.history.clone(),
        limit: args.limit,
        metrics: named(&args.metric),
        composed: args.composed,
    };
    [Some(&args.run), args.baseline.as_ref()].into_iter().flatten().for_each(|run| super::language::keep_run(run));
    let mut gate = nightly::gate(&args.run, &settings).map_err(|e| failed(&e))?;
    if args.confirm || args.confirm_against.is_some() {
        // Whatever ends the second measurement, what is known before it is on disk. What can't be written is said in the end.
        let _ = files(args, &gate);
        confirm::confirm(args, &mut gate);
    }
    // A file that can't be written costs nobody the judgement.
    show(args, &gate)?;
    files(args, &gate)?;
    Ok(code(&gate))
}

/// Writes each that it can; the error is of the first that it can't.
fn files(args: &Args, gate: &Gate) -> anyhow::Result<()> {
    let junit = |gate: &Gate| output::junit(gate, &Voice::new(lang::spoken()));
    let all = [(&args.junit, junit as fn(&Gate) -> String), (&args.markdown, |gate| lang::say_markdown(&output::markdown(gate)))];
    let wrote = all.into_iter().map(|(path, text)| path.as_ref().map_or(Ok(()), |path| write(path, &text(gate))));
    let site = args.site.as_ref().map_or(Ok(()), |site| super::report::keep_gate(&args.run, site, &output::Record::of(gate)));
    wrote.chain([site]).fold(Ok(()), Result::and)
}

fn show(args: &Args, gate: &Gate) -> anyhow::Result<()> {
    if args.annotations || std::env::var_os("GITHUB_ACTIONS").is_some_and(|v| v == "true") {
        super::write_note(&printable_lines(&output::annotations(gate, &Voice::new(lang::spoken()))));
    }
    match args.format {
        Format::Json => super::print(&format!("{}\n", serde_json::to_string_pretty(gate)?)),
        Format::Human => super::say(&output::human(gate)),
    }
}

/// Regressed before undecided (design 2b.17).
fn code(gate: &Gate) -> Code {
    match (gate.regressed(), gate.undecided()) {
        (true, _) => Code::Regressed,
        (false, true) => Code::Undecided,
        (false, false) => Code::Done,
    }
}

fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    std::fs::write(path, text).map_err(|e| Failed { code: Code::Unavailable, message: format!("{}: {e}", path.display()) }.into())
}

fn failed(error: &InputError) -> anyhow::Error {
    Failed { code: Code::Usage, message: error.to_string() }.into()
}
