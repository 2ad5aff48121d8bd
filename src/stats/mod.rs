//! Statistics over samples: pure functions over `f64` slices, a leaf that any module may use.
//!
//! Two promises hold everywhere. No function panics, and none gives `NaN` or an infinity: a slice that is empty or holds a value that is
//! not finite has no median, no interval and no verdict, which is `None` (or "unknown" with its reason), never 0.
//!
//! Nothing assumes a normal distribution: run times have a hard floor and a long tail. Hence medians, median absolute deviations,
//! and intervals from resampling or from order statistics.
//!
//! The intervals take the values as independent draws. The queries of one launch share its process, its heap layout and its temperature;
//! where launches differ more than queries do, a pooled interval is too narrow. [`launch_effect`] measures that, so that a report can say it.

mod interval;
mod launches;
mod location;
mod outliers;
mod ratio;
mod resample;
mod stability;
mod stopping;
mod summary;

#[cfg(test)]
mod reference;

pub use interval::{Interval, Method, interval, interval_at};
pub use launches::launch_effect;
pub use location::{mad, mean, median, quantile, relative_spread, standard_deviation};
pub use outliers::{OUTLIER_LIMIT, outliers};
pub use ratio::{Ratio, ratio_of_medians};
pub use resample::RESAMPLES;
pub use stability::{STABLE_SPREAD, Stability, stability};
pub use stopping::{checkpoints, reached};
pub use summary::{DEFAULT_SEED, N_SMALL, Summary};
