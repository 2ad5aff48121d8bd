//! Which cell of B is which of A, and which cells can't be compared at all.

use serde::Serialize;

use super::CompareError;
use crate::gate::{
    ab::Partners,
    run::{Cell, Key, Run},
};

/// A cell that only one of the two runs has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Lone {
    /// The cell.
    #[serde(flatten)]
    pub key: Key,
    /// `A` or `B`: who has it.
    pub only_in: &'static str,
}

/// A cell that is not ok in one of the two.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NotOk {
    /// The cell, as A names it.
    #[serde(flatten)]
    pub key: Key,
    /// Its status in A, with the reason where it is not ok.
    pub a: String,
    /// The same in B.
    pub b: String,
    /// It was ok in A, and its program or model fails in B, or its answers are wrong: not a matter of the surroundings.
    pub broken: bool,
}

/// A cell in both.
pub struct Pair<'a> {
    pub key: &'a Key,
    pub a: &'a Cell,
    pub b: &'a Cell,
}

/// What the runs have in common.
pub struct Pairs<'a> {
    pub both: Vec<Pair<'a>>,
    pub lone: Vec<Lone>,
    pub not_ok: Vec<NotOk>,
    pub note: Option<String>,
}

/// Pairs cells of one name on one device, or the partners of an A/B run. Two runs of one device each are paired even if those are two devices,
/// which is said.
pub fn pair<'a>(a: &'a Run, b: &'a Run, partners: Option<Partners>) -> Pairs<'a> {
    let other = match (only_device(a), only_device(b)) {
        (Some(one), Some(other)) if one != other => Some((one, other)),
        _ => None,
    };
    let named = |key: &Key, device: Option<&str>, partner: Option<&str>| Key {
        device: device.unwrap_or(&key.device).to_owned(),
        cell: partner.unwrap_or(&key.cell).to_owned(),
    };
    let in_b = |key: &Key| named(key, other.map(|(_, device)| device), partners.and_then(|p| p.in_b(&key.cell)));
    let in_a = |key: &Key| named(key, other.map(|(device, _)| device), partners.and_then(|p| p.in_a(&key.cell)));
    let both: Vec<Pair> = a.cells.iter().filter_map(|(key, cell)| Some(Pair { key, a: cell, b: b.cells.get(&in_b(key))? })).collect();
    let lone = |key: &Key, only_in| Lone { key: key.clone(), only_in };
    let of_a = a.cells.keys().filter(|key| !b.cells.contains_key(&in_b(key))).map(|key| lone(key, "A"));
    let of_b = b.cells.keys().filter(|key| !a.cells.contains_key(&in_a(key))).map(|key| lone(key, "B"));
    let not_ok = both.iter().filter(|pair| !pair.a.is_ok() || !pair.b.is_ok()).map(|pair| NotOk {
        key: pair.key.clone(),
        a: state(pair.a),
        b: state(pair.b),
        broken: pair.a.is_ok() && matches!(pair.b.field("status"), "failed" | "unverified") && !around(pair.b),
    });
    let note = if both.is_empty() {
        Some(
            "A and B have no cell in common: nothing is compared. Cells are the same by backend, model, quant, prompt, answer and axes"
                .to_owned(),
        )
    } else {
        other.map(|(one, other)| format!("two devices: cells of {one} in A are set against those of {other} in B"))
    };
    Pairs { lone: of_a.chain(of_b).collect(), not_ok: not_ok.collect(), both, note }
}

fn only_device(run: &Run) -> Option<&str> {
    let mut devices = run.cells.keys().map(|key| key.device.as_str());
    let first = devices.next()?;
    devices.all(|device| device == first).then_some(first)
}

/// Status, with what is behind it.
fn state(cell: &Cell) -> String {
    let parts: Vec<&str> =
        ["status", "failure_kind", "reason"].into_iter().map(|name| cell.field(name)).filter(|text| !text.is_empty()).collect();
    parts.join(", ")
}

/// A failure of what is around the measurement and not of what is measured.
fn around(cell: &Cell) -> bool {
    matches!(cell.field("failure_kind"), "usage" | "infra" | "device" | "thermal")
}

/// Two folders that are one run are an error; what else is odd about them as a pair is said.
pub fn of_one_run(a: &Run, b: &Run) -> Result<Vec<String>, CompareError> {
    let same_folder = a.folder.canonicalize().ok().is_some_and(|path| Some(path) == b.folder.canonicalize().ok());
    let same_id = name(a) == name(b);
    let launches = |run: &Run| run.cells.values().map(|cell| cell.metrics.clone()).collect::<Vec<_>>();
    if same_folder || (same_id && launches(a) == launches(b)) {
        return Err(CompareError::Same(name(a).to_owned()));
    }
    let id = same_id.then(|| format!("both runs have the id {}, and different figures: one of them is not what it says it is", name(a)));
    let order = (!a.started_utc.is_empty() && !b.started_utc.is_empty() && b.started_utc < a.started_utc)
        .then(|| "B began before A: improved and regressed are from A to B all the same".to_owned());
    Ok(id.into_iter().chain(order).collect())
}

/// The id as the manifest has it: a folder can be renamed.
fn name(run: &Run) -> &str {
    run.manifest["run"].as_str().unwrap_or(&run.id)
}
