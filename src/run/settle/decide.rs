//! Whether a device is in the state that a scenario asks for, and whether it is worth waiting. Pure: looks in, decision out.

use super::state::State;
use crate::{
    analysis::series::{TEMPERATURE_JUMP_C, despike},
    scenario::{Band, Settle},
};

/// One look at the device.
#[derive(Debug, Clone, PartialEq)]
pub struct Look {
    /// Seconds since the wait began.
    pub at_s: f64,
    /// What was seen.
    pub state: State,
}

/// What is missing.
#[derive(Debug, Clone, PartialEq)]
pub struct Lack {
    /// What: a zone of the scenario, `battery`, `charging`, `screen`, `memory`, `cpu`, `contention`.
    pub what: String,
    /// In words, with the value and what was wanted.
    pub words: String,
    /// It can't be seen at all.
    pub unseen: bool,
}

/// What to do.
#[derive(Debug, Clone, PartialEq)]
pub enum Decision {
    /// The device is as it should be.
    Ready,
    /// It is not yet.
    Wait(Vec<Lack>),
    /// It is not, and no more is waited: why.
    GiveUp(Vec<Lack>, String),
}

/// What can't be seen in so many looks is not told by this device.
const BLIND: usize = 3;
/// A trend is looked for in the last so many seconds: skin and battery move with time constants of minutes, and some zones show whole degrees.
const TREND_S: f64 = 120.0;
/// Looks that a trend needs at least.
const TREND_LOOKS: usize = 9;
/// Degrees Celsius that a change has to have to be no noise.
const NOISE_C: f64 = 0.3;
/// A limit has to be outside of the band by so many degrees Celsius.
const MARGIN_C: f64 = 0.5;

/// Decides after the last of some looks, which are in the order of time.
pub fn decide(wanted: &Settle, looks: &[Look]) -> Decision {
    let Some(last) = looks.last() else { return Decision::Wait(Vec::new()) };
    let lacks = lacks(wanted, &last.state);
    let limit_s = wanted.timeout_ms as f64 / 1e3;
    if lacks.is_empty() {
        let sure = last.at_s >= limit_s || !wanted.bands.iter().any(|band| apart(&band.zone, looks, 2));
        return if sure { Decision::Ready } else { Decision::Wait(lacks) };
    }
    if let Some(why) = hopeless(wanted, looks, &lacks) {
        return Decision::GiveUp(lacks, why);
    }
    if last.at_s >= limit_s && !doubtful(looks, &lacks) {
        return Decision::GiveUp(lacks, format!("not within {limit_s:.0} s"));
    }
    Decision::Wait(lacks)
}

/// Whether a temperature is far from that of each of so many looks before it, of those that have one: it may be a single failed reading.
fn apart(zone: &str, looks: &[Look], before: usize) -> bool {
    let Some((last, all)) = looks.split_last() else { return false };
    let read = |look: &Look| look.state.temperature(zone);
    let near = all.iter().rev().take(before).filter_map(read);
    let mut jumps =
        near.zip(std::iter::repeat(read(last))).filter_map(|(then, now)| Some((now? - then).abs() > TEMPERATURE_JUMP_C)).peekable();
    jumps.peek().is_some() && jumps.all(|far| far)
}

/// Whether nothing is missing but temperatures of which one reading alone is known: the look before had far others, or there was none. Sensors
/// have single failed readings (140 C once), and no block is marked for one. The next look tells.
fn doubtful(looks: &[Look], lacks: &[Lack]) -> bool {
    let Some((last, before)) = looks.split_last() else { return false };
    lacks.iter().all(|lack| last.state.temperature(&lack.what).is_some() && (before.is_empty() || apart(&lack.what, looks, 1)))
}

/// What of the wanted state is not there.
fn lacks(wanted: &Settle, state: &State) -> Vec<Lack> {
    let mut lacks = Vec::new();
    let mut lack = |what: &str, unseen: bool, words: String| lacks.push(Lack { what: what.to_owned(), words, unseen });
    for band in &wanted.bands {
        let Band { zone, low_c, high_c } = band;
        match state.temperature(zone) {
            None => lack(zone, true, format!("{zone}: no such temperature can be read")),
            Some(c) if c > *high_c => lack(zone, false, format!("{zone} {c:.1} C, wanted {low_c} to {high_c} C")),
            Some(c) if c < *low_c => lack(zone, false, format!("{zone} {c:.1} C, colder than the wanted {low_c} to {high_c} C")),
            Some(_) => {}
        }
    }
    if let Some(least) = wanted.battery_pct {
        match state.battery_pct {
            None => lack("battery", true, "the battery's charge can't be read".to_owned()),
            Some(is) if is < least => lack("battery", false, format!("battery {is:.0} %, wanted {least:.0} % and more")),
            Some(_) => {}
        }
    }
    for (what, asked, is, words) in [
        ("charging", wanted.charging, state.charging, ["is charging", "is not charging"]),
        ("screen", wanted.screen, state.screen, ["the screen is on", "the screen is off"]),
    ] {
        match (asked, is) {
            (Some(_), None) => lack(what, true, format!("{what}: the device does not tell")),
            (Some(asked), Some(is)) if asked != is => lack(what, false, words[usize::from(!is)].to_owned()),
            _ => {}
        }
    }
    if let Some(least) = wanted.free_mb {
        match state.free_mb {
            None => lack("memory", true, "available memory can't be read".to_owned()),
            Some(is) if is < least => lack("memory", false, format!("{is:.0} MB of memory available, wanted {least:.0} MB and more")),
            Some(_) => {}
        }
    }
    if let Some(most) = wanted.quiet_cpu_pct {
        match state.cpu_pct {
            None => lack("cpu", true, "the CPU's load can't be read".to_owned()),
            Some(is) if is > most => lack("cpu", false, format!("CPU {is:.0} % busy, wanted {most:.0} % at most")),
            Some(_) => {}
        }
    }
    // Where nobody can be seen there is nothing to wait for: rule R9 asks for what is visible.
    if let Some(users) = state.contenders.as_ref().filter(|u| wanted.contention && !u.is_empty()) {
        lack("contention", false, format!("in use by {}", users.join(", ")));
    }
    lacks
}

/// Why waiting is of no use.
fn hopeless(wanted: &Settle, looks: &[Look], lacks: &[Lack]) -> Option<String> {
    if looks.len() >= BLIND && lacks.iter().all(|l| l.unseen) {
        return Some("the device does not tell it".to_owned());
    }
    let state = &looks.last()?.state;
    if lacks.iter().any(|l| l.what == "battery" && !l.unseen) && state.charging == Some(false) {
        return Some("the battery is not charging".to_owned());
    }
    wanted.bands.iter().filter(|band| lacks.iter().any(|l| l.what == band.zone && !l.unseen)).find_map(|band| {
        let series: Vec<(f64, f64)> = looks.iter().filter_map(|look| Some((look.at_s, look.state.temperature(&band.zone)?))).collect();
        unreachable(band, &confirmed(&series))
    })
}

/// A series without single readings of 140 C, which would be a trend of their own; the last one counts when the next is like it.
fn confirmed(series: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let mut kept = despike(series, TEMPERATURE_JUMP_C).kept;
    if let [.., (_, before), (_, last)] = kept[..]
        && (last - before).abs() > TEMPERATURE_JUMP_C
    {
        kept.pop();
    }
    kept
}

/// Whether a temperature that is outside of its band goes there; why not, if it does not.
///
/// A body left alone goes to its surroundings' temperature exponentially (Newton's law of cooling). The means of three equal stretches of such a
/// curve are again of that form, so that its limit is Aitken's: (m0 m2 - m1^2) / (m0 + m2 - 2 m1).
fn unreachable(band: &Band, series: &[(f64, f64)]) -> Option<String> {
    let end = series.last()?.0;
    let recent: Vec<(f64, f64)> = series.iter().copied().filter(|(t, _)| *t > end - TREND_S).collect();
    let begin = recent.first()?.0;
    // The stretch must be nearly full, or a slow start is taken for a stop.
    if recent.len() < TREND_LOOKS || end - begin < TREND_S * 0.8 {
        return None;
    }
    let third = (end - begin) / 3.0;
    let mean = |i: usize| {
        let (from, to) = (begin + third * i as f64, begin + third * (i + 1) as f64);
        let part: Vec<f64> = recent.iter().filter(|(t, _)| *t >= from && (*t < to || i == 2)).map(|(_, c)| *c).collect();
        (!part.is_empty()).then(|| part.iter().sum::<f64>() / part.len() as f64)
    };
    let (m0, m1, m2) = (mean(0)?, mean(1)?, mean(2)?);
    let zone = &band.zone;
    let hot = m2 > band.high_c;
    // Towards the band is positive.
    let toward = if hot { m0 - m2 } else { m2 - m0 };
    if toward < -NOISE_C {
        return Some(format!("{zone} moves away from its band"));
    }
    if toward < NOISE_C {
        return Some(format!("{zone} stays at {m2:.1} C"));
    }
    let (first, second) = (m1 - m0, m2 - m1);
    // Only a curve that flattens, by more than noise, has a limit that can be told.
    if first.abs() < NOISE_C || second / first >= 0.95 || second / first <= 0.0 {
        return None;
    }
    let limit = (m0 * m2 - m1 * m1) / (m0 + m2 - 2.0 * m1);
    let short = if hot { limit > band.high_c + MARGIN_C } else { limit < band.low_c - MARGIN_C };
    short.then(|| format!("{zone} goes to {limit:.1} C and no further: the ambient is too {}", if hot { "warm" } else { "cold" }))
}

#[cfg(test)]
mod tests;
