//! Several sessions of one scenario on one device.

use std::{fs, path::Path};

use super::{
    super::{Answer, Joint, Standing, State, rank::Term, read, samples::Sample},
    *,
};

/// Two that were measured in one session, with these times to first token.
fn session(id: &str, a: f64, b: f64) -> Lab {
    let mut lab = Lab::new();
    for (backend, ttft) in [("a", a), ("b", b)] {
        lab.cell(backend, 128, &[], &[("ttft_ms", &about(ttft, 12))]);
    }
    lab.prefer(&[("ttft", 1.0)]);
    lab.session.run.id = id.to_owned();
    lab
}

#[test]
fn sessions_count_alike_and_are_never_pooled() {
    // Another day everything is half as fast: pooled launches would say that nobody can tell.
    let selection = together([session("one", 100.0, 110.0), session("two", 200.0, 216.0)]);
    let group = only(&selection);
    let ranking = &group.rankings[0];
    assert_eq!((selection.runs.join(" "), ranking.sessions, ranking.led), ("one two".to_owned(), 2, 2));
    assert_eq!((order(group, ranking), group.candidates[0].cells.len()), (vec!["a", "b"], 2));
    // sqrt(100/110 x 200/216), sqrt(100 x 200).
    close(ranking.places[1].score, (100.0_f64 / 110.0 * 200.0 / 216.0).sqrt());
    close(ranking.places[0].values[0], 141.421_356_237);
    assert_eq!(ranking.dims[0].workloads.len(), 1);
    assert_eq!(group.verdict.kind, Answer::Recommended);
    assert!(
        group
            .verdict
            .reason
            .contains("of 2000 resamples of the launches, 9 % ahead of the next, within 2 sessions, in each of which it leads (were two alike, the same one would lead in all of them by luck one time in 2)"),
        "{}",
        group.verdict.reason
    );
    // Of the eight orders in which two that are alike can lead three sessions, two have one leader.
    let selection = together([session("one", 100.0, 110.0), session("two", 200.0, 216.0), session("three", 90.0, 99.0)]);
    let reason = &only(&selection).verdict.reason;
    assert!(
        reason.ends_with(
            "within 3 sessions, in each of which it leads (were two alike, the same one would lead in all of them by luck one time in 4)"
        ),
        "{reason}"
    );
}

#[test]
fn what_leads_on_some_days_only_is_not_recommended() {
    let selection = together([session("one", 100.0, 130.0), session("two", 110.0, 105.0)]);
    let (verdict, ranking) = (&only(&selection).verdict, &only(&selection).rankings[0]);
    assert!(ranking.places[0].first.is_some_and(|share| share > 0.99), "launches say that it is sure");
    assert_eq!((verdict.kind, ranking.sessions, ranking.led), (Answer::NotToldApart, 2, 1));
    assert_eq!(verdict.reason, "a · w4a16 leads by the medians of all sessions together, and only in 1 of the 2");
}

#[test]
fn a_requirement_has_to_be_met_in_each_session() {
    let mut labs = [session("one", 100.0, 110.0), session("two", 140.0, 112.0)];
    for lab in &mut labs {
        lab.require("ttft", Limit::AtMost(120.0), None);
    }
    let selection = together(labs);
    let a = candidate(only(&selection), "a");
    assert_eq!((a.state, a.findings[0].standing, a.findings[0].run.as_deref()), (State::Vetoed, Standing::Violated, Some("two")));
    assert_eq!(candidate(only(&selection), "b").state, State::Passes);
    let text = selection.sentences().join("\n");
    for said in
        ["From 2 sessions of one scenario on one device: one, two.", "Vetoed: a · w4a16 by ttft median <= 120", ", in the session two"]
    {
        assert!(text.contains(said), "{said}\n{text}");
    }
}

/// Whoever did not run at all on one of the days is not recommended for the others, and takes nothing from those that did.
#[test]
fn who_failed_in_a_session_is_not_decided() {
    let (one, mut two) = (session("one", 100.0, 110.0), session("two", 100.0, 110.0));
    two.cell("a", 128, &[("status", "failed")], &[]);
    let selection = together([one, two]);
    let group = only(&selection);
    let a = candidate(group, "a");
    assert_eq!((a.state, a.reason.as_deref()), (State::Undecided, Some("none of its cells counts in the session two")));
    assert_eq!((order(group, &group.rankings[0]), group.rankings[0].sessions), (vec!["b"], 2));
    assert_eq!(group.verdict.kind, Answer::NoRecommendation, "nothing is required, and it is alone: {}", group.verdict.reason);
}

/// A workload that one session lacks counts as much as the others, by the session that has it.
#[test]
fn workloads_count_alike_in_however_many_sessions() {
    let mut two = session("two", 100.0, 110.0);
    for (backend, ttft) in [("a", 300.0), ("b", 200.0)] {
        two.cell(backend, 512, &[], &[("ttft_ms", &about(ttft, 12))]);
    }
    let mut one = session("one", 100.0, 110.0);
    // As planned there, and failed.
    for backend in ["a", "b"] {
        one.cell(backend, 512, &[("status", "failed")], &[]);
    }
    let selection = together([one, two]);
    let ranking = &only(&selection).rankings[0];
    // a: sqrt(1 x 200/300), b: sqrt(100/110 x 1).
    assert_eq!(order(only(&selection), ranking), ["b", "a"]);
    close(ranking.places[0].score, (100.0_f64 / 110.0).sqrt());
    close(ranking.places[1].score / ranking.places[0].score, (200.0_f64 / 300.0 * 110.0 / 100.0).sqrt());
}

/// By 60,000 draws of Python's `random`, each session drawn for itself: 0.6779.
#[test]
fn launches_are_drawn_within_their_sessions() {
    let a = [100.0, 104.0, 98.0, 102.0, 101.0, 99.0, 103.0, 97.0, 105.0, 96.0, 106.0];
    let b = [101.0, 105.0, 99.0, 103.0, 102.0, 100.0, 104.0, 98.0, 106.0, 97.0, 110.0];
    let later: Vec<f64> = (0..11).map(|i| 150.0 + 3.0 * f64::from(i * 7 % 11)).collect();
    let slower: Vec<f64> = later.iter().map(|value| value * 1.01).collect();
    let term = |session: usize, values: &[f64]| {
        let values = (0..).zip(values.iter().copied()).collect();
        Term { exponent: -0.5, sample: Sample::Launches { values, bundle: format!("session {session}") }, session }
    };
    let firsts = super::super::rank::sure(&[vec![term(0, &a), term(1, &later)], vec![term(0, &b), term(1, &slower)]]).1;
    let found = firsts[0].expect("a share");
    assert!((found - 0.677_9).abs() < 4.0 * (0.678_f64 * 0.322 / 2000.0).sqrt(), "{found}");
}

/// The committed example as two sessions, and with what keeps runs apart.
#[test]
fn sessions_are_of_one_scenario_one_device_and_the_same_frameworks() {
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("results/example-pc");
    let places = |change: fn(&mut serde_json::Value)| {
        let dir = tempfile::tempdir().expect("a folder");
        for name in ["manifest.json", "plan.toml", "cells.csv", "samples.csv", "launches.csv", "support.csv"] {
            fs::copy(from.join(name), dir.path().join(name)).expect("copied");
        }
        let path = dir.path().join("manifest.json");
        let mut manifest: serde_json::Value = serde_json::from_str(&fs::read_to_string(&path).expect("a manifest")).expect("JSON");
        manifest["run"] = "another".into();
        manifest["started_utc"] = "2026-12-01T00:00:00.000Z".into();
        change(&mut manifest);
        fs::write(&path, manifest.to_string()).expect("written");
        let joints = read(&[from.as_path(), dir.path()], None);
        joints.into_iter().map(|Joint { places, selected }| (places, selected.expect("a selection").runs.len())).collect::<Vec<_>>()
    };
    assert_eq!(places(|_| {}), [(vec![0, 1], 2)]);
    assert_eq!(places(|manifest| manifest["host"]["load"] = "3.00 1 1 1/80 9".into()), [(vec![0, 1], 2)], "days differ in it");
    let apart = [(vec![0], 1), (vec![1], 1)];
    // A copy of the example is no other measurement.
    assert_eq!(read(&[from.as_path(), from.as_path()], None).len(), 2);
    let changes: [fn(&mut serde_json::Value); 7] = [
        |manifest| manifest["runtimes"]["mnn"]["ready"]["version"] = "MNN 9".into(),
        |manifest| manifest["device"]["name"] = "other".into(),
        |manifest| manifest["device"]["cores"] = 32.into(),
        |manifest| manifest["device"]["kernel"] = "9.9".into(),
        |manifest| manifest["device"]["cpu"] = "another".into(),
        |manifest| manifest["scenario"]["sha256"] = "0".into(),
        |manifest| manifest["ab"] = serde_json::json!({ "partner": "x" }),
    ];
    for (place, change) in changes.into_iter().enumerate() {
        assert_eq!(places(change), apart, "{place}");
    }
}
