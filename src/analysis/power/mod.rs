//! Power and energy (rules R15, R17; telemetry.md section 5; metrics.md "Power / energy"). Pure functions over raw readings.
//!
//! What a battery gives is the draw of the whole device, never of its NPU. Nothing here repairs a doubtful reading: a figure that the readings
//! can't carry is refused, in words ([`Refusal`]).

mod baseline;
mod battery;
mod integral;
mod launch;
mod meter;
mod method;
mod phases;
mod refusal;
mod telemetry;
mod units;

#[cfg(test)]
mod tests;

pub use baseline::{Baseline, BaselineState, SHORTEST_BASELINE_S, baseline, chosen};
pub use integral::{Energy, Point, integrate};
pub use launch::{LOOP_SHARE, LaunchPower, Load, METRICS, MeterClock, launch};
pub use meter::{Alignment, Clock, MeterError, align, read as read_meter};
pub use method::{Asked, Measured, Meter, Method, Window, series, shortest_window_s, standing};
pub use phases::{Fit, FitError, least_squares};
pub use refusal::Refusal;
pub use telemetry::{Supply, Telemetry};
pub use units::{CurrentUnit, VoltageUnit};
