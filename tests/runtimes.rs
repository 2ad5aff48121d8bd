//! `bench runtimes`: programs for devices that are really built, what a list for phones says, and archives that are taken from files.

mod support;

use std::{fs, os::unix::fs::symlink, path::Path, process::Command};

use serde_json::Value;
use support::{bench, root, run};

/// A source tree with the names of the real one and next to nothing in it: a runner takes minutes to build.
fn small_tree(dir: &Path) {
    let packages = ["bench-agent", "bench-genie-runner", "bench-ort-qnn-runner"];
    let folders = ["agent", "genie", "ort"];
    fs::write(
        dir.join("Cargo.toml"),
        format!("[workspace]\nresolver = \"3\"\nmembers = {folders:?}\n[profile.dist]\ninherits = \"release\"\n"),
    )
    .unwrap();
    for (folder, package) in folders.iter().zip(packages) {
        fs::create_dir_all(dir.join(folder).join("src")).unwrap();
        let manifest = format!("[package]\nname = \"{package}\"\nversion = \"0.0.1\"\nedition = \"2024\"\n");
        fs::write(dir.join(folder).join("Cargo.toml"), manifest).unwrap();
        fs::write(dir.join(folder).join("src/main.rs"), "fn main() {}\n").unwrap();
    }
}

/// An NDK whose compiler is the stand-in.
fn small_ndk(dir: &Path) {
    let bin = dir.join("toolchains/llvm/prebuilt/linux-x86_64/bin");
    fs::create_dir_all(&bin).unwrap();
    symlink(root().join("tests/standins/ndk/clang"), bin.join("aarch64-linux-android30-clang")).unwrap();
}

/// Bytes 18 and 19 of an ELF file: the processor (62 x86_64, 183 64-bit ARM).
fn machine(path: &Path) -> u8 {
    let bytes = fs::read(path).unwrap();
    assert!(bytes.starts_with(b"\x7fELF"), "{}", path.display());
    bytes[18]
}

#[test]
fn the_agent_is_built_from_this_source_tree_and_runs() {
    let dir = tempfile::tempdir().unwrap();
    // Without the limit of other commands: on a busy machine the link-time optimisation of the real agent takes minutes.
    let built = bench(dir.path()).args(["runtimes", "build", "--arch", "x86_64"]).output().unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let agent = dir.path().join("cache/runtimes/built/x86_64-unknown-linux-musl/bench-agent");
    assert_eq!(String::from_utf8_lossy(&built.stdout).trim(), agent.to_str().unwrap());
    let version = Command::new(&agent).arg("--version").output().unwrap();
    assert_eq!(String::from_utf8_lossy(&version.stdout).trim(), format!("bench-agent {}", env!("CARGO_PKG_VERSION")));
    // Static: there is no interpreter to be looked for on a phone.
    let bytes = fs::read(&agent).unwrap();
    assert!(!bytes.windows(8).any(|w| w == b"ld-linux" || w == b"/ld-musl"), "a dynamic agent");
}

#[test]
fn runners_take_an_ndk_and_without_one_the_loss_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let (tree, ndk) = (dir.path().join("tree"), dir.path().join("ndk"));
    fs::create_dir_all(&tree).unwrap();
    small_tree(&tree);
    let build = |more: &[&str]| {
        let mut command = bench(dir.path());
        command.args(["runtimes", "build", "--source"]).arg(&tree).args(more);
        command.env_remove("ANDROID_NDK_HOME").env_remove("ANDROID_NDK_ROOT");
        command
    };
    run(&mut build(&[])).expect(0).says(&["no runners were built", "--ndk", "no token latencies"]);
    let built = dir.path().join("cache/runtimes/built");
    assert_eq!(machine(&built.join("aarch64-unknown-linux-musl/bench-agent")), 183);
    assert!(!built.join("aarch64-linux-android").exists());

    run(build(&[]).arg("--ndk").arg(&ndk)).expect(5).says(&["is not an NDK", "aarch64-linux-android30-clang"]);
    small_ndk(&ndk);
    run(build(&[]).env("ANDROID_NDK_ROOT", &ndk)).expect(0);
    for runner in ["bench-genie-runner", "bench-ort-qnn-runner"] {
        assert_eq!(machine(&built.join("aarch64-linux-android").join(runner)), 183);
    }
    let left: Vec<_> = fs::read_dir(built.join("aarch64-linux-android")).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left.len(), 2, "{left:?}");

    let list = run(bench(dir.path()).args(["runtimes", "list", "--target", "aarch64-android", "--format", "json"])).expect(0);
    let list: Value = serde_json::from_str(&list.stdout).unwrap();
    let parts = list["parts"].as_array().unwrap();
    let place = |what: &str| parts.iter().find(|p| p["what"] == what).unwrap()["found"].as_str().map(str::to_owned);
    assert!(place("bench-genie-runner").unwrap().ends_with("built/aarch64-linux-android/bench-genie-runner"));
    assert!(place("bench-agent").unwrap().ends_with("built/aarch64-unknown-linux-musl/bench-agent"));
    assert_eq!(place("ONNX Runtime for Android"), None);

    fs::write(tree.join("agent/src/main.rs"), "fn main() { broken }\n").unwrap();
    run(&mut build(&[])).expect(5).says(&["cargo build --profile dist -p bench-agent", "nothing was installed"]);
    run(bench(dir.path()).args(["runtimes", "build", "--source", "/"])).expect(5).says(&["not a source tree"]);
}

#[test]
fn a_list_for_phones_says_what_to_do_and_how_mnn_is_made_for_the_chip() {
    let dir = tempfile::tempdir().unwrap();
    let list = |more: &[&str]| run(bench(dir.path()).args(["runtimes", "list", "--target", "aarch64-android"]).args(more));
    let stdout = list(&[]).expect(0).stdout;
    for words in
        ["bench runtimes build --ndk", "bench runtimes install android", "--soc_id=57 --dsp_arch=v75", "build_64.sh -DMNN_BUILD_LLM=true"]
    {
        assert!(stdout.contains(words), "{words}: {stdout}");
    }
    // 8 Elite: 69 and v79 (hardware.md).
    assert!(list(&["--soc", "SM8750"]).expect(0).stdout.contains("--soc_id=69 --dsp_arch=v79"));
    list(&["--soc", "SM0"]).expect(2).says(&["no chip `SM0`"]);
    assert!(!stdout.contains('{'), "a place-holder is left: {stdout}");
}

#[test]
fn archives_for_phones_are_agreed_to_and_never_taken_half() {
    let dir = tempfile::tempdir().unwrap();
    let install = |more: &[&str]| run(bench(dir.path()).env_remove("BENCH_MAVEN").args(["runtimes", "install", "android"]).args(more));
    let asked = install(&[]).expect(5);
    asked.says(&["Qualcomm's own licence", "72 MB", "MIT", "pass --yes"]);
    install(&["--yes"]).expect(5).says(&["BENCH_MAVEN", "qnn-runtime-2.50.0.aar", "--from"]);
    fs::write(dir.path().join("x.aar"), "no zip").unwrap();
    install(&["--yes", "--from", "x.aar"]).expect(5).says(&["x.aar"]);
    assert!(!dir.path().join("cache/runtimes/android").exists());
}
