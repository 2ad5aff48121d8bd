//! `--only backend=genie,quant=w4a16`: a part of the plan.

use std::collections::BTreeMap;

use bench_backend_api::{Quant, Unit};

use super::{
    key::{Key, Selector},
    plan::PlannedCell,
    suggest,
};

/// Cells that a user picks. Values of the same key are alternatives; different keys must all agree.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    selector: Selector,
    ids: Vec<String>,
}

/// Why a filter can't be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FilterError {
    /// A part without `=`, or without a value.
    #[error("`{part}` is not key=value: write for instance backend=genie,quant=w4a16")]
    NotAPair {
        /// The part.
        part: String,
    },
    /// A key that cells do not have.
    #[error("unknown key `{key}`: {help}")]
    UnknownKey {
        /// The key.
        key: String,
        /// The nearest one, or all.
        help: String,
    },
    /// A value that its key can't have.
    #[error("`{value}` is not a value of `{key}`: {help}")]
    BadValue {
        /// The key.
        key: &'static str,
        /// The value.
        value: String,
        /// The nearest one, or all.
        help: String,
    },
}

impl Filter {
    /// Reads `key=value` pairs with commas between them: the keys of the matrix, and `cell` for a cell's id or the start of one.
    ///
    /// # Errors
    /// A part that is no pair, an unknown key, a value outside its key's list.
    pub fn parse(text: &str) -> Result<Self, FilterError> {
        let mut keys: BTreeMap<Key, Vec<String>> = BTreeMap::new();
        let mut ids = Vec::new();
        for part in text.split(',').map(str::trim) {
            let pair = part.split_once('=').map(|(k, v)| (k.trim(), v.trim())).filter(|(k, v)| !k.is_empty() && !v.is_empty());
            let Some((word, value)) = pair else { return Err(FilterError::NotAPair { part: part.to_owned() }) };
            if word == "cell" {
                ids.push(value.to_owned());
                continue;
            }
            let Some(key) = Key::parse(word) else {
                let known: Vec<&str> = Key::all().map(Key::as_str).chain(["cell"]).collect();
                return Err(FilterError::UnknownKey { key: word.to_owned(), help: suggest::help(word, &known) });
            };
            check(key, value)?;
            keys.entry(key).or_default().push(value.to_owned());
        }
        Ok(Self { selector: Selector(keys), ids })
    }

    /// Whether a cell is picked.
    pub fn selects(&self, planned: &PlannedCell) -> bool {
        (self.ids.is_empty() || self.ids.iter().any(|id| planned.id.starts_with(id.as_str()))) && self.selector.selects_cell(&planned.cell)
    }
}

fn check(key: Key, value: &str) -> Result<(), FilterError> {
    let bad = |help: String| Err(FilterError::BadValue { key: key.as_str(), value: value.to_owned(), help });
    let words: Vec<&str> = match key {
        Key::Quant => Quant::ALL.iter().map(|q| q.as_str()).collect(),
        Key::Axis(bench_backend_api::Axis::Unit) => Unit::ALL.iter().map(|u| u.as_str()).collect(),
        Key::PromptTokens | Key::GenTokens => {
            return if value.parse::<u32>().is_ok() { Ok(()) } else { bad("it is a whole number".to_owned()) };
        }
        _ => return Ok(()),
    };
    if words.contains(&value) { Ok(()) } else { bad(suggest::help(value, &words)) }
}
