//! How many queries of a launch are discarded: until they take as long as those that follow, between a fewest and a most. Pure.
//!
//! A runner answers the list that it was given, so what counts is decided afterwards, launch by launch. A query is warm when its TTFT and its
//! time per token lie within 5 % of the median of the queries after it. Where at least four of them are left, it is so too between their second lowest
//! and second highest: what differs that much among the later ones is noise, which no number of discarded queries would end. A trend never lies there,
//! and one hiccup does not widen it.

use bench_backend_api::{Parsed, Pass};

use super::evaluate::query_metrics;
use crate::{scenario::Measure, stats};

/// Share of the median by which a warm query may be off.
const WITHIN: f64 = 0.05;
/// Queries that tell how much they differ among themselves.
const FEWEST: usize = 4;

/// What a launch discards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Warmup {
    /// Queries at its start.
    pub discarded: u32,
    /// The first one that counts is like those after it; `None` where a fixed number was asked for, or there is nothing to compare.
    pub stable: Option<bool>,
}

/// The queries that a launch discards. A soak, whose queries are not kept, discards the most that it may.
pub fn warmup(measure: &Measure, pass: Pass, parsed: &Parsed) -> Warmup {
    let (min, max) = (measure.warmup, measure.warmup_most());
    if pass == Pass::Soak || min == max {
        return Warmup { discarded: max, stable: None };
    }
    let all: Vec<[Option<f64>; 2]> = parsed
        .queries
        .iter()
        .map(|q| {
            let m = query_metrics(parsed, q);
            if q.aggregate_n.is_some() { [None; 2] } else { [m.ttft_ms, m.tpot_ms] }
        })
        .collect();
    if all.len() <= max as usize || all.iter().flatten().all(Option::is_none) {
        return Warmup { discarded: min, stable: None };
    }
    match (min..=max).find(|place| settled(&all[*place as usize..])) {
        Some(discarded) => Warmup { discarded, stable: Some(true) },
        None => Warmup { discarded: max, stable: Some(false) },
    }
}

/// Whether the first query is like those after it; one without any is.
fn settled(queries: &[[Option<f64>; 2]]) -> bool {
    let Some((first, rest)) = queries.split_first() else { return true };
    (0..2).all(|metric| {
        let later: Vec<f64> = rest.iter().filter_map(|q| q[metric]).collect();
        let Some((value, median)) = first[metric].zip(stats::median(&later)) else { return true };
        let [below, above] = [1, -1].map(|side| later.iter().filter(|v| f64::from(side) * (value - **v) >= 0.0).count());
        (value - median).abs() <= WITHIN * median || (later.len() >= FEWEST && below.min(above) >= 2)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{Load, Order, Profile};
    use bench_backend_api::{Query, Token};

    fn measure(min: u32, max: u32) -> Measure {
        Measure {
            queries: 3,
            warmup: min,
            warmup_max: max,
            repetitions_min: 1,
            repetitions_max: 1,
            until_ci: None,
            max_time_ms: None,
            order: Order::Interleaved,
            timeout_ms: 1,
            budget_ms: None,
            load: Load::Any,
            profile: Profile::Off,
        }
    }

    /// Queries with these TTFTs and times per token, in ms.
    fn parsed(times: &[(u64, u64)]) -> Parsed {
        let query = |(query, (ttft, gap)): (u32, &(u64, u64))| {
            let start_ns = 1_000_000_000 * u64::from(query + 1);
            let tokens = [0, 1, 2].map(|i| Token { id: None, t_ns: start_ns + (ttft + i * gap) * 1_000_000 });
            Query { query, start_ns, tokens: tokens.to_vec(), ..Query::default() }
        };
        Parsed { queries: (0..).zip(times).map(query).collect(), ..Parsed::default() }
    }

    fn of(min: u32, max: u32, times: &[(u64, u64)]) -> (u32, Option<bool>) {
        let found = warmup(&measure(min, max), Pass::Measure, &parsed(times));
        (found.discarded, found.stable)
    }

    #[test]
    fn what_is_still_warming_up_is_discarded() {
        let even = |ttfts: [u64; 8]| ttfts.map(|t| (t, 10));
        // From the fourth query on it is 500: 560 is 12 % more than what follows.
        assert_eq!(of(1, 5, &even([2000, 800, 560, 500, 500, 500, 500, 500])), (3, Some(true)));
        // All alike from the start: the fewest.
        assert_eq!(of(1, 5, &even([2000, 510, 500, 490, 505, 500, 495, 500])), (1, Some(true)));
        // Within 5 %, and just over: 525 and 527 against a median of 500 whose values do not differ.
        assert_eq!(of(1, 5, &even([2000, 525, 500, 500, 500, 500, 500, 500])), (1, Some(true)));
        assert_eq!(of(1, 5, &even([2000, 527, 500, 500, 500, 500, 500, 500])), (2, Some(true)));
        // A clock that is raised at first and lowered later is no stable state either.
        assert_eq!(of(1, 5, &even([300, 300, 500, 500, 500, 500, 500, 500])), (2, Some(true)));
        // The time per token settles later than the TTFT.
        let times = [(500, 30), (500, 30), (500, 20), (500, 10), (500, 10), (500, 10), (500, 10), (500, 10)];
        assert_eq!(of(1, 5, &times), (3, Some(true)));
    }

    #[test]
    fn the_most_is_discarded_and_said_when_nothing_settles() {
        let falling = [2000, 1700, 1400, 1200, 1000, 800, 600, 400].map(|t| (t, 10));
        assert_eq!(of(1, 5, &falling), (5, Some(false)));
    }

    #[test]
    fn noise_is_no_warming_up() {
        // The later ones from the second lowest to the second highest: 450 to 550.
        let noisy = |first| [2000, first, 450, 550, 440, 560, 500, 500].map(|t| (t, 10));
        assert_eq!(of(1, 5, &noisy(550)), (1, Some(true)));
        // 460 is 8 % under the median of what follows, between 450 and 550; 800 is not noise.
        assert_eq!(of(1, 5, &[2000, 800, 460, 550, 440, 450, 560, 500].map(|t| (t, 10))), (2, Some(true)));
        // 450 is below all but one of what follows, and so on: with so few queries it is noise or not, and nobody can tell.
        assert_eq!(of(1, 5, &noisy(800)), (5, Some(false)));
        // One hiccup at the end does not make the warming up noise.
        let hiccup = [2000, 1000, 700, 500, 500, 500, 500, 4000].map(|t| (t, 10));
        assert_eq!(of(1, 5, &hiccup), (3, Some(true)));
    }

    #[test]
    fn a_fixed_number_stays_fixed() {
        let times = [2000, 1700, 1400, 1200, 1000].map(|t| (t, 10));
        assert_eq!(of(2, 2, &times), (2, None));
        // The plan of an older bench knows one number only.
        assert_eq!(of(2, 0, &times), (2, None));
        // A launch that broke off, and a soak.
        assert_eq!(of(1, 5, &times[..2]), (1, None));
        assert_eq!(warmup(&measure(1, 5), Pass::Soak, &parsed(&times)), Warmup { discarded: 5, stable: None });
    }
}
