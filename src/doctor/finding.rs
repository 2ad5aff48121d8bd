//! What a check is and what it says.

use serde::Serialize;

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// As it should be.
    Ok,
    /// Worth knowing.
    Note,
    /// A run goes on, with fewer cells or figures of less worth.
    Warning,
    /// A run would stop, or what it is about would fail.
    Error,
}

impl Severity {
    /// As it is printed.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// What one check says about one thing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Said {
    /// How bad it is.
    pub severity: Severity,
    /// What was found.
    pub what: String,
    /// The command or step that mends it.
    pub fix: Option<String>,
}

impl Said {
    /// As it should be.
    pub fn ok(what: impl Into<String>) -> Self {
        Self { severity: Severity::Ok, what: what.into(), fix: None }
    }
    /// Worth knowing; nothing has to be done.
    pub fn note(what: impl Into<String>) -> Self {
        Self { severity: Severity::Note, what: what.into(), fix: None }
    }
    /// Something that can be mended, or that should be.
    pub fn with(severity: Severity, what: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { severity, what: what.into(), fix: Some(fix.into()) }
    }
    /// See [`Severity::Warning`].
    pub fn warning(what: impl Into<String>, fix: impl Into<String>) -> Self {
        Self::with(Severity::Warning, what, fix)
    }
    /// See [`Severity::Error`].
    pub fn error(what: impl Into<String>, fix: impl Into<String>) -> Self {
        Self::with(Severity::Error, what, fix)
    }
}

/// A check of one kind of facts. Pure: facts in, words out.
#[derive(Debug)]
pub struct Check<F: 'static> {
    /// Its name, for programs.
    pub id: &'static str,
    /// Why it matters, in one sentence.
    pub why: &'static str,
    /// The check. Nothing said: it does not apply.
    pub of: fn(&F) -> Vec<Said>,
}

/// One finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Name of the check.
    pub check: &'static str,
    /// `this computer`, a device's serial, a backend on a device, or a file.
    #[serde(rename = "where")]
    pub place: String,
    /// How bad it is.
    pub severity: Severity,
    /// What was found.
    pub what: String,
    /// Why it matters.
    pub why: &'static str,
    /// The command or step that mends it.
    pub fix: Option<String>,
}

/// All that a list of checks says about a place.
pub fn examine<F>(checks: &[Check<F>], place: &str, facts: &F) -> Vec<Finding> {
    let said = checks.iter().flat_map(|check| (check.of)(facts).into_iter().map(move |said| (check, said)));
    said.map(|(check, Said { severity, what, fix })| Finding {
        check: check.id,
        place: place.to_owned(),
        severity,
        what,
        why: check.why,
        fix,
    })
    .collect()
}
