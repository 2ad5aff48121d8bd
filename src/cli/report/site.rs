//! `bench report --site DIR`: what the history says of a folder of runs, as pages.

mod judgement;
mod lab;
mod names;
#[cfg(test)]
mod tests;
mod trends;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

pub use judgement::keep as keep_gate;
use lab::{Files, Lab};

use super::super::{
    exit::{self, Code, Failed},
    history::History,
    note, usage,
};
use crate::{
    gate::history::{self, Wanted},
    report::{Report, site},
    results::{folder::id_of, schema::Metric},
    safe::{printable, visible},
};

/// What the site is to be of.
pub struct Asked<'a> {
    pub metrics: Vec<&'static Metric>,
    /// The change that matters: 0.02 for 2 %.
    pub tolerance: f64,
    pub given: &'a [PathBuf],
    pub out: &'a Path,
}

pub fn main(asked: &Asked) -> anyhow::Result<Code> {
    let (folder, named) = folder(asked.given)?;
    let mut scan = history::scan(&folder).map_err(|e| usage(e.to_string()))?;
    // As the tables are read: a device has one page, whatever its name holds.
    for run in &mut scan.runs {
        run.device = visible(&run.device);
    }
    let runs = named.clone().unwrap_or_else(|| scan.runs.iter().map(|run| run.folder.clone()).collect());
    let mut wrong = pages(&runs, asked.out)?;
    let wanted = Wanted { metrics: &asked.metrics, cell: "", device: None, scenario: None, nights: None };
    let history = History::of(scan, wanted, asked.tolerance);
    let files = Files::of(&history);
    let lab = Lab { history: &history, asked: asked.tolerance, out: asked.out, wrong: &wrong, named: &runs, files };
    let index = site::write(&lab.site(), asked.out).map_err(|e| super::failed(&e))?;
    super::super::print(&format!("{}\n", index.display()))?;
    let Some(named) = named else {
        if history.scan.runs.is_empty() {
            let folder = folder.display();
            note(&printable(&format!(
                "{folder} holds no finished run: `bench run SCENARIO --out {folder}` makes one, and `bench report --site` shows it then"
            )));
        }
        return Ok(Code::Done);
    };
    // Of a whole folder one damaged run is what the index says of it; a run that was asked for is the user's matter.
    for left in history.scan.left_out.iter().filter(|left| left.unreadable && named.iter().any(|run| id_of(run) == left.name)) {
        wrong.entry(left.name.clone()).or_insert_with(|| format!("{}: {}", left.name, left.why));
    }
    wrong.into_values().next().map_or(Ok(Code::Done), |message| Err(Failed { code: Code::Usage, message }.into()))
}

/// The folder that holds the runs, and those that were named, if any were.
fn folder(given: &[PathBuf]) -> anyhow::Result<(PathBuf, Option<Vec<PathBuf>>)> {
    let is_run = |path: &PathBuf| path.join("manifest.json").exists() || path.join("plan.toml").exists();
    match given {
        [] => return Ok((PathBuf::from("results"), None)),
        [one] if one.is_dir() && !is_run(one) => return Ok((one.clone(), None)),
        _ => {}
    }
    let (mut found, mut runs): (Option<PathBuf>, Vec<PathBuf>) = (None, Vec::new());
    for run in given {
        let whole = run.canonicalize().map_err(|e| usage(format!("{}: {e}", run.display())))?;
        if !is_run(run) {
            return Err(usage(format!("{}: not a run folder (it has no manifest.json)", run.display())));
        }
        let holds = whole.parent().unwrap_or(&whole).to_owned();
        if found.as_ref().is_some_and(|known| *known != holds) {
            return Err(usage("the runs lie in different folders: a site is one of one folder of runs".to_owned()));
        }
        found = Some(holds);
        runs.push(whole);
    }
    Ok((found.unwrap_or_default(), Some(runs)))
}

/// Makes the pages that are missing, of something else or older than their tables; gives what is wrong with runs that can have none, by the names of their folders.
fn pages(runs: &[PathBuf], out: &Path) -> anyhow::Result<BTreeMap<String, String>> {
    let mut wrong = BTreeMap::new();
    for run in runs {
        let name = id_of(run);
        if site::is_fresh(run, &out.join(&name).join(site::INDEX)) {
            continue;
        }
        let report = || Report::of(std::slice::from_ref(run), None)?.write(&out.join(&name));
        let made = super::ready(run).and_then(|()| report().map_err(|e| super::failed(&e)));
        if let Err(error) = made {
            // A disk that is full is nothing of the run's.
            if exit::of(&error) != Code::Usage {
                return Err(error);
            }
            note(&format!("no page of {}: {}", printable(&name), printable(&error.to_string())));
            wrong.insert(name, error.to_string());
        }
    }
    Ok(wrong)
}
