//! Energy from a series of readings, most of which may be repeats: a gauge updates every 0.25 to 30 s, whoever asks more often gets the same
//! value again, and a repeat is not a sample.

use super::{
    Refusal,
    telemetry::{held, within},
};
use crate::stats;

/// One reading: seconds of the device's monotonic clock, and a value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// Seconds.
    pub t_s: f64,
    /// Value.
    pub value: f64,
}

/// Energy of a window.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Energy {
    /// Joules.
    pub joules: f64,
    /// Half-width of what the joules may be off by for the time between updates, their delay and their resolution: a bound for a draw
    /// that is monotonic between two updates, not a standard deviation. The gauge's own accuracy (percents, nowhere stated) is not in it.
    pub error_j: f64,
    /// Joules over seconds, W.
    pub avg_w: f64,
    /// Highest of the distinct samples, W.
    pub peak_w: f64,
    /// Distinct samples in the window.
    pub updates: usize,
    /// Typical seconds between them.
    pub period_s: f64,
    /// Standard deviation of the distinct samples, W; 0 for one.
    pub spread_w: f64,
}

/// A gap of more updates than this, and of more seconds than [`STUCK_S`], is a gauge that does not work.
const STUCK_UPDATES: f64 = 10.0;
/// The slowest gauges known update every 30 s.
const STUCK_S: f64 = 35.0;
/// Fewer changes than this in a window say that the gauge does not follow its load.
const FEWEST_UPDATES: usize = 3;

/// A series of power readings.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Watts {
    /// Every reading, W.
    pub polls: Vec<Point>,
    /// Which of them are updates: the value, as the driver gave it, is not the one before.
    pub fresh: Vec<bool>,
    /// Step of the gauge's values, W; 0 when unknown.
    pub resolution_w: f64,
    /// Seconds by which the series may be shifted against the device's clock.
    pub shift_s: f64,
    /// Repeats are samples: an instrument's rows, not polls of a gauge.
    pub sampled: bool,
}

impl Watts {
    /// Readings of an instrument, each of which is a sample.
    pub fn sampled(polls: Vec<Point>, shift_s: f64) -> Self {
        let fresh = vec![true; polls.len()];
        Self { polls, fresh, resolution_w: 0.0, shift_s, sampled: true }
    }

    /// Readings in which a repeated value is no new sample.
    pub fn polled(polls: Vec<Point>) -> Self {
        let fresh = changes(&polls);
        Self { polls, fresh, ..Self::default() }
    }

    fn updates(&self) -> Vec<Point> {
        self.polls.iter().zip(&self.fresh).filter(|(_, fresh)| **fresh).map(|(p, _)| *p).collect()
    }

    /// Typical seconds between two updates; `None` with fewer than three: the first reading is of unknown age.
    pub fn period_s(&self) -> Option<f64> {
        let updates = self.updates();
        let known = if self.sampled { &updates[..] } else { updates.get(1..)? };
        let gaps: Vec<f64> = known.windows(2).map(|w| w[1].t_s - w[0].t_s).collect();
        // Polls make 0.2 and 0.3 of 0.25: the mean of what belongs together, without the gaps in which a value was measured twice.
        let typical = stats::median(&gaps)?;
        let own: Vec<f64> = gaps.into_iter().filter(|g| *g <= 1.75 * typical).collect();
        stats::mean(&own).filter(|p| *p > 0.0)
    }

    /// Median seconds between two readings.
    pub fn poll_s(&self) -> f64 {
        let gaps: Vec<f64> = self.polls.windows(2).map(|w| w[1].t_s - w[0].t_s).collect();
        stats::median(&gaps).unwrap_or(0.0).max(0.0)
    }

    /// Energy of a window; see [`integrate`].
    pub fn energy(&self, window: (f64, f64)) -> Result<Energy, Refusal> {
        let (from, to) = window;
        let window_s = to - from;
        let Some(period_s) = self.period_s() else {
            let gap_s = self.polls.last().zip(self.polls.first()).map_or(0.0, |(b, a)| b.t_s - a.t_s);
            return Err(Refusal::Stuck { gap_s, updates: self.updates().len().saturating_sub(1) });
        };
        let poll_s = self.poll_s();
        let (first, last) = (self.polls.first().map_or(from, |p| p.t_s), self.polls.last().map_or(to, |p| p.t_s));
        let covered_s = (last.min(to) - first.max(from)).max(0.0);
        // A value is good for one period after it was read.
        if covered_s + 2.0 * period_s.max(poll_s) < window_s {
            return Err(Refusal::Uncovered { covered_s, window_s });
        }
        // Holes in the polling itself.
        let hole = self.polls.windows(2).filter(|w| w[1].t_s > from && w[0].t_s < to).map(|w| w[1].t_s - w[0].t_s).fold(0.0, f64::max);
        if hole > 2.0 * period_s + 10.0 * poll_s {
            return Err(Refusal::Uncovered { covered_s: covered_s - hole, window_s });
        }
        let all = self.updates();
        let updates = within(&all, window);
        let inside = updates.iter().filter(|p| p.t_s > from).count();
        let ends = std::iter::once(from).chain(updates.iter().map(|p| p.t_s.max(from))).chain(std::iter::once(to));
        let times: Vec<f64> = ends.collect();
        let gap_s = times.windows(2).map(|w| w[1] - w[0]).fold(0.0, f64::max);
        if !self.sampled && (inside < FEWEST_UPDATES || (gap_s > STUCK_S && gap_s > STUCK_UPDATES * period_s)) {
            return Err(Refusal::Stuck { gap_s, updates: inside });
        }
        let line = polyline(&all, period_s, window);
        let joules = area(&line);
        let values: Vec<f64> = line.iter().map(|p| p.value).collect();
        let (low, high) = values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(*v), h.max(*v)));
        // Between two updates the draw may have changed early or late; a change is seen up to one poll late.
        let shape: f64 = line.windows(2).map(|w| (w[1].value - w[0].value).abs() * (w[1].t_s - w[0].t_s + poll_s) / 2.0).sum();
        // An instrument says when it measured; what a gauge shows may be one period old, or the mean of that period.
        let delay_s = self.shift_s + if self.sampled { 0.0 } else { period_s };
        let error_j = shape + delay_s * (high - low) + 0.5 * self.resolution_w * window_s;
        let samples: Vec<f64> = updates.iter().map(|p| p.value).collect();
        let peak_w = samples.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let spread_w = stats::standard_deviation(&samples).unwrap_or(0.0);
        if !(joules.is_finite() && error_j.is_finite() && peak_w.is_finite() && window_s > 0.0) {
            return Err(Refusal::Implausible("power that is no number".to_owned()));
        }
        Ok(Energy { joules, error_j, avg_w: joules / window_s, peak_w, updates: inside, period_s, spread_w })
    }
}

/// Energy of a window by trapezoids over the distinct samples of polled readings in W (metrics.md, "Power / energy"), clipped to the window.
/// Repeats within a period are dropped; a value that stands for longer than one and a half periods was measured again, so that it holds until
/// one period before the next one.
///
/// # Errors
/// Fewer than three updates, or one value for more than ten periods and 35 s; readings that do not cover the window.
pub fn integrate(polls: &[Point], window: (f64, f64)) -> Result<Energy, Refusal> {
    Watts::polled(polls.to_vec()).energy(window)
}

/// Which readings differ from the one before; the first counts, its age is unknown.
#[expect(clippy::float_cmp, reason = "a repeat is the very same number")]
pub fn changes(polls: &[Point]) -> Vec<bool> {
    (0..polls.len()).map(|i| i == 0 || polls[i].value != polls[i - 1].value).collect()
}

/// The draw over a window as a line through the updates.
fn polyline(updates: &[Point], period_s: f64, (from, to): (f64, f64)) -> Vec<Point> {
    let mut knots: Vec<Point> = Vec::with_capacity(updates.len() + 8);
    for p in updates {
        if let Some(last) = knots.last().copied()
            && p.t_s - last.t_s > 1.5 * period_s
        {
            knots.push(Point { t_s: p.t_s - period_s, value: last.value });
        }
        knots.push(*p);
    }
    let at = |t: f64| {
        let after = knots.partition_point(|p| p.t_s <= t);
        match (after.checked_sub(1).map(|i| knots[i]), knots.get(after)) {
            (Some(a), Some(b)) if b.t_s > a.t_s => Some(a.value + (b.value - a.value) * (t - a.t_s) / (b.t_s - a.t_s)),
            (Some(a), _) => Some(a.value),
            (None, _) => held(&knots, t),
        }
    };
    let inside = knots.iter().copied().filter(|p| p.t_s > from && p.t_s < to);
    let end = |t_s: f64| at(t_s).map(|value| Point { t_s, value });
    end(from).into_iter().chain(inside).chain(end(to)).collect()
}

fn area(line: &[Point]) -> f64 {
    line.windows(2).map(|w| f64::midpoint(w[0].value, w[1].value) * (w[1].t_s - w[0].t_s)).sum()
}

impl Watts {
    /// Joules of a part of a window whose energy is known to be sound, and its highest distinct sample (the held value's where none is in it).
    pub fn slice(&self, part: (f64, f64), period_s: f64) -> (f64, f64) {
        let all = self.updates();
        let line = polyline(&all, period_s, part);
        let samples = within(&all, part).iter().filter(|p| p.t_s > part.0 && p.t_s < part.1);
        let peak = samples.map(|p| p.value).fold(line.first().map_or(f64::NEG_INFINITY, |p| p.value), f64::max);
        (area(&line), peak)
    }
}
