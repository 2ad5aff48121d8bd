//! Files that nobody would write on purpose: no input makes the module panic or hang.

use std::time::{Duration, Instant};

use super::*;

/// Checks a text and draws its problems; both must come to an end.
fn survive(text: &str) -> Result<Scenario, Problems> {
    let result = check(text);
    if let Err(problems) = &result {
        assert!(!problems.is_empty());
        assert!(!problems.render(false).contains('\0') && !problems.to_string().contains('\u{1b}'));
    }
    result
}

#[test]
fn the_shipped_scenario_cut_at_every_byte() {
    let text = std::fs::read_to_string("scenarios/pc.toml").expect("shipped");
    let dir = Path::new("scenarios");
    for end in (0..=text.len()).filter(|i| text.is_char_boundary(*i)) {
        if let Err(problems) = check_in(dir, &text[..end]) {
            problems.render(false);
        }
    }
}

#[test]
fn every_line_taken_out_and_every_line_doubled() {
    let lines: Vec<&str> = GOOD.lines().collect();
    for i in 0..lines.len() {
        let without: Vec<&str> = lines.iter().enumerate().filter(|(j, _)| *j != i).map(|(_, l)| *l).collect();
        let _ = survive(&without.join("\r\n"));
        let mut doubled = lines.clone();
        doubled.insert(i, lines[i]);
        let _ = survive(&doubled.join("\n"));
    }
}

#[test]
fn long_lines_deep_nesting_and_odd_bytes() {
    let started = Instant::now();
    let long = "x".repeat(1 << 20);
    let bad = survive(&format!("{GOOD}# {long}\n[telemetry]\nrate = \"{long}\"\n")).expect_err("no rate");
    assert!(bad.render(false).len() < 1000 && bad.to_string().len() < 1000);
    let _ = survive(&format!("{GOOD}{long} = 1\n"));
    let _ = survive(&format!("name = {}1{}", "[".repeat(50_000), "]".repeat(50_000)));
    let _ = survive(&format!("name = {}", "{a=".repeat(50_000)));
    let _ = survive(&"[a]\n".repeat(20_000));
    let _ = survive(&format!("{}=1", vec!["a"; 5000].join(".")));
    let many: String = (0..20_000).map(|i| format!("k{i} = 1")).collect::<Vec<_>>().join("\n");
    let bad = survive(&many).expect_err("unknown keys");
    assert_eq!(bad.problems.len(), 100);
    assert!(bad.to_string().ends_with(" more"), "{bad}");
    for odd in
        ["\0", "\u{feff}", "\u{1b}[31m", "\u{9b}", "name = \"\\u0000\"", "name = '\u{202e}'", "name = \"\u{1b}\"", "=", "[", "\"\"\"", "\r"]
    {
        let _ = survive(odd);
        let _ = survive(&format!("{odd}{GOOD}"));
        let _ = survive(&format!("{GOOD}{odd}"));
    }
    assert!(started.elapsed() < Duration::from_mins(1), "{:?}", started.elapsed());
}

#[test]
fn files_that_are_not_text() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("s.toml");
    let load = |bytes: &[u8]| {
        std::fs::write(&path, bytes).expect("written");
        super::super::load(&path, &BACKENDS, &[]).expect_err("bad").problems.remove(0)
    };
    assert_eq!(line(&load(b"name = \"x\"\nlocal = \"\xff\"\n")), "2:10 not UTF-8 text / save the file as UTF-8");
    assert_eq!(load(&vec![b'#'; 9 << 20]).message, "is over 8 MB long");
    let gone = super::super::load(&dir.path().join("gone.toml"), &BACKENDS, &[]).expect_err("gone");
    assert!(gone.to_string().contains("gone.toml: can't be read: "), "{gone}");
    let folder = super::super::load(dir.path(), &BACKENDS, &[]).expect_err("a folder");
    assert!(folder.to_string().contains("can't be read: "), "{folder}");
}
