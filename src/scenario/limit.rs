//! Limits: what a value may be at most, or has to be at least, from the text of a scenario or preset.

use serde::{Deserialize, Serialize};

use super::{
    require::Subject,
    suggest::{self, show},
};

/// A limit, in the unit of the subject's column.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Limit {
    /// The value or less.
    AtMost(f64),
    /// The value or more.
    AtLeast(f64),
    /// This word.
    Is(String),
}

/// What is wrong with the text of a limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoLimit {
    /// In words.
    pub message: String,
    /// What to write instead.
    pub help: String,
}

impl Limit {
    /// Whether it is one that [`Limit::parse`] can give for a subject.
    pub fn fits(&self, subject: &Subject) -> bool {
        match (self, subject.source.words()) {
            (Self::Is(word), Some(words)) => words.contains(&word.as_str()),
            (Self::AtMost(value), None) => !subject.higher_is_better && value.is_finite() && *value > 0.0,
            (Self::AtLeast(value), None) => subject.higher_is_better && value.is_finite() && *value > 0.0,
            _ => false,
        }
    }

    /// It in the unit of the column.
    pub fn words(&self) -> String {
        match self {
            Self::AtMost(value) => format!("<= {value}"),
            Self::AtLeast(value) => format!(">= {value}"),
            Self::Is(word) => format!("== {word}"),
        }
    }

    /// Reads `<= 380ms`, `>= 12tok/s`, `== npu`.
    ///
    /// # Errors
    /// A text without sign, number or unit, or with those of something else.
    pub fn parse(text: &str, subject: &Subject) -> Result<Self, NoLimit> {
        let no = |message: String, help: String| Err(NoLimit { message, help });
        let text = text.trim();
        let digit = text.find(|c: char| !"<>=! ".contains(c)).unwrap_or(text.len());
        let (sign, rest) = (text[..digit].trim(), text[digit..].trim());
        if let Some(words) = subject.source.words() {
            if sign == "==" && words.contains(&rest) {
                return Ok(Self::Is(rest.to_owned()));
            }
            let help = format!("write for instance `== {}`", suggest::nearest(rest, words.iter().copied()).unwrap_or(words[0]));
            return no(format!("{} is no limit of `{}`", show(text), subject.word), help);
        }
        let (right, low_or_high) = if subject.higher_is_better { (">=", "high") } else { ("<=", "low") };
        let (own, _) = subject.units[0];
        let end = rest.find(|c: char| !(c.is_ascii_digit() || ".+-_eE".contains(c))).unwrap_or(rest.len());
        let (number, unit) = (&rest[..end], rest[end..].trim());
        let Some(value) = number.replace('_', "").parse::<f64>().ok().filter(|v| v.is_finite() && *v > 0.0) else {
            return no(format!("{} has no number above zero", show(text)), format!("write for instance `{right} 10{own}`"));
        };
        let Some((_, factor)) = subject.units.iter().find(|(word, _)| *word == unit) else {
            let known: Vec<&str> = subject.units.iter().map(|(word, _)| if word.is_empty() { "none" } else { *word }).collect();
            let message = if unit.is_empty() {
                format!("{} has no unit", show(text))
            } else {
                format!("{} is no unit of `{}`", show(unit), subject.word)
            };
            // A unit of one letter is near to every other.
            return no(message, format!("one of: {}", known.join(", ")));
        };
        if sign != right {
            let message = if matches!(sign, "<=" | ">=" | "<" | ">") {
                format!("`{}` is good when {low_or_high}", subject.word)
            } else {
                format!("{} says not what is allowed", show(text))
            };
            return no(message, format!("write `{right} {rest}`"));
        }
        let value = value * factor;
        Ok(if subject.higher_is_better { Self::AtLeast(value) } else { Self::AtMost(value) })
    }
}
