//! CPU frequencies (Documentation/admin-guide/pm/cpufreq.rst, all in kHz), a row a policy in MHz: `policyN` what it has, `policyN_cap` what it
//! may have at most now (`scaling_max_freq`: a phone can throttle with all cooling devices at 0), `policyN_max` once, what it could have.

use std::path::{Path, PathBuf};

use super::gauge::{Gauge, Quantity, boxed, number};
use super::look::Look;
use super::{Opened, Pace, Reader, Rows};

/// Policies are named after their first CPU; more than this no Snapdragon has.
const MOST_CPUS: u32 = 64;

static KHZ: Quantity =
    Quantity { source: "cpufreq", unit: "MHz", parse: number, valid: 1.0..=20_000_000.0, sentinels: &[], divisor: 1000.0 };

/// A value that does not change.
struct Once {
    name: String,
    mhz: Option<f64>,
}

/// Opens the policies below `root`, or each CPU's own link to its policy where `cpufreq/` itself may not be looked into.
pub fn open(root: &str) -> Opened {
    let mut look = Look::default();
    let (mut gauges, mut caps, mut most) = (Vec::new(), Vec::new(), Vec::new());
    for (folder, prefix, below) in [(Path::new(root).join("cpufreq"), "policy", ""), (PathBuf::from(root), "cpu", "cpufreq")] {
        for n in look.numbers(&folder, prefix, MOST_CPUS) {
            let name = format!("{prefix}{n}");
            let folder = folder.join(&name).join(below);
            let Some(gauge) = Gauge::open(&mut look, &KHZ, &folder.join("scaling_cur_freq"), name.clone()) else { continue };
            gauges.push(gauge.fast());
            caps.extend(Gauge::open(&mut look, &KHZ, &folder.join("scaling_max_freq"), format!("{name}_cap")));
            if let Some(max) = Gauge::open(&mut look, &KHZ, &folder.join("cpuinfo_max_freq"), format!("{name}_max")) {
                most.push(Box::new(Once { name: max.name().to_owned(), mhz: max.now() }) as Box<dyn Reader>);
            }
        }
        if !gauges.is_empty() {
            break;
        }
    }
    let names = gauges.iter().map(Gauge::name).collect::<Vec<_>>().join(" ");
    let detail = format!("{names}; {} caps", caps.len());
    gauges.extend(caps);
    let mut readers = boxed(gauges);
    readers.extend(most);
    Opened::found(&look, detail, readers)
}

impl Reader for Once {
    fn pace(&self) -> Pace {
        Pace::Slow
    }

    fn sample(&mut self, rows: &mut Rows) {
        if let Some(mhz) = self.mhz.take() {
            rows.push("cpufreq", &self.name, mhz, "MHz");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::done::SourceState;

    #[test]
    fn policies_in_mhz() {
        let root = std::env::temp_dir().join(format!("bench-agent-cpufreq-{}", std::process::id()));
        for (n, khz) in [(0, "3532800\n"), (6, "4473600\n"), (7, "<unknown>\n")] {
            let policy = root.join(format!("cpufreq/policy{n}"));
            std::fs::create_dir_all(&policy).unwrap();
            std::fs::write(policy.join("scaling_cur_freq"), khz).unwrap();
        }
        std::fs::write(root.join("cpufreq/policy0/scaling_max_freq"), "2956800\n").unwrap();
        std::fs::write(root.join("cpufreq/policy0/cpuinfo_max_freq"), "3532800\n").unwrap();
        let mut opened = open(root.to_str().unwrap());
        assert_eq!((opened.state, opened.detail.as_deref()), (SourceState::Available, Some("policy0 policy6; 1 caps")));
        let mut rows = Rows::default();
        rows.begin(1);
        opened.readers.iter_mut().for_each(|r| r.sample(&mut rows));
        let text = String::from_utf8_lossy(rows.text()).into_owned();
        let expected = "1,cpufreq,policy0,3532.8,MHz\n1,cpufreq,policy6,4473.6,MHz\n1,cpufreq,policy0_cap,2956.8,MHz\n1,cpufreq,policy0_max,3532.8,MHz\n";
        assert_eq!(text, expected);
        rows.begin(2);
        opened.readers.iter_mut().for_each(|r| r.sample(&mut rows));
        assert!(!String::from_utf8_lossy(rows.text()).contains("policy0_max"), "it is told once");
        std::fs::remove_dir_all(&root).unwrap();
        assert_eq!(open(root.to_str().unwrap()).state, SourceState::Absent);
    }
}
