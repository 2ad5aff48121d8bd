//! From a battery's raw readings to power, or to the reason why not.

use super::{
    CurrentUnit, Point, Refusal, Telemetry,
    integral::{Watts, changes},
    telemetry::{Supply, held, within},
    units,
};
use crate::stats;

/// The kernel's number of `Discharging` (`POWER_SUPPLY_STATUS_DISCHARGING`).
const DISCHARGING: f64 = 2.0;
/// Least share of polls in which two supplies show the same number before they count as one gauge with two names (`battery` and `bms`).
const SAME_GAUGE: f64 = 0.8;
/// Largest share of readings with the other sign in a battery that discharges.
const OTHER_SIGN: f64 = 0.05;

/// The batteries' power in a window, and what it took to know it.
#[derive(Debug, Clone, PartialEq)]
pub struct BatteryPower {
    /// The power, all batteries together.
    pub watts: Watts,
    /// Units and how they are known, for people.
    pub unit: String,
    /// The current's unit, for a window in which it can't be told by size.
    pub current: Option<CurrentUnit>,
    /// Joules that one percent of the charge holds, and the method.
    pub percent_j: Option<(f64, &'static str)>,
}

const WORDS: [&str; 5] = ["unknown", "charging", "discharging", "not-charging", "full"];

#[expect(clippy::float_cmp, reason = "codes are whole numbers")]
fn is_word(code: f64, word: usize) -> bool {
    code == word as f64
}

/// The charge states of a window in order, joined by `>`; `None` when no battery says one.
pub fn charge_state(telemetry: &Telemetry, window: (f64, f64)) -> Option<String> {
    let mut words: Vec<&str> = Vec::new();
    let batteries = telemetry.batteries.values().filter(|s| !s.status.is_empty());
    // The battery that says most: of two that take turns, the one that is used.
    let shown = batteries.max_by_key(|s| within(&s.status, window).iter().filter(|p| is_word(p.value, 2)).count())?;
    for p in within(&shown.status, window) {
        let word = (0..WORDS.len()).find(|w| is_word(p.value, *w)).map_or("unknown", |w| WORDS[w]);
        if words.last() != Some(&word) {
            words.push(word);
        }
    }
    (!words.is_empty()).then(|| words.join(">"))
}

/// Why a window was not on battery alone; `Ok` also for a device without a battery, which hangs on its supply.
pub fn on_battery(telemetry: &Telemetry, window: (f64, f64)) -> Result<(), Refusal> {
    for (name, online) in &telemetry.online {
        if within(online, window).iter().any(|p| p.value != 0.0) {
            return Err(Refusal::External(format!("{name} is online")));
        }
    }
    let mut discharging = telemetry.batteries.is_empty();
    for (name, supply) in &telemetry.batteries {
        let states = within(&supply.status, window);
        if states.is_empty() {
            if supply.has_power() && telemetry.batteries.len() == 1 {
                return Err(Refusal::External(format!("{name} does not say whether it discharges")));
            }
            continue;
        }
        let all = states.iter().all(|p| is_word(p.value, 2));
        // Of two batteries that take turns one is idle.
        let idle = states.iter().all(|p| is_word(p.value, 0) || is_word(p.value, 3))
            && within(&supply.current, window).iter().all(|p| p.value == 0.0);
        if !(all || idle && telemetry.batteries.len() > 1) {
            let word = states.iter().find(|p| !is_word(p.value, DISCHARGING as usize)).map_or(0, |p| p.value as usize);
            return Err(Refusal::External(format!("{name} is {}", WORDS.get(word).unwrap_or(&"unknown"))));
        }
        discharging |= all;
    }
    if discharging { Ok(()) } else { Err(Refusal::External("no battery is discharging".to_owned())) }
}

/// The power of every battery together. `measured`: the user says that what the gauge reads is the supply, whatever its direction.
///
/// # Errors
/// Everything that makes the readings no power: see [`Refusal`].
pub fn power(telemetry: &Telemetry, window: (f64, f64), measured: bool, hint: Option<CurrentUnit>) -> Result<BatteryPower, Refusal> {
    if !measured {
        on_battery(telemetry, window)?;
    }
    let supplies = gauges(telemetry, window);
    if supplies.is_empty() {
        return Err(Refusal::Missing("no battery gives a current".to_owned()));
    }
    let mut parts = Vec::new();
    for (name, supply) in supplies {
        if supply.current.iter().chain(&supply.power).all(|p| p.value == 0.0) && telemetry.batteries.len() > 1 {
            continue;
        }
        parts.push(one(name, supply, window, measured, hint)?);
    }
    let Some(mut whole) = parts.pop() else { return Err(Refusal::Missing("every battery's current is 0".to_owned())) };
    for part in parts {
        whole.watts = sum(&whole.watts, &part.watts);
        whole.percent_j = match (whole.percent_j, part.percent_j) {
            (Some((a, method)), Some((b, _))) => Some((a + b, method)),
            _ => None,
        };
        if whole.unit != part.unit {
            whole.unit = format!("{}, {}", part.unit, whole.unit);
            whole.current = None;
        }
    }
    Ok(whole)
}

/// The supplies with power, each gauge once.
fn gauges(telemetry: &Telemetry, window: (f64, f64)) -> Vec<(&str, &Supply)> {
    let mut all: Vec<(&str, &Supply)> = telemetry.batteries.iter().filter(|(_, s)| s.has_power()).map(|(n, s)| (n.as_str(), s)).collect();
    // Phones call the one that counts so.
    all.sort_by_key(|(name, _)| (*name != "battery", *name));
    let mut kept: Vec<(&str, &Supply)> = Vec::new();
    for (name, supply) in all {
        let same = |other: &Supply| {
            let readings = within(&supply.current, window);
            let equal =
                readings.iter().filter(|p| held(&other.current, p.t_s).is_some_and(|v| (v.abs() - p.value.abs()).abs() < f64::EPSILON));
            !readings.is_empty() && equal.count() as f64 >= SAME_GAUGE * readings.len() as f64
        };
        let idle = supply.current.iter().all(|p| p.value == 0.0);
        if idle || !kept.iter().any(|(_, other)| same(other)) {
            kept.push((name, supply));
        }
    }
    kept
}

fn one(name: &str, supply: &Supply, window: (f64, f64), measured: bool, hint: Option<CurrentUnit>) -> Result<BatteryPower, Refusal> {
    if supply.current.is_empty() {
        return own_power(supply);
    }
    let readings = within(&supply.current, window);
    let negative = readings.iter().filter(|p| p.value < 0.0).count();
    let positive = readings.iter().filter(|p| p.value > 0.0).count();
    if !measured && negative.min(positive) as f64 > OTHER_SIGN * readings.len() as f64 {
        return Err(Refusal::Contradiction(format!(
            "the current of {name} has both signs while discharging ({negative} readings below 0, {positive} above): something else supplies power at times"
        )));
    }
    let voltage = units::voltage(&supply.voltage)?;
    let magnitude: Vec<Point> = supply.current.iter().map(|p| Point { value: p.value.abs(), ..*p }).collect();
    let raw = Watts { polls: magnitude.clone(), fresh: changes(&supply.current), ..Watts::default() };
    let mean = |w: (f64, f64)| raw.energy(w).ok().map(|e| e.avg_w);
    let slope = (!measured).then(|| units::slope(&supply.charge)).flatten();
    let (current, how) = match hint {
        Some(unit) => (unit, "this battery's windows under load"),
        None => units::current(&supply.current, slope, mean)?,
    };
    let volts = |t: f64| nearest(&supply.voltage, t).map(|v| v * voltage.volts());
    let polls: Vec<Point> =
        magnitude.iter().filter_map(|p| Some(Point { t_s: p.t_s, value: p.value * current.amperes() * volts(p.t_s)? })).collect();
    let values: Vec<f64> = within(&supply.voltage, window).iter().map(|p| p.value * voltage.volts()).collect();
    let typical = stats::median(&values).or_else(|| volts(window.0));
    let resolution_w = typical.map_or(0.0, |v| v * current.amperes() * step(&supply.current));
    let watts = Watts { polls, fresh: raw.fresh, resolution_w, ..Watts::default() };
    let unit = format!("current {} by {how}; voltage {} by size", current.as_str(), voltage.as_str());
    Ok(BatteryPower { watts, unit, current: Some(current), percent_j: typical.and_then(|v| percent(supply, window, v)) })
}

/// A driver that gives its power alone: uW by the ABI.
fn own_power(supply: &Supply) -> Result<BatteryPower, Refusal> {
    let peak = supply.power.iter().map(|p| p.value.abs()).fold(0.0, f64::max);
    // Whatever the device is, it draws between 20 mW and 2 kW under load; below 20000 the number is in mW.
    let (factor, unit) = if peak < LEAST_MICROWATTS { (1e-3, "mW") } else { (1e-6, "uW") };
    if peak == 0.0 {
        return Err(Refusal::Implausible("a power of 0 all the time: the gauge gives none".to_owned()));
    }
    let fresh = changes(&supply.power);
    let polls = supply.power.iter().map(|p| Point { t_s: p.t_s, value: p.value.abs() * factor }).collect();
    let watts = Watts { polls, fresh, resolution_w: factor * step(&supply.power), ..Watts::default() };
    Ok(BatteryPower { watts, unit: format!("power {unit} by size"), current: None, percent_j: None })
}

const LEAST_MICROWATTS: f64 = 20_000.0;

/// The value read nearest to a time.
fn nearest(points: &[Point], t_s: f64) -> Option<f64> {
    let after = points.partition_point(|p| p.t_s < t_s);
    let near = [after.checked_sub(1).and_then(|i| points.get(i)), points.get(after)];
    near.into_iter().flatten().min_by(|a, b| (a.t_s - t_s).abs().total_cmp(&(b.t_s - t_s).abs())).map(|p| p.value)
}

/// The step of a gauge's whole numbers: their greatest common divisor. 0 for numbers that are none, or that are too few to tell.
fn step(readings: &[Point]) -> f64 {
    let mut divisor: u64 = 0;
    let mut seen = 0;
    for (p, fresh) in readings.iter().zip(changes(readings)) {
        if p.value.fract() != 0.0 || p.value.abs() > 1e15 {
            return 0.0;
        }
        seen += usize::from(fresh);
        let (mut a, mut b) = (divisor, p.value.abs() as u64);
        while b != 0 {
            (a, b) = (b, a % b);
        }
        divisor = a;
    }
    if seen < 8 { 0.0 } else { divisor as f64 }
}

/// Joules of one percent: the charge that the counter has left over the percents that are left, at the window's voltage.
fn percent(supply: &Supply, (from, _): (f64, f64), volts: f64) -> Option<(f64, &'static str)> {
    let factor = units::charge_factor(&supply.charge)?;
    let left = held(&supply.charge, from)? * factor;
    let level = held(&supply.capacity, from).filter(|l| (1.0..=100.0).contains(l))?;
    let microampere_hours = left / level;
    // A counter that is no rest of the charge would say anything: 0.5 to 40 Ah are batteries.
    (5e3..=4e5).contains(&microampere_hours).then_some((microampere_hours * 3.6e-3 * volts, "charge_counter / capacity"))
}

/// Two batteries that give power at once: the sum at every reading of either, fresh when either is.
fn sum(a: &Watts, b: &Watts) -> Watts {
    let mut all: Vec<(Point, bool, &Watts)> = Vec::new();
    for (own, other) in [(a, b), (b, a)] {
        all.extend(own.polls.iter().zip(&own.fresh).map(|(p, fresh)| (*p, *fresh, other)));
    }
    all.sort_by(|x, y| x.0.t_s.total_cmp(&y.0.t_s));
    let (mut polls, mut fresh): (Vec<Point>, Vec<bool>) = (Vec::new(), Vec::new());
    for (p, new, other) in all {
        let Some(rest) = held(&other.polls, p.t_s) else { continue };
        // Both are read in one round: one point for both.
        if let (Some(last), Some(flag)) = (polls.last_mut(), fresh.last_mut())
            && p.t_s - last.t_s < ROUND_S
        {
            (last.value, *flag) = (p.value + rest, *flag || new);
            continue;
        }
        polls.push(Point { t_s: p.t_s, value: p.value + rest });
        fresh.push(new);
    }
    Watts { polls, fresh, resolution_w: a.resolution_w + b.resolution_w, ..Watts::default() }
}

/// Readings nearer than this belong to one round of a sampler that makes at most 50 a second, s.
const ROUND_S: f64 = 0.01;
