//! What the order of values tells: drift, and how much each one repeats the one before.

use super::location::{mean, median, sorted};
use super::student::beyond;

/// Fewest values whose order tells anything: five have 120 orders.
const FEWEST: usize = 5;

/// Most values for which the chance of an order is counted and not taken from the normal distribution.
const COUNTED: usize = 12;

/// A drift over a series: from its first to its last value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Drift {
    /// Last over first by the fitted line, less 1: 0.03 is 3 % up.
    pub change: f64,
    /// Chance of an order as clear without any drift, both directions.
    pub p: f64,
}

impl Drift {
    /// Highest `p` of a drift that is marked.
    pub const LEVEL: f64 = 0.01;

    /// Smallest change that is marked: less than a hundredth is there everywhere and hurts nobody.
    pub const LEAST: f64 = 0.01;

    /// Whether it is to be marked: no chance, and large enough to matter.
    pub fn is_marked(&self) -> bool {
        self.p <= Self::LEVEL && self.change.abs() >= Self::LEAST
    }
}

/// Drift of values in the order in which they were measured, one a block: what the last is above the first, by the line of Theil and Sen
/// through the logarithms, with the significance of Mann and Kendall. One outlier moves neither; single values, like those of first and last
/// block, would say nothing about a noisy cell.
///
/// `None` under 5 values, or when one is not above zero.
pub fn drift(values: &[f64]) -> Option<Drift> {
    let logs = super::centre::logs(values)?;
    let n = logs.len();
    if n < FEWEST {
        return None;
    }
    let pairs = || (0..n).flat_map(|i| (i + 1..n).map(move |j| (i, j)));
    let slope = median(&pairs().map(|(i, j)| (logs[j] - logs[i]) / (j - i) as f64).collect::<Vec<_>>())?;
    let rises: i64 = pairs().map(|(i, j)| i64::from(logs[j] > logs[i]) - i64::from(logs[j] < logs[i])).sum();
    let change = (slope * (n - 1) as f64).exp_m1();
    change.is_finite().then(|| Drift { change, p: chance(&logs, rises) })
}

/// Two-sided chance of so many more rises than falls among all pairs: counted for a few values without ties, else by the normal
/// distribution with the variance for ties and the correction for continuity (Kendall 1975).
fn chance(values: &[f64], rises: i64) -> f64 {
    let n = values.len();
    let ascending = sorted(values).unwrap_or_default();
    let ties: Vec<f64> = ascending.chunk_by(|a, b| a.total_cmp(b).is_eq()).map(|equal| equal.len() as f64).collect();
    if n <= COUNTED && ties.len() == n {
        // Orders of 1..=m by their number of falls: each new value can be put behind 0..m of the others.
        let mut orders = vec![1.0];
        for m in 1..n {
            let mut more = vec![0.0; orders.len() + m];
            for (falls, count) in orders.iter().enumerate() {
                more[falls..=falls + m].iter_mut().for_each(|sum| *sum += count);
            }
            orders = more;
        }
        let falls = (orders.len() - 1).saturating_sub(rises.unsigned_abs() as usize) / 2;
        let (tail, all): (f64, f64) = (orders[..=falls].iter().sum(), orders.iter().sum());
        return (2.0 * tail / all).min(1.0);
    }
    let form = |m: f64| m * (m - 1.0) * (2.0 * m + 5.0);
    let variance = (form(n as f64) - ties.iter().map(|equal| form(*equal)).sum::<f64>()) / 18.0;
    if variance <= 0.0 {
        return 1.0;
    }
    let z = (rises.unsigned_abs().saturating_sub(1)) as f64 / variance.sqrt();
    (2.0 * beyond(z, f64::INFINITY)).min(1.0)
}

/// Autocorrelation at a lag: covariance of values `lag` apart over the variance, both over n and about the common mean (the usual, biased
/// estimate: Box and Jenkins). `None` when there are not more than `lag` values, or no spread.
pub fn autocorrelation(values: &[f64], lag: usize) -> Option<f64> {
    let centre = mean(values).filter(|_| values.len() > lag)?;
    let variance: f64 = values.iter().map(|value| (value - centre).powi(2)).sum();
    let covariance: f64 = values.iter().zip(&values[lag..]).map(|(a, b)| (a - centre) * (b - centre)).sum();
    Some(covariance / variance).filter(|found| found.is_finite())
}

/// As how many independent values these count for a mean: `n (1 - r) / (1 + r)` with the autocorrelation `r` at lag 1 (that of an AR(1) process),
/// corrected for the bias `-(1 + 4 r) / n` of its estimate (Kendall 1954). Never more than there are: a negative one is not trusted.
/// `None` under 5 values.
pub fn effective_size(values: &[f64]) -> Option<f64> {
    let n = values.len() as f64;
    if values.len() < FEWEST {
        return None;
    }
    // Values without spread don't repeat each other in anything.
    let r = autocorrelation(values, 1).unwrap_or(0.0);
    let r = (r + (1.0 + 4.0 * r) / n).clamp(0.0, 0.99);
    Some((n * (1.0 - r) / (1.0 + r)).max(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::SplitMix64;
    use crate::reference::{EVEN, ODD, close, many_samples};

    #[test]
    fn agrees_with_scipy() {
        // st.theilslopes(np.log(x), np.arange(n)); st.kendalltau(np.arange(n), x, method="exact") for EVEN; for the others the formula of
        // Kendall 1975 with st.norm.
        let found = drift(&EVEN).expect("a drift");
        assert!((found.change + 0.133_193_011_293_753_58).abs() < 1e-9 && (found.p - 0.737_305_524_657_955_2).abs() < 1e-12, "{found:?}");
        let found = drift(&ODD).expect("a drift");
        assert!((found.change + 0.005_859_375).abs() < 1e-9 && (found.p - 1.0).abs() < 1e-12, "{found:?}");
        let found = drift(&[3.0, 1.0, 1.0, 2.0, 2.0, 2.0, 3.0, 4.0, 4.0, 5.0]).expect("a drift");
        assert!((found.change - 3.756_828_460_010_884).abs() < 1e-9 && (found.p - 0.010_053_726_584_677_69).abs() < 1e-6, "{found:?}");
        // d = x - x.mean(); (d[:-k] * d[k:]).sum() / (d * d).sum()
        close(autocorrelation(&ODD, 1), -0.508_988_378_807_564_5);
        close(autocorrelation(&EVEN, 2), -0.151_258_947_992_215_3);
    }

    #[test]
    fn a_steady_rise_is_marked_and_noise_is_not() {
        let rising: Vec<f64> = (0..10).map(|i| 100.0 * 1.003_f64.powi(i)).collect();
        let found = drift(&rising).expect("a drift");
        close(Some(found.change), 1.003_f64.powi(9) - 1.0);
        // Two of 10! orders are as clear.
        close(Some(found.p), 2.0 / 3_628_800.0);
        assert!(found.is_marked() && !drift(&ODD).expect("a drift").is_marked());
        assert_eq!(drift(&[7.0; 9]), Some(Drift { change: 0.0, p: 1.0 }));
        for values in [&[1.0, 2.0, 3.0, 4.0] as &[f64], &[1.0, 2.0, 3.0, 4.0, 0.0], &[1.0, 2.0, 3.0, 4.0, f64::NAN]] {
            assert_eq!(drift(values), None);
        }
    }

    #[test]
    fn effective_size_of_what_repeats_itself() {
        let mut random = SplitMix64::new(3);
        let mut draw = move || (0..12).map(|_| random.below(1 << 20) as f64 / f64::from(1 << 20)).sum::<f64>() - 6.0;
        let mut last = 0.0;
        let series: Vec<f64> = (0..2_000)
            .map(|_| {
                last = 0.5 * last + 0.75_f64.sqrt() * draw();
                last
            })
            .collect();
        // AR(1) with 0.5: a third of 2,000.
        let found = effective_size(&series).expect("a size");
        assert!((600.0..740.0).contains(&found), "{found}");
        assert_eq!(effective_size(&[1.0; 8]), Some(8.0 * (1.0 - 0.125) / 1.125));
        assert_eq!(effective_size(&[1.0; 4]), None);
        for values in many_samples() {
            let n = values.len() as f64;
            assert!(effective_size(&values).is_none_or(|size| (1.0..=n).contains(&size)));
            assert!(autocorrelation(&values, 1).is_none_or(|r| (-1.0..=1.0).contains(&r)));
            assert_eq!(autocorrelation(&values, values.len()), None);
        }
    }
}
