//! Ways to power: the battery's gauge, rails of hwmon, an external meter. One window, one method, and its name.

use super::{
    CurrentUnit, Energy, Point, Refusal, Telemetry,
    battery::{self, charge_state, on_battery},
    integral::Watts,
    meter::Clock,
    telemetry::within,
};

/// What the user asks for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Method {
    /// The meter if there is one, else the battery if there is one, else hwmon.
    #[default]
    Auto,
    /// Current x voltage of the battery.
    Battery,
    /// Rails of a board.
    Hwmon,
    /// An external instrument.
    Meter,
}

/// What the user says about power.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Asked<'a> {
    /// The way.
    pub method: Method,
    /// What is read is the device's supply, so that external power is no reason to refuse it.
    pub measured: bool,
    /// The rails to add, `<chip>/<label>`; empty when the one that is the whole board's is to be found.
    pub rails: &'a [String],
}

/// An external instrument's readings, and its clock.
#[derive(Debug, Clone, PartialEq)]
pub struct Meter {
    /// W over the meter's own seconds.
    pub samples: Vec<Point>,
    /// Where its clock stands, or why that is not known.
    pub clock: Result<Clock, super::MeterError>,
}

/// A window in seconds of the device's monotonic clock, and the least length that a gauge needs apart from its updates.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Window {
    /// Begin.
    pub from_s: f64,
    /// End.
    pub to_s: f64,
    /// Least seconds with a gauge.
    pub floor_s: f64,
    /// Updates needed.
    pub updates: f64,
}
impl Window {
    /// A window under load: 120 s and 20 updates (rule R15).
    pub const fn load(from_s: f64, to_s: f64) -> Self {
        Self { from_s, to_s, floor_s: 120.0, updates: 20.0 }
    }
}

/// The shortest window for a gauge with this period: max(120 s, 20 periods) (rule R15).
pub fn shortest_window_s(period_s: f64) -> f64 {
    (20.0 * period_s).max(120.0)
}

/// Power of a window by some method.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// `battery`, `hwmon:<chip>` or `meter`.
    pub method: String,
    /// The energy.
    pub energy: Energy,
    /// The readings.
    pub watts: Watts,
    /// Units of a battery and how they are known.
    pub unit: Option<String>,
    /// Unit of its current.
    pub current: Option<CurrentUnit>,
    /// Joules of one percent of the battery, and the method.
    pub percent_j: Option<(f64, &'static str)>,
}

/// What is known of a window, whether it has a figure or not.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// The charge states in it.
    pub charge_state: Option<String>,
    /// The power, or why there is none.
    pub power: Result<Measured, Refusal>,
}

/// The method's name in tables.
pub(super) const METER: &str = "meter";
/// Boot time may grow by this many ms against monotonic time before a window counts as slept in (rule R17).
const SUSPENDED_MS: f64 = 100.0;

/// The power of a window. `hint` is the current's unit where other windows of the same battery told it.
pub fn power(telemetry: &Telemetry, meter: Option<&Meter>, asked: Asked<'_>, window: Window, hint: Option<CurrentUnit>) -> Report {
    let ends = (window.from_s, window.to_s);
    Report { charge_state: charge_state(telemetry, ends), power: measured(telemetry, meter, asked, window, hint) }
}

fn measured(
    telemetry: &Telemetry,
    meter: Option<&Meter>,
    asked: Asked<'_>,
    window: Window,
    hint: Option<CurrentUnit>,
) -> Result<Measured, Refusal> {
    let ends = (window.from_s, window.to_s);
    slept(telemetry, ends)?;
    let has_battery = telemetry.batteries.values().any(super::Supply::has_power);
    let method = match asked.method {
        Method::Auto if meter.is_some() => Method::Meter,
        Method::Auto if has_battery => Method::Battery,
        Method::Auto if telemetry.rails.is_empty() => {
            return Err(Refusal::Missing("no battery gives a current, and no rail of a board (hwmon) its power".to_owned()));
        }
        Method::Auto => Method::Hwmon,
        named => named,
    };
    // A gauge or a rail beside a charger does not see what the charger gives; a board without a battery hangs on its supply.
    if !asked.measured && has_battery && method != Method::Battery {
        on_battery(telemetry, ends)?;
    }
    match method {
        Method::Meter => {
            let meter = meter.ok_or_else(|| Refusal::Missing("no external meter: name it in [power] meter".to_owned()))?;
            let clock = meter.clock.clone()?;
            let polls: Vec<Point> = meter.samples.iter().map(|p| Point { t_s: clock.device_s(p.t_s), value: p.value }).collect();
            let watts = Watts::sampled(polls, clock.error_s(ends.0).max(clock.error_s(ends.1)));
            finish(METER.to_owned(), watts, Window { floor_s: 0.0, ..window }, None)
        }
        Method::Hwmon => {
            let (chip, watts) = rails(telemetry, asked.rails, ends)?;
            finish(format!("hwmon:{chip}"), watts, Window { floor_s: 0.0, ..window }, None)
        }
        Method::Battery | Method::Auto => {
            let b = battery::power(telemetry, ends, asked.measured, hint)?;
            let m = finish("battery".to_owned(), b.watts, window, Some(b.unit))?;
            Ok(Measured { current: b.current, percent_j: b.percent_j, ..m })
        }
    }
}

/// The distinct samples of a launch's power over time, in ns of the device's monotonic clock and W, by the battery or by rails: for a timeline.
///
/// # Errors
/// External power, suspend, units that contradict: what makes the readings no power. A meter's are not the device's to tell.
pub fn series(telemetry: &Telemetry, asked: Asked<'_>, ends: (f64, f64)) -> Result<Vec<(u64, f64)>, Refusal> {
    let watts = own(telemetry, asked, ends)?;
    let fresh = watts.polls.iter().zip(&watts.fresh).filter(|(_, fresh)| **fresh).map(|(p, _)| *p);
    Ok(within_ns(fresh, ends))
}

/// The same with the repeats, which tell that a value still stood: for means over windows of whatever length. Telemetry that was thinned out (changes
/// alone) is good enough for it.
///
/// # Errors
/// As [`series`].
pub fn standing(telemetry: &Telemetry, asked: Asked<'_>, ends: (f64, f64)) -> Result<Vec<(u64, f64)>, Refusal> {
    Ok(within_ns(own(telemetry, asked, ends)?.polls.into_iter(), ends))
}

fn within_ns(points: impl Iterator<Item = Point>, (from, to): (f64, f64)) -> Vec<(u64, f64)> {
    points.filter(|p| p.t_s >= from && p.t_s <= to).map(|p| ((p.t_s * 1e9).round() as u64, p.value)).collect()
}

/// What the device itself tells of its power.
fn own(telemetry: &Telemetry, asked: Asked<'_>, ends: (f64, f64)) -> Result<Watts, Refusal> {
    if asked.method == Method::Meter {
        return Err(Refusal::Missing("an external meter's file is read when the run has ended".to_owned()));
    }
    slept(telemetry, ends)?;
    let has_battery = telemetry.batteries.values().any(super::Supply::has_power);
    let board = asked.method == Method::Hwmon || asked.method == Method::Auto && !has_battery && !telemetry.rails.is_empty();
    if board && has_battery && !asked.measured {
        on_battery(telemetry, ends)?;
    }
    Ok(if board { rails(telemetry, asked.rails, ends)?.1 } else { battery::power(telemetry, ends, asked.measured, None)?.watts })
}

fn finish(method: String, watts: Watts, window: Window, unit: Option<String>) -> Result<Measured, Refusal> {
    let (from, to) = (window.from_s, window.to_s);
    let window_s = to - from;
    let period_s = watts.period_s().unwrap_or(0.0);
    let needed_s = window.floor_s.max(window.updates * period_s);
    let energy = match watts.energy((from, to)) {
        // Readings that end within the window also tell little of their period: a longer window would not help.
        Err(e @ Refusal::Uncovered { .. }) => return Err(e),
        // What is too short is said as such, even where the gauge did not change once in it.
        _ if window_s < needed_s => return Err(Refusal::Short { window_s, needed_s, floor_s: window.floor_s, period_s }),
        energy => energy?,
    };
    Ok(Measured { method, energy, watts, unit, current: None, percent_j: None })
}

/// Rule R17: boot time runs on while the device sleeps, monotonic time does not.
fn slept(telemetry: &Telemetry, ends: (f64, f64)) -> Result<(), Refusal> {
    let after = telemetry.suspended_ms.iter().find(|p| p.t_s > ends.1);
    let readings: Vec<f64> = within(&telemetry.suspended_ms, ends).iter().chain(after).map(|p| p.value).collect();
    let ms = readings.last().zip(readings.first()).map_or(0.0, |(b, a)| b - a);
    let jump = readings.windows(2).map(|w| w[1] - w[0]).fold(ms, |most, step| if step.abs() > most.abs() { step } else { most });
    if jump.abs() > SUSPENDED_MS { Err(Refusal::Suspended { ms: jump }) } else { Ok(()) }
}

/// Words in the label of a rail that is the whole board's.
const WHOLE: [&str; 6] = ["system", "total", "vin", "vdd_in", "vsys", "input"];

/// The rails that are the device's, added; the others are parts of them.
fn rails(telemetry: &Telemetry, asked: &[String], ends: (f64, f64)) -> Result<(String, Watts), Refusal> {
    // The kernel shows every battery as a hwmon chip too.
    let board = |name: &&String| !telemetry.batteries.contains_key(chip(name));
    let names: Vec<&String> = telemetry.rails.keys().filter(board).collect();
    let known = || names.iter().map(|n| n.as_str()).collect::<Vec<_>>().join(", ");
    let chosen: Vec<&String> = if asked.is_empty() {
        let whole: Vec<&String> = names.iter().copied().filter(|n| WHOLE.iter().any(|w| n.to_ascii_lowercase().contains(w))).collect();
        match (names.len(), whole.len()) {
            (0, _) => return Err(Refusal::Missing("no power rail of a board (hwmon)".to_owned())),
            (1, _) => names.clone(),
            (_, 1) => whole,
            _ => return Err(Refusal::Missing(format!("several power rails, name those of the whole board in [power] rails: {}", known()))),
        }
    } else {
        for rail in asked {
            if !telemetry.rails.contains_key(rail) {
                return Err(Refusal::Missing(format!("no power rail {rail}; there are: {}", known())));
            }
        }
        asked.iter().collect()
    };
    let mut chips: Vec<&str> = chosen.iter().map(|n| chip(n)).collect();
    chips.dedup();
    let series: Vec<&Vec<Point>> = chosen.iter().filter_map(|n| telemetry.rails.get(*n)).collect();
    let Some(first) = series.first().filter(|s| !within(s, ends).is_empty()) else {
        return Err(Refusal::Missing("the power rail gave no reading in the window".to_owned()));
    };
    let at = |t: f64| series.iter().map(|s| super::telemetry::held(s, t)).sum::<Option<f64>>();
    let polls = first.iter().filter_map(|p| Some(Point { t_s: p.t_s, value: at(p.t_s)? })).collect();
    Ok((chips.join("+"), Watts::polled(polls)))
}

fn chip(rail: &str) -> &str {
    rail.split_once('/').map_or(rail, |(chip, _)| chip)
}
