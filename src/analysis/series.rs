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

#[cfg(test)]
mod tests {
    use super::*;

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
