//! Failures in the output of a tool whose exit status says little: every line that an entry of the tool's table matches is a mark, and the mark
//! nearest to the cause is the failure.

use super::{Table, Weight};
use crate::measurement::{Failure, FailureKind};

/// A line that says that something went wrong.
#[derive(Debug, Clone, PartialEq)]
pub struct Mark {
    /// Place in the table: the lower, the nearer to the cause.
    pub rank: usize,
    /// What it says of results printed beside it.
    pub weight: Weight,
    /// What to tell.
    pub failure: Failure,
}

impl Table {
    /// What a line says about a failure.
    pub fn mark(&self, line: &str) -> Option<Mark> {
        let found = self.find(line.trim())?;
        Some(Mark { rank: found.rank, weight: found.entry.weight, failure: found.failure(line.trim()) })
    }
}

/// What lines say of a failure.
#[derive(Debug, Default)]
pub struct Heard {
    /// In their order.
    pub marks: Vec<Mark>,
    /// The last exit status among them.
    pub status: Option<i32>,
}

impl Heard {
    /// Whether there was anything of a failure.
    pub fn anything(&self) -> bool {
        !self.marks.is_empty() || self.status.is_some()
    }

    /// Adds what the lines of another file say.
    pub fn add(&mut self, other: Self) {
        self.marks.extend(other.marks);
        self.status = other.status.or(self.status);
    }
}

impl Table {
    /// What lines say; `status` reads an exit status out of one, [`exit_status`] mostly.
    pub fn heard<'a>(&self, lines: impl Iterator<Item = &'a str>, status: impl Fn(&str) -> Option<i32>) -> Heard {
        lines.fold(Heard::default(), |mut heard, line| {
            heard.status = status(line).or(heard.status);
            heard.marks.extend(self.mark(line));
            heard
        })
    }
}

/// Picks the failure nearest to the cause; what is left becomes warnings. Soft marks are failures only where nothing was `measured`. `troubles` are
/// failures of single results; `status` is an exit status that the text itself holds.
pub fn settle<'a>(
    warnings: &mut Vec<String>,
    mut troubles: impl Iterator<Item = &'a Failure>,
    marks: Vec<Mark>,
    status: Option<i32>,
    measured: bool,
) -> Option<Failure> {
    let (mut hard, soft): (Vec<Mark>, Vec<Mark>) = marks.into_iter().partition(|mark| mark.weight != Weight::Soft || !measured);
    hard.sort_by_key(|mark| (mark.weight == Weight::Soft, mark.rank));
    let mut failure = hard.into_iter().next().map(|mark| mark.failure);
    let mut seen = Vec::new();
    for mark in soft {
        if !seen.contains(&mark.failure.message) {
            warnings.push(mark.failure.message.clone());
            seen.push(mark.failure.message);
        }
    }
    failure = failure.or_else(|| troubles.next().cloned());
    match status {
        None | Some(0) => {}
        Some(status) if measured && failure.is_none() && status >= 128 => {
            warnings.push(format!("exit status {status} after the results: a crash while the tool ended"));
        }
        Some(status) if failure.is_none() => {
            let hint = "look at stderr and at `adb logcat`; 126 and 127 are the shell's, 137 is a kill, 134 and 139 are crashes";
            failure = Some(Failure { kind: FailureKind::Runtime, message: format!("exit status {status}"), hint: Some(hint.to_owned()) });
        }
        Some(status) => warnings.push(format!("exit status {status}")),
    }
    failure
}

/// The exit status that a shell transcript holds: a line `RC=139`, `exit status: 1`.
pub fn exit_status(line: &str) -> Option<i32> {
    let lower = line.trim().to_ascii_lowercase();
    let rest = ["rc", "exit code", "exit status", "exit"].iter().find_map(|word| lower.strip_prefix(word))?;
    rest.trim_start().strip_prefix(['=', ':'])?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::knowledge::DEVICE;

    #[test]
    fn statuses_of_transcripts() {
        assert_eq!((exit_status("RC=139"), exit_status(" exit status: 1 ")), (Some(139), Some(1)));
        assert_eq!((exit_status("rc"), exit_status("exit"), exit_status("rc=é")), (None, None, None));
    }

    #[test]
    fn the_cause_is_the_failure_and_the_rest_are_warnings() {
        let log = ["Aborted", "terminate called after throwing an instance of 'std::bad_alloc'", "Aborted"];
        let marks = || log.iter().filter_map(|line| DEVICE.mark(line)).collect::<Vec<_>>();
        assert_eq!(marks().len(), 3);
        let mut warnings = Vec::new();
        let failure = settle(&mut warnings, std::iter::empty(), marks(), Some(134), true).unwrap();
        assert!(failure.message.contains("bad_alloc"), "{failure}");
        assert_eq!(warnings, ["Aborted", "exit status 134"]);
        // A consequence alone says something only where there are no results.
        let only = |measured| settle(&mut Vec::new(), std::iter::empty(), vec![DEVICE.mark("Aborted").unwrap()], None, measured);
        assert_eq!((only(true), only(false).unwrap().message), (None, "Aborted".to_owned()));
        let trouble = Failure::new(FailureKind::Runtime, "nan");
        assert_eq!(settle(&mut Vec::new(), [&trouble].into_iter(), Vec::new(), None, true), Some(trouble.clone()));
        assert_eq!(settle(&mut Vec::new(), std::iter::empty(), Vec::new(), Some(1), false).unwrap().message, "exit status 1");
    }
}
