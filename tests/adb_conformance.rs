//! What a device must do, asked of this machine and of the real adbd behind the real adb server (tests/device). The first half runs for both
//! through `trait Device`; the second is about ADB alone: its protocol, and what happens when a device or a server goes away.

#![cfg(target_os = "linux")]

#[path = "device/harness.rs"]
mod harness;

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{Read, Write},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use bench::device::{
    Device, Stated,
    adb::{
        Adb, AdbError, Address, Facts, Options, Server,
        remote::{Patience, Remote},
        shell::{Limits, line},
        sync::Over,
    },
    identify,
    local::Local,
};
use bench_agent::spec::{Done, Reason, Spec};
use harness::{Adbd, Lab, PATIENCE, agent, expect_lost};
use tokio::sync::watch;

// ---- the two devices ------------------------------------------------------------------------------------------------------------

async fn open(lab: &Lab) -> Adb {
    let mut options = Options::new(agent());
    options.patience = PATIENCE;
    options.reconnect = Duration::from_secs(40);
    Adb::open(lab.server.clone(), &lab.phone.address, options).await.expect("the phone answers")
}

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
);

/// What runs on the phone besides adbd, by its command line.
async fn processes(remote: &Remote) -> Vec<String> {
    let script =
        "for p in /proc/[0-9]*; do c=$(tr '\\0' ' ' < $p/cmdline) && [ -n \"$c\" ] && echo \"${p#/proc/} $c\"; done 2>/dev/null; true";
    let said = remote.sh("processes", script).await.expect("ps");
    let ours = |l: &&str| !l.starts_with("1 ") && !l.contains("adbd") && !l.contains("for p in /proc") && !l.contains("tr \\0");
    said.lines().filter(ours).map(str::to_owned).collect()
}

fn never() -> watch::Receiver<bool> {
    watch::channel(false).1
}

fn spec(work: &str, out: &Path, argv: &[&str]) -> Spec {
    Spec {
        v: 1,
        argv: argv.iter().map(|a| (*a).to_owned()).collect(),
        env: BTreeMap::from([("PATH".to_owned(), "/system/bin:/usr/bin:/bin".to_owned())]),
        cwd: work.to_owned(),
        stdin: None,
        out_dir: out.to_str().unwrap().to_owned(),
        timeout_ms: 60_000,
        grace_ms: 500,
        rate_hz: 0.0,
        max_output_bytes: 1 << 20,
        watch: Vec::new(),
        phase_file: None,
    }
}

async fn sh<D: Device>(device: &D, work: &str, out: &Path, script: &str) -> Done {
    device.run(&spec(work, out, &["/bin/sh", "-c", script]), never()).await.expect(script)
}

// ---- for both -------------------------------------------------------------------------------------------------------------------

const HOSTILE: &str = "it's $HOME `id`; rm -rf \"x\" & \\ * ünïcödé 模型\n2nd line -n";

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
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    device.stage(&data, &work, "models/a b.bin").await.unwrap();
    device.stage(&data, &work, "same content").await.unwrap();
    device.stage(&program, &work, "tool").await.unwrap();
    device.stage(&program, &work, "tool").await.unwrap();
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

// ---- shell and files over ADB ---------------------------------------------------------------------------------------------------

fn long() -> Limits {
    Limits { time: Duration::from_mins(1), output: 100 << 20 }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shell_command_tells_its_status_and_both_streams() {
    let Some(lab) = Lab::start().await else { return };
    let remote = lab.remote();
    for (script, status) in [("true", 0), ("exit 3", 3), ("exit 255", 255), ("kill -9 $$", 137), ("no-such-command", 127)] {
        assert_eq!(remote.exec(script, long()).await.unwrap().status, status, "{script}");
    }
    let both = remote.exec("printf 'a\\377\\000\\r\\n'; printf b >&2; exit 7", long()).await.unwrap();
    assert_eq!((both.status, &both.stdout[..], &both.stderr[..], both.merged), (7, &b"a\xff\0\r\n"[..], &b"b"[..], false));
    // Nobody will ever type anything.
    assert_eq!(remote.exec("cat; echo end", long()).await.unwrap().text(), "end\n");
    let start = Instant::now();
    let big = remote.exec("head -c 50000000 /dev/zero", long()).await.unwrap();
    println!("50 MB of output in {:?}", start.elapsed());
    assert_eq!(big.stdout.len(), 50_000_000);
    let endless = remote.exec("cat /dev/zero", Limits { output: 1 << 20, ..long() }).await;
    assert!(matches!(endless, Err(AdbError::TooMuch { .. })), "{endless:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_old_daemon_tells_its_status_too() {
    let Some(lab) = Lab::start().await else { return };
    let old = lab.remote().assuming(&[]);
    for (script, status) in [("true", 0), ("exit 3", 3), ("kill -9 $$", 137)] {
        assert_eq!(old.exec(script, long()).await.unwrap().status, status, "{script}");
    }
    let both = old.exec("printf 'a\\377\\000\\r\\n'; printf b >&2; exit 7", long()).await.unwrap();
    assert_eq!((both.status, &both.stdout[..], both.merged), (7, &b"a\xff\0\r\nb"[..], true));
    let words = ["it's", "$HOME `id`", HOSTILE];
    let echoed = old.exec(&format!("printf '%s|' {}", line(words)), long()).await.unwrap();
    assert_eq!(echoed.text(), words.map(|w| format!("{w}|")).concat());
    let stat = old.stat("/system/build.prop").await.unwrap().unwrap();
    assert!(stat.narrow && stat.is_file() && stat.size > 100);
    assert_eq!(old.stat("/no/such/file").await.unwrap(), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_words_survive_the_phones_shell() {
    let Some(lab) = Lab::start().await else { return };
    let remote = lab.remote();
    let mut words: Vec<String> = (1..128_u8).map(|b| format!("<{}>", char::from(b))).collect();
    words.extend([HOSTILE, "", " ", "''", "'\"'\"'", "\\'", "$(reboot)", "~", "{a,b}", "-n", "=x", "é\u{301}😀"].map(str::to_owned));
    let script = format!("printf '%s\\0' {}", line(words.iter().map(String::as_str)));
    let said = remote.exec(&script, long()).await.unwrap().text();
    assert_eq!(said.split_terminator('\0').collect::<Vec<_>>(), words);
    assert!(remote.exec("echo a\0b", long()).await.is_err(), "a NUL would cut the command");
    assert!(remote.exec(&"#".repeat(70_000), long()).await.is_err());
    assert_eq!(remote.exec(&format!("echo {}", "x".repeat(60_000)), long()).await.unwrap().stdout.len(), 60_001);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_past_its_time_is_an_error() {
    let Some(lab) = Lab::start().await else { return };
    let start = Instant::now();
    let late = lab.remote().exec("sleep 30", Limits { time: Duration::from_millis(500), ..long() }).await;
    assert!(matches!(late, Err(AdbError::TimedOut { .. })), "{late:?}");
    assert!(start.elapsed() < Duration::from_secs(3));
    // Dropped: the daemon ends the direct child, here the shell's own `sleep`.
    let dropped = lab.remote();
    let _ = tokio::time::timeout(Duration::from_millis(300), dropped.exec("exec sleep 31", long())).await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    let left = processes(&lab.remote()).await;
    assert!(!left.iter().any(|p| p.contains("sleep 31")), "{left:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn sizes_over_4_gib_are_right() {
    let Some(lab) = Lab::start().await else { return };
    let remote = lab.remote();
    let path = "/data/local/tmp/big file";
    remote.sh("make", "truncate -s 5000000000 '/data/local/tmp/big file'").await.unwrap();
    let stat = remote.stat(path).await.unwrap().unwrap();
    assert_eq!((stat.size, stat.narrow, stat.is_file()), (5_000_000_000, false, true));
    assert_eq!(remote.stat("/data/local/tmp/none").await.unwrap(), None);
    assert_eq!(remote.stat("/system/build.prop/x").await.unwrap(), None);
    let narrow = remote.clone().assuming(&["shell_v2"]).stat(path).await.unwrap().unwrap();
    assert_eq!((narrow.size, narrow.narrow), (705_032_704, true), "and the old form says that it is not to be trusted");
}

/// A file of the host with content that does not repeat.
fn big_file(path: &Path, megabytes: usize) {
    let mut file = File::create(path).unwrap();
    let mut x = 0x9e37_79b9_7f4a_7c15_u64;
    for _ in 0..megabytes {
        let mut block = Vec::with_capacity(1_000_000);
        for _ in 0..125_000 {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            block.extend(x.to_le_bytes());
        }
        file.write_all(&block).unwrap();
    }
}

fn same_content(one: &Path, other: &Path) -> bool {
    let (mut one, mut other) = (File::open(one).unwrap(), File::open(other).unwrap());
    let mut blocks = [vec![0; 1 << 20], vec![0; 1 << 20]];
    loop {
        let n = one.read(&mut blocks[0]).unwrap();
        if n == 0 {
            return other.read(&mut blocks[1]).unwrap() == 0;
        }
        if other.read_exact(&mut blocks[1][..n]).is_err() || blocks[0][..n] != blocks[1][..n] {
            return false;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_hundred_megabytes_there_and_back() {
    let Some(lab) = Lab::start().await else { return };
    let remote = lab.remote();
    let (from, to) = (lab.file("from"), lab.file("to"));
    big_file(&from, 200);
    let path = "/data/local/tmp/new/folder/a file.bin";
    let seen = std::sync::atomic::AtomicU64::new(0);
    let start = Instant::now();
    let sent = remote
        .push(&from, path, 0o640, &|done, all| {
            assert!(done <= all && all == 200_000_000);
            assert!(seen.swap(done, std::sync::atomic::Ordering::Relaxed) < done);
        })
        .await
        .unwrap();
    println!("push: {:.0} MB/s", 200.0 / start.elapsed().as_secs_f64());
    assert_eq!((sent, seen.into_inner()), (200_000_000, 200_000_000));
    let stat = remote.stat(path).await.unwrap().unwrap();
    assert_eq!((stat.mode, stat.size), (0o100_640, 200_000_000));
    let changed = fs::metadata(&from).unwrap().modified().unwrap().duration_since(std::time::UNIX_EPOCH).unwrap();
    assert_eq!(stat.mtime, i64::try_from(changed.as_secs()).unwrap());
    let start = Instant::now();
    remote.pull(path, &to, 1 << 30, Over::Fail, &|_, _| ()).await.unwrap();
    println!("pull: {:.0} MB/s", 200.0 / start.elapsed().as_secs_f64());
    assert!(same_content(&from, &to));

    // The refusals.
    let missing = remote.pull("/data/local/tmp/none", &lab.file("none"), 1, Over::Fail, &|_, _| ()).await;
    assert!(matches!(missing, Err(AdbError::Remote { .. })), "{missing:?}");
    let folder = remote.pull("/data/local/tmp", &lab.file("none"), 1, Over::Fail, &|_, _| ()).await;
    assert!(matches!(folder, Err(AdbError::Remote { .. })), "{folder:?}");
    let large = remote.pull(path, &lab.file("none"), 1000, Over::Fail, &|_, _| ()).await;
    assert!(matches!(large, Err(AdbError::TooMuch { .. })), "{large:?}");
    assert_eq!(remote.pull(path, &lab.file("head"), 1000, Over::Cut, &|_, _| ()).await.unwrap(), 1000);
    let denied = remote.push(&from, "/system/x", 0o644, &|_, _| ()).await.unwrap_err();
    assert!(denied.to_string().contains("Permission denied"), "{denied}");
    assert!(remote.push(&lab.file("absent"), path, 0o644, &|_, _| ()).await.is_err());
    assert_eq!(remote.stat(path).await.unwrap().unwrap().size, 200_000_000, "a failed push leaves the old file");
    let left: Vec<_> = fs::read_dir(lab.folder.path()).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    assert!(left.iter().all(|n| !n.contains("none") && !n.contains("part")), "{left:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_there_is_not_sent_again() {
    let Some(lab) = Lab::start().await else { return };
    let file = lab.file("model.bin");
    big_file(&file, 30);
    let sent = std::sync::Arc::new(std::sync::atomic::AtomicU64::new(0));
    let open = || async {
        let mut options = Options::new(agent());
        let count = sent.clone();
        options.progress = Some(std::sync::Arc::new(move |_: &str, done, _| count.store(done, std::sync::atomic::Ordering::Relaxed)));
        Adb::open(lab.server.clone(), &lab.phone.address, options).await.unwrap()
    };
    let stage = async |device: &Adb| {
        sent.store(0, std::sync::atomic::Ordering::Relaxed);
        let work = device.work_folder("w").await.unwrap();
        device.stage(&file, &work, "model.bin").await.unwrap();
        let hash = device.remote().sh("hash", &format!("sha256sum < {work}/model.bin")).await.unwrap();
        (sent.load(std::sync::atomic::Ordering::Relaxed), hash)
    };
    let device = open().await;
    let (first, hash) = stage(&device).await;
    assert_eq!(first, 30_000_000);
    assert_eq!(stage(&device).await, (0, hash.clone()), "this process knows");
    assert_eq!(stage(&open().await).await, (0, hash.clone()), "another one asks");
    // Spoilt on the device with its old size: found out by the time of change, and sent again.
    let spoil = "cd /data/local/tmp/bench/store; for f in *.ok; do f=${f%.ok}; chmod 644 $f; { printf x; tail -c +2 $f; } > t && cat t > $f; rm t; touch -d 2020-01-01T00:00:00 $f; done";
    device.remote().sh("spoil", spoil).await.unwrap();
    assert_eq!(stage(&open().await).await, (30_000_000, hash.clone()));
    // Only touched: the digest is computed there and nothing is sent.
    device.remote().sh("touch", "touch -d 2020-01-01T00:00:00 /data/local/tmp/bench/store/*").await.unwrap();
    assert_eq!(stage(&open().await).await, (0, hash));
}

/// Battery and clocks are what the phone's /sys was dressed with; Android's services it does not have.
fn state_of_the_phone(said: &Facts) {
    let battery = said.battery.as_ref().unwrap();
    assert!(battery.level_percent.is_some() && battery.status.is_some() && battery.source == "sysfs", "{battery:?}");
    assert!(
        (20.0..60.0).contains(&battery.temperature_c.unwrap()) && (3000.0..5000.0).contains(&battery.voltage_mv.unwrap()),
        "{battery:?}"
    );
    assert!(battery.current_ma.unwrap().abs() < 10_000.0 && !battery.current_unit_inferred, "{battery:?}");
    assert!(said.cpu.iter().all(|p| p.governor.as_deref() == Some("walt") && p.hardware_max_khz.unwrap() > 1_000_000), "{:?}", said.cpu);
    assert!(!said.cpu.is_empty() && said.memory_available_mb.unwrap() < said.memory_mb.unwrap());
    assert_eq!((said.thermal, said.screen.on(), said.airplane), (None, None, None));
    assert_eq!(said.build_type.as_deref(), Some("user"));
    let launch = &said.launch;
    assert!(
        launch.nice.is_some() && launch.oom_score_adj.is_some() && launch.affinity.is_some() && !launch.cgroup.is_empty(),
        "{launch:?}"
    );
    assert!(said.dsp.firmware.value().is_none(), "{:?}", said.dsp.firmware);
    let json = serde_json::to_string(said).unwrap();
    assert!(json.len() < 20_000, "{json}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_phone_says_what_it_is() {
    let Some(lab) = Lab::start().await else { return };
    let device = open(&lab).await;
    let said = device.said();
    assert_eq!(said.model.as_deref(), Some("bench test phone"));
    let soc = said.soc().unwrap();
    assert_eq!((soc.value.as_str(), soc.source), ("SM8650", "ro.soc.model"));
    assert_eq!((said.android.as_deref(), said.sdk, said.uid), (Some("14"), Some(34), Some(2000)));
    assert!(said.memory_mb.unwrap() > 500 && said.storage_free_mb.unwrap() > 100 && said.boot_id.is_some() && said.kernel.is_some());
    assert_eq!(said.arch.as_deref(), Some("x86_64"));
    let chip = identify(&said.chip, &Stated::default());
    assert_eq!(
        (chip.part.as_deref(), chip.soc_model, chip.htp_arch, chip.source),
        (Some("SM8650"), Some(57), Some(75), Some("ro.soc.model"))
    );
    state_of_the_phone(said);
    let features = lab.server.features(&lab.phone.address).await.unwrap();
    assert!(features.contains("shell_v2") && features.contains("stat_v2"), "{features:?}");
    let unknown = Remote::new(lab.server.clone(), "no such serial:1", PATIENCE);
    let error = expect_lost(unknown.sh("x", "true").await);
    assert!(error.to_string().contains("not found"), "{error}");
}

// ---- when something goes away ---------------------------------------------------------------------------------------------------

#[tokio::test(flavor = "multi_thread")]
async fn a_device_that_dies_in_a_command_is_lost_and_then_back() {
    let Some(mut lab) = Lab::start().await else { return };
    let remote = lab.remote();
    for way in ["kill", "reboot"] {
        let command = tokio::spawn({
            let remote = remote.clone();
            async move { remote.exec("echo partial; sleep 30; echo end", long()).await }
        });
        tokio::time::sleep(Duration::from_millis(400)).await;
        lab.phone.tell(way);
        let start = Instant::now();
        expect_lost(command.await.unwrap());
        println!("{way}: lost after {:?}", start.elapsed());
        assert!(start.elapsed() < Duration::from_secs(5));
        lab.ready().await;
        assert_eq!(remote.exec("exit 9", long()).await.unwrap().status, 9);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cut_push_leaves_no_file_and_a_cut_pull_none_here() {
    let Some(mut lab) = Lab::start().await else { return };
    let remote = lab.remote();
    let (from, to) = (lab.file("from"), lab.file("to"));
    // Sparse: it costs nothing and takes seconds to send.
    File::create(&from).unwrap().set_len(3_000_000_000).unwrap();
    let path = "/data/local/tmp/cut.bin";
    let push = tokio::spawn({
        let (remote, from) = (remote.clone(), from.clone());
        async move { remote.push(&from, path, 0o644, &|_, _| ()).await }
    });
    tokio::time::sleep(Duration::from_millis(700)).await;
    lab.phone.tell("kill");
    let start = Instant::now();
    expect_lost(push.await.unwrap());
    println!("push lost after {:?}", start.elapsed());
    lab.ready().await;
    assert_eq!(remote.stat(path).await.unwrap(), None, "nothing under the final name");
    assert!(remote.stat(&format!("{path}.part")).await.unwrap().is_some(), "the test did cut a push");

    remote.sh("make", &format!("rm -f {path}.part; truncate -s 3000000000 {path}")).await.unwrap();
    let pull = tokio::spawn({
        let (remote, to) = (remote.clone(), to.clone());
        async move { remote.pull(path, &to, u64::MAX, Over::Fail, &|_, _| ()).await }
    });
    tokio::time::sleep(Duration::from_millis(700)).await;
    lab.phone.tell("kill");
    let start = Instant::now();
    expect_lost(pull.await.unwrap());
    println!("pull lost after {:?}", start.elapsed());
    assert_eq!(fs::read_dir(lab.folder.path()).unwrap().count(), 1, "only the file to push");
    lab.ready().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_daemon_that_hangs_is_found_out_by_our_own_limits() {
    let Some(mut lab) = Lab::start().await else { return };
    let remote = lab.remote();
    let from = lab.file("from");
    File::create(&from).unwrap().set_len(1_000_000_000).unwrap();
    let push = tokio::spawn({
        let (remote, from) = (remote.clone(), from.clone());
        async move { remote.push(&from, "/data/local/tmp/x", 0o644, &|_, _| ()).await }
    });
    tokio::time::sleep(Duration::from_millis(150)).await;
    lab.phone.tell("stop");
    let start = Instant::now();
    let error = expect_lost(push.await.unwrap());
    assert!(matches!(error, AdbError::TimedOut { .. }), "{error}");
    let error = expect_lost(remote.sh("x", "true").await);
    assert!(matches!(error, AdbError::TimedOut { .. }), "{error}");
    println!("both found out after {:?}", start.elapsed());
    assert!(start.elapsed() < 5 * PATIENCE.answer);
    let state = lab.server.devices().await.unwrap().remove(0).state;
    println!("the server still says {state}");
    lab.phone.tell("cont");
    lab.ready().await;
}

/// Waits until the command of a run is there.
async fn started(lab: &Lab) {
    let until = Instant::now() + Duration::from_secs(30);
    let script = "cat /data/local/tmp/bench/work/w.out*/child.pid 2>/dev/null; true";
    while lab.remote().sh("looking for the run", script).await.unwrap().is_empty() {
        assert!(Instant::now() < until, "the run does not start");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// What a run of three seconds is exposed to, while it is on its way.
async fn disturbed(lab: &mut Lab, disturb: impl AsyncFnOnce(&mut Lab)) -> Result<(Done, PathBuf), bench::device::DeviceError> {
    let device = open(lab).await;
    let work = device.work_folder("w").await.unwrap();
    let out = lab.file("out");
    let spec = spec(&work, &out, &["/bin/sh", "-c", "echo start; sleep 3; echo end"]);
    let run = tokio::spawn(async move { device.run(&spec, never()).await });
    started(lab).await;
    disturb(lab).await;
    run.await.unwrap().map(|done| (done, out))
}

fn whole(done: &Done, out: &Path) {
    assert_eq!((done.ended.reason, done.ended.code), (Reason::Exited, Some(0)));
    assert_eq!(fs::read_to_string(out.join("stdout.txt")).unwrap(), "start\nend\n");
    assert!(out.join("done.json").is_file());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_survives_its_connection() {
    let Some(mut lab) = Lab::start().await else { return };
    // The daemon dies and comes back, the run lives on.
    let (done, out) = disturbed(&mut lab, async |lab| lab.phone.tell("kill")).await.unwrap();
    whole(&done, &out);
    // The same, and the run ends while nobody can see it.
    let away = async |lab: &mut Lab| {
        lab.phone.tell("down");
        tokio::time::sleep(Duration::from_secs(4)).await;
        lab.phone.tell("up");
    };
    let (done, out) = disturbed(&mut lab, away).await.unwrap();
    whole(&done, &out);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_survives_a_hung_daemon_and_an_unplugged_cable() {
    let Some(mut lab) = Lab::start().await else { return };
    let hang = async |lab: &mut Lab| {
        lab.phone.tell("stop");
        tokio::time::sleep(Duration::from_secs(4)).await;
        lab.phone.tell("cont");
    };
    let (done, out) = disturbed(&mut lab, hang).await.unwrap();
    whole(&done, &out);
    lab.ready().await;
    let unplug = async |lab: &mut Lab| {
        lab.phone.tell("unplug");
        tokio::time::sleep(Duration::from_secs(4)).await;
        lab.phone.tell("plug");
    };
    let (done, out) = disturbed(&mut lab, unplug).await.unwrap();
    whole(&done, &out);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_survives_the_server() {
    let Some(mut lab) = Lab::start().await else { return };
    let bench::device::adb::Address::Tcp(_, port) = lab.adb.address.clone() else { unreachable!() };
    let restart = async |lab: &mut Lab| {
        let old = std::mem::replace(&mut lab.adb, Adbd::start());
        drop(old);
        tokio::time::sleep(Duration::from_secs(1)).await;
        lab.adb = Adbd::start_at(port);
    };
    let (done, out) = disturbed(&mut lab, restart).await.unwrap();
    whole(&done, &out);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_android_ends_with_adbd_is_told_as_that() {
    let Some(mut lab) = Lab::start().await else { return };
    let error = disturbed(&mut lab, async |lab| lab.phone.tell("r18")).await.unwrap_err();
    assert!(error.to_string().contains("adbd is restarted") && !error.is_lost(), "{error}");
    let error = disturbed(&mut lab, async |lab| lab.phone.tell("reboot")).await.unwrap_err();
    assert!(error.to_string().contains("restarted during the run"), "{error}");
    lab.ready().await;
    assert_eq!(processes(&lab.remote()).await, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_device_that_is_gone_for_good_is_lost() {
    let Some(mut lab) = Lab::start().await else { return };
    let mut options = Options::new(agent());
    options.patience = PATIENCE;
    options.reconnect = Duration::from_secs(3);
    let device = Adb::open(lab.server.clone(), &lab.phone.address, options).await.unwrap();
    let work = device.work_folder("w").await.unwrap();
    let spec = spec(&work, &lab.file("out"), &["/bin/sh", "-c", "sleep 60"]);
    let run = tokio::spawn(async move { device.run(&spec, never()).await });
    started(&lab).await;
    lab.phone.tell("down");
    let start = Instant::now();
    let error = run.await.unwrap().unwrap_err();
    assert!(error.is_lost(), "{error}");
    assert!(start.elapsed() < Duration::from_secs(12));

    // The next contact ends what was left behind.
    lab.phone.tell("up");
    lab.ready().await;
    let device = open(&lab).await;
    assert_eq!(device.end_orphans(&[]).await.unwrap().len(), 2, "agent and command");
    assert_eq!(processes(&lab.remote()).await, Vec::<String>::new());
    assert_eq!(device.end_orphans(&[]).await.unwrap(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_overhead_of_a_repetition_is_small() {
    let Some(lab) = Lab::start().await else { return };
    let device = open(&lab).await;
    let file = lab.file("model.bin");
    big_file(&file, 1);
    let mut times = Vec::new();
    let mut requests = 0;
    for i in 0..6 {
        let (before, start) = (device.remote().requests(), Instant::now());
        let work = device.work_folder(&format!("w{i}")).await.unwrap();
        device.stage(&file, &work, "model.bin").await.unwrap();
        device.write(&work, "config.json", b"{}").await.unwrap();
        sh(&device, &work, &lab.file("out"), "true").await;
        device.fetch(&work, "events.jsonl", &lab.file("events"), 1 << 20).await.unwrap();
        device.remove(&work).await;
        times.push(start.elapsed());
        requests = device.remote().requests() - before;
    }
    times.remove(0);
    times.sort();
    println!("overhead of a repetition: median {:?}, {requests} connections", times[times.len() / 2]);
}

// ---- a server that can't be trusted: states and lies that the real daemon does not show --------------------------------------------

/// A server that answers each request with what `answer` gives, and ends the connection where that is `None`.
async fn fake(answer: impl Fn(&str) -> Option<Vec<u8>> + Send + Sync + 'static) -> Server {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let answer = std::sync::Arc::new(answer);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let answer = answer.clone();
            tokio::spawn(async move {
                let mut length = [0; 4];
                while stream.read_exact(&mut length).await.is_ok() {
                    let Ok(n) = usize::from_str_radix(&String::from_utf8_lossy(&length), 16) else { break };
                    let mut request = vec![0; n];
                    if stream.read_exact(&mut request).await.is_err() {
                        break;
                    }
                    let Some(bytes) = answer(&String::from_utf8_lossy(&request)) else { break };
                    if stream.write_all(&bytes).await.is_err() {
                        break;
                    }
                    // What follows a service is no request any more.
                    if !request.starts_with(b"host") {
                        let _ = stream.read(&mut [0; 4096]).await;
                        break;
                    }
                }
            });
        }
    });
    Server::reach(Address::Tcp("127.0.0.1".to_owned(), port)).await.unwrap()
}

fn said(status: &str, text: &str) -> Vec<u8> {
    format!("{status}{:04x}{text}", text.len()).into_bytes()
}

#[tokio::test]
async fn states_without_a_usable_device_have_words_and_a_remedy() {
    let server = fake(|request| {
        Some(match request {
            "host:devices" => said("OKAY", "a b\tunauthorized\nc\tno permissions (user is not in the plugdev group); see [x]\nd\tdevice\n"),
            "host:devices-l" => said("OKAY", "d                      device usb:1-1 transport_id:7\n"),
            r if r.starts_with("host-serial:") => said("OKAY", "shell_v2,stat_v2"),
            _ => said("FAIL", "device unauthorized.\nThis adb server's $ADB_VENDOR_KEYS is not set"),
        })
    })
    .await;
    let devices = server.devices().await.unwrap();
    assert_eq!(devices.iter().map(|d| d.serial.as_str()).collect::<Vec<_>>(), ["a b", "c", "d"]);
    assert!(devices[0].state.remedy().unwrap().contains("allow this computer"));
    assert!(devices[1].state.remedy().unwrap().contains("plugdev") && devices[1].state.to_string().contains("not in the plugdev"));
    assert_eq!((devices[2].state.remedy(), devices[2].details.as_str()), (None, "usb:1-1 transport_id:7"));
    let error = expect_lost(Remote::new(server, "a b", PATIENCE).sh("x", "true").await);
    assert!(error.to_string().contains("unauthorized"), "{error}");
}

#[tokio::test]
async fn lies_are_errors() {
    let okay = |rest: &[u8]| Some([b"OKAY", rest].concat());
    let lies: [(&str, &[u8]); 6] = [
        ("an unknown packet", b"\x09\x01\0\0\0x"),
        ("a packet longer than what comes", b"\x01\xff\xff\xff\xffabc"),
        ("an exit status of two bytes", b"\x03\x02\0\0\0\0\0"),
        ("half a head", b"\x01\x05"),
        ("nothing", b""),
        ("text", b"hello, I am no shell protocol at all, sorry"),
    ];
    for (lie, bytes) in lies {
        let bytes = bytes.to_vec();
        let server = fake(move |r| match r {
            r if r.starts_with("host-serial:") => Some(said("OKAY", "shell_v2,stat_v2")),
            r if r.starts_with("host:transport:") => okay(b""),
            _ => okay(&bytes),
        })
        .await;
        let remote = Remote::new(server, "liar", PATIENCE);
        let result = remote.exec("true", long()).await;
        assert!(result.is_err(), "{lie}: {result:?}");
        let result = remote.stat("/x").await;
        assert!(result.is_err(), "{lie}: {result:?}");
        let dir = tempfile::tempdir().unwrap();
        assert!(remote.pull("/x", &dir.path().join("x"), 100, Over::Fail, &|_, _| ()).await.is_err());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }
    for garbage in [&b"OKAYzzzz"[..], b"OKAY00", b"HTTP/1.1 400 Bad Request", b"FAILffffshort", b""] {
        let bytes = garbage.to_vec();
        let server = fake(move |_| Some(bytes.clone())).await;
        let result = Remote::new(server, "x", Patience { answer: Duration::from_millis(300), ..PATIENCE }).sh("x", "true").await;
        assert!(result.is_err(), "{garbage:?}: {result:?}");
    }
}

#[tokio::test]
async fn a_size_that_does_not_hold_is_an_error() {
    // 72 bytes of STA2: a regular file of 9 bytes; then RECV gives other contents.
    let mut stat = [0_u8; 72];
    stat[..4].copy_from_slice(b"STA2");
    stat[24..28].copy_from_slice(&0o100_644_u32.to_le_bytes());
    stat[40] = 9;
    let contents: [(&str, &[u8]); 4] = [
        ("short", b"DATA\x03\0\0\0abcDONE\0\0\0\0"),
        ("long", b"DATA\x0a\0\0\0abcdefghijDONE\0\0\0\0"),
        ("a block of 4 GB", b"DATA\xff\xff\xff\xffabc"),
        ("cut", b"DATA\x09\0\0\0abc"),
    ];
    for (what, content) in contents {
        let bytes = [b"OKAY", &stat[..], content].concat();
        let server = fake(move |r| match r {
            r if r.starts_with("host-serial:") => Some(said("OKAY", "shell_v2,stat_v2")),
            r if r.starts_with("host:transport:") => Some(b"OKAY".to_vec()),
            _ => Some(bytes.clone()),
        })
        .await;
        let dir = tempfile::tempdir().unwrap();
        let result = Remote::new(server, "liar", PATIENCE).pull("/x", &dir.path().join("x"), 100, Over::Fail, &|_, _| ()).await;
        assert!(result.is_err(), "{what}: {result:?}");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0, "{what}");
    }
}
