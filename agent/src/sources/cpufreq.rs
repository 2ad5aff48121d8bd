//! CPU frequencies: `scaling_cur_freq` in kHz (Documentation/admin-guide/pm/cpufreq.rst), a row a policy in MHz.

use std::io;
use std::path::Path;

use super::gauge::{Gauge, Gauges};
use super::{Opened, Pace, Reader};

/// Policies are named after their first CPU; more than this no Snapdragon has.
const MOST_CPUS: u32 = 64;

/// Opens the policies below `root`, or each CPU's own link to its policy where `cpufreq/` itself may not be looked into.
pub fn open(root: &str) -> Opened {
    let by_policy = |n: u32| (format!("{root}/cpufreq/policy{n}"), format!("policy{n}"));
    let by_cpu = |n: u32| (format!("{root}/cpu{n}/cpufreq"), format!("cpu{n}"));
    let mut refused: Option<io::Error> = None;
    let mut gauges = Vec::new();
    for place in [&by_policy as &dyn Fn(u32) -> (String, String), &by_cpu] {
        for n in 0..MOST_CPUS {
            let (folder, name) = place(n);
            match Gauge::open(&Path::new(&folder).join("scaling_cur_freq"), name) {
                Ok(gauge) => gauges.push(gauge),
                Err(e) => refused = Some(worse(refused, e)),
            }
        }
        if !gauges.is_empty() {
            break;
        }
    }
    if gauges.is_empty() {
        return Opened::missing(refused.as_ref());
    }
    let detail = gauges.iter().map(Gauge::name).collect::<Vec<_>>().join(" ");
    Opened::available(detail, lanes("cpufreq", "MHz", gauges))
}

fn lanes(source: &'static str, unit: &'static str, gauges: Vec<Gauge>) -> Vec<Box<dyn Reader>> {
    let (fast, slow) = gauges.into_iter().partition::<Vec<_>, _>(Gauge::is_cheap);
    [(Pace::Fast, fast), (Pace::Slow, slow)]
        .into_iter()
        .filter(|(_, gauges)| !gauges.is_empty())
        .map(|(pace, gauges)| {
            Box::new(Gauges { source, unit, pace, divisor: 1000.0, valid: 1..=20_000_000, sentinels: &[], files: gauges })
                as Box<dyn Reader>
        })
        .collect()
}

/// Of two errors the one that says more: a refusal, then anything but "not there".
pub fn worse(old: Option<io::Error>, new: io::Error) -> io::Error {
    let weight = |e: &io::Error| match e.kind() {
        io::ErrorKind::PermissionDenied => 2,
        io::ErrorKind::NotFound => 0,
        _ => 1,
    };
    old.filter(|e| weight(e) >= weight(&new)).unwrap_or(new)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::done::SourceState;
    use crate::sources::Rows;

    #[test]
    fn policies_in_mhz() {
        let root = std::env::temp_dir().join(format!("bench-agent-cpufreq-{}", std::process::id()));
        for (n, khz) in [(0, "3532800\n"), (6, "4473600\n"), (7, "<unknown>\n")] {
            let policy = root.join(format!("cpufreq/policy{n}"));
            std::fs::create_dir_all(&policy).unwrap();
            std::fs::write(policy.join("scaling_cur_freq"), khz).unwrap();
        }
        let mut opened = open(root.to_str().unwrap());
        assert_eq!((opened.state, opened.detail.as_deref()), (SourceState::Available, Some("policy0 policy6")));
        let mut rows = Rows::default();
        rows.begin(1);
        opened.readers.iter_mut().for_each(|r| r.sample(&mut rows));
        let text = String::from_utf8_lossy(rows.text()).into_owned();
        assert!(text.contains("1,cpufreq,policy0,3532.8,MHz\n") && text.contains("policy6,4473.6"), "{text}");
        std::fs::remove_dir_all(&root).unwrap();
        assert_eq!(open(root.to_str().unwrap()).state, SourceState::Absent);
    }

    #[test]
    fn a_refusal_outweighs_not_there() {
        let io = io::Error::from_raw_os_error;
        let errno = |e: io::Error| e.raw_os_error();
        assert_eq!(errno(worse(Some(io(13)), io(2))), Some(13));
        assert_eq!(errno(worse(Some(io(2)), io(13))), Some(13));
        assert_eq!(errno(worse(Some(io(2)), io(5))), Some(5));
        assert_eq!(errno(worse(None, io(2))), Some(2));
    }
}
