//! The thermal trip: a zone over its limit ends the command, and so does one that can't be read any more: nobody would see it get too hot. Looked at
//! where the zone is read, before anything is written: a full disk must not keep it.

use std::sync::{Arc, Mutex, PoisonError};

use crate::spec::Trip;

/// Readings in a row over the limit. One alone is no trip: zones report 140 C for a single sample.
const READINGS: u32 = 2;
/// A zone may give no reading for so long, and for so many times the rate's period: zones skip readings while a chip sleeps.
const UNREAD_NS: u64 = 30_000_000_000;
const UNREAD_PERIODS: f64 = 10.0;

/// What is known of the zones with a limit, shared with the supervisor.
pub type Tripped = Arc<Mutex<Zones>>;

/// The zones with a limit.
pub struct Zones {
    words: Option<String>,
    /// When each was read last.
    read: Vec<(Trip, u64)>,
    unread_ns: u64,
}

impl Zones {
    /// Nothing is known yet.
    pub fn new(limits: &[Trip], rate_hz: f64, start_ns: u64) -> Tripped {
        let unread_ns = UNREAD_NS.max((UNREAD_PERIODS * 1e9 / rate_hz) as u64);
        let read = limits.iter().map(|limit| (limit.clone(), start_ns)).collect();
        Arc::new(Mutex::new(Self { words: None, read, unread_ns }))
    }

    /// Why the command has to end now, if it has.
    pub fn trips(&self, now_ns: u64) -> Option<String> {
        let silent = |(_, read_ns): &&(Trip, u64)| now_ns.saturating_sub(*read_ns) > self.unread_ns;
        let unread = || {
            self.read.iter().find(silent).map(|(limit, _)| {
                let seconds = self.unread_ns / 1_000_000_000;
                format!(
                    "{} gave no temperature for {seconds} s, and its limit is {} C: nobody would see it get too hot",
                    limit.zone, limit.max_c
                )
            })
        };
        self.words.clone().or_else(unread)
    }
}

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
            let mut fields = line.split(',');
            let (Some(t_ns), Some("thermal"), Some(zone), Some(value)) = (fields.next(), fields.next(), fields.next(), fields.next())
            else {
                continue;
            };
            let (Ok(t_ns), Ok(value)) = (t_ns.parse::<u64>(), value.parse::<f64>()) else { continue };
            for (limit, over) in self.limits.iter_mut().filter(|(limit, _)| limit.zone == zone) {
                let mut zones = self.tripped.lock().unwrap_or_else(PoisonError::into_inner);
                zones.read.iter_mut().filter(|(own, _)| own.zone == zone).for_each(|(_, read_ns)| *read_ns = t_ns);
                *over = if value > limit.max_c { *over + 1 } else { 0 };
                if *over == READINGS {
                    let words = format!("{zone} had {value} C, {READINGS} readings in a row over its limit of {} C", limit.max_c);
                    zones.words.get_or_insert(words);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits() -> [Trip; 2] {
        [("nsp0", 95.0), ("skin", 48.0)].map(|(zone, max_c)| Trip { zone: zone.to_owned(), max_c })
    }

    fn tripped(values: &[&str]) -> Option<String> {
        let tripped = Zones::new(&limits(), 10.0, 0);
        let mut watch = Watch::new(&limits(), &tripped);
        for value in values {
            watch.look(format!("1,thermal,cpuss-0,150,C\n1,battery,nsp0,300,C\n{value}\n").as_bytes());
        }
        tripped.lock().unwrap().trips(1)
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

    #[test]
    fn a_zone_that_nobody_can_read_any_more_trips() {
        const S: u64 = 1_000_000_000;
        let tripped = Zones::new(&limits(), 10.0, 100 * S);
        let mut watch = Watch::new(&limits(), &tripped);
        let trips = |at_s: u64| tripped.lock().unwrap().trips(at_s * S);
        // Neither was read yet; then both; then one alone.
        assert_eq!(trips(130), None);
        assert!(trips(131).unwrap().starts_with("nsp0 gave no temperature for 30 s, and its limit is 95 C"));
        watch.look(format!("{0},thermal,nsp0,50,C\n{0},thermal,skin,40,C\n", 129 * S).as_bytes());
        assert_eq!(trips(159), None);
        watch.look(format!("{0},thermal,nsp0,50,C\n{0},thermal,skin,,C\n", 159 * S).as_bytes());
        assert!(trips(160).unwrap().starts_with("skin gave no temperature"));
        watch.look(format!("{},thermal,skin,40,C\n", 161 * S).as_bytes());
        assert_eq!(trips(162), None);
        // At a reading in ten seconds, thirty seconds would be three of them.
        let slow = Zones::new(&limits(), 0.1, 0);
        let slow = slow.lock().unwrap();
        assert_eq!((slow.trips(99 * S), slow.trips(101 * S).is_some()), (None, true));
        let none = Zones::new(&[], 10.0, 0);
        assert_eq!(none.lock().unwrap().trips(999 * S), None);
    }
}
