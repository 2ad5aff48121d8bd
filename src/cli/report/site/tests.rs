//! The site of planted nights: what it says, which files a new night touches, and what hostile, broken and vanished runs do to it.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::json;

use super::*;
use crate::report::site::GATE;

#[path = "../../../../tests/support/runs.rs"]
mod runs;
use runs::{Cell, Run as Night, noisy};

const MNN: &str = "mnn.tiny.w4.p32.g16-0a1b2c3d";
const GENIE: &str = "genie.tiny.w8a16.p32.g16-2c3d4e5f";
const EVIL: &str = "<script>alert('x')</script>\"><img src=http://evil.example/x onerror=alert(1)> \u{202e}";

/// A night of two cells, of which `mnn` multiplies the first one's level.
fn night(day: u32, mnn: f64) -> Night {
    let values = |level: f64, cell: u64| noisy(level, 0.01, 10, 2 * u64::from(day) + cell);
    Night::night(day)
        .cell(Cell::new(MNN).values("decode_tok_s", &values(40.0 * mnn, 0)))
        .cell(Cell::new(GENIE).values("decode_tok_s", &values(12.0, 1)))
}

struct Place {
    _keep: tempfile::TempDir,
    runs: PathBuf,
    out: PathBuf,
}

fn place() -> Place {
    let keep = tempfile::tempdir().unwrap();
    Place { runs: keep.path().join("runs"), out: keep.path().join("site"), _keep: keep }
}

/// Every file of a folder with what changes when it is written anew.
fn files(out: &Path) -> BTreeMap<String, (u64, i64, i64)> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(out).unwrap().map(|entry| entry.unwrap().path()) {
        let inner = if entry.is_dir() { fs::read_dir(&entry).unwrap().map(|e| e.unwrap().path()).collect() } else { vec![entry] };
        for path in inner {
            let facts = path.metadata().unwrap();
            let name = path.strip_prefix(out).unwrap().to_string_lossy().into_owned();
            // Beside each run's page, and written with it.
            if name.ends_with("/summary.md") || name.ends_with("/summary.csv") {
                continue;
            }
            found.insert(name, (facts.ino(), facts.mtime(), facts.mtime_nsec()));
        }
    }
    found
}

/// A page; the slash of an address is escaped in it.
fn read(path: &Path) -> String {
    let page = fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    page.replace("&#x2f;", "/")
}

#[test]
fn a_new_night_makes_its_page_and_the_index_and_touches_no_other() {
    let place = place();
    for day in 0..4 {
        night(day, 1.0).write(&place.runs);
    }
    assert_eq!(main(std::slice::from_ref(&place.runs), &place.out).unwrap(), Code::Done);
    let before = files(&place.out);
    assert_eq!(before.len(), 6, "index, device, four runs: {before:?}");

    let tonight = night(4, 1.0).write(&place.runs);
    let changed = |before: &BTreeMap<_, _>| -> BTreeSet<String> {
        files(&place.out).into_iter().filter(|(name, facts)| before.get(name) != Some(facts)).map(|(name, _)| name).collect()
    };
    main(std::slice::from_ref(&tonight), &place.out).unwrap();
    let page = format!("{}/index.html", id_of(&tonight));
    assert_eq!(changed(&before), BTreeSet::from(["index.html".to_owned(), "device-phone-1.html".to_owned(), page.clone()]));

    // Tables that are newer than their page, and a page that was deleted: these two are made, by the folder too.
    let before = files(&place.out);
    let names: Vec<String> = (0..2).map(|day| night(day, 1.0).id).collect();
    let cells = fs::File::options().append(true).open(place.runs.join(&names[0]).join("cells.csv")).unwrap();
    cells.set_modified(std::time::SystemTime::now() + std::time::Duration::from_mins(1)).unwrap();
    fs::remove_file(place.out.join(&names[1]).join("index.html")).unwrap();
    main(std::slice::from_ref(&place.runs), &place.out).unwrap();
    let wanted = ["index.html".to_owned(), "device-phone-1.html".to_owned()]
        .into_iter()
        .chain(names.iter().map(|name| format!("{name}/index.html")));
    assert_eq!(changed(&before), wanted.collect::<BTreeSet<String>>());
    assert!(!files(&place.out).keys().any(|name| name.contains(".html.")), "no half file is left");

    // The old night goes with its folder; its page stays and is told apart.
    fs::remove_dir_all(place.runs.join(&names[0])).unwrap();
    main(std::slice::from_ref(&place.runs), &place.out).unwrap();
    let others = read(&place.out.join("index.html"));
    let others = others.split("Other pages here").nth(1).unwrap();
    assert!(others.contains(&format!("<a href=\"{0}/index.html\">{0}</a>", names[0])) && !others.contains(&names[1]), "{others}");
}

#[test]
fn what_regressed_stepped_and_changed_is_told() {
    let place = place();
    let mut last = PathBuf::new();
    for day in 0..24 {
        let version = if day < 16 { "MNN 3.6.1" } else { "MNN 3.7.0" };
        last = night(day, if day < 16 { 1.0 } else { 0.9 }).runtime("mnn", version).write(&place.runs);
    }
    let record = Record {
        format_version: 1,
        run: id_of(&last),
        verdict: "regressed".to_owned(),
        words: vec!["1 regressed, 1 unchanged".to_owned()],
        worse: vec![format!("{MNN} on phone-1 decode_tok_s: -10 %")],
    };
    keep_gate(&last, &place.out, &record).unwrap();
    main(std::slice::from_ref(&last), &place.out).unwrap();
    let index = read(&place.out.join("index.html"));
    let part = |from: &str, to: &str| index.split(from).nth(1).unwrap().split(to).next().unwrap().to_owned();
    let worse = part("What regressed</h2>", "</section>");
    assert!(worse.contains(MNN) && !worse.contains(GENIE) && worse.contains("-10."), "{worse}");
    let gates = part("Latest gates</h2>", "</section>");
    assert!(gates.contains(&format!("<a href=\"{0}/index.html\">{0}</a>", id_of(&last))) && gates.contains("1 regressed, 1 unchanged"));
    let runs = part("Latest runs</h2>", "</section>");
    assert_eq!(
        (runs.matches("<tr><th scope=\"row\"").count(), runs.matches("2 ok").count(), runs.matches("verdict regressed").count()),
        (24, 24, 1)
    );
    assert_eq!(runs.matches("/index.html\"").count(), 1, "runs without a page have no link");
    let models = part("Models</h2>", "</section>");
    assert!(models.contains("<th scope=\"row\">tiny</th><td>genie, mnn</td>") && models.contains("device-phone-1.html"), "{models}");

    let device = read(&place.out.join("device-phone-1.html"));
    for words in ["step on 2026-01-17", "changed that night: runtime of mnn: MNN 3.6.1 -&gt; MNN 3.7.0", "soc_model 57", "finds "] {
        assert!(device.contains(words), "{words}");
    }
    // One drawing a cell of the one metric that was measured; the others have cells without a figure, and say so.
    assert_eq!(device.matches("class=\"spark\"").count(), 6);
    assert!(device.contains("never measured"));

    // A judgement that can't be read is no verdict.
    fs::write(place.out.join(id_of(&last)).join("gate.json"), "{\"verdict\": \"pas").unwrap();
    main(std::slice::from_ref(&last), &place.out).unwrap();
    assert!(read(&place.out.join("index.html")).contains("gate.json can&#x27;t be read"));
}

#[test]
fn hostile_names_are_text() {
    let place = place();
    let mut evil = night(0, 1.0);
    for cell in &mut evil.cells {
        for column in ["device", "model", "backend", "device_class"] {
            cell.fields.insert(column.to_owned(), EVIL.to_owned());
        }
        cell.fields.insert("cell".to_owned(), format!("{}{EVIL}", cell.fields["cell"]));
    }
    evil.manifest["device"]["name"] = json!(EVIL);
    evil.manifest["device"]["cpu"] = json!(EVIL);
    evil.manifest["scenario"]["name"] = json!(EVIL);
    evil.manifest["run"] = json!(EVIL);
    // No slash in a name; the rest a file system takes.
    evil.id = "javascript:alert(1)\"><script>alert(1)<".to_owned();
    let folder = evil.write(&place.runs);
    let record = Record {
        format_version: 1,
        run: EVIL.to_owned(),
        verdict: EVIL.to_owned(),
        words: vec![EVIL.to_owned()],
        worse: vec![EVIL.to_owned()],
    };
    keep_gate(&folder, &place.out, &record).unwrap();
    main(std::slice::from_ref(&place.runs), &place.out).unwrap();
    let pages: Vec<String> = files(&place.out).into_keys().filter(|name| !name.ends_with(GATE)).collect();
    assert_eq!(pages.len(), 3, "{pages:?}");
    for name in pages {
        let page = read(&place.out.join(&name));
        for mark in ["<script>alert", "<img", "href=\"javascript:", "\u{202e}"] {
            assert!(!page.contains(mark), "{name}: {mark}");
        }
        assert!(page.contains("default-src 'none'") && page.contains("&lt;script&gt;"), "{name}");
    }
    let index = read(&place.out.join("index.html"));
    assert!(index.contains("href=\"javascript%3Aalert%281%29%22%3E%3Cscript%3Ealert%281%29%3C/index.html\""));
}

#[test]
fn runs_that_can_not_be_read_are_listed_with_the_reason() {
    let place = place();
    night(0, 1.0).write(&place.runs);
    let pipe = night(1, 1.0).write(&place.runs);
    fs::remove_file(pipe.join("samples.csv")).unwrap();
    assert!(Command::new("mkfifo").arg(pipe.join("samples.csv")).status().unwrap().success());
    let cut = night(2, 1.0).write(&place.runs);
    fs::write(cut.join("cells.csv"), "device,cel").unwrap();
    let unfinished = Night { manifest: json!({"format_version": 1}), ..night(3, 1.0) }.write(&place.runs);
    std::os::unix::fs::symlink("/nowhere/at/all", place.runs.join("vanished")).unwrap();
    // Of a folder all others have their pages; a run that is asked for by its name is an error.
    assert_eq!(main(std::slice::from_ref(&place.runs), &place.out).unwrap(), Code::Done);
    let index = read(&place.out.join("index.html"));
    for words in ["it is no regular file", "vanished", "cells.csv is cut off in its first line", &id_of(&unfinished)] {
        assert!(index.contains(words), "{words}: {index}");
    }
    assert!(!place.out.join(id_of(&pipe)).exists() && place.out.join(night(0, 1.0).id).join("index.html").is_file());
    let error = main(std::slice::from_ref(&pipe), &place.out).unwrap_err();
    assert!(error.to_string().contains("samples.csv can't be read as a table: it is no regular file"), "{error}");
    let error = main(&[place.runs.join("none")], &place.out).unwrap_err();
    assert!(error.to_string().contains("none"), "{error}");
}

#[test]
fn no_two_devices_share_a_page() {
    assert_eq!(device_file("R5CX1234567"), "device-R5CX1234567.html");
    // The hash is that of sha256sum.
    assert_eq!(device_file("10.0.0.7:5555"), "device-10-0-0-7-5555-91509339.html");
    let names = ["a.b", "a:b", "a/b", "../x", "", "<script>"].map(device_file);
    assert!(names.iter().all(|name| !name.contains(['/', '<', '>', ':'])), "{names:?}");
    assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
}
