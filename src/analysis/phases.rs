//! What a launch was doing when: loading, prefill, decode, or nothing. Pure: from the time stamps of the runner's events to intervals on the device's
//! monotonic clock, and from a moment to its phase.

use bench_backend_api::{Parsed, Query};

/// What a launch does at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// The model is being loaded.
    Load,
    /// From the submission of a query to its first token.
    Prefill,
    /// From the first to the last token.
    Decode,
    /// In the launch, and none of these: before the load, between queries, after the last.
    Idle,
}
impl Phase {
    /// The word in tables and legends.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Load => "load",
            Self::Prefill => "prefill",
            Self::Decode => "decode",
            Self::Idle => "idle",
        }
    }
}

/// A stretch of one phase: from `begin_ns` up to and without `end_ns`, `CLOCK_MONOTONIC` of the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interval {
    /// The phase.
    pub phase: Phase,
    /// Begin, in ns.
    pub begin_ns: u64,
    /// End, in ns.
    pub end_ns: u64,
    /// The query, in prefill and decode.
    pub query: Option<u32>,
}
impl Interval {
    /// Its length in ns.
    pub const fn ns(&self) -> u64 {
        self.end_ns - self.begin_ns
    }
}

/// The phases of a launch that lived from `window_ns.0` to `window_ns.1`: intervals without gaps and overlaps, in order, that fill the window. Empty
/// where nothing was timed: a tool that only reports means has no phases, and all of it as `idle` would be a lie.
///
/// Time stamps that lie outside of the window or run backwards are cut to it; an earlier interval keeps what two of them claim.
pub fn phases(parsed: &Parsed, window_ns: (u64, u64)) -> Vec<Interval> {
    let (begin, end) = window_ns;
    let mut busy: Vec<Interval> = Vec::new();
    if let Some((from, to)) = parsed.load_ns {
        busy.push(Interval { phase: Phase::Load, begin_ns: from, end_ns: to, query: None });
    }
    busy.extend(parsed.queries.iter().flat_map(of_query));
    if busy.is_empty() {
        return Vec::new();
    }
    busy.sort_by_key(|i| i.begin_ns);
    let idle = |from, to| Interval { phase: Phase::Idle, begin_ns: from, end_ns: to, query: None };
    let mut all = Vec::new();
    let mut at = begin;
    for mut interval in busy {
        interval.begin_ns = interval.begin_ns.clamp(at, end.max(at));
        interval.end_ns = interval.end_ns.min(end);
        if interval.end_ns <= interval.begin_ns {
            continue;
        }
        if interval.begin_ns > at {
            all.push(idle(at, interval.begin_ns));
        }
        at = interval.end_ns;
        all.push(interval);
    }
    if end > at {
        all.push(idle(at, end));
    }
    all
}

/// Prefill and decode of a query. One that failed before its first token has its prefill to its end, if there is one.
fn of_query(query: &Query) -> Vec<Interval> {
    if query.aggregate_n.is_some() {
        return Vec::new();
    }
    let interval = |phase, begin_ns, end_ns| Interval { phase, begin_ns, end_ns, query: Some(query.query) };
    match (query.tokens.first(), query.tokens.last()) {
        (Some(first), Some(last)) => {
            vec![interval(Phase::Prefill, query.start_ns, first.t_ns), interval(Phase::Decode, first.t_ns, last.t_ns)]
        }
        _ => query.end_ns.map(|end| interval(Phase::Prefill, query.start_ns, end)).into_iter().collect(),
    }
}

/// The phase of a moment; `None` outside of the launch, or where it has no phases.
pub fn phase_at(phases: &[Interval], t_ns: u64) -> Option<Phase> {
    let next = phases.partition_point(|i| i.begin_ns <= t_ns);
    let interval = phases.get(next.checked_sub(1)?)?;
    (t_ns < interval.end_ns).then_some(interval.phase)
}

/// Time spent in a phase, in ns.
pub fn total_ns(phases: &[Interval], phase: Phase) -> u64 {
    phases.iter().filter(|i| i.phase == phase).map(Interval::ns).sum()
}

#[cfg(test)]
mod tests {
    use bench_backend_api::Token;
    use proptest::prelude::*;

    use super::*;

    fn query(number: u32, start_ns: u64, tokens: &[u64], end_ns: Option<u64>) -> Query {
        let tokens = tokens.iter().map(|t_ns| Token { id: None, t_ns: *t_ns }).collect();
        Query { query: number, start_ns, tokens, end_ns, ..Query::default() }
    }

    fn seen(parsed: &Parsed, window: (u64, u64)) -> Vec<(&'static str, u64, u64)> {
        phases(parsed, window).iter().map(|i| (i.phase.as_str(), i.begin_ns, i.end_ns)).collect()
    }

    #[test]
    fn a_launch_of_two_queries() {
        let parsed = Parsed {
            load_ns: Some((110, 200)),
            queries: vec![query(0, 210, &[250, 260, 300], Some(301)), query(1, 310, &[350, 400], Some(401))],
            ..Parsed::default()
        };
        assert_eq!(
            seen(&parsed, (100, 500)),
            [
                ("idle", 100, 110),
                ("load", 110, 200),
                ("idle", 200, 210),
                ("prefill", 210, 250),
                ("decode", 250, 300),
                ("idle", 300, 310),
                ("prefill", 310, 350),
                ("decode", 350, 400),
                ("idle", 400, 500),
            ]
        );
        let all = phases(&parsed, (100, 500));
        assert_eq!(
            [99, 100, 110, 249, 250, 300, 499, 500].map(|t| phase_at(&all, t).map_or("-", Phase::as_str)),
            ["-", "idle", "load", "prefill", "decode", "idle", "idle", "-"]
        );
        assert_eq!([Phase::Load, Phase::Prefill, Phase::Decode, Phase::Idle].map(|p| total_ns(&all, p)), [90, 80, 100, 130]);
        assert_eq!(all[7].query, Some(1));
    }

    #[test]
    fn what_was_not_timed_has_no_phases() {
        assert_eq!(seen(&Parsed::default(), (0, 100)), []);
        let reported = Query { aggregate_n: Some(5), end_ns: Some(9), ..Query::default() };
        assert_eq!(seen(&Parsed { queries: vec![reported], ..Parsed::default() }, (0, 100)), []);
        // One token has no decode; a query that failed is all prefill, one that never ended is not known.
        let parsed = Parsed {
            queries: vec![query(0, 10, &[20], Some(21)), query(1, 30, &[], Some(40)), query(2, 50, &[], None)],
            ..Parsed::default()
        };
        assert_eq!(seen(&parsed, (10, 60)), [("prefill", 10, 20), ("idle", 20, 30), ("prefill", 30, 40), ("idle", 40, 60)]);
    }

    #[test]
    fn hostile_times_are_cut_to_the_launch() {
        let parsed = Parsed {
            load_ns: Some((500, 20)),
            queries: vec![query(0, 0, &[u64::MAX, 5], None), query(1, 40, &[60, 90], None), query(2, 50, &[80, 200], None)],
            ..Parsed::default()
        };
        for interval in phases(&parsed, (30, 100)) {
            assert!(interval.begin_ns < interval.end_ns && interval.begin_ns >= 30 && interval.end_ns <= 100, "{interval:?}");
        }
    }

    proptest! {
        #[test]
        fn every_moment_has_one_phase(
            load in proptest::option::of((0_u64..200, 0_u64..200)),
            queries in proptest::collection::vec((0_u64..200, proptest::collection::vec(0_u64..200, 0..4)), 0..4),
            window in (0_u64..100, 100_u64..200),
        ) {
            let queries: Vec<Query> = queries.iter().enumerate().map(|(i, (start, tokens))| query(i as u32, *start, tokens, None)).collect();
            let timed = load.is_some() || queries.iter().any(|q| !q.tokens.is_empty());
            let all = phases(&Parsed { load_ns: load, queries, ..Parsed::default() }, window);
            prop_assert_eq!(all.is_empty(), !timed);
            if timed {
                prop_assert_eq!((all[0].begin_ns, all[all.len() - 1].end_ns), window);
                prop_assert!(all.windows(2).all(|w| w[0].end_ns == w[1].begin_ns) && all.iter().all(|i| i.begin_ns < i.end_ns));
            }
        }
    }
}
