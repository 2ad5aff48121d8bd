//! Units of a fuel gauge. The kernel's ABI says uA, uV and uAh (Documentation/ABI/testing/sysfs-class-power); Samsung gives mA
//! (home-assistant #2846), others mix (wattz #16, termux-api #293). Told by size, and the current by the slope of the charge counter too.

use super::{Point, Refusal, integral::changes};
use crate::stats;

/// No phone with work to do draws less than this many uA: a smaller figure is in mA (telemetry.md section 5).
const LEAST_MICROAMPERES: f64 = 20_000.0;
/// The mean current and the slope of the charge counter belong to one unit when they differ by less than this factor.
const AGREE: f64 = 2.0;
/// Changes of the charge counter that a slope needs: fewer and its steps are its error.
const FEWEST_STEPS: usize = 5;

/// Unit of the current.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CurrentUnit {
    /// The ABI's.
    Microampere,
    /// Some vendors'.
    Milliampere,
}
impl CurrentUnit {
    /// Amperes of one.
    pub const fn amperes(self) -> f64 {
        match self {
            Self::Microampere => 1e-6,
            Self::Milliampere => 1e-3,
        }
    }
    /// Its sign.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Microampere => "uA",
            Self::Milliampere => "mA",
        }
    }
}

/// Unit of the voltage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VoltageUnit {
    /// The ABI's.
    Microvolt,
    /// Some vendors'.
    Millivolt,
    /// Some boards'.
    Volt,
}
impl VoltageUnit {
    /// Volts of one.
    pub const fn volts(self) -> f64 {
        match self {
            Self::Microvolt => 1e-6,
            Self::Millivolt => 1e-3,
            Self::Volt => 1.0,
        }
    }
    /// Its sign.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Microvolt => "uV",
            Self::Millivolt => "mV",
            Self::Volt => "V",
        }
    }
}

/// The unit of a voltage, by its size: batteries have 2 to 60 V.
pub fn voltage(readings: &[Point]) -> Result<VoltageUnit, Refusal> {
    let values: Vec<f64> = readings.iter().map(|p| p.value).collect();
    let Some(typical) = stats::median(&values) else {
        return Err(Refusal::Missing("no battery voltage: a current alone is no power".to_owned()));
    };
    for unit in [VoltageUnit::Volt, VoltageUnit::Millivolt, VoltageUnit::Microvolt] {
        if (2.0..=60.0).contains(&(typical * unit.volts())) {
            return Ok(unit);
        }
    }
    Err(Refusal::Implausible(format!("a battery voltage of {typical} in V, mV or uV")))
}

/// How fast the charge counter falls.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Slope {
    /// uA; positive when it falls.
    pub microamperes: f64,
    /// Between which readings, seconds.
    pub window: (f64, f64),
}

/// Factor from the counter's numbers to uAh by its size: phones and laptops hold 0.2 to 40 Ah. `None` where it could be both.
pub fn charge_factor(readings: &[Point]) -> Option<f64> {
    let values: Vec<f64> = readings.iter().map(|p| p.value).collect();
    match stats::median(&values)? {
        v if (2e5..=4e7).contains(&v) => Some(1.0),
        v if (50.0..=3e4).contains(&v) => Some(1e3),
        _ => None,
    }
}

/// Slope of the charge counter between its first and last change, so that no part of a step is in it; `None` with too few changes.
pub fn slope(charge: &[Point]) -> Option<Slope> {
    let factor = charge_factor(charge)?;
    let fresh = changes(charge);
    let steps: Vec<Point> = charge.iter().zip(fresh).skip(1).filter(|(_, fresh)| *fresh).map(|(p, _)| *p).collect();
    let (first, last) = (steps.first()?, steps.last()?);
    let seconds = last.t_s - first.t_s;
    (steps.len() > FEWEST_STEPS && seconds > 0.0)
        .then(|| Slope { microamperes: (first.value - last.value) * factor * 3600.0 / seconds, window: (first.t_s, last.t_s) })
}

/// The unit of a current, and how it is known. `mean` gives the mean raw |I| between two times.
pub fn current(
    readings: &[Point],
    slope: Option<Slope>,
    mean: impl Fn((f64, f64)) -> Option<f64>,
) -> Result<(CurrentUnit, &'static str), Refusal> {
    let peak = readings.iter().map(|p| p.value.abs()).fold(0.0, f64::max);
    if peak == 0.0 {
        return Err(Refusal::Implausible("a current of 0 all the time: the gauge gives none".to_owned()));
    }
    let by_size = if peak < LEAST_MICROAMPERES { CurrentUnit::Milliampere } else { CurrentUnit::Microampere };
    let Some((slope, raw)) = slope.and_then(|s| Some((s, mean(s.window)?))) else { return Ok((by_size, "size")) };
    let amperes = slope.microamperes * 1e-6;
    if amperes <= 0.0 {
        return Err(Refusal::Contradiction(format!("the charge counter rises by {:.0} mA while discharging", -amperes * 1e3)));
    }
    let ratio = raw * by_size.amperes() / amperes;
    if (1.0 / AGREE..=AGREE).contains(&ratio) {
        return Ok((by_size, "size and charge counter"));
    }
    Err(Refusal::Contradiction(format!(
        "a current of {raw:.0} by its size in {}, and a charge counter that falls by {:.1} mA",
        by_size.as_str(),
        amperes * 1e3
    )))
}
