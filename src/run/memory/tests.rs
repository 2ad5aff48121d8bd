use bench_agent::spec::{Memory as Evidence, MemoryPoint, PssSample};
use bench_backend_api::Token;

use super::*;

const S: u64 = 1_000_000_000;
/// 10^6 bytes are 976.5625 KiB: with 15625 KiB all figures are round, 16 MB.
const KB16: u64 = 15_625;

/// Evidence as of an agent that knows nothing of memory by kind: made of its text, as old records are read.
fn done() -> Done {
    let text = r#"{"v":1,"agent_version":"0.1.0","start_ns":0,"end_ns":0,"utc_start":"","boot_id":null,"boottime_minus_monotonic_ns":[0,0],
        "ended":{"reason":"exited","code":0,"signal":null,"message":null},"rusage":{"user_s":1.0,"sys_s":0.5,"max_rss_kb":0,"minor_faults":0,
        "major_faults":0,"voluntary_switches":0,"involuntary_switches":0},"peak_rss_kb":46875,"vm_hwm_kb":31250,"pss":[],"mapped":[],
        "device_nodes":[],"stdout_bytes":0,"stderr_bytes":0,"truncated":false,"samples":0,"overruns":0,"agent_cpu_s":0.0,"sources":[],
        "launch_context":{"uid":null,"nice":null,"affinity":null,"cgroup":null,"oom_score_adj":null}}"#;
    serde_json::from_str(text).unwrap()
}

fn footprint(anon_kb: u64, dmabuf_kb: Option<u64>) -> Footprint {
    Footprint { t_ns: S, anon_kb, shmem_kb: KB16, file_kb: 99, dmabuf_kb, ..Footprint::default() }
}

fn query(query: u32, start_s: u64, tokens_s: &[u64]) -> Query {
    let tokens = tokens_s.iter().map(|s| Token { id: None, t_ns: s * S }).collect();
    Query { query, start_ns: start_s * S, tokens, ..Query::default() }
}

#[test]
fn an_old_record_has_rss_and_says_so() {
    let done = done();
    let m = memory(&Parsed::default(), &std::iter::once(&done), &Trace::default(), 1);
    // 46875 KiB are 48 MB.
    assert_eq!((m.peak_mb, m.method.as_deref()), (Some(48.0), Some("rss")));
    assert!(FIGURES.iter().all(|name| m.get(name).is_none()));
    let absent: Vec<_> = m.absent.iter().map(|(name, _)| *name).collect();
    assert_eq!(absent.len(), FIGURES.len());
    assert!(FIGURES.iter().all(|name| absent.contains(name)), "{absent:?}");
}

#[test]
fn every_phase_by_the_common_clock() {
    let mut done = done();
    let peak = footprint(6 * KB16, Some(3 * KB16));
    let load = MemoryPoint { at: "load_end".to_owned(), now: footprint(4 * KB16, Some(2 * KB16)) };
    done.memory = Some(Evidence {
        peak,
        points: vec![load],
        readings: 9,
        file_max_kb: 5 * KB16,
        dmabuf_max_kb: Some(3 * KB16),
        gpu_absent: Some("kgsl_memory: No such file".to_owned()),
        ..Evidence::default()
    });
    done.pss = vec![PssSample { t_ns: 1, at: "load_end".to_owned(), kb: KB16, took_us: 1 }];
    let mut trace = Trace::default();
    // Anonymous memory is t x 16 MB at t seconds, shared memory 16 MB; dma-bufs 32 MB, 48 MB from 15 s on.
    for t in 1..=20 {
        trace.add(t * S, "process", "anon_kb", (t * KB16) as f64);
        trace.add(t * S, "process", "shmem_kb", KB16 as f64);
    }
    trace.add(2 * S, "process", "dmabuf_kb", (2 * KB16) as f64);
    trace.add(15 * S, "process", "dmabuf_kb", (3 * KB16) as f64);
    trace.add(3 * S, "meminfo", "mem_available_kb", 2e6);
    trace.add(4 * S, "meminfo", "mem_available_kb", 1e6);
    // The discarded query decodes at 4 to 6 s, the measured ones at 8 to 11 s and at 14 to 17 s.
    let queries = vec![query(0, 3, &[4, 5, 6]), query(1, 7, &[8, 11]), query(2, 12, &[14, 17])];
    let parsed = Parsed { queries, ..Parsed::default() };
    let m = memory(&parsed, &std::iter::once(&done), &trace, 1);
    assert_eq!((m.peak_mb, m.method.as_deref()), (Some(160.0), Some("dmabuf+anon+shmem")));
    assert_eq!(m.get("mem_load_mb"), Some(112.0)); // (4 + 1 + 2) x 16
    assert_eq!(m.get("mem_prefill_mb"), Some(176.0)); // (8 + 1 + 2) x 16
    assert_eq!(m.get("mem_end_mb"), Some(336.0)); // (17 + 1 + 3) x 16
    assert_eq!((m.get("mapped_file_mb"), m.get("dmabuf_mb"), m.get("swap_mb")), (Some(80.0), Some(48.0), Some(0.0)));
    assert_eq!((m.get("pss_load_mb"), m.get("pss_end_mb"), m.get("mem_available_min_mb")), (Some(16.0), None, Some(1024.0)));
    let why = |name: &str| m.absent.iter().find(|(n, _)| *n == name).map(|(_, why)| why.as_str());
    assert_eq!(why("gpu_mem_mb"), Some("kgsl_memory: No such file"));
    assert_eq!(why("pss_end_mb"), Some("no PSS at the program's event end"));
    assert_eq!(why("mem_growth_mb_per_h"), Some("10 s of measured queries, 60 s are needed"));
    assert_eq!(m.absent.len(), 3);
    assert!(m.absent.iter().all(|(_, why)| !why.contains(';')), "it parts the reasons in the tables: {:?}", m.absent);
}

/// The process of the test above, shared: the first cell's queries until 11.5 s, those of another after that.
#[test]
fn of_a_shared_process_the_first_cell_has_what_it_would_have_had_alone() {
    let part = |peak_s: u64, place: u32| {
        let mut done = done();
        let peak = Footprint { t_ns: peak_s * S, ..footprint(20 * KB16, Some(3 * KB16)) };
        done.memory = Some(Evidence { peak, readings: 9, file_max_kb: KB16, dmabuf_max_kb: Some(3 * KB16), ..Evidence::default() });
        let (from, to) = if place == 0 { (1, 11) } else { (12, 20) };
        let mut trace = Trace::default();
        for t in from..=to {
            trace.add(t * S, "process", "anon_kb", (t * KB16) as f64);
            trace.add(t * S, "process", "shmem_kb", KB16 as f64);
            trace.add(t * S, "process", "dmabuf_kb", KB16 as f64);
        }
        let parsed =
            Parsed { queries: vec![query(0, from, &[from + 1, from + 2]), query(1, from + 3, &[from + 4, to])], ..Parsed::default() };
        let mut m = memory(&parsed, &std::iter::once(&done), &trace, 1);
        let shared =
            Shared { process: "a".to_owned(), place, cells: 2, window_ns: if place == 0 { (0, 12 * S) } else { (12 * S, 21 * S) } };
        m.of_part(&shared, &std::iter::once(&done), &trace);
        m
    };
    // The peak of the process lies in its part: (20 + 1 + 3) x 16. Later it is another cell's, and the highest sample is (11 + 1 + 1) x 16.
    let (own, others) = (part(10, 0), part(19, 0));
    assert_eq!((own.peak_mb, others.peak_mb, others.method.as_deref()), (Some(384.0), Some(208.0), Some("dmabuf+anon+shmem")));
    assert_eq!((others.get("mem_end_mb"), others.get("dmabuf_mb"), others.get("mapped_file_mb")), (Some(208.0), None, None));
    let later = part(19, 1);
    assert_eq!((later.peak_mb, later.method.as_deref()), (None, None));
    assert!(FIGURES.iter().all(|name| later.get(name).is_none()));
    let why = |name: &str| later.absent.iter().filter(|(n, _)| *n == name).map(|(_, why)| why.as_str()).collect::<Vec<_>>();
    for name in ["peak_mem_mb", "mem_end_mb", "load_ms", "cpu_s", "vm_hwm_mb", "mem_growth_mb_per_h"] {
        assert_eq!(why(name), [SHARED], "{name}");
    }
    assert!(!others.absent.iter().any(|(name, _)| *name == "load_ms" || *name == "peak_mem_mb"), "{:?}", others.absent);
}

#[test]
fn dma_bufs_that_could_not_be_read_are_in_no_sum() {
    let mut done = done();
    let refused = "/proc/PID/fdinfo of the program's processes can't be read: Permission denied (os error 13)";
    done.memory =
        Some(Evidence { peak: footprint(KB16, None), readings: 1, dmabuf_absent: Some(refused.to_owned()), ..Evidence::default() });
    let mut trace = Trace::default();
    trace.add(5 * S, "process", "anon_kb", KB16 as f64);
    trace.add(5 * S, "process", "shmem_kb", 0.0);
    trace.add(S, "process", "dmabuf_kb", 1e6);
    let parsed = Parsed { queries: vec![query(1, 4, &[4, 6])], ..Parsed::default() };
    let m = memory(&parsed, &std::iter::once(&done), &trace, 1);
    assert_eq!((m.peak_mb, m.method.as_deref(), m.get("mem_end_mb")), (Some(32.0), Some("anon+shmem"), Some(16.0)));
    assert!(m.absent.contains(&("dmabuf_mb", refused.to_owned())));
}

#[test]
fn what_the_gpu_has_apart_is_in_the_method_and_in_the_sums() {
    let mut done = done();
    let peak = Footprint { gpu_kb: Some(4 * KB16), gpu_apart_kb: Some(2 * KB16), ..footprint(KB16, Some(0)) };
    done.memory = Some(Evidence { peak, readings: 1, gpu_max_kb: Some(4 * KB16), dmabuf_max_kb: Some(0), ..Evidence::default() });
    let mut trace = Trace::default();
    for (name, kb) in [("anon_kb", KB16), ("shmem_kb", KB16), ("gpu_kb", 4 * KB16), ("gpu_apart_kb", 2 * KB16)] {
        trace.add(5 * S, "process", name, kb as f64);
    }
    let parsed = Parsed { queries: vec![query(1, 4, &[4, 6])], ..Parsed::default() };
    let m = memory(&parsed, &std::iter::once(&done), &trace, 1);
    assert_eq!((m.peak_mb, m.method.as_deref()), (Some(64.0), Some("dmabuf+anon+shmem+kgsl")));
    assert_eq!((m.get("gpu_mem_mb"), m.get("mem_end_mb")), (Some(64.0), Some(64.0)));
}

#[test]
fn a_leak_during_the_measured_queries() {
    let mut done = done();
    done.memory = Some(Evidence { peak: footprint(KB16, Some(0)), readings: 1, dmabuf_max_kb: Some(0), ..Evidence::default() });
    let mut trace = Trace::default();
    // 16 MB more every second after the measured query began at 100 s; the load before it took much more.
    for t in 0..=300 {
        trace.add(t * S, "process", "anon_kb", (if t < 100 { t * 9 } else { t } * KB16) as f64);
        trace.add(t * S, "process", "shmem_kb", 0.0);
    }
    let parsed = Parsed { queries: vec![query(0, 50, &[51, 52]), query(1, 100, &[101, 299])], ..Parsed::default() };
    let m = memory(&parsed, &std::iter::once(&done), &trace, 1);
    let growth = m.growth.expect("200 s");
    assert!((growth.per_h - 57_600.0).abs() < 1e-3 && growth.lo <= growth.per_h && growth.per_h <= growth.hi, "{growth:?}");
    assert_eq!(m.get("mem_growth_mb_per_h"), Some(growth.per_h));
}

#[test]
fn a_leak_of_a_soak_that_keeps_changes_alone() {
    let mut done = done();
    done.memory = Some(Evidence { peak: footprint(KB16, Some(0)), readings: 1, dmabuf_max_kb: Some(0), ..Evidence::default() });
    let mut trace = Trace::default();
    // 16 MB more every 2 s; shared memory never changes, and has one row in each window of 30 s.
    for t in (0..=300).step_by(2) {
        trace.add(t * S, "process", "anon_kb", (t / 2 * KB16) as f64);
        if t % 30 == 0 {
            trace.add(t * S, "process", "shmem_kb", KB16 as f64);
        }
    }
    let parsed = Parsed { queries: vec![query(1, 10, &[11, 12]), query(99, 290, &[291, 299])], ..Parsed::default() };
    let m = memory(&parsed, &std::iter::once(&done), &trace, 1);
    let growth = m.growth.expect("290 s");
    // 8 MB a second are 28,800 an hour.
    assert!((growth.per_h - 28_800.0).abs() < 1.0, "{growth:?}");
    // 298 s: 149 x 16 MB and 16 MB of shared memory.
    assert_eq!(m.get("mem_end_mb"), Some(2400.0));
}
