//! Statistics over samples: pure functions over `f64` slices, a leaf that any module may use.
//!
//! A crate of its own for its optimisation, as `src/tables` is: a report draws launches half a million times, a comparison resamples each of its cells
//! five thousand times, and the dev profile, which is what README builds, compiles this with `opt-level = 3` in seconds.
//!
//! Two promises hold everywhere. No function panics, and none gives `NaN` or an infinity: a slice that is empty or holds a value that is
//! not finite has no median, no interval and no verdict, which is `None` (or "unknown" with its reason), never 0.
//!
//! Nothing assumes a normal distribution: run times have a hard floor and a long tail. Hence medians, median absolute deviations,
//! and intervals from resampling or from order statistics.
//!
//! The intervals take the values as independent draws. The queries of one launch are not: they share its process, its heap layout and its
//! temperature. So whoever calls gives one value a launch, the median of its warm queries.

pub mod random;

mod centre;
mod effect;
mod extremes;
mod first;
mod interval;
mod location;
mod order;
mod outliers;
mod ratio;
mod resample;
mod stability;
mod steps;
mod stopping;
mod student;
mod summary;
mod tail;

#[cfg(test)]
mod reference;

pub use centre::{Centre, centre, hodges_lehmann, log_centre};
pub use effect::{Effect, FEWEST_FOR_EFFECT, log_effect, paired_effect};
pub use extremes::extremes;
pub use first::{Factor, Values, first_shares};
pub use interval::{Interval, Method, interval, interval_at};
pub use location::{mad, mean, median, quantile, quantiles, relative_spread, standard_deviation};
pub use order::{Drift, autocorrelation, drift, effective_size};
pub use outliers::{OUTLIER_LIMIT, drawn_in, outliers};
pub use ratio::{Ends, FEWEST_FOR_RATIO, Ratio, ratio_of_medians};
pub use resample::RESAMPLES;
pub use stability::{STABLE_SPREAD, Stability, stability};
pub use steps::{Step, steps};
pub use stopping::{checkpoints, reached};
pub use student::{beyond, student, student_95};
pub use summary::{DEFAULT_SEED, N_SMALL, Summary};
pub use tail::{Tail, tail};
