//! One row of the table.

use bench_backend_api::text::number;

/// A row as it stands in the file; see [`super`] for the columns.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Row<'a> {
    /// `EXECUTE`, `NODE`, `BACKEND`, `FINALIZE`, `INIT`, ...
    pub message: &'a str,
    /// The value as printed.
    pub value: &'a str,
    /// `US`, `CYCLES`, `COUNT`, `BYTES`, `OBJECT`.
    pub unit: &'a str,
    /// `BACKEND`, `NETRUN`, ...
    pub source: &'a str,
    /// `ROOT` or `SUB-EVENT`.
    pub level: &'a str,
    /// Name of the event or the operation.
    pub identifier: &'a str,
}

impl<'a> Row<'a> {
    /// `None` for a line that is no row.
    pub fn of(line: &'a str, with_source_ops: bool) -> Option<Self> {
        let mut fields = line.splitn(7, ',').map(str::trim);
        let _stamp = fields.next()?;
        let (message, value, unit, source) = (fields.next()?, fields.next()?, fields.next()?, fields.next()?);
        let (level, rest) = (fields.next()?, fields.next()?);
        let levelled = is(level, "ROOT") || level.get(..3).is_some_and(|begin| is(begin, "SUB"));
        let identifier = if with_source_ops { before_source_ops(rest) } else { rest };
        levelled.then(|| Self { message, value, unit, source, level, identifier: identifier.trim_matches('"').trim() })
    }

    /// `None` for `UNKNOWN`, and for what is no plain number.
    pub fn time(&self) -> Option<f64> {
        number(self.value)
    }

    pub fn is_root(&self) -> bool {
        is(self.level, "ROOT")
    }

    pub fn is_op(&self) -> bool {
        is(self.message, "NODE") || !self.is_root() && is(self.unit, "CYCLES")
    }

    /// Whether the event tells of an execution. Its identifier is given in lower case.
    pub fn is_execution(&self, identifier: &str) -> bool {
        const MARKS: [&str; 4] = ["execute", "hvx", "vtcm acquire", "num times yield"];
        is(self.message, "EXECUTE") || MARKS.iter().any(|mark| identifier.contains(mark))
    }

    /// Whether it is the tool's own time, not QNN's. Its identifier is given in lower case.
    pub fn is_netrun(&self, identifier: &str) -> bool {
        (self.source.to_ascii_uppercase().contains("NETRUN") || identifier.contains("netrun")) && !is(self.unit, "INF/SEC")
    }
}

/// Words are compared without regard to case: the tools' versions differ in it.
pub fn is(text: &str, word: &str) -> bool {
    text.eq_ignore_ascii_case(word)
}

pub fn is_header(line: &str) -> bool {
    const BEGIN: &str = "Msg Timestamp,";
    let line = line.trim();
    line.get(..BEGIN.len()).is_some_and(|begin| is(begin, BEGIN)) && line.to_ascii_lowercase().contains("event identifier")
}

/// The identifier before the column of source operations: up to the comma behind `(cycles)`, since the identifier may hold commas itself.
fn before_source_ops(rest: &str) -> &str {
    let end = rest.find("(cycles),").map(|at| at + "(cycles)".len()).or_else(|| rest.find(','));
    &rest[..end.unwrap_or(rest.len())]
}
