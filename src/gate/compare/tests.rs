use std::collections::BTreeMap;

use serde_json::json;

use super::{session::Sessions, *};
use crate::gate::run::Launch;

/// Eight launches of A, and of B, which is some 10 % more. Reference figures: NumPy and SciPy, the location and its error as in
/// `stats::centre`, Welch's degrees; sessions added as sqrt(e^2 + 2 sd^2) with Welch and Satterthwaite's degrees, t by `st.t.ppf`.
const A: [f64; 8] = [100.0, 101.0, 99.0, 100.5, 99.5, 102.0, 98.0, 100.2];
const B: [f64; 8] = [110.5, 109.0, 111.0, 110.0, 112.5, 108.0, 110.2, 109.8];
const C: [f64; 8] = [100.1, 101.2, 99.3, 100.0, 99.9, 101.0, 98.8, 100.6];

fn cell(class: &str, values: &[(&'static str, &[f64])]) -> Cell {
    let launches = |values: &[f64]| (0..).zip(values).map(|(at, value)| Launch { launch: at, value: *value }).collect();
    Cell {
        fields: BTreeMap::from([("status", "ok".to_owned()), ("device_class", class.to_owned())]),
        metrics: values.iter().map(|(name, values)| (*name, launches(values))).collect(),
        ..Cell::default()
    }
}

fn key(device: &str, cell: &str) -> Key {
    Key { device: device.to_owned(), cell: cell.to_owned() }
}

fn run(id: &str, cells: Vec<(Key, Cell)>) -> Run {
    let manifest = json!({"device": {"class": "phone", "name": "p", "soc": "SM8650"}, "environment": {"ambient_c": 22.0}});
    Run { id: id.to_owned(), cells: cells.into_iter().collect(), manifest, ..Run::default() }
}

fn settings(sd: f64) -> Settings {
    Settings { tolerance: 0.02, metrics: USUAL.to_vec(), sessions: Sessions { stated: Some(sd), ..Sessions::default() } }
}

/// One cell of one metric in both.
fn one(metric: &'static str, a: &[f64], b: &[f64], sd: f64) -> Comparison {
    let of = |id, values| run(id, vec![(key("p", "c"), cell("phone", &[(metric, values)]))]);
    compare(&of("a", a), &of("b", b), &settings(sd)).expect("a comparison")
}

fn close(found: f64, wanted: f64) {
    assert!((found - wanted).abs() < 1e-6, "{found} is not {wanted}");
}

#[test]
fn ratio_and_intervals_agree_with_numpy_and_scipy() {
    for (sd, lo, hi) in [
        (0.0, 1.087_670_447_396_659, 1.115_006_884_703_135),
        (0.005, 1.081_454_807_644_461, 1.121_415_364_343_288),
        (0.02, 1.040_670_259_757_528, 1.165_364_365_671_391),
    ] {
        let found = one("ttft_ms", &A, &B, sd);
        let compared = found.rows[0].compared().expect("compared");
        close(compared.ratio, 1.101_253_847_727_858_8);
        let (found_lo, found_hi) = compared.interval.expect("an interval");
        close(found_lo, lo);
        close(found_hi, hi);
        close(compared.within.expect("an interval").0, 1.087_670_447_396_659);
        assert_eq!(compared.verdict, Verdict::Regressed);
        assert!(compared.decide.is_empty());
        close(found.rows[0].a.expect("a figure").centre, 99.999_374_994_140_6);
    }
}

#[test]
fn more_is_worse_of_times_and_better_of_rates() {
    let verdict = |metric, a: &[f64], b: &[f64]| one(metric, a, b, 0.0).rows[0].compared().expect("compared").verdict;
    assert_eq!(verdict("ttft_ms", &A, &B), Verdict::Regressed);
    assert_eq!(verdict("ttft_ms", &B, &A), Verdict::Improved);
    assert_eq!(verdict("decode_tok_s", &A, &B), Verdict::Improved);
    assert_eq!(verdict("decode_tok_s", &B, &A), Verdict::Regressed);
    assert_eq!(verdict("ttft_ms", &A, &C), Verdict::Unchanged);
}

/// What launches show within two sessions is not what two sessions show.
#[test]
fn sessions_turn_unchanged_into_undecided_and_say_what_would_decide() {
    let found = one("ttft_ms", &A, &C, 0.01);
    let compared = found.rows[0].compared().expect("compared");
    assert_eq!(compared.verdict, Verdict::Undecided);
    let (lo, hi) = compared.within.expect("an interval");
    assert!(lo > 1.0 / 1.02 && hi < 1.02, "within the sessions it is the same: {lo} {hi}");
    let Advice::Sessions { spread, .. } = &compared.decide[0] else { panic!("{:?}", compared.decide) };
    assert_eq!(spread.as_deref(), Some("1.0 %, as stated"));
}

/// On a computer with other work a factor of two says nothing; within the two sessions it is there all the same.
#[test]
fn a_busy_computer_decides_nothing_by_assumption() {
    let of = |id, factor: f64, load: &str| {
        let values: Vec<f64> = A.iter().map(|value| value * factor).collect();
        let mut run =
            run(id, vec![(key("p", "c"), cell("pc", &[("ttft_ms", &values)])), (key("p", "d"), cell("pc", &[("ttft_ms", &values)]))]);
        run.manifest["device"] = json!({"class": "pc", "cores": 2});
        run.manifest["host"] = json!({"load": load});
        run
    };
    let mut settings = Settings { sessions: Sessions::default(), ..settings(0.0) };
    let with = |b: &Run, settings: &Settings| compare(&of("a", 1.0, "0.5 1 1 1/80 9"), b, settings).expect("a comparison");
    let quiet = with(&of("b", 2.0, "2.5 1 1 1/80 9"), &settings);
    assert_eq!(quiet.rows[0].compared().expect("compared").verdict, Verdict::Regressed);
    let found = with(&of("b", 2.0, "12.5 1 1 1/80 9"), &settings);
    let compared = found.rows[0].compared().expect("compared");
    assert_eq!((compared.verdict, compared.interval, compared.within.is_some()), (Verdict::Undecided, None, true));
    assert_eq!((compared.decide[0].clone(), found.overall.len()), (Advice::Quiet, 0));
    assert_eq!(found.notes, ["the computer may have been busy with something else: load 12.5 of 2 CPUs in B"]);
    let partner = |mut run: Run, id: &str, other: &str| {
        run.manifest["run"] = json!(id);
        run.manifest["ab"] =
            json!({"partner": other, "cells": {key("p", "c").cell: key("p", "c").cell, key("p", "d").cell: key("p", "d").cell}});
        run
    };
    let (a, b) = (partner(of("a", 1.0, "0.5 1 1 1/80 9"), "a", "b"), partner(of("b", 2.0, "12.5 1 1 1/80 9"), "b", "a"));
    let sides = compare(&a, &b, &settings).expect("a comparison");
    assert!(
        sides.count(Verdict::Regressed) == 2 && sides.notes[0].contains("load 12.5 of 2 CPUs in B; it need not have hit both"),
        "{sides:?}"
    );
    settings.sessions.stated = Some(0.01);
    assert_eq!(with(&of("b", 2.0, "12.5 1 1 1/80 9"), &settings).count(Verdict::Regressed), 2, "who knows better says so");
}

#[test]
fn few_launches_have_a_ratio_and_no_verdict() {
    let found = one("ttft_ms", &A[..5], &B, 0.0);
    let compared = found.rows[0].compared().expect("compared");
    assert_eq!((compared.interval, compared.verdict), (None, Verdict::Undecided));
    assert_eq!(compared.decide, [Advice::Launches { needed: 6, now: 5 }]);
    assert!(found.overall.is_empty());
}

/// Mean of ln B/A and ln 0.98 C/A, errors independent, the session shared: NumPy as above.
#[test]
fn the_mean_over_cells_narrows_with_their_number_and_the_session_does_not() {
    let c: Vec<f64> = C.iter().map(|value| value * 0.98).collect();
    for (sd, lo, hi) in [(0.0, 1.031_368_449_327_350_3, 1.047_195_929_120_924_3), (0.005, 1.022_947_401_148_475_8, 1.055_816_594_623_322_2)]
    {
        let of = |id, x: &[f64], y: &[f64]| {
            let composed = {
                let mut cell = cell("phone", &[("ttft_ms", &[1.0; 8])]);
                cell.fields.insert("ttft_method", "composed".to_owned());
                cell
            };
            run(
                id,
                vec![
                    (key("p", "x"), cell("phone", &[("ttft_ms", x)])),
                    (key("p", "y"), cell("phone", &[("ttft_ms", y)])),
                    (key("p", "z"), composed),
                    // Another class is another mean, and one cell is none.
                    (key("p", "e"), cell("emulator", &[("ttft_ms", y)])),
                    (key("p", "a-only"), cell("phone", &[("ttft_ms", y)])),
                ],
            )
        };
        let (a, mut b) = (of("a", &A, &A), of("b", &B, &c));
        b.cells.remove(&key("p", "a-only"));
        let found = compare(&a, &b, &settings(sd)).expect("a comparison");
        assert_eq!(found.overall.len(), 1, "{:?}", found.overall);
        let overall = &found.overall[0];
        assert_eq!((overall.class.as_str(), overall.metric, overall.cells), ("phone", "ttft_ms", 2));
        close(overall.ratio, 1.039_252_058_722_695_7);
        close(overall.interval.0, lo);
        close(overall.interval.1, hi);
        assert_eq!(overall.verdict, Verdict::Regressed);
        assert_eq!(found.lone, [Lone { key: key("p", "a-only"), only_in: "A" }]);
        assert!(found.rows.iter().any(|row| row.composed && row.compared().is_some()), "composed against composed is compared");
    }
}

fn reason(found: &Comparison) -> &str {
    match &found.rows[0].outcome {
        Outcome::Not { not_compared } => not_compared,
        Outcome::Compared(compared) => panic!("compared: {compared:?}"),
    }
}

#[test]
fn things_of_different_kinds_are_not_compared_and_it_is_said_why() {
    let of = |id, class, method: &str, soc: &str| {
        let mut cell = cell(class, &[("ttft_ms", &A)]);
        cell.fields.insert("ttft_method", method.to_owned());
        let mut run = run(id, vec![(key("p", "c"), cell)]);
        run.manifest["device"]["soc"] = json!(soc);
        run
    };
    let a = of("a", "phone", "token_event", "SM8650");
    let with = |b: &Run| compare(&a, b, &settings(0.0)).expect("a comparison");
    assert_eq!(reason(&with(&of("b", "phone", "token_event", "SM8750"))), "SoC: SM8650 in A, SM8750 in B");
    assert_eq!(reason(&with(&of("b", "emulator", "token_event", "SM8650"))), "device class: phone in A, emulator in B");
    assert_eq!(
        reason(&with(&of("b", "phone", "runtime_reported", "SM8650"))),
        "how the first token was timed: token_event in A, runtime_reported in B"
    );
    let mut other = of("b", "phone", "token_event", "SM8650");
    other.cells.get_mut(&key("p", "c")).expect("the cell").fields.insert("runtime_version", "2".to_owned());
    let found = with(&other);
    assert!(found.rows[0].compared().is_some(), "another runtime is what is compared, or is not known: compared, and said");
    assert_eq!(found.differences[0].words(), "runtime: unstated in A, 2 in B");
}

#[test]
fn absent_and_zero_figures_have_their_reasons() {
    let mut b = cell("phone", &[("decode_tok_s", &A)]);
    b.fields.insert("absent", "load_ms=x;ttft_ms=no token times".to_owned());
    let a = run("a", vec![(key("p", "c"), cell("phone", &[("ttft_ms", &A), ("decode_tok_s", &[0.0; 8])]))]);
    let found = compare(&a, &run("b", vec![(key("p", "c"), b)]), &settings(0.0)).expect("a comparison");
    let of = |metric: &str| match &found.rows.iter().find(|row| row.metric == metric).expect("a row").outcome {
        Outcome::Not { not_compared } => not_compared.clone(),
        Outcome::Compared(_) => panic!("compared"),
    };
    assert_eq!(of("ttft_ms"), "absent in B: no token times");
    assert_eq!(of("decode_tok_s"), "A has values that are not above 0 or no numbers, which have no ratio");
    assert_eq!(found.rows.len(), 2, "what neither has is no row");
}

#[test]
fn cells_that_are_not_ok_are_listed_and_only_what_broke_itself_is_broken() {
    let with = |status: &str, kind: &str| {
        let mut cell = cell("phone", &[]);
        cell.fields.insert("status", status.to_owned());
        cell.fields.insert("failure_kind", kind.to_owned());
        cell.fields.insert("reason", "why".to_owned());
        cell
    };
    let names = ["infra", "model", "skipped", "was"];
    let a = run("a", names.map(|name| (key("p", name), if name == "was" { with("failed", "model") } else { cell("phone", &[]) })).to_vec());
    let b = [with("failed", "infra"), with("failed", "model"), with("skipped", ""), cell("phone", &[])];
    let b = run("b", names.iter().zip(b).map(|(name, cell)| (key("p", name), cell)).collect());
    let found = compare(&a, &b, &settings(0.0)).expect("a comparison");
    let words: Vec<String> = found.not_ok.iter().map(|n| format!("{}: {} | {} | {}", n.key.cell, n.a, n.b, n.broken)).collect();
    assert_eq!(
        words,
        [
            "infra: ok | failed, infra, why | false",
            "model: ok | failed, model, why | true",
            "skipped: ok | skipped, why | false",
            "was: failed, model, why | ok | false"
        ]
    );
}

#[test]
fn two_devices_of_one_chip_are_compared_and_it_is_said() {
    let a = run("a", vec![(key("p", "c"), cell("phone", &[("ttft_ms", &A)]))]);
    let b = run("b", vec![(key("q", "c"), cell("phone", &[("ttft_ms", &B)]))]);
    let found = compare(&a, &b, &settings(0.0)).expect("a comparison");
    assert!(found.rows[0].compared().is_some() && found.lone.is_empty());
    assert_eq!(found.notes, ["two devices: cells of p in A are set against those of q in B"]);
    // With several devices the names must match.
    let two = run("a", vec![(key("p", "c"), cell("phone", &[])), (key("r", "c"), cell("phone", &[]))]);
    let found = compare(&two, &b, &settings(0.0)).expect("a comparison");
    assert_eq!((found.lone.len(), found.notes.len()), (3, 1));
    assert!(found.notes[0].contains("no cell in common"));
}

#[test]
fn a_run_against_itself_is_refused_and_two_of_one_name_are_said() {
    let of = |values| run("a", vec![(key("p", "c"), cell("phone", &[("ttft_ms", values)]))]);
    let error = compare(&of(&A), &of(&A), &settings(0.0)).expect_err("one run");
    assert!(error.to_string().contains("one run (a)"), "{error}");
    let found = compare(&of(&A), &of(&B), &settings(0.0)).expect("a comparison");
    assert_eq!(found.notes, ["both runs have the id a, and different figures: one of them is not what it says it is"]);
}

#[test]
fn many_comparisons_say_how_many_are_wrong_by_chance() {
    let of = |id, values: &[f64]| run(id, (0..30).map(|at| (key("p", &format!("c{at}")), cell("phone", &[("ttft_ms", values)]))).collect());
    let found = compare(&of("a", &A), &of("b", &C), &settings(0.0)).expect("a comparison");
    assert_eq!(found.notes, ["30 comparisons at 95 %: some 2 of their intervals miss the truth by chance alone"]);
    assert_eq!((found.count(Verdict::Unchanged), found.count(Verdict::Undecided)), (30, 0));
}
