//! What is known of failures: tables of entries, kept as data (`failures.toml` beside the adapters, and `failures/` here for what every framework
//! can meet on a device), each entry with its source and a line in which it was seen.
//!
//! Entries stand from the cause to the consequence. A log repeats one failure in many words, so that of all its lines the one that stands first in
//! the table explains the run ([`Table::nearest`]).

mod code;
mod marks;
mod pattern;

use std::{
    cell::LazyCell,
    collections::{BTreeMap, BTreeSet},
    sync::LazyLock,
};

use serde::Deserialize;

use crate::measurement::{Failure, FailureKind, Hint};

pub use code::{Number, numbers};
pub use marks::{Heard, Mark, exit_status, settle};
pub use pattern::Pattern;

/// The shell, the linker, SELinux, memory, heat and the kernel: failures of the device, whatever runs on it.
pub const SYSTEM: &str = include_str!("../failures/system.toml");

/// The way to the compute DSP: FastRPC, the libraries that are loaded there, its restarts. For everything that runs on the NPU.
pub const DSP: &str = include_str!("../failures/dsp.toml");

/// Both together: what a program of any kind can meet.
pub static DEVICE: LazyLock<Table> = LazyLock::new(|| Table::embedded(&[SYSTEM, DSP]));

/// What an entry says of figures that were printed beside its line.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Weight {
    /// They are void: the run failed.
    #[default]
    Hard,
    /// Nothing. It is a consequence, or a remark, and a failure only where nothing else tells of one.
    Soft,
    /// They are another unit's: the one that was asked for was not reached.
    Elsewhere,
}

/// One thing that goes wrong.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Entry {
    /// Its name, unique in all tables that are used together.
    pub id: String,
    /// Patterns, one of which a line matches.
    #[serde(default)]
    pub text: Vec<Pattern>,
    /// Error codes, one of which a line reports ([`Number::is`]).
    #[serde(default)]
    pub codes: Vec<String>,
    /// Who is to blame.
    pub kind: FailureKind,
    /// What it does to figures.
    #[serde(default)]
    pub weight: Weight,
    /// The line tells how the process that it names (`{pid}`) came to its end.
    #[serde(default)]
    pub ends_process: bool,
    /// The likely cause; `{name}` is what the pattern kept.
    pub cause: String,
    /// What to do about it.
    pub next_step: String,
    /// Where this is known from: repository and issue, the title of a document, a file of a public repository.
    pub source: String,
    /// Lines of real runs, or of their form.
    pub samples: Vec<String>,
}

impl Entry {
    /// Cause and next step in one sentence.
    pub fn hint(&self) -> Hint {
        format!("{}; {}", self.cause, self.next_step)
    }
}

/// An entry that a line matched.
#[derive(Debug, Clone, PartialEq)]
pub struct Found<'t> {
    /// The entry.
    pub entry: &'t Entry,
    /// Its place in the table: the lower, the nearer to the cause.
    pub rank: usize,
    /// What the pattern kept, by name.
    pub kept: BTreeMap<&'t str, String>,
}

impl Found<'_> {
    /// Cause and next step in one sentence, with what the line says.
    pub fn hint(&self) -> Hint {
        self.kept.iter().fold(self.entry.hint(), |text, (name, kept)| text.replace(&format!("{{{name}}}"), kept))
    }

    /// The failure that a line with this message is.
    pub fn failure(&self, message: impl Into<String>) -> Failure {
        Failure { kind: self.entry.kind, message: message.into(), hint: Some(self.hint()) }
    }

    /// The process that the line names.
    pub fn pid(&self) -> Option<i32> {
        self.kept.get("pid")?.parse().ok()
    }
}

/// Entries in the order in which they explain.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Table {
    entries: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wire {
    entry: Vec<Entry>,
}

impl Table {
    /// Reads tables and puts them one behind the other, soft entries last.
    ///
    /// # Errors
    /// What TOML or a pattern is wrong, with the place.
    pub fn parse(texts: &[&str]) -> Result<Self, String> {
        let mut entries = Vec::new();
        for text in texts {
            let Wire { entry } = toml::from_str(text).map_err(|error| error.to_string())?;
            entries.extend(entry);
        }
        entries.sort_by_key(|entry: &Entry| entry.weight == Weight::Soft);
        Ok(Self { entries })
    }

    /// The same for tables that are part of this program; every one of them is read by a test of its crate.
    pub fn embedded(texts: &[&str]) -> Self {
        Self::parse(texts).expect("a table of this program is valid")
    }

    /// The first entry that a line matches.
    pub fn find(&self, line: &str) -> Option<Found<'_>> {
        let lower = line.to_ascii_lowercase();
        let numbers = LazyCell::new(|| numbers(line));
        self.entries.iter().enumerate().find_map(|(rank, entry)| {
            let kept = entry.text.iter().find_map(|pattern| pattern.matches(line, &lower)).or_else(|| {
                let reported = entry.codes.iter().any(|code| numbers.iter().any(|number| number.is(code)));
                reported.then(BTreeMap::new)
            })?;
            Some(Found { entry, rank, kept })
        })
    }

    /// What explains several lines: the entry nearest to the cause that any of them matches.
    pub fn nearest<'l>(&self, lines: impl IntoIterator<Item = &'l str>) -> Option<Found<'_>> {
        lines.into_iter().filter_map(|line| self.find(line)).min_by_key(|found| found.rank)
    }

    /// What explains a failure, by its message: lines of a log, joined with `; `.
    pub fn explain(&self, failure: &Failure) -> Option<Found<'_>> {
        self.nearest(failure.message.split("; "))
    }

    /// Whether a number is a code of an entry, wherever it stands.
    pub fn knows(&self, number: &Number<'_>) -> bool {
        self.entries.iter().flat_map(|entry| &entry.codes).any(|code| number.is(code))
    }

    /// The entry of this name.
    pub fn get(&self, id: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.id == id)
    }

    /// What is wrong with the table as data: every crate that has one insists in a test on nothing.
    pub fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        let mut ids = BTreeSet::new();
        for entry in &self.entries {
            let id = &entry.id;
            let mut bad = |words: String| problems.push(format!("{id}: {words}"));
            if !ids.insert(id) {
                bad("the id stands twice".to_owned());
            }
            if entry.text.is_empty() && entry.codes.is_empty() {
                bad("it matches nothing".to_owned());
            }
            if entry.cause.len() < 10 || entry.next_step.len() < 10 || entry.source.len() < 5 || entry.samples.is_empty() {
                bad("a cause, a next step, a source and a sample are needed".to_owned());
            }
            let known = |name: &str| entry.text.iter().all(|pattern| pattern.names().any(|kept| kept == name)) && entry.codes.is_empty();
            for name in named(&entry.cause).chain(named(&entry.next_step)).filter(|name| !known(name)) {
                bad(format!("`{{{name}}}` is not kept by all its patterns"));
            }
            for sample in &entry.samples {
                match self.find(sample) {
                    Some(found) if found.entry.id == *id => {}
                    Some(found) => bad(format!("its sample is explained by {} instead: {sample}", found.entry.id)),
                    None => bad(format!("its sample is not matched: {sample}")),
                }
            }
        }
        problems
    }
}

/// The names in braces of a text.
fn named(text: &str) -> impl Iterator<Item = &str> {
    text.split('{').skip(1).filter_map(|part| part.split_once('}')).map(|(name, _)| name)
}

#[cfg(test)]
mod tests;
