//! `parts.toml` as rules.

use std::sync::LazyLock;

use serde::Deserialize;

use super::words::{Pattern, words};

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

struct Part {
    part: String,
    types: Vec<String>,
    names: Vec<Pattern>,
}

/// All rules.
pub struct Rules {
    blocks: Vec<Pattern>,
    anonymous: Vec<Pattern>,
    parts: Vec<Part>,
    kinds: Vec<(Pattern, Kind)>,
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
        let patterns = |texts: &[String]| texts.iter().map(|text| Pattern::new(text)).collect::<Vec<_>>();
        let part = |rule: PartRule| Part { part: rule.part, types: rule.types, names: patterns(&rule.names) };
        let kind = |rule: KindRule| {
            let kind = Kind { name: rule.kind, class: rule.class, heavy: rule.heavy };
            rule.names.into_iter().map(move |name| (Pattern::new(&name), kind.clone()))
        };
        Ok(Self {
            blocks: patterns(&file.blocks),
            anonymous: patterns(&file.anonymous),
            parts: file.part.into_iter().map(part).collect(),
            kinds: file.kind.into_iter().flat_map(kind).collect(),
        })
    }

    /// The transformer block that a name tells.
    pub fn block(&self, name: &[String]) -> Option<u32> {
        self.blocks.iter().find_map(|pattern| pattern.number(name))
    }

    /// The part that type or name tells, and which of the two.
    pub fn part(&self, name: &[String], op_type: Option<&str>) -> Option<(&str, By)> {
        self.parts.iter().find_map(|rule| {
            let typed = op_type.is_some_and(|op_type| rule.types.iter().any(|known| known == op_type));
            let by = if typed { By::Type } else { By::Name };
            (typed || rule.names.iter().any(|pattern| pattern.places(name).next().is_some())).then_some((rule.part.as_str(), by))
        })
    }

    /// The kind of an operation: by its type where that is known, else by its name.
    pub fn kind(&self, name: &[String], op_type: Option<&str>) -> Option<&Kind> {
        op_type.and_then(|text| self.typed(&words(text))).or_else(|| self.named(name))
    }

    /// In a type the first word says the most: `ConvTranspose`, `MUL_MAT+ADD`.
    fn typed(&self, text: &[String]) -> Option<&Kind> {
        let found = self.kinds.iter().filter_map(|(pattern, kind)| Some((pattern.places(text).next()?, pattern.len(), kind)));
        found.min_by_key(|(begin, length, _)| (*begin, std::cmp::Reverse(*length))).map(|(.., kind)| kind)
    }

    /// In a name the last one does: `q_proj/MatMul_output_0Reshape`.
    fn named(&self, name: &[String]) -> Option<&Kind> {
        let found =
            self.kinds.iter().filter_map(|(pattern, kind)| Some((pattern.places(name).next_back()? + pattern.len(), pattern.len(), kind)));
        found.max_by_key(|(end, length, _)| (*end, *length)).map(|(.., kind)| kind)
    }

    /// Whether a compiler made the name up: every word of it is a number, a kind or one that compilers use.
    pub fn is_anonymous(&self, name: &[String]) -> bool {
        let patterns = || self.anonymous.iter().chain(self.kinds.iter().map(|(pattern, _)| pattern));
        let mut at = 1;
        while at + 1 < name.len() {
            let longest = patterns().filter(|pattern| pattern.places(&name[at..]).next() == Some(0)).map(Pattern::len).max();
            match longest {
                Some(length) => at += length,
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
        for part in rules.parts.iter().map(|rule| rule.part.as_str()).chain([OTHER]) {
            assert!(spec.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).any(|word| word == part), "{part} is not in `{spec}`");
        }
        let spec = crate::results::schema::LAYERS.columns.iter().find(|column| column.name == "op_kind").unwrap().meaning;
        for (_, kind) in &rules.kinds {
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
