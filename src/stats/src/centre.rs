//! The location that comparisons use: Hodges and Lehmann's, of the logarithms.
//!
//! It is the median of the means of all pairs (Walsh averages). Against the mean it loses 4.5 % where noise is normal and wins where it
//! has a tail; against the median, which `cells.csv` shows, it needs a third fewer repetitions for the same interval (efficiency 0.955
//! and 0.637: Hodges and Lehmann 1963).

use super::location::{median_of_sorted, sorted};

/// A location with its standard error.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Centre {
    /// The location.
    pub at: f64,
    /// Standard error, from the values' own spread; `None` for one value.
    pub error: Option<f64>,
    /// Number of values.
    pub n: usize,
}

/// Hodges and Lehmann's location. `None` when there are no values or one of them is not finite.
///
/// The standard error is read off the interval that goes with it: the one-sigma interval of the signed-rank test ends on two of the Walsh
/// averages, so half of it is an error that outliers hardly move (Lehmann 1963). Time and memory grow with the square of the count.
pub fn hodges_lehmann(values: &[f64]) -> Option<Centre> {
    let ascending = sorted(values)?;
    let n = ascending.len();
    let mut averages: Vec<f64> =
        (0..n).flat_map(|i| ascending[i..].iter().map(|other| f64::midpoint(ascending[i], *other)).collect::<Vec<_>>()).collect();
    averages.sort_by(f64::total_cmp);
    let (count, all) = (n as f64, averages.len());
    let (mean, deviation) = (count * (count + 1.0) / 4.0, (count * (count + 1.0) * (2.0 * count + 1.0) / 24.0).sqrt());
    let rank = (mean - deviation).floor().max(0.0);
    let width = averages[all - 1 - rank as usize] - averages[rank as usize];
    let error = (n > 1).then(|| width / (2.0 * (mean - rank) / deviation)).filter(|error| error.is_finite());
    Some(Centre { at: median_of_sorted(&averages), error, n })
}

/// [`hodges_lehmann`] of the natural logarithms: durations and rates multiply. `None` unless every value is finite and above zero.
pub fn log_centre(values: &[f64]) -> Option<Centre> {
    hodges_lehmann(&logs(values)?)
}

/// The same location in the unit of the values.
pub fn centre(values: &[f64]) -> Option<f64> {
    log_centre(values).map(|centre| centre.at.exp())
}

pub(super) fn logs(values: &[f64]) -> Option<Vec<f64>> {
    values.iter().map(|value| (value.is_finite() && *value > 0.0).then(|| value.ln())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reference::{EVEN, ODD, close, many_samples};

    #[test]
    fn agrees_with_numpy() {
        // w = np.sort([(x[i] + x[j]) / 2 for i in range(n) for j in range(i, n)]); np.median(w) of x and of np.log(x).
        close(hodges_lehmann(&ODD).map(|c| c.at), 50.325);
        close(hodges_lehmann(&EVEN).map(|c| c.at), 7.843_75);
        close(centre(&ODD), 50.321_358_077_461_9);
        close(centre(&EVEN), 7.782_172_559_872_112);
        // k = floor(n(n+1)/4 - s), s = sqrt(n(n+1)(2n+1)/24); (w[-1-k] - w[k]) / 2 / ((n(n+1)/4 - k) / s)
        close(hodges_lehmann(&ODD).and_then(|c| c.error), 0.317_900_860_002_179_3);
        close(log_centre(&EVEN).and_then(|c| c.error), 0.079_126_337_770_088_28);
    }

    #[test]
    fn few_values() {
        assert_eq!(hodges_lehmann(&[3.0]), Some(Centre { at: 3.0, error: None, n: 1 }));
        close(centre(&[2.0, 8.0]), 4.0);
        assert_eq!(hodges_lehmann(&[5.0; 7]), Some(Centre { at: 5.0, error: Some(0.0), n: 7 }));
        for values in [&[] as &[f64], &[0.0], &[-1.0, 2.0], &[1.0, f64::NAN], &[f64::INFINITY]] {
            assert_eq!(centre(values), None, "{values:?}");
        }
    }

    #[test]
    fn lies_in_the_range_and_follows_scale() {
        for values in many_samples() {
            let found = hodges_lehmann(&values).expect("values");
            assert!(values.iter().any(|v| *v <= found.at) && values.iter().any(|v| *v >= found.at));
            let scaled = hodges_lehmann(&values.iter().map(|v| v * 4.0).collect::<Vec<_>>()).expect("values");
            assert_eq!((found.at * 4.0, found.error.map(|e| e * 4.0)), (scaled.at, scaled.error));
        }
        // The middle of two of the largest numbers is still one.
        assert_eq!(hodges_lehmann(&[f64::MAX, f64::MAX]).map(|c| c.at), Some(f64::MAX));
    }
}
