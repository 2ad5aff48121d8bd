//! Temperatures by part of the device, how fast they rise, and what latency has to do with them.

use std::collections::BTreeMap;

use crate::analysis::series::TEMPERATURE_JUMP_C;

use super::{
    DOMAINS,
    figures::{Association, Rise, Window},
    trace::{Series, Trace, ns},
};

/// Windows that an association needs.
const FEWEST: usize = 5;
/// Half the width of a normal 95 % interval, in standard errors.
const Z: f64 = 1.96;

/// Temperatures by part of the device: that of its hottest zone.
pub struct Heat<'a> {
    pub trace: &'a Trace,
    pub domain: &'a dyn Fn(&str) -> Option<&'static str>,
    pub hold_ns: u64,
}

impl Heat<'_> {
    fn zones<'b>(&'b self, domain: &'b str) -> impl Iterator<Item = &'b Series> {
        self.trace.of("thermal").filter(move |(name, _)| (self.domain)(name) == Some(domain)).map(|(_, series)| series)
    }

    /// Whether there is a zone of it.
    pub fn has(&self, domain: &str) -> bool {
        self.zones(domain).next().is_some()
    }

    /// The temperature at a time.
    pub fn at(&self, domain: &str, t_ns: u64) -> Option<f64> {
        self.zones(domain).filter_map(|s| s.at(t_ns, self.hold_ns)).reduce(f64::max)
    }

    /// Mean of the zone that is hottest by its mean, and the largest value of any zone.
    pub fn extent(&self, domain: &str, from: u64, to: u64) -> Option<[f64; 2]> {
        let all = self.zones(domain).filter_map(|s| s.extent(from, to, self.hold_ns));
        all.map(|e| [e.mean, e.max]).reduce(|a, b| [a[0].max(b[0]), a[1].max(b[1])])
    }

    /// The highest temperature of each part, of the samples and of what else is known of its zones. A value that is far above every sample
    /// of its zone is one that no zone can have between two of them.
    pub fn peaks(&self, known: &BTreeMap<String, f64>) -> BTreeMap<String, f64> {
        let highest = |name: &str| self.trace.get("thermal", name).and_then(|s| s.values().iter().map(|v| v.1).reduce(f64::max));
        let possible = |name: &str, value: f64| highest(name).is_none_or(|most| value <= most + TEMPERATURE_JUMP_C);
        let mut all: BTreeMap<String, f64> = BTreeMap::new();
        let sampled = self.trace.of("thermal").flat_map(|(name, s)| s.values().iter().map(move |v| (name, v.1)));
        for (name, value) in sampled.chain(known.iter().map(|(name, v)| (name.as_str(), *v)).filter(|(name, v)| possible(name, *v))) {
            if let Some(domain) = (self.domain)(name).filter(|d| DOMAINS.contains(d)) {
                all.entry(domain.to_owned()).and_modify(|m| *m = m.max(value)).or_insert(value);
            }
        }
        all
    }

    /// Rise over the first minutes from `from`: the temperature at their end less that at their start, per minute. The interval is that of the
    /// two readings' noise and resolution, the noise from second differences of one reading a second (Gasser, Sroka and Jennen-Steinmetz 1986),
    /// which a trend does not enter.
    pub fn rise(&self, domain: &str, from: u64, minutes: f64) -> Option<Rise> {
        let seconds = 60.0 * minutes;
        let grid: Vec<f64> = (0..=seconds as u64).filter_map(|s| self.at(domain, from + ns(s as f64))).collect();
        // The reading at the start may come a moment after it.
        let first = self.at(domain, from).or_else(|| self.at(domain, from + ns(1.5)))?;
        let last = self.at(domain, from + ns(seconds))?;
        let squares: Vec<f64> = grid.windows(3).map(|w| (w[0] - 2.0 * w[1] + w[2]).powi(2) / 6.0).collect();
        let variance = if squares.is_empty() { 0.0 } else { squares.iter().sum::<f64>() / squares.len() as f64 };
        let step = grid.windows(2).map(|w| (w[1] - w[0]).abs()).filter(|d| *d > 1e-9).reduce(f64::min).unwrap_or(0.0);
        let half = Z * (2.0 * (variance + step * step / 12.0)).sqrt() / minutes;
        let value = (last - first) / minutes;
        Some(Rise { value, lo: value - half, hi: value + half })
    }
}

/// Latency of the windows (median gap between tokens, or the inverse of the throughput) against their mean temperature.
pub fn association(windows: &[Window], domain: &str) -> Option<Association> {
    let pairs: Vec<(f64, f64)> = windows
        .iter()
        .filter_map(|w| {
            let latency = w.itl_ms.map(|q| q[0]).or((w.tok_s > 0.0).then(|| 1e3 / w.tok_s))?;
            Some((w.domains.get(domain)?[0], latency))
        })
        .collect();
    if pairs.len() < FEWEST {
        return None;
    }
    let (temps, latencies): (Vec<f64>, Vec<f64>) = pairs.into_iter().unzip();
    let rho = correlation(&ranks(&temps), &ranks(&latencies))?;
    let (mean_t, mean_l) = (mean(&temps), mean(&latencies));
    let spread: f64 = temps.iter().map(|t| (t - mean_t).powi(2)).sum();
    let slope = temps.iter().zip(&latencies).map(|(t, l)| (t - mean_t) * (l - mean_l)).sum::<f64>() / spread;
    Some(Association { rho, slope, n: temps.len() as u32 })
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// Pearson's correlation; `None` where one of the two does not change.
fn correlation(a: &[f64], b: &[f64]) -> Option<f64> {
    let (ma, mb) = (mean(a), mean(b));
    let (mut ab, mut aa, mut bb) = (0.0, 0.0, 0.0);
    for (x, y) in a.iter().zip(b) {
        ab += (x - ma) * (y - mb);
        aa += (x - ma).powi(2);
        bb += (y - mb).powi(2);
    }
    (aa > 0.0 && bb > 0.0).then(|| ab / (aa * bb).sqrt())
}

/// Ranks from 1; equal values share their mean rank.
fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|a, b| values[*a].total_cmp(&values[*b]));
    let mut ranks = vec![0.0; values.len()];
    let mut from = 0;
    while from < order.len() {
        let same = order[from..].iter().take_while(|i| values[**i].total_cmp(&values[order[from]]).is_eq()).count();
        let rank = from as f64 + f64::midpoint(same as f64, 1.0);
        order[from..from + same].iter().for_each(|i| ranks[*i] = rank);
        from += same;
    }
    ranks
}
