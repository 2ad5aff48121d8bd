//! When to stop repeating (`until-ci`): looked at only at fixed checkpoints, with a correction for looking.
//!
//! Whoever looks after every value and stops at the first narrow interval stops on luck: the interval then covers the truth less often
//! than it says. So the looks are few and fixed beforehand, and each is held to the level `1 - 0.05 / looks` (Bonferroni), which keeps
//! the chance that any of the intervals looked at misses the median under 5 %.

use super::interval::interval_at;
use super::location::median;
use super::summary::DEFAULT_SEED;

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
pub fn reached(values: &[f64], look: usize, looks: usize, target_half_width_ratio: f64) -> bool {
    if look == 0 || look > looks {
        return false;
    }
    let level = 1.0 - 0.05 / looks as f64;
    let Some((centre, found)) = median(values).zip(interval_at(values, level, DEFAULT_SEED)) else {
        return false;
    };
    centre > 0.0 && found.coverage >= level && (found.hi - found.lo) / 2.0 / centre <= target_half_width_ratio
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::reference::{EVEN, ODD};

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
    fn nonsense_is_never_reached() {
        assert!(!reached(&[], 1, 1, 0.5));
        assert!(!reached(&ODD, 0, 5, 1.0));
        assert!(!reached(&ODD, 6, 5, 1.0));
        assert!(!reached(&[0.0; 12], 1, 1, 1.0));
        assert!(!reached(&ODD, 1, 1, f64::NAN));
    }
}
