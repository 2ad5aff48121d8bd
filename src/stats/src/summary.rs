//! What `cells.csv` keeps of a sample.

use super::centre::centre;
use super::interval::{Method, interval};
use super::location::{mad, median};

/// Fewest values for a bootstrap. Below it intervals come from order statistics and the row is marked `n_small`.
pub const N_SMALL: usize = 10;

/// Seed of every interval that no scenario seeds: a summary is the same whoever makes it, and from whichever table.
pub const DEFAULT_SEED: u64 = 0x5eed;

/// Median, interval and spread of a sample.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Summary {
    /// Number of values.
    pub n: usize,
    /// Median.
    pub median: f64,
    /// Lower end of the interval.
    pub lo: f64,
    /// Upper end of the interval; for one value both ends are that value and the coverage is 0.
    pub hi: f64,
    /// Median absolute deviation, raw.
    pub mad: f64,
    /// Location of the logarithms, in the values' unit; see [`centre`].
    pub centre: Option<f64>,
    /// Fewer than [`N_SMALL`] values.
    pub n_small: bool,
    /// How the interval was made.
    pub method: Method,
    /// How often such an interval holds the median; see [`super::Interval::coverage`].
    pub coverage: f64,
}

impl Summary {
    /// Summary of the values; `None` when there are none or one of them is not finite.
    pub fn of(values: &[f64]) -> Option<Self> {
        let found = interval(values, DEFAULT_SEED)?;
        Some(Self {
            n: values.len(),
            median: median(values)?,
            lo: found.lo,
            hi: found.hi,
            mad: mad(values)?,
            centre: centre(values),
            n_small: values.len() < N_SMALL,
            method: found.method,
            coverage: found.coverage,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reference::{EVEN, many_samples};

    #[test]
    fn of_twelve_values() {
        let found = Summary::of(&EVEN).expect("values");
        assert_eq!((found.n, found.median, found.lo, found.hi, found.mad, found.n_small), (12, 7.75, 6.75, 10.0, 1.125, false));
    }

    #[test]
    fn scaling_the_values_scales_the_summary() {
        // By a power of two, so that nothing is rounded.
        for values in many_samples() {
            let (plain, scaled) =
                (Summary::of(&values).expect("values"), Summary::of(&values.iter().map(|v| v * 4.0).collect::<Vec<_>>()).expect("values"));
            assert_eq!(
                (plain.median * 4.0, plain.lo * 4.0, plain.hi * 4.0, plain.mad * 4.0),
                (scaled.median, scaled.lo, scaled.hi, scaled.mad)
            );
        }
    }

    #[test]
    fn nothing_gives_nothing() {
        assert_eq!(Summary::of(&[]), None);
        assert_eq!(Summary::of(&[f64::NEG_INFINITY]), None);
    }
}
