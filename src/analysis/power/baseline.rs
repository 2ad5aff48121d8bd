//! What the device draws when nothing is measured.

use super::{
    Asked, CurrentUnit, Meter, Refusal, Telemetry, Window,
    method::{Report, power},
};

/// Shortest idle baseline (metrics.md, "requires"), s.
pub const SHORTEST_BASELINE_S: f64 = 60.0;
/// Updates of the gauge that a baseline needs.
const FEWEST_UPDATES: f64 = 5.0;

/// An idle baseline.
#[derive(Debug, Clone, PartialEq)]
pub struct Baseline {
    /// Mean power, W.
    pub w: f64,
    /// Standard deviation of the distinct samples, W.
    pub spread_w: f64,
    /// The method, as a launch's.
    pub method: String,
    /// The charge states, as a launch's.
    pub charge_state: Option<String>,
}

/// The baseline of an idle window. `hint` is the unit of the current as the launches' windows told it: at idle its size says nothing.
///
/// # Errors
/// As a launch's, and windows under 60 s or five updates.
pub fn baseline(
    telemetry: &Telemetry,
    meter: Option<&Meter>,
    asked: Asked<'_>,
    (from_s, to_s): (f64, f64),
    hint: Option<CurrentUnit>,
) -> Result<Baseline, Refusal> {
    // The agent's clock and the sleep it runs need not agree to the millisecond.
    let window = Window { from_s, to_s, floor_s: SHORTEST_BASELINE_S - 0.5, updates: FEWEST_UPDATES };
    let Report { charge_state, power } = power(telemetry, meter, asked, window, hint);
    let m = power?;
    Ok(Baseline { w: m.energy.avg_w, spread_w: m.energy.spread_w, method: m.method, charge_state })
}
