//! The rules over the operations of a profile.

use std::collections::BTreeMap;

use bench_backend_api::{Layer, ValueMeans};

use super::rules::{By, ENDING, Kind, OTHER, RULES};
use super::words::words;

/// What an operation is in the model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Mapped {
    /// Number of its transformer block, as its name counts.
    pub block: Option<u32>,
    /// Its part of the model, of a language model only; `other` when no rule knows it.
    pub part: Option<&'static str>,
    /// What told the part.
    pub part_by: Option<By>,
    /// Its kind, the same for every framework.
    pub kind: Option<&'static Kind>,
}

/// Maps the operations of a profile, in their order. Only a model that generates has parts and blocks: names of other networks count layers too.
pub fn map(layers: &[Layer], generates: bool) -> Vec<Mapped> {
    let mut mapped: Vec<Mapped> = layers.iter().map(|layer| named(layer, generates)).collect();
    let mut graphs: BTreeMap<[&str; 3], Vec<usize>> = BTreeMap::new();
    for (at, layer) in layers.iter().enumerate().filter(|(_, layer)| generates && !is_type(layer)) {
        graphs.entry([&layer.graph, &layer.phase, &layer.method]).or_default().push(at);
    }
    for graph in graphs.values() {
        if in_order(layers, graph) {
            // Forwards for what has somebody before it, backwards for the first ones.
            adopt(&mut mapped, graph.iter());
            adopt(&mut mapped, graph.iter().rev());
        }
        for &at in graph {
            mapped[at].part.get_or_insert(OTHER);
        }
    }
    mapped
}

/// A row for all operations of a type: they belong to many parts.
fn is_type(layer: &Layer) -> bool {
    layer.value_means == Some(ValueMeans::WallTimeOfType)
}

fn named(layer: &Layer, generates: bool) -> Mapped {
    let whole = words(without_id(&layer.name));
    let kind = RULES.kind(&whole, layer.op_type.as_deref());
    if !generates || is_type(layer) {
        return Mapped { kind, ..Mapped::default() };
    }
    let made = made(&layer.name).map(words);
    let texts = || made.iter().chain([&whole]);
    let block = texts().find_map(|text| RULES.block(text));
    let (part, part_by) = texts().find_map(|text| RULES.part(text, layer.op_type.as_deref())).unzip();
    let nameless = block.is_none() && RULES.is_anonymous(&whole);
    Mapped { block, part: part.or((!nameless).then_some(OTHER)), part_by, kind }
}

/// Whether a profile lists operations as they run: a table sorted by name or by cost says nothing about neighbours.
fn in_order(layers: &[Layer], graph: &[usize]) -> bool {
    let sorted = |by: &dyn Fn(&Layer, &Layer) -> bool| graph.windows(2).all(|pair| by(&layers[pair[0]], &layers[pair[1]]));
    let by_cost = |fits: fn(f64, f64) -> bool| sorted(&|a, b| a.value.zip(b.value).is_some_and(|(a, b)| fits(a, b)));
    !(sorted(&|a, b| a.name <= b.name) || by_cost(|a, b| a <= b) || by_cost(|a, b| a >= b))
}

/// Gives operations without a name the block and part of the one before them.
fn adopt<'a>(mapped: &mut [Mapped], graph: impl Iterator<Item = &'a usize>) {
    let mut before: Option<Mapped> = None;
    for &at in graph {
        let op = &mut mapped[at];
        if let (None, Some(neighbour)) = (op.part, before) {
            let heavy = op.kind.is_some_and(|kind| kind.heavy);
            op.part = match neighbour.part {
                part if !heavy => part,
                Some(part) if part == ENDING.0 && neighbour.block.is_none() => Some(ENDING.1),
                _ => continue,
            };
            (op.block, op.part_by) = (neighbour.block, Some(By::Neighbour));
        }
        if op.part.is_some() {
            before = Some(*op);
        }
    }
}

/// A name without the number that QNN gives every operation: `softmax:OpId_82`.
fn without_id(name: &str) -> &str {
    match name.rsplit_once("OpId_") {
        Some((before, id)) if id.bytes().all(|b| b.is_ascii_digit()) => before.trim_end_matches([':', ' ']),
        _ => name,
    }
}

/// What ggml says that an operation makes: C of `A x B -> C (dims)`.
fn made(name: &str) -> Option<&str> {
    let made = name.split_once(" -> ")?.1;
    Some(made.split([' ', '(']).next().unwrap_or(made)).filter(|made| !made.is_empty())
}
