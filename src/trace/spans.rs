//! Stretches of time that nest, as a viewer's track needs them.

use std::cmp::Reverse;

use super::writer::Args;

/// A stretch of time, begin and end in ns.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Span {
    /// Name.
    pub name: String,
    /// Begin.
    pub from: i64,
    /// End.
    pub to: i64,
    /// Further words.
    pub args: Args,
}

impl Span {
    /// A stretch without further words.
    pub fn new(name: impl Into<String>, from: i64, to: i64) -> Self {
        Self { name: name.into(), from, to, args: Args::new() }
    }
}

/// The stretches of one track in the order of their begins, outer before inner. One that begins within another and ends behind it is cut there, and
/// its own length stands in its words; one that ends before it begins is dropped.
pub fn nested(mut spans: Vec<Span>) -> Vec<Span> {
    spans.retain(|span| span.from <= span.to);
    spans.sort_by_key(|span| (span.from, Reverse(span.to)));
    let mut open: Vec<i64> = Vec::new();
    for span in &mut spans {
        while open.last().is_some_and(|end| *end <= span.from) {
            open.pop();
        }
        if let Some(end) = open.last().copied().filter(|end| *end < span.to) {
            span.args.insert("cut_from_us".to_owned(), ((span.to - span.from) as f64 / 1e3).into());
            span.to = end;
        }
        open.push(span.to);
    }
    spans
}

/// A time of a log or clock in ns, as the trace counts.
pub fn ns(t_ns: u64) -> i64 {
    i64::try_from(t_ns).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_overlaps_is_cut_and_says_so() {
        let all = [("b", 2, 12), ("a", 0, 10), ("in b", 3, 4), ("after", 10, 11), ("backwards", 5, 4), ("empty", 10, 10)];
        let found = nested(all.map(|(name, from, to)| Span::new(name, from * 1000, to * 1000)).to_vec());
        let told: Vec<_> = found.iter().map(|s| (s.name.as_str(), s.from / 1000, s.to / 1000)).collect();
        assert_eq!(told, [("a", 0, 10), ("b", 2, 10), ("in b", 3, 4), ("after", 10, 11), ("empty", 10, 10)]);
        assert_eq!((found[0].args.len(), &found[1].args["cut_from_us"]), (0, &serde_json::Value::from(10.0)));
    }

    #[test]
    fn any_stretches_nest() {
        let mut seed = 7_u64;
        let mut next = || {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 40).cast_signed() % 50
        };
        for _ in 0..200 {
            let spans = (0..20).map(|n| Span::new(n.to_string(), next(), next())).collect();
            let found = nested(spans);
            for (a, b) in found.iter().enumerate().flat_map(|(i, a)| found[..i].iter().map(move |b| (b, a))) {
                assert!(b.from >= a.to || b.to <= a.to, "{a:?} {b:?}");
            }
        }
    }
}
