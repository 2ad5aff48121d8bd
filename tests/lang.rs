//! `--lang zh`: what people read is Chinese, what programs read is not touched.

mod support;

use std::{fs, path::Path};

use support::{Ran, Scenario, bench, root, run};

/// Small English words that stay: terms, names of tools and options in messages.
const KEPT: &str = "token tokens bench agent runner cargo build workspace run resume plan ok mnn genie qnn ort example plus context binary python \
    install licence accept runtimes qairt adb connect root android device devices local pc";

/// The lines that hold English sentences: two words of small letters in a row that are no terms, outside of quotes.
fn english(text: &str) -> Vec<&str> {
    let word =
        |word: &str| word.len() > 2 && word.chars().all(|c| c.is_ascii_lowercase()) && !KEPT.split_whitespace().any(|kept| kept == word);
    let prose = |line: &str| {
        let plain: String = line.split('`').step_by(2).collect();
        plain.split_whitespace().collect::<Vec<_>>().windows(2).any(|two| two.iter().all(|one| word(one)))
    };
    text.lines().filter(|line| prose(line)).collect()
}

fn chinese(text: &str) -> bool {
    text.contains(|c: char| matches!(c, '\u{4e00}'..='\u{9fff}'))
}

/// Runs it in English and in Chinese: both end alike.
#[track_caller]
fn both(dir: &Path, arguments: &[&str]) -> (Ran, Ran) {
    let english = run(bench(dir).args(arguments));
    let chinese = run(bench(dir).args(arguments).args(["--lang", "zh"]));
    assert_eq!(english.code(), chinese.code(), "{arguments:?}: {chinese:?}");
    (english, chinese)
}

#[test]
fn the_console_says_everything_in_chinese() {
    let dir = tempfile::tempdir().unwrap();
    let of_root = |path: &str| root().join(path).display().to_string();
    let (example, pc) = (of_root("results/example-pc"), of_root("scenarios/pc.toml"));
    // A comparison takes two runs of different ids.
    let other = dir.path().join("other");
    fs::create_dir(&other).unwrap();
    for entry in fs::read_dir(&example).unwrap() {
        let path = entry.unwrap().path();
        let text = fs::read_to_string(&path).unwrap();
        let id = text.lines().find_map(|line| line.trim().strip_prefix("\"run\": \"")?.strip_suffix("\","));
        let text = id.map_or_else(|| text.clone(), |id| text.replace(id, "other"));
        fs::write(other.join(path.file_name().unwrap()), text).unwrap();
    }
    let other = other.display().to_string();
    let broken = dir.path().join("broken.toml");
    fs::write(&broken, "name = \"x\"\n[device]\nlocal = true\n[matrix]\nbackend = []\ncolour = 1\n").unwrap();
    let broken = broken.display().to_string();
    for arguments in [
        vec!["plan", &pc],
        vec!["check", &pc],
        vec!["check", &broken],
        vec!["compare", &example, &other],
        vec!["compare", &example, &other, "--markdown", "-"],
        vec!["compare", &example, &other, "--layers", "--markdown", "-"],
        vec!["import", "/proc/self"],
        vec!["history", &dir.path().display().to_string()],
        vec!["gate", &other, "--baseline", &example],
        vec!["estimate", &of_root("scenarios/models/llama-3.2-3b.toml"), "--soc", "SM8650"],
        vec!["report", "nowhere"],
        vec!["plan", &pc, "--only", "quant=w5"],
        vec!["plan", &pc, "--frobnicate"],
        vec!["frobnicate"],
        vec!["runtimes", "list"],
    ] {
        let (_, said) = both(dir.path(), &arguments);
        let text = said.stdout + &said.stderr;
        assert!(chinese(&text), "{arguments:?}: {text}");
        assert!(english(&text).is_empty(), "{arguments:?}:\n{}", english(&text).join("\n"));
    }
    // Words to type stay as they are to be typed.
    let said = run(bench(dir.path()).args(["check", &broken, "--lang", "zh"])).expect(3).stderr;
    assert!(said.contains("colour") && !said.contains("known:") && said.contains("可用：backend, model, quant"), "{said}");
    // What stands before a message is no part of a name in it.
    let said = run(bench(dir.path()).args(["report", "nowhere", "--lang", "zh"])).expect(2).stderr;
    assert!(said.starts_with("错误：nowhere"), "{said}");
    // The environment says it too, and the command line goes before it.
    let plan = |lang: &[&str]| run(bench(dir.path()).env("BENCH_LANG", "zh").args(["plan", &pc]).args(lang)).expect(0).stdout;
    assert!(chinese(&plan(&[])) && !chinese(&plan(&["--lang", "en"])));
    run(bench(dir.path()).args(["plan", &pc, "--lang", "xx"])).expect(2).says(&["xx", "zh"]);
    run(bench(dir.path()).env("BENCH_LANG", "xx").args(["plan", &pc])).expect(2).says(&["xx", "zh"]);
    let empty = run(bench(dir.path()).env("BENCH_LANG", "").args(["plan", &pc])).expect(0);
    assert!(!chinese(&empty.stdout), "a variable that is set to nothing is not set: {}", empty.stdout);
}

/// The example's folder again, with these words instead of others.
fn altered(dir: &Path, name: &str, words: &[(&str, &str)]) -> String {
    let folder = dir.join(name);
    fs::create_dir(&folder).unwrap();
    for entry in fs::read_dir(root().join("results/example-pc")).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            let text = words.iter().fold(fs::read_to_string(&path).unwrap(), |text, (old, new)| text.replace(old, new));
            fs::write(folder.join(path.file_name().unwrap()), text).unwrap();
        }
    }
    folder.display().to_string()
}

#[test]
fn what_can_not_be_read_is_said_in_chinese() {
    let dir = tempfile::tempdir().unwrap();
    let example = root().join("results/example-pc").display().to_string();
    let file = |name: &str, text: &[u8]| {
        fs::write(dir.path().join(name), text).unwrap();
        dir.path().join(name).display().to_string()
    };
    let toml = file("a.toml", b"name = x\n[device\na b = 1\nc = \"\n");
    let bytes = file("b.toml", b"\xff");
    let values = file("c.toml", b"name = \"c\"\n[device]\nlocal = true\n[measure]\ntimeout = \"x min\"\n");
    let damaged = |name: &str, of: &str, text: &str| {
        let folder = altered(dir.path(), name, &[]);
        fs::write(Path::new(&folder).join(of), text).unwrap();
        folder
    };
    let manifest = damaged("manifest", "manifest.json", "{\"run\": 5}");
    let empty = damaged("empty", "manifest.json", "");
    let plan = damaged("plan", "plan.toml", "name = \n");
    let table = damaged("table", "cells.csv", "a,b\n1,2,3\n");
    let first = damaged("first", "cells.csv", "a,b");
    for arguments in [
        vec!["check", &toml],
        vec!["check", &bytes],
        vec!["check", &values],
        vec!["check", "nowhere.toml"],
        vec!["check", "/"],
        vec!["parse", "mnn", "nowhere"],
        vec!["history", "nowhere"],
        vec!["gate", &example, "--baseline", "nowhere"],
        vec!["gate", &example, "--limit", "3x"],
        vec!["gate", &empty],
        vec!["gate", &manifest],
        vec!["gate", &plan],
        vec!["compare", &example, &table],
        vec!["compare", &example, &first],
        vec!["run", "--resume", &manifest],
        vec!["run", "--resume", &plan],
        vec!["report", &table],
        vec!["devices", "--adb-port", "99999999"],
        vec!["completions", "tcsh"],
        vec!["plan", "--only"],
    ] {
        let said = both(dir.path(), &arguments).1;
        let text = said.stdout + &said.stderr;
        assert!(chinese(&text), "{arguments:?}: {text}");
        assert!(english(&text).is_empty(), "{arguments:?}:\n{}", english(&text).join("\n"));
    }
}

#[test]
fn what_is_called_like_a_word_keeps_its_name() {
    let dir = tempfile::tempdir().unwrap();
    let example = root().join("results/example-pc").display().to_string();
    // `other` is a word that the table says.
    let id = fs::read_to_string(root().join("results/example-pc/manifest.json")).unwrap();
    let id = id.lines().find_map(|line| line.trim().strip_prefix("\"run\": \"")?.strip_suffix("\",")).unwrap().to_owned();
    let other = altered(dir.path(), "other", &[("mnn", "other"), (&id, "other")]);
    let said = run(bench(dir.path()).args(["report", &other, "--lang", "zh"])).expect(0).stderr;
    assert!(said.contains("other · w4") && said.contains("通过") && !said.contains("其他 ·"), "{said}");
    let said = run(bench(dir.path()).args(["compare", &other, &example, "--lang", "zh"])).expect(0).stdout;
    assert!(said.contains("A  other  pc  ") && !said.contains("A  其他"), "{said}");
}

#[test]
fn help_is_asked_for_in_both_ways() {
    let dir = tempfile::tempdir().unwrap();
    for (words, option) in [
        (vec!["help"], vec!["--help"]),
        (vec!["help", "run"], vec!["run", "--help"]),
        (vec!["devices", "help", "clean"], vec!["devices", "clean", "--help"]),
    ] {
        let [word, option] = [words, option].map(|line| run(bench(dir.path()).args(["--lang", "zh"]).args(line)).expect(0).stdout);
        assert_eq!(word, option);
        assert!(chinese(&word) && !word.contains("[OPTIONS]") && !word.contains("命令:"), "{word}");
    }
    run(bench(dir.path()).args(["--lang", "zh", "help", "frobnicate"])).expect(2).says(&["未知的子命令 'frobnicate'"]);
}

#[test]
fn help_is_chinese() {
    let dir = tempfile::tempdir().unwrap();
    for verb in [
        vec![],
        vec!["run"],
        vec!["compare"],
        vec!["gate"],
        vec!["estimate"],
        vec!["import"],
        vec!["devices", "clean"],
        vec!["runtimes", "install"],
    ] {
        let help = run(bench(dir.path()).args(&verb).args(["--help", "--lang", "zh"])).expect(0).stdout;
        assert!(help.contains("用法：") && help.contains("--lang"), "{help}");
        assert!(english(&help).is_empty(), "{verb:?}:\n{}", english(&help).join("\n"));
    }
}

#[test]
fn what_programs_read_is_the_same_in_all_languages() {
    let dir = tempfile::tempdir().unwrap();
    let pc = root().join("scenarios/pc.toml").display().to_string();
    for arguments in
        [vec!["plan", &pc, "--format", "json"], vec!["check", &pc, "--format", "json"], vec!["schema"], vec!["completions", "bash"]]
    {
        let (english, chinese) = both(dir.path(), &arguments);
        assert_eq!(english.stdout, chinese.stdout, "{arguments:?}");
    }
}

#[test]
fn what_goes_with_a_page_is_in_its_language_and_what_programs_read_is_not() {
    let dir = tempfile::tempdir().unwrap();
    let example = root().join("results/example-pc");
    let of = |lang: &str| {
        run(bench(dir.path()).arg("report").arg(&example).args(["--svg", "--out", lang, "--lang", lang])).expect(0);
        dir.path().join(lang).join("example-pc")
    };
    let [english_page, chinese_page] = ["en", "zh"].map(of);
    let read = |folder: &Path, name: &str| fs::read_to_string(folder.join(name)).unwrap();
    assert_eq!(read(&english_page, "summary.csv"), read(&chinese_page, "summary.csv"));
    // The tables of both hold the same figures in the same places; the words around them are others.
    let [summary, said] = [&english_page, &chinese_page].map(|folder| read(folder, "summary.md"));
    let figures = |text: &str| -> Vec<Vec<String>> {
        let number = |field: &str| field.starts_with(|c: char| c.is_ascii_digit()) && !field.contains(char::is_alphabetic);
        let row = |line: &str| line.split('|').map(str::trim).filter(|field| number(field)).map(str::to_owned).collect::<Vec<_>>();
        text.lines().map(row).filter(|row| !row.is_empty()).collect()
    };
    assert_eq!(figures(&summary), figures(&said));
    assert!(figures(&summary).len() >= 18 && said.contains("## 未计入数据"), "{said}");
    assert!(english(&said).is_empty(), "{}", english(&said).join("\n"));
    let names = |folder: &Path| {
        let mut names: Vec<_> = fs::read_dir(folder.join("pictures")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    assert_eq!(names(&english_page), names(&chinese_page));
    for name in names(&chinese_page) {
        assert!(chinese(&read(&chinese_page.join("pictures"), &name.to_string_lossy())), "{}", name.display());
    }
}

#[test]
fn a_run_is_told_in_chinese_and_recorded_as_ever() {
    let dir = tempfile::tempdir().unwrap();
    let scenario = Scenario::default().write(dir.path());
    let said = run(bench(dir.path()).arg("run").arg(&scenario).args(["--lang", "zh"])).expect(0);
    assert!(english(&said.stderr).is_empty() && said.stderr.contains("已测量 1 个单元"), "{}", said.stderr);
    let page = fs::read_dir(dir.path().join("reports")).unwrap().next().unwrap().unwrap().path().join("index.html");
    let html = fs::read_to_string(page).unwrap();
    assert!(html.contains("<html lang=\"zh-CN\"") && html.contains("首 token 延迟"));
    let folder = support::only_run(&dir.path().join("results"));
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            assert!(!chinese(&fs::read_to_string(&path).unwrap()), "{}", path.display());
        }
    }
}
