//! How runs end.

mod common;

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use bench_agent::spec::{Ended, Reason};
use common::{Run, runs, signal, until};

/// Leaves its session, its group and its parents, and does not care for TERM.
const ESCAPEE: &str = r#"( ( setsid sh -c 'trap "" TERM HUP; echo $$ > escapee; while :; do sleep 0.05; done' & ) & ); until [ -s escapee ]; do sleep 0.01; done"#;

#[test]
fn an_exit_code() {
    let done = Run::sh("echo out; echo err >&2; exit 7").finish();
    assert_eq!(done.ended, Ended { reason: Reason::Exited, code: Some(7), signal: None, message: None });
    assert_eq!((done.stdout_bytes, done.stderr_bytes, done.truncated), (4, 4, false));
    assert!(done.end_ns > done.start_ns && done.end_ns - done.start_ns < 10_000_000_000);
    assert_eq!((done.leftovers, done.survivors.len(), done.write_error), (0, 0, None));
    assert!(done.utc_start.ends_with('Z') && done.launch_context.uid.is_some());
}

#[test]
fn a_signal() {
    let done = Run::sh("kill -SEGV $$").finish();
    assert_eq!((done.ended.reason, done.ended.code, done.ended.signal), (Reason::Exited, None, Some(11)));
    // A real-time signal has no name in the library we use: the run must end nevertheless.
    let start = Instant::now();
    let done = Run::sh("kill -40 $$").finish();
    assert_eq!((done.ended.reason, done.ended.code), (Reason::Exited, None));
    assert!(start.elapsed() < Duration::from_secs(10));
}

#[test]
fn the_time_is_over() {
    let mut run = Run::sh("sleep 60");
    run.spec.timeout_ms = 200;
    let done = run.finish();
    assert_eq!((done.ended.reason, done.ended.signal), (Reason::Timeout, Some(15)));
    assert!(done.end_ns - done.start_ns < 5_000_000_000);
    assert!(done.mapped.iter().any(|path| path.ends_with("/sleep")), "the last look before the end: {:?}", done.mapped);
}

#[test]
fn term_is_ignored_or_the_process_is_stopped() {
    for (script, ends) in [("trap '' TERM; while :; do sleep 0.05; done", 9), ("kill -STOP $$", 15)] {
        let mut run = Run::sh(script);
        run.spec.timeout_ms = 200;
        let done = run.finish();
        assert_eq!((done.ended.reason, done.ended.signal), (Reason::Timeout, Some(ends)), "{script}");
    }
}

#[test]
fn a_command_may_use_its_grace() {
    let mut run = Run::sh("trap 'echo saved > result; exit 3' TERM; while :; do sleep 0.02; done");
    run.spec.timeout_ms = 300;
    run.spec.grace_ms = 5000;
    let done = run.finish();
    assert_eq!((done.ended.reason, done.ended.code), (Reason::Timeout, Some(3)));
    assert!(run.work("result").exists());
}

#[test]
fn an_escaping_grandchild_is_ended_with_the_command() {
    let run = Run::sh(&format!("{ESCAPEE}; exit 4"));
    let start = Instant::now();
    let done = run.finish();
    assert_eq!((done.ended.reason, done.ended.code), (Reason::Exited, Some(4)));
    assert!(done.leftovers >= 1);
    assert!(done.survivors.is_empty());
    assert!(!runs(run.noted("escapee")));
    assert!(start.elapsed() < Duration::from_secs(10), "the escapee held standard output");
}

#[test]
fn an_escaping_grandchild_is_ended_at_the_time_out() {
    let mut run = Run::sh(&format!("trap '' TERM; {ESCAPEE}; while :; do sleep 0.05; done"));
    run.spec.timeout_ms = 1000;
    let done = run.finish();
    assert_eq!((done.ended.reason, done.ended.signal), (Reason::Timeout, Some(9)));
    assert!(!runs(run.noted("escapee")));
}

#[test]
fn a_tree_that_forks_all_the_time() {
    let mut run = Run::sh("trap '' TERM; f() { trap '' TERM; setsid sleep 50 & sleep 0.02; f & }; for i in 1 2 3 4; do f & done; sleep 50");
    run.spec.timeout_ms = 300;
    run.spec.grace_ms = 100;
    let done = run.finish();
    assert_eq!((done.ended.reason, done.survivors.len()), (Reason::Timeout, 0));
}

#[test]
fn a_cancel_and_no_hang_up() {
    let run = Run::sh("echo $$ > me; while :; do sleep 0.05; done");
    let agent = run.start();
    let child = run.noted("me");
    signal(agent.id(), "HUP");
    std::thread::sleep(Duration::from_millis(200));
    assert!(runs(child) && run.done().is_none());
    signal(agent.id(), "TERM");
    let done = run.wait(agent);
    assert_eq!((done.ended.reason, done.ended.signal), (Reason::Cancelled, Some(15)));
    assert!(!runs(child));
}

#[test]
fn a_second_cancel_ends_the_grace() {
    let mut run = Run::sh("trap '' TERM; echo $$ > me; while :; do sleep 0.05; done");
    run.spec.grace_ms = 15_000;
    let agent = run.start();
    run.noted("me");
    let start = Instant::now();
    signal(agent.id(), "INT");
    std::thread::sleep(Duration::from_millis(200));
    signal(agent.id(), "INT");
    let done = run.wait(agent);
    assert_eq!((done.ended.reason, done.ended.signal), (Reason::Cancelled, Some(9)));
    assert!(start.elapsed() < Duration::from_secs(5));
}

#[test]
fn a_spawn_that_fails_says_why() {
    let message = |run: &Run| {
        let done = run.finish();
        assert_eq!((done.ended.reason, done.ended.code, done.ended.signal), (Reason::SpawnFailed, None, None));
        done.ended.message.unwrap()
    };
    let text = message(&Run::new(&["./no-such-program"]));
    assert!(text.contains("work/./no-such-program") && text.contains("No such file"), "{text}");
    let text = message(&Run::new(&["no-such-program"]));
    assert!(text.contains("PATH"), "{text}");

    let run = Run::new(&["./script"]);
    fs::write(run.work("script"), "#!/no/such/interpreter\n").unwrap();
    let text = message(&run);
    assert!(text.contains("ermission"), "{text}");
    fs::set_permissions(run.work("script"), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let text = message(&run);
    assert!(text.contains("interpreter"), "{text}");
    // glibc hands such a file to /bin/sh, the musl of the static program does not.
    if cfg!(target_env = "musl") {
        fs::write(run.work("script"), b"\x7fELF\x01").unwrap();
        let text = message(&run);
        assert!(text.contains("no program for this CPU"), "{text}");
    }

    let mut run = Run::sh("true");
    run.spec.stdin = Some("missing.txt".to_owned());
    assert!(message(&run).contains("missing.txt"));
    run.spec.cwd = "/no/such/folder".to_owned();
    assert!(message(&run).contains("/no/such/folder"));
}

#[test]
fn the_environment_is_exact_and_so_are_stdin_and_signals() {
    let mut run = Run::new(&["env"]);
    let path = run.spec.env["PATH"].clone();
    run.spec.env.insert("LD_LIBRARY_PATH".to_owned(), "/a b:/ü='\"$x".to_owned());
    assert_eq!(run.finish().ended.code, Some(0));
    let text = run.read("stdout.txt");
    let mut lines: Vec<_> = text.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["LD_LIBRARY_PATH=/a b:/ü='\"$x".to_owned(), format!("PATH={path}")]);

    let mut run = Run::sh("cat; grep -E '^Sig(Blk|Ign)' /proc/self/status; readlink /proc/self/fd/*");
    fs::write(run.work("in.txt"), "input\n").unwrap();
    run.spec.stdin = Some("in.txt".to_owned());
    run.finish();
    let text = run.read("stdout.txt");
    assert!(text.starts_with("input\n"), "{text}");
    assert!(text.contains("SigBlk:\t0000000000000000"), "a blocked TERM would be inherited: {text}");
    let ignored = text.lines().find_map(|line| line.strip_prefix("SigIgn:\t")).unwrap();
    // The real-time signals above are as the caller had them, and so is HUP, which nohup ignores.
    assert_eq!(u64::from_str_radix(ignored, 16).unwrap() & 0x7fff_fffe, 0, "{text}");
    assert!(!text.contains("signalfd") && !text.contains("agent.pid"), "the agent's files leak: {text}");
}

#[test]
fn the_pid_files_tell_an_orphan() {
    let run = Run::sh("echo $$ > me; sleep 60");
    let mut agent = run.start();
    let child = run.noted("me");
    until("child.pid", || run.out("child.pid").exists() && run.read("child.pid").ends_with('\n'));
    let id: bench_agent::pidfile::ProcessId = run.read("agent.pid").parse().unwrap();
    assert_eq!(id.pid.cast_unsigned(), agent.id());
    assert!(id.is_alive());
    let noted: bench_agent::pidfile::ProcessId = run.read("child.pid").parse().unwrap();
    assert_eq!(noted.pid, child);

    // Two agents in one folder would mix their evidence.
    let (status, _) = common::end_of(run.start(), Duration::from_secs(5));
    assert_eq!(status.code(), Some(3));
    assert!(id.is_alive() && runs(child));

    // An agent that is killed leaves no evidence, but no command either.
    agent.kill().unwrap();
    agent.wait().unwrap();
    until("the command ends with its agent", || !runs(child));
    // The command's own children stay; they are in the group that child.pid names, whose id nobody can take while one of them lives.
    assert!(Command::new("kill").args(["-s", "KILL", "--", &format!("-{child}")]).status().unwrap().success());
    assert!(!id.is_alive());
    assert!(run.done().is_none());
}

#[test]
fn a_wrong_spec_is_refused() {
    let mut run = Run::sh("true");
    run.spec.timeout_ms = 0;
    let (status, _) = common::end_of(run.start(), Duration::from_secs(5));
    assert_eq!(status.code(), Some(2));
    assert!(!run.out("done.json").exists());
}
