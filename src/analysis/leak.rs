//! Growth of memory over a long run: a slope with its interval, to tell a leak from what comes and goes. Pure.
//!
//! A least-squares line over time. Successive readings of memory are not independent (a buffer that is there now is there a second later), and an
//! interval that takes them so is far too narrow. Hence the adjusted one of Santer et al., "Statistical significance of trends and trend differences
//! in layer-average atmospheric temperature time series", Journal of Geophysical Research 105 (2000), 7337-7356, equations 3 to 6: with the lag-1
//! autocorrelation `r` of the residuals, `n` values are worth `n (1 - r) / (1 + r)`, in the variance of the residuals and in the degrees of freedom.
//! Memory that moves in a few large steps is then worth so few values that it has no interval, which is said and not guessed.

use std::fmt;

use crate::stats;

/// Seconds that a trace must span: below, warming up looks like a leak.
pub const SHORTEST_S: f64 = 60.0;
/// Values that the line is laid through: a trace with more is cut into so many stretches of equal length, each with its median.
const MOST: usize = 240;
/// Fewest values.
const FEWEST: usize = 12;

/// A slope with its 95 % interval, in units of the values per hour.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Growth {
    /// Growth per hour.
    pub per_h: f64,
    /// Lower end.
    pub lo: f64,
    /// Upper end.
    pub hi: f64,
    /// Independent values that the trace is worth.
    pub effective_n: f64,
}

/// Why there is no slope.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum NoGrowth {
    /// The trace spans so many seconds.
    Short(f64),
    /// The trace has so few values.
    Few(usize),
    /// The trace is worth fewer than four independent values.
    Steps,
}
impl fmt::Display for NoGrowth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Short(s) => write!(f, "{s:.0} s of measured queries, {SHORTEST_S:.0} s are needed"),
            Self::Few(n) => write!(f, "{n} readings during measured queries, {FEWEST} are needed"),
            Self::Steps => write!(f, "memory moved in few large steps, which have no slope with an interval"),
        }
    }
}

/// The slope of `points` (seconds, value), in order of time.
///
/// # Errors
/// The trace is too short, has too few values, or is worth too few; values that are not finite are left out.
pub fn growth(points: &[(f64, f64)]) -> Result<Growth, NoGrowth> {
    let points: Vec<(f64, f64)> = points.iter().copied().filter(|(t, v)| t.is_finite() && v.is_finite()).collect();
    let (Some(first), Some(last)) = (points.first(), points.last()) else { return Err(NoGrowth::Few(0)) };
    let span = last.0 - first.0;
    if span < SHORTEST_S {
        return Err(NoGrowth::Short(span.max(0.0)));
    }
    let points = thinned(&points, first.0, span);
    if points.len() < FEWEST {
        return Err(NoGrowth::Few(points.len()));
    }
    let n = points.len() as f64;
    let centre_t = points.iter().map(|p| p.0).sum::<f64>() / n;
    let centre_v = points.iter().map(|p| p.1).sum::<f64>() / n;
    let spread: f64 = points.iter().map(|(t, _)| (t - centre_t).powi(2)).sum();
    let slope = points.iter().map(|(t, v)| (t - centre_t) * (v - centre_v)).sum::<f64>() / spread;
    let residuals: Vec<f64> = points.iter().map(|(t, v)| v - centre_v - slope * (t - centre_t)).collect();
    let squares: f64 = residuals.iter().map(|e| e * e).sum();
    // What is left of a perfect line is rounding, and has no correlation to speak of.
    let correlation = if squares > 1e-18 * n * (1.0 + centre_v * centre_v) {
        (residuals.windows(2).map(|w| w[0] * w[1]).sum::<f64>() / squares).clamp(0.0, 1.0)
    } else {
        0.0
    };
    let effective_n = n * (1.0 - correlation) / (1.0 + correlation);
    if effective_n < 4.0 {
        return Err(NoGrowth::Steps);
    }
    let error = (squares / (effective_n - 2.0) / spread).sqrt();
    let half = stats::student_95(effective_n - 2.0) * error;
    Ok(Growth { per_h: slope * 3600.0, lo: (slope - half) * 3600.0, hi: (slope + half) * 3600.0, effective_n })
}

/// At most [`MOST`] points: the median of each stretch of time at its mean time. Stretches without a reading have no point.
fn thinned(points: &[(f64, f64)], start: f64, span: f64) -> Vec<(f64, f64)> {
    if points.len() <= MOST {
        return points.to_vec();
    }
    let stretch = |t: f64| (((t - start) / span * MOST as f64) as usize).min(MOST - 1);
    points
        .chunk_by(|a, b| stretch(a.0) == stretch(b.0))
        .filter_map(|chunk| {
            let times: Vec<f64> = chunk.iter().map(|p| p.0).collect();
            let values: Vec<f64> = chunk.iter().map(|p| p.1).collect();
            Some((stats::mean(&times)?, stats::median(&values)?))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A reading every 100 ms; noise from SplitMix64.
    fn trace(seconds: f64, seed: u64, value: impl Fn(f64, f64) -> f64) -> Vec<(f64, f64)> {
        let mut state = seed;
        let mut noise = move || {
            state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
            let mut z = state;
            z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
            ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64 - 0.5
        };
        (0..=(seconds * 10.0) as u32).map(|i| f64::from(i) / 10.0).map(|t| (t, value(t, noise()))).collect()
    }

    #[test]
    fn a_perfect_line_is_its_slope() {
        // 0.5 MB a second are 1800 an hour.
        let g = growth(&trace(120.0, 1, |t, _| 1000.0 + 0.5 * t)).unwrap();
        assert!((g.per_h - 1800.0).abs() < 1e-6 && g.hi - g.lo < 1e-3, "{g:?}");
        let still = growth(&trace(90.0, 1, |_, _| 777.0)).unwrap();
        assert!(still.per_h.abs() < 1e-9 && still.lo <= 0.0 && still.hi >= 0.0, "{still:?}");
    }

    #[test]
    fn a_leak_in_noise_is_found_and_its_interval_holds_the_truth() {
        // 36 MB an hour beside noise of +-4 MB, over 10 minutes (6 MB in all).
        let truth = 36.0;
        let found: Vec<Growth> =
            (0..200).map(|seed| growth(&trace(600.0, seed, |t, noise| 500.0 + truth / 3600.0 * t + 8.0 * noise)).unwrap()).collect();
        let holds = found.iter().filter(|g| g.lo <= truth && truth <= g.hi).count();
        assert!((180..=200).contains(&holds), "{holds} of 200");
        assert!(found.iter().all(|g| g.lo > 0.0), "each of them is told from none");
    }

    #[test]
    fn steps_of_a_leak_have_its_slope() {
        // 2 MB more every 5 s: 1440 an hour.
        let g = growth(&trace(600.0, 3, |t, _| 300.0 + 2.0 * (t / 5.0).floor())).unwrap();
        assert!((g.per_h - 1440.0).abs() < 15.0 && g.lo <= 1440.0 && 1440.0 <= g.hi, "{g:?}");
    }

    #[test]
    fn a_sawtooth_is_no_leak() {
        // A cache that fills to 50 MB and is emptied, at any period and any place of the window within it.
        let mut judged = 0;
        for period in [3.0, 7.0, 11.0, 16.0, 23.0, 31.0, 47.0, 80.0, 130.0, 200.0] {
            for phase in 0..10 {
                let teeth = trace(300.0, 5, |t, noise| 400.0 + 50.0 * ((t / period + f64::from(phase) / 10.0) % 1.0) + noise);
                match growth(&teeth) {
                    Ok(g) => {
                        judged += 1;
                        assert!(g.lo <= 0.0 && 0.0 <= g.hi, "period {period}, phase {phase}: {g:?}");
                    }
                    Err(why) => assert_eq!(why, NoGrowth::Steps),
                }
            }
        }
        assert!(judged >= 50, "{judged}");
    }

    #[test]
    fn one_step_is_no_leak() {
        for at in [20.0, 60.0, 100.0, 160.0] {
            match growth(&trace(180.0, 9, |t, noise| if t < at { 400.0 } else { 460.0 } + 0.1 * noise)) {
                Ok(g) => assert!(g.lo <= 0.0, "at {at}: {g:?}"),
                Err(why) => assert_eq!(why, NoGrowth::Steps),
            }
        }
    }

    #[test]
    fn what_is_too_short_is_refused() {
        assert_eq!(growth(&[]), Err(NoGrowth::Few(0)));
        assert_eq!(growth(&trace(59.0, 1, |t, _| t)), Err(NoGrowth::Short(59.0)));
        assert_eq!(growth(&[(0.0, 1.0), (61.0, 2.0)]), Err(NoGrowth::Few(2)));
        assert_eq!(NoGrowth::Short(59.0).to_string(), "59 s of measured queries, 60 s are needed");
    }
}
