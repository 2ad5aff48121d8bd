//! Synthetic traces whose energy is known by hand.

mod figures;
mod gauges;
mod instruments;

use super::*;

/// A gauge that is polled: its value is renewed every `update_s`, polls come every `poll_s`.
pub(super) struct Gauge {
    pub update_s: f64,
    pub poll_s: f64,
    /// Amperes to raw, sign included.
    pub scale: f64,
}

/// The ABI's: uA, negative when discharging.
pub(super) const ABI: Gauge = Gauge { update_s: 0.25, poll_s: 0.1, scale: -1e6 };

/// Rows of a battery at a constant 4.0 V that draws `amperes(t)` from 0 to `seconds`; a charge counter in uAh that follows the true current.
pub(super) fn battery(telemetry: &mut Telemetry, name: &str, gauge: &Gauge, seconds: f64, amperes: &dyn Fn(f64) -> f64) {
    let (mut charge, mut last) = (4_000_000.0, 0.0);
    let polls = (seconds / gauge.poll_s).round() as u64;
    for i in 0..=polls {
        let t = i as f64 * gauge.poll_s;
        // Midpoints are exact for straight lines.
        charge -= amperes(f64::midpoint(t, last)) * (t - last) / 3600.0 * 1e6;
        last = t;
        let shown = amperes((t / gauge.update_s + 1e-9).floor() * gauge.update_s);
        let ns = (t * 1e9) as u64;
        let mut row = |attribute: &str, value: f64| telemetry.push(ns, "battery", &format!("{name}/{attribute}"), value);
        row("current_now", (shown * gauge.scale).round());
        row("voltage_now", 4_000_000.0);
        row("charge_counter", charge.round());
        row("capacity", 80.0);
        row("status", 2.0);
    }
}

pub(super) fn one_battery(gauge: &Gauge, seconds: f64, amperes: &dyn Fn(f64) -> f64) -> Telemetry {
    let mut telemetry = Telemetry::default();
    battery(&mut telemetry, "battery", gauge, seconds, amperes);
    telemetry
}

pub(super) fn measured(telemetry: &Telemetry, from: f64, to: f64) -> Result<Measured, Refusal> {
    method::power(telemetry, None, Asked::default(), Window::load(from, to), None).power
}

/// 0.5 A and 0.2 A of a sine with 10 s: over whole periods the mean is 0.5 A, 2.0 W.
pub(super) fn sine(t: f64) -> f64 {
    0.5 + 0.2 * (2.0 * std::f64::consts::PI * t / 10.0).sin()
}

#[track_caller]
pub(super) fn near(value: f64, truth: f64, error: f64) {
    assert!((value - truth).abs() <= error, "{value} is not {truth} within {error}");
}
