//! Was a prompt's KV cache reused from an earlier query (rule R3)? Pure.
//!
//! The rule's sign is a TTFT under 0.7 of the launch's first warm one. One query may be that for another reason: on a busy PC with a TTFT of
//! milliseconds the first warm query is often the one that was held up. But a launch asks the same prompts in the same order as every other launch
//! of its cell, so a reused prefix shows at the same query in all of them, and noise does not. Hence a query counts only when it is also under 0.7
//! of what the first warm query takes in the middle launch, and a cell only when over three quarters of its launches show it at the same query.

use std::collections::BTreeMap;

use crate::stats;

/// Share of the first warm query's TTFT below which the prompt can't have been prefilled whole (rule R3).
pub const LEAST_SHARE: f64 = 0.7;
/// Launches from which on that is more than a coincidence.
const FEWEST: usize = 3;

/// What the warm queries of a cell say.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Prefix {
    /// No query is answered too early throughout.
    Whole,
    /// One is, in too few launches to tell.
    Suspected(Early),
    /// One is.
    Reused(Early),
    /// No launch has two warm queries with a TTFT each.
    Unknown,
}

/// A query that is answered too early.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Early {
    /// Its number.
    pub query: u32,
    /// Launches in which it is.
    pub launches: usize,
    /// Launches that have it.
    pub of: usize,
    /// Its TTFT over that of the first warm one, median over those launches.
    pub share: f64,
}

/// Judges a cell. `launches` holds for each the warm queries in order, with number and TTFT.
pub fn prefix(launches: &[Vec<(u32, f64)>]) -> Prefix {
    let several: Vec<&Vec<(u32, f64)>> = launches.iter().filter(|queries| queries.len() > 1).collect();
    let firsts: Vec<f64> = several.iter().map(|queries| queries[0].1).collect();
    // Not their median: on a computer that others share more than half of them can be held up.
    let Some(least) = firsts.into_iter().reduce(f64::min) else { return Prefix::Unknown };
    // By query: its share in each launch, and whether it is early there.
    let mut found: BTreeMap<u32, Vec<(f64, bool)>> = BTreeMap::new();
    for queries in several {
        let first = queries[0].1;
        for (query, ttft) in &queries[1..] {
            found.entry(*query).or_default().push((ttft / first, *ttft < LEAST_SHARE * first && *ttft < LEAST_SHARE * least));
        }
    }
    let early = found.into_iter().filter_map(|(query, all)| {
        let launches = all.iter().filter(|(_, early)| *early).count();
        let share = stats::median(&all.iter().map(|(share, _)| *share).collect::<Vec<_>>())?;
        (4 * launches > 3 * all.len()).then_some(Early { query, launches, of: all.len(), share })
    });
    match early.max_by_key(|early| early.launches) {
        None => Prefix::Whole,
        Some(early) if early.of < FEWEST => Prefix::Suspected(early),
        Some(early) => Prefix::Reused(early),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::SplitMix64;

    fn launch(ttfts: &[f64]) -> Vec<(u32, f64)> {
        (1..).zip(ttfts.iter().copied()).collect()
    }

    #[test]
    fn a_reused_prefix_shows_at_the_same_query_of_every_launch() {
        let reused = |n| prefix(&vec![launch(&[10.0, 6.5, 9.9]); n]);
        let early = |n| Early { query: 2, launches: n, of: n, share: 0.65 };
        assert_eq!((reused(5), reused(3)), (Prefix::Reused(early(5)), Prefix::Reused(early(3))));
        assert_eq!((reused(2), reused(1)), (Prefix::Suspected(early(2)), Prefix::Suspected(early(1))));
        // At the limit it is whole: the rule says under.
        assert_eq!(prefix(&vec![launch(&[10.0, 7.0]); 5]), Prefix::Whole);
    }

    #[test]
    fn one_query_that_was_held_up_is_no_prefix() {
        // The first warm query of the first launch was held up: 0.5 of it is what every other query takes.
        let launches = [launch(&[20.0, 10.0, 10.0]), launch(&[10.0, 10.0, 10.0]), launch(&[10.0, 9.0, 10.0])];
        assert_eq!(prefix(&launches), Prefix::Whole);
        // The example run of this repository has such a launch: 0.59 in one of three.
        assert_eq!(prefix(&[launch(&[10.0, 5.9, 9.5]), launch(&[10.0, 9.7, 9.8]), launch(&[10.0, 9.6, 10.1])]), Prefix::Whole);
    }

    #[test]
    fn one_warm_query_tells_nothing() {
        assert_eq!(prefix(&[]), Prefix::Unknown);
        assert_eq!(prefix(&[launch(&[10.0]), Vec::new()]), Prefix::Unknown);
    }

    /// Lognormal noise of 20 %, five launches of five warm queries: a simulation in Python gives 0.055 % of cells (20,000
    /// cells); with "most launches" instead of three quarters it gives 1.1 %.
    #[test]
    fn noise_of_a_busy_pc_is_hardly_ever_taken_for_it() {
        let mut random = SplitMix64::new(7);
        let mut normal = || {
            let mut unit = || (random.next() >> 11) as f64 / (1u64 << 53) as f64;
            let (a, b) = (1.0 - unit(), unit());
            (-2.0 * a.ln()).sqrt() * (std::f64::consts::TAU * b).cos()
        };
        let mut alarms = 0;
        for _ in 0..2000 {
            let launches: Vec<_> = (0..5).map(|_| launch(&std::array::from_fn::<f64, 5, _>(|_| 10.0 * (0.2 * normal()).exp()))).collect();
            alarms += usize::from(prefix(&launches) != Prefix::Whole);
        }
        assert!(alarms <= 6, "{alarms} of 2000");
    }
}
