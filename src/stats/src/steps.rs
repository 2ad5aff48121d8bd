//! Where a series changes its level: throttling within a run, a new version among nights.

use super::location::{median, sorted};
use super::summary::DEFAULT_SEED;
use crate::random::SplitMix64;

/// Orders tried to judge one place: resolves a significance of 0.0005.
const PERMUTATIONS: usize = 1_999;

/// Orders as extreme as the series after which it is clear that nothing is significant (Besag and Clifford 1991).
const ENOUGH: usize = 20;

/// What is under this by [`bound`] needs no orders.
const PLAIN: f64 = 1e-6;

/// A change of level.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Step {
    /// Place of the first value of the new level.
    pub at: usize,
    /// Median after it less median before it, as far as the neighbouring steps; of logs it is the log of a ratio.
    pub size: f64,
    /// Share of random orders of the same values with a change as clear; under a millionth a bound of it.
    pub p: f64,
}

/// The changes of level in a series that are significant at `level`, each at least `fewest` values away from the next and from the ends.
///
/// The place is the one that splits the series into the two most different samples by the standardised rank sum of Mann and Whitney; whether it
/// is one is told by random orders of the same values (seeded); each side is then searched alike. This is E-divisive (Matteson and James
/// 2014) with ranks instead of energy distances: it asks for another level only, and not for another spread; one mad value has one
/// rank; an order costs n instead of n^2 steps, so that hundreds of nights of hundreds of cells take no time. The crates at hand would not do:
/// `edivisive` has not been touched since 2021, `augurs-changepoint` gives no significance.
///
/// Empty when a value is not finite or there are too few. Values that follow each other closely (autocorrelation) look like steps.
pub fn steps(values: &[f64], level: f64, fewest: usize) -> Vec<Step> {
    if sorted(values).is_none() {
        return Vec::new();
    }
    let fewest = fewest.max(1);
    let mut found = Vec::new();
    let mut random = SplitMix64::new(DEFAULT_SEED);
    search(values, 0, level, fewest, &mut random, &mut found);
    found.sort_by_key(|(at, _)| *at);
    for i in 0..found.len() {
        let (from, to) = (if i == 0 { 0 } else { found[i - 1].0 }, found.get(i + 1).map_or(values.len(), |(at, _)| *at));
        found[i].0 = from + dated(&values[from..to], found[i].0 - from, fewest);
    }
    let ends = |i: usize| found.get(i).map_or(values.len(), |(at, _)| *at);
    (0..found.len())
        .filter_map(|i| {
            let before = &values[if i == 0 { 0 } else { ends(i - 1) }..ends(i)];
            let after = &values[ends(i)..ends(i + 1)];
            Some(Step { at: found[i].0, size: median(after)? - median(before)?, p: found[i].1 })
        })
        .collect()
}

fn search(values: &[f64], offset: usize, level: f64, fewest: usize, random: &mut SplitMix64, found: &mut Vec<(usize, f64)>) {
    let mut ranks = ranks(values);
    let Some((at, clear)) = clearest(&ranks, fewest) else { return };
    // So many orders as clear are too many for the level.
    let enough = ENOUGH.min((level * (PERMUTATIONS + 1) as f64) as usize).max(1);
    let (mut as_clear, mut tried) = (0, 0);
    let bound = bound(clear, ranks.len());
    while bound > level.min(PLAIN) && tried < PERMUTATIONS && as_clear < enough {
        for place in (1..ranks.len()).rev() {
            ranks.swap(place, random.below(place + 1));
        }
        // Ranks are halves, so sums are exact; the factor is against rounding of the division.
        as_clear += usize::from(clearest(&ranks, fewest).is_some_and(|(_, other)| other >= clear * (1.0 - 1e-12)));
        tried += 1;
    }
    let p = if tried == 0 { bound } else { (as_clear + 1) as f64 / (tried + 1) as f64 };
    if p <= level {
        found.push((offset + at, p));
        search(&values[..at], offset, level, fewest, random, found);
        search(&values[at..], offset + at, level, fewest, random, found);
    }
}

/// The date of a step: the ranks of two levels that are far apart say little about the values between them, so given both medians it is put where
/// the values' absolute distances from them are least.
fn dated(values: &[f64], at: usize, fewest: usize) -> usize {
    let Some((before, after)) = median(&values[..at]).zip(median(&values[at..])) else { return at };
    let (mut sum, mut best) = (0.0, (at, f64::INFINITY));
    for (place, value) in values.iter().enumerate() {
        if place >= fewest && place + fewest <= values.len() && sum < best.1 {
            best = (place, sum);
        }
        sum += (value - before).abs() - (value - after).abs();
    }
    best.0
}

/// Most that the share of orders as clear can be: Hoeffding's inequality for draws without replacement (Serfling 1974, theorem 2.1), for every place of `n`.
fn bound(clear: f64, n: usize) -> f64 {
    let n = n as f64;
    2.0 * n * (-2.0 * clear * n * n / ((n + 2.0) * (n - 1.0) * (n - 1.0))).exp()
}

/// Ranks from 1, equal values sharing theirs.
pub(super) fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|a, b| values[*a].total_cmp(&values[*b]));
    let mut ranks = vec![0.0; values.len()];
    let mut first = 1;
    for equal in order.chunk_by(|a, b| values[*a].total_cmp(&values[*b]).is_eq()) {
        for place in equal {
            ranks[*place] = f64::from(first) + (equal.len() - 1) as f64 / 2.0;
        }
        first += equal.len() as u32;
    }
    ranks
}

/// The split with the largest standardised rank sum, squared. `None` where there is no room for one, or all values are equal.
fn clearest(ranks: &[f64], fewest: usize) -> Option<(usize, f64)> {
    let n = ranks.len() as f64;
    let middle = f64::midpoint(n, 1.0);
    let mut sum = 0.0;
    let mut best: Option<(usize, f64)> = None;
    for (place, rank) in ranks.iter().enumerate() {
        let before = place + 1;
        sum += rank - middle;
        if before < fewest || ranks.len() < before + fewest {
            continue;
        }
        let clear = sum * sum / (before as f64 * (n - before as f64));
        if clear > best.map_or(0.0, |(_, known)| known) {
            best = Some((before, clear));
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reference::{EVEN, many_samples};

    /// Normal noise by the sum of twelve.
    fn noise(random: &mut SplitMix64) -> f64 {
        (0..12).map(|_| random.below(1 << 20) as f64 / f64::from(1 << 20)).sum::<f64>() - 6.0
    }

    #[test]
    fn ranks_agree_with_scipy() {
        // st.rankdata
        assert_eq!(ranks(&EVEN), [12.0, 1.0, 5.0, 9.0, 8.0, 4.0, 11.0, 3.0, 6.0, 10.0, 2.0, 7.0]);
        assert_eq!(ranks(&[2.0, 1.0, 2.0, 2.0, 5.0]), [3.0, 1.0, 3.0, 3.0, 5.0]);
    }

    #[test]
    fn every_step_is_found_where_it_is() {
        let mut random = SplitMix64::new(4);
        let series: Vec<f64> = (0..60)
            .map(|i| {
                noise(&mut random)
                    + if (20..35).contains(&i) {
                        6.0
                    } else if i >= 35 {
                        2.0
                    } else {
                        0.0
                    }
            })
            .collect();
        let found = steps(&series, 0.01, 3);
        assert_eq!(found.iter().map(|step| step.at).collect::<Vec<_>>(), [20, 35], "{found:?}");
        assert!((found[0].size - 6.0).abs() < 1.0 && (found[1].size + 4.0).abs() < 1.0 && found.iter().all(|step| step.p <= 0.01));
        assert_eq!(found, steps(&series, 0.01, 3), "the same every time");
    }

    /// Two levels six standard deviations apart: no value can be taken for one of the other level, so the date is exact.
    #[test]
    fn a_plain_step_has_its_exact_date() {
        let mut random = SplitMix64::new(9);
        for at in 200..230 {
            let series: Vec<f64> = (0..300).map(|i| noise(&mut random) + if i < at { 0.0 } else { 6.0 }).collect();
            let found = steps(&series, 0.001, 3);
            assert_eq!(found.iter().map(|step| step.at).collect::<Vec<_>>(), [at]);
            assert!(found[0].p < PLAIN);
        }
    }

    /// The bound is one: of the ranks 1..12 in 20,000 random orders never more are as clear than it says.
    #[test]
    fn no_share_is_above_its_bound() {
        let mut random = SplitMix64::new(3);
        let mut ranks: Vec<f64> = (1..=12).map(f64::from).collect();
        let mut clears: Vec<f64> = Vec::new();
        for _ in 0..20_000 {
            for place in (1..ranks.len()).rev() {
                ranks.swap(place, random.below(place + 1));
            }
            clears.extend(clearest(&ranks, 2).map(|(_, clear)| clear));
        }
        clears.sort_by(f64::total_cmp);
        for place in [10_000, 19_000, 19_900, 19_990] {
            let share = (clears.len() - place) as f64 / clears.len() as f64;
            assert!(share <= bound(clears[place], 12), "{share} {}", bound(clears[place], 12));
        }
    }

    #[test]
    fn one_mad_value_is_no_step() {
        let mut random = SplitMix64::new(5);
        let mut series: Vec<f64> = (0..40).map(|_| noise(&mut random)).collect();
        series[39] = 1e9;
        series[10] = -1e9;
        assert_eq!(steps(&series, 0.01, 3), []);
    }

    #[test]
    fn noise_alone_has_steps_as_often_as_the_level_says() {
        let mut random = SplitMix64::new(1);
        let hits = (0..400).filter(|_| !steps(&(0..25).map(|_| noise(&mut random)).collect::<Vec<_>>(), 0.05, 3).is_empty()).count();
        // Binomial with 0.05: 20, standard deviation 4.4.
        assert!((7..=33).contains(&hits), "{hits} of 400");
    }

    #[test]
    fn nonsense_has_none() {
        for values in [&[] as &[f64], &[1.0], &[1.0; 30], &[1.0, f64::NAN, 3.0, 4.0, 5.0, 6.0, 7.0]] {
            assert_eq!(steps(values, 0.05, 2), []);
        }
        for values in many_samples() {
            for fewest in [0, 1, 5, 100] {
                let found = steps(&values, 0.05, fewest);
                assert!(found.iter().all(|step| step.at >= fewest.max(1) && step.at + fewest.max(1) <= values.len()));
            }
        }
    }
}
