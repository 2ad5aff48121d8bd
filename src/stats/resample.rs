//! Resampling: the bootstrap distribution of a median.

use super::location::{median_of_sorted, sorted};
use crate::random::SplitMix64;

/// Resamples behind every bootstrap interval. The Monte-Carlo error of a 2.5 % tail is then about 0.2 percentage points.
pub const RESAMPLES: usize = 5_000;

/// Medians of [`RESAMPLES`] resamples with replacement, ascending. `None` as in [`sorted`].
pub(super) fn bootstrap_medians(values: &[f64], random: &mut SplitMix64) -> Option<Vec<f64>> {
    let ascending = sorted(values)?;
    let mut medians: Vec<f64> = (0..RESAMPLES).map(|_| resampled_median(&ascending, random)).collect();
    medians.sort_by(f64::total_cmp);
    Some(medians)
}

/// How often each of `n` values is drawn by `n` draws with replacement.
pub fn drawn(n: usize, random: &mut SplitMix64) -> Vec<u32> {
    let mut drawn = vec![0_u32; n];
    for _ in 0..n {
        drawn[random.below(n)] += 1;
    }
    drawn
}

/// Median of what was drawn: values, ascending, each with the place of which `times` says how often it was drawn. `None` when nothing was. No
/// resample is sorted: the values are.
pub fn median_of_drawn(ascending: &[(usize, f64)], times: impl Fn(usize) -> u32) -> Option<f64> {
    let n: u32 = ascending.iter().map(|(place, _)| times(*place)).sum();
    let at = |rank: u32| {
        let mut seen = 0;
        ascending.iter().find_map(|(place, value)| {
            seen += times(*place);
            (seen > rank).then_some(*value)
        })
    };
    let middle = at(n / 2)?;
    Some(if n % 2 == 1 { middle } else { median_of_sorted(&[at(n / 2 - 1)?, middle]) })
}

/// One resample's median. The values being sorted, it is enough to count how often each place is drawn.
pub(super) fn resampled_median(ascending: &[f64], random: &mut SplitMix64) -> f64 {
    let n = ascending.len();
    let drawn = drawn(n, random);
    let place = |rank: usize| {
        let mut seen = 0;
        drawn.iter().position(|count| {
            seen += *count as usize;
            seen > rank
        })
    };
    let at = |rank| ascending[place(rank).unwrap_or(n - 1)];
    if n % 2 == 1 { at(n / 2) } else { median_of_sorted(&[at(n / 2 - 1), at(n / 2)]) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::reference::ODD;

    #[test]
    fn the_median_of_what_was_drawn() {
        // Places in the order of their values: 2, 0, 1. Drawn: place 0 twice, place 2 once, that is 1, 5, 5.
        let ascending = [(2, 1.0), (0, 5.0), (1, 9.0)];
        let of = |times: [u32; 3]| median_of_drawn(&ascending, |place| times[place]);
        assert_eq!([of([2, 0, 1]), of([0, 0, 3]), of([1, 1, 1])], [Some(5.0), Some(1.0), Some(5.0)]);
        // An even number of them: (1 + 9) / 2, (1 + 5) / 2.
        assert_eq!([of([0, 1, 1]), of([2, 0, 2]), of([0, 0, 0])], [Some(5.0), Some(3.0), None]);
    }

    #[test]
    fn the_distribution_is_the_exact_one() {
        // P(median* <= value), exact, from SciPy; see `reference`.
        let medians = bootstrap_medians(&ODD, &mut SplitMix64::new(1)).expect("values");
        for (value, exact) in
            [(49.1, 0.0042), (49.5, 0.0255), (49.8, 0.0882), (50.0, 0.2131), (50.2, 0.6037), (50.6, 0.9118), (51.2, 0.9958)]
        {
            let found = medians.iter().filter(|median| **median <= value).count() as f64 / RESAMPLES as f64;
            // Four standard errors of a share out of 5,000.
            let tolerance = 4.0 * (exact * (1.0 - exact) / RESAMPLES as f64).sqrt();
            assert!((found - exact).abs() < tolerance, "{value}: {found} is not {exact}");
        }
    }
}
