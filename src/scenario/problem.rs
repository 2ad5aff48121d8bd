//! What is wrong with a scenario: every problem of its files at once, each with its place and a way out.

use std::{fmt, ops::Range, sync::Arc};

use serde::Serialize;

use super::source::SourceText;
use crate::safe::{printable, visible};

/// More problems than this help nobody; the rest is counted.
pub const MAX_PROBLEMS: usize = 100;

/// Whether a problem stops the scenario.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The scenario can't be used.
    Error,
    /// The scenario can be used, and probably says something else than was meant.
    Warning,
}

/// One problem. Serialized it is `severity, file, line, column, message, help`.
#[derive(Debug, Clone, Serialize)]
pub struct Problem {
    /// Whether it stops the scenario.
    pub severity: Severity,
    /// The file, which need not be the scenario itself: a geometry file's problems are reported there.
    pub file: String,
    /// Line from 1; absent when the file could not be read at all.
    pub line: Option<usize>,
    /// Column from 1, in characters.
    pub column: Option<usize>,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub help: Option<String>,
    #[serde(skip)]
    pub(super) span: Range<usize>,
    #[serde(skip)]
    pub(super) source: Option<Arc<SourceText>>,
}
impl Problem {
    /// A problem with a file as a whole.
    pub fn of_file(file: &str, message: &str, help: Option<String>) -> Self {
        let (file, message, help) = (printable(file), visible(message), help.map(|help| visible(&help)));
        Self { severity: Severity::Error, file, line: None, column: None, message, help, span: 0..0, source: None }
    }

    /// `file:line:column`, as editors and terminals understand it.
    pub fn place(&self) -> String {
        match (self.line, self.column) {
            (Some(line), Some(column)) => format!("{}:{line}:{column}", self.file),
            _ => self.file.clone(),
        }
    }
}
impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place(), self.message)?;
        self.help.iter().try_for_each(|h| write!(f, " ({h})"))
    }
}
impl std::error::Error for Problem {}

/// All problems of a scenario, in the order of the file. [`fmt::Display`] is one line a problem; [`Problems::render`] shows the
/// text with the place underlined.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Problems {
    /// The scenario file as it was named.
    pub file: String,
    /// The problems.
    pub problems: Vec<Problem>,
    /// Problems beyond the first hundred.
    pub omitted: usize,
}
impl Problems {
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.problems.is_empty()
    }
}
impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, problem) in self.problems.iter().enumerate() {
            write!(f, "{}{problem}", if i == 0 { "" } else { "\n" })?;
        }
        if self.omitted > 0 {
            write!(f, "\nand {} more", self.omitted)?;
        }
        Ok(())
    }
}
impl std::error::Error for Problems {}

/// Gathers problems while a scenario is checked.
#[derive(Debug)]
pub struct Collector {
    source: Arc<SourceText>,
    errors: Vec<Problem>,
    warnings: Vec<Problem>,
}
impl Collector {
    /// Problems of one file's text.
    pub fn new(source: Arc<SourceText>) -> Self {
        Self { source, errors: Vec::new(), warnings: Vec::new() }
    }

    /// Adds an error.
    pub fn error(&mut self, span: Range<usize>, message: impl AsRef<str>, help: impl Into<Option<String>>) {
        let problem = self.problem(Severity::Error, span, message.as_ref(), help.into());
        self.errors.push(problem);
    }

    /// Adds a warning.
    pub fn warning(&mut self, span: Range<usize>, message: impl AsRef<str>, help: impl Into<Option<String>>) {
        let problem = self.problem(Severity::Warning, span, message.as_ref(), help.into());
        self.warnings.push(problem);
    }

    /// Adds the errors found in another file.
    pub fn adopt(&mut self, other: Self) {
        self.errors.extend(other.errors);
        self.warnings.extend(other.warnings);
    }

    /// Whether an error was found.
    pub fn failed(&self) -> bool {
        !self.errors.is_empty()
    }

    /// The warnings, or the errors followed by the warnings.
    pub fn finish(self) -> (Problems, bool) {
        let failed = self.failed();
        let Self { source, mut errors, mut warnings } = self;
        let key = |p: &Problem| (p.file != source.name(), p.file.clone(), p.span.start);
        errors.sort_by_key(key);
        warnings.sort_by_key(key);
        errors.append(&mut warnings);
        let omitted = errors.len().saturating_sub(MAX_PROBLEMS);
        errors.truncate(MAX_PROBLEMS);
        (Problems { file: source.name().to_owned(), problems: errors, omitted }, failed)
    }

    fn problem(&self, severity: Severity, span: Range<usize>, message: &str, help: Option<String>) -> Problem {
        let span = self.source.clamp(&span);
        let (line, column) = self.source.position(span.start);
        let source = Some(Arc::clone(&self.source));
        // They quote the file, and names of others.
        let (message, help) = (visible(message), help.map(|help| visible(&help)));
        Problem { severity, file: self.source.name().to_owned(), line: Some(line), column: Some(column), message, help, span, source }
    }
}
