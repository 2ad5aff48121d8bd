use std::path::Path;

use super::*;
use crate::runtimes::archive::python;

/// An archive with one library each: enough of an ELF header to be told apart (`machine` 183 is 64-bit ARM, 62 x86_64), and a licence.
fn aar(folder: &Path, name: &str, libraries: &[&str], machine: u8) -> PathBuf {
    const SCRIPT: &str = r"
import sys,zipfile
with zipfile.ZipFile(sys.argv[1],'w') as z:
    z.writestr('AndroidManifest.xml','<manifest/>'); z.writestr('LICENSE.pdf','terms')
    for name in sys.argv[3:]:
        z.writestr('jni/arm64-v8a/'+name, b'\x7fELF\x02\x01\x01'+b'\0'*9+b'\x03\0'+bytes([int(sys.argv[2]),0]))
        z.writestr('jni/x86_64/'+name, b'another processor')
";
    let file = folder.join(name);
    let machine = machine.to_string();
    let mut args = vec![file.as_path(), Path::new(&machine)];
    args.extend(libraries.iter().map(Path::new));
    python(SCRIPT, &args).unwrap();
    file
}

fn trio(folder: &Path) -> Vec<PathBuf> {
    vec![
        aar(folder, "onnxruntime-android-1.99.0.aar", &["libonnxruntime.so", "libonnxruntime4j_jni.so"], 183),
        aar(folder, "onnxruntime-android-qnn-2.99.1.aar", &["libonnxruntime_providers_qnn.so"], 183),
        aar(folder, "renamed.aar", &["libQnnHtp.so", "libQnnHtpV75Skel.so"], 183),
    ]
}

#[test]
fn the_data_is_whole() {
    let archives = archives();
    assert_eq!(archives.len(), 3);
    for a in &archives {
        assert!(a.sha256.len() == 64 && a.sha256.bytes().all(|b| b.is_ascii_hexdigit() && !b.is_ascii_uppercase()), "{}", a.artifact);
        assert!(a.bytes > 1_000_000 && !a.licence.is_empty() && a.holds.starts_with("lib"), "{}", a.artifact);
    }
    let notice = notice();
    assert!(notice.contains("com.qualcomm.qti:qnn-runtime:2.50.0, 72 MB, licence: Qualcomm's own"), "{notice}");
}

#[test]
fn names_give_coordinates() {
    let split = |name| coordinates(name).map(|(a, v)| format!("{a} {v}"));
    assert_eq!(split("onnxruntime-android-1.27.0.aar").as_deref(), Some("onnxruntime-android 1.27.0"));
    assert_eq!(split("onnxruntime-android-qnn-2.6.0-rc1.aar").as_deref(), Some("onnxruntime-android-qnn 2.6.0-rc1"));
    assert_eq!(split("é-\u{0660}.aar"), None);
    assert_eq!(split("ort.aar"), None);
    assert_eq!(split("qnn-runtime-2.50.0.zip"), None);
}

#[test]
fn files_of_the_user_become_a_trio_with_versions() {
    let dir = tempfile::tempdir().unwrap();
    let cache = Cache(dir.path().join("cache"));
    let heard = std::sync::Mutex::new(String::new());
    let say = |text: &str| heard.lock().unwrap().push_str(text);
    Trio::install(&cache, &trio(dir.path()), None, &say).unwrap();
    let trio = Trio::open(&cache).unwrap();
    let ort = trio.library("libonnxruntime.so").unwrap();
    assert_eq!(ort.version.as_deref(), Some("onnxruntime-android 1.99.0"));
    // The library of the phone's processor, not the other one of the same name.
    assert!(fs::read(&ort.path).unwrap().starts_with(b"\x7fELF"));
    assert_eq!(trio.library("libQnnHtpV75Skel.so").unwrap().version.as_deref(), Some("qnn-runtime"));
    assert_eq!(trio.library("libQnnHtpV79Skel.so"), None);
    assert!(trio.folder.join("licences/qnn-runtime/LICENSE.pdf").is_file());
    assert!(trio.parts.iter().all(|p| !p.checked && p.sha256.len() == 64));
    assert!(heard.lock().unwrap().contains("onnxruntime-android-qnn 2.99.1 is not of the checked trio"));
    assert!(!cache.runtimes().join("android.part").exists());
}

#[test]
fn what_is_not_a_trio_leaves_the_old_one_in_place() {
    let dir = tempfile::tempdir().unwrap();
    let cache = Cache(dir.path().join("cache"));
    let good = trio(dir.path());
    let refused = |files: &[PathBuf]| Trio::install(&cache, files, None, &|_| ()).unwrap_err().to_string();
    assert!(refused(&good[..2]).contains("com.qualcomm.qti:qnn-runtime:2.50.0"));
    assert_eq!(Trio::open(&cache), None);
    Trio::install(&cache, &good, None, &|_| ()).unwrap();
    let pc = aar(dir.path(), "pc.aar", &["libQnnHtp.so"], 62);
    assert!(refused(&[pc]).contains("not a library for a 64-bit ARM processor"));
    let other = aar(dir.path(), "other.aar", &["libfoo.so"], 183);
    assert!(refused(&[other]).contains("libQnnHtp.so"));
    let misnamed = aar(dir.path(), "onnxruntime-android-qnn-1.29.0.aar", &["libonnxruntime.so"], 183);
    assert!(refused(&[misnamed]).contains("by its name it is onnxruntime-android-qnn, by its content onnxruntime-android"));
    let damaged = aar(dir.path(), "qnn-runtime-2.50.0.aar", &["libQnnHtp.so"], 183);
    assert!(refused(&[damaged]).contains("is not qnn-runtime 2.50.0 as published"));
    assert!(refused(&[good[0].clone(), good[0].clone()]).contains("given twice"));
    let text = dir.path().join("text.aar");
    fs::write(&text, "not a zip file").unwrap();
    assert!(refused(&[text]).contains("text.aar"));
    assert!(refused(&[]).contains("BENCH_MAVEN"));
    assert_eq!(Trio::open(&cache).unwrap().parts.len(), 3);
}

#[test]
fn a_repository_is_asked_in_mavens_layout() {
    let dir = tempfile::tempdir().unwrap();
    let cache = Cache(dir.path().join("cache"));
    let place = dir.path().join("repo/com/microsoft/onnxruntime/onnxruntime-android/1.27.0");
    fs::create_dir_all(&place).unwrap();
    aar(&place, "onnxruntime-android-1.27.0.aar", &["libonnxruntime.so"], 183);
    let url = format!("file://{}/", dir.path().join("repo").display());
    // The first one is found, the second is not there.
    let error = Trio::install(&cache, &[], Some(&url), &|_| ()).unwrap_err().to_string();
    assert!(error.contains("/repo/com/qualcomm/qti/onnxruntime-android-qnn/2.6.0/onnxruntime-android-qnn-2.6.0.aar"), "{error}");
}

#[test]
fn an_archive_that_would_fill_the_disk_is_refused_before_anything_is_written() {
    let dir = tempfile::tempdir().unwrap();
    let file = aar(dir.path(), "a.aar", &["libonnxruntime.so"], 183);
    // A manifest of 11 bytes, a licence of 5, a head of 20 and 17 of text: 53 bytes in 4 files.
    let unpacked = |bytes, files| {
        let to = dir.path().join(format!("{bytes}-{files}"));
        let done = crate::runtimes::archive::unpack(&file, &to, crate::runtimes::archive::Most { bytes, files });
        (done, fs::read_dir(to).map_or(0, Iterator::count))
    };
    assert_eq!(unpacked(53, 4), (Ok(()), 3));
    let (large, left) = unpacked(52, 4);
    assert!(large.unwrap_err().contains("more than") && left == 0);
    let (many, left) = unpacked(53, 3);
    assert!(many.unwrap_err().contains("it has 4 files") && left == 0);
}
