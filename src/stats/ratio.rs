//! How many times one median is another.

use super::interval::{Method, interval};
use super::location::{median, quantile_of_sorted, sorted};
use super::resample::{RESAMPLES, SplitMix64, resampled_median};
use super::summary::N_SMALL;

/// A ratio of two medians.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ratio {
    /// Median of the numerator over median of the denominator.
    pub ratio: f64,
    /// Lower end of its interval.
    pub lo: f64,
    /// Upper end of its interval.
    pub hi: f64,
    /// How the interval was made.
    pub method: Method,
    /// Nominal for the bootstrap, a lower bound for order statistics.
    pub coverage: f64,
}

impl Ratio {
    /// Whether the interval leaves out 1, that is, whether the two can be told apart at all. An interval that covers nothing tells nothing.
    pub fn is_apart(&self) -> bool {
        self.coverage >= 0.75 && (self.lo > 1.0 || self.hi < 1.0)
    }
}

/// Ratio of the medians of two independent samples with a 95 % interval.
///
/// Both are resampled where both have ten values. Otherwise the ends of the two order-statistics intervals are divided by each other,
/// which is wider than need be and covers at least the product of their coverages.
/// `None` unless every value is finite and above zero, as durations and rates are.
pub fn ratio_of_medians(numerator: &[f64], denominator: &[f64], seed: u64) -> Option<Ratio> {
    let (above, below) = (sorted(numerator)?, sorted(denominator)?);
    if above[0] <= 0.0 || below[0] <= 0.0 {
        return None;
    }
    let ratio = median(&above)? / median(&below)?;
    let found = if above.len() >= N_SMALL && below.len() >= N_SMALL {
        let mut random = SplitMix64::new(seed);
        let mut ratios: Vec<f64> =
            (0..RESAMPLES).map(|_| resampled_median(&above, &mut random) / resampled_median(&below, &mut random)).collect();
        ratios.sort_by(f64::total_cmp);
        Ratio {
            ratio,
            lo: quantile_of_sorted(&ratios, 0.025),
            hi: quantile_of_sorted(&ratios, 0.975),
            method: Method::Bootstrap,
            coverage: 0.95,
        }
    } else {
        let (above, below) = (interval(&above, seed)?, interval(&below, seed)?);
        Ratio {
            ratio,
            lo: above.lo / below.hi,
            hi: above.hi / below.lo,
            method: Method::OrderStatistics,
            coverage: above.coverage * below.coverage,
        }
    };
    [found.ratio, found.lo, found.hi].iter().all(|end| end.is_finite()).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::reference::{EVEN, ODD, close};

    #[test]
    fn agrees_with_scipy() {
        let found = ratio_of_medians(&ODD, &EVEN, 5).expect("a ratio");
        close(Some(found.ratio), 6.477_419_354_838_71);
        // SciPy: 5.274 to 7.331. Two Monte-Carlo estimates of a stepwise distribution agree to one step.
        assert!((found.lo - 5.274).abs() < 0.1 && (found.hi - 7.331).abs() < 0.1, "{found:?}");
        assert!(found.is_apart());
    }

    #[test]
    fn a_sample_against_itself_is_not_apart() {
        let found = ratio_of_medians(&EVEN, &EVEN, 5).expect("a ratio");
        assert!(found.lo < 1.0 && found.hi > 1.0 && !found.is_apart(), "{found:?}");
    }

    #[test]
    fn few_values_divide_the_ends() {
        let found = ratio_of_medians(&[10.0, 11.0, 12.0, 10.5, 11.5, 12.5], &[2.0, 2.1, 2.2, 2.3, 2.4, 2.5], 0).expect("a ratio");
        close(Some(found.lo), 4.0);
        close(Some(found.hi), 6.25);
        close(Some(found.coverage), 0.96875 * 0.96875);
        assert_eq!(found.method, Method::OrderStatistics);
    }

    #[test]
    fn single_values_have_a_ratio_that_proves_nothing() {
        let found = ratio_of_medians(&[10.0], &[2.0], 0).expect("a ratio");
        assert_eq!((found.ratio, found.coverage, found.is_apart()), (5.0, 0.0, false));
    }

    #[test]
    fn zero_negative_and_missing_values_have_no_ratio() {
        assert_eq!(ratio_of_medians(&[1.0], &[0.0], 0), None);
        assert_eq!(ratio_of_medians(&[-1.0, 2.0], &[1.0], 0), None);
        assert_eq!(ratio_of_medians(&[], &[1.0], 0), None);
        assert_eq!(ratio_of_medians(&[f64::MAX], &[f64::MIN_POSITIVE], 0), None);
    }
}
