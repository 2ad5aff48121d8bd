//! Output streams, watched files, full disks, and the writing of `done.json`.

mod common;

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use bench_agent::spec::{Reason, Watch};
use common::{Run, until};

#[test]
fn a_gigabyte_stays_bounded_and_quick() {
    let mut run = Run::sh("echo first line; head -c 1000000000 /dev/zero; echo last line");
    run.spec.max_output_bytes = 100_000;
    let start = Instant::now();
    let done = run.finish();
    let took = start.elapsed();
    assert_eq!((done.ended.code, done.stdout_bytes, done.truncated), (Some(0), 1_000_000_021, true));
    let text = fs::read(run.out("stdout.txt")).unwrap();
    assert!(text.starts_with(b"first line\n") && text.ends_with(b"last line\n"));
    let note = b"[bench-agent: 999900021 bytes dropped here]";
    assert!(text.windows(note.len()).any(|w| w == note));
    assert!(text.len() < 100_100, "{}", text.len());
    // 1 GB/s on an idle machine; this one is shared.
    assert!(took < Duration::from_secs(15), "{took:?}");
}

#[test]
fn both_streams_at_once_are_whole() {
    let run = Run::sh("i=0; while [ $i -lt 2000 ]; do echo out $i; echo err $i >&2; i=$((i+1)); done");
    let done = run.finish();
    assert!(!done.truncated);
    for (file, word) in [("stdout.txt", "out"), ("stderr.txt", "err")] {
        let wanted: Vec<_> = (0..2000).map(|i| format!("{word} {i}")).collect();
        assert_eq!(run.read(file).lines().collect::<Vec<_>>(), wanted);
    }
}

#[test]
fn a_watched_file_has_a_limit() {
    let mut run = Run::sh("head -c 100000 /dev/zero > small; sleep 0.3; head -c 5000000 /dev/zero > events.jsonl; sleep 60");
    run.spec.watch = vec![
        Watch { path: "small".to_owned(), max_bytes: 100_000 },
        Watch { path: "events.jsonl".to_owned(), max_bytes: 1_000_000 },
        Watch { path: "never-there".to_owned(), max_bytes: 0 },
    ];
    let done = run.finish();
    assert_eq!((done.ended.reason, done.ended.signal), (Reason::OutputLimit, Some(15)));
    let message = done.ended.message.unwrap();
    assert!(message.contains("events.jsonl") && message.contains("1000000"), "{message}");
    assert!(done.end_ns - done.start_ns < 10_000_000_000);
}

#[test]
fn done_appears_whole_and_last() {
    let run = Run::sh("sleep 0.3; echo end");
    fs::create_dir_all(&run.spec.out_dir).unwrap();
    for name in ["done.json", "stderr.txt", "telemetry.csv", "child.pid"] {
        fs::write(run.out(name), "an old one").unwrap();
    }
    let agent = run.start();
    until("claimed", || run.out("agent.pid").exists());
    until("the old one is gone", || !run.out("done.json").exists());
    until("done", || run.out("done.json").exists());
    // At the first sight of it everything else is complete.
    let done = run.done().unwrap();
    assert_eq!(run.read("stdout.txt"), "end\n");
    assert!(run.read("telemetry.csv").ends_with('\n'));
    assert!(!run.out("done.json.tmp").exists());
    for name in ["stderr.txt", "telemetry.csv", "child.pid"] {
        assert!(!run.read(name).contains("old"), "{name}");
    }
    assert_eq!(run.wait(agent), done);
}

#[test]
fn a_full_disk_does_not_stop_the_run() {
    let mut run = Run::sh("head -c 3000000 /dev/zero; sleep 1.5; echo end > result");
    run.spec.max_output_bytes = 10_000_000;
    fs::create_dir_all(&run.spec.out_dir).unwrap();
    let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", "size=1m", "none", &run.spec.out_dir]).output();
    if !mounted.is_ok_and(|output| output.status.success()) {
        println!("skipped: a full disk needs the right to mount a small tmpfs");
        return;
    }
    let done = std::panic::catch_unwind(|| run.finish());
    let free = Command::new("df").arg(&run.spec.out_dir).output().unwrap();
    let size = fs::metadata(run.out("stdout.txt")).map_or(0, |m| m.len());
    assert!(Command::new("umount").args(["-l", &run.spec.out_dir]).status().unwrap().success());
    let done = done.unwrap();
    assert_eq!((done.ended.code, done.stdout_bytes), (Some(0), 3_000_000), "{}", String::from_utf8_lossy(&free.stdout));
    assert!(size > 500_000 && size < 1_050_000, "{size}");
    let error = done.write_error.unwrap();
    assert!(error.contains("stdout.txt: No space left"), "{error}");
    assert!(run.work("result").exists());
}

#[test]
fn a_disk_that_was_full_before() {
    let run = Run::sh("echo out; exit 5");
    fs::create_dir_all(&run.spec.out_dir).unwrap();
    let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", "size=64k", "none", &run.spec.out_dir]).output();
    if !mounted.is_ok_and(|output| output.status.success()) {
        println!("skipped: a full disk needs the right to mount a small tmpfs");
        return;
    }
    // 48 of 64 KiB are taken: the room for done.json can't be reserved, the rest must do.
    fs::write(run.out("other"), vec![0; 48 << 10]).unwrap();
    let done = std::panic::catch_unwind(|| run.finish());
    assert!(Command::new("umount").args(["-l", &run.spec.out_dir]).status().unwrap().success());
    let done = done.unwrap();
    assert_eq!(done.ended.code, Some(5));
}
