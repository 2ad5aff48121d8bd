//! Intervals of a median.

use super::location::{quantile_of_sorted, sorted};
use super::resample::bootstrap_medians;
use super::student::{beyond, student};
use super::summary::N_SMALL;
use crate::random::SplitMix64;

/// How an interval was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// Percentiles of resampled medians.
    Bootstrap,
    /// Two of the values themselves; exact for any continuous distribution.
    OrderStatistics,
}

/// An interval of a median.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// Lower end.
    pub lo: f64,
    /// Upper end.
    pub hi: f64,
    /// How it was made.
    pub method: Method,
    /// Nominal for the bootstrap. For order statistics the true one, which under six values is below 0.95 and for one value is 0.
    pub coverage: f64,
}

/// A 95 % interval of the median. See [`interval_at`].
pub fn interval(values: &[f64], seed: u64) -> Option<Interval> {
    interval_at(values, 0.95, seed)
}

/// An interval of the median at the asked level (0.95 for 95 %).
///
/// From ten values on, the expanded percentile bootstrap (Hesterberg 2015, "What teachers should know about the bootstrap", section 4.2), without
/// which 11 to 20 values would cover 93 %. BCa is not used: its acceleration comes from a jackknife, and the jackknife of a median
/// is inconsistent (Efron and Tibshirani 1993, section 10.6). Below ten values a bootstrap can only repeat the few values that it has,
/// so the narrowest symmetric pair of order statistics that covers at least the level is given; where none does, the smallest and the
/// largest value, with the coverage that they really have.
pub fn interval_at(values: &[f64], level: f64, seed: u64) -> Option<Interval> {
    if !(0.0..1.0).contains(&level) {
        return None;
    }
    let ascending = sorted(values)?;
    let n = ascending.len();
    if n >= N_SMALL {
        let medians = bootstrap_medians(&ascending, &mut SplitMix64::new(seed))?;
        // Resamples of n values spread less than samples of n do: the tails are moved out accordingly (Hesterberg 2015).
        let count = n as f64;
        let tail = beyond(student(f64::midpoint(1.0, level), count - 1.0) * (count / (count - 1.0)).sqrt(), f64::INFINITY);
        let (lo, hi) = (quantile_of_sorted(&medians, tail), quantile_of_sorted(&medians, 1.0 - tail));
        return Some(Interval { lo, hi, method: Method::Bootstrap, coverage: level });
    }
    let rank = (1..=n / 2).rev().find(|rank| order_coverage(n, *rank) >= level).unwrap_or(1);
    Some(Interval { lo: ascending[rank - 1], hi: ascending[n - rank], method: Method::OrderStatistics, coverage: order_coverage(n, rank) })
}

/// Probability that the median lies between the `rank`-th smallest and the `rank`-th largest of `n` values: `1 - 2 P(Bin(n, 1/2) < rank)`.
fn order_coverage(n: usize, rank: usize) -> f64 {
    let mut term = 0.5_f64.powf(n as f64);
    let mut tail = 0.0;
    for below in 0..rank {
        tail += term;
        term *= (n - below) as f64 / (below + 1) as f64;
    }
    (1.0 - 2.0 * tail).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::median;
    use crate::reference::{EVEN, ODD, close, many_samples};

    #[test]
    fn coverage_of_order_statistics_agrees_with_scipy() {
        for (n, rank, coverage) in [
            (1, 1, 0.0),
            (2, 1, 0.5),
            (3, 1, 0.75),
            (4, 1, 0.875),
            (5, 1, 0.9375),
            (6, 1, 0.96875),
            (7, 1, 0.984_375),
            (8, 1, 0.992_187_5),
            (8, 2, 0.929_687_5),
            (9, 2, 0.960_937_5),
            (12, 3, 0.961_425_781_25),
        ] {
            close(Some(order_coverage(n, rank)), coverage);
        }
    }

    #[test]
    fn few_values_give_order_statistics_with_their_true_coverage() {
        let nine = [9.0, 1.0, 5.0, 3.0, 7.0, 2.0, 8.0, 4.0, 6.0];
        let found = interval(&nine, 0).expect("values");
        assert_eq!((found.lo, found.hi, found.method), (2.0, 8.0, Method::OrderStatistics));
        let five = interval(&nine[..5], 0).expect("values");
        assert_eq!((five.lo, five.hi, five.coverage), (1.0, 9.0, 0.9375));
        let one = interval(&[3.0], 0).expect("a value");
        assert_eq!((one.lo, one.hi, one.coverage), (3.0, 3.0, 0.0));
    }

    #[test]
    fn bootstrap_agrees_with_scipy() {
        // st.bootstrap(..., confidence_level=1 - 2 * st.norm.sf(st.t.ppf(.975, n - 1) * (n / (n - 1)) ** .5)), see `reference`.
        let odd = interval(&ODD, 1).expect("values");
        assert_eq!((odd.lo, odd.hi), (49.5, 51.2));
        let even = interval(&EVEN, 1).expect("values");
        assert_eq!((even.lo, even.hi, even.method, even.coverage), (6.75, 10.0, Method::Bootstrap, 0.95));
    }

    #[test]
    fn an_interval_holds_the_median_and_lies_in_the_range() {
        for values in many_samples() {
            let (centre, found) = (median(&values).expect("values"), interval(&values, 7).expect("values"));
            let least = values.iter().copied().fold(f64::INFINITY, f64::min);
            let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            assert!(least <= found.lo && found.lo <= centre && centre <= found.hi && found.hi <= most, "{values:?} {found:?}");
            assert_eq!(found, interval(&values, 7).expect("values"), "the same seed gives the same interval");
            assert_eq!(found.method == Method::OrderStatistics, values.len() < N_SMALL);
        }
    }

    #[test]
    fn a_wider_level_is_a_wider_interval() {
        let (usual, wide) = (interval_at(&EVEN, 0.95, 3).expect("values"), interval_at(&EVEN, 0.99, 3).expect("values"));
        assert!(wide.lo < usual.lo && wide.hi > usual.hi);
        assert_eq!(interval_at(&EVEN, 1.0, 3), None);
    }

    #[test]
    fn the_interval_covers_the_true_median_about_as_often_as_it_says() {
        // Exponential draws, whose median is ln 2: 300 intervals of 14 values. Seeded, so it either holds or it does not.
        let mut random = SplitMix64::new(99);
        let mut draw = || -(1.0 - random.below(1 << 30) as f64 / f64::from(1 << 30)).ln();
        let hits = (0..300)
            .filter(|round| {
                let values: Vec<f64> = (0..14).map(|_| draw()).collect();
                interval(&values, *round).is_some_and(|found| found.lo <= std::f64::consts::LN_2 && std::f64::consts::LN_2 <= found.hi)
            })
            .count();
        assert!((270..=295).contains(&hits), "{hits} of 300");
    }

    #[test]
    fn nothing_gives_nothing() {
        assert_eq!(interval(&[], 0), None);
        assert_eq!(interval(&[1.0, f64::NAN], 0), None);
    }
}
