//! CPU time that others took while a run measured: what the whole computer worked, without bench and the processes that it started.
//!
//! Sources: `/proc/stat` (user, nice, system, irq, softirq and steal of all CPUs; guests are in user) and `/proc/self/stat` (utime, stime, and
//! cutime, cstime, the times of children that were waited for), both as in proc(5). The agent is waited for by bench and, as their subreaper, waits
//! itself for all that its command leaves, whatever group or session that went to, so that their time arrives here. What does not: an agent that
//! was killed leaves its command to others; and one of a killed bench is no child of the next, which therefore waits for it before it counts.

use std::{collections::BTreeMap, time::Instant};

use bench_agent::procfs::parse_cpu_total;

/// Ticks a second in `/proc`: `USER_HZ`, 100 on every architecture but Alpha and IA-64.
const HZ: f64 = 100.0;

/// In `host` of the manifest: CPU seconds that others took, and the seconds over which they were counted.
pub const KEYS: [&str; 2] = ["others_cpu_s", "others_wall_s"];

/// The counters at one moment.
#[derive(Debug, Clone, Copy)]
pub struct Reading {
    at: Instant,
    ticks: Ticks,
}

impl Reading {
    /// Of now; `None` where there is no `/proc`.
    pub fn now() -> Option<Self> {
        let read = |path| std::fs::read_to_string(path).ok();
        Some(Self { at: Instant::now(), ticks: Ticks::of(&read("/proc/stat")?, &read("/proc/self/stat")?)? })
    }
}

/// Ticks since the boot, and since bench began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Ticks {
    machine: u64,
    own: u64,
}

impl Ticks {
    fn of(stat: &str, own: &str) -> Option<Self> {
        let (machine, _) = parse_cpu_total(stat.as_bytes())?;
        // The program's name stands in brackets and may have any; behind it the state is field 3, utime, stime, cutime and cstime are 14 to 17.
        let fields: Vec<&str> = own.rsplit_once(')')?.1.split_ascii_whitespace().collect();
        let own = fields.get(11..15)?.iter().map(|field| field.parse::<u64>().ok()).sum::<Option<u64>>()?;
        Some(Self { machine, own })
    }

    /// What was not ours. The kernel counts a process exactly and a CPU by ticks, so that the difference can be a little below nothing.
    fn others_since(self, begin: Self) -> f64 {
        let machine = self.machine.saturating_sub(begin.machine);
        machine.saturating_sub(self.own.saturating_sub(begin.own)) as f64 / HZ
    }
}

/// What others took, over some time.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Others {
    /// CPU seconds.
    pub cpu_s: f64,
    /// Seconds.
    pub wall_s: f64,
}

impl Others {
    /// Between two readings.
    pub fn between(begin: &Reading, end: &Reading) -> Self {
        Self { cpu_s: end.ticks.others_since(begin.ticks), wall_s: end.at.duration_since(begin.at).as_secs_f64() }
    }

    /// As a manifest has it, by what looks up a key of its `host`; `None` where nothing was counted.
    pub fn of<'a>(host: impl Fn(&str) -> Option<&'a str>) -> Option<Self> {
        let [cpu_s, wall_s] = KEYS.map(|key| host(key)?.parse().ok().filter(|seconds| (0.0..f64::INFINITY).contains(seconds)));
        Some(Self { cpu_s: cpu_s?, wall_s: wall_s? })
    }

    /// The mean number of CPUs that others had.
    pub fn cpus(self) -> Option<f64> {
        (self.wall_s > 0.0).then(|| self.cpu_s / self.wall_s)
    }

    /// Leaves it in a manifest's `host`, unless others took more in an earlier segment: of those that bench itself ended the worst is kept, since
    /// quiet hours don't mend a busy one.
    pub fn keep_worst(self, host: &mut BTreeMap<String, String>) {
        let before = Self::of(|key| host.get(key).map(String::as_str)).and_then(Self::cpus);
        if before >= self.cpus() {
            return;
        }
        for (key, seconds) in KEYS.into_iter().zip([self.cpu_s, self.wall_s]) {
            host.insert(key.to_owned(), format!("{seconds:.2}"));
        }
    }
}

/// Load of a minute, the first word of `/proc/loadavg`.
pub fn minute(load: &str) -> Option<f64> {
    load.split_whitespace().next()?.parse().ok()
}

/// What a resumed run's `host` keeps of its earlier segments: what others took, and the highest load at a begin.
pub fn resume(before: &BTreeMap<String, String>, host: &mut BTreeMap<String, String>) {
    for key in KEYS {
        host.extend(before.get(key).map(|seconds| (key.to_owned(), seconds.clone())));
    }
    let load = |host: &BTreeMap<String, String>| minute(host.get("load")?);
    if load(before) > load(host) {
        host.extend(before.get("load").map(|load| ("load".to_owned(), load.clone())));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two CPUs of which others had 5.0 s of 10: the line of the whole is the sum of those of the CPUs, and its guest time is in user.
    #[test]
    fn what_others_took_by_literal_texts() {
        let stat = |user, steal| format!("cpu  {user} 10 200 5000 70 3 4 {steal} 90 0\ncpu0 1 1 1 1 1 1 1 1 1 1\nintr 8 9\n");
        let own = |[utime, stime, cutime, cstime]: [u32; 4]| {
            format!("77 (a) R 1 (b)) S 1 77 77 0 -1 4194304 10 20 30 40 {utime} {stime} {cutime} {cstime} 20 0 9 0 555 99 1\n")
        };
        let ticks = |stat: &str, own: &str| Ticks::of(stat, own).expect("ticks");
        let begin = ticks(&stat(1000, 0), &own([5, 5, 0, 0]));
        assert_eq!(begin, Ticks { machine: 1217, own: 10 });
        // 700 ticks more, of which 100 stolen; 200 are of bench, and of those 150 of children.
        let end = ticks(&stat(1600, 100), &own([35, 25, 100, 50]));
        assert!((end.others_since(begin) - 5.0).abs() < 1e-12);
        // A child that ends is counted as a whole, though the ticks of its CPU may have missed some of it.
        assert!(ticks(&stat(1100, 0), &own([5, 5, 101, 0])).others_since(begin).abs() < 1e-12);
        for (stat, own) in
            [("", "77 (a) S 1"), ("cpu  1 2", "77 (a) S 1"), (stat(1, 1).as_str(), "77 (a) S 1 2"), (stat(1, 1).as_str(), "")]
        {
            assert_eq!(Ticks::of(stat, own), None, "{stat:?} {own:?}");
        }
    }

    #[test]
    fn a_resumed_run_keeps_what_was_counted_and_the_highest_load() {
        let host = |load: &str| BTreeMap::from([("load".to_owned(), load.to_owned())]);
        let mut before = host("2.10 1 1 1/80 9");
        Others { cpu_s: 3.0, wall_s: 10.0 }.keep_worst(&mut before);
        let mut now = host("0.30 1 1 1/80 9");
        resume(&before, &mut now);
        assert_eq!(now, before);
        let mut now = host("10.30 1 1 1/80 9");
        resume(&before, &mut now);
        assert_eq!((now["load"].as_str(), now["others_cpu_s"].as_str()), ("10.30 1 1 1/80 9", "3.00"));
        let mut now = host("0.30 1 1 1/80 9");
        resume(&BTreeMap::new(), &mut now);
        assert_eq!(now, host("0.30 1 1 1/80 9"));
    }

    #[test]
    fn the_worst_segment_is_kept() {
        let mut host = BTreeMap::new();
        for (cpu_s, wall_s) in [(3.0, 10.0), (4.5, 12.0), (30.0, 1000.0)] {
            Others { cpu_s, wall_s }.keep_worst(&mut host);
        }
        assert_eq!(host, BTreeMap::from([("others_cpu_s", "4.50"), ("others_wall_s", "12.00")].map(|(k, v)| (k.to_owned(), v.to_owned()))));
        let read = |key: &str| host.get(key).map(String::as_str);
        assert_eq!(Others::of(read).and_then(Others::cpus), Some(4.5 / 12.0));
        assert_eq!(Others::of(|_| Some("nan")), None);
        assert_eq!(Others::of(|_| Some("-1")), None);
        assert_eq!(Others::of(|_| Some("0.00")).and_then(Others::cpus), None, "nothing was measured");
    }
}
