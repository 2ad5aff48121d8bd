//! A long series for a drawing.

/// A series in order of time, thinned for a drawing: of each of so many equal stretches of its time the least and the most value, as they came,
/// beside the first and the last of all. No extreme is lost, and no point is made up. The points of M4 (Jugel et al., VLDB 2014), but for the
/// ends of each stretch. A series that has no more points stays as it is.
pub fn extremes(points: &[(f64, f64)], stretches: usize) -> Vec<(f64, f64)> {
    let &[(begun, _), .., (ended, _)] = points else { return points.to_vec() };
    if points.len() <= 2 * stretches + 2 {
        return points.to_vec();
    }
    let stretch = |t: f64| (((t - begun) / (ended - begun) * stretches as f64) as usize).min(stretches.saturating_sub(1));
    let mut kept: Vec<usize> = vec![0];
    for places in (0..points.len()).collect::<Vec<_>>().chunk_by(|a, b| stretch(points[*a].0) == stretch(points[*b].0)) {
        let by_value = |a: &&usize, b: &&usize| points[**a].1.total_cmp(&points[**b].1);
        // Of equal ones the first.
        let least = places.iter().min_by(by_value);
        let most = places.iter().rev().max_by(by_value);
        let ends = least.zip(most).map(|(a, b)| [*a.min(b), *a.max(b)]);
        kept.extend(ends.into_iter().flatten());
    }
    kept.push(points.len() - 1);
    kept.dedup();
    kept.into_iter().map(|place| points[place]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thinned_series_keeps_every_stretch_s_extremes() {
        // 1,000 seconds, one value each, in 10 stretches of 100 s (the last holds the end too).
        let points: Vec<(f64, f64)> = (0..=1000).map(|t| (f64::from(t), f64::from(t * 7919 % 1009))).collect();
        let thin = extremes(&points, 10);
        for (begun, ended) in (0..10).map(|i| (i * 100, if i == 9 { 1001 } else { i * 100 + 100 })) {
            let of = |all: &[(f64, f64)]| {
                let inside = |p: &&(f64, f64)| (f64::from(begun)..f64::from(ended)).contains(&p.0);
                let values = all.iter().filter(inside).map(|p| p.1);
                values.fold((f64::INFINITY, f64::NEG_INFINITY), |(lo, hi), value| (lo.min(value), hi.max(value)))
            };
            assert_eq!(of(&thin), of(&points), "{begun}");
        }
        assert!(thin.len() <= 22 && thin.is_sorted_by(|a, b| a.0 < b.0) && thin.iter().all(|p| points.contains(p)), "{thin:?}");
        assert_eq!((thin[0], thin[thin.len() - 1]), (points[0], points[1000]));
    }

    #[test]
    fn little_flat_and_odd_series_are_thinned() {
        for few in [&[][..], &[(1.0, 2.0)], &[(1.0, 2.0), (1.0, 3.0)]] {
            assert_eq!(extremes(few, 10), few);
        }
        let flat: Vec<(f64, f64)> = (0..1000).map(|t| (f64::from(t), 5.0)).collect();
        assert_eq!(extremes(&flat, 10).len(), 11, "the first of each stretch, and the end");
        // All at one time, and a peak among equals of one sample.
        let at_once: Vec<(f64, f64)> = (0..1000).map(|i| (3.0, if i == 777 { 9.0 } else { 1.0 })).collect();
        assert_eq!(extremes(&at_once, 10), [(3.0, 1.0), (3.0, 9.0), (3.0, 1.0)]);
    }
}
