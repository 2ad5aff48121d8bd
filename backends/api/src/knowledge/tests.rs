use super::*;

#[test]
fn the_shared_tables_are_sound() {
    assert_eq!(DEVICE.problems(), Vec::<String>::new());
}

const SMALL: &str = r#"
[[entry]]
id = "consequence"
text = ["failed"]
kind = "runtime"
weight = "soft"
cause = "something failed"
next-step = "look for the cause"
source = "example/tool#1"
samples = ["it failed"]

[[entry]]
id = "mismatch"
text = ["expected ({one}), detected ({two})"]
kind = "infra"
cause = "{one} met {two}"
next-step = "take one version of both"
source = "example/tool#2"
samples = ["expected (v1), detected (v2)"]

[[entry]]
id = "refused"
codes = ["5005"]
kind = "model"
cause = "the file was refused"
next-step = "make it again"
source = "example/tool#3"
samples = ["err 5005"]
"#;

#[test]
fn the_entry_nearest_to_the_cause_explains_a_log() {
    let table = Table::parse(&[SMALL]).unwrap();
    let log = ["it failed", "failed with err 0x138d", "expected (v2.31), detected (v2.36)", "it failed again"];
    let found = table.nearest(log).unwrap();
    assert_eq!((found.entry.id.as_str(), found.hint().as_str()), ("mismatch", "v2.31 met v2.36; take one version of both"));
    assert_eq!(found.failure("x"), Failure { kind: FailureKind::Infra, message: "x".into(), hint: Some(found.hint()) });
    // Soft entries come last, wherever they stand in the file.
    assert_eq!(table.nearest(log[..2].iter().copied()).unwrap().entry.id, "refused");
    assert_eq!(table.nearest(["it failed"]).unwrap().entry.id, "consequence");
    assert_eq!(table.nearest(["all is well"]), None);
    let failure = Failure::new(FailureKind::Runtime, "it failed; context 3: err 5005");
    assert_eq!(table.explain(&failure).unwrap().hint(), "the file was refused; make it again");
}

#[test]
fn what_is_wrong_with_a_table_is_told() {
    let entry = |id: &str, rest: &str| {
        format!(
            "[[entry]]\nid = \"{id}\"\nkind = \"infra\"\ncause = \"a cause of it\"\nnext-step = \"what to do {{pid}}\"\nsource = \"x/y#1\"\n{rest}\n"
        )
    };
    let text = [
        entry("a", "text = [\"broken {pid} times\"]\nsamples = [\"broken 7 times\", \"whole\"]"),
        entry("a", "codes = [\"7\"]\nsamples = []"),
        entry("b", "text = [\"broken 8 {pid}\"]\nsamples = [\"it is broken 8 times\"]"),
    ]
    .concat();
    let problems = Table::parse(&[&text]).unwrap().problems().join("\n");
    for words in [
        "a: its sample is not matched: whole",
        "a: the id stands twice",
        "a: a cause, a next step, a source and a sample are needed",
        "a: `{pid}` is not kept by all its patterns",
        "b: its sample is explained by a instead",
    ] {
        assert!(problems.contains(words), "{words} is not in:\n{problems}");
    }
    for text in ["[[entry]]\nid = \"x\"", "x = 1", &entry("c", "text = [\"*\"]\nsamples = []"), &entry("d", "colour = 1\nsamples = []")] {
        assert!(Table::parse(&[text]).is_err(), "{text}");
    }
}

#[test]
fn hostile_lines_do_not_panic() {
    let table = &DEVICE;
    let long = "{".repeat(100_000);
    for line in
        ["", "\u{0}", "İ(ı)ſ kill '", "Kill '' ()", "Kill 'ä' (99999999999999999999), uid", "err -", "err 0x", "0x8 0x80000406é", &long]
    {
        let _ = table.find(line).map(|found| (found.pid(), found.hint()));
    }
    assert_eq!(table.find("Kill 'x' (99999999999999999999), uid 1").unwrap().pid(), None);
}
