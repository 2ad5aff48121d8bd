//! What a failure means, by hand.

use super::{
    Kind, Verdict,
    fate::{fate, flaky},
};
use crate::gate::history::{Figure, Gap};

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

#[test]
fn a_cell_that_works_tonight_and_not_always_is_said() {
    assert_eq!(flaky(&nights("ofouo")).as_deref(), Some("flaky: failed in 2 of the last 5 nights"));
    assert_eq!((flaky(&nights("oio")), flaky(&nights("fff")), flaky(&nights(""))), (None, None, None));
}
