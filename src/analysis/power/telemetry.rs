//! The raw rows that power is made of, sorted out of a launch's telemetry.

use std::collections::BTreeMap;

use super::Point;

/// One battery as its driver gives it: raw numbers, no unit, whatever sign.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Supply {
    /// `current_now`.
    pub current: Vec<Point>,
    /// `voltage_now`.
    pub voltage: Vec<Point>,
    /// `power_now`.
    pub power: Vec<Point>,
    /// `charge_counter`.
    pub charge: Vec<Point>,
    /// `charge_now`, which many drivers have in its place: see [`Telemetry::sort`].
    pub charge_now: Vec<Point>,
    /// `capacity`, percent.
    pub capacity: Vec<Point>,
    /// `status` as the kernel numbers it: 0 unknown, 1 charging, 2 discharging, 3 not charging, 4 full.
    pub status: Vec<Point>,
}
impl Supply {
    /// Whether it says anything about power.
    pub fn has_power(&self) -> bool {
        !self.current.is_empty() || !self.power.is_empty()
    }
}

/// The rows of one launch that power needs. Times are seconds of the device's monotonic clock.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Telemetry {
    /// Batteries by name.
    pub batteries: BTreeMap<String, Supply>,
    /// `online` of the other supplies: not 0 is external power.
    pub online: BTreeMap<String, Vec<Point>>,
    /// hwmon rails by `<chip>/<label>`, W.
    pub rails: BTreeMap<String, Vec<Point>>,
    /// Boot time minus monotonic time, ms.
    pub suspended_ms: Vec<Point>,
}

impl Telemetry {
    /// Takes one row of the agent's telemetry.csv if it is about power; values that are no numbers are no readings.
    pub fn push(&mut self, t_ns: u64, source: &str, name: &str, value: f64) {
        if !value.is_finite() {
            return;
        }
        let point = Point { t_s: t_ns as f64 / 1e9, value };
        match (source, name.rsplit_once('/')) {
            ("battery", Some((supply, "online"))) => self.online.entry(supply.to_owned()).or_default().push(point),
            ("battery", Some((supply, attribute))) => {
                let supply = self.batteries.entry(supply.to_owned()).or_default();
                let list = match attribute {
                    "current_now" => &mut supply.current,
                    "voltage_now" => &mut supply.voltage,
                    "power_now" => &mut supply.power,
                    "charge_counter" => &mut supply.charge,
                    "charge_now" => &mut supply.charge_now,
                    "capacity" => &mut supply.capacity,
                    "status" => &mut supply.status,
                    _ => return,
                };
                list.push(point);
            }
            ("power", _) => self.rails.entry(name.to_owned()).or_default().push(point),
            ("clock", _) if name == "suspended_ms" => self.suspended_ms.push(point),
            _ => {}
        }
    }

    /// Sorts every series by time: rows of several threads may stand in any order. `charge_now` stands for a charge counter that is not there.
    pub fn sort(&mut self) {
        let by_time = |points: &mut Vec<Point>| points.sort_by(|a, b| a.t_s.total_cmp(&b.t_s));
        for s in self.batteries.values_mut() {
            if s.charge.is_empty() {
                s.charge = std::mem::take(&mut s.charge_now);
            }
            for list in [&mut s.current, &mut s.voltage, &mut s.power, &mut s.charge, &mut s.capacity, &mut s.status] {
                by_time(list);
            }
        }
        self.online.values_mut().chain(self.rails.values_mut()).for_each(by_time);
        by_time(&mut self.suspended_ms);
    }
}

/// The reading that holds at a time: the last one before it, else the first one after it.
pub(super) fn held(points: &[Point], t_s: f64) -> Option<f64> {
    let after = points.partition_point(|p| p.t_s <= t_s);
    points.get(after.saturating_sub(1)).map(|p| p.value)
}

/// The readings that say something about a window: those in it, and the last one before it.
pub(super) fn within(points: &[Point], (from, to): (f64, f64)) -> &[Point] {
    let first = points.partition_point(|p| p.t_s <= from).saturating_sub(1);
    let last = points.partition_point(|p| p.t_s <= to);
    points.get(first..last.max(first)).unwrap_or_default()
}
