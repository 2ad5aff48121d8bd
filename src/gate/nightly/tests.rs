//! What a failure means, by hand.

use super::{
    Gate, Kind, Row, Verdict,
    confirm::again,
    fate::{fate, flaky, never},
};
use crate::gate::{
    history::{Figure, Gap},
    nights::Night,
    run::{Cell, Key, Launch, Run},
};

/// `o` worked, `a` worked without this metric, `f` failed, `u` a check contradicts it, `i` failed for its surroundings, `s` skipped; run by run.
fn nights(words: &str) -> Vec<(usize, Figure)> {
    let figure = |c| match c {
        'o' => Figure::Value { at: 1.0, mad: None, n: 5, median: false },
        'a' => Figure::None(Gap::Absent),
        'f' => Figure::None(Gap::Failed),
        'u' => Figure::None(Gap::Unverified),
        'i' => Figure::None(Gap::Infra),
        _ => Figure::None(Gap::Skipped),
    };
    words.chars().enumerate().map(|(run, c)| (run, figure(c))).collect()
}

#[test]
fn a_failure_is_new_or_known_or_flaky() {
    let cases = [
        ("ooo", Kind::Failure, Verdict::Regressed, None),
        ("oau", Kind::Failure, Verdict::Regressed, Some(2)),
        ("oofff", Kind::Failure, Verdict::Regressed, Some(2)),
        // What the surroundings did tells nothing of the cell: neither that it works nor that it does not.
        ("ooisf", Kind::Failure, Verdict::Regressed, Some(4)),
        ("ofo", Kind::Flaky, Verdict::Undecided, None),
        ("ofof", Kind::Flaky, Verdict::Undecided, None),
        ("fff", Kind::Failure, Verdict::Undecided, None),
        ("", Kind::Failure, Verdict::Undecided, None),
        ("iis", Kind::Failure, Verdict::Undecided, None),
        // It began to work after nights of failure: a failure that ended once comes and goes.
        ("ffoo", Kind::Flaky, Verdict::Undecided, None),
        // Too long ago to count.
        ("fooooooooooo", Kind::Failure, Verdict::Regressed, None),
    ];
    for (before, kind, verdict, since) in cases {
        let found = fate(&nights(before), Some(Gap::Failed));
        assert_eq!((found.kind, found.verdict, found.since), (kind, verdict, since), "{before}: {}", found.why);
    }
    assert_eq!(fate(&nights("oofff"), Some(Gap::Unverified)).why, "used to work, and fails for its own reason since 4 nights");
    assert_eq!(fate(&nights("ofo"), Some(Gap::Failed)).why, "flaky: failed in 1 of the last 3 nights, and tonight");
}

#[test]
fn what_is_not_the_cells_own_is_no_regression() {
    for (gap, kind) in [(Some(Gap::Infra), Kind::Infra), (Some(Gap::Skipped), Kind::Missing), (None, Kind::Missing)] {
        let found = fate(&nights("oooo"), gap);
        assert_eq!((found.kind, found.verdict), (kind, Verdict::Undecided));
    }
}

/// Else a matrix with a combination that an engine can't do would be undecided for ever.
#[test]
fn a_cell_that_no_night_tried_is_not_missed() {
    assert!(never(&nights("sss")).is_some());
    assert_eq!((never(&nights("")), never(&nights("sos")), never(&nights("is")), never(&nights("sf"))), (None, None, None, None));
}

#[test]
fn a_cell_that_works_tonight_and_not_always_is_said() {
    assert_eq!(flaky(&nights("ofouo")).as_deref(), Some("flaky: failed in 2 of the last 5 nights"));
    assert_eq!((flaky(&nights("oio")), flaky(&nights("fff")), flaky(&nights(""))), (None, None, None));
}

/// Twenty nights of 100 ms that are 0.2 % off in turn, and one that looks regressed.
fn regressed() -> Gate {
    let before = (0..20).map(|i| Night { at: 100_f64.ln() + if i % 2 == 0 { 0.002 } else { -0.002 }, error: Some(0.002) }).collect();
    let row = Row {
        key: key(),
        class: "phone".to_owned(),
        metric: "ttft_ms",
        higher_is_better: false,
        kind: Kind::Performance,
        verdict: Verdict::Regressed,
        tonight: Some(110.0),
        effect: None,
        tolerance: None,
        mde: None,
        nights_needed: None,
        baseline: 20,
        window: 1,
        since: None,
        confirmed: None,
        reasons: Vec::new(),
        before,
    };
    Gate {
        run: "tonight".to_owned(),
        scenario: "nightly".to_owned(),
        started_utc: String::new(),
        against: String::new(),
        nights: 20,
        limit: 0.02,
        metrics: vec!["ttft_ms"],
        notes: Vec::new(),
        rows: vec![row],
        requirements: Vec::new(),
        requirements_known: true,
    }
}

fn key() -> Key {
    Key { device: "phone-1".to_owned(), cell: "mnn".to_owned() }
}

#[test]
fn only_a_measurement_that_excludes_a_regression_acquits() {
    let of = |status: &str, values: &[f64]| {
        let launches = values.iter().zip(0..).map(|(value, launch)| Launch { launch, value: *value }).collect();
        let cell = Cell { fields: [("status", status.to_owned())].into(), metrics: [("ttft_ms", launches)].into(), ..Cell::default() };
        let second = Run { id: "second".to_owned(), cells: [(key(), cell)].into(), ..Run::default() };
        let mut gate = regressed();
        again(&mut gate, &second);
        let row = gate.rows.remove(0);
        (row.verdict, row.confirmed.map(|second| second.verdict), row.reasons.concat())
    };
    let steady = |at: f64| [at * 0.999, at, at * 1.001, at, at * 0.999, at * 1.001];
    assert_eq!(of("ok", &steady(100.0)), (Verdict::Undecided, Some(Verdict::Unchanged), String::new()));
    assert_eq!(of("ok", &steady(90.0)), (Verdict::Undecided, Some(Verdict::Improved), String::new()));
    assert_eq!(of("ok", &steady(110.0)), (Verdict::Regressed, Some(Verdict::Regressed), String::new()));
    // Launches that are 40 % off each other tell nothing.
    assert_eq!(of("ok", &[70.0, 140.0, 95.0, 60.0, 150.0, 105.0]), (Verdict::Regressed, Some(Verdict::Undecided), String::new()));
    let (verdict, second, why) = of("unverified", &steady(100.0));
    assert!(verdict == Verdict::Regressed && second.is_none() && why.contains("so it stands: it is unverified"), "{why}");
}
