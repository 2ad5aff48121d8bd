//! Where a sample lies and how wide it is.

/// The values in ascending order, or `None` when there are none or one of them is not finite.
pub(super) fn sorted(values: &[f64]) -> Option<Vec<f64>> {
    if values.is_empty() || values.iter().any(|value| !value.is_finite()) {
        return None;
    }
    let mut ascending = values.to_vec();
    ascending.sort_by(f64::total_cmp);
    Some(ascending)
}

/// Middle of a slice that is sorted and not empty; the mean of the middle two where the count is even.
pub(super) fn median_of_sorted(ascending: &[f64]) -> f64 {
    let half = ascending.len() / 2;
    if ascending.len() % 2 == 1 { ascending[half] } else { f64::midpoint(ascending[half - 1], ascending[half]) }
}

/// Quantile of a slice that is sorted and not empty, `p` within 0..=1. See [`quantile`].
pub(super) fn quantile_of_sorted(ascending: &[f64], p: f64) -> f64 {
    let position = p * (ascending.len() - 1) as f64;
    let below = position.floor() as usize;
    let above = (below + 1).min(ascending.len() - 1);
    let weight = position - below as f64;
    // The two-product form stays between its ends and does not overflow where the difference of the ends would.
    (ascending[below] * (1.0 - weight) + ascending[above] * weight).clamp(ascending[below], ascending[above])
}

/// Median.
pub fn median(values: &[f64]) -> Option<f64> {
    sorted(values).map(|ascending| median_of_sorted(&ascending))
}

/// Quantile by linear interpolation between order statistics: type 7 of Hyndman and Fan (1996), the default of R and NumPy.
///
/// `None` as well when `p` is outside 0..=1.
pub fn quantile(values: &[f64], p: f64) -> Option<f64> {
    quantiles(values, [p]).map(|[quantile]| quantile)
}

/// Several of them: the values are sorted once.
pub fn quantiles<const N: usize>(values: &[f64], ps: [f64; N]) -> Option<[f64; N]> {
    if !ps.iter().all(|p| (0.0..=1.0).contains(p)) {
        return None;
    }
    sorted(values).map(|ascending| ps.map(|p| quantile_of_sorted(&ascending, p)))
}

/// Median absolute deviation from the median, raw: not scaled to a standard deviation.
pub fn mad(values: &[f64]) -> Option<f64> {
    let centre = median(values)?;
    median(&values.iter().map(|value| (value - centre).abs()).collect::<Vec<_>>())
}

/// Arithmetic mean.
pub fn mean(values: &[f64]) -> Option<f64> {
    if values.is_empty() {
        return None;
    }
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    mean.is_finite().then_some(mean)
}

/// Standard deviation of the sample, with `n - 1`; `None` under two values.
pub fn standard_deviation(values: &[f64]) -> Option<f64> {
    if values.len() < 2 {
        return None;
    }
    let centre = mean(values)?;
    let squares: f64 = values.iter().map(|value| (value - centre).powi(2)).sum();
    let deviation = (squares / (values.len() - 1) as f64).sqrt();
    deviation.is_finite().then_some(deviation)
}

/// Coefficient of variation: standard deviation over mean, for values that are above zero in the mean.
pub fn relative_spread(values: &[f64]) -> Option<f64> {
    let centre = mean(values).filter(|centre| *centre > 0.0)?;
    let spread = standard_deviation(values)? / centre;
    spread.is_finite().then_some(spread)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reference::{EVEN, ODD, close};

    #[test]
    fn agrees_with_numpy() {
        assert_eq!(median(&ODD), Some(50.2));
        assert_eq!(median(&EVEN), Some(7.75));
        for (p, odd, even) in [
            (0.0, 47.9, 3.5),
            (0.05, 48.6, 4.4625),
            (0.10, 48.98, 5.4),
            (0.25, 49.65, 6.9375),
            (0.90, 52.06, 11.35),
            (0.95, 52.51, 11.725),
            (0.99, 52.902, 11.945),
            (1.0, 53.0, 12.0),
        ] {
            close(quantile(&ODD, p), odd);
            close(quantile(&EVEN, p), even);
        }
        close(mad(&ODD), 0.7);
        close(mad(&EVEN), 1.125);
        close(mean(&ODD), 50.373_333_333_333_335);
        close(standard_deviation(&EVEN), 2.420_590_140_603_708);
        close(relative_spread(&ODD), 0.026_330_652_423_174_155);
    }

    #[test]
    fn nothing_comes_of_nothing() {
        for values in [&[] as &[f64], &[f64::NAN], &[1.0, f64::INFINITY], &[1.0, f64::NAN, 3.0]] {
            assert_eq!((median(values), quantile(values, 0.5), mad(values)), (None, None, None), "{values:?}");
        }
        assert_eq!(quantile(&[1.0], 1.5), None);
        assert_eq!(quantile(&[1.0], f64::NAN), None);
        assert_eq!(standard_deviation(&[1.0]), None);
        assert_eq!(relative_spread(&[-1.0, 1.0]), None);
    }

    #[test]
    fn extreme_values_stay_finite_or_are_absent() {
        let huge = [f64::MAX, f64::MAX, -f64::MAX];
        for result in
            [median(&huge), quantile(&huge, 0.3), mean(&huge), standard_deviation(&huge), relative_spread(&huge)].into_iter().flatten()
        {
            assert!(result.is_finite());
        }
        assert_eq!(median(&[f64::MAX, f64::MAX]), Some(f64::MAX));
    }
}
