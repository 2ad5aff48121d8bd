//! What the device draws when nothing is measured.

use super::{
    Asked, CurrentUnit, Meter, Refusal, Telemetry, Window,
    method::{Report, power},
};

/// Shortest idle baseline (metrics.md, "requires"), s.
pub const SHORTEST_BASELINE_S: f64 = 60.0;
/// Updates of the gauge that a baseline needs.
const FEWEST_UPDATES: f64 = 5.0;

/// What is in memory while the device idles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BaselineState {
    /// The cell's own model, loaded by its own framework: what rule R15 asks for.
    Resident,
    /// No model, before the first launch.
    NoModel,
}
impl BaselineState {
    /// The word in tables.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Resident => "resident",
            Self::NoModel => "no-model",
        }
    }
}

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
    /// What is in memory.
    pub state: BaselineState,
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
    state: BaselineState,
) -> Result<Baseline, Refusal> {
    // The agent's clock and the sleep it runs need not agree to the millisecond.
    let window = Window { from_s, to_s, floor_s: SHORTEST_BASELINE_S - 0.5, updates: FEWEST_UPDATES };
    let Report { charge_state, power } = power(telemetry, meter, asked, window, hint);
    let m = power?;
    Ok(Baseline { w: m.energy.avg_w, spread_w: m.energy.spread_w, method: m.method, charge_state, state })
}

/// The baseline of a launch: its cell's own with the model in memory; where there is none, or its readings carry none, that without a model.
///
/// # Errors
/// The reason of the one with the model, where that was tried, else of the other.
pub fn chosen<'a>(resident: Option<&'a Result<Baseline, String>>, no_model: &'a Result<Baseline, String>) -> Result<&'a Baseline, &'a str> {
    match (resident, no_model) {
        (Some(Ok(base)), _) | (_, Ok(base)) => Ok(base),
        (Some(Err(why)), Err(_)) | (None, Err(why)) => Err(why),
    }
}
