//! Series of one sensor.

/// A jump of a temperature, up and down again within one sample, that no part of a phone makes, in degrees. CPU cores, the quickest, rise by some
/// sixty degrees in seconds and fall nearly as fast, but their sensors are read at least every second and have been seen to move by thirty.
pub const TEMPERATURE_JUMP_C: f64 = 40.0;

/// A series without its spikes.
#[derive(Debug, Clone, PartialEq)]
pub struct Despiked {
    /// The samples that stay, in their order: time (any unit) and value.
    pub kept: Vec<(f64, f64)>,
    /// Indices of those that were dropped.
    pub dropped: Vec<usize>,
}

/// Drops single samples that jump by more than `jump` away from both neighbours, which themselves agree within `jump`: what a sensor or its bus
/// makes of a failed reading (a zone that says 140 C once). The first and last sample have one neighbour and stay; so do two
/// such samples in a row: that is a change, and who looks at the series has to judge it. Values that are not finite are dropped.
///
/// The rule is that of a median of three, applied only where it changes a value by more than `jump`, so that everything else stays as measured.
pub fn despike(series: &[(f64, f64)], jump: f64) -> Despiked {
    let finite: Vec<usize> = (0..series.len()).filter(|&i| series[i].1.is_finite()).collect();
    let value = |place: usize| series[finite[place]].1;
    let far = |a: f64, b: f64| (a - b).abs() > jump;
    let spike = |place: usize| {
        if place == 0 || place + 1 >= finite.len() {
            return false;
        }
        let (before, own, after) = (value(place - 1), value(place), value(place + 1));
        far(own, before) && far(own, after) && (own > before) == (own > after) && !far(before, after)
    };
    let gone: Vec<bool> = (0..finite.len()).map(spike).collect();
    let kept: Vec<usize> = finite.iter().zip(&gone).filter(|(_, gone)| !**gone).map(|(&i, _)| i).collect();
    let dropped = (0..series.len()).filter(|i| kept.binary_search(i).is_err()).collect();
    Despiked { kept: kept.iter().map(|&i| series[i]).collect(), dropped }
}

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

    fn of(values: &[f64]) -> (Vec<f64>, Vec<usize>) {
        let series: Vec<(f64, f64)> = values.iter().enumerate().map(|(i, &v)| (i as f64, v)).collect();
        let despiked = despike(&series, TEMPERATURE_JUMP_C);
        assert_eq!(despiked.kept.len() + despiked.dropped.len(), values.len());
        (despiked.kept.iter().map(|p| p.1).collect(), despiked.dropped)
    }

    #[test]
    fn one_sample_of_140_degrees() {
        assert_eq!(of(&[45.0, 45.5, 140.0, 46.0, 46.5]), (vec![45.0, 45.5, 46.0, 46.5], vec![2]));
        assert_eq!(of(&[85.0, 85.0, 20.0, 86.0]).1, [2], "down as well as up");
        assert_eq!(of(&[45.0, 140.0, 45.0, 46.0, 140.0, 45.0]).1, [1, 4], "and more than once");
    }

    #[test]
    fn what_a_device_does_stays() {
        for real in [
            // A core under load, and let go.
            &[45.0, 84.0, 104.0, 103.0, 66.0, 50.0][..],
            // A step that stays.
            &[40.0, 40.0, 95.0, 95.0, 95.0],
            // Two samples of the same: not for this rule to judge.
            &[45.0, 140.0, 140.0, 45.0],
            // The ends can't be told from a step.
            &[45.0, 140.0],
            &[95.0, 40.0, 40.0],
            &[140.0],
            &[],
        ] {
            assert_eq!(of(real), (real.to_vec(), vec![]));
        }
    }

    #[test]
    fn no_number_no_sample() {
        assert_eq!(of(&[45.0, f64::NAN, 140.0, 46.0, f64::INFINITY]), (vec![45.0, 46.0], vec![1, 2, 4]));
    }
}
