//! The scripts, carried out by this machine's shell on states that are files.

use std::{fs, path::Path, process::Command, thread};

use super::*;
use crate::device::pins::Values;

/// A state that is a file, of which `stubborn` ones can't be set.
fn kind(name: &str, stubborn: bool) -> &'static PinKind {
    Box::leak(Box::new(PinKind {
        name: name.to_owned(),
        about: String::new(),
        value: Values::Word,
        on: String::new(),
        off: String::new(),
        min: 0,
        max: 0,
        each: None,
        launch: false,
        cuts_network: false,
        read: Some("cat \"$2\"".to_owned()),
        set: if stubborn { "true" } else { "printf '%s' \"$1\" > \"$2\"" }.to_owned(),
        reset: Some("rm \"$2\"".to_owned()),
        source: String::new(),
    }))
}

fn was(kind: &'static PinKind, file: &Path, value: &str) -> Was {
    Was { kind, instance: file.display().to_string(), value: Some(value.to_owned()) }
}

fn sh(script: &str) -> (bool, String, String) {
    let out = Command::new("sh").args(["-c", script]).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (out.status.success(), text(&out.stdout), text(&out.stderr))
}

#[test]
fn everything_is_put_back_and_said() {
    let dir = tempfile::tempdir().unwrap();
    let keep = Keep { root: dir.path().join("it's a root").display().to_string(), limit: Duration::from_mins(10) };
    let (one, two) = (dir.path().join("one"), dir.path().join("t'wo"));
    fs::write(&one, "3000$0").unwrap();
    let states = [was(kind("one", false), &one, "3000$0"), was(kind("two", false), &two, "null")];
    assert_eq!(sh(&keep.put_back()), (true, String::new(), String::new()), "nothing was changed yet");
    assert!(sh(&keep.write(&states)).0);
    fs::write(&one, "changed").unwrap();
    fs::write(&two, "was not there").unwrap();
    let (ok, said, _) = sh(&keep.put_back());
    assert!(ok && said.contains("one of ") && said.contains("to 3000$0") && said.contains("to the default"), "{said}");
    assert_eq!(fs::read_to_string(&one).unwrap(), "3000$0");
    assert!(!two.exists() && !Path::new(&keep.root).join("pins").exists());
}

/// The shell of a device runs the note, and adbd's umask lets everybody write what it makes.
#[test]
fn nobody_else_may_write_the_note() {
    use std::os::unix::fs::MetadataExt;
    let dir = tempfile::tempdir().unwrap();
    let keep = Keep { root: dir.path().join("bench").display().to_string(), limit: Duration::from_mins(10) };
    let one = dir.path().join("one");
    fs::write(&one, "old").unwrap();
    assert!(sh(&format!("umask 0\n{}", keep.write(&[was(kind("one", false), &one, "old")]))).0);
    assert!(sh(&format!("umask 0\n{}", keep.guard())).0);
    let mut files = 0;
    for entry in fs::read_dir(dir.path().join("bench/pins")).unwrap() {
        let Ok(meta) = entry.unwrap().metadata() else { continue };
        assert_eq!(meta.mode() & 0o022, 0);
        files += 1;
    }
    assert!(files >= 3, "{files}");
    assert_eq!(fs::metadata(dir.path().join("bench/pins")).unwrap().mode() & 0o077, 0);
    assert_eq!(fs::metadata(dir.path().join("bench")).unwrap().mode() & 0o022, 0, "nor put another folder in its place");
    assert!(sh(&keep.put_back()).0);
}

/// Half a note, which a full or broken disk left, puts half of it back and must not say that all is.
#[test]
fn a_damaged_note_is_not_taken_for_done() {
    let dir = tempfile::tempdir().unwrap();
    let keep = Keep { root: dir.path().display().to_string(), limit: Duration::from_mins(10) };
    let one = dir.path().join("one");
    assert!(sh(&keep.write(&[was(kind("one", false), &one, "old")])).0);
    fs::write(&one, "new").unwrap();
    let note = dir.path().join("pins/restore.sh");
    for damaged in ["", "e=0\n", "if then ("] {
        fs::write(&note, damaged).unwrap();
        let (ok, said, why) = sh(&keep.put_back());
        assert!(!ok && said.is_empty() && why.contains("is damaged: put it back by hand") && why.contains("to old"), "{said} {why}");
        assert!(note.exists());
    }
}

#[test]
fn what_could_not_be_put_back_stays_to_be() {
    let dir = tempfile::tempdir().unwrap();
    let keep = Keep { root: dir.path().display().to_string(), limit: Duration::from_mins(10) };
    let (one, two) = (dir.path().join("one"), dir.path().join("two"));
    assert!(sh(&keep.write(&[was(kind("one", true), &one, "old"), was(kind("two", false), &two, "old")])).0);
    fs::write(&one, "new").unwrap();
    fs::write(&two, "new").unwrap();
    let (ok, _, said) = sh(&keep.put_back());
    assert!(!ok && said.contains("could not put back one of ") && !said.contains("two"), "{said}");
    assert_eq!(fs::read_to_string(&two).unwrap(), "old", "one that fails does not keep the others");
    let (ok, _, said) = sh(&keep.write(&[was(kind("one", true), &one, "new")]));
    assert!(!ok && said.contains("not put back yet"), "what is there now is not the device's own: {said}");
    // Once it is as it was, nothing is to be done, whether it can be set or not.
    fs::write(&one, "old").unwrap();
    assert!(sh(&keep.put_back()).0 && !dir.path().join("pins").exists());
}

#[test]
fn the_guard_puts_back_when_nobody_comes() {
    let dir = tempfile::tempdir().unwrap();
    let keep = Keep { root: dir.path().display().to_string(), limit: Duration::from_secs(3) };
    let one = dir.path().join("one");
    assert!(sh(&keep.write(&[was(kind("one", false), &one, "old")])).0);
    fs::write(&one, "new").unwrap();
    assert!(sh(&keep.guard()).0);
    // Signs of life, longer than the limit.
    for _ in 0..10 {
        thread::sleep(Duration::from_millis(500));
        assert!(sh(&keep.beat()).0);
    }
    assert_eq!(fs::read_to_string(&one).unwrap(), "new");
    let mut tries = 0;
    while fs::read_to_string(&one).unwrap() != "old" || dir.path().join("pins").exists() {
        thread::sleep(Duration::from_millis(200));
        tries += 1;
        assert!(tries < 150, "never put back");
    }
}
