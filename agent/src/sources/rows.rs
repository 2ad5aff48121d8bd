//! Rows of telemetry.csv, collected as text.

use std::fmt::Display;
use std::io::Write;

/// The first line of telemetry.csv.
pub const HEADER: &str = "t_ns,source,name,value,unit\n";

/// The rows of one round; all of them carry the same time.
#[derive(Default)]
pub struct Rows {
    t_ns: u64,
    text: Vec<u8>,
}

impl Rows {
    /// Begins a round at `t_ns` (`CLOCK_MONOTONIC`) and forgets the last one; its memory is used again.
    pub fn begin(&mut self, t_ns: u64) {
        self.t_ns = t_ns;
        self.text.clear();
    }

    /// The time of this round.
    pub fn t_ns(&self) -> u64 {
        self.t_ns
    }

    /// Adds a row. `name` must have come through [`clean`] if a device made it up.
    pub fn push(&mut self, source: &str, name: &str, value: impl Display, unit: &str) {
        // Writing to memory does not fail.
        let _ = writeln!(self.text, "{},{source},{name},{value},{unit}", self.t_ns);
    }

    /// The rows of this round.
    pub fn text(&self) -> &[u8] {
        &self.text
    }
}

/// A name as it may stand in a CSV field without quoting: printable ASCII, no comma and no quote.
pub fn clean(name: &str) -> String {
    let cleaned: String =
        name.trim().chars().map(|c| if c.is_ascii_graphic() && c != ',' && c != '"' { c } else { '_' }).take(64).collect();
    if cleaned.is_empty() { "unnamed".to_owned() } else { cleaned }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_devices_cannot_break_the_table() {
        assert_eq!(clean(" cpu-0-0\n"), "cpu-0-0");
        assert_eq!(clean("a,b \"c\"\nd"), "a_b__c__d");
        assert_eq!(clean("\n"), "unnamed");
        assert_eq!(clean(&"x".repeat(1000)).len(), 64);
    }

    #[test]
    fn a_round_is_text() {
        let mut rows = Rows::default();
        rows.begin(7);
        rows.push("process", "cpu_pct", format_args!("{:.1}", 99.96), "pct");
        assert_eq!(rows.text(), b"7,process,cpu_pct,100.0,pct\n");
        rows.begin(8);
        assert_eq!((rows.t_ns(), rows.text()), (8, &b""[..]));
    }
}
