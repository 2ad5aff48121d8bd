//! Values that stand apart: flagged, never dropped.

use super::location::{mad, mean, median};

/// Limit of the modified z-score (Iglewicz and Hoaglin 1993).
pub const OUTLIER_LIMIT: f64 = 3.5;

/// One flag a value: whether its modified z-score, `0.6745 |x - median| / MAD`, is over [`OUTLIER_LIMIT`].
///
/// Where more than half the values are equal the MAD is 0 and says nothing; the mean absolute deviation takes its place, with the factor
/// `1 / 1.253314` that the same authors give. All false when there is no spread or a value is not finite.
pub fn outliers(values: &[f64]) -> Vec<bool> {
    let Some((centre, scale)) = centre_and_scale(values) else {
        return vec![false; values.len()];
    };
    values.iter().map(|value| (value - centre).abs() / scale > OUTLIER_LIMIT).collect()
}

/// The values drawn in to where an outlier begins. What stands apart still counts, but no more than that.
pub fn drawn_in(values: &[f64]) -> Vec<f64> {
    let Some((centre, scale)) = centre_and_scale(values) else {
        return values.to_vec();
    };
    let reach = scale * OUTLIER_LIMIT;
    values.iter().map(|value| value.clamp(centre - reach, centre + reach)).collect()
}

/// Centre, and what one unit of the score is.
fn centre_and_scale(values: &[f64]) -> Option<(f64, f64)> {
    let centre = median(values)?;
    let by_median = mad(values)? / 0.6745;
    if by_median > 0.0 {
        return Some((centre, by_median));
    }
    let deviations: Vec<f64> = values.iter().map(|value| (value - centre).abs()).collect();
    mean(&deviations).filter(|deviation| *deviation > 0.0).map(|deviation| (centre, deviation * 1.253_314))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reference::{ODD, many_samples};

    #[test]
    fn agrees_with_scipy() {
        // Scores with 71.0 added: 16.4261 for it, at most 2.1425 for the others.
        let mut values = ODD.to_vec();
        values.push(71.0);
        let flags = outliers(&values);
        assert!(flags[15] && flags[..15].iter().all(|flag| !flag));
    }

    #[test]
    fn equal_values_with_one_apart() {
        assert_eq!(outliers(&[5.0, 5.0, 5.0, 5.0, 5.0, 5.0, 9.0]), [false, false, false, false, false, false, true]);
    }

    #[test]
    fn what_stands_apart_is_drawn_in_to_the_limit() {
        // Median 5, deviations 0 to 3 and 995, MAD 1: the limit is 3.5 / 0.6745 = 5.18903.
        let found = drawn_in(&[2.0, 4.0, 5.0, 6.0, 1000.0]);
        assert_eq!(found[..4], [2.0, 4.0, 5.0, 6.0]);
        assert!((found[4] - 10.189_03).abs() < 1e-5, "{found:?}");
        assert_eq!(drawn_in(&[1.0, f64::INFINITY])[0].to_bits(), 1.0_f64.to_bits());
    }

    #[test]
    fn no_spread_no_flag_and_one_flag_a_value() {
        assert_eq!(outliers(&[5.0; 6]), [false; 6]);
        assert_eq!(outliers(&[1.0, f64::NAN]), [false; 2]);
        assert!(many_samples().iter().all(|values| outliers(values).len() == values.len()));
    }
}
