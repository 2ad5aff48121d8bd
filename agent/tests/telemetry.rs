//! What the agent sees of the command and the device.

mod common;

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

use bench_agent::spec::{SourceReport, SourceState};
use common::Run;

/// (t_ns, value) by source and name.
type Series = BTreeMap<(String, String), Vec<(u64, f64)>>;

fn table(run: &Run) -> Series {
    series_of(&run.read("telemetry.csv"))
}

/// Every row is checked for its form.
fn series_of(text: &str) -> Series {
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("t_ns,source,name,value,unit"));
    let mut series = Series::new();
    for line in lines {
        let fields: Vec<_> = line.split(',').collect();
        let [t_ns, source, name, value, unit] = fields[..] else { panic!("{line}") };
        assert!(!unit.is_empty(), "{line}");
        series.entry((source.to_owned(), name.to_owned())).or_default().push((t_ns.parse().unwrap(), value.parse().unwrap()));
    }
    series
}

fn key(source: &str, name: &str) -> (String, String) {
    (source.to_owned(), name.to_owned())
}

/// Takes 200 MB of memory, then computes for a second.
const ALLOCATES: &str = "import time\nx = bytearray(200 << 20)\nx[::4096] = b'1' * (len(x) // 4096)\nend = time.monotonic() + 1.2\nwhile time.monotonic() < end: pass";

#[test]
fn memory_and_cpu_of_a_process_tree() {
    // Through a shell, so that it is a tree.
    let run = Run::new(&["sh", "-c", "python3 -c \"$1\"; exit $?", "sh", ALLOCATES]);
    let done = run.finish();
    assert_eq!(done.ended.code, Some(0), "{}", run.read("stderr.txt"));
    let near = |kb: u64| (200 << 10..300 << 10).contains(&kb);
    assert!(near(done.rusage.max_rss_kb) && near(done.peak_rss_kb.unwrap()) && near(done.vm_hwm_kb.unwrap()), "{done:?}");
    assert!(done.rusage.user_s > 0.3, "{:?}", done.rusage);

    let series = table(&run);
    let rss = &series[&key("process", "rss_kb")];
    let peak = rss.iter().map(|row| row.1).fold(0.0, f64::max);
    assert!((peak - done.peak_rss_kb.unwrap() as f64).abs() < 1.0);
    assert!(rss.iter().all(|row| (done.start_ns..=done.end_ns).contains(&row.0)));
    let cpu = &series[&key("process", "cpu_pct")];
    assert!(cpu.iter().all(|row| row.1 < 250.0), "{cpu:?}");
    assert!(cpu.iter().any(|row| row.1 > 25.0), "{cpu:?}");
    assert!(series[&key("process", "processes")].iter().any(|row| row.1 >= 2.0));
    assert!(series[&key("meminfo", "mem_available_kb")][0].1 > 1000.0);
    assert!(series[&key("cpu", "busy_pct")].iter().all(|row| (0.0..=100.0).contains(&row.1)));
}

#[test]
fn periods_do_not_drift() {
    let done = Run::sh("sleep 2").finish();
    // Taken and missed ones are places on one grid: however late a busy machine wakes us, their sum is the time over the period.
    let periods = (done.end_ns - done.start_ns) / 50_000_000;
    assert!(periods >= 40 && (done.samples + done.overruns).abs_diff(periods) <= 4, "{} + {} of {periods}", done.samples, done.overruns);
    // A tenth of this machine at most would be a bug, whatever else runs on it.
    assert!(done.agent_cpu_s < 0.1, "{}", done.agent_cpu_s);
}

#[test]
fn no_rate_no_samples_but_evidence() {
    let mut run = Run::sh("sleep 0.5");
    run.spec.rate_hz = 0.0;
    let done = run.finish();
    assert!(!run.out("telemetry.csv").exists());
    assert_eq!((done.samples, done.peak_rss_kb), (0, None));
    assert!(done.mapped.iter().any(|path| path.contains("libc")), "{:?}", done.mapped);
    assert!(done.vm_hwm_kb.is_some());
}

#[test]
fn a_short_program_is_caught() {
    let done = Run::new(&["sleep", "0.05"]).finish();
    assert!(done.mapped.iter().any(|path| path.ends_with("/sleep")), "{:?}", done.mapped);
    assert!(done.mapped.iter().any(|path| path.contains("libc.so")), "{:?}", done.mapped);
    assert!(done.mapped.iter().all(|path| !path.contains("bench-agent")), "{:?}", done.mapped);
}

#[test]
fn pss_at_the_ends_of_phases() {
    let event = |name: &str| format!("echo '{{\"v\":1,\"event\":\"{name}\",\"t_ns\":1}}' >> events.jsonl; sleep 0.2; ");
    let mut script = String::from("sleep 0.2; ");
    for name in ["load_begin", "load_end", "token", "query_end", "token", "query_end", "end"] {
        script += &event(name);
    }
    let mut run = Run::sh(&script);
    run.spec.phase_file = Some("events.jsonl".to_owned());
    let done = run.finish();
    if done.sources.iter().any(|source| source.name == "pss" && source.state != SourceState::Available) {
        println!("skipped: no smaps_rollup");
        return;
    }
    let at: Vec<_> = done.pss.iter().map(|sample| sample.at.as_str()).collect();
    assert_eq!(at, ["load_end", "end"], "never between two measured queries");
    assert!(done.pss.iter().all(|sample| sample.kb > 50 && (done.start_ns..done.end_ns).contains(&sample.t_ns)), "{:?}", done.pss);
    assert!(done.pss.is_sorted_by_key(|sample| sample.t_ns));
}

#[test]
fn open_device_nodes() {
    let Some(node) = ["/dev/kmsg", "/dev/fuse", "/dev/loop-control", "/dev/net/tun"].into_iter().find(|node| fs::File::open(node).is_ok())
    else {
        println!("skipped: no device node that may be opened");
        return;
    };
    let done = Run::sh(&format!("exec 3< {node} 4< /dev/null 5< /dev/urandom; sleep 0.3")).finish();
    assert_eq!(done.device_nodes, [node]);
}

#[test]
fn probe_lists_every_source() {
    let output = Command::new(env!("CARGO_BIN_EXE_bench-agent")).arg("probe").output().unwrap();
    let sources: Vec<SourceReport> = serde_json::from_slice(&output.stdout).unwrap();
    let names: Vec<_> = sources.iter().map(|source| source.name.as_str()).collect();
    let all = "process pss dmabuf kgsl_memory cpufreq thermal cooling gpu ddr devfreq npu battery power psi disk meminfo cpu clock thermalservice";
    assert_eq!(names.join(" "), all);
    assert_eq!(sources[0].state, SourceState::Available);
    assert!(sources.iter().all(|source| source.read_us.is_some()), "each one says how long reading took");
    let version = Command::new(env!("CARGO_BIN_EXE_bench-agent")).arg("--version").output().unwrap();
    assert!(version.stdout.starts_with(b"bench-agent 0."));
    assert_eq!(Command::new(env!("CARGO_BIN_EXE_bench-agent")).output().unwrap().status.code(), Some(2));
}

/// A run of hours keeps changes and windows: what the windows say is what every sample would have said.
#[test]
fn a_long_run_keeps_changes_and_windows() {
    let mut run = Run::sh("sleep 2.3");
    (run.spec.compact_ms, run.spec.window_ms) = (500, 1000);
    let done = run.finish();
    assert_eq!(done.write_error, None);
    let series = table(&run);
    // 20 samples a second of the size of a program that sleeps: one row a window, not 46.
    let rows = series[&key("process", "processes")].len();
    assert!((3..=6).contains(&rows), "{rows}");
    let times: Vec<u64> = series[&key("process", "rss_kb")].iter().map(|row| row.0).collect();
    assert!(
        times
            .windows(2)
            .all(|w| w[1] - w[0] >= 400_000_000 || (w[1] - done.start_ns) / 1_000_000_000 > (w[0] - done.start_ns) / 1_000_000_000)
    );

    let text = run.read("windows.csv");
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("t_ns,source,name,min,max,mean,n,unit"));
    let windows: Vec<Vec<&str>> =
        lines.map(|l| l.split(',').collect()).filter(|f: &Vec<_>| f[1] == "process" && f[2] == "rss_kb").collect();
    assert_eq!(windows.len(), 3, "{text}");
    let samples: u64 = windows.iter().map(|w| w[6].parse::<u64>().unwrap()).sum();
    assert_eq!(samples, done.samples);
    for (w, place) in windows.iter().zip(0..) {
        let [min, max, mean] = [3, 4, 5].map(|i| w[i].parse::<f64>().unwrap());
        assert!(min <= mean && mean <= max && w[7] == "kB", "{w:?}");
        assert_eq!(w[0].parse::<u64>().unwrap(), done.start_ns + place * 1_000_000_000);
    }
}

#[test]
fn one_round_of_everything() {
    let output = Command::new(env!("CARGO_BIN_EXE_bench-agent")).arg("sample").output().unwrap();
    assert!(output.status.success());
    let series = series_of(std::str::from_utf8(&output.stdout).unwrap());
    assert!(series.values().all(|rows| rows.len() == 1), "{series:?}");
    // One that needs two readings, and one that does not.
    assert!((0.0..=100.0).contains(&series[&key("cpu", "busy_pct")][0].1));
    assert!(series[&key("meminfo", "mem_available_kb")][0].1 > 1000.0);
}
