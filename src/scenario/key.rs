//! The keys that tell cells apart, for `exclude` and for `--only`.

use std::{collections::BTreeMap, fmt};

use bench_backend_api::{Axis, Cell, Setting};

/// A key by which cells are selected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    /// Id of the backend.
    Backend,
    /// Name of the model.
    Model,
    /// Class of the quantisation.
    Quant,
    /// Tokens that are prefilled.
    PromptTokens,
    /// Tokens that come out.
    GenTokens,
    /// An optional axis.
    Axis(Axis),
}
impl Key {
    /// Every key, in the order of the matrix.
    pub fn all() -> impl Iterator<Item = Self> {
        [Self::Backend, Self::Model, Self::Quant, Self::PromptTokens, Self::GenTokens]
            .into_iter()
            .chain(Axis::ALL.iter().map(|a| Self::Axis(*a)))
    }

    /// The key as scenarios write it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Backend => "backend",
            Self::Model => "model",
            Self::Quant => "quant",
            Self::PromptTokens => "prompt-tokens",
            Self::GenTokens => "gen-tokens",
            Self::Axis(axis) => axis.as_str(),
        }
    }

    /// The key that a word names.
    pub fn parse(word: &str) -> Option<Self> {
        Self::all().find(|k| k.as_str() == word)
    }
}
impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// Values by key: what agrees with one value of every key is selected. Without a key everything is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selector(pub BTreeMap<Key, Vec<String>>);
impl Selector {
    /// Whether something whose texts `has` compares agrees with every key.
    pub fn selects(&self, has: impl Fn(Key, &str) -> bool) -> bool {
        self.0.iter().all(|(key, values)| values.iter().any(|v| has(*key, v)))
    }

    /// Whether a cell agrees with every key.
    pub fn selects_cell(&self, cell: &Cell) -> bool {
        self.selects(|key, value| cell_has(cell, key, value))
    }
}

/// The value that a cell has, empty for an axis that it does not name.
pub fn value_of(cell: &Cell, key: Key) -> String {
    match key {
        Key::Backend => cell.backend.clone(),
        Key::Model => cell.model.name.clone(),
        Key::Quant => cell.quant.as_str().to_owned(),
        Key::PromptTokens => cell.workload.prompt_tokens().to_string(),
        Key::GenTokens => cell.workload.gen_tokens().to_string(),
        Key::Axis(Axis::Unit) => cell.unit.as_str().to_owned(),
        Key::Axis(Axis::Context) => cell.model.context.to_string(),
        Key::Axis(axis) => cell.axes.get(&axis).map(ToString::to_string).unwrap_or_default(),
    }
}

/// Whether a cell has a value. An axis that the cell does not name has its default: the `unit` and the `context` that stand in the cell, a batch of 1.
pub fn cell_has(cell: &Cell, key: Key, value: &str) -> bool {
    match key {
        Key::Backend => cell.backend == value,
        Key::Model => cell.model.name == value,
        Key::Quant => cell.quant.as_str() == value,
        Key::PromptTokens => cell.workload.prompt_tokens().to_string() == value,
        Key::GenTokens => cell.workload.gen_tokens().to_string() == value,
        Key::Axis(Axis::Unit) => cell.unit.as_str() == value,
        Key::Axis(Axis::Context) => cell.model.context.to_string() == value,
        Key::Axis(axis) => match cell.axes.get(&axis) {
            Some(Setting::Asked(v)) => v == value,
            Some(fixed @ Setting::Fixed(v)) => v == value || fixed.to_string() == value,
            Some(Setting::NotApplicable) => value == "n/a",
            None => axis == Axis::Batch && value == "1",
        },
    }
}
