//! For this machine and for the phone, through `trait Device`.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::Path,
    time::{Duration, Instant},
};

use bench::device::{Content, Device, DeviceError, Placed, local::Local};
use bench_agent::spec::Reason;
use tokio::sync::watch;

use crate::{
    common::{HOSTILE, never, open, processes, sh, spec},
    harness::{Lab, agent},
};

/// Runs a test on this machine and on the phone.
macro_rules! on_both {
    ($($name:ident),* $(,)?) => { mod local { use super::*; $(
        #[tokio::test(flavor = "multi_thread")]
        async fn $name() {
            let dir = tempfile::tempdir().unwrap();
            let device = Local::new(agent().to_owned(), dir.path().join("device"), 0, 0);
            super::$name(&device, dir.path()).await;
        }
    )* } mod adb { use super::*; $(
        #[tokio::test(flavor = "multi_thread")]
        async fn $name() {
            let Some(lab) = Lab::start().await else { return };
            let device = open(&lab).await;
            super::$name(&device, lab.folder.path()).await;
            assert_eq!(processes(&lab.remote()).await, Vec::<String>::new(), "left on the phone");
        }
    )* } };
}
on_both!(
    files_go_there_and_back,
    no_name_leaves_the_work_folder,
    staging_keeps_content_and_permission,
    exit_codes_and_signals_are_told,
    both_streams_stand_apart_and_are_complete,
    words_and_environment_arrive_as_given,
    a_run_past_its_time_is_ended,
    a_cancelled_run_leaves_no_process,
    steps_of_one_folder_do_not_disturb_each_other,
    a_question_is_answered,
    a_question_past_its_time_is_an_error_and_the_device_is_there,
    one_round_of_readings,
);

async fn files_go_there_and_back<D: Device>(device: &D, dir: &Path) {
    let work = device.work_folder("w").await.unwrap();
    let bytes: Vec<u8> = (0..200_000_u32).map(|i| (i * 7 % 251) as u8).collect();
    let to = dir.join("back");
    for name in ["plain.bin", "sub/folder/file", HOSTILE, "-rf", " "] {
        device.write(&work, name, &bytes).await.unwrap();
        assert!(device.fetch(&work, name, &to, 1 << 30).await.unwrap(), "{name}");
        assert_eq!(fs::read(&to).unwrap(), bytes, "{name}");
    }
    device.write(&work, "plain.bin", b"new").await.unwrap();
    device.write(&work, "empty", b"").await.unwrap();
    assert!(device.fetch(&work, "empty", &to, 10).await.unwrap());
    assert_eq!(fs::read(&to).unwrap(), b"");
    assert!(device.fetch(&work, HOSTILE, &to, 1000).await.unwrap());
    assert_eq!(fs::read(&to).unwrap(), bytes[..1000], "no more than the limit");
    assert!(!device.fetch(&work, "missing", &to, 10).await.unwrap());
    assert!(!device.fetch(&work, "sub", &to, 10).await.unwrap(), "a folder is no file");
    let again = device.work_folder("w").await.unwrap();
    assert_eq!(again, work);
    assert!(!device.fetch(&work, "empty", &to, 10).await.unwrap(), "made anew, it is empty");
    device.remove(&work).await;
    assert!(!device.fetch(&work, "plain.bin", &to, 10).await.unwrap());
}

async fn no_name_leaves_the_work_folder<D: Device>(device: &D, dir: &Path) {
    let work = device.work_folder("w").await.unwrap();
    let host = dir.join("file");
    fs::write(&host, "x").unwrap();
    for name in ["../x", "/tmp/x", "a/../../x", "", ".."] {
        assert!(device.write(&work, name, b"x").await.is_err(), "{name}");
        assert!(device.stage(&host, &work, name).await.is_err(), "{name}");
        assert!(device.fetch(&work, name, &dir.join("y"), 1).await.is_err(), "{name}");
    }
    // A link that a program left behind is not followed.
    sh(device, &work, &dir.join("out"), "ln -s /proc/version link").await;
    assert!(!device.fetch(&work, "link", &dir.join("y"), 1000).await.unwrap());
}

async fn staging_keeps_content_and_permission<D: Device>(device: &D, dir: &Path) {
    let work = device.work_folder("w").await.unwrap();
    let (data, program) = (dir.join("data"), dir.join("program"));
    fs::write(&data, vec![7; 3_000_000]).unwrap();
    fs::write(&program, "#!/bin/sh\necho ran $1\n").unwrap();
    // An archive may have lost the permission: who places a file says what it is.
    fs::set_permissions(&program, fs::Permissions::from_mode(0o644)).unwrap();
    device.stage(&data, &work, "models/a b.bin").await.unwrap();
    device.stage(&data, &work, "same content").await.unwrap();
    for _ in 0..2 {
        device.place(&work, &[Placed { name: "tool", content: Content::Host(&program), executable: true }]).await.unwrap();
    }
    let out = dir.join("out");
    let done = device.run(&spec(&work, &out, &["./tool", "well"]), never()).await.unwrap();
    assert_eq!(done.ended.code, Some(0), "{:?}", done.ended);
    assert_eq!(fs::read_to_string(out.join("stdout.txt")).unwrap(), "ran well\n");
    let to = dir.join("back");
    for name in ["models/a b.bin", "same content"] {
        let done = sh(device, &work, &out, &format!("cat '{name}' > copy; [ ! -x '{name}' ]")).await;
        assert_eq!(done.ended.code, Some(0));
        assert!(device.fetch(&work, "copy", &to, 1 << 30).await.unwrap());
        assert_eq!(fs::read(&to).unwrap(), vec![7; 3_000_000]);
    }
}

async fn exit_codes_and_signals_are_told<D: Device>(device: &D, dir: &Path) {
    let work = device.work_folder("w").await.unwrap();
    for code in [0, 3, 255] {
        let done = sh(device, &work, &dir.join("out"), &format!("exit {code}")).await;
        assert_eq!((done.ended.reason, done.ended.code, done.ended.signal), (Reason::Exited, Some(code), None));
    }
    let done = sh(device, &work, &dir.join("out"), "kill -9 $$").await;
    assert_eq!((done.ended.code, done.ended.signal), (None, Some(9)));
    let done = device.run(&spec(&work, &dir.join("out"), &["./no-such-program"]), never()).await.unwrap();
    assert_eq!(done.ended.reason, Reason::SpawnFailed);
}

async fn both_streams_stand_apart_and_are_complete<D: Device>(device: &D, dir: &Path) {
    let work = device.work_folder("w").await.unwrap();
    let out = dir.join("out");
    let mut spec = spec(&work, &out, &["/bin/sh", "-c", "head -c 50000000 /dev/zero; printf '\\377\\000\\r\\n' >&2; echo end"]);
    spec.max_output_bytes = 100 << 20;
    let done = device.run(&spec, never()).await.unwrap();
    assert_eq!((done.stdout_bytes, done.truncated), (50_000_004, false));
    let stdout = fs::read(out.join("stdout.txt")).unwrap();
    assert!(stdout.len() == 50_000_004 && stdout[..50_000_000].iter().all(|b| *b == 0) && stdout.ends_with(b"end\n"));
    assert_eq!(fs::read(out.join("stderr.txt")).unwrap(), b"\xff\0\r\n");
}

async fn words_and_environment_arrive_as_given<D: Device>(device: &D, dir: &Path) {
    let work = device.work_folder("it's $a work; folder").await.unwrap();
    let out = dir.join("out");
    let mut spec = spec(&work, &out, &["/bin/sh", "-c", "printf '%s|%s|%s' \"$1\" \"$V\" \"$(pwd)\"", "sh", HOSTILE]);
    spec.env.insert("V".to_owned(), HOSTILE.to_owned());
    device.run(&spec, never()).await.unwrap();
    assert_eq!(fs::read_to_string(out.join("stdout.txt")).unwrap(), format!("{HOSTILE}|{HOSTILE}|{work}"));
    device.remove(&work).await;
}

async fn a_run_past_its_time_is_ended<D: Device>(device: &D, dir: &Path) {
    let work = device.work_folder("w").await.unwrap();
    let mut spec = spec(&work, &dir.join("out"), &["/bin/sh", "-c", "trap '' TERM; sleep 4242 & sleep 4242"]);
    spec.timeout_ms = 600;
    let start = Instant::now();
    let done = device.run(&spec, never()).await.unwrap();
    assert_eq!((done.ended.reason, done.ended.signal), (Reason::Timeout, Some(9)));
    assert!(start.elapsed() < Duration::from_secs(20));
    assert!(!all_processes(device, &work, dir).await.contains("4242"));
}

async fn a_cancelled_run_leaves_no_process<D: Device>(device: &D, dir: &Path) {
    let work = device.work_folder("w").await.unwrap();
    let spec = spec(&work, &dir.join("out"), &["/bin/sh", "-c", "setsid sleep 4343 & (sleep 4343 &) ; sleep 4343"]);
    let (tell, cancel) = watch::channel(false);
    let run = device.run(&spec, cancel);
    let later = async {
        tokio::time::sleep(Duration::from_millis(1500)).await;
        tell.send(true).unwrap();
        Instant::now()
    };
    let (done, asked) = tokio::join!(run, later);
    assert_eq!(done.unwrap().ended.reason, Reason::Cancelled);
    assert!(asked.elapsed() < Duration::from_secs(10), "{:?}", asked.elapsed());
    assert!(!all_processes(device, &work, dir).await.contains("4343"));
}

/// The command lines of every process there, as a run sees them.
async fn all_processes<D: Device>(device: &D, work: &str, dir: &Path) -> String {
    sh(device, work, &dir.join("ps"), "cat /proc/[0-9]*/cmdline 2>/dev/null; true").await;
    String::from_utf8_lossy(&fs::read(dir.join("ps/stdout.txt")).unwrap()).replace('\0', " ")
}

async fn steps_of_one_folder_do_not_disturb_each_other<D: Device>(device: &D, dir: &Path) {
    let work = device.work_folder("w").await.unwrap();
    sh(device, &work, &dir.join("one"), "echo 1; echo kept > file").await;
    sh(device, &work, &dir.join("two"), "cat file").await;
    assert_eq!(fs::read_to_string(dir.join("one/stdout.txt")).unwrap(), "1\n");
    assert_eq!(fs::read_to_string(dir.join("two/stdout.txt")).unwrap(), "kept\n");
    for step in ["one", "two"] {
        for file in ["spec.json", "done.json", "agent.pid"] {
            assert!(dir.join(step).join(file).is_file(), "{step}/{file}");
        }
    }
}

fn words(argv: &[&str]) -> Vec<String> {
    argv.iter().map(|a| (*a).to_owned()).collect()
}

async fn a_question_is_answered<D: Device>(device: &D, _: &Path) {
    let limit = Duration::from_secs(20);
    let said = device.ask(&words(&["printf", "%s|%s", HOSTILE, "-n $(id)"]), limit).await.unwrap();
    assert_eq!((said.code, said.text()), (Some(0), format!("{HOSTILE}|-n $(id)")));
    let said = device.ask(&words(&["sh", "-c", "cat; echo out; echo err >&2; exit 7"]), limit).await.unwrap();
    assert_eq!((said.code, &said.stdout[..], &said.stderr[..]), (Some(7), &b"out\n"[..], &b"err\n"[..]), "nobody types anything");
    let missing = device.ask(&words(&["no-such-program"]), limit).await.unwrap();
    assert_eq!(missing.code, Some(127), "{missing:?}");
    assert!(missing.words().contains("no-such-program"), "{missing:?}");
    let denied = device.ask(&words(&["/proc/version"]), limit).await.unwrap();
    assert_eq!(denied.code, Some(126), "{denied:?}");
}

async fn a_question_past_its_time_is_an_error_and_the_device_is_there<D: Device>(device: &D, _: &Path) {
    let start = Instant::now();
    let late = device.ask(&words(&["sh", "-c", "exec sleep 60"]), Duration::from_millis(500)).await;
    assert!(matches!(&late, Err(DeviceError::Slow { command, .. }) if command.contains("sleep 60")), "{late:?}");
    assert!(!late.unwrap_err().is_lost() && start.elapsed() < Duration::from_secs(15), "{:?}", start.elapsed());
    assert!(device.ask(&words(&["true"]), Duration::from_secs(20)).await.unwrap().ok());
    let endless = device.ask(&words(&["cat", "/dev/zero"]), Duration::from_mins(1)).await;
    assert!(endless.is_err_and(|e| !e.is_lost() && !matches!(e, DeviceError::Slow { .. })));
}

async fn one_round_of_readings<D: Device>(device: &D, _: &Path) {
    let readings = device.sense().await.unwrap();
    let memory = readings.iter().find(|r| (r.source.as_str(), r.name.as_str()) == ("meminfo", "mem_available_kb")).expect("meminfo");
    // The phone is in a namespace of this machine: its memory is this one's.
    let here = fs::read_to_string("/proc/meminfo").unwrap();
    let here: f64 = here.lines().find_map(|l| l.strip_prefix("MemAvailable:")?.split_whitespace().next()?.parse().ok()).unwrap();
    assert!((memory.value / here - 1.0).abs() < 0.5, "{memory:?} and {here}");
    assert!(memory.t_ns > 0 && memory.unit == "kB");
    assert!(readings.iter().any(|r| r.source == "cpu" && r.name == "busy_pct" && (0.0..=100.0).contains(&r.value)), "{readings:?}");
}
