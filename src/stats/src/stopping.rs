//! When to stop repeating (`until-ci`): looked at only at fixed checkpoints, with a correction for looking.
//!
//! Whoever looks after every value and stops at the first narrow interval stops on luck: the interval then covers the truth less often
//! than it says. So the looks are few and fixed beforehand, and each is held to the level `1 - 0.05 / looks` (Bonferroni), which keeps
//! the chance that any of the intervals looked at misses the median under 5 %.

use super::centre::hodges_lehmann;
use super::interval::interval_at;
use super::location::median;
use super::student::student;
use super::summary::DEFAULT_SEED;

/// Standard error of a median over that of Hodges and Lehmann's location, of normal noise.
const OF_MEDIAN: f64 = 1.2247;

/// Numbers of values at which to look: from `min`, growing by half each time, and `max` as the last. Empty when `max` is 0.
///
/// Geometric, because an interval narrows with the root of n: looking sooner than after half as many again finds little new.
pub fn checkpoints(min: usize, max: usize) -> Vec<usize> {
    let mut looks = Vec::new();
    let mut next = min.max(1);
    while next < max {
        looks.push(next);
        next += next.div_ceil(2);
    }
    if max > 0 {
        looks.push(max);
    }
    looks
}

/// Whether the half-width of the interval over the median is at most `target_half_width_ratio` (0.02 for `until-ci = "2%"`).
///
/// `look` counts from 1 to `looks`. Never true when too few values are there for the corrected level, when the median is not above zero,
/// or when the look is outside the schedule.
///
/// The interval that is then reported is the plain 95 % one: the correction above makes up for stopping where it happens to be narrow. In simulations
/// (`tests/bench/nights.rs`) it holds the median in 95 to 97 % of cells, and in 99 % where order statistics of eight values end it, whose
/// intervals come in steps.
pub fn reached(values: &[f64], look: usize, looks: usize, target_half_width_ratio: f64) -> bool {
    if look == 0 || look > looks {
        return false;
    }
    let level = 1.0 - 0.05 / looks as f64;
    let Some((centre, found)) = median(values).zip(interval_at(values, level, DEFAULT_SEED)) else {
        return false;
    };
    // Of all values, so that a few that happen to lie close together in the middle don't pass for a narrow interval.
    let spread = hodges_lehmann(values).and_then(|centre| centre.error).unwrap_or(f64::INFINITY);
    let usual = OF_MEDIAN * student(f64::midpoint(1.0, level), (values.len() - 1) as f64) * spread;
    centre > 0.0 && found.coverage >= level && usual.max((found.hi - found.lo) / 2.0) / centre <= target_half_width_ratio
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reference::{EVEN, ODD};

    #[test]
    fn the_schedule_begins_at_min_ends_at_max_and_grows() {
        assert_eq!(checkpoints(5, 20), [5, 8, 12, 18, 20]);
        assert_eq!(checkpoints(5, 5), [5]);
        assert_eq!(checkpoints(9, 5), [5]);
        assert_eq!(checkpoints(0, 3), [1, 2, 3]);
        assert_eq!(checkpoints(3, 0), [0; 0]);
        for (min, max) in [(1, 100), (7, 8), (10, 1000)] {
            let looks = checkpoints(min, max);
            assert!(looks.windows(2).all(|pair| pair[0] < pair[1]) && looks.first() == Some(&min) && looks.last() == Some(&max));
        }
    }

    #[test]
    fn narrow_is_reached_and_wide_is_not() {
        assert!(reached(&ODD, 3, 5, 0.03));
        assert!(!reached(&ODD, 3, 5, 0.005));
        assert!(!reached(&EVEN, 3, 5, 0.05));
    }

    #[test]
    fn looking_more_often_asks_for_more() {
        // Six equal-ish values cover 96.9 %: enough for one look at 95 %, not for one of five at 99 %.
        let six = [10.0, 10.01, 10.02, 9.99, 9.98, 10.0];
        assert!(reached(&six, 1, 1, 0.02));
        assert!(!reached(&six, 1, 5, 0.02));
    }

    #[test]
    fn stopping_early_does_not_stop_on_luck() {
        // Normal noise by the sum of twelve, of a spread at which about every second cell ends before its last value.
        let mut random = crate::random::SplitMix64::new(8);
        let mut draw = move || 1.0 + 0.025 * ((0..12).map(|_| random.below(1 << 20) as f64 / f64::from(1 << 20)).sum::<f64>() - 6.0);
        let looks = checkpoints(6, 20);
        let (mut hits, mut early) = (0, 0);
        for _ in 0..150 {
            let all: Vec<f64> = (0..20).map(|_| draw()).collect();
            let stop = looks.iter().enumerate().find(|(look, n)| reached(&all[..**n], look + 1, looks.len(), 0.02));
            let n = stop.map_or(20, |(_, n)| *n);
            early += usize::from(n < 20);
            hits += usize::from(interval_at(&all[..n], 0.95, DEFAULT_SEED).is_some_and(|found| found.lo <= 1.0 && 1.0 <= found.hi));
        }
        // Binomial with 0.95: 142, standard deviation 2.7.
        assert!((135..=149).contains(&hits) && (30..=140).contains(&early), "{hits} held, {early} early");
    }

    #[test]
    fn nonsense_is_never_reached() {
        assert!(!reached(&[], 1, 1, 0.5));
        assert!(!reached(&ODD, 0, 5, 1.0));
        assert!(!reached(&ODD, 6, 5, 1.0));
        assert!(!reached(&[0.0; 12], 1, 1, 1.0));
        assert!(!reached(&ODD, 1, 1, f64::NAN));
    }
}
