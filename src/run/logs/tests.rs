use bench_backend_api::{Backend, knowledge::DEVICE};
use bench_backend_genie::Genie;

use super::*;

/// The form of a real logcat (uid is not shown), with other names and numbers.
const KILLED: &str = "\
--------- beginning of system
11-29 10:46:14.319   479   479 W lowmemorykiller: Failed to open /proc/16854/oom_score_adj; errno=2: process 16854 might have been killed
11-29 10:46:14.402   479   479 I lowmemorykiller: Kill 'com.android.contacts' (9021), uid 10085, oom_score_adj 905 to free 60288kB rss
11-29 10:46:14.514   479   479 I lowmemorykiller: Kill 'genie-t2t-run' (17757), uid 2000, oom_score_adj 0 to free 4445960kB rss, 3990164kB anon rss
11-29 10:46:15.364   630   630 I Zygote  : Process 17757 exited due to signal 9 (Killed)

--------- kernel
[  100.000001] Out of memory: Killed process 17757 (genie-t2t-run) total-vm:1kB, anon-rss:1kB, UID:2000 oom_score_adj:0
[ 8000.208970] remoteproc remoteproc2: crash detected in cdsp: type fatal error
";

const RUN: Launched<'_> =
    Launched { pids: &[17757, 17760], program: "genie-t2t-run", window_ns: Some((7_900_000_000_000, 8_010_000_000_000)), jumped: false };

fn ids(findings: &[Finding]) -> Vec<&str> {
    findings.iter().map(|f| f.id.as_str()).collect()
}

fn killed(signal: i32) -> Ended {
    Ended { reason: "exited".to_owned(), signal: Some(signal), ..Ended::default() }
}

#[test]
fn the_killer_that_names_the_process_explains_its_end() {
    let findings = read(KILLED, &DEVICE, RUN);
    // Another process's death and a kernel line of long before are none of it.
    assert_eq!(ids(&findings), ["lmkd-kill", "dsp-crashed", "killed-of"]);
    assert!(findings[0].own && findings[0].ended_it && !findings[1].own, "{findings:?}");
    assert_eq!(findings[0].stamp, "11-29 10:46:14.514");
    let failure = attribute(Failure::new(FailureKind::Runtime, "ended by signal 9"), &killed(9), &findings);
    assert_eq!(failure.kind, FailureKind::Runtime);
    assert!(failure.message.contains("Kill 'genie-t2t-run' (17757)") && failure.message.starts_with("ended by signal 9"), "{failure}");
    assert!(failure.hint.unwrap().contains("process 17757"));
    // Without the pids the program's name has to do; another program is another matter.
    let by_name = |program| ids(&read(KILLED, &DEVICE, Launched { pids: &[], program, ..RUN })).join(" ");
    assert_eq!(by_name("genie-t2t-run"), "lmkd-kill dsp-crashed");
    assert_eq!(by_name("llm_demo"), "dsp-crashed");
}

#[test]
fn a_wall_clock_that_jumped_leaves_the_kernels_clock() {
    // The line of 8000.2 s is within; who killed whom is told by wall time alone.
    assert_eq!(ids(&read(KILLED, &DEVICE, Launched { jumped: true, ..RUN })), ["dsp-crashed"]);
}

#[test]
fn kills_of_anybody_are_counted_where_there_is_a_logcat() {
    assert_eq!(lmkd_kills(KILLED, &DEVICE), Some(2));
    let kernel = &KILLED[KILLED.find("--------- kernel").unwrap()..];
    assert_eq!((lmkd_kills(kernel, &DEVICE), lmkd_kills("", &DEVICE)), (None, None));
    let quiet = "11-29 10:46:15.364   630   630 I Zygote  : Process 17757 exited due to signal 9 (Killed)\n\n--------- kernel\n";
    assert_eq!(lmkd_kills(quiet, &DEVICE), Some(0));
}

#[test]
fn the_kernels_lines_count_within_the_launch() {
    let at = |start: u64, end: u64| Launched { window_ns: Some((start * 1_000_000_000, end * 1_000_000_000)), ..RUN };
    let kernel = &KILLED[KILLED.find("--------- kernel").unwrap()..];
    assert_eq!(ids(&read(kernel, &DEVICE, at(90, 104))), ["kernel-oom"]);
    assert_eq!(ids(&read(kernel, &DEVICE, at(7995, 8001))), ["dsp-crashed"]);
    assert_eq!(ids(&read(kernel, &DEVICE, at(200, 300))), Vec::<&str>::new());
    assert_eq!(ids(&read(kernel, &DEVICE, Launched { window_ns: None, ..RUN })), ["kernel-oom", "dsp-crashed"]);
    // A name is cut to 15 characters there.
    let long = "[ 1.0] Out of memory: Killed process 7 (onnxruntime_per) total-vm:1kB";
    assert!(read(long, &DEVICE, Launched { program: "onnxruntime_perf_test", ..Launched::default() })[0].own);
}

#[test]
fn a_backends_own_table_reads_what_it_logs() {
    let log = "\
01-05 15:23:12.072 17757 17757 E genie-t2t-run: vendor/qcom/proprietary/adsprpc/src/fastrpc_apps_user.c:4456: Error 0x80000416: open_dev (-1) failed for domain 3
01-05 15:23:12.073 17757 17757 E QnnDsp  :  <E> DspTransport.openSession qnn_open failed, 0x80000416
01-05 15:23:12.073 17757 17757 E QnnDsp  :  <E> Failed to retrieve skel build id: err: 1003
01-05 15:23:12.090   900   912 E QnnDsp  :  <E> Failed to create context from binary with err 5005
";
    let findings = read(log, Genie.knowledge(), RUN);
    assert_eq!(ids(&findings), ["dsp-skel", "qnn-skel"]);
    assert_eq!((findings[0].count, findings[0].line.starts_with("genie-t2t-run: vendor")), (2, true));
    // A failure that the backend explained keeps its words; one without gets the log's.
    let ended = Ended { reason: "exited".to_owned(), code: Some(1), ..Ended::default() };
    let own = Failure { hint: Some("own words".to_owned()), ..Failure::new(FailureKind::Model, "x") };
    assert_eq!(attribute(own.clone(), &ended, &findings), own);
    let told = attribute(Failure::new(FailureKind::Runtime, "x"), &ended, &findings);
    assert!(told.kind == FailureKind::Device && told.hint.unwrap().contains("ADSP_LIBRARY_PATH"));
    assert_eq!(attribute(own.clone(), &killed(9), &[]), own);
    assert!(remarks(&findings)[0].contains("(2 times)"));
}

#[test]
fn every_form_of_logcat_is_read() {
    let event = |line| parse(line).map(|e| (e.pid, e.level, e.tag.to_owned(), e.message.to_owned()));
    let expected = Some((Some(29837), Some('E'), "QnnDsp".to_owned(), "<E> it: failed".to_owned()));
    for line in [
        "01-05 15:23:12.073 29837 29840 E QnnDsp  :  <E> it: failed",
        "2025-01-05 15:23:12.073  2000 29837 29840 E QnnDsp  : <E> it: failed",
        "1736090592.073 29837 29840 E QnnDsp: <E> it: failed",
        "         1736090592.073 u0_a123 29837 29840 E QnnDsp: <E> it: failed",
        "E/QnnDsp  (29837): <E> it: failed",
    ] {
        assert_eq!(event(line), expected, "{line}");
    }
    assert_eq!(event("--------- beginning of main"), None);
    assert_eq!(parse("<6>[  208.25][  T123] remoteproc: up").unwrap().kernel_s, Some(208.25));
    assert_eq!(parse("[  208.25][  T123] remoteproc: up").unwrap().message, "remoteproc: up");
    assert_eq!(parse("no form at all").unwrap().message, "no form at all");
}

#[test]
fn other_programs_and_quiet_lines_say_nothing() {
    let log = "\
01-05 15:23:12.072  4000  4000 E camera  : fastrpc_apps_user.c:4456: Error 0x80000406: remote_handle64_open failed
01-05 15:23:12.073  4000  4000 F libc    : Fatal signal 11 (SIGSEGV), code 1 in tid 4000 (camera), pid 4000 (camera)
01-05 15:23:12.074  4001  4001 I auditd  : type=1400 audit(0.0:1): avc:  denied  { read } for pid=4001 comm=\"x\" name=\"fastrpc-cdsp\" tclass=chr_file
01-05 15:23:12.075 17757 17757 I QnnDsp  : all is well
";
    assert_eq!(read(log, Genie.knowledge(), RUN), Vec::new());
    let ours = log.replace("4001", "17760").replace("4000", "17757");
    let findings = read(&ours, Genie.knowledge(), RUN);
    assert_eq!(ids(&findings), ["dsp-selinux", "dsp-skel", "crash-of"]);
    // A crash names its program: what it had logged before is the cause.
    assert_eq!(attribute(Failure::new(FailureKind::Runtime, "x"), &killed(11), &findings).kind, FailureKind::Device);
}

#[test]
fn the_script_asks_from_a_time_on() {
    let script = command(&Window { seconds: 30, start: None });
    assert!(script.contains("s=$((now - 30))") && script.contains("dmesg"), "{script}");
    // A shell without logcat and dmesg prints the line between them, and succeeds.
    let output = std::process::Command::new("/bin/sh").args(["-c", &script]).env("PATH", "/nonexistent").output().unwrap();
    assert!(output.status.success());
    assert!(String::from_utf8_lossy(&output.stdout).contains(KERNEL));
}

#[test]
fn hostile_texts_do_not_panic() {
    let texts = [
        "01-05",
        "01-05 1:2:3",
        "é/é(é): é",
        "E/(",
        "[",
        "[nan] x",
        "<[1]",
        "1736090592. 1 2",
        "E/x(99999999999): x",
        "pid=",
        "01-05 1:2:3 é é E é: pid=é",
    ];
    for text in texts {
        read(text, &DEVICE, RUN);
    }
    let pieces = KILLED.char_indices().step_by(7).map(|(at, _)| read(&KILLED[at..], &DEVICE, RUN).len());
    assert!(pieces.max().unwrap() <= MOST);
}
