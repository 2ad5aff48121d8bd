use bench_backend_api::{Installed, Need};

use super::*;
use crate::runtimes::find;

fn device(os: &str, arch: &str, remote: bool) -> DeviceFacts {
    DeviceFacts { os: os.to_owned(), arch: arch.to_owned(), remote, ..crate::device::phone_facts(57, 75) }
}

fn put(path: &Path, bytes: &[u8]) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, bytes).unwrap();
}

#[test]
fn programs_for_a_phone_are_those_of_its_triple() {
    let dir = tempfile::tempdir().unwrap();
    let cache = Cache(dir.path().to_path_buf());
    let phone = device("android", "aarch64", true);
    // A processor for which nobody has built an agent in the target folder of this test.
    let error = agent_for(&cache, &device("android", "riscv64", true)).unwrap_err().to_string();
    assert!(
        error.contains("bench runtimes build --arch riscv64") && error.contains("BENCH_LIBEXEC/riscv64-unknown-linux-musl/"),
        "{error}"
    );
    put(&dir.path().join("runtimes/built/aarch64-unknown-linux-musl/bench-agent"), b"");
    assert!(agent_for(&cache, &phone).unwrap().ends_with("built/aarch64-unknown-linux-musl/bench-agent"));

    let runner = Need::Runner { name: "bench-some-runner".to_owned() };
    assert_eq!(find(&cache, &phone, [runner.clone()]), Installed::default());
    put(&dir.path().join("runtimes/built/aarch64-linux-android/bench-some-runner"), b"");
    assert!(find(&cache, &phone, [runner.clone()]).path(&runner).ends_with("built/aarch64-linux-android/bench-some-runner"));
    // A board with Linux is another target than a phone.
    assert_eq!(find(&cache, &device("linux", "aarch64", true), [runner]), Installed::default());
}

#[test]
fn a_target_folder_is_searched_best_profile_first() {
    let dir = tempfile::tempdir().unwrap();
    let at = |profile: &str| dir.path().join("aarch64-unknown-linux-musl").join(profile).join("bench-agent");
    let found = || in_target_folder(dir.path(), "aarch64-unknown-linux-musl", "bench-agent");
    assert_eq!(found(), None);
    put(&at("debug"), b"");
    assert_eq!(found(), Some(at("debug")));
    put(&at("dist"), b"");
    assert_eq!(found(), Some(at("dist")));
}

#[test]
fn engines_of_this_computer_need_linux() {
    let cache = Cache(PathBuf::from("/nonexistent"));
    let error = agent_for(&cache, &device("macos", "aarch64", false)).unwrap_err().to_string();
    assert!(error.contains("runs macos") && error.contains("Linux only"), "{error}");
}

#[test]
fn the_sdk_has_a_folder_for_each_processor() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("2.40.0.251030");
    fs::create_dir_all(root.join("bin")).unwrap();
    for file in
        ["lib/aarch64-android/libQnnHtp.so", "lib/aarch64-android/libQnnHtpV75Stub.so", "lib/hexagon-v75/unsigned/libQnnHtpV75Skel.so"]
    {
        put(&root.join(file), b"");
    }
    let sdk = Sdk::open(&root).unwrap();
    let cache = Cache(dir.path().join("cache"));
    let phone = device("android", "aarch64", true);
    let found = |set: &str, name: &str| library(&cache, Some(&sdk), None, &phone, set, name);
    let skel = found("qairt", "libQnnHtpV75Skel.so").unwrap();
    assert!(skel.path.ends_with("/lib/hexagon-v75/unsigned/libQnnHtpV75Skel.so"), "{}", skel.path);
    assert_eq!(skel.version.as_deref(), Some("2.40.0.251030"));
    assert!(found("qairt", "libQnnHtp.so").unwrap().path.ends_with("/lib/aarch64-android/libQnnHtp.so"));
    // The SDK's libraries are of another version than the provider wants: the sets are not mixed.
    assert_eq!(found("onnxruntime", "libQnnHtp.so"), None);
    assert_eq!(found("qairt", "libQnnHtpV79Skel.so"), None);
    let board = device("linux", "aarch64", true);
    assert_eq!(library(&cache, Some(&sdk), None, &board, "qairt", "libQnnHtp.so"), None);
}

#[test]
fn on_a_pc_processor_the_python_packages_serve() {
    let dir = tempfile::tempdir().unwrap();
    let site = dir.path().join("site-packages");
    for file in [
        "onnxruntime/capi/libonnxruntime.so.1.99.0",
        "onnxruntime/capi/libonnxruntime_providers_shared.so",
        "onnxruntime-1.99.0.dist-info/METADATA",
        "onnxruntime_qnn/libQnnHtp.so",
        "onnxruntime_qnn/libGenie.so",
        "onnxruntime_qnn-2.99.0.dist-info/METADATA",
    ] {
        put(&site.join(file), b"");
    }
    let python = python::Environment { interpreter: PathBuf::new(), site_packages: site, version: "3.11.2".to_owned() };
    let cache = Cache(dir.path().join("cache"));
    let test_phone = device("android", "x86_64", true);
    let found = |set: &str, name: &str| library(&cache, None, Some(&python), &test_phone, set, name);
    let ort = found("onnxruntime", "libonnxruntime.so").unwrap();
    assert!(ort.path.ends_with("/onnxruntime/capi/libonnxruntime.so.1.99.0"), "{}", ort.path);
    assert_eq!(ort.version.as_deref(), Some("onnxruntime 1.99.0"));
    assert!(found("onnxruntime", "libQnnHtp.so").unwrap().path.ends_with("/onnxruntime_qnn/libQnnHtp.so"));
    assert_eq!(found("qairt", "libGenie.so").unwrap().version.as_deref(), Some("onnxruntime-qnn 2.99.0"));
    assert_eq!(found("qairt", "libonnxruntime.so"), None);
    let phone = device("android", "aarch64", true);
    assert_eq!(library(&cache, None, Some(&python), &phone, "qairt", "libGenie.so"), None);
}

#[test]
fn what_the_user_has_built_is_found_in_the_folder_of_its_set() {
    let dir = tempfile::tempdir().unwrap();
    let cache = Cache(dir.path().to_path_buf());
    let phone = device("android", "aarch64", true);
    let found = |name: &str| library(&cache, None, None, &phone, "mnn", name);
    assert_eq!(found("llm_bench"), None);
    put(&dir.path().join("runtimes/sets/mnn/aarch64-android/llm_bench"), b"");
    assert_eq!(found("llm_bench").unwrap().version, None);
    put(&dir.path().join("runtimes/sets/mnn/aarch64-android/version.txt"), b"3.9.9\nbuilt in May\n");
    assert_eq!(found("llm_bench").unwrap().version.as_deref(), Some("3.9.9"));
    assert_eq!(library(&cache, None, None, &phone, "qairt", "llm_bench"), None);
}
