//! From folders to a judgement: which nights count, and what of them is read.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use thiserror::Error;

use super::{
    Gate, Row, Since,
    judge::{self, Dated, Line},
};
use crate::{
    gate::{
        history::{self, LeftOut, Scan, ScanError, Wanted, changes, collect, look, scan},
        require::{self, Judged},
        run::{self, Key, Run, RunError},
        unlike::{self, Difference, Weight},
    },
    results::{folder::id_of, read::TableError, schema::Metric},
    scenario::Plan,
    words,
};

/// What a run is held against.
#[derive(Debug, Clone)]
pub struct Settings {
    /// A run that is accepted: the history begins with it.
    pub baseline: Option<PathBuf>,
    /// The folder of the nights.
    pub history: Option<PathBuf>,
    /// Change that must not pass: 0.02 for 2 %.
    pub limit: f64,
    /// The metrics.
    pub metrics: Vec<&'static Metric>,
    /// Figures that are composed of graph times are gated too.
    pub composed: bool,
}

/// Why nothing can be judged.
#[derive(Debug, Error)]
pub enum InputError {
    /// The run or the baseline can't be read.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The history can't be read.
    #[error(transparent)]
    Scan(#[from] ScanError),
    /// A table can't be read.
    #[error(transparent)]
    Table(#[from] TableError),
    /// A folder that is no run which counts.
    #[error("{path}: {why}")]
    NotARun {
        /// The folder.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// The run is its own baseline.
    #[error("{0} is the baseline and the run: nothing can be learnt from a run against itself; name another baseline")]
    Same(String),
    /// The requirements can't be read.
    #[error("{path}: {why}: what the scenario requires is unknown")]
    Plan {
        /// The plan.
        path: PathBuf,
        /// Why.
        why: String,
    },
}

/// Judges a run.
pub fn gate(folder: &Path, settings: &Settings) -> Result<Gate, InputError> {
    let run = run::load(folder)?;
    let mut notes = run.problems.clone();
    let (nights, against) = nights(folder, settings, &mut notes)?;
    let tonight = nights.runs.len() - 1;
    // Against the newest night that can be compared at all: another chip's figures are a line of their own.
    let (own, before) = nights.runs.split_last().map_or((None, &[][..]), |(own, before)| (Some(own), before));
    let like = before.iter().rposition(|night| own.is_some_and(|own| own.chip == night.chip));
    let unlike = match like.or(before.len().checked_sub(1)) {
        Some(newest) => differences(&nights.runs[newest], &run, &mut notes),
        None => Vec::new(),
    };
    let mut rows = Vec::new();
    let (known, mut own) = (nights.left_out.clone(), nights);
    // All of them, as `bench history` reads them: a loss stays one as long as a night before it is there.
    let wanted = Wanted { metrics: &settings.metrics, cell: "", device: None, scenario: None, nights: None };
    let (lines, remarks) = collect(&mut own, wanted);
    let fresh = || own.left_out.iter().filter(|left| !known.contains(left));
    if own.runs.last().is_none_or(|last| last.folder != folder) {
        let why = fresh().find(|left| left.name == id_of(folder)).map_or_else(|| "does not count".to_owned(), |left| left.why.clone());
        return Err(InputError::NotARun { path: folder.to_owned(), why });
    }
    notes.extend(remarks);
    notes.extend(fresh().map(left_out));
    for (place, (metric, series)) in settings.metrics.iter().copied().zip(&lines).enumerate() {
        let line = Line { metric, series, runs: &own.runs, tonight: own.runs.len().saturating_sub(1) };
        if place == 0 {
            let (mut failed, dated, flaky) = judge::fates(&line, &run);
            date(&mut failed, &dated, &own.runs);
            rows.extend(failed);
            notes.extend(flaky.into_iter().map(|(key, note)| format!("{} on {}: {note}", key.cell, key.device)));
        }
        let (mut found, dated) = judge::figures(&line, &unlike, settings.limit, settings.composed);
        date(&mut found, &dated, &own.runs);
        rows.extend(found);
        rows.extend(judge::gone(&line, &run, settings.composed));
        if rows.iter().all(|row| row.metric != metric.name) {
            notes.push(format!("{}: nothing to judge, no cell has it", metric.name));
        }
    }
    rows.sort_by(|a, b| (b.verdict, a.kind, &a.key, a.metric).cmp(&(a.verdict, b.kind, &b.key, b.metric)));
    let requirements = match requirements(folder, &run) {
        Ok(requirements) => Some(requirements),
        // What was measured is judged all the same.
        Err(why @ InputError::Plan { .. }) => {
            notes.push(why.to_string());
            None
        }
        Err(other) => return Err(other),
    };
    Ok(Gate {
        run: run.id,
        scenario: run.scenario,
        started_utc: run.started_utc,
        against,
        nights: tonight,
        limit: settings.limit,
        metrics: settings.metrics.iter().map(|m| m.name).collect(),
        notes,
        rows,
        requirements_known: requirements.is_some(),
        requirements: requirements.unwrap_or_default(),
    })
}

/// Names the run in which each change began, and what was not in it as in the run before.
fn date(rows: &mut [Row], dated: &[Dated], runs: &[history::Run]) {
    let mut cells: BTreeMap<(usize, usize), BTreeSet<Key>> = BTreeMap::new();
    for one in dated {
        cells.entry((one.before, one.at)).or_default().insert(rows[one.row].key.clone());
    }
    for ((before, at), cells) in cells {
        let metric = dated.iter().find(|one| (one.before, one.at) == (before, at)).map_or("", |one| rows[one.row].metric);
        let changed = changes(&runs[before], &runs[at], &cells, metric);
        for one in dated.iter().filter(|one| (one.before, one.at) == (before, at)) {
            let row = &mut rows[one.row];
            let own = |d: &&Difference| d.cells.is_empty() || d.cells.contains(&row.key);
            let changed = match &changed {
                Ok(all) => all.iter().filter(own).map(|d| format!("{}: {} -> {}", d.what, d.a, d.b)).collect(),
                Err(why) => vec![format!("what changed with it is unknown: {why}")],
            };
            let started_utc = runs[at].started.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
            row.since = Some(Since { run: runs[at].id.clone(), started_utc, changed });
        }
    }
}

/// The nights before, oldest first, and tonight last; and what they are in words.
fn nights(folder: &Path, settings: &Settings, notes: &mut Vec<String>) -> Result<(Scan, String), InputError> {
    let one = |path: &Path| look(path).map_err(|left| InputError::NotARun { path: path.to_owned(), why: left.why });
    let tonight = one(folder)?;
    let mut found = settings.history.as_ref().map_or_else(|| Ok(Scan::default()), |dir| scan(dir))?;
    notes.extend(found.left_out.iter().map(left_out));
    let all = found.runs.len();
    found.runs.retain(|r| r.scenario == tonight.scenario && r.device == tonight.device);
    if let others @ 1.. = all - found.runs.len() {
        notes.push(format!("of other scenarios or devices, and not compared: {} in the history", words::count(others, "run")));
    }
    let all = found.runs.len();
    found.runs.retain(|r| r.chip == tonight.chip);
    if let others @ 1.. = all - found.runs.len() {
        let (runs, chip) = (words::count(others, "run"), or_unstated(&tonight.chip));
        notes.push(format!("of another processor than {chip}, and not compared: {runs} in the history"));
    }
    found.runs.retain(|r| r.id != tonight.id && r.started < tonight.started);
    let mut against = match settings.history {
        Some(_) => String::new(),
        None => "nothing: name --baseline RUN or --history DIR".to_owned(),
    };
    if let Some(path) = &settings.baseline {
        let mut base = one(path)?;
        if base.id == tonight.id {
            return Err(InputError::Same(base.id));
        }
        if base.started > tonight.started {
            notes.push(format!("the baseline {} is newer than the run", base.id));
        }
        if base.scenario != tonight.scenario {
            notes.push(format!(
                "the baseline is of the scenario {}, the run of {}: cells of one id are compared",
                base.scenario, tonight.scenario
            ));
            base.scenario.clone_from(&tonight.scenario);
        }
        if base.device != tonight.device {
            notes.push(format!(
                "the baseline was measured on {}, the run on {}: figures of two devices are not compared",
                base.device, tonight.device
            ));
        }
        if base.chip != tonight.chip {
            let (base, own) = (or_unstated(&base.chip), or_unstated(&tonight.chip));
            notes.push(format!("the baseline is of the processor {base}, the run of {own}: not compared"));
        }
        against = format!("the baseline {}", base.id);
        found.runs.retain(|r| r.id != base.id && r.started > base.started);
        found.runs.insert(0, base);
    }
    if let (Some(first), Some(last), true) = (found.runs.first(), found.runs.last(), settings.history.is_some()) {
        let (first, last) = (first.started.strftime("%Y-%m-%d"), last.started.strftime("%Y-%m-%d"));
        let from = if settings.baseline.is_some() { format!(", from {against} on") } else { String::new() };
        against = format!("{} from {first} to {last}{from}", words::count(found.runs.len() as u64, "night"));
    } else if settings.history.is_some() && settings.baseline.is_none() {
        return Ok((with(found, tonight), "nothing: the history has no night of this scenario and device before this one".to_owned()));
    }
    Ok((with(found, tonight), against))
}

fn or_unstated(chip: &str) -> &str {
    if chip.is_empty() { unlike::UNSTATED } else { chip }
}

fn left_out(LeftOut { name, why, .. }: &LeftOut) -> String {
    format!("left out: {name}: {why}")
}

fn with(mut nights: Scan, tonight: history::Run) -> Scan {
    nights.runs.push(tonight);
    nights
}

/// What is not alike between the newest night and tonight; what matters is noted.
fn differences(newest: &history::Run, run: &Run, notes: &mut Vec<String>) -> Vec<Difference> {
    let before = match run::load(&newest.folder) {
        Ok(before) => before,
        Err(why) => {
            notes.push(format!("{} can't be read, so nobody knows what changed since: {why}", newest.id));
            return Vec::new();
        }
    };
    let pairs = run.cells.iter().filter_map(|(key, cell)| Some((key, before.cells.get(key)?, cell)));
    let found = unlike::between(&before, run, pairs);
    for difference in found.iter().filter(|d| d.serious()) {
        let what = if difference.weight == Weight::Bars { "not comparable" } else { "not alike" };
        let cells = match difference.cells.len() {
            0 => String::new(),
            n => format!(" ({})", words::count(n, "cell")),
        };
        let now = if difference.changed() { format!("{} -> {}", difference.a, difference.b) } else { format!("{} in both", difference.a) };
        notes.push(format!("{what}, {} -> this run: {}: {now}{cells}", before.id, difference.what));
    }
    found
}

/// The requirements of the run's plan.
pub fn requirements(folder: &Path, run: &Run) -> Result<Vec<Judged>, InputError> {
    let path = folder.join("plan.toml");
    let bad = |why: String| InputError::Plan { path: path.clone(), why };
    let text = fs::read_to_string(&path).map_err(|why| bad(format!("can't be read: {why}")))?;
    let plan = Plan::from_toml(&text).map_err(|why| bad(why.to_string()))?;
    if plan.require.is_empty() {
        return Ok(Vec::new());
    }
    Ok(require::judge(&plan, run, &require::gather(folder, &plan.require)?))
}
