//! A/B: two plans whose cells are partners, to be measured pair by pair on one device.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
};

use serde::{Deserialize, Serialize};
use serde_spanned::Spanned;
use toml::de::{DeTable, DeValue};

use super::{
    checked::Measure,
    key::{Key, value_of},
    plan::{Plan, PlannedCell},
};

/// One of the two sides. B is judged against A.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// What is known.
    A,
    /// What is tried.
    B,
}
impl Side {
    /// Both, in order.
    pub const ALL: [Self; 2] = [Self::A, Self::B];

    /// The letter in names of folders and in JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::A => "a",
            Self::B => "b",
        }
    }
}

/// What a run knows of the other side of its A/B run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ab {
    /// Which side this run is.
    pub side: Side,
    /// Id of the other side's run: its folder lies beside this one.
    pub partner: String,
    /// Id of the partner of each cell, by the id here.
    pub cells: BTreeMap<String, String>,
}

/// Why two plans can't be the sides of an A/B run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AbError {
    /// Both sides are measured at once, on one device, in one state.
    #[error("the sides of an A/B run share the device and its state, so these must be the same in both: {}", .0.join(", "))]
    NotShared(Vec<&'static str>),
    /// What takes too long, or the whole battery, to be done pair by pair.
    #[error("an A/B run has no {0}: take it out, or measure it in a run of its own")]
    NotCarriedOut(&'static str),
    /// Nothing to compare.
    #[error("no cell of one side has a partner on the other:\n  {}", .0.join("\n  "))]
    NoPair(Vec<String>),
}

/// Brings the cells of two plans into pairs: afterwards the cells at one place of the plans are partners. Says which cells have none and are left
/// out.
///
/// Partners agree in every key of the matrix, except those in which the two sides have no value in common: these are what is compared (two
/// models, two backends, two classes of quantisation).
///
/// # Errors
/// [`AbError`].
pub fn pair(a: &mut Plan, b: &mut Plan) -> Result<Vec<String>, AbError> {
    shared(a, b)?;
    let values = |plan: &Plan, key: Key| plan.cells.iter().map(|c| value_of(&c.cell, key)).collect::<BTreeSet<_>>();
    let same: Vec<Key> = Key::all().filter(|key| !values(a, *key).is_disjoint(&values(b, *key))).collect();
    let by_key = |plan: &mut Plan| {
        let mut cells: BTreeMap<Vec<String>, Vec<PlannedCell>> = BTreeMap::new();
        let mut order = Vec::new();
        for planned in plan.cells.drain(..) {
            let key: Vec<String> = same.iter().map(|key| value_of(&planned.cell, *key)).collect();
            if !cells.contains_key(&key) {
                order.push(key.clone());
            }
            cells.entry(key).or_default().push(planned);
        }
        (cells, order)
    };
    let ((mut of_a, order), (mut of_b, order_b)) = (by_key(a), by_key(b));
    let mut alone = Vec::new();
    let mut leave_out = |cells: &[PlannedCell], why: &str| alone.extend(cells.iter().map(|c| format!("{}: {why}", c.id)));
    for key in order {
        let (left, right) = (of_a.remove(&key).unwrap_or_default(), of_b.remove(&key).unwrap_or_default());
        match (<[_; 1]>::try_from(left), <[_; 1]>::try_from(right)) {
            (Ok([mut left]), Ok([mut right])) => {
                skip_both(&mut left, &mut right);
                a.cells.push(left);
                b.cells.push(right);
            }
            (left, right) => {
                let several = |cells: &[PlannedCell]| cells.len() > 1;
                let (left, right) = (left.map_or_else(|c| c, Vec::from), right.map_or_else(|c| c, Vec::from));
                let why = if several(&left) || several(&right) { "several cells could be its partner" } else { "side B has no such cell" };
                leave_out(&left, why);
                leave_out(&right, why);
            }
        }
    }
    for key in order_b {
        leave_out(&of_b.remove(&key).unwrap_or_default(), "side A has no such cell");
    }
    share_both(a, b);
    if a.cells.is_empty() { Err(AbError::NoPair(alone)) } else { Ok(alone) }
}

/// A pair is a launch of the same cells on each side: they share theirs where they do on both.
fn share_both(a: &mut Plan, b: &mut Plan) {
    let mut known: BTreeMap<(u32, u32), u32> = BTreeMap::new();
    for (left, right) in a.cells.iter_mut().zip(&mut b.cells) {
        let next = known.len() as u32;
        let group = left.launch_group.zip(right.launch_group).map(|both| *known.entry(both).or_insert(next));
        (left.launch_group, right.launch_group) = (group, group);
    }
}

/// A pair is measured or it is not.
fn skip_both(a: &mut PlannedCell, b: &mut PlannedCell) {
    let partner = |side: &str, why: &String| format!("its partner, side {side} of the A/B run, is skipped: {why}");
    match (&a.skipped, &b.skipped) {
        (Some(why), None) => b.skipped = Some(partner("A", why)),
        (None, Some(why)) => a.skipped = Some(partner("B", why)),
        _ => {}
    }
}

/// What one plan says of the inside of a launch, which a side has for itself, and what another says of everything else.
fn within_launch(own: &Measure, other: &Measure) -> Measure {
    Measure {
        queries: own.queries,
        warmup: own.warmup,
        warmup_max: own.warmup_max,
        load: own.load,
        timeout_ms: own.timeout_ms,
        ..other.clone()
    }
}

/// Whether the plans agree in what belongs to the device and to the run as a whole.
fn shared(a: &Plan, b: &Plan) -> Result<(), AbError> {
    for (section, present) in [("[soak]", a.soak.is_some() || b.soak.is_some()), ("[power]", a.power.is_some() || b.power.is_some())] {
        if present {
            return Err(AbError::NotCarriedOut(section));
        }
    }
    let measure = within_launch(&a.measure, &b.measure);
    let pairs = [
        ("[device]", a.device == b.device),
        ("[measure] repetitions, order, budget and profile", a.measure == measure),
        ("[measure] seed", a.seed == b.seed),
        ("[settle]", a.settle == b.settle),
        ("[environment]", a.environment == b.environment),
        ("[pin]", a.pins == b.pins),
    ];
    let different: Vec<&str> = pairs.into_iter().filter(|(_, same)| !same).map(|(what, _)| what).collect();
    if different.is_empty() { Ok(()) } else { Err(AbError::NotShared(different)) }
}

/// Puts a stored plan on the terms of another: the device, its state, and how often is measured. Neither soaks or measures power.
pub fn level(old: &mut Plan, new: &mut Plan) {
    (old.soak, old.power, new.soak, new.power) = (None, None, None, None);
    old.measure = within_launch(&old.measure, &new.measure);
    old.device.clone_from(&new.device);
    old.settle.clone_from(&new.settle);
    old.environment.clone_from(&new.environment);
    old.pins.clone_from(&new.pins);
    old.seed = new.seed;
}

/// Keys of `[ab.matrix]` that share some values with those of the first side and not all, with their places and in words: cells of the shared values
/// are partners, so that equals are compared, and the others are left out.
pub fn in_both(base: &DeTable<'_>, over: &DeTable<'_>) -> Vec<(Range<usize>, String)> {
    let matrix = |document: &DeTable<'_>| match document.get("matrix").map(Spanned::get_ref) {
        Some(DeValue::Table(matrix)) => {
            matrix.iter().map(|(key, value)| (key.get_ref().to_string(), (key.span(), values(value.get_ref())))).collect()
        }
        _ => BTreeMap::new(),
    };
    let first: BTreeMap<String, (Range<usize>, BTreeSet<String>)> = matrix(base);
    let one = |(key, (at, second)): (String, (Range<usize>, BTreeSet<String>))| {
        let (_, first) = first.get(&key)?;
        let both: Vec<&str> = first.intersection(&second).map(String::as_str).collect();
        let words = format!(
            "both sides have `{key}` {}: these cells are partners of their like, and those of other values are left out",
            both.join(", ")
        );
        (!both.is_empty() && *first != second && key != "exclude").then_some((at, words))
    };
    matrix(over).into_iter().filter_map(one).collect()
}

/// The values of a key of the matrix, whose single one needs no list.
fn values(value: &DeValue<'_>) -> BTreeSet<String> {
    let word = |value: &DeValue<'_>| match value {
        DeValue::String(text) => Some(text.to_string()),
        DeValue::Integer(number) => Some(number.as_str().to_owned()),
        _ => None,
    };
    match value {
        DeValue::Array(all) => all.iter().filter_map(|one| word(one.get_ref())).collect(),
        one => word(one).into_iter().collect(),
    }
}

/// A document with the keys of `[ab]` in place of its own: tables key by key, everything else as a whole.
pub fn overlay<'i>(base: &mut DeTable<'i>, over: &DeTable<'i>) {
    for (key, value) in over {
        if let (Some(DeValue::Table(base)), DeValue::Table(over)) = (base.get_mut(key).map(Spanned::get_mut), value.get_ref()) {
            overlay(base, over);
        } else {
            // The key is put in anew, so that a problem with it is shown where it stands in [ab].
            base.remove(key);
            base.insert(key.clone(), value.clone());
        }
    }
}
