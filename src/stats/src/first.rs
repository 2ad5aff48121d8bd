//! Which of several is first: the share of draws in which each has the highest product.

use std::collections::BTreeMap;

use super::resample::{drawn, median_of_drawn};
use crate::random::SplitMix64;

/// One factor of a candidate's product: the median of its values, to a power.
#[derive(Debug, Clone)]
pub struct Factor {
    /// The power; below 0 where less is better.
    pub exponent: f64,
    /// Above 0.
    pub values: Values,
}

/// What a factor is made of.
#[derive(Debug, Clone)]
pub enum Values {
    /// Nothing is drawn of it.
    Known(f64),
    /// Drawn with replacement. Those of a candidate that have one number, and as many values, are of the same launches in the same order and are drawn
    /// together: a launch that was slow is slow in all of them.
    Launches(Vec<f64>, usize),
}

/// Share of `draws` draws in which each candidate has the highest product; equal ones share it. A median of drawn values lies within the values, so
/// that a candidate whose best values together are behind another's worst is first in no draw, and is not drawn.
pub fn first_shares(candidates: &[Vec<Factor>], draws: usize, seed: u64) -> Vec<f64> {
    let mut random = SplitMix64::new(seed);
    let reach: Vec<(f64, f64)> = candidates.iter().map(|factors| reach(factors)).collect();
    let floor = reach.iter().map(|(worst, _)| *worst).fold(f64::NEG_INFINITY, f64::max);
    let able = candidates.iter().enumerate().filter(|(place, _)| reach[*place].1 >= floor);
    let drawers: Vec<(usize, Drawer)> = able.map(|(place, factors)| (place, Drawer::of(factors))).collect();
    let mut shares = vec![0.0; candidates.len()];
    for _ in 0..draws {
        let sums: Vec<(usize, f64)> = drawers.iter().map(|(place, drawer)| (*place, drawer.sum(&mut random))).collect();
        let most = sums.iter().map(|(_, sum)| *sum).fold(f64::NEG_INFINITY, f64::max);
        let first: Vec<usize> = sums.into_iter().filter(|(_, sum)| *sum >= most).map(|(place, _)| place).collect();
        for place in &first {
            shares[*place] += 1.0 / first.len() as f64;
        }
    }
    shares.iter().map(|share| share / draws as f64).collect()
}

/// Logarithm of the product with each value the worst of its launches, and the best.
fn reach(factors: &[Factor]) -> (f64, f64) {
    factors.iter().fold((0.0, 0.0), |(worst, best), factor| {
        let values = match &factor.values {
            Values::Known(value) => std::slice::from_ref(value),
            Values::Launches(values, _) => values,
        };
        let logs = values.iter().map(|value| factor.exponent * value.ln());
        let (lo, hi) = logs.fold((f64::INFINITY, f64::NEG_INFINITY), |(lo, hi), log| (lo.min(log), hi.max(log)));
        // A sum in another order may differ in its last digits.
        (worst + lo - 1e-9, best + hi + 1e-9)
    })
}

/// Draws the launches of a candidate.
struct Drawer {
    /// Logarithm of what is not drawn.
    fixed: f64,
    bundles: Vec<Bundle>,
}

/// Launches that are drawn together, and what they feed.
struct Bundle {
    launches: usize,
    /// Exponents, with the values, ascending, each with its launch's place.
    factors: Vec<(f64, Vec<(usize, f64)>)>,
}

impl Drawer {
    fn of(factors: &[Factor]) -> Self {
        let mut fixed = 0.0;
        let mut bundles: BTreeMap<(usize, usize), Bundle> = BTreeMap::new();
        for Factor { exponent, values } in factors {
            match values {
                Values::Known(value) => fixed += exponent * value.ln(),
                Values::Launches(values, together) => {
                    let mut ascending: Vec<(usize, f64)> = values.iter().copied().enumerate().collect();
                    ascending.sort_by(|a, b| a.1.total_cmp(&b.1));
                    let empty = || Bundle { launches: values.len(), factors: Vec::new() };
                    bundles.entry((*together, values.len())).or_insert_with(empty).factors.push((*exponent, ascending));
                }
            }
        }
        Self { fixed, bundles: bundles.into_values().collect() }
    }

    fn sum(&self, random: &mut SplitMix64) -> f64 {
        self.fixed + self.bundles.iter().map(|bundle| bundle.sum(random)).sum::<f64>()
    }
}

impl Bundle {
    fn sum(&self, random: &mut SplitMix64) -> f64 {
        let drawn = drawn(self.launches, random);
        let log = |values: &[(usize, f64)]| {
            median_of_drawn(&values.iter().map(|(place, value)| (*value, drawn[*place]))).map_or(f64::NAN, f64::ln)
        };
        self.factors.iter().map(|(exponent, values)| exponent * log(values)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_what_was_drawn() {
        // Places in the order of their values: 2, 0, 1. Drawn: place 0 twice, place 2 once, that is 1, 5, 5.
        let ascending = [(2, 1.0), (0, 5.0), (1, 9.0)];
        let of = |times: [u32; 3]| median_of_drawn(&ascending.iter().map(|(place, value)| (*value, times[*place])));
        assert_eq!([of([2, 0, 1]), of([0, 0, 3]), of([1, 1, 1])], [Some(5.0), Some(1.0), Some(5.0)]);
        // An even number of them: (1 + 9) / 2, (1 + 5) / 2.
        assert_eq!([of([0, 1, 1]), of([2, 0, 2]), of([0, 0, 0])], [Some(5.0), Some(3.0), None]);
    }
}
