//! From the events of a QNN profile to [`NpuProfile`].

use bench_backend_api::{NpuProfile, text::to_ms};

/// The method of figures that are in the profile once for each execution.
const EACH: &str = "sums over the executions of the profile";
/// The method of figures that the tool averages.
const MEAN: &str = "means over the executions, as the viewer prints them, times their number";

/// Executions, each a list of events: name, value, unit. `None` when they say nothing of the NPU.
pub fn of_executions<'a, E: Iterator<Item = (&'a str, f64, &'a str)>>(executions: impl Iterator<Item = E>) -> Option<NpuProfile> {
    let mut profile = NpuProfile { source: "qnn-profile".to_owned(), method: EACH.to_owned(), ..NpuProfile::default() };
    for events in executions {
        let known: Vec<(String, f64)> =
            events.filter_map(|(name, value, unit)| Some((name.to_ascii_lowercase(), plain(value, unit)?))).collect();
        profile.add(1, |name| known.iter().find(|(key, _)| key == name).map(|(_, value)| *value));
    }
    (!profile.is_empty()).then_some(profile)
}

/// The same for means: of how many executions, the caller may know ([`NpuProfile::times`]).
pub fn of_mean<'a>(events: impl Iterator<Item = (&'a str, f64, &'a str)>) -> Option<NpuProfile> {
    of_executions(std::iter::once(events)).map(|profile| NpuProfile { method: MEAN.to_owned(), ..profile })
}

/// A time in us, or a count; cycles are neither.
fn plain(value: f64, unit: &str) -> Option<f64> {
    match unit.to_ascii_lowercase().as_str() {
        "count" => Some(value),
        "cycles" | "cycle" => None,
        unit => to_ms(value, unit).map(|ms| ms * 1e3),
    }
}
