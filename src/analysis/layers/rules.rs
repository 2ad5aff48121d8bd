//! `parts.toml` as rules.

use std::{cmp::Reverse, collections::HashMap, sync::LazyLock};

use serde::Deserialize;

use super::words::{Patterns, is_number, words};

/// What a part or a kind was told by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// The operation's type.
    Type,
    /// Its name.
    Name,
    /// It has no name: the operation before it in the graph, or the first behind it that has one.
    Neighbour,
}
impl By {
    /// The word of the tables.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Type => "type",
            Self::Name => "name",
            Self::Neighbour => "neighbour",
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    blocks: Vec<String>,
    anonymous: Vec<String>,
    part: Vec<PartRule>,
    kind: Vec<KindRule>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PartRule {
    part: String,
    #[serde(default)]
    types: Vec<String>,
    names: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct KindRule {
    kind: String,
    class: Class,
    #[serde(default)]
    heavy: bool,
    names: Vec<String>,
}

/// Whether an operation works on data or moves it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Class {
    /// It computes something of the model.
    Compute,
    /// It lays data out anew, copies it or changes its number format.
    Movement,
}
impl Class {
    /// The word of the tables.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Compute => "compute",
            Self::Movement => "movement",
        }
    }
}

/// A kind of operation: `matmul`, `transpose`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kind {
    /// Its word.
    pub name: String,
    /// Its class.
    pub class: Class,
    /// Work that is a part of its own.
    pub heavy: bool,
}

/// All rules. A part or a kind is named by its place in the file.
pub struct Rules {
    blocks: Patterns,
    anonymous: Patterns,
    parts: Vec<String>,
    part_types: HashMap<String, usize>,
    part_names: Patterns,
    kinds: Vec<Kind>,
    kind_names: Patterns,
}

/// The rules that come with this version.
pub static RULES: LazyLock<Rules> = LazyLock::new(|| Rules::read(include_str!("parts.toml")).expect("parts.toml is checked by a test"));

/// The part of what no rule knows.
pub const OTHER: &str = "other";
/// The parts that end a decoder: the matrix behind the last norm.
pub const ENDING: (&str, &str) = ("norm", "lm_head");

impl Rules {
    fn read(text: &str) -> Result<Self, toml::de::Error> {
        let file: File = toml::from_str(text)?;
        let part_names = file.part.iter().enumerate().flat_map(|(rule, part)| part.names.iter().map(move |name| (rule, name)));
        let kind_names = file.kind.iter().enumerate().flat_map(|(rule, kind)| kind.names.iter().map(move |name| (rule, name)));
        let mut part_types = HashMap::new();
        for (rule, part) in file.part.iter().enumerate() {
            for name in &part.types {
                part_types.entry(name.clone()).or_insert(rule);
            }
        }
        Ok(Self {
            blocks: Patterns::of(file.blocks.iter().enumerate()),
            anonymous: Patterns::of(file.anonymous.iter().map(|name| (0, name))),
            part_types,
            part_names: Patterns::of(part_names),
            kind_names: Patterns::of(kind_names),
            parts: file.part.into_iter().map(|rule| rule.part).collect(),
            kinds: file.kind.into_iter().map(|rule| Kind { name: rule.kind, class: rule.class, heavy: rule.heavy }).collect(),
        })
    }

    /// The transformer block that a name tells: the number in the first of the patterns.
    pub fn block(&self, name: &[String]) -> Option<u32> {
        let place = self.blocks.all(name).min_by_key(|place| (place.rule, place.begin))?;
        name[place.begin..place.end].iter().find(|word| is_number(word))?.parse().ok()
    }

    /// The part that type or name tells, the earlier rule of the two, and which of them it was.
    pub fn part(&self, name: &[String], op_type: Option<&str>) -> Option<(&str, By)> {
        let typed = op_type.and_then(|op_type| self.part_types.get(op_type)).map(|rule| (*rule, By::Type));
        let named = self.part_names.all(name).map(|place| (place.rule, By::Name));
        let (rule, by) = typed.into_iter().chain(named).min_by_key(|(rule, _)| *rule)?;
        Some((&self.parts[rule], by))
    }

    /// The kind of an operation: by its type where that is known, else by its name.
    pub fn kind(&self, name: &[String], op_type: Option<&str>) -> Option<&Kind> {
        // In a type the first word says the most: `ConvTranspose`, `MUL_MAT+ADD`. In a name the last one does: `q_proj/MatMul_output_0Reshape`.
        let typed = |text: &[String]| self.kind_names.all(text).min_by_key(|place| (place.begin, Reverse(place.end)));
        let named = || self.kind_names.all(name).max_by_key(|place| (place.end, Reverse(place.begin)));
        let place = op_type.and_then(|text| typed(&words(text))).or_else(named)?;
        Some(&self.kinds[place.rule])
    }

    /// Whether a compiler made the name up: every word of it is a number, a kind or one that compilers use.
    pub fn is_anonymous(&self, name: &[String]) -> bool {
        let mut at = 1;
        while at + 1 < name.len() {
            match self.anonymous.at(name, at).chain(self.kind_names.at(name, at)).map(|place| place.end).max() {
                Some(end) => at = end,
                None => return false,
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::{OTHER, Rules, words};

    #[test]
    fn the_rules_can_be_read_and_name_no_part_that_the_spec_does_not_know() {
        let rules = Rules::read(include_str!("parts.toml")).unwrap();
        let spec = crate::results::schema::LAYERS.columns.iter().find(|column| column.name == "part").unwrap().meaning;
        for part in rules.parts.iter().map(String::as_str).chain([OTHER]) {
            assert!(spec.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).any(|word| word == part), "{part} is not in `{spec}`");
        }
        let spec = crate::results::schema::LAYERS.columns.iter().find(|column| column.name == "op_kind").unwrap().meaning;
        for kind in &rules.kinds {
            assert!(
                spec.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).any(|word| word == kind.name),
                "{} is not in `{spec}`",
                kind.name
            );
        }
        assert!(Rules::read("blocks = []").is_err() && Rules::read("anonymous = 1").is_err());
    }

    #[test]
    fn a_name_that_says_something_is_not_anonymous() {
        let rules = &super::RULES;
        for name in ["Transpose_token_53", "BinaryOp18", "QuantizeLinear_12", "t_8_converted_UFIXED_POINT_8", "node_17", ""] {
            assert!(rules.is_anonymous(&words(name)), "{name}");
        }
        for name in ["vision/Transpose_3", "resampler", "foo-0"] {
            assert!(!rules.is_anonymous(&words(name)), "{name}");
        }
    }
}
