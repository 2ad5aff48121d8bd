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
pub(super) fn drawn(n: usize, random: &mut SplitMix64) -> Vec<u32> {
    let mut drawn = vec![0_u32; n];
    for _ in 0..n {
        drawn[random.below(n)] += 1;
    }
    drawn
}

/// Median of what was drawn: values, ascending, each with how often it was. `None` when nothing was. No resample is sorted: the values are.
pub(super) fn median_of_drawn(ascending: &(impl Iterator<Item = (f64, u32)> + Clone)) -> Option<f64> {
    let n: u32 = ascending.clone().map(|(_, times)| times).sum();
    let at = |rank: u32| {
        let mut seen = 0;
        ascending.clone().find_map(|(value, times)| {
            seen += times;
            (seen > rank).then_some(value)
        })
    };
    let middle = at(n / 2)?;
    Some(if n % 2 == 1 { middle } else { median_of_sorted(&[at(n / 2 - 1)?, middle]) })
}

/// One resample's median; NaN of nothing.
pub(super) fn resampled_median(ascending: &[f64], random: &mut SplitMix64) -> f64 {
    let drawn = drawn(ascending.len(), random);
    median_of_drawn(&ascending.iter().copied().zip(drawn.iter().copied())).unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reference::ODD;

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
