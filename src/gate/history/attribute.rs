//! What changed between two runs, as far as anybody wrote it down. Names, never causes.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{
    scan::{Run, regular},
    table::{each, text},
};
use crate::{
    gate::{
        run::{self, Cell, STATE},
        unlike::{self, Difference},
    },
    results::{
        manifest::FILE,
        schema::{CELLS, LAUNCHES},
    },
};

/// Differences between two runs that concern these cells (of one device) and this metric: the heaviest first, each once. What neither run
/// states is none. An error says what could not be read.
pub fn changes(before: &Run, at: &Run, cells: &BTreeSet<run::Key>, metric: &str) -> Result<Vec<Difference>, String> {
    let (a, b) = (facts(before, cells)?, facts(at, cells)?);
    let pairs = a.cells.iter().filter_map(|(key, cell)| Some((key, cell, b.cells.get(key)?)));
    let mut found = unlike::between(&a, &b, pairs);
    found.retain(|difference| difference.changed() && difference.touches(metric));
    Ok(found)
}

/// A run without its figures: a hundred times less to read than [`run::load`] does.
fn facts(of: &Run, cells: &BTreeSet<run::Key>) -> Result<run::Run, String> {
    let wrong = |why: String| format!("{}: {why}", of.id);
    let bytes = regular(&of.folder.join(FILE)).map_err(|e| wrong(format!("{FILE} can't be read: {e}")))?;
    let manifest: Value =
        serde_json::from_slice(&bytes).map_err(|e| wrong(format!("{FILE} is damaged ({e}): put the file back, or remove the folder")))?;
    let mut found = run::Run { folder: of.folder.clone(), id: of.id.clone(), manifest, ..run::Run::default() };
    let names: Vec<&'static str> = CELLS.columns.iter().map(|column| column.name).collect();
    let keys: Vec<&str> = ["device", "cell"].into_iter().chain(names.iter().copied()).collect();
    each(&of.folder.join(CELLS.file), &keys, |values| {
        let key = run::Key { device: text(values[0]), cell: text(values[1]) };
        if cells.contains(&key) {
            let fields = names.iter().zip(&values[2..]).filter(|(_, value)| value.is_some_and(|value| !value.is_empty()));
            let fields = fields.map(|(name, value)| (*name, text(*value))).collect();
            found.cells.insert(key, Cell { fields, ..Cell::default() });
        }
        Ok(())
    })
    .map_err(wrong)?;
    // The state in which launches began. A run without that table states none.
    let keys: Vec<&str> = ["device", "cell", "pass", "status"].into_iter().chain(STATE).collect();
    let states = each(&of.folder.join(LAUNCHES.file), &keys, |values| {
        let key = run::Key { device: text(values[0]), cell: text(values[1]) };
        if let (Some(cell), Some(b"measure"), Some(b"ok")) = (found.cells.get_mut(&key), values[2], values[3]) {
            for (name, value) in STATE.into_iter().zip(&values[4..]).filter(|(_, value)| value.is_some_and(|value| !value.is_empty())) {
                cell.state.entry(name).or_default().push(text(*value));
            }
        }
        Ok(())
    });
    states.or_else(|why| if of.folder.join(LAUNCHES.file).exists() { Err(wrong(why)) } else { Ok(false) })?;
    Ok(found)
}
