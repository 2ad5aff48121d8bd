//! From run folders to their selections.

use std::{collections::BTreeMap, fs, path::Path};

use bench_backend_api::Quant;
use serde_json::Value;
use thiserror::Error;

use super::{Selection, select, wish::Wish};
use crate::{
    gate::{
        require::gather,
        run::{Cell, Key, Run, RunError, load},
        unlike::{Difference, of_runs},
    },
    results::read::{TableError, visible},
    scenario::{Plan, PlannedCell, Preset},
    words::count,
};

/// One run: its launches lie closer together than those of another day.
#[derive(Debug)]
pub struct Session {
    /// What was planned, required and preferred.
    pub plan: Plan,
    /// What was measured.
    pub run: Run,
}

/// A selection, with the places of the runs that it is of.
#[derive(Debug)]
pub struct Joint {
    /// One run, or the sessions of one scenario on one device, in the order in which they were named.
    pub places: Vec<usize>,
    /// What is selected of them.
    pub selected: Selected,
}

/// Why a run has no selection.
#[derive(Debug, Error)]
pub enum Unselected {
    /// What was required and preferred is not known.
    #[error("no recommendation, since what the product needs is not known: plan.toml {0}")]
    Plan(String),
    /// What was measured is not known.
    #[error("no recommendation, since what was measured can't be read: {0}")]
    Run(#[from] RunError),
    /// A candidate that nobody sees can't be ranked: of so many cells of the plan the run has no row.
    #[error("no recommendation, since a part of the results is missing: cells.csv has no row of {0} of the plan, it was cut off")]
    Cut(String),
    /// It was edited, or is another run's.
    #[error("no recommendation, since plan and results don't belong together: plan.toml and cells.csv disagree about {0}")]
    Apart(String),
    /// Which device it was, and what else that did, is not known.
    #[error("no recommendation, since it is not known on which device this was measured: manifest.json is damaged or names no device")]
    Manifest,
    /// A table that can't be read.
    #[error("no recommendation, since what was measured can't be read: {0}")]
    Table(#[from] TableError),
}

/// What is selected, or why nothing is.
pub type Selected = Result<Selection, Unselected>;

/// Reads run folders and selects; those that are sessions of one scenario on one device together. `asked` is a preset for another use than the
/// scenario's.
pub fn read(folders: &[impl AsRef<Path>], asked: Option<&Preset>) -> Vec<Joint> {
    let mut joints: Vec<Joint> = Vec::new();
    let mut sets: Vec<(Vec<usize>, Vec<Session>)> = Vec::new();
    for (place, folder) in folders.iter().enumerate() {
        match session(folder.as_ref()) {
            Err(why) => joints.push(Joint { places: vec![place], selected: Err(why) }),
            Ok(session) => match sets.iter_mut().find(|(_, known)| is_another(&known[0], &session)) {
                Some((places, known)) => {
                    places.push(place);
                    known.push(session);
                }
                None => sets.push((vec![place], vec![session])),
            },
        }
    }
    joints.extend(sets.into_iter().map(|(places, sessions)| Joint { places, selected: of(&sessions, asked) }));
    joints.sort_by_key(|joint| joint.places[0]);
    joints
}

fn session(folder: &Path) -> Result<Session, Unselected> {
    let text = fs::read_to_string(folder.join("plan.toml")).map_err(|why| Unselected::Plan(format!("can't be read: {why}")))?;
    let plan = Plan::from_toml(&text).map_err(|why| Unselected::Plan(format!("can't be used: {why}")))?;
    let run = load(folder)?;
    let has_row = |id: &str| run.cells.keys().any(|key| key.cell == visible(id));
    let lost = plan.cells.iter().filter(|planned| !has_row(&planned.id)).count();
    if lost > 0 {
        return Err(Unselected::Cut(count(lost, "cell")));
    }
    if let Some(cell) = apart(&plan, &run) {
        return Err(Unselected::Apart(cell));
    }
    if !run.manifest["device"].is_object() {
        return Err(Unselected::Manifest);
    }
    Ok(Session { plan, run })
}

/// A cell that only one of them knows, or knows as another one.
fn apart(plan: &Plan, run: &Run) -> Option<String> {
    let disagrees = |planned: &PlannedCell, row: &Cell| {
        let cell = &planned.cell;
        let (prompt, generated) = (cell.workload.prompt_tokens().to_string(), cell.workload.gen_tokens().to_string());
        // What is no class at all is no other one.
        let quant = Quant::parse(row.field("quant")).unwrap_or(cell.quant);
        let words = [
            ("backend", cell.backend.as_str()),
            ("model", cell.model.name.as_str()),
            ("prompt_tokens", &prompt),
            ("gen_tokens", &generated),
        ];
        let differs = |(column, word): &(&str, &str)| !row.field(column).is_empty() && row.field(column) != visible(word);
        quant != cell.quant || words.iter().any(differs)
    };
    let known: BTreeMap<String, &PlannedCell> = plan.cells.iter().map(|planned| (visible(&planned.id), planned)).collect();
    let wrong = |(key, row): &(&Key, &Cell)| known.get(&key.cell).is_none_or(|planned| disagrees(planned, row));
    run.cells.iter().find(wrong).map(|(key, _)| key.cell.clone())
}

/// What sessions may differ in: they are days.
const OF_THE_DAY: [&str; 3] = ["load of the computer at the begin (1 min)", "ambient temperature", "Android's thermal status at the end"];

/// Whether a run is another session of the same: another measurement, by the same scenario, with nothing between them that would make two figures
/// different things or explain a difference by itself (`gate::unlike`), and the same artifacts. The sides of an A/B run differ in what they are held
/// against each other for.
fn is_another(a: &Session, b: &Session) -> bool {
    let (one, other) = (&a.run.manifest, &b.run.manifest);
    let stated = |manifest: &Value| manifest.pointer("/scenario/sha256").is_some_and(Value::is_string) && manifest["ab"].is_null();
    let same = |pointer: &str| one.pointer(pointer) == other.pointer(pointer);
    let differs = |difference: &Difference| difference.serious() && difference.changed() && !OF_THE_DAY.contains(&difference.what.as_str());
    stated(one)
        && stated(other)
        && same("/scenario/sha256")
        && same("/device/name")
        && same("/python_lock")
        && one["finished_utc"].is_string()
        && other["finished_utc"].is_string()
        && !same("/run")
        && !same("/started_utc")
        && same_artifacts(&a.run, &b.run)
        && a.plan.require == b.plan.require
        && a.plan.prefer == b.plan.prefer
        && a.plan.cells.iter().map(|cell| &cell.id).eq(b.plan.cells.iter().map(|cell| &cell.id))
        && !of_runs(&a.run, &b.run).iter().any(differs)
}

/// Whether every cell of which both know the artifact had the same one: its key is a hash of what it is made of.
fn same_artifacts(a: &Run, b: &Run) -> bool {
    let agree = |one: &Cell, other: &Cell, column: &str| {
        let (one, other) = (one.field(column), other.field(column));
        one == other || one.is_empty() || other.is_empty()
    };
    let same =
        |one: &Cell, other: &Cell| ["artifact", "quant_native", "engine", "runtime_version"].iter().all(|column| agree(one, other, column));
    a.cells.iter().all(|(key, cell)| b.cells.get(key).is_none_or(|other| same(cell, other)))
}

fn of(sessions: &[Session], asked: Option<&Preset>) -> Selected {
    let wish = Wish::of(&sessions[0].plan, asked);
    let evidence = sessions.iter().map(|session| gather(&session.run.folder, &wish.requirements)).collect::<Result<Vec<_>, _>>()?;
    Ok(select(sessions, &evidence, wish))
}
