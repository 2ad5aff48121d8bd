//! The same judgement in each form, with names that try to be more than text.

use super::*;
use crate::{
    gate::{
        nightly::{Gate, Kind, Row, Since},
        require::{Judged, Met},
        run::Key,
        verdict::{Effect, Verdict},
    },
    lang::{Lang, Voice},
};

fn row(cell: &str, metric: &'static str, verdict: Verdict) -> Row {
    Row {
        key: Key { device: "phone-1".to_owned(), cell: cell.to_owned() },
        class: "phone".to_owned(),
        metric,
        higher_is_better: metric == "decode_tok_s",
        kind: Kind::Performance,
        verdict,
        tonight: Some(19.25),
        // Worse by ln 1.25; by hand 1/1.25 = 0.8 of the tokens a second.
        effect: Some(Effect { log: 1.25_f64.ln(), lo: 1.2_f64.ln(), hi: 1.3_f64.ln() }),
        tolerance: Some(0.014),
        mde: Some(0.016),
        nights_needed: None,
        baseline: 14,
        window: 3,
        since: None,
        confirmed: None,
        reasons: Vec::new(),
        before: Vec::new(),
    }
}

fn gate() -> Gate {
    let since = Since { run: "r1".to_owned(), started_utc: "2026-01-15T02:00:00Z".to_owned(), changed: vec!["runtime: a -> b".to_owned()] };
    let required = Judged {
        requirement: 0,
        words: "ttft p95 <= 380ms (prompt-tokens 128)".to_owned(),
        device: "phone-1".to_owned(),
        cell: "mnn".to_owned(),
        value: Some(412.0),
        found: None,
        unit: "ms",
        lo: Some(400.0),
        hi: None,
        n: 60,
        slack: Some(-0.0842),
        mde: None,
        met: Met::Violated,
        why: "60 queries".to_owned(),
    };
    let lost = Row {
        kind: Kind::Infra,
        metric: "",
        effect: None,
        tonight: None,
        tolerance: None,
        mde: None,
        ..row("x|y", "", Verdict::Undecided)
    };
    Gate {
        run: "r1".to_owned(),
        scenario: "nightly".to_owned(),
        started_utc: "2026-01-15T02:00:00.000Z".to_owned(),
        against: "14 nights".to_owned(),
        nights: 14,
        limit: 0.02,
        metrics: vec!["decode_tok_s"],
        notes: vec!["a <note>\u{1}".to_owned()],
        rows: vec![
            Row { since: Some(since), ..row("<b>,:\n%`@all`", "decode_tok_s", Verdict::Regressed) },
            Row { reasons: vec!["no device".to_owned()], ..lost },
            row("quiet", "ttft_ms", Verdict::Unchanged),
        ],
        requirements: vec![required],
        requirements_known: true,
    }
}

#[test]
fn for_a_terminal() {
    let text = human(&gate());
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "r1 against 14 nights, limit 2 %");
    assert!(text.contains("regressed  <b>,: %`@all`  decode_tok_s    19.25    -20.0 %") && !text.contains('\u{1}'), "{text}");
    assert!(text.contains("-20.0 % [-23.1, -16.7]") && text.contains("+25.0 % [+20.0, +30.0]"), "{text}");
    assert!(text.contains("            since 2026-01-15T02:00:00Z (r1): runtime: a -> b"), "{text}");
    assert!(text.contains("412.0 [400.0, -] ms  -8.4 % room  60 queries"), "{text}");
    assert!(text.contains("1 regressed, 1 undecided, 1 unchanged, 1 requirement violated"), "{text}");
    assert!(text.contains("under 1 % false alarms a night: 2 here, so up to 0.02 false alarms a night"), "{text}");
}

/// Odds are those of a history; an unchanged row says what it would not show.
#[test]
fn what_is_not_known_is_said() {
    let mut gate = gate();
    gate.rows[0].baseline = 2;
    gate.rows[2].reasons = vec!["a regression under 5.0 % may go unseen here".to_owned()];
    let text = human(&gate);
    assert!(
        text.contains("a night: 1 here, so up to 0.01 false alarms") && text.contains("of 1 with under 6 nights before them"),
        "{text}"
    );
    assert!(text.contains("            a regression under 5.0 % may go unseen here\n"), "{text}");
    assert!(text.contains("unchanged on the one-sided 95 % end"), "{text}");
    assert!(junit(&gate, &Voice::new(Lang::En)).contains("finds 1.6 % within two nights"));
    gate.rows.clear();
    assert!(human(&gate).ends_with("\nno change was judged\n"));
}

#[test]
fn for_a_pull_request() {
    let text = markdown(&gate());
    assert!(text.starts_with("### bench gate: regressed\n"), "{text}");
    for hostile in ["<b>", "@all", "`", "x|y", "<note>", "\u{1}"] {
        assert!(!text.contains(hostile), "{hostile:?} in {text}");
    }
    assert!(text.contains("&#60;b&#62;,: %&#96;&#64;all&#96; on phone-1"), "{text}");
    let tables: Vec<usize> = text.lines().filter(|l| l.starts_with('|')).map(|l| l.matches('|').count()).collect();
    assert_eq!(tables, [10, 10, 10, 10, 10, 10, 10, 7, 7, 7], "{text}");
    assert!(text.contains("<details><summary>1 unchanged</summary>"));
}

/// After U+202E the rest of a line reads backwards: `regressed` could stand where it does not.
#[test]
fn no_name_turns_a_line_around() {
    let mut gate = gate();
    gate.rows[0].key.device = "phone\u{202e}2".to_owned();
    gate.requirements[0].cell = "mnn\u{2066}w4".to_owned();
    gate.requirements[0].device = "phone\u{202e}2".to_owned();
    let spoken = [junit as fn(&Gate, &Voice) -> String, annotations].map(|form| move |gate: &Gate| form(gate, &Voice::new(Lang::En)));
    for form in [&human as &dyn Fn(&Gate) -> String, &markdown, &spoken[0], &spoken[1]] {
        let text = form(&gate);
        assert!(!text.contains(['\u{202e}', '\u{2066}']), "{text:?}");
        assert!(text.contains("phone\u{fffd}2") && text.contains("mnn\u{fffd}w4"), "{text:?}");
    }
}

#[test]
fn for_github() {
    assert_eq!(
        annotations(&gate(), &Voice::new(Lang::En)),
        "::error title=decode_tok_s of <b>%2C%3A%0A%25`@all` on phone-1::-20.0 %25 [-23.1, -16.7]; mean of the last 3 nights; since 2026-01-15T02:00:00Z (r1): runtime: a -> b\n\
         ::error title=requirement violated by mnn::ttft p95 <= 380ms (prompt-tokens 128): 412.0 [400.0, -] ms, -8.4 %25 room\n\
         ::warning title=bench gate is undecided::1 regressed, 1 undecided, 1 unchanged, 1 requirement violated"
    );
}

#[test]
fn for_ci_systems() {
    let text = junit(&gate(), &Voice::new(Lang::En));
    assert!(text.contains("tests=\"4\" failures=\"2\" errors=\"0\" skipped=\"1\""), "{text}");
    assert!(text.contains("timestamp=\"2026-01-15T02:00:00\" hostname=\"phone-1\""), "{text}");
    assert!(
        text.contains(
            "classname=\"phone-1.&lt;b&gt;,:&#10;%`@all`\" name=\"decode_tok_s\" time=\"0\">\n      <failure type=\"performance\""
        ),
        "{text}"
    );
    assert!(text.contains("<skipped message=\"undecided; no device\"/>"), "{text}");
    assert!(text.contains("<testcase classname=\"phone-1.quiet\" name=\"ttft_ms\" time=\"0\"/>"), "{text}");
    assert!(text.contains("a &lt;note&gt;\u{fffd}"), "{text}");
}

/// Sentences are Chinese; names, by which a CI system knows a test again, and kinds are the same in all languages.
#[test]
fn for_ci_systems_in_chinese() {
    let voice = Voice::new(Lang::Zh);
    let text = junit(&gate(), &voice);
    assert!(text.contains("<skipped message=\"未定；no device\"/>"), "{text}");
    assert!(text.contains("最近 3 夜的平均；自 2026-01-15T02:00:00Z（r1）起：运行时："), "{text}");
    assert!(text.contains("违反；412.0 [400.0, -] ms；余量 -8.4 %"), "{text}");
    assert!(text.contains("name=\"odds\" value=\"每个单元的每个指标单独判定"), "{text}");
    let names = |text: &str| {
        text.lines().filter_map(|line| line.split(" time=").next()?.strip_prefix("    <testcase ").map(str::to_owned)).collect::<Vec<_>>()
    };
    let kinds =
        |text: &str| text.lines().filter_map(|line| Some(line.split("type=\"").nth(1)?.split('"').next()?.to_owned())).collect::<Vec<_>>();
    let english = junit(&gate(), &Voice::new(Lang::En));
    assert_eq!((names(&text), kinds(&text)), (names(&english), kinds(&english)));
    assert_eq!(names(&text).len(), 4);
    let commands = annotations(&gate(), &voice);
    assert!(commands.contains("::error title=mnn 违反了要求::ttft p95 <= 380ms（提示 token 数 128）"), "{commands}");
    assert!(commands.contains("::warning title=bench gate 未定::1 个退化"), "{commands}");
}

#[test]
fn a_record_says_whether_anything_was_held_against_other_nights() {
    let mut gate = gate();
    assert_eq!(Record::of(&gate).held, Some(true));
    // A requirement alone, and rows without a change, are no verdict on nights; a cell that used to work is one.
    gate.rows.retain(|row| row.effect.is_none());
    assert_eq!((gate.rows.len(), Record::of(&gate).verdict.as_str(), Record::of(&gate).held), (1, "regressed", Some(false)));
    gate.rows[0].verdict = Verdict::Regressed;
    assert_eq!(Record::of(&gate).held, Some(true));
}
