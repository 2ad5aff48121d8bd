//! The thermal trip: a zone over its limit ends the command. Looked at where the zone is read, before anything is written: a full disk
//! must not keep it.

use std::sync::{Arc, Mutex, PoisonError};

use crate::spec::Trip;

/// Readings in a row over the limit. One alone is no trip: zones report 140 C for a single sample.
const READINGS: u32 = 2;

/// What tripped, shared with the supervisor.
pub type Tripped = Arc<Mutex<Option<String>>>;

/// The limits of one sampling thread: a zone is read by one thread only.
pub struct Watch {
    limits: Vec<(Trip, u32)>,
    tripped: Tripped,
}

impl Watch {
    /// Watches all limits of a spec.
    pub fn new(limits: &[Trip], tripped: &Tripped) -> Self {
        Self { limits: limits.iter().map(|limit| (limit.clone(), 0)).collect(), tripped: Arc::clone(tripped) }
    }

    /// Looks at the rows of a round. A zone that gives no reading is neither over its limit nor under it.
    pub fn look(&mut self, rows: &[u8]) {
        if self.limits.is_empty() {
            return;
        }
        for line in rows.split(|&b| b == b'\n') {
            let Ok(line) = std::str::from_utf8(line) else { continue };
            let mut fields = line.split(',').skip(1);
            let (Some("thermal"), Some(zone), Some(value)) = (fields.next(), fields.next(), fields.next()) else { continue };
            let Ok(value) = value.parse::<f64>() else { continue };
            for (limit, over) in self.limits.iter_mut().filter(|(limit, _)| limit.zone == zone) {
                *over = if value > limit.max_c { *over + 1 } else { 0 };
                if *over == READINGS {
                    let words = format!("{zone} had {value} C, {READINGS} readings in a row over its limit of {} C", limit.max_c);
                    self.tripped.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(words);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tripped(values: &[&str]) -> Option<String> {
        let tripped = Tripped::default();
        let limits = [("nsp0", 95.0), ("skin", 48.0)].map(|(zone, max_c)| Trip { zone: zone.to_owned(), max_c });
        let mut watch = Watch::new(&limits, &tripped);
        for value in values {
            watch.look(format!("1,thermal,cpuss-0,150,C\n1,battery,nsp0,300,C\n{value}\n").as_bytes());
        }
        tripped.lock().unwrap().clone()
    }

    #[test]
    fn two_readings_in_a_row_trip_and_a_single_one_of_140_does_not() {
        assert_eq!(tripped(&["1,thermal,nsp0,140,C", "1,thermal,nsp0,60,C", "1,thermal,nsp0,140,C"]), None);
        assert_eq!(tripped(&["1,thermal,nsp0,95,C", "1,thermal,nsp0,95,C"]), None);
        let words = tripped(&["1,thermal,nsp0,95.1,C", "1,thermal,nsp0,96.2,C", "1,thermal,nsp0,99,C"]).unwrap();
        assert_eq!(words, "nsp0 had 96.2 C, 2 readings in a row over its limit of 95 C");
        // Its neighbour's readings and rounds in which it gave none do not count.
        assert!(tripped(&["1,thermal,skin,49,C", "1,thermal,nsp0,50,C", "1,thermal,skin,49,C"]).is_some());
        assert_eq!(tripped(&["1,thermal,skin,49,C", "1,thermal,nsp0,96,C", "1,thermal,skin,47,C"]), None);
    }
}
