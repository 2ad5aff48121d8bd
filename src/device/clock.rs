//! The device's clock against this machine's. Everything that is measured is the device's `CLOCK_MONOTONIC`; the journal has this machine's time. What
//! one is to the other is measured, with its error, and never part of a figure.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use super::{Device, DeviceError};

/// Round trips: the shortest says the most.
const TRIPS: u32 = 8;
const LIMIT: Duration = Duration::from_secs(10);

/// The two clocks at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockReading {
    /// The device's `CLOCK_MONOTONIC` minus this machine's Unix time, in ns: add it to a time of the journal to get one of the device.
    pub offset_ns: i64,
    /// The offset is right within so many ns: half of the shortest round trip.
    pub error_ns: u64,
    /// This machine's Unix time of the reading, in ns.
    pub host_unix_ns: i64,
    /// Round trips that were made.
    pub round_trips: u32,
}

/// The clocks over a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct DeviceClock {
    /// Before the first launch of the last segment.
    pub begin: Option<ClockReading>,
    /// After its last launch.
    pub end: Option<ClockReading>,
    /// How much faster the device's clock runs than this machine's, in parts per million, and how wrong that can be; absent where the readings'
    /// errors are larger than what they would show. A step of this machine's clock between them shows as drift.
    pub drift_ppm: Option<(f64, f64)>,
}

impl DeviceClock {
    /// Of the readings at the two ends.
    pub fn of(begin: Option<ClockReading>, end: Option<ClockReading>) -> Self {
        Self { begin, end, drift_ppm: begin.zip(end).and_then(|(begin, end)| drift(begin, end)) }
    }
}

/// No quartz of a phone or computer is this wrong: a drift that may be larger says nothing.
const USEFUL_PPM: f64 = 500.0;

fn drift(begin: ClockReading, end: ClockReading) -> Option<(f64, f64)> {
    let span = (end.host_unix_ns - begin.host_unix_ns) as f64;
    if span <= 0.0 {
        return None;
    }
    let error = (begin.error_ns + end.error_ns) as f64 * 1e6 / span;
    (error < USEFUL_PPM).then(|| ((end.offset_ns - begin.offset_ns) as f64 * 1e6 / span, error))
}

/// One round trip: this machine's time before it, how long it took, and what the device said. Cristian's method (Probabilistic clock synchronization, 1989): the device read its clock somewhere
/// in between, so that the middle is wrong by half of the round trip at most.
fn reading(sent_unix_ns: i64, took: Duration, device_ns: i64) -> ClockReading {
    let half = took.as_nanos() as i64 / 2;
    let host = sent_unix_ns.saturating_add(half);
    ClockReading { offset_ns: device_ns.saturating_sub(host), error_ns: half.unsigned_abs(), host_unix_ns: host, round_trips: 1 }
}

/// Several round trips; the best of them.
pub(super) async fn read<D: Device + ?Sized>(device: &D, agent: &str) -> Result<Option<ClockReading>, DeviceError> {
    let argv = [agent.to_owned(), "clock".to_owned()];
    let mut best: Option<ClockReading> = None;
    for trip in 1..=TRIPS {
        let sent = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as i64;
        let begun = Instant::now();
        let said = device.ask(&argv, LIMIT).await?;
        let took = begun.elapsed();
        let Some(now) = said.text().trim().parse::<i64>().ok().filter(|_| said.ok()) else { return Ok(None) };
        let this = reading(sent, took, now);
        best = Some(best.filter(|b| b.error_ns <= this.error_ns).unwrap_or(this)).map(|b| ClockReading { round_trips: trip, ..b });
    }
    Ok(best)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_offset_is_right_within_half_a_round_trip() {
        // A device whose clock is 5 s minus the host's, read 1 ms after the request of a trip of 10 ms.
        let (sent, truth) = (1_000_000_000_000, -995_000_000_000_i64);
        let read = reading(sent, Duration::from_millis(10), sent + 1_000_000 + truth);
        assert_eq!((read.error_ns, read.host_unix_ns), (5_000_000, sent + 5_000_000));
        assert_eq!(read.offset_ns - truth, -4_000_000, "wrong by less than the error");
    }

    #[test]
    fn drift_over_a_run() {
        let at = |host_unix_ns, offset_ns, error_ns| Some(ClockReading { offset_ns, error_ns, host_unix_ns, round_trips: 8 });
        // 36 ms in an hour are 10 ppm; errors of 9 ms at both ends make it uncertain by 5 ppm.
        let clock = DeviceClock::of(at(0, 100, 9_000_000), at(3_600_000_000_000, 36_000_100, 9_000_000));
        assert_eq!(clock.drift_ppm, Some((10.0, 5.0)));
        // In a second nothing can be said.
        assert_eq!(DeviceClock::of(at(0, 0, 9_000_000), at(1_000_000_000, 0, 9_000_000)).drift_ppm, None);
        assert_eq!(DeviceClock::of(at(5, 0, 0), at(5, 0, 0)).drift_ppm, None);
        assert_eq!(DeviceClock::of(None, at(5, 0, 0)).drift_ppm, None);
    }
}
