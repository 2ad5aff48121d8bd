//! `bench compare A B`.

mod human;
mod layers;
mod markdown;
mod view;

use std::path::{Path, PathBuf};

use super::{
    Format,
    exit::{Code, Failed},
    metric::{metrics, named},
};
use crate::{
    gate::{
        compare::{
            self, Comparison, Settings, USUAL,
            session::{self, Sessions},
        },
        run::{self, Run},
        verdict::Verdict,
    },
    lang,
    report::{self, ReportError},
    results::schema::Metric,
    words::{count, share},
};

/// Sets one run against another
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Run folder that is the measure
    a: PathBuf,
    /// Run folder that is judged
    b: PathBuf,
    /// Metrics to compare, by their columns in cells.csv or their words in [[require]]; `all` takes every one
    #[arg(long, value_name = "METRIC,...", value_delimiter = ',', default_values = USUAL, value_parser = metrics)]
    metric: Vec<&'static [Metric]>,
    /// Difference that does not matter
    #[arg(long, default_value = "2%", value_parser = share)]
    tolerance: f64,
    /// Folder of earlier runs of the same cells, which tells what sessions differ by
    #[arg(long, value_name = "DIR", conflicts_with = "session_spread")]
    history: Option<PathBuf>,
    /// What sessions differ by (a standard deviation), instead of what is assumed
    #[arg(long, value_name = "PERCENT", value_parser = share)]
    session_spread: Option<f64>,
    /// Exit code 10 if something regressed, 11 if nothing could be compared; with `undecided` also 11 if something is undecided
    #[arg(long, value_enum)]
    fail_on: Option<FailOn>,
    /// Compares the profiles instead: which part of the model and which kind of operation makes the difference, between frameworks too
    #[arg(long, conflicts_with_all = ["metric", "history", "session_spread", "fail_on", "page"])]
    layers: bool,
    /// Cells of A for --layers, by columns of cells.csv: backend=mnn,quant=w4
    #[arg(long, value_name = "COLUMN=VALUE,...", requires = "layers", value_parser = layers::pick)]
    a_cells: Option<layers::Pick>,
    /// Cells of B for --layers
    #[arg(long, value_name = "COLUMN=VALUE,...", requires = "layers", value_parser = layers::pick)]
    b_cells: Option<layers::Pick>,
    /// Output
    #[arg(long, value_enum, default_value_t = Format::Human)]
    format: Format,
    /// Markdown for a pull request, into a file or instead of the table
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-")]
    markdown: Option<PathBuf>,
    /// Makes a page too: OUT/<B>-against-<A>/index.html
    #[arg(long)]
    page: bool,
    /// Folder for the page
    #[arg(long, default_value = "reports")]
    out: PathBuf,
}

/// What fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum FailOn {
    /// A regression.
    Regressed,
    /// A regression, or what could be one.
    Undecided,
}

/// A comparison for people.
pub fn table(comparison: &Comparison) -> String {
    human::table(&view::of(comparison))
}

/// A comparison for programs.
pub fn json(comparison: &Comparison) -> serde_json::Value {
    view::json(comparison)
}

pub fn main(args: &Args) -> anyhow::Result<Code> {
    if args.layers {
        return layers::main(args);
    }
    let metrics: Vec<&'static str> = named(&args.metric).iter().map(|metric| metric.name).collect();
    let (a, b) = (load(&args.a)?, load(&args.b)?);
    let mut sessions = Sessions { stated: args.session_spread, ..Sessions::default() };
    if let Some(history) = &args.history {
        learn(&mut sessions, history, (&a, &b), &metrics)?;
    }
    let settings = Settings { tolerance: args.tolerance, metrics, sessions };
    let comparison = compare::compare(&a, &b, &settings).map_err(|e| super::usage(e.to_string()))?;
    let view = view::of(&comparison);
    let to_stdout = args.markdown.as_deref() == Some(Path::new("-"));
    if args.format == Format::Json {
        super::print(&format!("{}\n", serde_json::to_string_pretty(&view::json(&comparison))?))?;
    } else if !to_stdout {
        super::say(&human::table(&view))?;
    }
    match args.markdown.as_deref() {
        Some(_) if to_stdout && args.format == Format::Human => super::print(&lang::say_markdown(&markdown::of(&view)))?,
        Some(file) if !to_stdout => {
            let failed = |e: std::io::Error| Failed { code: Code::Unavailable, message: format!("{}: {e}", file.display()) };
            std::fs::write(file, lang::say_markdown(&markdown::of(&view))).map_err(failed)?;
        }
        _ => {}
    }
    if args.page {
        let page = report::comparison::write(&view, &args.out.join(format!("{}-against-{}", b.id, a.id))).map_err(|e| {
            let code = match e {
                ReportError::Io { .. } => Code::Unavailable,
                ReportError::InTheWay(..) => Code::Usage,
                _ => Code::Bug,
            };
            Failed { code, message: e.to_string() }
        })?;
        super::note(&super::console::printable(&format!("page: {}", page.display())));
    }
    let code = code(&comparison, args.fail_on);
    if code == Code::Undecided && comparison.verdicts().next().is_none() {
        let why = view.refused.first().map_or("the two have no metric in common", |refused| &refused.reason);
        super::note(&super::console::printable(&format!("undecided, for nothing could be compared: {why}")));
    }
    Ok(code)
}

/// Design 2b.17: 0 unless asked; 10 goes before 6, 6 before 11. Of what nothing was compared of nobody knows whether it regressed.
fn code(comparison: &Comparison, fail_on: Option<FailOn>) -> Code {
    let Some(fail_on) = fail_on else { return Code::Done };
    if comparison.count(Verdict::Regressed) > 0 {
        Code::Regressed
    } else if comparison.not_ok.iter().any(|cell| cell.broken) {
        Code::Failed
    } else if comparison.verdicts().next().is_none() || (fail_on == FailOn::Undecided && comparison.count(Verdict::Undecided) > 0) {
        Code::Undecided
    } else {
        Code::Done
    }
}

fn load(folder: &Path) -> anyhow::Result<Run> {
    super::language::keep_run(folder);
    run::load(folder).map_err(|e| super::usage(e.to_string()))
}

/// What the nights of a folder differ by.
fn learn(sessions: &mut Sessions, history: &Path, runs: (&Run, &Run), metrics: &[&'static str]) -> anyhow::Result<()> {
    let learnt = sessions.learn(history, runs, metrics).map_err(|e| super::usage(e.to_string()))?;
    learnt.remarks.iter().for_each(|remark| super::note(&super::console::printable(&format!("warning: {remark}"))));
    if sessions.seen.is_empty() {
        let (nights, least) = (count(learnt.nights, "other night"), session::FEWEST);
        super::note(&format!(
            "warning: {nights} of these scenarios in the history, none with {least} of a cell: what sessions differ by is assumed"
        ));
    }
    Ok(())
}
