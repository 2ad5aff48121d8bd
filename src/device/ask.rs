//! Short questions to a device: a command's answer, and one round of the agent's readings.

use thiserror::Error;

/// Bytes of each stream that an answer may have.
pub const LIMIT: u64 = 16 << 20;

/// What a short command answered. It did end: everything else is a [`super::DeviceError`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Answer {
    /// The exit status, 127 if there is no such program and 126 if it can't be run, as a POSIX shell has them. `None` after a signal; the
    /// shell of a device gives 128 + N instead.
    pub code: Option<i32>,
    /// Standard output.
    pub stdout: Vec<u8>,
    /// Standard error; a daemon before Android 7 puts it into `stdout`.
    pub stderr: Vec<u8>,
}
impl Answer {
    /// Standard output as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// It ended with exit status 0.
    pub fn ok(&self) -> bool {
        self.code == Some(0)
    }

    /// What it said, in one line: standard error, else standard output, else how it ended.
    pub fn words(&self) -> String {
        let said = if self.stderr.trim_ascii().is_empty() { &self.stdout } else { &self.stderr };
        let said = String::from_utf8_lossy(said).split_whitespace().collect::<Vec<_>>().join(" ");
        match (said.is_empty(), self.code) {
            (false, _) => said.chars().take(300).collect(),
            (true, Some(code)) => format!("exit status {code}"),
            (true, None) => "ended by a signal".to_owned(),
        }
    }
}

/// The free bytes in an answer of `stat -f -c '%a %S'` (GNU coreutils, toybox: blocks that are free for everybody, and the size of one). Other
/// systems' `stat` has other words: no number.
pub(super) fn free(answer: &Answer) -> Option<u64> {
    let text = answer.text();
    let mut words = text.split_whitespace();
    let mut number = || words.next()?.parse::<u64>().ok();
    let (blocks, size) = (number()?, number()?);
    (answer.ok() && words.next().is_none()).then(|| blocks.saturating_mul(size))
}

/// One value that the agent read, as `telemetry.csv` has it.
#[derive(Debug, Clone, PartialEq)]
pub struct Reading {
    /// When, in ns of the device's `CLOCK_MONOTONIC`.
    pub t_ns: u64,
    /// The source, for instance `thermal`.
    pub source: String,
    /// The name within the source, for instance a zone's type.
    pub name: String,
    /// The value.
    pub value: f64,
    /// Its unit, for instance `C`.
    pub unit: String,
}

/// Why the agent's readings can't be understood.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum ReadingError {
    /// It is not the table.
    #[error("`bench-agent sample` did not print its table but {0:?}: the agent is of another version than bench")]
    Header(String),
}

/// The agent's table (`t_ns,source,name,value,unit`, agent/README.md). Rows without a number are passed over: they are nothing that was read.
pub fn readings(text: &str) -> Result<Vec<Reading>, ReadingError> {
    let mut lines = text.lines();
    let header = lines.next().unwrap_or_default().trim();
    if header != "t_ns,source,name,value,unit" {
        return Err(ReadingError::Header(header.chars().take(200).collect()));
    }
    let row = |line: &str| {
        let mut fields = line.trim_end().split(',');
        let mut next = || fields.next();
        let (t_ns, source, name, value, unit) = (next()?.parse().ok()?, next()?, next()?, next()?.parse::<f64>().ok()?, next()?);
        let reading = Reading { t_ns, source: source.to_owned(), name: name.to_owned(), value, unit: unit.to_owned() };
        (value.is_finite() && fields.next().is_none()).then_some(reading)
    };
    Ok(lines.filter_map(row).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_of_readings() {
        let text = "t_ns,source,name,value,unit\n17,thermal,skin-msm-therm,31.5,C\n17,battery,battery/status,2,code\n18,cpu,busy_pct,nan,pct\n\
                    19,thermal,short,1\nx,thermal,a,1,C\n20,thermal,a,1,C,more\n21,memi";
        let all = readings(text).unwrap();
        let expected = |t_ns, source: &str, name: &str, value, unit: &str| Reading {
            t_ns,
            source: source.to_owned(),
            name: name.to_owned(),
            value,
            unit: unit.to_owned(),
        };
        assert_eq!(all, [expected(17, "thermal", "skin-msm-therm", 31.5, "C"), expected(17, "battery", "battery/status", 2.0, "code")]);
        assert!(matches!(readings("usage: bench-agent run SPEC.json"), Err(ReadingError::Header(_))));
        assert!(readings("").is_err());
    }

    #[test]
    fn free_bytes() {
        let answer = |code, text: &str| free(&Answer { code: Some(code), stdout: text.as_bytes().to_vec(), stderr: Vec::new() });
        assert_eq!(answer(0, "1000 4096\n"), Some(4_096_000));
        for (code, text) in [(1, "1000 4096"), (0, ""), (0, "?"), (0, "1000"), (0, "1000 4096 x"), (0, "-1 4096"), (0, "File: a")] {
            assert_eq!(answer(code, text), None, "{text:?}");
        }
    }

    #[test]
    fn an_answer_in_words() {
        let answer = |code, stdout: &[u8], stderr: &[u8]| Answer { code, stdout: stdout.to_vec(), stderr: stderr.to_vec() }.words();
        assert_eq!(answer(Some(1), b"out", b" no \n such\n"), "no such");
        assert_eq!(answer(Some(0), b"out\n", b" \n"), "out");
        assert_eq!(answer(Some(3), b"", b""), "exit status 3");
        assert_eq!(answer(None, b"", b""), "ended by a signal");
    }
}
