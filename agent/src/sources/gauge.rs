//! Files that hold one number (sysfs).

use std::fs::File;
use std::io;
use std::ops::RangeInclusive;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

use super::{Pace, Reader, Rows};

/// A read that takes longer than this has no place in the fast lane.
const FAST_READ: Duration = Duration::from_micros(500);

/// One file with one number, held open: a read is then one system call.
pub struct Gauge {
    name: String,
    file: File,
    /// How long the second read took; the first one may have woken something.
    cost: Duration,
}

impl Gauge {
    /// Opens and reads it. A file that does not read as a number is an error: `InvalidData`.
    pub fn open(path: &Path, name: String) -> io::Result<Self> {
        let file = File::open(path)?;
        read_number(&file)?;
        let start = Instant::now();
        read_number(&file)?;
        Ok(Self { name, file, cost: start.elapsed() })
    }

    /// The name of its rows.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Gives it a name that is unique in its source.
    pub fn rename(&mut self, name: String) {
        self.name = name;
    }

    /// Whether a read is cheap enough for the rate of the spec.
    pub fn is_cheap(&self) -> bool {
        self.cost <= FAST_READ
    }
}

fn read_number(file: &File) -> io::Result<i64> {
    let mut buffer = [0; 32];
    let n = file.read_at(&mut buffer, 0)?;
    parse_number(&buffer[..n]).ok_or_else(|| io::ErrorKind::InvalidData.into())
}

fn parse_number(text: &[u8]) -> Option<i64> {
    std::str::from_utf8(text).ok()?.trim().parse().ok()
}

/// Gauges of one source, unit and pace.
pub struct Gauges {
    /// The column `source`.
    pub source: &'static str,
    /// The column `unit`.
    pub unit: &'static str,
    /// When to read.
    pub pace: Pace,
    /// A file's number is divided by this.
    pub divisor: f64,
    /// Numbers (before the division) outside of it are no values.
    pub valid: RangeInclusive<i64>,
    /// Numbers that mean "no value".
    pub sentinels: &'static [i64],
    /// The files.
    pub files: Vec<Gauge>,
}

impl Gauges {
    fn value(&self, number: i64) -> Option<f64> {
        (self.valid.contains(&number) && !self.sentinels.contains(&number)).then(|| number as f64 / self.divisor)
    }
}

impl Reader for Gauges {
    fn pace(&self) -> Pace {
        self.pace
    }

    fn sample(&mut self, rows: &mut Rows) {
        for gauge in &self.files {
            // A zone may be unreadable while its block sleeps (EAGAIN, EINVAL): then there is no row.
            if let Some(value) = read_number(&gauge.file).ok().and_then(|number| self.value(number)) {
                rows.push(self.source, &gauge.name, value, self.unit);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers() {
        assert_eq!(parse_number(b"-40960\n"), Some(-40960));
        for bad in ["", "\n", "12 13", "<unsupported>", "0x5"] {
            assert_eq!(parse_number(bad.as_bytes()), None, "{bad}");
        }
    }

    #[test]
    fn sentinels_and_nonsense_are_no_values() {
        let gauges = Gauges {
            source: "thermal",
            unit: "C",
            pace: Pace::Slow,
            divisor: 1000.0,
            valid: -45_000..=160_000,
            sentinels: &[0, -40_960],
            files: Vec::new(),
        };
        assert_eq!(gauges.value(45_600), Some(45.6));
        for number in [0, -40_960, -273_000, 4_200_000] {
            assert_eq!(gauges.value(number), None, "{number}");
        }
    }
}
