//! `bench history DIR`.

pub(super) mod human;
mod machine;

use std::{collections::BTreeSet, path::PathBuf};

use super::{
    Format,
    exit::{Code, Failed},
    metric::{metrics, named},
};
use crate::{
    gate::history::{self, Run, Scan, Series, StepNight, Trend, Wanted},
    lang,
    results::{folder::id_of, schema::Metric},
    words::{count, share_above_0},
};

/// Shows how each cell developed over many runs, where it stepped, and what changed that night
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Folder of run folders
    #[arg(default_value = "results")]
    folder: PathBuf,
    /// Metrics, by their columns in cells.csv or their words in [[require]]; `all` takes every one
    #[arg(long, value_name = "METRIC,...", value_delimiter = ',', default_value = "decode_tok_s", value_parser = metrics)]
    metric: Vec<&'static [Metric]>,
    /// Only cells whose id has this in it
    #[arg(long, value_name = "TEXT", default_value = "")]
    cell: String,
    /// Only this device
    #[arg(long)]
    device: Option<String>,
    /// Only this scenario
    #[arg(long)]
    scenario: Option<String>,
    /// Only the last N runs of each scenario and device
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    nights: Option<u32>,
    /// Change that matters
    #[arg(long, value_name = "PERCENT", default_value = "2%", value_parser = share_above_0)]
    tolerance: f64,
    /// Prints instead which folders can go when the last N runs of each scenario and device stay: a line `old FOLDER` for each, and `step
    /// FOLDER REASON` for the two beside every step, which are never old
    #[arg(long, value_name = "N", conflicts_with_all = ["nights", "format"], value_parser = clap::value_parser!(u32).range(1..))]
    keep: Option<u32>,
    /// How it is printed
    #[arg(long, value_enum, default_value_t = Format::Human)]
    format: Format,
}

/// One metric of all cells.
pub(super) struct Part {
    pub(super) metric: &'static Metric,
    pub(super) trends: Vec<Trend>,
    pub(super) steps: Vec<StepNight>,
}

/// All that is shown.
pub(super) struct History {
    pub(super) scan: Scan,
    pub(super) remarks: Vec<String>,
    pub(super) parts: Vec<Part>,
}
impl History {
    /// Reads and judges all runs of a scan that are wanted.
    pub(super) fn of(mut scan: Scan, wanted: Wanted<'_>, asked: f64) -> Self {
        let (lines, remarks) = history::collect(&mut scan, wanted);
        let parts = wanted.metrics.iter().zip(lines).map(|(metric, lines)| part(metric, lines, &scan.runs, asked)).collect();
        Self { scan, remarks, parts }
    }
}

pub fn main(args: &Args) -> anyhow::Result<Code> {
    let metrics = named(&args.metric);
    let scan = history::scan(&args.folder).map_err(|e| super::usage(e.to_string()))?;
    let found = scan.runs.len();
    let nights = args.nights.map(|n| n as usize);
    let (device, scenario) = (args.device.as_deref(), args.scenario.as_deref());
    let history = History::of(scan, Wanted { metrics: &metrics, cell: &args.cell, device, scenario, nights }, args.tolerance);
    let series = history.parts.iter().flat_map(|part| &part.trends).map(|trend| &trend.series);
    lang::keep(series.flat_map(|series| [&series.key.device, &series.model, &series.backend]).map(String::as_str));
    match (args.keep, args.format) {
        (Some(keep), _) => super::print(&retention(&history, keep as usize))?,
        (None, Format::Human) => super::say(&human::text(&history, args.tolerance))?,
        (None, Format::Json) => super::print(&format!("{}\n", serde_json::to_string(&machine::json(&history, args.tolerance))?))?,
    }
    if history.parts.iter().all(|part| part.trends.is_empty()) {
        let words = match (found, history.scan.runs.len()) {
            (0, _) => format!("{} holds no finished run", args.folder.display()),
            (_, 0) => format!("none of {} is of that device and scenario, or can be read", count(found, "run")),
            (_, runs) => format!("no cell of {} has {:?} in its id", count(runs, "run"), args.cell),
        };
        return Err(Failed { code: Code::Nothing, message: words }.into());
    }
    Ok(Code::Done)
}

fn part(metric: &'static Metric, lines: Vec<Series>, runs: &[Run], asked: f64) -> Part {
    let last = |scenario: &str, device: &str| runs.iter().rposition(|run| run.scenario == scenario && run.device == device);
    let judged = |series: Series| {
        let last = last(&series.key.scenario, &series.key.device);
        history::trend(series, metric, runs, last, asked)
    };
    let trends: Vec<Trend> = lines.into_iter().map(judged).collect();
    let steps = history::step_nights(&trends, runs, metric);
    Part { metric, trends, steps }
}

/// See [`Args::keep`]. A name that is not one line of plain characters is none that bench made, and is not spoken of.
fn retention(history: &History, keep: usize) -> String {
    let runs = &history.scan.runs;
    let steps: Vec<&StepNight> = history.parts.iter().flat_map(|part| &part.steps).collect();
    let beside: BTreeSet<usize> = steps.iter().flat_map(|step| [step.before, step.at]).collect();
    let mut lines: Vec<String> = Vec::new();
    let mut line = |what: &str, place: usize, why: &str| {
        let name = id_of(&runs[place].folder);
        if name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b)) {
            lines.push(format!("{what} {name}{why}\n"));
        }
    };
    for place in &beside {
        line("step", *place, " beside a step");
    }
    for place in history::old(runs, &beside, keep) {
        line("old", place, "");
    }
    lines.concat()
}
