//! The script's answers: `key=value`, or `key!what the device said` when something can't be had. Device output: nothing is trusted.

use std::{collections::BTreeMap, str::FromStr};

use serde::Serialize;

/// Something that a device tells, forbids, or does not have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reading<T> {
    /// What it tells.
    Value(T),
    /// It is there, and this user may not read it; the device's words.
    Denied(String),
    /// It is not there; the device's words.
    Absent(String),
}
impl<T> Reading<T> {
    /// What the device tells, if it does.
    pub const fn value(&self) -> Option<&T> {
        match self {
            Self::Value(value) => Some(value),
            Self::Denied(_) | Self::Absent(_) => None,
        }
    }

    /// Another form of what it tells; `None` is a value that makes no sense.
    pub(super) fn and_then<U>(self, odd: &str, make: impl FnOnce(T) -> Option<U>) -> Reading<U> {
        match self {
            Self::Value(value) => make(value).map_or_else(|| Reading::Absent(odd.to_owned()), Reading::Value),
            Self::Denied(words) => Reading::Denied(words),
            Self::Absent(words) => Reading::Absent(words),
        }
    }
}
impl<T> Default for Reading<T> {
    fn default() -> Self {
        Self::Absent("not asked".to_owned())
    }
}

/// Answers by key, in the order in which they came.
#[derive(Debug, Default)]
pub struct Answers<'a> {
    values: BTreeMap<&'a str, Vec<&'a str>>,
    refused: BTreeMap<&'a str, Vec<&'a str>>,
}

impl<'a> Answers<'a> {
    /// Reads the script's output. Lines without a key are left out.
    pub fn read(text: &'a str) -> Self {
        let mut out = Self::default();
        for line in text.lines() {
            let Some(at) = line.find(['=', '!']) else { continue };
            let (key, rest) = (&line[..at], line[at + 1..].trim_matches(|c: char| c.is_whitespace() || c == '\0'));
            let list = if line.as_bytes()[at] == b'=' { &mut out.values } else { &mut out.refused };
            if !rest.is_empty() {
                list.entry(key).or_default().push(rest);
            }
        }
        out
    }

    /// All values of a key.
    pub fn all(&self, key: &str) -> &[&'a str] {
        self.values.get(key).map_or(&[], Vec::as_slice)
    }

    /// The first value of a key.
    pub fn get(&self, key: &str) -> Option<&'a str> {
        self.all(key).first().copied()
    }

    /// The first value of a key, as an owned text.
    pub fn text(&self, key: &str) -> Option<String> {
        self.get(key).map(str::to_owned)
    }

    /// The first value of a key as a number. `null`, which Android's `settings` prints for what is not set, is absent.
    pub fn number<T: FromStr>(&self, key: &str) -> Option<T> {
        self.get(key)?.parse().ok()
    }

    /// A setting that is 0 or 1.
    pub fn flag(&self, key: &str) -> Option<bool> {
        match self.get(key)? {
            "0" => Some(false),
            "1" => Some(true),
            _ => None,
        }
    }

    /// The first value of a key, or why there is none: denied if anything about it was.
    pub fn reading(&self, key: &str) -> Reading<&'a str> {
        if let Some(value) = self.get(key) {
            return Reading::Value(value);
        }
        let refused = self.refused.get(key).map_or(&[][..], Vec::as_slice);
        let denied = refused.iter().find(|words| ["ermission denied", "not permitted"].iter().any(|w| words.contains(w)));
        match (denied, refused.first()) {
            (Some(words), _) => Reading::Denied(reason(words)),
            (None, Some(words)) => Reading::Absent(reason(words)),
            (None, None) => Reading::Absent("the device says nothing".to_owned()),
        }
    }

    /// [`Self::reading`] as a number.
    pub fn number_reading<T: FromStr>(&self, key: &str) -> Reading<T> {
        self.reading(key).and_then("not a number", |v| v.parse().ok())
    }

    /// Keys with a prefix, without it; values and refusals alike.
    pub fn keys_after(&self, prefix: &'a str) -> impl Iterator<Item = &'a str> {
        let mut keys: Vec<&str> = self.values.keys().chain(self.refused.keys()).filter_map(|k| k.strip_prefix(prefix)).collect();
        keys.sort_unstable();
        keys.dedup();
        keys.into_iter()
    }
}

/// The words of an error without the tool's name: `head: /x: Permission denied` is `/x: Permission denied`. Endless ones are cut.
fn reason(words: &str) -> String {
    let own = words.split_once(": ").filter(|(tool, _)| !tool.contains('/')).map_or(words, |(_, rest)| rest);
    own.chars().filter(|c| !c.is_control()).take(200).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_and_refusals() {
        let answers = Answers::read(
            "a= 1 \na=2\nb!head: /sys/x: Permission denied\nc!stat: '/y': No such file or directory\nd=\ne!x\ne!grep: /z: Operation not permitted\nnonsense\n=\n!\nf=a=b!c\n",
        );
        assert_eq!((answers.all("a"), answers.number::<u32>("a"), answers.flag("a")), (&["1", "2"][..], Some(1), Some(true)));
        assert_eq!(answers.reading("b"), Reading::Denied("/sys/x: Permission denied".to_owned()));
        assert_eq!(answers.reading("c"), Reading::Absent("'/y': No such file or directory".to_owned()));
        assert_eq!(answers.reading("d"), Reading::Absent("the device says nothing".to_owned()));
        assert_eq!(answers.reading("e"), Reading::Denied("/z: Operation not permitted".to_owned()));
        assert_eq!(answers.get("f"), Some("a=b!c"));
        assert_eq!(answers.number_reading::<u64>("f"), Reading::Absent("not a number".to_owned()));
    }

    #[test]
    fn long_and_wild_words_are_tamed() {
        let text = format!("k!{}\u{7}{}", "é".repeat(150), "x".repeat(10_000));
        let Reading::Absent(words) = Answers::read(&text).reading("k") else { panic!() };
        assert_eq!(words.chars().count(), 200);
        assert!(!words.contains('\u{7}'));
    }
}
