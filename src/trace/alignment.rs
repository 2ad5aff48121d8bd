//! What one clock is to another, with its error.

use serde_json::{Value, json};

use crate::device::{ClockReading, DeviceClock};

/// Where a clock's zero lies on the device's, in ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Not before.
    pub low: i64,
    /// Not after.
    pub high: i64,
}

impl Bounds {
    /// Nothing is known.
    pub const OPEN: Self = Self { low: i64::MIN, high: i64::MAX };

    /// Of a stretch on a clock that lies within a stretch on the device's.
    pub const fn within(inner: (i64, i64), outer: (i64, i64)) -> Self {
        Self { low: outer.0.saturating_sub(inner.0), high: outer.1.saturating_sub(inner.1) }
    }

    /// What both say.
    pub fn and(self, other: Self) -> Self {
        Self { low: self.low.max(other.low), high: self.high.min(other.high) }
    }

    /// The middle and how wrong it may be; nothing where the bounds contradict each other or one of them is open.
    pub fn middle(self) -> Option<(i64, i64)> {
        let known = self.low <= self.high && self.low != i64::MIN && self.high != i64::MAX;
        known.then(|| (self.low.midpoint(self.high), self.high.saturating_sub(self.low) / 2 + 1))
    }
}

/// How this machine's time, which the journal has, becomes a time of the device.
#[derive(Debug, Clone, PartialEq)]
pub struct HostClock {
    begin: (i64, i64),
    end: (i64, i64),
    /// Right within, ns.
    pub error_ns: i64,
    /// Where it comes from.
    pub method: &'static str,
}

/// The journal tells milliseconds, cut.
pub const JOURNAL_NS: i64 = 1_000_000;

/// By how much the measured offset may lie outside of what the launches allow, beside its own error: the journal's stamps and the drift of minutes.
const SLACK_NS: i64 = 10 * JOURNAL_NS;

impl HostClock {
    /// Of the readings in the manifest, if the launches of the segment don't contradict them; else of the launches alone, each of which began and ended
    /// on the device between two lines of the journal. `None` where they contradict each other: this machine's clock was set meanwhile.
    pub fn of(measured: Option<&DeviceClock>, launches: Bounds) -> Option<Self> {
        let fits = |r: &ClockReading| {
            let slack = i64::try_from(r.error_ns).unwrap_or(i64::MAX).saturating_add(SLACK_NS);
            launches.low.saturating_sub(slack) <= r.offset_ns && r.offset_ns <= launches.high.saturating_add(slack)
        };
        let readings = measured.and_then(|clock| clock.begin.or(clock.end).map(|begin| (begin, clock.end.unwrap_or(begin))));
        if let Some((begin, end)) = readings.filter(|(begin, end)| fits(begin) && fits(end)) {
            let point = |r: ClockReading| (r.host_unix_ns, r.offset_ns);
            let error_ns = i64::try_from(begin.error_ns.max(end.error_ns)).unwrap_or(i64::MAX);
            return Some(Self { begin: point(begin), end: point(end), error_ns, method: "round trips to the device's clock" });
        }
        let (offset, error_ns) = launches.middle()?;
        Some(Self { begin: (0, offset), end: (0, offset), error_ns, method: "begins and ends of launches in the journal" })
    }

    /// A time of the journal as one of the device; between the two readings the offset goes straight from one to the other.
    pub fn device_ns(&self, host_unix_ns: i64) -> i64 {
        let ((from, first), (to, last)) = (self.begin, self.end);
        let share = if to > from { ((host_unix_ns - from) as f64 / (to - from) as f64).clamp(0.0, 1.0) } else { 0.0 };
        host_unix_ns.saturating_add(first).saturating_add(((last - first) as f64 * share) as i64)
    }

    /// For the file's own words.
    pub fn words(&self, segment: u32) -> Value {
        json!({"segment": segment, "device_minus_host_ns": self.begin.1, "error_ms": self.error_ns as f64 / 1e6, "method": self.method,
            "journal_resolution_ms": 1})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: i64 = 1_000_000_000;

    fn reading(host: i64, offset_ns: i64) -> ClockReading {
        ClockReading { offset_ns, error_ns: 500_000, host_unix_ns: host, round_trips: 8 }
    }

    #[test]
    fn a_stretch_within_another_bounds_the_offset() {
        // 44 to 1341501 us within 864985936 to 866328979 us: the zero lies between 864985892 and 864987478 us.
        let bounds = Bounds::within((44, 1_341_501), (864_985_936, 866_328_979));
        assert_eq!((bounds.low, bounds.high), (864_985_892, 864_987_478));
        assert_eq!(bounds.middle(), Some((864_986_685, 794)));
        assert_eq!(Bounds::within((0, 11), (100, 110)).middle(), None, "it is longer");
        assert_eq!(Bounds::OPEN.middle(), None);
    }

    #[test]
    fn the_offset_drifts_from_one_reading_to_the_other() {
        let clock = DeviceClock { begin: Some(reading(100 * S, -90 * S)), end: Some(reading(200 * S, -90 * S + 1000)), drift_ppm: None };
        let host = HostClock::of(Some(&clock), Bounds::OPEN).unwrap();
        assert_eq!([50, 100, 150, 200, 300].map(|t| host.device_ns(t * S) - (t - 90) * S), [0, 0, 500, 1000, 1000]);
        assert_eq!(host.error_ns, 500_000);
    }

    #[test]
    fn launches_that_contradict_the_readings_win() {
        // The readings are of another boot: by them the launch would have begun an hour before its line in the journal.
        let clock = DeviceClock { begin: Some(reading(100 * S, -90 * S)), end: None, drift_ppm: None };
        let launches = Bounds { low: 3600 * S, high: 3600 * S + 40_000_000 };
        let host = HostClock::of(Some(&clock), launches).unwrap();
        assert_eq!((host.device_ns(5 * S), host.error_ns), (3605 * S + 20_000_000, 20_000_001));
        assert_eq!(HostClock::of(None, Bounds { low: 5, high: 4 }), None);
        assert_eq!(HostClock::of(None, Bounds::OPEN), None);
    }
}
