//! Tokens that took far longer than those around them, and what happened at that time.

use super::{
    figures::{Happening, Input},
    throttle::States,
    trace::{ns, seconds},
};
use crate::stats;

/// A gap is told if it is this many times the median of its query.
const TIMES: f64 = 5.0;
/// And so many, the longest.
const MOST: usize = 20;
/// What is told as being around: seconds before and after.
const AROUND_S: f64 = 2.0;

/// The longest gaps, each with what changed around it.
pub fn find(input: &Input<'_>, begin: u64, states: &States<'_>, temp: &dyn Fn(u64) -> Option<f64>) -> Vec<Happening> {
    let mut slow: Vec<(f64, f64, u64, u32, usize)> = Vec::new();
    for q in input.queries.iter().filter(|q| q.query >= input.warmup) {
        let gaps: Vec<f64> = q.tokens.windows(2).map(|w| seconds(w[0].t_ns, w[1].t_ns) * 1e3).collect();
        let Some(median) = stats::median(&gaps).filter(|m| *m > 0.0) else { continue };
        let long = gaps.iter().enumerate().filter(|(_, gap)| **gap > TIMES * median);
        slow.extend(long.map(|(i, gap)| (*gap, median, q.tokens[i + 1].t_ns, q.query, i + 1)));
    }
    slow.sort_by(|a, b| b.0.total_cmp(&a.0));
    slow.truncate(MOST);
    let changes = states.changes();
    let near = |at: u64, gap_ms: f64| {
        let (from, to) = (at.saturating_sub(ns(AROUND_S + gap_ms / 1e3)), at.saturating_add(ns(AROUND_S)));
        let inside = changes.iter().filter(|(t, ..)| (from..=to).contains(t));
        let words: Vec<String> = inside.take(3).map(|(_, name, [a, b])| format!("{name} from {a} to {b}")).collect();
        if words.is_empty() { "no change of cooling or caps around it".to_owned() } else { words.join(", ") }
    };
    slow.into_iter()
        .map(|(gap, median, t_ns, query, token)| Happening {
            t_s: seconds(begin, t_ns),
            kind: "slow-token".to_owned(),
            what: format!("token {token} of query {query} took {gap:.1} ms where {median:.1} ms are usual; {}", near(t_ns, gap)),
            temp_c: temp(t_ns),
        })
        .collect()
}
