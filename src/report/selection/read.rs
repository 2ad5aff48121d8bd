//! From a run folder to its selection.

use std::{fs, path::Path};

use thiserror::Error;

use super::{Selection, of_wish, wish::Wish};
use crate::{
    gate::{
        require::gather,
        run::{RunError, load},
    },
    results::read::TableError,
    scenario::{Plan, Preset},
    words::count,
};

/// Why a run has no selection.
#[derive(Debug, Error)]
pub enum Unselected {
    /// What was required and preferred is not known.
    #[error("nothing can be selected: plan.toml {0}")]
    Plan(String),
    /// What was measured is not known.
    #[error("nothing can be selected: {0}")]
    Run(#[from] RunError),
    /// A candidate that nobody sees can't be ranked: of so many cells of the plan the run has no row.
    #[error("nothing can be selected: cells.csv has no row of {0} of the plan, it was cut off")]
    Cut(String),
    /// Which device it was, and what else that did, is not known.
    #[error("nothing can be selected: manifest.json is damaged or names no device")]
    Manifest,
    /// A table that can't be read.
    #[error("nothing can be selected: {0}")]
    Table(#[from] TableError),
}

/// What is selected of a run, or why nothing is.
pub type Selected = Result<Selection, Unselected>;

/// Reads a run folder and selects. `asked` is a preset for another use than the scenario's.
pub fn read(folder: &Path, asked: Option<&Preset>) -> Selected {
    let text = fs::read_to_string(folder.join("plan.toml")).map_err(|why| Unselected::Plan(format!("can't be read: {why}")))?;
    let plan = Plan::from_toml(&text).map_err(|why| Unselected::Plan(format!("can't be used: {why}")))?;
    let wish = Wish::of(&plan, asked);
    let evidence = gather(folder, &wish.requirements)?;
    let run = load(folder)?;
    let has_row = |id: &str| run.cells.keys().any(|key| key.cell == id);
    let lost = plan.cells.iter().filter(|planned| !has_row(&planned.id)).count();
    if lost > 0 {
        return Err(Unselected::Cut(count(lost, "cell")));
    }
    if !run.manifest["device"].is_object() {
        return Err(Unselected::Manifest);
    }
    Ok(of_wish(&plan, &run, &evidence, wish))
}
