//! A machine with nothing on it: no cache, no Python, no network. Errors are clear and nothing is left half-made.

mod support;

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use serde_json::Value;
use support::{Scenario, bench, only_run, root, run, table, unshare, wait_until};

fn pc() -> PathBuf {
    root().join("scenarios/pc.toml")
}

/// `bench` with a PATH that holds nothing.
fn bare(dir: &Path) -> Command {
    let mut command = bench(dir);
    command.env("PATH", "/nonexistent");
    command
}

/// A script under a name in a folder of its own, to be put on PATH.
fn program(dir: &Path, name: &str, script: &str) -> PathBuf {
    let folder = dir.join("bin");
    fs::create_dir_all(&folder).unwrap();
    let path = folder.join(name);
    fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    folder
}

/// Files below a folder, without empty lock files.
fn files(folder: &Path) -> Vec<String> {
    let all = glob::glob(&format!("{}/**/*", folder.display())).unwrap().flatten();
    all.filter(|p| p.is_file() && fs::metadata(p).unwrap().len() > 0)
        .map(|p| p.strip_prefix(folder).unwrap().display().to_string())
        .collect()
}

#[test]
fn an_empty_cache_is_listed_with_the_remedies() {
    let dir = tempfile::tempdir().unwrap();
    let ran = run(bare(dir.path()).args(["runtimes", "list"])).expect(0);
    for words in [
        "genie",
        "ort-qnn",
        "mnn",
        "qnn",
        "missing",
        "bench runtimes install python",
        "QAIRT_SDK_ROOT",
        "bench runtimes install qairt --accept-licence",
    ] {
        assert!(ran.stdout.contains(words), "no {words:?} in {}", ran.stdout);
    }
    assert!(!ran.stdout.contains("ready"), "{}", ran.stdout);
    let list: Value = serde_json::from_str(&run(bare(dir.path()).args(["runtimes", "list", "--format", "json"])).expect(0).stdout).unwrap();
    for backend in ["genie", "ort-qnn", "mnn", "qnn"] {
        assert!(list["backends"][backend]["missing"]["remedy"].is_string(), "{list:#}");
    }
    assert!(!dir.path().join("cache").exists(), "listing makes nothing");
}

/// The model of pc.toml is made on the spot: what a fresh clone lacks is a backend.
#[test]
fn doctor_names_a_backend_where_no_model_is_missing() {
    let dir = tempfile::tempdir().unwrap();
    let told = run(bare(dir.path()).arg("doctor").arg(pc())).expect(5).stdout;
    let (_, cells) = told.split_once("0 of 24 cells have what they need").expect("the sum");
    assert!(cells.contains("do:  install one of its backends: the warnings above say how"), "{cells}");
    assert!(!told.contains("get one model"), "{told}");
}

#[test]
fn without_python_the_apt_line_is_named() {
    let dir = tempfile::tempdir().unwrap();
    for arguments in [
        vec!["run".to_owned(), pc().display().to_string(), "--yes".to_owned()],
        ["runtimes", "install", "python", "--yes"].map(str::to_owned).to_vec(),
    ] {
        run(bare(dir.path()).args(&arguments)).expect(5).says(&["no Python 3.11", "apt-get install python3 python3-venv"]);
    }
    // An old Python, and one without venv, are named as such.
    let path = program(dir.path(), "python3", "echo 3.8.1");
    run(bare(dir.path()).env("PATH", path).args(["runtimes", "install", "python", "--yes"]))
        .expect(5)
        .says(&["python3 is 3.8.1", "apt-get install"]);
    let path = program(dir.path(), "python3", "echo no module >&2; exit 1");
    run(bare(dir.path()).env("PATH", path).args(["runtimes", "install", "python", "--yes"]))
        .expect(5)
        .says(&["python3 has no venv", "apt-get install"]);
    assert!(!dir.path().join("results").exists(), "a run folder in which nothing was tried");
    assert_eq!(files(&dir.path().join("cache")), [""; 0]);
}

#[test]
fn without_consent_or_offline_nothing_is_fetched() {
    let dir = tempfile::tempdir().unwrap();
    let ran = run(bench(dir.path()).arg("run").arg(pc()).stdin(Stdio::null())).expect(5);
    // Size and licence before the download, and what to type.
    ran.says(&["MB", "licence", "--yes"]);
    run(bench(dir.path()).args(["runtimes", "install", "python"])).expect(5).says(&["--yes"]);
    assert!(!dir.path().join("results").exists());

    let ran = run(bench(dir.path()).arg("run").arg(pc()).args(["--offline", "--yes", "--no-report"])).expect(5);
    ran.says(&["bench runtimes install python"]);
    let cells = table(&only_run(&dir.path().join("results")), "cells.csv");
    assert_eq!(cells.len(), 24);
    assert!(cells.iter().all(|c| c["status"] == "skipped" && c["reason"].contains("missing")), "{cells:?}");
}

#[test]
fn a_program_that_needs_no_python_runs_on_a_bare_machine() {
    let dir = tempfile::tempdir().unwrap();
    // A runner in shell, with nothing but what the shell itself can do. Its clock is the uptime in hundredths of a second, which is
    // CLOCK_MONOTONIC where the machine never slept.
    let script = r#"{
        now() { read -r up rest < /proc/uptime; up=${up%.*}${up#*.}; }
        now; first=$up
        while [ "$up" -eq "$first" ]; do now; done
        t=$((up*10000000)); last=$((up+10))
        printf '{"v":1,"event":"load_begin","t_ns":%s}\n{"v":1,"event":"load_end","t_ns":%s,"unit":"cpu"}\n' $t $((t+1000))
        for q in 0 1 2; do
            printf '{"v":1,"event":"prompt","t_ns":%s,"query":%s,"tokens":16}\n' $((t+1000000+q*30000000)) $q
            for i in 0 1 2 3 4 5 6 7; do
                printf '{"v":1,"event":"token","t_ns":%s,"query":%s,"i":%s,"id":9}\n' $((t+11000000+q*30000000+i*2000000)) $q $i
            done
            printf '{"v":1,"event":"query_end","t_ns":%s,"query":%s,"finish":"length"}\n' $((t+25000000+q*30000000)) $q
        done
        printf '{"v":1,"event":"end","t_ns":%s}\n' $((t+90000000))
        while [ "$up" -lt "$last" ]; do now; done
    } > "$BENCH_EVENTS""#;
    let folder = program(dir.path(), "engine", script);
    let command = vec![folder.join("engine").display().to_string()];
    let scenario = Scenario { command, ..Scenario::default() }.write(dir.path());
    let mut command = bare(dir.path());
    command.arg("run").arg(&scenario);
    if let Some(wrapper) = unshare("-n") {
        // Without a network too.
        let mut inside = Command::new(format!("/usr/bin/{}", wrapper[0]));
        inside.args(&wrapper[1..]).arg(command.get_program()).args(command.get_args()).current_dir(dir.path()).stdin(Stdio::null());
        inside.env("PATH", "/nonexistent").env("BENCH_CACHE", dir.path().join("cache"));
        command = inside;
    }
    run(&mut command).expect(0);
    let cells = table(&only_run(&dir.path().join("results")), "cells.csv");
    assert_eq!((cells[0]["status"].as_str(), cells[0]["ttft_ms"].as_str(), cells[0]["decode_tok_s"].as_str()), ("ok", "10", "500"));
}

#[test]
fn without_a_network_an_install_fails_clearly_and_is_never_taken_for_whole() {
    let dir = tempfile::tempdir().unwrap();
    let cache = dir.path().join("cache");
    // Without a network namespace: an index that refuses every connection.
    let wrapper = unshare("-n").unwrap_or_else(|| ["env", "PIP_INDEX_URL=https://127.0.0.1:9/simple"].map(str::to_owned).to_vec());
    let started = bench(dir.path());
    let mut command = Command::new(&wrapper[0]);
    command.args(&wrapper[1..]).arg(started.get_program()).args(["run"]).arg(pc()).arg("--yes").current_dir(dir.path());
    command.env("BENCH_CACHE", &cache).stdin(Stdio::null());
    // Fewer tries than pip's five, and no local folder of packages; the answer is the same.
    command.env("PIP_RETRIES", "0").env("PIP_DEFAULT_TIMEOUT", "5").env_remove("PIP_FIND_LINKS");
    let ran = run(&mut command).expect(5);
    ran.says(&["pip install failed", "python-install.log", "nothing half-finished is used, run the same command again"]);
    assert!(!dir.path().join("results").exists(), "a run folder in which nothing was tried");
    // The half of an environment that venv made is there, and is missing all the same.
    let half = glob::glob(&format!("{}/runtimes/python-*/bin/python3", cache.display())).unwrap().flatten().count();
    assert_eq!(half, 1);
    let list: Value =
        serde_json::from_str(&run(bench(dir.path()).args(["runtimes", "list", "--format", "json"])).expect(0).stdout).unwrap();
    for backend in ["genie", "ort-qnn", "mnn"] {
        assert!(list["backends"][backend]["missing"].is_object(), "{list:#}");
    }
}

/// A Python that makes environments as `venv` and `pip` do, only that every package is an empty folder. It keeps a diary.
fn fake_python(dir: &Path, pip: &str) -> PathBuf {
    let script = format!(
        r#"diary={diary}
case "$1" in
-c) echo 3.11.9 ;;
-m) if [ "$2" = venv ]; then
        echo "venv $$" >> "$diary"
        mkdir -p "$3/bin" "$3/lib/python3.11/site-packages" || exit 1
        cp "$0" "$3/bin/python3"
    else
        echo "pip begin $$" >> "$diary"
        site=$(dirname "$0")/../lib/python3.11/site-packages
        [ -e "$site/mnn-9.9.dist-info" ] && {{ echo "pip found the packages of another" >&2; exit 1; }}
        {pip}
        mkdir "$site/mnn-9.9.dist-info" "$site/MNN"
        echo "pip end $$" >> "$diary"
    fi ;;
esac"#,
        diary = dir.join("diary").display(),
    );
    program(dir, "python3", &script)
}

fn mnn_version(dir: &Path) -> Option<String> {
    let ran = run(bench(dir).args(["runtimes", "list", "--format", "json"])).expect(0);
    let list: Value = serde_json::from_str(&ran.stdout).unwrap();
    list["backends"]["mnn"]["ready"]["version"].as_str().map(str::to_owned)
}

fn install(dir: &Path, bin: &Path) -> Command {
    let mut command = bench(dir);
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    command.args(["runtimes", "install", "python", "--yes"]).env("PATH", path).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

#[test]
fn a_half_finished_install_is_replaced() {
    let dir = tempfile::tempdir().unwrap();
    // pip fails after it has put something there.
    let bin = fake_python(dir.path(), "mkdir \"$site/half\"; echo no room for the rest >&2; exit 1");
    run(&mut install(dir.path(), &bin)).expect(5).says(&["pip install failed: no room for the rest"]);
    assert_eq!(mnn_version(dir.path()), None);
    let half =
        || glob::glob(&format!("{}/cache/runtimes/python-*/lib/*/site-packages/half", dir.path().display())).unwrap().flatten().count();
    assert_eq!(half(), 1);

    let bin = fake_python(dir.path(), "true");
    run(&mut install(dir.path(), &bin)).expect(0).says(&["removing a half-finished install"]);
    assert_eq!(half(), 0, "the old half was kept");
    assert_eq!(mnn_version(dir.path()).as_deref(), Some("MNN 9.9"));
    // A whole one is not made again, with or without Python.
    let diary = fs::read_to_string(dir.path().join("diary")).unwrap();
    let ran = run(bare(dir.path()).args(["runtimes", "install", "python"])).expect(0);
    assert!(ran.stdout.trim().ends_with("bin/python3"), "{}", ran.stdout);
    assert_eq!(fs::read_to_string(dir.path().join("diary")).unwrap(), diary);
}

#[test]
fn two_installs_at_once_are_one_and_a_killed_one_is_waited_for() {
    let dir = tempfile::tempdir().unwrap();
    let bin = fake_python(dir.path(), "sleep 1");
    let diary = || fs::read_to_string(dir.path().join("diary")).unwrap_or_default();
    let first = install(dir.path(), &bin).spawn().unwrap();
    let second = install(dir.path(), &bin).spawn().unwrap();
    support::finish(first).expect(0);
    support::finish(second).expect(0);
    assert_eq!(diary().matches("pip begin").count(), 1, "{}", diary());

    // bench is killed while pip works: pip goes on, and the next install must not work in the same folder beside it.
    let dir = tempfile::tempdir().unwrap();
    let bin = fake_python(dir.path(), "sleep 2");
    let diary = || fs::read_to_string(dir.path().join("diary")).unwrap_or_default();
    let mut killed = install(dir.path(), &bin).spawn().unwrap();
    wait_until("pip begins", || diary().contains("pip begin"));
    killed.kill().unwrap();
    killed.wait().unwrap();
    run(&mut install(dir.path(), &bin)).expect(0);
    let words: Vec<String> = diary().lines().map(|l| l.rsplit_once(' ').unwrap().0.to_owned()).collect();
    assert_eq!(words, ["venv", "pip begin", "pip end", "venv", "pip begin", "pip end"]);
    assert_eq!(mnn_version(dir.path()).as_deref(), Some("MNN 9.9"));
}

/// A made-up archive of the SDK, and ones that are none.
fn archive(dir: &Path, name: &str, members: &[&str]) -> PathBuf {
    let file = dir.join(name);
    let script = "import sys,zipfile\nwith zipfile.ZipFile(sys.argv[1],'w') as z:\n for m in sys.argv[2:]: z.writestr(m,'x')";
    assert!(Command::new("python3").args(["-c", script]).arg(&file).args(members).status().unwrap().success());
    file
}

#[test]
fn the_sdk_is_installed_from_a_file_and_only_with_its_licence() {
    let dir = tempfile::tempdir().unwrap();
    let tools =
        ["bin/qnn-net-run", "bin/qnn-profile-viewer", "lib/libQnnHtp.so", "lib/libQnnSystem.so", "lib/libQnnHtpNetRunExtensions.so"]
            .map(|t| t.replacen('/', "/x86_64-linux-clang/", 1));
    let members: Vec<String> = tools.iter().map(|t| format!("qairt/2.99.0.260101/{t}")).collect();
    let good = archive(dir.path(), "v2.zip", &members.iter().map(String::as_str).collect::<Vec<_>>());
    let install = |more: &[&str]| run(bench(dir.path()).args(["runtimes", "install", "qairt"]).args(more));
    let from = good.to_str().unwrap();
    let ran = install(&["--from", from]);
    assert!([2, 5].contains(&ran.code()), "{ran:?}");
    ran.says(&["licence", "--accept-licence", "softwarecenter.qualcomm.com"]);
    assert_eq!(files(&dir.path().join("cache")), [""; 0]);

    let ran = install(&["--from", from, "--accept-licence"]).expect(0);
    let sdk = PathBuf::from(ran.stdout.trim());
    assert!(tools.iter().all(|t| sdk.join(t).is_file()), "{}", sdk.display());
    let list = run(bench(dir.path()).args(["runtimes", "list"])).expect(0).stdout;
    assert!(list.lines().any(|l| l.starts_with("qnn ") && l.contains("ready")), "{list}");

    // What is no SDK, no archive, or wants out of its folder does not replace the one that is there.
    let letter = archive(dir.path(), "letter.zip", &["letter.txt"]);
    let hostile = archive(dir.path(), "hostile.zip", &["../../../evil", "bin/x"]);
    let torn = dir.path().join("torn.zip");
    fs::write(&torn, &fs::read(&good).unwrap()[..200]).unwrap();
    for (file, words) in
        [(&letter, "no QAIRT SDK"), (&hostile, "leads out of the archive"), (&torn, "zip"), (&dir.path().join("none.zip"), "none.zip")]
    {
        install(&["--accept-licence", "--from", file.to_str().unwrap()]).expect(5).says(&[words]);
        assert!(tools.iter().all(|t| sdk.join(t).is_file()), "{}", file.display());
    }
    assert!(!dir.path().join("evil").exists() && !dir.path().join("cache/evil").exists());
    let left: Vec<_> = glob::glob(&format!("{}/cache/runtimes/*.part", dir.path().display())).unwrap().flatten().collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn where_the_network_refuses_the_archive_the_user_is_told_what_to_fetch_by_hand() {
    let dir = tempfile::tempdir().unwrap();
    let mut command = bench(dir.path());
    command.args(["runtimes", "install", "qairt", "--accept-licence", "--version", "2.77.0.1"]);
    // A proxy that refuses every connection: the same for every machine.
    for name in ["https_proxy", "HTTPS_PROXY", "http_proxy", "HTTP_PROXY"] {
        command.env(name, "http://127.0.0.1:9");
    }
    command.env_remove("no_proxy").env_remove("NO_PROXY");
    let ran = run(&mut command).expect(5);
    ran.says(&["could not fetch", "Qualcomm_AI_Runtime_Community/All/2.77.0.1/v2.77.0.1.zip", "by hand", "--from FILE"]);
    let left: Vec<_> = glob::glob(&format!("{}/cache/runtimes/*.part", dir.path().display())).unwrap().flatten().collect();
    assert!(left.is_empty(), "{left:?}");
}
