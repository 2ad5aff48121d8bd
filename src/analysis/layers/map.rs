//! The rules over the operations of a profile.

use std::collections::HashMap;

use bench_backend_api::Layer;

use super::rules::{By, Class, OTHER, RULES};
use super::words::words;

/// What an operation is in the model.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mapped {
    /// Number of its transformer block, as its name counts.
    pub block: Option<u32>,
    /// Its part of the model, of a language model only; `other` when no rule knows it.
    pub part: Option<&'static str>,
    /// What told the part.
    pub part_by: Option<By>,
    /// Kind of operation, the same word for every framework.
    pub kind: Option<&'static str>,
    /// Whether it computes or moves data.
    pub class: Option<Class>,
}

/// Maps the operations of a profile, in their order. Only a model that generates has parts and blocks: names of other networks count layers too.
pub fn map(layers: &[Layer], generates: bool) -> Vec<Mapped> {
    let mut mapped: Vec<Mapped> = layers.iter().map(|layer| named(layer, generates)).collect();
    if generates {
        // Forwards for what has somebody before it, backwards for the rest.
        adopt(layers, &mut mapped, 0..layers.len());
        adopt(layers, &mut mapped, (0..layers.len()).rev());
        for op in mapped.iter_mut().filter(|op| op.part.is_none()) {
            op.part = Some(OTHER);
        }
    }
    mapped
}

fn named(layer: &Layer, generates: bool) -> Mapped {
    let whole = words(without_id(&layer.name));
    let kind = RULES.kind(&whole, layer.op_type.as_deref());
    let mut op = Mapped { kind: kind.map(|kind| kind.name.as_str()), class: kind.map(|kind| kind.class), ..Mapped::default() };
    if !generates {
        return op;
    }
    let made = made(&layer.name).map(words);
    let texts = || made.iter().chain([&whole]);
    op.block = texts().find_map(|text| RULES.block(text));
    let told = texts().find_map(|text| RULES.part(text, layer.op_type.as_deref()));
    (op.part, op.part_by) = told.unzip();
    if told.is_none() && (op.block.is_some() || !RULES.is_anonymous(&whole)) {
        op.part = Some(OTHER);
    }
    op
}

/// Gives operations without a name the block and part of the one before them in the same graph.
fn adopt(layers: &[Layer], mapped: &mut [Mapped], order: impl Iterator<Item = usize>) {
    let mut last: HashMap<(&str, &str, &str), usize> = HashMap::new();
    for at in order {
        let layer = &layers[at];
        let graph = (layer.graph.as_str(), layer.phase.as_str(), layer.method.as_str());
        if mapped[at].part.is_some() {
            last.insert(graph, at);
        } else if let Some(&neighbour) = last.get(&graph) {
            let (block, part) = (mapped[neighbour].block, mapped[neighbour].part);
            mapped[at] = Mapped { block, part, part_by: Some(By::Neighbour), ..mapped[at].clone() };
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
