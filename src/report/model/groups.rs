//! Which cells may stand side by side: never two classes, devices or quantisations in one set, never two scopes or methods of TTFT in one chart.

use std::collections::{BTreeMap, BTreeSet};

use crate::report::load::{Cell, Run};

/// The axes that a cell may have beside prompt and generated length.
pub const AXES: [(&str, &str); 6] =
    [("context", "context"), ("kv", "KV"), ("batch", "batch"), ("threads", "threads"), ("perf_profile", "profile"), ("variant", "variant")];

/// Colour of each backend on this page: by the order of the names, so that all runs of a page agree.
#[derive(Debug, Default)]
pub struct Colours(BTreeMap<String, usize>);

impl Colours {
    /// Colours for all backends of the runs.
    pub fn of(runs: &[Run]) -> Self {
        // What was measured comes first: a backend that is only ever skipped must not use up a colour that is easy to tell.
        let cells = || runs.iter().flat_map(|run| &run.cells);
        let measured: BTreeSet<&str> = cells().filter(|cell| cell.counts()).map(|cell| cell.backend.as_str()).collect();
        let others: BTreeSet<&str> = cells().map(|cell| cell.backend.as_str()).filter(|name| !measured.contains(name)).collect();
        let names = measured.into_iter().chain(others);
        Self(names.enumerate().map(|(at, name)| (name.to_owned(), at)).collect())
    }

    /// The number of a backend's colour; one without a cell gets the next free one.
    pub fn get(&self, backend: &str) -> usize {
        self.0.get(backend).copied().unwrap_or(self.0.len())
    }
}

/// Cells of one class, device, model and quantisation.
pub struct Group<'a> {
    /// Model and quantisation.
    pub model: &'a str,
    /// Class of the quantisation.
    pub quant: &'a str,
    /// By workload, then backend, then id: an order that ranks nothing.
    pub cells: Vec<&'a Cell>,
    /// Axes whose values differ between the cells.
    pub varied: Vec<(&'static str, &'static str)>,
}

/// The panels of a run: class and device, the real devices before the PC and the PC before the emulator.
pub fn panels(run: &Run) -> Vec<(&str, &str)> {
    let rank = |class: &str| ["phone", "board", "pc", "emulator"].iter().position(|known| *known == class).unwrap_or(4);
    let mut found: Vec<(&str, &str)> = run.cells.iter().map(|cell| (cell.class.as_str(), cell.key.device.as_str())).collect();
    found.sort_by_key(|(class, device)| (rank(class), *class, *device));
    found.dedup();
    found
}

/// The sets of a panel.
pub fn groups<'a>(run: &'a Run, class: &str, device: &str) -> Vec<Group<'a>> {
    let mut sets: BTreeMap<(&str, &str), Vec<&Cell>> = BTreeMap::new();
    for cell in run.cells.iter().filter(|cell| cell.class == class && cell.key.device == device) {
        sets.entry((&cell.model, &cell.quant)).or_default().push(cell);
    }
    let mut found = Vec::new();
    for ((model, quant), mut cells) in sets {
        cells.sort_by_key(|cell| (cell.prompt, cell.generate, &cell.backend, &cell.key));
        let varied = AXES.into_iter().filter(|(column, _)| varies(&cells, column)).collect();
        found.push(Group { model, quant, cells, varied });
    }
    found
}

/// Whether two cells of one backend differ in this axis: only then is it needed to tell rows apart.
fn varies(cells: &[&Cell], column: &str) -> bool {
    cells.iter().any(|a| cells.iter().any(|b| a.backend == b.backend && a.text(column) != b.text(column)))
}

impl<'a> Group<'a> {
    /// Cells that count, by how their first token was timed: the subsets within which figures may be compared.
    pub fn comparable(&self) -> Vec<(Timing<'a>, Vec<&'a Cell>)> {
        let mut subsets: BTreeMap<Timing, Vec<&Cell>> = BTreeMap::new();
        for cell in self.cells.iter().filter(|cell| cell.counts()) {
            subsets.entry(Timing::of(cell)).or_default().push(cell);
        }
        subsets.into_iter().collect()
    }

    /// The axes that tell this cell from its neighbours, in words.
    pub fn axes(&self, cell: &Cell) -> String {
        let named = self.varied.iter().filter_map(|(column, word)| cell.text(column).map(|value| format!("{word} {value}")));
        named.collect::<Vec<_>>().join(", ")
    }

    /// Backend, workload and axes in one line.
    pub fn label(&self, cell: &Cell) -> String {
        let axes = self.axes(cell);
        let comma = if axes.is_empty() { "" } else { ", " };
        format!("{} {}{comma}{axes}", cell.backend, workload_short(cell))
    }
}

/// Scope and method of a TTFT.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timing<'a> {
    /// ids or text.
    pub scope: &'a str,
    /// token_event, runtime_reported, derived or composed.
    pub method: &'a str,
}

impl<'a> Timing<'a> {
    /// That of a cell.
    pub fn of(cell: &'a Cell) -> Self {
        Self { scope: cell.text("ttft_scope").unwrap_or("unknown"), method: cell.text("ttft_method").unwrap_or("unknown") }
    }

    /// In words.
    pub fn words(self) -> String {
        let scope = match self.scope {
            "ids" => "from token ids",
            "text" => "from text, tokenisation included",
            _ => "start of the clock unknown",
        };
        let method = match self.method {
            "token_event" => "timed at the token's arrival",
            "runtime_reported" => "as the runtime reports it",
            "derived" => "derived from other figures",
            "composed" => "composed from graph times, an upper bound",
            _ => "method unknown",
        };
        format!("{scope}, {method}")
    }
}

/// `512 → 128`.
pub fn workload(cell: &Cell) -> String {
    format!("{} → {}", cell.prompt, cell.generate)
}

/// `p512 g128`, where room is short.
pub fn workload_short(cell: &Cell) -> String {
    format!("p{} g{}", cell.prompt, cell.generate)
}
