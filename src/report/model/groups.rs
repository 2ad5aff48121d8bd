//! Which cells may stand side by side: never two classes or devices in one set, never two scopes or methods of TTFT in one chart.

use std::{
    cmp::{Ordering, Reverse},
    collections::BTreeMap,
};

pub use super::colours::Colours;
use crate::report::load::{Cell, Run};
pub use crate::report::timing::Timing;

/// The axes that a cell may have beside prompt and generated length.
pub const AXES: [(&str, &str); 6] =
    [("context", "context"), ("kv", "KV"), ("batch", "batch"), ("threads", "threads"), ("perf_profile", "profile"), ("variant", "variant")];

/// Cells of one class, device and model: one source model, in whichever quantisations.
pub struct Group<'a> {
    /// The model.
    pub model: &'a str,
    /// In an order that ranks nothing: see [`order`].
    pub cells: Vec<&'a Cell>,
    /// Axes whose values differ between the cells.
    varied: Vec<(&'static str, &'static str)>,
    /// Quantisation and axes of each kind of line, in the order of the cells.
    kinds: Vec<(&'a str, String)>,
}

/// The panels of a run: class and device. Real devices come first, the emulator next, where two frameworks run the same binaries, and the
/// PC's own processor last.
pub fn panels(run: &Run) -> Vec<(&str, &str)> {
    let rank = |class: &str| ["phone", "board", "emulator", "pc"].iter().position(|known| *known == class).unwrap_or(4);
    let mut found: Vec<(&str, &str)> = run.cells.iter().map(|cell| (cell.class.as_str(), cell.key.device.as_str())).collect();
    found.sort_by_key(|(class, device)| (rank(class), *class, *device));
    found.dedup();
    found
}

/// Cells of a panel, in [`order`].
pub fn cells_of<'a>(run: &'a Run, class: &str, device: &str) -> Vec<&'a Cell> {
    let mut cells: Vec<&Cell> = run.cells.iter().filter(|cell| cell.class == class && cell.key.device == device).collect();
    cells.sort_by(|a, b| order(a, b));
    cells
}

/// By workload, then from more bits to fewer, then by name: an order that ranks nothing, and in which backends on one artifact are neighbours.
fn order(a: &Cell, b: &Cell) -> Ordering {
    let key = |cell: &Cell| (cell.prompt, cell.generate, Reverse(bits(&cell.quant)));
    key(a).cmp(&key(b)).then_with(|| (&a.quant, &a.backend, &a.key).cmp(&(&b.quant, &b.backend, &b.key)))
}

/// The first number of a class: 4 of `w4a16`, 8 of `q8_0`, 16 of `fp16`.
fn bits(quant: &str) -> u32 {
    let digits: String = quant.chars().skip_while(|c| !c.is_ascii_digit()).take_while(char::is_ascii_digit).collect();
    digits.parse().unwrap_or(0)
}

/// The sets of a panel.
pub fn groups<'a>(cells: &[&'a Cell]) -> Vec<Group<'a>> {
    let mut sets: BTreeMap<&str, Vec<&Cell>> = BTreeMap::new();
    for cell in cells {
        sets.entry(&cell.model).or_default().push(cell);
    }
    sets.into_iter().map(|(model, cells)| Group::of(model, cells)).collect()
}

/// Whether two cells of one backend differ in this axis: only then is it needed to tell rows apart.
fn varies(cells: &[&Cell], column: &str) -> bool {
    cells.iter().any(|a| cells.iter().any(|b| a.backend == b.backend && a.text(column) != b.text(column)))
}

impl<'a> Group<'a> {
    fn of(model: &'a str, cells: Vec<&'a Cell>) -> Self {
        let counted: Vec<&Cell> = cells.iter().copied().filter(|cell| cell.counts()).collect();
        let varied = AXES.into_iter().filter(|(column, _)| varies(&counted, column)).collect();
        let mut group = Self { model, cells, varied, kinds: Vec::new() };
        for cell in group.counted() {
            let kind = (cell.quant.as_str(), group.axes(cell));
            if !group.kinds.contains(&kind) {
                group.kinds.push(kind);
            }
        }
        group
    }

    /// Cells that count.
    pub fn counted(&self) -> Vec<&'a Cell> {
        self.cells.iter().copied().filter(|cell| cell.counts()).collect()
    }

    /// Cells that count, by how their first token was timed: the subsets within which figures may be compared.
    pub fn comparable(&self) -> Vec<(Timing<'a>, Vec<&'a Cell>)> {
        let mut subsets: BTreeMap<Timing, Vec<&Cell>> = BTreeMap::new();
        for cell in self.counted() {
            subsets.entry(Timing::of(cell)).or_default().push(cell);
        }
        subsets.into_iter().collect()
    }

    /// The axes that tell this cell from its neighbours, in words.
    pub fn axes(&self, cell: &Cell) -> String {
        let named = self.varied.iter().filter_map(|(column, word)| cell.text(column).map(|value| format!("{word} {value}")));
        named.collect::<Vec<_>>().join(", ")
    }

    /// Backend, quantisation and axes in one line.
    pub fn label(&self, cell: &Cell) -> String {
        let axes = self.axes(cell);
        let comma = if axes.is_empty() { "" } else { ", " };
        format!("{} · {}{comma}{axes}", cell.backend, cell.quant)
    }

    /// The style of a cell's line: one for each quantisation and set of axes.
    pub fn style(&self, cell: &Cell) -> usize {
        let axes = self.axes(cell);
        self.kinds.iter().position(|(quant, known)| *quant == cell.quant && *known == axes).unwrap_or(0)
    }
}

/// Rows of a table behind a chart; with more it has what is drawn, and the tables of the run have the rest.
pub const BEHIND: usize = 100;

/// At most `limit` of the items, so picked that each backend has its turn, in their own order, and what to tell the reader about it.
pub fn readable<'a, T>(items: &'a [T], limit: usize, backend: impl Fn(&T) -> &str, what: &str) -> (Vec<&'a T>, String) {
    if items.len() <= limit {
        return (items.iter().collect(), String::new());
    }
    let mut turns: BTreeMap<&str, usize> = BTreeMap::new();
    let mut ranked: Vec<(usize, usize)> = Vec::new();
    for (at, item) in items.iter().enumerate() {
        let turn = turns.entry(backend(item)).or_default();
        ranked.push((*turn, at));
        *turn += 1;
    }
    ranked.sort_unstable();
    let mut kept: Vec<usize> = ranked.into_iter().take(limit).map(|(_, at)| at).collect();
    kept.sort_unstable();
    let rest = if items.len() > BEHIND { "the run's tables have" } else { "the table has" };
    let words = format!(" Drawn: {limit} of {} {what}, of each backend the first ones; {rest} them all.", items.len());
    (kept.into_iter().map(|at| &items[at]).collect(), words)
}

impl<'a> Timing<'a> {
    /// That of a cell.
    pub fn of(cell: &'a Cell) -> Self {
        Self {
            scope: cell.text("ttft_scope").unwrap_or("unknown"),
            method: cell.text("ttft_method").unwrap_or("unknown"),
            context: cell.text("launch_context").unwrap_or_default(),
        }
    }
}

/// `512 → 128`, prompt and generated tokens.
pub fn workload((prompt, generate): (i64, i64)) -> String {
    format!("{prompt} → {generate}")
}

/// The end of an artifact's name: a cache key's hash, or a file's.
pub fn artifact_short(name: &str) -> String {
    name.rsplit('-').find(|piece| !piece.is_empty()).unwrap_or(name).chars().take(8).collect()
}

/// `a, b and c`.
pub fn listed<T: AsRef<str>>(names: &[T]) -> String {
    match names {
        [] => String::new(),
        [one] => one.as_ref().to_owned(),
        [most @ .., last] => format!("{} and {}", most.iter().map(AsRef::as_ref).collect::<Vec<_>>().join(", "), last.as_ref()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_order_the_classes() {
        assert_eq!(["fp32", "bf16", "w8a16", "q4_0", "w4", "int8", "native"].map(bits), [32, 16, 8, 4, 4, 8, 0]);
    }

    #[test]
    fn what_is_drawn_gives_each_backend_its_turn() {
        let all = ["a1", "a2", "a3", "b1", "b2", "c1"];
        let (kept, words) = readable(&all, 4, |item| &item[..1], "lines");
        assert_eq!(kept, [&"a1", &"a2", &"b1", &"c1"]);
        assert!(words.contains("4 of 6 lines"));
        assert_eq!(readable(&all, 6, |item| &item[..1], "lines").1, "");
    }

    #[test]
    fn names_are_cut_to_what_tells_them_apart() {
        assert_eq!(artifact_short("qnn-context-c8461712e6a62232"), "c8461712");
        assert_eq!(artifact_short("9f2c51d0aa34"), "9f2c51d0");
        assert_eq!(listed(&["a", "b", "c"]), "a, b and c");
    }
}
