//! Two profiles set against each other: which part of the model, and which kind of operation, makes the difference. Between frameworks too: their
//! names of operations differ, the parts of the model do not.
//!
//! A profile is one launch, so that nothing here has an interval, and profiling slows what it times: it says where a difference lies, `bench compare`
//! whether there is one.

mod table;

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use self::table::{Op, ops};
use super::{
    run::{Cell, Key, Run},
    unlike::{self, Weight},
};
use crate::results::read::TableError;

/// Rows of single operations of a pair.
const MOST_OPERATIONS: usize = 12;

/// What two runs' profiles say.
#[derive(Debug, Default, Serialize)]
pub struct Profiles {
    /// One for each pair of cells and phase.
    pub pairs: Vec<Pair>,
    /// What is not compared, and why.
    pub notes: Vec<String>,
}

/// One phase of a cell of A and of one of B.
#[derive(Debug, Serialize)]
pub struct Pair {
    /// Id of A's cell.
    pub a: String,
    /// Id of B's cell.
    pub b: String,
    /// phone, board, pc or emulator.
    pub class: String,
    /// `prefill`, `decode`, or empty.
    pub phase: String,
    /// What A's numbers are, and what B's: unit, meaning, method.
    pub measures: [Measure; 2],
    /// Sums over the phase, of the operations whose value is known.
    pub totals: [f64; 2],
    /// Operations whose value the tool does not know.
    pub unknown: [usize; 2],
    /// B less A, where both numbers are of one kind.
    pub difference: Option<f64>,
    /// Why there is no difference, and only shares stand side by side.
    pub unlike: Option<String>,
    /// By part of the model; empty for other networks.
    pub parts: Vec<Change>,
    /// By kind of operation.
    pub kinds: Vec<Change>,
    /// The operations that differ most, of one framework's own names.
    pub operations: Vec<Change>,
}

/// What a number is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Measure {
    /// `us` or `cycles`.
    pub unit: String,
    /// As in layers.csv.
    pub means: String,
    /// As in layers.csv.
    pub method: String,
}

impl Measure {
    /// Whether the difference of two numbers is one.
    fn like(&self, other: &Self) -> bool {
        (&self.unit, &self.means) == (&other.unit, &other.means)
    }
}

/// Something that both have, or one.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Change {
    /// Part, kind or operation.
    pub name: String,
    /// Sums; `None` where that side has no such operation, or knows no value.
    pub values: [Option<f64>; 2],
    /// Of that side's total, 0 to 1.
    pub shares: [Option<f64>; 2],
    /// Operations.
    pub ops: [usize; 2],
    /// B less A; what one side lacks counts 0 there. `None` where the numbers are not of one kind.
    pub difference: Option<f64>,
    /// Of the whole difference; over 1 where others make up for it.
    pub of_difference: Option<f64>,
}

/// Sets B's profiles against A's. `a_cells` and `b_cells` pick cells by their row of cells.csv.
///
/// # Errors
/// A table that can't be read, or that is of a bench that did not know parts of models.
pub fn compare(a: &Run, b: &Run, picks: [&dyn Fn(&Cell) -> bool; 2]) -> Result<Profiles, TableError> {
    let mut found = Profiles::default();
    let [of_a, of_b] = [("A", a, picks[0]), ("B", b, picks[1])].map(|(name, run, pick)| {
        // A cell is unverified, too, for where its operations ran: its profile is what one wants to see then.
        let profiled = |cell: &Cell| cell.is_ok() || cell.field("status") == "unverified";
        let wanted: BTreeSet<&Key> = run.cells.iter().filter(|(_, cell)| profiled(cell) && pick(cell)).map(|(key, _)| key).collect();
        let mut notes = Vec::new();
        let mut ops = ops(&run.folder, &mut notes)?;
        found.notes.extend(notes.into_iter().map(|note| format!("{name}: {note}")));
        ops.retain(|key, _| wanted.contains(key));
        Ok(ops)
    });
    let (of_a, of_b) = (of_a?, of_b?);
    // What makes two runs unlike makes their profiles unlike: another chip's cycles are other cycles.
    let differences = unlike::of_runs(a, b);
    let barred = differences.iter().find(|difference| difference.weight == Weight::Bars).map(unlike::Difference::words);
    let told = differences.iter().filter(|difference| difference.serious() && difference.changed());
    found.notes.extend(told.map(unlike::Difference::words));
    for (name, ops) in [("A", &of_a), ("B", &of_b)] {
        if ops.is_empty() {
            let makes = "[measure] profile = \"layers\" makes them";
            found
                .notes
                .push(format!("{name} has no profile of such a cell that ran ({makes}; or do --a-cells and --b-cells pick nothing?)"));
        }
    }
    for (name, run, ops) in [("A", a, &of_a), ("B", b, &of_b)] {
        for key in ops.keys().filter(|key| !run.cells[*key].is_ok()) {
            found.notes.push(format!("{} is unverified in {name}: {}", key.cell, run.cells[key].field("reason")));
        }
    }
    let same = of_a.keys().any(|key| of_b.contains_key(key));
    for (key, ops) in &of_a {
        let partner = if same { of_b.get_key_value(key).map(|(key, _)| key) } else { partner(a, key, b, &of_b, &mut found.notes) };
        let Some(other) = partner else {
            if same {
                found.notes.push(format!("{} is profiled in A only", key.cell));
            }
            continue;
        };
        let classes = [&a.cells[key], &b.cells[other]].map(|cell| cell.field("device_class"));
        if classes[0] != classes[1] {
            let [one, two] = classes;
            found.notes.push(format!("{} ({one}) and {} ({two}) are of two classes: not compared", key.cell, other.cell));
            continue;
        }
        let cells = [&a.cells[key], &b.cells[other]];
        for phase in ["prefill", "decode", ""] {
            found.pairs.extend(pair(phase, (key, ops), (other, &of_b[other]), cells, barred.as_ref(), &mut found.notes));
        }
    }
    if same {
        let only = of_b.keys().filter(|key| !of_a.contains_key(key));
        found.notes.extend(only.map(|key| format!("{} is profiled in B only", key.cell)));
    }
    Ok(found)
}

/// The cell of B that does the same work as one of A, where no cell is in both: the same model and lengths, if possible in the same quantisation.
fn partner<'a>(a: &Run, key: &Key, b: &Run, of_b: &'a BTreeMap<Key, Vec<Op>>, notes: &mut Vec<String>) -> Option<&'a Key> {
    let cell = &a.cells[key];
    let alike = |fields: &'static [&'static str]| {
        move |other: &&Key| b.cells.get(*other).is_some_and(|other| fields.iter().all(|name| other.field(name) == cell.field(name)))
    };
    let all: Vec<&Key> = of_b.keys().filter(alike(&["model", "prompt_tokens", "gen_tokens"])).collect();
    // No choice among cells of other classes helps.
    let work: Vec<&Key> = all.iter().copied().filter(alike(&["device_class"])).collect();
    let same: Vec<&Key> = work.iter().copied().filter(alike(&["quant"])).collect();
    match (if same.is_empty() { &work } else { &same }).as_slice() {
        [one] => Some(one),
        [] if !all.is_empty() => {
            let classes: BTreeSet<&str> = all.iter().map(|other| b.cells[*other].field("device_class")).collect();
            let (own, others) = (cell.field("device_class"), Vec::from_iter(classes).join(", "));
            notes.push(format!(
                "{} ({own}) has no partner: B's cells with its model and lengths are {others}, and two classes are not compared",
                key.cell
            ));
            None
        }
        [] => {
            notes.push(format!("{}: no profiled cell of B has its model and lengths", key.cell));
            None
        }
        several => {
            let names: Vec<&str> = several.iter().map(|key| key.cell.as_str()).collect();
            notes.push(format!("{}: several cells of B do the same work, pick one with --b-cells: {}", key.cell, names.join(", ")));
            None
        }
    }
}

/// Nothing where one of them has no operation of the phase.
fn pair(
    phase: &str,
    a: (&Key, &Vec<Op>),
    b: (&Key, &Vec<Op>),
    cells: [&Cell; 2],
    barred: Option<&String>,
    notes: &mut Vec<String>,
) -> Option<Pair> {
    let [of_a, of_b] = [a.1, b.1].map(|ops| {
        let mut by: BTreeMap<&Measure, Vec<&Op>> = BTreeMap::new();
        ops.iter().filter(|op| op.phase == phase).for_each(|op| by.entry(&op.measure).or_default().push(op));
        by
    });
    // Two profiles of one graph are not added up: those of one kind on both sides first.
    let like = of_a.keys().flat_map(|one| of_b.keys().map(move |two| (*one, *two))).find(|(one, two)| one.like(two));
    let (one, two) = like.or_else(|| Some((*of_a.keys().next()?, *of_b.keys().next()?)))?;
    for (name, key, of, taken) in [("A", a.0, &of_a, one), ("B", b.0, &of_b, two)] {
        for left in of.keys().filter(|left| **left != taken) {
            let (n, Measure { unit, method, .. }) = (of[*left].len(), left);
            notes.push(format!(
                "{} in {name}: {n} operations in {unit} by {method} are left out, they are no parts of the others' sum",
                key.cell
            ));
        }
    }
    let sides = [&of_a[one], &of_b[two]];
    let totals = sides.map(|ops| ops.iter().filter_map(|op| op.value).sum::<f64>());
    let unknown = sides.map(|ops| ops.iter().filter(|op| op.value.is_none()).count());
    let nothing = sides.iter().zip(unknown).any(|(ops, unknown)| ops.len() == unknown);
    let unlike = unlike_graphs(phase, [one, two], cells).or_else(|| barred.cloned());
    let unlike = unlike.or_else(|| nothing.then(|| "no value at all is known on one side".to_owned()));
    let difference = unlike.is_none().then(|| totals[1] - totals[0]);
    let by = |name: &dyn Fn(&Op) -> Option<String>| changes(sides, totals, difference, name);
    let has_parts = sides.iter().all(|ops| ops.iter().any(|op| op.part.is_some()));
    let word = |word: &Option<String>| Some(word.clone().unwrap_or_else(|| "not told".to_owned()));
    let mut operations = if cells[0].field("backend") == cells[1].field("backend") { by(&|op| Some(op.name.clone())) } else { Vec::new() };
    operations.retain(|change| change.difference.is_some_and(|d| d != 0.0));
    operations.truncate(MOST_OPERATIONS);
    Some(Pair {
        a: a.0.cell.clone(),
        b: b.0.cell.clone(),
        class: cells[0].field("device_class").to_owned(),
        phase: phase.to_owned(),
        measures: [one.clone(), two.clone()],
        totals,
        unknown,
        difference,
        unlike,
        parts: if has_parts { by(&|op| word(&op.part)) } else { Vec::new() },
        kinds: by(&|op| word(&op.kind)),
        operations,
    })
}

/// Why numbers of two profiles have no difference. Values are of one run of a graph: a prefill graph of 128 tokens does four times the work of one of 32.
fn unlike_graphs(phase: &str, [one, two]: [&Measure; 2], [a, b]: [&Cell; 2]) -> Option<String> {
    if !one.like(two) {
        return Some("numbers of two kinds".to_owned());
    }
    let [of_a, of_b] = [a, b].map(|cell| cell.field("chunk"));
    (phase == "prefill" && of_a != of_b).then(|| {
        let tokens = |chunk: &str| if chunk.is_empty() { "an unknown number of tokens".to_owned() } else { format!("{chunk} tokens") };
        format!("one run of the prefill graph takes {} in A, {} in B", tokens(of_a), tokens(of_b))
    })
}

/// Sums by name, the largest difference first; without differences the largest share.
fn changes(sides: [&Vec<&Op>; 2], totals: [f64; 2], whole: Option<f64>, name: &dyn Fn(&Op) -> Option<String>) -> Vec<Change> {
    let mut sums: BTreeMap<String, ([Option<f64>; 2], [usize; 2])> = BTreeMap::new();
    for (side, ops) in sides.into_iter().enumerate() {
        for op in ops {
            let Some(name) = name(op) else { continue };
            let (values, counts) = sums.entry(name).or_default();
            counts[side] += 1;
            if let Some(value) = op.value {
                values[side] = Some(values[side].unwrap_or(0.0) + value);
            }
        }
    }
    let change = |(name, (values, ops)): (String, ([Option<f64>; 2], [usize; 2]))| {
        let share = |side: usize| values[side].filter(|_| totals[side] > 0.0).map(|value| value / totals[side]);
        // What a side does not have is 0 there; what it has and does not know is not.
        let known = (0..2).all(|side| ops[side] == 0 || values[side].is_some());
        let difference = whole.filter(|_| known).map(|_| values[1].unwrap_or(0.0) - values[0].unwrap_or(0.0));
        let of_difference = whole.zip(difference).filter(|(whole, _)| *whole != 0.0).map(|(whole, part)| part / whole);
        Change { name, values, shares: [share(0), share(1)], ops, difference, of_difference }
    };
    let mut found: Vec<Change> = sums.into_iter().map(change).collect();
    let weight = |change: &Change| change.difference.map_or_else(|| change.shares.iter().flatten().sum(), f64::abs);
    found.sort_by(|x, y| weight(y).total_cmp(&weight(x)).then(x.name.cmp(&y.name)));
    found
}

#[cfg(test)]
mod tests;
