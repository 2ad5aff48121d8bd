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
use crate::{
    cli::metric::metrics,
    gate::nightly::output::Record,
    report::site::{GATE, INDEX},
};

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

/// The site of these, as it is without options.
fn site(given: &Path, out: &Path) -> anyhow::Result<Code> {
    of(&["ttft_ms", "decode_tok_s", "peak_mem_mb"], 0.02, given, out)
}

fn of(words: &[&str], tolerance: f64, given: &Path, out: &Path) -> anyhow::Result<Code> {
    let metrics = words.iter().flat_map(|word| metrics(word).unwrap()).collect();
    main(&Asked { metrics, tolerance, given: &[given.to_owned()], out })
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
    assert_eq!(site(&place.runs, &place.out).unwrap(), Code::Done);
    let before = files(&place.out);
    assert_eq!(before.len(), 7, "index, device, model, four runs: {before:?}");

    let tonight = night(4, 1.0).write(&place.runs);
    let changed = |before: &BTreeMap<_, _>| -> BTreeSet<String> {
        files(&place.out).into_iter().filter(|(name, facts)| before.get(name) != Some(facts)).map(|(name, _)| name).collect()
    };
    site(&tonight, &place.out).unwrap();
    let page = format!("{}/index.html", id_of(&tonight));
    let trends = ["index.html", "device-phone-1.html", "model-tiny.html"].map(str::to_owned);
    assert_eq!(changed(&before), trends.iter().cloned().chain([page.clone()]).collect::<BTreeSet<_>>());

    // Nothing new, nothing written.
    let before = files(&place.out);
    site(&place.runs, &place.out).unwrap();
    assert_eq!(changed(&before), BTreeSet::new());

    // Tables that are newer than their page, and a page that was deleted: these two are made, by the folder too.
    let before = files(&place.out);
    let names: Vec<String> = (0..2).map(|day| night(day, 1.0).id).collect();
    let cells = fs::File::options().append(true).open(place.runs.join(&names[0]).join("cells.csv")).unwrap();
    cells.set_modified(std::time::SystemTime::now() + std::time::Duration::from_mins(1)).unwrap();
    fs::remove_file(place.out.join(&names[1]).join("index.html")).unwrap();
    site(&place.runs, &place.out).unwrap();
    assert_eq!(changed(&before), names.iter().map(|name| format!("{name}/index.html")).collect::<BTreeSet<String>>());
    assert!(!files(&place.out).keys().any(|name| name.contains(".html.")), "no half file is left");

    // The old night goes with its folder; its page stays and is told apart.
    fs::remove_dir_all(place.runs.join(&names[0])).unwrap();
    site(&place.runs, &place.out).unwrap();
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
        held: Some(true),
    };
    keep_gate(&last, &place.out, &record).unwrap();
    site(&last, &place.out).unwrap();
    let index = read(&place.out.join("index.html"));
    let part = |from: &str, to: &str| index.split(from).nth(1).unwrap().split(to).next().unwrap().to_owned();
    let worse = part("What regressed</h2>", "</section>");
    assert!(worse.contains(MNN) && !worse.contains(GENIE) && worse.contains("-10."), "{worse}");
    let named = |id: &str, name: &str| format!("<th scope=\"row\" class=\"cell\" title=\"{id}\" translate=\"no\">{name}</th>");
    assert!(worse.contains(&named(MNN, "mnn · tiny · w4 · 32 → 16")), "{worse}");
    let gates = part("Latest gates</h2>", "</section>");
    assert!(gates.contains(&format!("<a href=\"{0}/index.html\">{0}</a>", id_of(&last))) && gates.contains("1 regressed, 1 unchanged"));
    let runs = part("Latest runs</h2>", "</section>");
    assert_eq!(
        (runs.matches("<tr><th scope=\"row\"").count(), runs.matches("2 ok").count(), runs.matches("verdict regressed").count()),
        (24, 24, 1)
    );
    assert_eq!(runs.matches("/index.html\"").count(), 1, "runs without a page have no link");
    let models = part("Models</h2>", "</section>");
    let linked = "<a href=\"model-tiny.html\">tiny</a></th><td translate=\"no\">genie, mnn</td>";
    assert!(models.contains(linked) && models.contains("device-phone-1.html"), "{models}");

    // The two cells are all that the device has, and all of the model: the same trends stand on both pages.
    let [device, model] = ["device-phone-1.html", "model-tiny.html"].map(|name| read(&place.out.join(name)));
    for words in ["step on 2026-01-17", "changed that night: runtime of mnn: MNN 3.6.1 -&gt; MNN 3.7.0", "finds "] {
        assert!(device.contains(words) && model.contains(words), "{words}");
    }
    assert!(device.contains("soc_model 57"));
    for page in [&device, &model] {
        assert!(
            page.contains(&named(GENIE, "genie · tiny · w8a16 · 32 → 16")) && page.contains("<li>cells: mnn · tiny · w4 · 32 → 16</li>")
        );
        assert_eq!(page.matches(MNN).count(), 1, "an id is behind its name alone: {page}");
    }
    let drawn = |page: &str| {
        page.split("<td class=\"spark\">").skip(1).map(|cell| cell.split("</td>").next().unwrap().to_owned()).collect::<Vec<_>>()
    };
    // One drawing a cell of the one metric that was measured; the others are named once.
    assert_eq!((drawn(&device).len(), drawn(&device)), (2, drawn(&model)));
    assert!(
        device.contains("<th scope=\"row\" translate=\"no\">nightly, phone</th><td class=\"id\">ttft_ms, peak_mem_mb</td>"),
        "{device}"
    );
    assert!(
        model.contains("<th scope=\"row\" translate=\"no\">phone-1, nightly, phone</th><td class=\"id\">ttft_ms, peak_mem_mb</td>"),
        "{model}"
    );

    // One that is held against nothing replaces none that was held against nights, whoever left that; another one does.
    let gate = place.out.join(id_of(&last)).join("gate.json");
    let alone = Record { verdict: "undecided".to_owned(), held: Some(false), ..record.clone() };
    let kept = || serde_json::from_slice::<Record>(&fs::read(&gate).unwrap()).unwrap();
    keep_gate(&last, &place.out, &alone).unwrap();
    assert_eq!(kept(), record);
    let text = fs::read_to_string(&gate).unwrap();
    assert!(text.contains("\"held\": true"), "{text}");
    fs::write(&gate, text.replace(",\n  \"held\": true", "")).unwrap();
    keep_gate(&last, &place.out, &alone).unwrap();
    assert_eq!(kept(), Record { held: None, ..record.clone() });
    // What is worse is never held back, and another run's judgement never lost.
    let worse = Record { verdict: "regressed".to_owned(), ..alone.clone() };
    fs::write(&gate, text.replace("regressed", "passed")).unwrap();
    keep_gate(&last, &place.out, &worse).unwrap();
    assert_eq!(kept(), worse);
    let error = keep_gate(&last, &place.out, &Record { run: "another".to_owned(), ..record.clone() }).unwrap_err();
    assert!(error.to_string().contains(&format!("is of another run, {}, ", worse.run)), "{error}");
    assert_eq!(kept(), worse);
    let passed = Record { verdict: "passed".to_owned(), ..record };
    keep_gate(&last, &place.out, &passed).unwrap();
    assert_eq!(kept(), passed);

    // A judgement that can't be read is no verdict, and stands in no way; nor is one of gigabytes read.
    let sparse = |bytes: u64| fs::File::create(&gate).unwrap().set_len(bytes).unwrap();
    for (left, told) in [(0, "EOF while parsing"), (5 << 30, "it has 5120 MB, and more than 16 MB are not read")] {
        sparse(left);
        site(&last, &place.out).unwrap();
        let index = read(&place.out.join("index.html"));
        assert!(index.contains("gate.json can&#x27;t be read") && index.contains(told), "{told}");
    }
    keep_gate(&last, &place.out, &alone).unwrap();
    assert_eq!(kept(), alone);
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
        held: None,
    };
    keep_gate(&folder, &place.out, &record).unwrap();
    site(&place.runs, &place.out).unwrap();
    let pages: Vec<String> = files(&place.out).into_keys().filter(|name| !name.ends_with(GATE)).collect();
    assert_eq!(pages.len(), 4, "{pages:?}");
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
    assert_eq!(site(&place.runs, &place.out).unwrap(), Code::Done);
    let index = read(&place.out.join("index.html"));
    for words in ["it is no regular file", "vanished", "cells.csv is cut off in its first line", &id_of(&unfinished)] {
        assert!(index.contains(words), "{words}: {index}");
    }
    assert!(!place.out.join(id_of(&pipe)).exists() && place.out.join(night(0, 1.0).id).join("index.html").is_file());
    let error = site(&pipe, &place.out).unwrap_err();
    assert!(error.to_string().contains("samples.csv can't be read as a table: it is no regular file"), "{error}");
    // A page of its tables can be made; that its device is unknown is no less an error.
    let damaged = night(4, 1.0).write(&place.runs);
    fs::write(damaged.join("manifest.json"), "{\"run").unwrap();
    for _ in 0..2 {
        let error = site(&damaged, &place.out).unwrap_err();
        assert_eq!(exit::of(&error), Code::Usage);
        assert!(error.to_string().contains(&format!("{}: manifest.json is damaged", id_of(&damaged))), "{error}");
    }
    let index = read(&place.out.join("index.html"));
    assert!(index.contains("manifest.json is damaged") && index.contains(&night(0, 1.0).id), "{index}");
    fs::remove_file(damaged.join("manifest.json")).unwrap();
    assert!(site(&damaged, &place.out).unwrap_err().to_string().contains("manifest.json"));
    // One that did not end can be read, and is none.
    let open = night(5, 1.0);
    let mut manifest = open.manifest.clone();
    manifest["finished_utc"] = json!(null);
    assert_eq!(site(&Night { manifest, ..open }.write(&place.runs), &place.out).unwrap(), Code::Done);
    assert_eq!(site(&place.runs, &place.out).unwrap(), Code::Done);
    let error = site(&place.runs.join("none"), &place.out).unwrap_err();
    assert!(error.to_string().contains("none"), "{error}");
}

/// A night of two models on a phone and on the emulator of a PC, of which one model's speed changed on the phone, the other's in the emulator.
fn mixed(day: u32) -> Night {
    let cell = |model: &str, class: &str, level: f64, salt: u64| {
        Cell::new(&format!("mnn.{model}.w4.p32.g16-0a1b2c{salt:02x}"))
            .with("device_class", class)
            .values("decode_tok_s", &noisy(level, 0.005, 10, u64::from(day) * 8 + salt))
    };
    let late = if day < 16 { 1.0 } else { 0.8 };
    Night::night(day)
        .cell(cell("one", "phone", 40.0 * late, 0))
        .cell(cell("one", "emulator", 2.0, 1))
        .cell(cell("two", "phone", 20.0, 2))
        .cell(cell("two", "emulator", 1.0 * late, 3))
}

#[test]
fn a_model_s_page_has_its_own_trends_and_steps_and_no_others() {
    let place = place();
    for day in 0..24 {
        mixed(day).write(&place.runs);
    }
    site(&place.runs, &place.out).unwrap();
    let page = |name: &str| read(&place.out.join(name));
    let (one, two, device) = (page("model-one.html"), page("model-two.html"), page("device-phone-1.html"));
    assert!(one.contains("mnn.one.w4") && !one.contains("mnn.two") && two.contains("mnn.two.w4") && !two.contains("mnn.one"));
    // Panels by class: each of its one cell; the step is in that of the class where it was, and is of one cell.
    let panels = |page: &str| -> Vec<(String, usize, usize)> {
        let class = |panel: &str| panel.split("<span class=\"class\">").nth(1).unwrap().split('<').next().unwrap().to_owned();
        let all = page.split("<section class=\"panel\" id=\"t").skip(1).map(|panel| panel.split("</section>").next().unwrap());
        all.map(|panel| (class(panel), panel.matches("class=\"spark\"").count(), panel.matches(": 1 cell -20.").count())).collect()
    };
    let seen = |page: &str| panels(page).into_iter().map(|(class, cells, steps)| format!("{class} {cells} {steps}")).collect::<Vec<_>>();
    assert_eq!(seen(&one), ["emulator 1 0", "phone 1 1"]);
    assert_eq!(seen(&two), ["emulator 1 1", "phone 1 0"]);
    assert_eq!(seen(&device), ["emulator 2 1", "phone 2 1"], "{device}");
    assert!(one.contains("<a href=\"device-phone-1.html\">phone-1</a>"));
}

#[test]
fn metrics_and_the_change_that_matters_can_be_asked_for() {
    let place = place();
    for day in 0..12 {
        let fall = if day == 11 { 0.85 } else { 1.0 };
        night(day, fall).write(&place.runs);
    }
    let worse = || read(&place.out.join(INDEX)).split("regressed</span>").count() - 1;
    site(&place.runs, &place.out).unwrap();
    assert!(worse() == 1 && read(&place.out.join(INDEX)).contains("Judged: ttft_ms, decode_tok_s, peak_mem_mb; a change of 2 % matters."));
    of(&["decode"], 0.5, &place.runs, &place.out).unwrap();
    assert!(worse() == 0 && read(&place.out.join(INDEX)).contains("Judged: decode_tok_s; a change of 50 % matters."));
    of(&["ttft"], 0.02, &place.runs, &place.out).unwrap();
    assert_eq!(worse(), 0, "nobody measured it");
}

#[test]
fn a_page_of_something_else_is_not_the_run_s_own() {
    let place = place();
    let runs: Vec<PathBuf> = (0..2).map(|day| night(day, 1.0).write(&place.runs)).collect();
    let page = place.out.join(id_of(&runs[0])).join(INDEX);
    let own = || {
        site(&runs[0], &place.out).unwrap();
        fs::read_to_string(&page).unwrap()
    };
    let wanted = own();
    for other in [
        Report::of(&runs, None).unwrap().html().unwrap(),
        Report::of(&runs[..1], crate::scenario::preset("glasses")).unwrap().html().unwrap(),
        Report::of(&runs[1..], None).unwrap().html().unwrap(),
        // As another language and another version of this program have it.
        wanted.replacen("&quot;lang&quot;:&quot;en&quot;", "&quot;lang&quot;:&quot;zh&quot;", 1),
        wanted.replacen("&quot;tool&quot;:&quot;", "&quot;tool&quot;:&quot;9.", 1),
        wanted.replacen("&quot;look&quot;:&quot;", "&quot;look&quot;:&quot;9", 1),
        "<p>not of bench".to_owned(),
    ] {
        assert_ne!(other, wanted);
        fs::write(&page, &other).unwrap();
        assert_eq!(own(), wanted, "{}", &other[..200.min(other.len())]);
    }
    // One that is newer than its tables and older than the program is of another build.
    let at = |path: &Path, seconds: u64| {
        let file = fs::File::options().append(true).open(path).unwrap();
        file.set_modified(std::time::UNIX_EPOCH + std::time::Duration::from_secs(seconds)).unwrap();
    };
    for entry in fs::read_dir(&runs[0]).unwrap() {
        at(&entry.unwrap().path(), 1);
    }
    at(&page, 2);
    own();
    assert!(fs::metadata(&page).unwrap().mtime() > 2);
    // What is no file is no page, and is not removed.
    fs::remove_file(&page).unwrap();
    fs::create_dir(&page).unwrap();
    let error = site(&runs[0], &place.out).unwrap_err().to_string();
    assert!(error.contains("index.html is in the way") && error.contains("no regular file; move it away"), "{error}");
    assert_eq!(site(&place.runs, &place.out).unwrap(), Code::Done, "the others have theirs");
    assert!(read(&place.out.join(INDEX)).contains("index.html is in the way") && place.out.join(id_of(&runs[1])).join(INDEX).is_file());
    fs::remove_dir_all(page.parent().unwrap()).unwrap();
    fs::write(page.parent().unwrap(), "").unwrap();
    let error = site(&runs[0], &place.out).unwrap_err().to_string();
    assert!(error.contains("is in the way") && error.contains("no folder"), "{error}");
}

#[test]
fn devices_that_differ_in_case_have_pages_that_differ_otherwise() {
    let place = place();
    let named = |day: u32, device: &str| {
        let mut made = night(day, 1.0);
        made.manifest["device"]["name"] = json!(device);
        made.cells = made.cells.into_iter().map(|cell| cell.with("device", device)).collect();
        made.write(&place.runs)
    };
    let pages = || files(&place.out).into_keys().filter(|name| name.starts_with("device-")).collect::<Vec<_>>();
    named(0, "pixel");
    site(&place.runs, &place.out).unwrap();
    assert_eq!(pages(), ["device-pixel.html"]);
    let other = named(1, "Pixel");
    site(&place.runs, &place.out).unwrap();
    let both = pages();
    assert!(both.len() == 2 && both.iter().all(|name| name.len() == "device-pixel-01234567.html".len()), "{both:?}");
    assert_ne!(both[0].to_lowercase(), both[1].to_lowercase());
    let index = read(&place.out.join(INDEX));
    assert!(both.iter().all(|name| index.contains(&format!("href=\"{name}\""))));
    // When one goes, the other is called as before. A page that nobody here made stays, though its name looks like one of these.
    fs::remove_dir_all(other).unwrap();
    fs::write(place.out.join("device-mine.html"), "<p>mine").unwrap();
    site(&place.runs, &place.out).unwrap();
    assert_eq!(pages(), ["device-mine.html", "device-pixel.html"]);
}

#[test]
fn a_folder_of_the_same_name_does_not_take_another_run_s_page() {
    let place = place();
    let of = |parent: &str, day: u32| {
        let made = night(day, 1.0).write(&place.runs.join(parent));
        let folder = made.with_file_name("tonight");
        fs::rename(&made, &folder).unwrap();
        folder
    };
    let (first, second) = (of("a", 0), of("b", 1));
    let page = place.out.join("tonight").join(INDEX);
    site(&first, &place.out).unwrap();
    let before = files(&place.out);
    let error = site(&second, &place.out).unwrap_err();
    assert_eq!(exit::of(&error), Code::Usage);
    assert!(error.to_string().contains(&format!("is of another run, {}, ", night(0, 1.0).id)), "{error}");
    assert_eq!(files(&place.out)["tonight/index.html"], before["tonight/index.html"]);
    // Of the whole folder it is what the index says of that run.
    assert_eq!(site(&place.runs.join("b"), &place.out).unwrap(), Code::Done);
    let index = read(&place.out.join(INDEX));
    assert!(index.contains("is of another run") && index.contains(&night(1, 1.0).id) && !index.contains("href=\"tonight/"), "{index}");
    fs::remove_file(&page).unwrap();
    site(&second, &place.out).unwrap();
    assert!(fs::read_to_string(page).unwrap().contains(&night(1, 1.0).id));
}

#[test]
fn a_site_of_nothing_says_what_is_missing() {
    let place = place();
    fs::create_dir(&place.runs).unwrap();
    let told = || {
        site(&place.runs, &place.out).unwrap();
        read(&place.out.join(INDEX))
    };
    let none = "The folder of runs holds no finished run yet";
    assert!(told().contains(&format!("{none}. <code>bench run SCENARIO</code> makes one")));
    fs::create_dir(place.runs.join("begun")).unwrap();
    fs::write(place.runs.join("begun/plan.toml"), "").unwrap();
    assert!(told().contains(&format!("{none}; what it holds is left out, each with the reason.")));
    night(0, 1.0).write(&place.runs);
    assert!(!told().contains(none));
}
