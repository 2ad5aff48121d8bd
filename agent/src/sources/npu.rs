//! How busy the compute DSP is, by its own counters, as far as this user may read them.
//!
//! The kernel module sysmon_subsystem_stats prints what the DSP leaves in shared memory, as text with a line for each figure, in debugfs (root
//! only). Motorola prints the same text in sysfs, ZTE a file of that name in `/proc` whose text nobody has published; it is read if it has the
//! same lines. Boards may run qcnpuperfd, which writes `name=value` lines into a file.
//!
//! | line | is |
//! |---|---|
//! | `Core clock(KHz): 1382400` | `q6_clock` |
//! | `HVX utilization in percentage = 40` | `hvx_pct`; 0 while the DSP is off |
//! | `HMX utilization in percentage = 40` | `hmx_pct` |
//! | `Average Q6 load in KCPS = 250000` | `q6_load`, thousand cycles a second; how many make 100 % is not told, so no percent is made of it |
//!
//! Formats from the published sources of sysmon_subsystem_stats.c (Qualcomm's and Motorola's Android kernels) and of qcnpuperfd.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::look::{Look, MOST_BYTES};
use super::{Opened, Pace, Reader, Rows};

/// Name of the method, file below the root.
const METHODS: [(&str, &str); 4] = [
    ("sysmon-debugfs", "sys/kernel/debug/sysmon_subsystem_stats/master_cdsp_stats"),
    ("dsp_stats", "sys/kernel/dsp_stats/cdsp/cdsp_stats"),
    ("master_cdsp_stats", "proc/master_cdsp_stats"),
    ("qcnpuperfd", "tmp/qcnpuperf_metrics"),
];
/// What else could tell and is not asked while something is measured: the device node needs ioctls, the others are vendor programs.
const OTHERS: [(&str, &[&str]); 3] = [
    ("/dev/sysmon_subsystem_stats", &["dev/sysmon_subsystem_stats"]),
    ("sysMonApp", &["data/local/tmp/sysMonApp", "vendor/bin/sysMonApp", "usr/bin/sysMonApp"]),
    (
        "libqcnpuperf",
        &[
            "usr/lib/libqcnpuperf.so",
            "usr/lib/libqcnpuperf.so.1",
            "usr/lib/aarch64-linux-gnu/libqcnpuperf.so.1",
            "vendor/lib64/libqcnpuperf.so",
        ],
    ),
];
/// A file that a daemon writes and that is older than this tells of the past.
const STALE: Duration = Duration::from_secs(10);

struct Counters {
    method: &'static str,
    path: PathBuf,
    file: File,
}

/// Takes the first method below `root` (`/`) whose text has at least one known line.
pub fn open(root: &str) -> Opened {
    let mut look = Look::default();
    let root = Path::new(root);
    let mut notes = Vec::new();
    for (method, path) in METHODS {
        let path = root.join(path);
        let own = path.clone();
        let Some((file, text)) = look.at(method, move || {
            let file = File::open(own)?;
            let text = read(&file)?;
            Ok((file, text))
        }) else {
            continue;
        };
        let values = parse(&text);
        if values.is_empty() {
            notes.push(format!("{method}: unknown format"));
            continue;
        }
        let names = values.iter().map(|(name, ..)| *name).collect::<Vec<_>>().join(" ");
        return Opened::found(&look, format!("{method}: {names}"), vec![Box::new(Counters { method, path, file })]);
    }
    for (name, places) in OTHERS {
        if places.iter().any(|place| root.join(place).exists()) {
            notes.push(format!("{name} is there, and not run while measuring"));
        }
    }
    let opened = Opened::found(&look, "", Vec::new());
    if notes.is_empty() { opened } else { opened.because(notes.join("; ")) }
}

/// The first page; such files are made anew at every reading from 0.
fn read(file: &File) -> std::io::Result<String> {
    let mut bytes = vec![0; 2 * MOST_BYTES as usize];
    let mut length = 0;
    while length < bytes.len() {
        match file.read_at(&mut bytes[length..], length as u64)? {
            0 => break,
            n => length += n,
        }
    }
    Ok(String::from_utf8_lossy(&bytes[..length]).into_owned())
}

impl Reader for Counters {
    fn pace(&self) -> Pace {
        // The DSP updates its averages ten times a second; the text costs a while to print.
        Pace::Apart("npu", 1000)
    }

    fn label(&self) -> String {
        format!("npu/{}", self.method)
    }

    fn sample(&mut self, rows: &mut Rows) {
        if self.method == "qcnpuperfd" {
            // Replaced by rename at every update.
            let age = |m: fs::Metadata| m.modified().ok().and_then(|t| SystemTime::now().duration_since(t).ok());
            let fresh = fs::metadata(&self.path).ok().and_then(age).is_some_and(|age| age < STALE);
            match File::open(&self.path) {
                Ok(file) if fresh => self.file = file,
                _ => return,
            }
        }
        for (name, value, unit) in read(&self.file).map(|text| parse(&text)).unwrap_or_default() {
            rows.push("npu", name, value, unit);
        }
    }
}

/// The known lines of either kind of text: name, value, unit.
fn parse(text: &str) -> Vec<(&'static str, f64, &'static str)> {
    /// What a line begins with, its row, and what its number is divided by.
    const LINES: [(&str, &str, &str, f64); 8] = [
        ("Average Q6 load in KCPS =", "q6_load", "kcps", 1.0),
        ("HVX utilization in percentage =", "hvx_pct", "pct", 1.0),
        ("HMX utilization in percentage =", "hmx_pct", "pct", 1.0),
        ("Core clock(KHz):", "q6_clock", "MHz", 1000.0),
        ("q6_utilization=", "q6_pct", "pct", 1.0),
        ("hvx_utilization=", "hvx_pct", "pct", 1.0),
        ("hmx_utilization=", "hmx_pct", "pct", 1.0),
        ("q6_clock_khz=", "q6_clock", "MHz", 1000.0),
    ];
    let mut values: Vec<(&str, f64, &str)> = Vec::new();
    for line in text.lines() {
        let known = LINES.iter().find_map(|(begin, name, unit, divisor)| Some((line.strip_prefix(begin)?, *name, *unit, *divisor)));
        let Some((rest, name, unit, divisor)) = known else { continue };
        let Some(number) = rest.trim().parse::<f64>().ok().filter(|n| n.is_finite() && *n >= 0.0) else { continue };
        if (unit == "pct" && number > 100.0) || values.iter().any(|(other, ..)| *other == name) {
            continue;
        }
        values.push((name, number / divisor, unit));
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::done::SourceState;
    use crate::sources::tests::{rows_of, tree};

    /// As the module's source prints it; the numbers are made up.
    const SYSMON: &str = "\nsysMon stats:\n\nCore clock(KHz): 1382400\nAb vote(Bytes): 0\nIb vote(Bytes): 8368000000\nSleep latency(usec): 4294967295\n\
        HMX Power state: ON\nHMX Clock(KHz): 1152000\n\nDSPPM stats:\n\nVersion: 1\nPid: 0, Num active clients: 0\n\nPower Stats:\n\n\
        0 : Core Clock(KHz) : 384000 \tActive Time(sec) : 12\nPower collapse time(sec) = 900\nTotal LPI time(sec) = 0\nCurrent core clock(KHz) = 1382400\n\n\
        Q6 load:\n\nAverage Q6 load in KCPS = 250000\n\nHMX stats:\n\nHMX utilization in percentage = 61\n\nHVX stats not available, error code: -1\n";

    #[test]
    fn what_sysmon_prints() {
        let root = tree("npu-a", &[("sys/kernel/debug/sysmon_subsystem_stats/master_cdsp_stats", SYSMON)]);
        let mut opened = open(root.path());
        assert_eq!(opened.detail.as_deref(), Some("sysmon-debugfs: q6_clock q6_load hmx_pct"));
        assert_eq!(rows_of(&mut opened), "1,npu,q6_clock,1382.4,MHz\n1,npu,q6_load,250000,kcps\n1,npu,hmx_pct,61,pct\n");
    }

    #[test]
    fn an_unknown_text_is_not_guessed_at() {
        let root = tree("npu-b", &[("proc/master_cdsp_stats", "cdsp 61 40 1382400\n"), ("data/local/tmp/sysMonApp", "")]);
        let opened = open(root.path());
        let words = "master_cdsp_stats: unknown format; sysMonApp is there, and not run while measuring";
        assert_eq!((opened.state, opened.detail.as_deref()), (SourceState::Absent, Some(words)));
    }

    #[test]
    fn a_daemons_file_counts_while_it_is_fresh() {
        let text = "q6_utilization=12.50\nq6_clock_khz=1382400\nhvx_utilization=130.00\nhmx_utilization=nan\n";
        let root = tree("npu-c", &[("tmp/qcnpuperf_metrics", text)]);
        let mut opened = open(root.path());
        assert_eq!(rows_of(&mut opened), "1,npu,q6_pct,12.5,pct\n1,npu,q6_clock,1382.4,MHz\n");
        let old = SystemTime::now() - Duration::from_mins(1);
        File::options().write(true).open(root.join("tmp/qcnpuperf_metrics")).unwrap().set_modified(old).unwrap();
        assert_eq!(rows_of(&mut opened), "");
    }
}
