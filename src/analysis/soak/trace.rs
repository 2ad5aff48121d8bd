//! Sampled values over time. What a long run keeps are changes: a value holds until the next one.

use std::collections::BTreeMap;

use crate::analysis::series::{TEMPERATURE_JUMP_C, despike};

const S: f64 = 1e9;

/// The values of one name in their order of time.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Series(Vec<(u64, f64)>);

/// Smallest, largest and mean value of a stretch of time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Extent {
    /// Smallest.
    pub min: f64,
    /// Largest.
    pub max: f64,
    /// Mean over the time for which there are values.
    pub mean: f64,
}

impl From<Vec<(u64, f64)>> for Series {
    /// Of values in their order of time, which is in ns.
    fn from(values: Vec<(u64, f64)>) -> Self {
        Self(values)
    }
}

impl Series {
    /// The value at a time: the last one before, if that is no longer ago than `hold_ns`.
    pub fn at(&self, t_ns: u64, hold_ns: u64) -> Option<f64> {
        let place = self.0.partition_point(|(t, _)| *t <= t_ns).checked_sub(1)?;
        let (t, value) = self.0[place];
        (t_ns - t <= hold_ns).then_some(value)
    }

    /// The stretch from one time to another, each value counting for as long as it held.
    pub fn extent(&self, from_ns: u64, to_ns: u64, hold_ns: u64) -> Option<Extent> {
        let mut out: Option<Extent> = None;
        let (mut sum, mut time) = (0.0, 0.0);
        self.pieces(from_ns, to_ns, hold_ns, |value, ns| {
            let so_far = out.get_or_insert(Extent { min: value, max: value, mean: value });
            (so_far.min, so_far.max) = (so_far.min.min(value), so_far.max.max(value));
            sum += value * ns as f64;
            time += ns as f64;
        });
        let mut extent = out?;
        if time > 0.0 {
            extent.mean = sum / time;
        }
        Some(extent)
    }

    /// Calls with every value that held in a stretch, and for how many ns of it.
    pub fn pieces(&self, from_ns: u64, to_ns: u64, hold_ns: u64, mut with: impl FnMut(f64, u64)) {
        let first = self.0.partition_point(|(t, _)| *t <= from_ns).saturating_sub(1);
        for (place, (t, value)) in self.0.iter().enumerate().skip(first) {
            if *t >= to_ns {
                break;
            }
            let next = self.0.get(place + 1).map_or(u64::MAX, |(t, _)| *t);
            let (begin, end) = ((*t).max(from_ns), next.min(t.saturating_add(hold_ns)).min(to_ns));
            if end > begin {
                with(*value, end - begin);
            }
        }
    }

    /// Every value with its time.
    pub fn values(&self) -> &[(u64, f64)] {
        &self.0
    }
}

/// Everything that was sampled in a launch.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Trace(BTreeMap<(String, String), Series>);

impl Trace {
    /// Reads `t_ns,source,name,value,unit`; what is no row is left out, and so is an unfinished last line.
    pub fn read(text: &str) -> Self {
        let mut all: BTreeMap<(String, String), Series> = BTreeMap::new();
        for line in text.split_inclusive('\n').filter(|l| l.ends_with('\n')) {
            let mut fields = line.trim_end().split(',');
            let (Some(t), Some(source), Some(name), Some(value)) = (fields.next(), fields.next(), fields.next(), fields.next()) else {
                continue;
            };
            let (Ok(t), Ok(value)) = (t.parse::<u64>(), value.parse::<f64>()) else { continue };
            if value.is_finite() {
                all.entry((source.to_owned(), name.to_owned())).or_default().0.push((t, value));
            }
        }
        for ((source, _), series) in &mut all {
            // Several threads write.
            series.0.sort_by_key(|(t, _)| *t);
            // A zone that says 140 C for one sample was not that hot; what was sampled stands in the table all the same.
            if source == "thermal" {
                let points: Vec<(f64, f64)> = series.0.iter().map(|&(t, value)| (t as f64, value)).collect();
                let dropped = despike(&points, TEMPERATURE_JUMP_C).dropped;
                let mut index = 0..;
                series.0.retain(|_| index.next().is_none_or(|i: usize| dropped.binary_search(&i).is_err()));
            }
        }
        Self(all)
    }

    /// The names of a source, each with its values.
    pub fn of<'a>(&'a self, source: &'a str) -> impl Iterator<Item = (&'a str, &'a Series)> {
        self.0.iter().filter(move |((s, _), _)| s == source).map(|((_, name), series)| (name.as_str(), series))
    }

    /// The values of one name.
    pub fn get(&self, source: &str, name: &str) -> Option<&Series> {
        self.0.get(&(source.to_owned(), name.to_owned()))
    }
}

/// The largest value of each zone that windows.csv (`t_ns,source,name,min,max,mean,n,unit`) tells: between two rows of changes there may
/// have been a larger one.
pub fn peaks(text: &str) -> BTreeMap<String, f64> {
    let mut all: BTreeMap<String, f64> = BTreeMap::new();
    for line in text.split_inclusive('\n').filter(|l| l.ends_with('\n')) {
        let fields: Vec<&str> = line.trim_end().split(',').collect();
        if let [_, "thermal", name, _, max, ..] = fields[..]
            && let Some(max) = max.parse::<f64>().ok().filter(|max| max.is_finite())
        {
            all.entry(name.to_owned()).and_modify(|m| *m = m.max(max)).or_insert(max);
        }
    }
    all
}

/// Seconds from one time to a later or earlier one.
pub fn seconds(from_ns: u64, to_ns: u64) -> f64 {
    if to_ns >= from_ns { (to_ns - from_ns) as f64 / S } else { -((from_ns - to_ns) as f64 / S) }
}

/// A duration in ns.
pub fn ns(seconds: f64) -> u64 {
    (seconds.max(0.0) * S) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_holds_until_the_next_one_or_until_it_is_too_old() {
        let trace = Trace::read(
            "t_ns,source,name,value,unit\n20,thermal,a,3,C\n10,thermal,a,1,C\nx,thermal,a,1,C\n40,thermal,a,2,C\n50,thermal,a,9",
        );
        let series = trace.get("thermal", "a").unwrap();
        assert_eq!(series.values(), [(10, 1.0), (20, 3.0), (40, 2.0)]);
        assert_eq!([5, 10, 19, 20, 60, 200].map(|t| series.at(t, 100)), [None, Some(1.0), Some(1.0), Some(3.0), Some(2.0), None]);
        let jumps = Trace::read(
            "1,thermal,a,45,C\n2,thermal,a,140,C\n3,thermal,a,46,C\n1,cpu,busy_pct,5,pct\n2,cpu,busy_pct,99,pct\n3,cpu,busy_pct,5,pct\n",
        );
        assert_eq!(jumps.get("thermal", "a").unwrap().values(), [(1, 45.0), (3, 46.0)], "no zone jumps so and back");
        assert_eq!(jumps.get("cpu", "busy_pct").unwrap().values().len(), 3, "a load does");
        // From 15 to 30: 5 of 1 and 10 of 3.
        let extent = series.extent(15, 30, 100).unwrap();
        assert_eq!((extent.min, extent.max), (1.0, 3.0));
        assert!((extent.mean - 35.0 / 15.0).abs() < 1e-12);
        assert_eq!(series.extent(0, 10, 100), None);
        // With a hold of 5 the value of 20 ends at 25.
        assert_eq!(series.extent(26, 39, 5), None);
        assert_eq!(trace.of("thermal").count(), 1);
    }

    #[test]
    fn the_peak_of_a_zone_is_that_of_its_windows() {
        let text = "t_ns,source,name,min,max,mean,n,unit\n0,thermal,a,1,5.5,2,3,C\n9,thermal,a,1,7,2,3,C\n9,cpufreq,policy0,1,700,2,3,MHz\n9,thermal,b,1,1e999,2,3,C\n9,thermal,b,1,NaN,2,3,C\n\
                    9,thermal,a,1,99";
        // No number is no peak: a record with one could not be read again.
        assert_eq!(peaks(text), BTreeMap::from([("a".to_owned(), 7.0)]));
    }
}
