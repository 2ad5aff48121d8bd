//! Intervals of quantiles in the tail, of queries that come in launches.

use super::location::{quantile_of_sorted, sorted};

/// A quantile with its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tail {
    /// The quantile of all values (type 7).
    pub value: f64,
    /// Lower end; `None` where so few values have none.
    pub lo: Option<f64>,
    /// Upper end; `None` where so few values have none.
    pub hi: Option<f64>,
    /// Values.
    pub n: usize,
    /// Independent values that they are worth.
    pub effective: usize,
    /// Fewest independent values that have both ends.
    pub needed: usize,
}

/// Each end misses in 2.5 % of the cases.
const MISS: f64 = 0.025;

/// The `p`-quantile (0 to 1) of all values of the groups, with an interval from order statistics, exact for independent values of any
/// continuous distribution (David and Nagaraja 2003, section 7.1). No resampling: a bootstrap can't go beyond the largest value that it has
/// seen, which is just where the end of a 95 % quantile lies.
///
/// Values of one group (a launch) are alike. They count for as many independent ones as the design effect leaves, 1 + (m - 1) rho (Kish 1965),
/// with rho the intraclass correlation of their ranks by one-way analysis of variance.
///
/// `None` without values, with one that is not finite, or a `p` that is no share.
pub fn tail(groups: &[Vec<f64>], p: f64) -> Option<Tail> {
    if !(p > 0.0 && p < 1.0) {
        return None;
    }
    let ascending = sorted(&groups.concat())?;
    let n = ascending.len();
    let effective = ((n as f64 / design_effect(groups, &ascending)) as usize).clamp(1, n);
    // Rank r of the independent values stands for the same share of all values.
    let at = |rank: f64| ascending[(rank.clamp(1.0, n as f64) as usize) - 1];
    let scale = n as f64 / effective as f64;
    let below: Vec<f64> = cumulative(effective, p);
    let lo = below.iter().take_while(|share| **share <= MISS).count();
    let hi = 1 + below.iter().take_while(|share| **share < 1.0 - MISS).count();
    let far = p.max(1.0 - p);
    Some(Tail {
        value: quantile_of_sorted(&ascending, p),
        lo: (lo > 0).then(|| at((lo as f64 * scale).floor())),
        hi: (hi <= effective).then(|| at((hi as f64 * scale).ceil())),
        n,
        effective,
        needed: (MISS.ln() / far.ln()).ceil() as usize,
    })
}

/// `P(Bin(n, p) <= k)` for k = 0 .. n - 1.
fn cumulative(n: usize, p: f64) -> Vec<f64> {
    let (odds, mut log, mut sum) = ((p / (1.0 - p)).ln(), n as f64 * (1.0 - p).ln(), 0.0);
    (0..n)
        .map(|k| {
            sum += log.exp();
            log += odds + ((n - k) as f64 / (k + 1) as f64).ln();
            sum
        })
        .collect()
}

fn design_effect(groups: &[Vec<f64>], ascending: &[f64]) -> f64 {
    let rank = |value: &f64| {
        let (first, after) = (ascending.partition_point(|v| v < value), ascending.partition_point(|v| v <= value));
        f64::midpoint(first as f64, after as f64)
    };
    let ranks: Vec<Vec<f64>> = groups.iter().filter(|g| !g.is_empty()).map(|g| g.iter().map(rank).collect()).collect();
    let (k, n) = (ranks.len() as f64, ascending.len() as f64);
    if ranks.len() < 2 {
        // One launch: nobody knows how much launches differ, so it is worth one value.
        return n;
    }
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let grand = n / 2.0;
    let between: f64 = ranks.iter().map(|g| g.len() as f64 * (mean(g) - grand).powi(2)).sum::<f64>() / (k - 1.0);
    let inside: f64 = ranks.iter().map(|g| g.iter().map(|r| (r - mean(g)).powi(2)).sum::<f64>()).sum();
    if n <= k {
        return 1.0;
    }
    let inside = inside / (n - k);
    let squares: f64 = ranks.iter().map(|g| (g.len() as f64).powi(2)).sum::<f64>() / n;
    let usual = (n - squares) / (k - 1.0);
    let spread = between + (usual - 1.0) * inside;
    let alike = if spread > 0.0 { ((between - inside) / spread).clamp(0.0, 1.0) } else { 0.0 };
    1.0 + (squares - 1.0) * alike
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{random::SplitMix64, reference::close};

    fn singles(values: impl Iterator<Item = u32>) -> Vec<Vec<f64>> {
        values.map(|v| vec![f64::from(v)]).collect()
    }

    /// Ranks from Python's exact sums of `math.comb(n, k) * p**k * (1 - p)**(n - k)` in fractions.
    #[test]
    fn ranks_agree_with_exact_binomial_sums() {
        for (n, p, lo, hi) in [
            (100, 0.9, Some(84.0), Some(96.0)),
            (100, 0.95, Some(90.0), Some(100.0)),
            (71, 0.95, Some(63.0), None),
            (72, 0.95, Some(64.0), Some(72.0)),
            (368, 0.99, Some(360.0), Some(368.0)),
            (367, 0.99, Some(359.0), None),
            (20, 0.05, None, Some(4.0)),
            (5, 0.95, Some(4.0), None),
        ] {
            let found = tail(&singles(1..=n), p).expect("values");
            assert_eq!((found.lo, found.hi, found.effective), (lo, hi, n as usize), "{n} {p}");
        }
        assert_eq!([0.9, 0.95, 0.99, 0.05].map(|p| tail(&singles(1..=5), p).expect("values").needed), [36, 72, 368, 72]);
    }

    #[test]
    fn alike_queries_count_once() {
        // Three launches of four queries that hardly differ: three values, by hand.
        let groups: Vec<Vec<f64>> = [10.0, 20.0, 30.0].iter().map(|l| (0..4).map(|q| l + f64::from(q) * 0.001).collect()).collect();
        let found = tail(&groups, 0.5).expect("values");
        assert_eq!((found.n, found.effective), (12, 3));
        assert_eq!(tail(&[vec![1.0, 2.0, 3.0]], 0.5).expect("values").effective, 1, "one launch");
        // Ranks without any pattern: all count.
        let mixed = [vec![1.0, 12.0, 6.0, 7.0], vec![2.0, 11.0, 5.0, 8.0], vec![3.0, 10.0, 4.0, 9.0]];
        assert_eq!(tail(&mixed, 0.5).expect("values").effective, 12);
        close(tail(&mixed, 0.5).map(|t| t.value), 6.5);
    }

    #[test]
    fn nothing_gives_nothing() {
        assert_eq!(tail(&[], 0.9), None);
        assert_eq!(tail(&[vec![]], 0.9), None);
        assert_eq!(tail(&[vec![1.0, f64::NAN]], 0.9), None);
        assert_eq!(tail(&[vec![1.0]], 1.0), None);
        let same = tail(&[vec![2.0; 50], vec![2.0; 50]], 0.9).expect("values");
        assert_eq!((same.lo, same.hi, same.value), (Some(2.0), Some(2.0), 2.0));
    }

    /// 40 launches of 5 queries, a launch's own level twice as wide as its queries' scatter: the 90 % quantile of a mixture of uniform draws,
    /// found here as that of a million of them.
    #[test]
    fn the_interval_of_clustered_queries_covers() {
        let mut random = SplitMix64::new(11);
        let mut draw = || random.below(1 << 30) as f64 / f64::from(1 << 30);
        let mut large: Vec<f64> = (0..200_000).map(|_| 2.0 * draw() + draw()).collect();
        large.sort_by(f64::total_cmp);
        let truth = large[180_000];
        let rounds = 400;
        let hits = (0..rounds).filter(|_| {
            let groups: Vec<Vec<f64>> = (0..40)
                .map(|_| {
                    let level = 2.0 * draw();
                    (0..5).map(|_| level + draw()).collect()
                })
                .collect();
            let found = tail(&groups, 0.9).expect("values");
            found.lo.is_none_or(|lo| lo <= truth) && found.hi.is_none_or(|hi| truth <= hi)
        });
        let share = hits.count() as f64 / f64::from(rounds);
        assert!(share >= 0.94, "{share}");
    }
}
