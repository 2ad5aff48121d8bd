//! Samples and reference values that the tests share.
//!
//! Made by NumPy 2.4.6 and SciPy 1.17.1 (`pip install numpy==2.4.6 scipy==1.17.1`), not by this crate:
//!
//! ```python
//! import numpy as np
//! from scipy import stats as st
//! for x in (np.array(ODD), np.array(EVEN)):
//!     print(np.median(x), [np.quantile(x, p) for p in (0, .05, .1, .25, .9, .95, .99, 1)])
//!     print(st.median_abs_deviation(x), x.mean(), x.std(ddof=1), st.variation(x, ddof=1))
//!     print(st.bootstrap((x,), np.median, method="percentile", n_resamples=200000, rng=np.random.default_rng(1)).confidence_interval)
//! # the bootstrap distribution of the median is known exactly where n is odd: P(median* <= k-th value)
//! print([st.binom.sf(7, 15, k / 15) for k in range(1, 16)])
//! print([1 - 2 * st.binom.cdf(r - 1, n, .5) for n, r in ...])   # coverage of [r-th smallest, r-th largest]
//! print(st.bootstrap((ODD, EVEN), lambda u, v, axis=-1: np.median(u, axis=axis) / np.median(v, axis=axis), method="percentile",
//!                    n_resamples=200000, rng=np.random.default_rng(1)).confidence_interval)
//! o = np.append(ODD, 71.0); print(0.6745 * (o - np.median(o)) / st.median_abs_deviation(o))
//! ```

/// Fifteen values around 50.
pub const ODD: [f64; 15] = [51.2, 49.8, 50.1, 50.6, 48.9, 52.3, 50.0, 49.5, 51.7, 50.4, 47.9, 53.0, 50.2, 49.1, 50.9];
/// Twelve values with a wide spread.
pub const EVEN: [f64; 12] = [12.0, 3.5, 7.25, 9.0, 8.125, 7.0, 11.5, 6.75, 7.5, 10.0, 5.25, 8.0];

/// Asserts equality up to rounding.
#[track_caller]
pub fn close(found: Option<f64>, wanted: f64) {
    let found = found.expect("a value");
    assert!((found - wanted).abs() <= 1e-12 * wanted.abs().max(1.0), "{found} is not {wanted}");
}

/// Samples of many shapes and sizes, the same at every call: the input of the property tests.
pub fn many_samples() -> Vec<Vec<f64>> {
    let mut random = crate::random::SplitMix64::new(20_261_201);
    let mut unit = move || random.below(1 << 30) as f64 / f64::from(1 << 30);
    let mut samples = Vec::new();
    for n in (1..24).chain([40, 65]) {
        samples.push((0..n).map(|_| 10.0 + unit()).collect());
        samples.push((0..n).map(|_| -(1.0 - unit()).ln() * 30.0 + 5.0).collect());
        samples.push((0..n).map(|_| (unit() * 4.0).floor()).collect());
        samples.push(vec![7.5; n]);
    }
    samples
}
