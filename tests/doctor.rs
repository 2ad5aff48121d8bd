//! `bench devices` and `bench doctor`: with the real test phone (tests/device), with a scripted adb server for states that the real one can't
//! show, and without anything.

#![cfg(target_os = "linux")]

#[path = "device/harness.rs"]
mod harness;
mod support;

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::TcpListener,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use bench::device::{
    Content, Device, Placed,
    adb::{Adb, Address, Options, connect},
};
use harness::{Lab, PATIENCE, Phone, agent};
use serde_json::{Value, json};
use support::{Ran, bench, root, run, wait_until};

/// A port at which nobody listens: the lowest is the system's, and nothing uses it.
const NOBODY: &str = "1";

/// An adb server that answers what `answer` says, and never more.
fn server(answer: impl Fn(&str) -> Option<String> + Send + Sync + 'static) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let answer = std::sync::Arc::new(answer);
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let answer = answer.clone();
            thread::spawn(move || {
                let mut length = [0; 4];
                while stream.read_exact(&mut length).is_ok() {
                    let n = usize::from_str_radix(&String::from_utf8_lossy(&length), 16).unwrap_or(0);
                    let mut request = vec![0; n];
                    if stream.read_exact(&mut request).is_err() {
                        return;
                    }
                    let Some(text) = answer(&String::from_utf8_lossy(&request)) else { return };
                    let _ = stream.write_all(text.as_bytes());
                }
            });
        }
    });
    port
}

fn okay(text: &str) -> String {
    format!("OKAY{:04x}{text}", text.len())
}

fn findings(ran: &Ran) -> Vec<Value> {
    let value: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|e| panic!("{e}: {}", ran.stdout));
    value["findings"].as_array().unwrap().clone()
}

/// The findings of a check as `severity: what`.
fn of(findings: &[Value], check: &str) -> Vec<String> {
    let found = findings.iter().filter(|f| f["check"] == check);
    found.map(|f| format!("{}: {}", f["severity"].as_str().unwrap(), f["what"].as_str().unwrap())).collect()
}

#[track_caller]
fn says(findings: &[Value], check: &str, words: &str) {
    assert!(of(findings, check).iter().any(|f| f.contains(words)), "no {check} with {words:?}: {:#?}", of(findings, check));
}

fn port(lab: &Lab) -> String {
    let Address::Tcp(_, port) = &lab.adb.address else { panic!("TCP") };
    port.to_string()
}

#[test]
fn a_list_of_devices_that_nobody_can_use_says_what_to_do() {
    let port = server(|request| match request {
        "host:devices" => {
            Some(okay("X1\tunauthorized\nX2\toffline\nX\u{1b}[2J\tno permissions (user is not in the plugdev group); see [x]\n"))
        }
        "host:devices-l" => Some(okay("")),
        "host:version" => Some(okay("0029")),
        _ => None,
    });
    let dir = tempfile::tempdir().unwrap();
    let list = run(bench(dir.path()).args(["devices", "-P", &port.to_string(), "--adb-server", "tcp:1"])).expect(5);
    for words in
        ["X1  not usable: unauthorized", "allow this computer", "X2  not usable: offline", "plugdev", "no adb server at tcp:127.0.0.1:1"]
    {
        assert!(list.stdout.contains(words), "{words}: {}", list.stdout);
    }
    assert!(!list.stdout.contains('\u{1b}'), "a device's words steer the terminal");
    let list = run(bench(dir.path()).args(["devices", "--format", "json", "-P", &port.to_string()])).expect(5);
    let list: Value = serde_json::from_str(&list.stdout).unwrap();
    let first = &list["devices"][0];
    assert_eq!((&first["serial"], &first["usable"], &first["reason"]), (&json!("X1"), &json!(false), &json!("unauthorized")));

    let found = findings(&run(bench(dir.path()).args(["doctor", "--format", "json", "-P", &port.to_string()])).expect(0));
    // 0x29 is 41.
    assert_eq!(of(&found, "adb-server"), [format!("ok: tcp:127.0.0.1:{port}: version 1.0.41, 3 devices")]);
    assert_eq!(of(&found, "device").len(), 4, "three that can't be used, and that there is no other: {found:#?}");

    let scenario = broken_bundle(dir.path(), "SM8650");
    let named = fs::read_to_string(&scenario).unwrap().replace("soc = \"SM8650\"", "serial = [\"X1\", \"X9\"]");
    fs::write(&scenario, named).unwrap();
    let mut doctor = bench(dir.path());
    doctor.arg("doctor").arg(&scenario).args(["--format", "json", "-P", &port.to_string()]);
    let found = findings(&run(&mut doctor).expect(5));
    // The others are not meant.
    assert_eq!(of(&found, "device"), ["error: unauthorized", "error: no adb server knows it"]);

    let clean = run(bench(dir.path()).args(["devices", "clean", "X1", "X9", "-P", &port.to_string()])).expect(5);
    clean.says(&["X9: no such device", "X1: unauthorized"]);
    run(bench(dir.path()).args(["devices", "clean"])).expect(2);
}

#[test]
fn the_shipped_scenario_without_any_file_tells_what_is_missing_and_how_to_get_it() {
    let dir = tempfile::tempdir().unwrap();
    let scenario = root().join("scenarios/8gen3.toml");
    let told = run(bench(dir.path()).arg("doctor").arg(&scenario).args(["-P", NOBODY])).expect(5).stdout;
    for words in [
        "aihub.qualcomm.com",
        "no usable device with SM8650",
        "bench runtimes install qairt --accept-licence",
        "bench runtimes build --ndk",
        "--soc_id=57 --dsp_arch=v75",
        "0 of 24 cells have what they need",
        "install one of its backends, and get one model for it: the warnings above say how",
    ] {
        assert!(told.contains(words), "{words}: {told}");
    }
    let last = told.trim_end().lines().last().unwrap();
    assert!(last.contains("errors, "), "the sum stands last: {last}");
    fs::write(dir.path().join("bad.toml"), "name = 3\n").unwrap();
    run(bench(dir.path()).args(["doctor", "bad.toml"])).expect(3);
    run(bench(dir.path()).args(["doctor", "a.toml", "b.toml"])).expect(2);
}

/// A Genie bundle in which everything is wrong that can be, and a scenario for it.
fn broken_bundle(dir: &Path, soc: &str) -> PathBuf {
    let model = dir.join("model");
    fs::create_dir(&model).unwrap();
    for part in 1..=2 {
        let text = format!("graph_ar128_cl4096_{part}_of_3\0v2.41.0.251128145156_191518\0debug=false;soc_type=SM8750;arch=79;\0");
        fs::write(model.join(format!("m_part_{part}_of_3.bin")), text).unwrap();
    }
    let config = json!({"dialog": {
        "context": {"size": 2048, "n-vocab": 64, "bos-token": 0, "eos-token": 1}, "tokenizer": {"path": "tokenizer.json"},
        "sampler": {"temp": 0.8},
        "engine": {"backend": {"type": "QnnHtp", "QnnHtp": {"version": 1, "spill-fill-bufsize": 0, "mmap-budget": 0, "use-mmap": true,
            "cpu-mask": "0xc000000000000000", "poll": true}},
            "model": {"binary": {"ctx-bins": ["m_part_1_of_3.bin", "m_part_2_of_3.bin", "m_part_3_of_3.bin"]}}}}});
    fs::write(model.join("genie_config.json"), config.to_string()).unwrap();
    fs::write(model.join("tokenizer.json"), "{}").unwrap();
    // 8.03 billion parameters in the shape of Llama 3.1.
    let geometry = "name = \"m\"\nlayers = 32\nhidden = 4096\nheads = 32\nkv-heads = 8\nhead-dim = 128\nffn = 14336\nvocab = 128256\n";
    fs::write(dir.join("m.toml"), geometry).unwrap();
    let text = format!(
        "name = \"broken\"\n[device]\nsoc = \"{soc}\"\n[models.m]\ncontext = 4096\nchunk = 128\ngeometry = \"m.toml\"\ntokenizer = \"model/tokenizer.json\"\n\
         [[artifact]]\nmodel = \"m\"\nquant = \"w4a16\"\nbackend = \"genie\"\nconfig = \"model/genie_config.json\"\nfiles = [\"model/*.bin\", \"model/*.json\"]\n\
         [matrix]\nbackend = \"genie\"\nmodel = \"m\"\nquant = \"w4a16\"\nprompt-tokens = 128\ngen-tokens = 8\n"
    );
    let path = dir.join("broken.toml");
    fs::write(&path, text).unwrap();
    path
}

/// The stand-in for Qualcomm's SDK (2.37) and the agent for the phone, as users have them.
fn equipped(dir: &Path) -> Command {
    let sdk = dir.join("sdk");
    if !sdk.exists() {
        let made = Command::new(root().join("tests/standins/android/make-sdk.sh")).arg(&sdk).output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let libexec = dir.join("libexec/x86_64-unknown-linux-musl");
        fs::create_dir_all(&libexec).unwrap();
        symlink(agent(), libexec.join("bench-agent")).unwrap();
    }
    let mut command = bench(dir);
    command.env("QAIRT_SDK_ROOT", sdk.join("qairt")).env("BENCH_LIBEXEC", dir.join("libexec"));
    command
}

#[test]
fn binaries_for_another_chip_and_sdk_are_found_without_a_device() {
    let dir = tempfile::tempdir().unwrap();
    let scenario = broken_bundle(dir.path(), "SM8650");
    let made = Command::new(root().join("tests/standins/android/make-sdk.sh")).arg(dir.path().join("sdk")).output().unwrap();
    assert!(made.status.success());
    let mut command = bench(dir.path());
    command.env("QAIRT_SDK_ROOT", dir.path().join("sdk/qairt")).arg("doctor").arg(&scenario).args(["--format", "json", "-P", NOBODY]);
    let found = findings(&run(&mut command).expect(5));
    says(&found, "binary-chip", "error: m_part_1_of_3.bin was made for SM8750 (Hexagon v79), SM8650 has Hexagon v75");
    says(&found, "binary-version", "error: made with QNN 2.41.0, the runtime is 2.37.0");
    says(&found, "parts", "error: of 3 parts of the model part 3 is missing");
    says(&found, "genie-files", "error: it names m_part_3_of_3.bin");
    says(&found, "genie-context", "error: context.size is 2048, the graphs were made for 4096");
    says(&found, "genie-spill-fill", "warning: spill-fill-bufsize is 0 with 3 context binaries");
    says(&found, "genie-sampler", "note: it samples at temperature 0.8");
    says(&found, "hexagon-libraries", "libQnnHtpV75Skel.so, libQnnHtpV75Stub.so");
    says(&found, "adsp-library-path", "bench sets ADSP_LIBRARY_PATH itself");
    // The same files for the chip that they were made for.
    fs::write(&scenario, fs::read_to_string(&scenario).unwrap().replace("SM8650", "SM8750")).unwrap();
    let found = findings(&run(&mut command).expect(5));
    assert_eq!(of(&found, "binary-chip"), ["ok: 2 context binaries for Hexagon v79"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_phone_in_trouble() {
    let Some(mut lab) = Lab::start().await else { return };
    let dir = tempfile::tempdir().unwrap();
    let scenario = broken_bundle(dir.path(), "SM8650");
    let port = port(&lab);
    let doctor = |more: &[&str]| {
        let mut command = equipped(dir.path());
        command.args(["doctor", "--format", "json", "-P", &port, "--adb-server", "tcp:1"]).args(more);
        run(&mut command)
    };
    let well = findings(&doctor(&[]).expect(0));
    says(&well, "chip", "ok: SM8650 (by ro.soc.model)");
    says(&well, "adb-server", "warning: no adb server at tcp:127.0.0.1:1");
    says(&well, "selinux", "ok: Enforcing");
    says(&well, "agent", "bench-agent");
    says(&well, "runtime", "ok: QAIRT 2.37.0.250724");
    // The phone's nodes as tests/device/phone.sh makes them.
    says(&well, "telemetry", "50 zones, 7 of them fast");
    says(&well, "telemetry", "thermal-cpufreq-7 max 4, cdsp_sw_hvx max 3");
    says(&well, "telemetry", "battery (Battery), usb (USB)");
    says(&well, "telemetry", "note: power          absent    ENOENT");
    assert_eq!(of(&well, "heat"), ["ok: Android does nothing against heat"]);
    assert!(of(&well, "battery")[0].starts_with("ok: 8"), "{:?}", of(&well, "battery"));

    lab.phone.tell("temp skin 55");
    lab.phone.tell("battery 9 Discharging");
    lab.phone.tell("full");
    lab.phone.tell(
        "log 4711 W auditd: type=1400 audit(0.0:7): avc:  denied  { read } for  name=\"adsprpc-smd\" scontext=u:r:shell:s0 tclass=chr_file permissive=0",
    );
    let ill = findings(&doctor(&[scenario.to_str().unwrap()]).expect(5));
    says(&ill, "heat", "warning: thermal status severe");
    says(&ill, "battery", "warning: 9 %");
    says(&ill, "selinux", "warning: Enforcing; in the log: ");
    says(&ill, "storage", "error: ");
    says(&ill, "memory-size", "m: 8.0 billion parameters want a phone of 16 GB");
    says(&ill, "genie-cpu-mask", "error: cpu-mask 0xc000000000000000 names core 62, 63, the device has");
    says(&ill, "binary-chip", "error: m_part_2_of_3.bin was made for SM8750");
    assert!(ill.iter().filter(|f| f["severity"] == "error").all(|f| f["fix"].is_string() && f["why"].is_string()));
    let there = lab.remote().sh("looking", "ls /data/local/tmp").await.unwrap();
    assert_eq!(there.trim(), "", "a check leaves nothing on the device");

    let other = fs::read_to_string(&scenario).unwrap().replace("SM8650", "SM8750");
    fs::write(&scenario, other).unwrap();
    let found = findings(&doctor(&[scenario.to_str().unwrap()]).expect(5));
    says(&found, "device", "note: its chip is SM8650, the scenario is for SM8750");
    says(&found, "device", "error: no usable device with SM8750");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_phone_that_hangs_does_not_hide_the_other() {
    let Some(mut lab) = Lab::start().await else { return };
    let other = Phone::start();
    connect::connect(&lab.server, &other.address).await.unwrap();
    lab.phone.tell("stop");
    let (dir, begin) = (tempfile::tempdir().unwrap(), Instant::now());
    let list = run(bench(dir.path()).args(["devices", "--format", "json", "-P", &port(&lab)])).expect(0);
    assert!(begin.elapsed() < Duration::from_secs(40), "{:?}", begin.elapsed());
    lab.phone.tell("cont");
    let list: Value = serde_json::from_str(&list.stdout).unwrap();
    let row = |serial: &str| list["devices"].as_array().unwrap().iter().find(|d| d["serial"] == serial).unwrap().clone();
    let (hung, good) = (row(&lab.phone.address), row(&other.address));
    assert_eq!((&hung["state"], &hung["usable"], &good["usable"]), (&json!("device"), &json!(false), &json!(true)));
    assert!(hung["reason"].as_str().unwrap().contains("did not answer"), "{hung}");
    assert_eq!((&good["chip"], &good["class"], &good["android"]), (&json!("SM8650"), &json!("emulator"), &json!("14")));
    assert!(good["storage_free_mb"].as_u64().is_some() && good["battery_percent"].as_u64().is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn staged_files_are_given_back_but_not_while_somebody_measures() {
    let Some(lab) = Lab::start().await else { return };
    let mut options = Options::new(agent());
    options.patience = PATIENCE;
    let device = Adb::open(lab.server.clone(), &lab.phone.address, options).await.unwrap();
    let file = lab.file("model.bin");
    fs::write(&file, vec![7; 300_000]).unwrap();
    assert!(device.try_lock().await.unwrap());
    let work = device.work_folder("w").await.unwrap();
    device.place(&work, &[Placed { name: "model.bin", content: Content::Host(&file), executable: false }]).await.unwrap();

    let (dir, port) = (tempfile::tempdir().unwrap(), port(&lab));
    let clean = || run(bench(dir.path()).args(["devices", "clean", "--all", "-P", &port]));
    clean().expect(5).says(&["a bench is measuring on it: nothing was removed"]);
    let list = async || lab.remote().sh("looking", "ls /data/local/tmp/bench/store /data/local/tmp/bench/work 2>&1; true").await.unwrap();
    assert!(list().await.contains(".ok"), "{}", list().await);
    drop(device);
    // The lock ends with the connection, and the device notices that in its own time.
    let until = Instant::now() + Duration::from_secs(10);
    let given = loop {
        let ran = clean();
        if ran.code() == 0 {
            break ran.stdout;
        }
        assert!(Instant::now() < until, "{ran:?}");
    };
    let bytes: u64 = given.split(": ").nth(1).and_then(|w| w.split(' ').next()?.parse().ok()).unwrap_or_else(|| panic!("{given}"));
    assert!((300_000..400_000).contains(&bytes), "{given}");
    assert!(!list().await.contains("w\n") && !list().await.contains(".ok"), "{}", list().await);
    assert!(
        run(bench(dir.path()).args(["devices", "clean", &lab.phone.address, "-P", &port])).expect(0).stdout.contains("0 bytes given back")
    );
}

/// `doctor --survive-unplug` while `play` does to the phone what the user is asked for.
fn unplugged(lab: &mut Lab, dir: &Path, play: impl Fn(&mut Phone, &str)) -> Vec<Value> {
    let mut command = equipped(dir);
    command.args(["doctor", "--survive-unplug", "--format", "json", "-P", &port(lab)]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let stdout = child.stdout.take().unwrap();
    let said = thread::spawn(move || std::io::read_to_string(stdout).unwrap());
    for line in BufReader::new(child.stderr.take().unwrap()).lines() {
        play(&mut lab.phone, &line.unwrap());
    }
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let value: Value = serde_json::from_str(&said.join().unwrap()).unwrap();
    value["findings"].as_array().unwrap().clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cable_that_is_pulled_is_survived_or_not() {
    let Some(mut lab) = Lab::start().await else { return };
    let dir = tempfile::tempdir().unwrap();
    let (port, serial) = (port(&lab), lab.phone.address.clone());
    // Two minutes for each step and 45 s for looking.
    let runs = || {
        let script = "cat /proc/[0-9]*/cmdline 2>/dev/null";
        let ps = Command::new("adb").args(["-P", &port, "-s", &serial, "shell", script]).output().unwrap();
        String::from_utf8_lossy(&ps.stdout).replace('\0', " ").contains("sleep 285")
    };
    let found = unplugged(&mut lab, dir.path(), |phone, line| {
        if line.contains("unplug the device now") {
            wait_until("the command runs", runs);
            phone.tell("unplug");
        } else if line.contains("plug it in again") {
            phone.tell("plug");
        }
    });
    assert_eq!(of(&found, "survive-unplug"), ["ok: the agent and its command went on while the cable was out"]);
    lab.ready().await;
    assert!(!runs(), "the command is left running");

    let found = unplugged(&mut lab, dir.path(), |phone, line| {
        if line.contains("unplug the device now") {
            phone.tell("r18");
        }
    });
    let said = of(&found, "survive-unplug");
    assert!(said.len() == 1 && said[0].starts_with("warning: what ran was ended with the connection"), "{said:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_sampling_costs_is_measured_and_nothing_is_left() {
    let Some(lab) = Lab::start().await else { return };
    let dir = tempfile::tempdir().unwrap();
    let mut doctor = equipped(dir.path());
    doctor.args(["doctor", "--observer", "--format", "json", "-P", &port(&lab)]);
    let ran = run(&mut doctor).expect(0);
    // Severity is the machine's business; that it is no error is ours.
    let said = of(&findings(&ran), "observer");
    assert!(said.len() == 1 && !said[0].starts_with("error") && said[0].contains("95 % interval"), "{said:?}");
    let value: Value = serde_json::from_str(&ran.stdout).unwrap();
    let cost = &value["observer"][&lab.phone.address];
    let figure = |name: &str| cost[name].as_f64().unwrap_or_else(|| panic!("{name}: {cost}"));
    let durations = |name: &str| cost[name].as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect::<Vec<_>>();
    let (off, on) = (durations("off_s"), durations("on_s"));
    assert_eq!((figure("pairs"), off.len(), on.len(), figure("rate_hz")), (10.0, 10, 10, 10.0), "{cost}");
    // About two seconds each; another program on this computer may take half of it.
    assert!(off.iter().chain(&on).all(|s| (0.5..12.0).contains(s)), "{cost}");
    assert!(figure("ratio_lo") <= figure("ratio") && figure("ratio") <= figure("ratio_hi"), "{cost}");
    assert!((0.5..2.0).contains(&figure("ratio")), "{cost}");
    // Ten rounds a second, give or take those at both ends.
    let rounds = figure("samples") + figure("overruns");
    let seconds: f64 = on.iter().sum();
    assert!((rounds / seconds - 10.0).abs() < 2.5, "{rounds} rounds in {seconds} s");
    assert!(figure("agent_cpu_pct") > figure("agent_cpu_off_pct") && figure("agent_cpu_pct") < 50.0, "{cost}");
    let there = lab.remote().sh("looking", "ls /data/local/tmp").await.unwrap();
    assert_eq!(there.trim(), "", "it leaves nothing on the device");
    let left: Vec<_> = fs::read_dir(dir.path().join("cache")).into_iter().flatten().flatten().map(|e| e.file_name()).collect();
    assert!(left.iter().all(|name| !name.to_string_lossy().starts_with("doctor")), "{left:?}");
}

#[test]
fn what_sampling_costs_on_this_computer_and_without_any_device() {
    let dir = tempfile::tempdir().unwrap();
    let nobody = findings(&run(bench(dir.path()).args(["doctor", "--observer", "--format", "json", "-P", NOBODY])).expect(5));
    assert_eq!(of(&nobody, "observer"), ["error: no device to measure it on"]);
    let scenario = support::Scenario { name: "here", ..support::Scenario::default() }.write(dir.path());
    let ran = run(bench(dir.path()).arg("doctor").arg(&scenario).args(["--observer", "--format", "json"])).expect(0);
    let value: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(value["observer"]["local"]["on_s"].as_array().map(Vec::len), Some(10), "{value:#}");
    assert!(of(&findings(&ran), "observer")[0].contains("of a core"));
}
