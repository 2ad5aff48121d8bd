//! How many times one median is another.

use super::interval::interval;
use super::location::{median, quantile_of_sorted, sorted};
use super::resample::{RESAMPLES, resampled_median};
use super::summary::N_SMALL;
use crate::random::SplitMix64;

/// Fewest values a side for an interval of their ratio. From six values on an interval from order statistics can cover 95 % at all.
pub const FEWEST_FOR_RATIO: usize = 6;

/// How the two ends of a ratio were made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ends {
    /// Both sides resampled: a 95 % interval. Ten values a side or more.
    Bootstrap,
    /// The ends of the two sides' own 95 % intervals divided by each other: covers at least as often. Six values a side or more.
    Divided,
    /// Smallest and largest quotient of a value and a value: what was seen, and no interval.
    Range,
}

/// A ratio of two medians.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ratio {
    /// Median of the numerator over median of the denominator.
    pub ratio: f64,
    /// Lower end.
    pub lo: f64,
    /// Upper end.
    pub hi: f64,
    /// What the ends are.
    pub ends: Ends,
}

impl Ratio {
    /// Whether the two can be told apart: whether an interval, which a range is not, leaves out 1.
    pub fn is_apart(&self) -> bool {
        self.ends != Ends::Range && (self.lo > 1.0 || self.hi < 1.0)
    }
}

/// Ratio of the medians of two independent samples.
///
/// Ten values a side: the percentile bootstrap. In simulations (the test below, and a larger one in NumPy with log-normal and exponential
/// draws, spreads equal and tenfold unequal) it covers 93 to 98 %. Six to nine: the bootstrap of so few values covers as little as
/// 89 % there (seven a side, spreads unequal), so the ends of the two order-statistics intervals are divided by each other. That misses
/// only if one of the two misses, whatever the distributions are, and covers 97 to 100 % in the same simulations: about twice as wide as need be,
/// which costs a verdict now and then and never makes a false one. Under six no such interval covers 95 %: the range of all quotients is
/// given, which tells nobody apart.
///
/// `None` unless every value is finite and above zero, as durations and rates are.
pub fn ratio_of_medians(numerator: &[f64], denominator: &[f64], seed: u64) -> Option<Ratio> {
    let (above, below) = (sorted(numerator)?, sorted(denominator)?);
    if above[0] <= 0.0 || below[0] <= 0.0 {
        return None;
    }
    let ratio = median(&above)? / median(&below)?;
    let found = match above.len().min(below.len()) {
        fewest if fewest >= N_SMALL => {
            let mut random = SplitMix64::new(seed);
            let mut ratios: Vec<f64> =
                (0..RESAMPLES).map(|_| resampled_median(&above, &mut random) / resampled_median(&below, &mut random)).collect();
            ratios.sort_by(f64::total_cmp);
            Ratio { ratio, lo: quantile_of_sorted(&ratios, 0.025), hi: quantile_of_sorted(&ratios, 0.975), ends: Ends::Bootstrap }
        }
        fewest if fewest >= FEWEST_FOR_RATIO => {
            let (above, below) = (interval(&above, seed)?, interval(&below, seed)?);
            Ratio { ratio, lo: above.lo / below.hi, hi: above.hi / below.lo, ends: Ends::Divided }
        }
        _ => Ratio { ratio, lo: above[0] / below[below.len() - 1], hi: above[above.len() - 1] / below[0], ends: Ends::Range },
    };
    [found.ratio, found.lo, found.hi].iter().all(|end| end.is_finite()).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reference::{EVEN, ODD, close};

    #[test]
    fn agrees_with_scipy() {
        let found = ratio_of_medians(&ODD, &EVEN, 5).expect("a ratio");
        close(Some(found.ratio), 6.477_419_354_838_71);
        // SciPy: 5.274 to 7.331. Two Monte-Carlo estimates of a stepwise distribution agree to one step.
        assert!((found.lo - 5.274).abs() < 0.1 && (found.hi - 7.331).abs() < 0.1, "{found:?}");
        assert!(found.is_apart() && found.ends == Ends::Bootstrap);
    }

    #[test]
    fn a_sample_against_itself_is_not_apart() {
        let found = ratio_of_medians(&EVEN, &EVEN, 5).expect("a ratio");
        assert!(found.lo < 1.0 && found.hi > 1.0 && !found.is_apart(), "{found:?}");
    }

    #[test]
    fn six_values_divide_the_ends() {
        let found = ratio_of_medians(&[10.0, 11.0, 12.0, 10.5, 11.5, 12.5], &[2.0, 2.1, 2.2, 2.3, 2.4, 2.5], 0).expect("a ratio");
        close(Some(found.lo), 4.0);
        close(Some(found.hi), 6.25);
        assert!(found.is_apart() && found.ends == Ends::Divided);
    }

    #[test]
    fn under_six_there_is_a_range_and_no_verdict() {
        let found = ratio_of_medians(&[10.0, 11.0, 12.0, 10.5, 11.5], &[2.0, 2.1, 2.2, 2.3, 2.4, 2.5, 2.6], 0).expect("a ratio");
        close(Some(found.lo), 10.0 / 2.6);
        close(Some(found.hi), 6.0);
        assert_eq!((found.ends, found.is_apart()), (Ends::Range, false));
        let one = ratio_of_medians(&[10.0], &[2.0], 0).expect("a ratio");
        assert_eq!((one.ratio, one.lo, one.hi, one.is_apart()), (5.0, 5.0, 5.0, false));
    }

    #[test]
    fn zero_negative_and_missing_values_have_no_ratio() {
        assert_eq!(ratio_of_medians(&[1.0], &[0.0], 0), None);
        assert_eq!(ratio_of_medians(&[-1.0, 2.0], &[1.0], 0), None);
        assert_eq!(ratio_of_medians(&[], &[1.0], 0), None);
        assert_eq!(ratio_of_medians(&[f64::MAX], &[f64::MIN_POSITIVE], 0), None);
    }

    /// Share of `rounds` intervals that hold the true ratio: a floor plus an exponential tail on both sides, as run times have, the
    /// tail of the denominator `unequal` times as long.
    fn covered(rounds: u64, above: usize, below: usize, unequal: f64) -> f64 {
        let mut random = SplitMix64::new(7 + above as u64 * 100 + below as u64);
        let mut draw = |tail: f64| 1.0 - tail * (1.0 - random.below(1 << 30) as f64 / f64::from(1 << 30)).ln();
        let centre = |tail: f64| 1.0 + tail * std::f64::consts::LN_2;
        let truth = centre(0.05) / centre(0.05 * unequal);
        let hits = (0..rounds).filter(|round| {
            let numerator: Vec<f64> = (0..above).map(|_| draw(0.05)).collect();
            let denominator: Vec<f64> = (0..below).map(|_| draw(0.05 * unequal)).collect();
            ratio_of_medians(&numerator, &denominator, *round).is_some_and(|found| found.lo <= truth && truth <= found.hi)
        });
        hits.count() as f64 / rounds as f64
    }

    #[test]
    fn intervals_cover_the_true_ratio_at_least_as_often_as_they_say() {
        for (above, below) in [(6, 6), (6, 9), (7, 7), (8, 8), (9, 9)] {
            for unequal in [1.0, 10.0] {
                let share = covered(2_000, above, below, unequal);
                assert!(share >= 0.955, "{above} and {below} values, {unequal}: {share}");
            }
        }
        // Fewer rounds, since each resamples.
        for (above, below, unequal) in [(10, 10, 10.0), (15, 12, 1.0)] {
            let share = covered(150, above, below, unequal);
            assert!(share >= 0.93, "{above} and {below} values, {unequal}: {share}");
        }
    }
}
