//! One step of a launch: the agent's specification, and what the step left behind.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use bench_agent::spec::{Done, Reason, Spec, VERSION, Watch};
use bench_backend_api::{Captured, DeviceFacts, EVENTS_ENV, Ended, Evidence, Installed, Invocation, Program};

/// Bytes kept of each output stream and of every output file.
pub const OUTPUT_LIMIT: u64 = 64 << 20;

/// Bytes that the events file may have: 150,000 tokens of a launch. A runner that writes more is ended.
pub const EVENTS_LIMIT: u64 = 16 << 20;

/// Time between TERM and KILL.
const GRACE: Duration = Duration::from_secs(3);

/// Logical name of the events file.
pub const EVENTS: &str = "events.jsonl";

/// Where a device that is another machine has its tools: Android's folders, then those of a board's Linux.
pub const REMOTE_PATH: &str = "/system/bin:/vendor/bin:/usr/bin:/bin";

/// Exact command line of an invocation.
pub fn argv(invocation: &Invocation, installed: &Installed, work: &str) -> Vec<String> {
    let program = match &invocation.program {
        Program::Need(need) => installed.path(need).to_owned(),
        Program::Path(path) => path.clone(),
        Program::Staged(name) => format!("{work}/{name}"),
    };
    [program].into_iter().chain(invocation.args.iter().cloned()).collect()
}

/// Specification of one step. The environment is complete: nothing of the user's shell reaches a measurement.
pub fn spec(
    argv: Vec<String>,
    invocation: &Invocation,
    device: &DeviceFacts,
    (work, out): (&str, &Path),
    timeout: Duration,
    rate_hz: f64,
) -> Spec {
    let path = if device.remote { REMOTE_PATH.to_owned() } else { std::env::var("PATH").unwrap_or_else(|_| "/usr/bin:/bin".to_owned()) };
    let mut env: BTreeMap<String, String> = [
        ("PATH", path),
        ("HOME", work.to_owned()),
        ("TMPDIR", work.to_owned()),
        ("LANG", "C.UTF-8".to_owned()),
        (EVENTS_ENV, EVENTS.to_owned()),
    ]
    .into_iter()
    .map(|(k, v)| (k.to_owned(), v))
    .collect();
    env.extend(invocation.env.clone());
    Spec {
        v: VERSION,
        argv,
        env,
        cwd: work.to_owned(),
        stdin: None,
        out_dir: out.to_string_lossy().into_owned(),
        timeout_ms: timeout.as_millis() as u64,
        grace_ms: GRACE.as_millis() as u64,
        rate_hz,
        max_output_bytes: OUTPUT_LIMIT,
        watch: vec![Watch { path: EVENTS.to_owned(), max_bytes: EVENTS_LIMIT }],
        phase_file: Some(EVENTS.to_owned()),
        compact_ms: 0,
        window_ms: 0,
        trip: Vec::new(),
        load: None,
    }
}

/// How a step ended.
pub fn ended(done: &Done) -> Ended {
    Ended {
        reason: reason(done.ended.reason).to_owned(),
        code: done.ended.code,
        signal: done.ended.signal,
        message: done.ended.message.clone(),
        window_ns: Some((done.start_ns, done.end_ns)),
    }
}

/// Reads the captured files of a finished step.
pub fn captured(dir: &Path, files: &[String], done: &Done) -> Captured {
    let mut captured = Captured {
        ended: ended(done),
        evidence: Evidence { mapped: done.mapped.clone(), device_nodes: done.device_nodes.clone() },
        ..Captured::default()
    };
    for name in ["stdout.txt", "stderr.txt"].into_iter().map(str::to_owned).chain(files.iter().cloned()) {
        if let Ok(bytes) = fs::read(dir.join(kept(&name))) {
            captured.files.insert(name, bytes);
        }
    }
    captured
}

/// What is there of a step whose end nobody noted.
pub fn unended(dir: &Path, files: &[String]) -> Captured {
    let mut captured = Captured::default();
    for name in ["stdout.txt", "stderr.txt"].into_iter().map(str::to_owned).chain(files.iter().cloned()) {
        if let Ok(bytes) = fs::read(dir.join(kept(&name))) {
            captured.files.insert(name, bytes);
        }
    }
    captured
}

/// Output files of which more was there than is kept, in words; each was fetched up to one byte more than [`OUTPUT_LIMIT`].
pub fn cut(dir: &Path, files: &[String]) -> Vec<String> {
    let long = |name: &&String| fs::metadata(dir.join(kept(name))).is_ok_and(|meta| meta.len() > OUTPUT_LIMIT);
    let words = |name: &String| format!("{name} was cut: it has more than {} MB", OUTPUT_LIMIT >> 20);
    files.iter().filter(long).map(words).collect()
}

/// Where a fetched file is kept in the launch's folder: flat, so that no name of a tool can lead out of it.
pub fn kept(name: &str) -> PathBuf {
    PathBuf::from(name.replace('/', "__"))
}

const fn reason(reason: Reason) -> &'static str {
    match reason {
        Reason::Exited => "exited",
        Reason::Timeout => "timeout",
        Reason::OutputLimit => "output-limit",
        Reason::Cancelled => "cancelled",
        Reason::SpawnFailed => "spawn-failed",
        Reason::ThermalTrip => "thermal-trip",
    }
}

/// What Android says to a task profile, in the work folder.
pub const TASK_PROFILE: &str = "task-profile.txt";
/// The place of the program itself in a command line of [`profiled`].
const PROFILED: usize = 5;

/// A command line that takes a task profile before it becomes the program: the profile is the process's own, so that nothing is to be put back.
pub fn profiled(profile: &str, device: &DeviceFacts, argv: Vec<String>) -> Vec<String> {
    let shell = if device.os == "android" { "/system/bin/sh" } else { "/bin/sh" };
    let script = format!("settaskprofile $$ \"$1\" > {TASK_PROFILE} 2>&1; shift; exec \"$@\"");
    [shell, "-c", &script, "sh", profile].into_iter().map(str::to_owned).chain(argv).collect()
}

/// The program of a command line, whatever it was wrapped in.
pub fn program(argv: &[String]) -> &str {
    let wrapped = argv.get(2).is_some_and(|script| script.starts_with("settaskprofile "));
    argv.get(if wrapped { PROFILED } else { 0 }).map_or("", String::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn a_profile_is_taken_before_the_program_and_the_program_is_still_found() {
        let argv = ["./tool", "it's", "", "-c"].map(str::to_owned).to_vec();
        let device = crate::device::phone_facts(0, 0);
        let wrapped = profiled("MaxPerformance", &device, argv.clone());
        assert_eq!((program(&wrapped), program(&argv), program(&[])), ("./tool", "./tool", ""));
        // This machine has no such tool: the words are kept, and the program runs with its own arguments all the same.
        let dir = tempfile::tempdir().unwrap();
        let mut here = profiled("MaxPerformance", &device, ["printf", "%s|", "it's", "", "-c"].map(str::to_owned).to_vec());
        "/bin/sh".clone_into(&mut here[0]);
        let ran = std::process::Command::new(&here[0]).args(&here[1..]).current_dir(dir.path()).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&ran.stdout), "it's||-c|");
        let said = fs::read_to_string(dir.path().join(TASK_PROFILE)).unwrap();
        assert!(said.contains("settaskprofile") && !said.contains("successfully"), "{said}");
    }

    #[test]
    fn only_an_output_that_has_more_than_is_kept_was_cut() {
        let dir = tempfile::tempdir().unwrap();
        for (name, bytes) in [("whole.raw", OUTPUT_LIMIT), ("a__long.raw", OUTPUT_LIMIT + 1)] {
            fs::File::create(dir.path().join(name)).unwrap().set_len(bytes).unwrap();
        }
        let files = ["whole.raw", "a/long.raw", "none"].map(str::to_owned);
        assert_eq!(cut(dir.path(), &files), ["a/long.raw was cut: it has more than 64 MB"]);
    }
}
