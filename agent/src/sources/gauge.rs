//! Files that hold one value (sysfs).

use std::fs::File;
use std::io;
use std::ops::RangeInclusive;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

use super::look::Look;
use super::{Pace, Reader, Rows};

/// A read that takes longer than this has no place in the fast lane.
const FAST_READ: Duration = Duration::from_micros(500);
/// Longer than any value; what fills it is none.
const LONGEST: usize = 96;

/// What a kind of file holds.
pub struct Quantity {
    /// The column `source`.
    pub source: &'static str,
    /// The column `unit`.
    pub unit: &'static str,
    /// Reads the file's text; `None` for what is no such value.
    pub parse: fn(&[u8]) -> Option<f64>,
    /// Numbers (before the division) outside of it are no values.
    pub valid: RangeInclusive<f64>,
    /// Numbers that mean "no value".
    pub sentinels: &'static [f64],
    /// A file's number is divided by this.
    pub divisor: f64,
}

impl Quantity {
    fn value(&self, number: f64) -> Option<f64> {
        (self.valid.contains(&number) && !self.sentinels.contains(&number)).then(|| number / self.divisor)
    }
}

/// One file with one value, held open: a read is then one system call.
pub struct Gauge {
    quantity: &'static Quantity,
    name: String,
    file: File,
    pace: Pace,
    /// How long the second read took; the first one may have woken something.
    cost: Duration,
}

impl Gauge {
    /// Opens and reads it, for the slow lane. A file that does not read as a value is an error: `InvalidData`.
    pub fn open(look: &mut Look, quantity: &'static Quantity, path: &Path, name: String) -> Option<Self> {
        let own = path.to_owned();
        let (file, cost) = look.at(&format!("{}/{name}", quantity.source), move || {
            let file = File::open(own)?;
            read(&file, quantity.parse)?;
            let start = Instant::now();
            read(&file, quantity.parse)?;
            Ok((file, start.elapsed()))
        })?;
        Some(Self { quantity, name, file, pace: Pace::Slow, cost })
    }

    /// For another lane.
    pub fn at(mut self, pace: Pace) -> Self {
        self.pace = pace;
        self
    }

    /// For the fast lane, if a read is cheap enough.
    pub fn fast(self) -> Self {
        if self.cost <= FAST_READ { self.at(Pace::Fast) } else { self }
    }

    /// Whether it is for the fast lane.
    pub fn is_fast(&self) -> bool {
        self.pace == Pace::Fast
    }

    /// The name of its rows.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Gives it a name that is unique in its source.
    pub fn rename(&mut self, name: String) {
        self.name = name;
    }

    /// Its present value, if it has one.
    pub fn now(&self) -> Option<f64> {
        read(&self.file, self.quantity.parse).ok().and_then(|number| self.quantity.value(number))
    }
}

fn read(file: &File, parse: fn(&[u8]) -> Option<f64>) -> io::Result<f64> {
    let mut buffer = [0; LONGEST];
    let n = file.read_at(&mut buffer, 0)?;
    buffer.get(..n).filter(|text| text.len() < LONGEST).and_then(parse).ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// A whole number; drivers print no others.
pub fn number(text: &[u8]) -> Option<f64> {
    std::str::from_utf8(text).ok()?.trim().parse::<i64>().ok().map(|number| number as f64)
}

impl Reader for Gauge {
    fn pace(&self) -> Pace {
        self.pace
    }

    fn label(&self) -> String {
        format!("{}/{}", self.quantity.source, self.name)
    }

    fn sample(&mut self, rows: &mut Rows) {
        // A zone may be unreadable while its block sleeps (EAGAIN, EINVAL), or gone (ENODEV): then there is no row.
        if let Some(value) = self.now() {
            rows.push(self.quantity.source, &self.name, value, self.quantity.unit);
        }
    }
}

/// Readers of them.
pub fn boxed(gauges: Vec<Gauge>) -> Vec<Box<dyn Reader>> {
    gauges.into_iter().map(|gauge| Box::new(gauge) as Box<dyn Reader>).collect()
}

/// Names may repeat; the second and later ones get a number, in their order.
pub fn unique(gauges: &mut [Gauge]) {
    let mut seen: std::collections::HashMap<String, u32> = std::collections::HashMap::new();
    for gauge in gauges {
        let count = seen.entry(gauge.name().to_owned()).or_default();
        *count += 1;
        if *count > 1 {
            gauge.rename(format!("{}#{count}", gauge.name()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MILLI: Quantity = Quantity {
        source: "thermal",
        unit: "C",
        parse: number,
        valid: -45_000.0..=160_000.0,
        sentinels: &[0.0, -40_960.0],
        divisor: 1000.0,
    };

    #[test]
    fn numbers() {
        assert_eq!(number(b"-40960\n"), Some(-40960.0));
        for bad in ["", "\n", "12 13", "<unsupported>", "0x5", "nan", "inf", "1e3", "99999999999999999999"] {
            assert_eq!(number(bad.as_bytes()), None, "{bad}");
        }
    }

    #[test]
    fn sentinels_and_nonsense_are_no_values() {
        assert_eq!(MILLI.value(45_600.0), Some(45.6));
        for number in [0.0, -40_960.0, -273_000.0, 4_200_000.0] {
            assert_eq!(MILLI.value(number), None, "{number}");
        }
    }

    #[test]
    fn what_is_no_single_value_is_not_opened() {
        static QUANTITY: Quantity = MILLI;
        let folder = std::env::temp_dir().join(format!("bench-agent-gauge-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("empty"), "").unwrap();
        std::fs::write(folder.join("words"), "not supported\n").unwrap();
        File::create(folder.join("huge")).unwrap().set_len(4 << 30).unwrap();
        std::fs::write(folder.join("digits"), "1".repeat(200)).unwrap();
        let mut look = Look::default();
        for bad in ["empty", "words", "huge", "digits", "missing"] {
            assert!(Gauge::open(&mut look, &QUANTITY, &folder.join(bad), bad.to_owned()).is_none(), "{bad}");
        }
        // One that turns bad later gives no row.
        std::fs::write(folder.join("good"), "41000\n").unwrap();
        let gauge = Gauge::open(&mut look, &QUANTITY, &folder.join("good"), "good".to_owned()).unwrap();
        assert_eq!(gauge.now(), Some(41.0));
        std::fs::write(folder.join("good"), "text\n").unwrap();
        assert_eq!(gauge.now(), None);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
