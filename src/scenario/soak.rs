//! The soak of a plan: what it asks for, which cells it has, and the room that its evidence takes. Pure.

use serde::{Deserialize, Serialize};

use super::{filter::Filter, plan::Plan};
use crate::device::zones::Domain;

/// Which cells are soaked.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SoakCells {
    /// Every cell that can be run.
    #[default]
    All,
    /// The first of them.
    First,
    /// Those that one of these selects, in the words of `--only`.
    Only(Vec<String>),
}

/// A temperature that ends a soak.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct TripLimit {
    /// Part of the device: every zone of it.
    pub domain: Domain,
    /// In C.
    pub max_c: f64,
}

/// A checked `[soak]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Soak {
    /// From a cell's first query on, in ms.
    pub duration_ms: u64,
    /// Length of a window, in ms.
    pub window_ms: u64,
    /// Which cells.
    #[serde(default)]
    pub cells: SoakCells,
    /// Pause before each, in ms.
    #[serde(default)]
    pub cool_down_ms: u64,
    /// Every sample is kept, not changes alone.
    #[serde(default)]
    pub keep_all: bool,
    /// What ends it at once.
    #[serde(default)]
    pub trip: Vec<TripLimit>,
}

/// Most bytes that the events of a soak may have; a runner that writes more is ended, and what is there counts. Our runners write 16 bytes a
/// token and 250 a query: 12 hours at 300 tokens a second are 220 MB.
pub const SOAK_EVENTS_LIMIT: u64 = 256 << 20;
/// Bytes of a row of telemetry.csv or windows.csv, as a phone's longest names make them.
const ROW: f64 = 64.0;
const WINDOW_ROW: f64 = 96.0;
/// Names that a phone's sources have, generously: zones, cooling devices, clocks, supplies, the process.
const NAMES: f64 = 200.0;
/// Rows of a name that a soak keeps at most, however long it is.
const ROWS: u64 = 3600;
/// The agent's own bounds: a table of telemetry, and an output stream of each kind.
const TABLE_LIMIT: f64 = 268_435_456.0;
const STREAMS: f64 = 2.0 * 67_108_864.0;

impl Soak {
    /// Fewest milliseconds between two rows of a name in telemetry.csv: a second, and in a soak over an hour so many that a name has 3600 rows.
    pub fn compact_ms(&self) -> u64 {
        if self.keep_all { 0 } else { (self.duration_ms / ROWS).max(1000) }
    }

    /// Bytes that the evidence of one soak takes on the device: what it has with 200 sampled names at 20 tokens a second, and at most.
    pub fn disk_bytes(&self, rate_hz: f64) -> [u64; 2] {
        let seconds = self.duration_ms as f64 / 1e3;
        let rows = if self.keep_all { seconds * rate_hz } else { seconds.min(ROWS as f64) + seconds * 1e3 / self.window_ms.max(1) as f64 };
        let windows = seconds * 1e3 / self.window_ms.max(1) as f64 + 1.0;
        let telemetry = if rate_hz > 0.0 { (NAMES * rows * ROW).min(TABLE_LIMIT) } else { 0.0 };
        let summary = if rate_hz > 0.0 { (NAMES * windows * WINDOW_ROW).min(TABLE_LIMIT) } else { 0.0 };
        let usual = telemetry + summary + seconds * 20.0 * 16.0;
        let most = telemetry + summary + SOAK_EVENTS_LIMIT as f64 + STREAMS;
        [usual as u64, most as u64]
    }
}

impl Plan {
    /// Places in `cells` of those that are soaked, in their order.
    pub fn soaked(&self) -> Vec<usize> {
        let Some(soak) = &self.soak else { return Vec::new() };
        let all = self.runnable();
        match &soak.cells {
            SoakCells::All => all,
            SoakCells::First => all.into_iter().take(1).collect(),
            SoakCells::Only(words) => {
                let filters: Vec<Filter> = words.iter().filter_map(|w| Filter::parse(w).ok()).collect();
                all.into_iter().filter(|place| filters.iter().any(|f| f.selects(&self.cells[*place]))).collect()
            }
        }
    }
}

impl Plan {
    /// That `[soak]` does nothing, in words, where it has cells to choose from.
    pub fn no_soak(&self) -> Option<&'static str> {
        let none = self.soak.is_some() && !self.runnable().is_empty() && self.soaked().is_empty();
        none.then_some("warning: no soak: `cells` of [soak] selects none of the cells that can be run")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn soak(minutes: u64) -> Soak {
        let (duration_ms, window_ms) = (minutes * 60_000, 30_000);
        Soak { duration_ms, window_ms, cells: SoakCells::All, cool_down_ms: 0, keep_all: false, trip: Vec::new() }
    }

    #[test]
    fn a_name_has_3600_rows_whatever_the_duration() {
        assert_eq!([soak(1), soak(60), soak(12 * 60)].map(|s| s.compact_ms()), [1000, 1000, 12_000]);
        assert_eq!(Soak { keep_all: true, ..soak(30) }.compact_ms(), 0);
    }

    #[test]
    fn the_room_of_half_an_hour_and_of_twelve() {
        // 200 names: 1800 changes and 60 windows' first rows of 64 bytes, 61 windows of 96 bytes; 36000 tokens of 16 bytes.
        let [usual, most] = soak(30).disk_bytes(10.0);
        assert_eq!(usual, 200 * 1860 * 64 + 200 * 61 * 96 + 36_000 * 16);
        assert_eq!(most, 200 * 1860 * 64 + 200 * 61 * 96 + (256 << 20) + (128 << 20));
        // 3600 changes and 1440 windows: under 100 MB.
        assert!(soak(12 * 60).disk_bytes(10.0)[0] < 120_000_000);
        assert_eq!(soak(30).disk_bytes(0.0)[0], 36_000 * 16);
    }
}
