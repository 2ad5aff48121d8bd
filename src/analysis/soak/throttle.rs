//! Throttling: what the throughput shows, and what cooling devices and caps say.

use super::{
    figures::{Soak, Window},
    trace::{Series, Trace},
};
use crate::stats;

/// Windows under this share of the initial throughput are throttled (`facts/metrics.md`, which takes the first of them).
const THROTTLED: f64 = 0.9;
/// Windows within this share of their median are steady.
const STEADY: f64 = 0.05;
/// Steady means at least so many windows.
const FEWEST_STEADY: usize = 3;
/// The stretches at start and end that are compared, in seconds (`facts/metrics.md`).
const SPAN_S: f64 = 60.0;

/// The figures that follow from the throughput of the windows.
pub fn put(soak: &mut Soak, absent: &mut Vec<(&'static str, &'static str)>) {
    let windows = &soak.windows;
    let length = soak.length_s;
    let span = SPAN_S.min(length / 3.0);
    let first = rate(windows, 0.0, span);
    let last = rate(windows, length - span, length);
    let distinct = windows.len() >= 3;
    if let (Some(first), Some(last), true) = (first, last, distinct) {
        soak.span_s = Some(span);
        soak.initial_tok_s = Some(first);
        soak.sustained_ratio = (first > 0.0).then(|| last / first);
        soak.time_to_throttle_s = slow_from(windows, THROTTLED * first);
        if soak.time_to_throttle_s.is_none() {
            absent.push(("time_to_throttle_s", "no two windows in a row were under 0.9 of the initial throughput"));
        }
    } else {
        absent.push(("sustained_ratio", "fewer than 3 windows"));
        absent.push(("time_to_throttle_s", "fewer than 3 windows"));
    }
    soak.steady_state_s = steady(windows);
    if soak.steady_state_s.is_none() {
        absent.push(("steady_state_s", "the last 3 windows are not within 5 % of their median"));
    }
    soak.minute_1_tok_s = (length >= 60.0).then(|| rate(windows, 0.0, 60.0)).flatten();
    soak.minute_30_tok_s = (length >= 1800.0).then(|| rate(windows, 1740.0, 1800.0)).flatten();
    for (figure, value) in [("minute_1_tok_s", soak.minute_1_tok_s), ("minute_30_tok_s", soak.minute_30_tok_s)] {
        if value.is_none() {
            absent.push((figure, "not reached"));
        }
    }
}

/// Start of the first of two windows in a row under `limit`. One alone is anything: a page fault, somebody else's work.
fn slow_from(windows: &[Window], limit: f64) -> Option<f64> {
    windows.windows(2).find(|pair| pair.iter().all(|w| w.tok_s < limit)).map(|pair| pair[0].start_s)
}

/// Median throughput of the windows whose middle lies in a stretch of seconds; of the one that holds the stretch's middle if there is none.
fn rate(windows: &[Window], from_s: f64, to_s: f64) -> Option<f64> {
    let middle = |w: &Window| w.start_s + w.length_s / 2.0;
    let inside: Vec<f64> = windows.iter().filter(|w| (from_s..=to_s).contains(&middle(w))).map(|w| w.tok_s).collect();
    let held = f64::midpoint(from_s, to_s);
    let around = || windows.iter().find(|w| w.start_s <= held && held <= w.start_s + w.length_s).map(|w| w.tok_s);
    stats::median(&inside).or_else(around)
}

/// The start of the longest end of the soak whose windows all lie within 5 % of their median.
fn steady(windows: &[Window]) -> Option<f64> {
    let rates: Vec<f64> = windows.iter().map(|w| w.tok_s).collect();
    let is_steady = |from: usize| {
        let tail = &rates[from..];
        stats::median(tail).is_some_and(|m| m > 0.0 && tail.iter().all(|r| (r / m - 1.0).abs() <= STEADY))
    };
    let latest = rates.len().checked_sub(FEWEST_STEADY)?;
    // Only an end whose extremes can lie within one band is looked at: hours have thousands of windows.
    let (mut low, mut high, mut earliest) = (f64::INFINITY, 0.0_f64, rates.len());
    for (place, rate) in rates.iter().enumerate().rev() {
        (low, high) = (low.min(*rate), high.max(*rate));
        // Without a token nothing is steady.
        if *rate <= 0.0 || high * (1.0 - STEADY) > low * (1.0 + STEADY) {
            break;
        }
        earliest = place;
    }
    (earliest..=latest).find(|from| is_steady(*from)).map(|from| windows[from].start_s)
}

/// Cooling devices, and caps with what their cluster could do.
pub struct States<'a> {
    cooling: Vec<(&'a str, &'a Series)>,
    /// Name, cap over time, and the cluster's maximum.
    caps: Vec<(&'a str, &'a Series, f64)>,
    hold_ns: u64,
}

impl<'a> States<'a> {
    pub fn of(trace: &'a Trace, hold_ns: u64) -> Self {
        let cap = |(name, series): (&'a str, &'a Series)| {
            let cluster = name.strip_suffix("_cap")?;
            let told = trace.get("cpufreq", &format!("{cluster}_max")).and_then(|s| s.values().first().map(|v| v.1));
            // Without the maximum: the highest cap that was seen.
            let most = told.or_else(|| series.values().iter().map(|v| v.1).reduce(f64::max))?;
            (most > 0.0).then_some((name, series, most))
        };
        Self { cooling: trace.of("cooling").collect(), caps: trace.of("cpufreq").filter_map(cap).collect(), hold_ns }
    }

    /// Whether there is anything that could tell of throttling.
    pub fn any(&self) -> bool {
        !self.cooling.is_empty() || !self.caps.is_empty()
    }

    /// The first cooling device whose state rises, or the first cap that falls: time, name, from and to. Of two at the same time the device,
    /// since caps follow it.
    pub fn first(&self) -> Option<(u64, String, [f64; 2])> {
        self.changes().into_iter().next()
    }

    /// Every rise of a cooling device and every fall of a cap, in order.
    pub fn changes(&self) -> Vec<(u64, String, [f64; 2])> {
        let mut all = Vec::new();
        for (name, series) in &self.cooling {
            let rises = series.values().windows(2).filter(|w| w[1].1 > w[0].1);
            all.extend(rises.map(|w| (w[1].0, format!("cooling {name}"), [w[0].1, w[1].1])));
        }
        for (name, series, most) in &self.caps {
            let mut before = *most;
            for (t, cap) in series.values() {
                if *cap < before {
                    all.push((*t, format!("cpufreq {name}"), [before, *cap]));
                }
                before = *cap;
            }
        }
        all.sort_by_key(|(t, ..)| *t);
        all
    }

    /// Share of a stretch's time in which a cooling device worked or a cap was under its maximum.
    pub fn fraction(&self, from: u64, to: u64) -> Option<f64> {
        if !self.any() || to <= from {
            return None;
        }
        // The times at which anything changes; between two of them all states hold.
        let mut times = vec![from, to];
        let series = self.cooling.iter().map(|(_, s)| *s).chain(self.caps.iter().map(|(_, s, _)| *s));
        times.extend(series.flat_map(|s| s.values().iter().map(|v| v.0)).filter(|t| (from..to).contains(t)));
        times.sort_unstable();
        times.dedup();
        let (mut throttled, mut known) = (0, 0);
        for pair in times.windows(2) {
            let at = |s: &Series| s.at(pair[0], self.hold_ns);
            let mut states = self.cooling.iter().filter_map(|(_, s)| Some(at(s)? > 0.0)).collect::<Vec<_>>();
            states.extend(self.caps.iter().filter_map(|(_, s, most)| Some(at(s)? < *most)));
            if !states.is_empty() {
                known += pair[1] - pair[0];
                throttled += if states.contains(&true) { pair[1] - pair[0] } else { 0 };
            }
        }
        (known > 0).then(|| throttled as f64 / known as f64)
    }

    /// The lowest cap of any cluster in a stretch, as a share of what it can do.
    pub fn lowest_cap(&self, from: u64, to: u64) -> Option<f64> {
        self.caps.iter().filter_map(|(_, s, most)| Some(s.extent(from, to, self.hold_ns)?.min / most)).reduce(f64::min)
    }

    /// The highest state of any cooling device in a stretch.
    pub fn highest_cooling(&self, from: u64, to: u64) -> Option<f64> {
        self.cooling.iter().filter_map(|(_, s)| Some(s.extent(from, to, self.hold_ns)?.max)).reduce(f64::max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Windows of 30 s over 30 minutes: 100 tokens a second, and one less in each.
    fn half_an_hour() -> Soak {
        let window = |n: u32| Window { start_s: f64::from(n) * 30.0, length_s: 30.0, tok_s: 100.0 - f64::from(n), ..Window::default() };
        Soak { windows: (0..60).map(window).collect(), length_s: 1800.0, ..Soak::default() }
    }

    /// By hand: windows 0 and 1 are the first minute, 58 and 59 the thirtieth.
    #[test]
    fn the_first_minute_and_the_thirtieth() {
        let minutes = |mut soak: Soak| {
            let mut absent = Vec::new();
            put(&mut soak, &mut absent);
            let why = absent.into_iter().filter(|(figure, _)| figure.starts_with("minute_")).collect::<Vec<_>>();
            ([soak.minute_1_tok_s, soak.minute_30_tok_s], why)
        };
        assert_eq!(minutes(half_an_hour()), ([Some(99.5), Some(41.5)], vec![]));
        // Nothing was seen in the last minute; and a soak that ended before it.
        let mut gap = half_an_hour();
        gap.windows.truncate(58);
        assert_eq!(minutes(gap).0, [Some(99.5), None]);
        let mut short = half_an_hour();
        short.windows.truncate(59);
        short.length_s = 1770.0;
        assert_eq!(minutes(short), ([Some(99.5), None], vec![("minute_30_tok_s", "not reached")]));
        // A window of five minutes holds the minute's middle.
        let mut coarse = half_an_hour();
        coarse.windows = vec![Window { start_s: 1500.0, length_s: 300.0, tok_s: 7.0, ..Window::default() }];
        assert_eq!(minutes(coarse).0, [None, Some(7.0)]);
    }
}
