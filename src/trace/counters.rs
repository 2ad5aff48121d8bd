//! What the agent sampled, row by row: counters, and the moments at which the device was held back.

use std::{
    collections::BTreeMap,
    io::{self, Write},
};

use super::{launch::mark, spans::ns, writer::Writer};
use crate::analysis::power::{Asked, Method, Supply, Telemetry, standing};

/// Names that are followed for changes, whatever the device makes up.
const MOST_NAMES: usize = 4096;

/// One row.
#[derive(Debug, Clone, Copy)]
pub struct Row<'a> {
    /// ns.
    pub at: i64,
    /// Source of the agent.
    pub source: &'a str,
    /// Name within it.
    pub name: &'a str,
    /// Value.
    pub value: f64,
    /// Its unit.
    pub unit: &'a str,
}

/// The rows of one launch. Kept are the last value of those that tell of throttling, and the readings of batteries and rails.
#[derive(Debug, Default)]
pub struct Counters {
    last: BTreeMap<String, f64>,
    power: Telemetry,
}

impl Counters {
    /// Draws a row.
    pub fn take<W: Write>(&mut self, writer: &mut Writer<W>, pid: u32, row: Row<'_>) -> io::Result<()> {
        if !row.value.is_finite() {
            return Ok(());
        }
        writer.counter(pid, &format!("{} {}", row.source, row.name), row.unit, row.at, row.value)?;
        self.power.push(row.at.max(0).unsigned_abs(), row.source, row.name, row.value);
        match self.change(row) {
            Some(words) => mark(writer, pid, &words, row.at),
            None => Ok(()),
        }
    }

    /// Draws what follows from all of them: the whole device's draw by its battery or else its rails, as the page draws it. Nothing on external power,
    /// and nothing of a meter, whose readings are not among them.
    pub fn end<W: Write>(mut self, writer: &mut Writer<W>, pid: u32) -> io::Result<()> {
        self.power.sort();
        let asked = Asked { method: Method::Auto, measured: false, rails: &[] };
        let watts = standing(&self.power, asked, (f64::NEG_INFINITY, f64::INFINITY)).unwrap_or_default();
        let by = if self.power.batteries.values().any(Supply::has_power) { "battery" } else { "rails" };
        for (t_ns, value) in watts {
            writer.counter(pid, &format!("power of the device (derived: {by})"), "W", ns(t_ns), value)?;
        }
        Ok(())
    }

    /// A cooling device that begins, changes or ends its work, a clock whose cap moves, a thermal service with another word.
    fn change(&mut self, row: Row<'_>) -> Option<String> {
        let (what, at_rest) = match row.source {
            "cooling" => (format!("cooling device {}: state", row.name), Some(0.0)),
            "cpufreq" => (format!("cap of {} in MHz:", row.name.strip_suffix("_cap")?), None),
            "thermalservice" => ("status of the thermal service:".to_owned(), Some(0.0)),
            _ => return None,
        };
        if self.last.len() >= MOST_NAMES && !self.last.contains_key(&what) {
            return None;
        }
        match self.last.insert(what.clone(), row.value) {
            Some(before) if before.total_cmp(&row.value).is_ne() => Some(format!("{what} {before} to {}", row.value)),
            // It was so already when the launch began.
            None if at_rest.is_some_and(|rest| row.value > rest) => Some(format!("{what} {} from the start", row.value)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_holds_a_device_back_is_marked() {
        let mut counters = Counters::default();
        let mut change = |source: &str, name: &str, value: f64| counters.change(Row { at: 0, source, name, value, unit: "" });
        assert_eq!(change("cooling", "cdsp", 0.0), None);
        assert_eq!(change("cooling", "cdsp", 2.0).unwrap(), "cooling device cdsp: state 0 to 2");
        assert_eq!(change("cooling", "cdsp", 2.0), None);
        assert_eq!(change("cooling", "gpu", 1.0).unwrap(), "cooling device gpu: state 1 from the start");
        // The first cap says nothing: what the cluster can do is not in this row.
        assert_eq!(change("cpufreq", "policy7_cap", 3302.4), None);
        assert_eq!(change("cpufreq", "policy7_cap", 2956.8).unwrap(), "cap of policy7 in MHz: 3302.4 to 2956.8");
        assert_eq!(change("cpufreq", "policy7", 1000.0), None);
        assert_eq!(change("thermalservice", "status", 0.0), None);
        assert_eq!(change("thermalservice", "status", 3.0).unwrap(), "status of the thermal service: 0 to 3");
        for n in 0..2 * MOST_NAMES {
            change("cooling", &n.to_string(), 0.0);
        }
        assert_eq!(counters.last.len(), MOST_NAMES);
    }
}
