//! Limits against values whose intervals are known by hand: of six to eight launches the interval is the smallest and the largest value.

use super::{evidence::Window, *};
use crate::{
    gate::run::Launch,
    scenario::{Phase, Statistic},
};

fn requirement(metric: &str, limit: Limit) -> Requirement {
    let (statistic, cells) = (Some(Statistic::Median), BTreeMap::new());
    Requirement { metric: metric.to_owned(), limit, text: String::new(), statistic, phase: None, minute: None, cells }
}

fn key() -> Key {
    Key { device: "phone-1".to_owned(), cell: "mnn.tiny.w4.p32.g16-0a1b2c3d".to_owned() }
}

fn cell(fields: &[(&'static str, &str)], metrics: &[(&'static str, &[f64])]) -> Cell {
    let own = [("status", "ok"), ("device_class", "phone"), ("check_unit", "confirmed")];
    let values = |values: &[f64]| values.iter().zip(0..).map(|(value, launch)| Launch { launch, value: *value }).collect();
    Cell {
        fields: own.iter().chain(fields).map(|(name, value)| (*name, (*value).to_owned())).collect(),
        metrics: metrics.iter().map(|(name, all)| (*name, values(all))).collect(),
        ..Cell::default()
    }
}

fn judged_with(requirement: &Requirement, cell: &Cell, evidence: &Evidence) -> Judged {
    of_cell(0, requirement, "c", measured(requirement, &key(), cell, evidence))
}

fn judged(requirement: &Requirement, cell: &Cell) -> Judged {
    judged_with(requirement, cell, &Evidence::default())
}

const TTFT: [f64; 6] = [100.0, 104.0, 98.0, 102.0, 101.0, 99.0];

#[test]
fn both_ends_of_the_interval_decide() {
    let ttft = cell(&[], &[("ttft_ms", &TTFT)]);
    let met = |limit: f64| judged(&requirement("ttft", Limit::AtMost(limit)), &ttft);
    let passed = met(104.0);
    assert_eq!((passed.met, passed.value, passed.lo, passed.hi, passed.n), (Met::Passed, Some(100.5), Some(98.0), Some(104.0), 6));
    assert_eq!((met(103.9).met, met(98.0).met, met(97.9).met), (Met::Undecided, Met::Undecided, Met::Violated));
    // 1 - 100.5 / 134 = 0.25; (104 - 100.5) x 2.8 / 1.96 = 5.
    let far = met(134.0);
    assert!((far.slack.unwrap() - 0.25).abs() < 1e-12 && (far.mde.unwrap() - 5.0).abs() < 1e-9, "{far:?}");
    // (3.5 / 2.5)^2 = 1.96.
    assert_eq!(met(103.0).why, "the interval holds the limit: about 2 times as many launches would decide");

    let decode = cell(&[], &[("decode_tok_s", &[12.0, 13.0, 14.0, 12.5, 13.5, 12.2])]);
    let met = |limit: f64| judged(&requirement("decode", Limit::AtLeast(limit)), &decode).met;
    assert_eq!((met(12.0), met(12.1), met(14.0), met(14.1)), (Met::Passed, Met::Undecided, Met::Undecided, Met::Violated));
    let slack = judged(&requirement("decode", Limit::AtLeast(10.2)), &decode).slack.unwrap();
    assert!((slack - 0.25).abs() < 1e-12, "12.75 / 10.2: {slack}");
}

/// A value that nothing measured can have decides nothing, however good it looks.
#[test]
fn what_is_no_measurement_passes_no_limit() {
    for odd in [0.0, -5.0, f64::NAN, f64::INFINITY] {
        let values = [100.0, 104.0, 98.0, odd, 101.0, 99.0, 100.0, 100.0];
        let ttft = cell(&[], &[("ttft_ms", &values)]);
        let p90 = Requirement { statistic: Some(Statistic::P90), ..requirement("ttft", Limit::AtMost(1e6)) };
        for asked in [requirement("ttft", Limit::AtMost(1e6)), p90] {
            let found = judged(&asked, &ttft);
            assert_eq!((found.met, found.value), (Met::Undecided, None), "{odd}");
            assert!(found.why.starts_with("damaged: a value of ttft_ms is "), "{}", found.why);
        }
    }
    let mut damaged = cell(&[], &[("ttft_ms", &TTFT)]);
    damaged.unmeasured.insert("ttft_ms", 2);
    let found = judged(&requirement("ttft", Limit::AtMost(1e6)), &damaged);
    assert_eq!(
        (found.met, found.why.as_str()),
        (Met::Undecided, "damaged: of ttft_ms the tables have 2 values that can't be one: 0, less, or no number")
    );
    for (metric, limit, column, value) in [
        ("model-size", Limit::AtMost(1900.0), "model_mb", "0"),
        ("model-size", Limit::AtMost(1900.0), "model_mb", "-3"),
        ("agreement", Limit::AtLeast(0.5), "token_agreement", "7"),
    ] {
        assert_eq!(judged(&requirement(metric, limit), &cell(&[(column, value)], &[])).met, Met::Undecided, "{value}");
    }
}

#[test]
fn few_launches_decide_nothing_and_say_how_many_would() {
    let found = judged(&requirement("ttft", Limit::AtMost(1e6)), &cell(&[], &[("ttft_ms", &TTFT[..5])]));
    assert_eq!((found.met, found.value, found.hi), (Met::Undecided, Some(101.0), None));
    assert_eq!(found.why, "too few values for an interval; 5 launches: 6 have a 95 % interval");
}

/// Rule R28: by hand, (60 - 5) x 2.8 / 1.96 = 78.6 W is more than the limit of 50 W, which lies in the interval. One that does not is decided.
#[test]
fn a_limit_below_what_the_cell_can_tell_is_undecided() {
    let noisy = cell(&[], &[("power_avg_w", &[1.0, 2.0, 4.0, 6.0, 50.0, 60.0])]);
    let at_most = |limit| {
        let gross =
            Requirement { statistic: Some(Statistic::Gross), phase: Some(Phase::All), ..requirement("power", Limit::AtMost(limit)) };
        judged(&gross, &noisy)
    };
    let found = at_most(50.0);
    assert_eq!((found.met, found.why.as_str()), (Met::Undecided, "the limit is below what this cell can tell"));
    assert_eq!((at_most(70.0).met, at_most(0.5).met), (Met::Passed, Met::Violated));
    // 5000 +- 20 ms against 10 ms: 28 ms is more than the limit, and nobody doubts it.
    let slow = cell(&[], &[("ttft_ms", &[4980.0, 4990.0, 5000.0, 5000.0, 5010.0, 5020.0])]);
    assert_eq!(judged(&requirement("ttft", Limit::AtMost(10.0)), &slow).met, Met::Violated);
}

#[test]
fn what_was_not_measured_says_why() {
    let ttft = requirement("ttft", Limit::AtMost(1.0));
    let met = |fields: &[(&'static str, &str)]| {
        let found = judged(&ttft, &cell(fields, &[]));
        (found.met, found.why)
    };
    let undecided = |why: &str| (Met::Undecided, why.to_owned());
    assert_eq!(met(&[("absent", "itl_p50_ms=x;ttft_ms=the tool gives none")]), undecided("not measured: the tool gives none"));
    assert_eq!(met(&[]), undecided("not measured: the run does not say why"));
    assert_eq!(met(&[("status", "failed"), ("reason", "signal 11")]), undecided("not measured: the cell is failed: signal 11"));
    assert_eq!(
        met(&[("status", "skipped"), ("reason", "no MNN")]),
        (Met::NotTried, "not measured: the cell is skipped: no MNN".to_owned())
    );
    let with = |fields: &[(&'static str, &str)]| judged(&ttft, &cell(fields, &[("ttft_ms", &TTFT)])).why;
    assert_eq!(with(&[("device_class", "emulator")]), "not measured: the time, memory and power of an emulator say nothing about a device");
    assert!(with(&[("ttft_method", "composed")]).starts_with("not measured: composed of graph times"));
    let reported = judged(&requirement("ttft", Limit::AtMost(200.0)), &cell(&[("ttft_method", "runtime_reported")], &[("ttft_ms", &TTFT)]));
    assert_eq!((reported.met, reported.why.as_str()), (Met::Passed, "as the runtime reports it"));
    assert_eq!(
        judged(&requirement("warp", Limit::AtMost(1.0)), &cell(&[], &[])).why,
        "this bench does not know the metric warp: update it"
    );
}

#[test]
fn quantiles_are_of_queries() {
    let p95 = |limit| Requirement { statistic: Some(Statistic::P95), ..requirement("ttft", limit) };
    let with = |n: u32| {
        let mut evidence = Evidence::default();
        // The queries of a launch lie apart.
        (0..n / 4).for_each(|launch| {
            let values: Vec<f64> = (0..4).map(|q| f64::from((launch * 4 + q) * (n / 4 + 1) % n + 1)).collect();
            evidence.add_queries("ttft_ms", &key(), i64::from(launch), &values);
        });
        evidence
    };
    // 1 to 80; the exact interval of the 95 % quantile of 80 values is from the 72nd to the 80th.
    let found = judged_with(&p95(Limit::AtMost(80.0)), &cell(&[], &[("ttft_ms", &TTFT)]), &with(80));
    assert_eq!((found.met, found.n, found.hi), (Met::Passed, 80, Some(80.0)), "{found:?}");
    let found = judged_with(&p95(Limit::AtMost(1e9)), &cell(&[], &[("ttft_ms", &TTFT)]), &with(40));
    assert_eq!((found.met, found.hi), (Met::Undecided, None));
    assert_eq!(found.why, "too few values for an interval; 40 queries are worth 40 independent ones, 72 have an interval");
    // Few can show that it is missed.
    let found = judged_with(&p95(Limit::AtMost(10.0)), &cell(&[], &[("ttft_ms", &TTFT)]), &with(40));
    assert_eq!(found.met, Met::Violated);
}

/// By hand: 5 W, 100 J of which 60 J are net: the baseline is 2 W; decode draws 6 W, 4 W of them net.
#[test]
fn net_power_is_less_the_baseline_of_its_launch() {
    let six = |value: f64| [value; 6];
    let of = |net: &[f64]| {
        cell(
            &[("absent", "energy_net_j=the baseline is too uncertain")],
            &[("power_avg_w", &six(5.0)), ("decode_power_w", &six(6.0)), ("energy_gross_j", &six(100.0)), ("energy_net_j", net)],
        )
    };
    let asked =
        |statistic, phase| Requirement { statistic: Some(statistic), phase: Some(phase), ..requirement("power", Limit::AtMost(4.5)) };
    let found = judged(&asked(Statistic::Net, Phase::Decode), &of(&six(60.0)));
    assert_eq!((found.met, found.value, found.why.as_str()), (Met::Passed, Some(4.0), "derived: less the idle baseline"));
    assert_eq!(judged(&asked(Statistic::Net, Phase::All), &of(&six(60.0))).value, Some(3.0));
    assert_eq!(judged(&asked(Statistic::Gross, Phase::Decode), &of(&six(60.0))).met, Met::Violated);
    let found = judged(&asked(Statistic::Net, Phase::Decode), &of(&[]));
    assert_eq!((found.met, found.why.as_str()), (Met::Undecided, "not measured: the baseline is too uncertain"));
}

#[test]
fn a_minute_of_the_soak_is_the_windows_up_to_its_end() {
    // Windows of 30 s at 20 tok/s that fall to 15 after 4 min.
    let windows =
        |n: u32| (1..=n).map(|i| Window { end_s: f64::from(i) * 30.0, length_s: 30.0, rate: if i <= 8 { 20.0 } else { 15.0 } }).collect();
    let mut evidence = Evidence::default();
    evidence.add_windows(&key(), windows(20));
    let fields: &[(&str, &str)] = &[("soak_tok_s", "20"), ("soak_ended", "complete")];
    let at = |metric: &str, minute, limit| {
        let asked = Requirement { statistic: None, minute: Some(minute), ..requirement(metric, Limit::AtLeast(limit)) };
        judged_with(&asked, &cell(fields, &[]), &evidence)
    };
    let found = at("sustained-ratio", 10, 0.8);
    assert_eq!((found.met, found.value, found.n), (Met::Violated, Some(0.75), 6));
    assert_eq!(found.why, "the interval is of the windows of 180 s of one soak");
    assert_eq!((at("sustained", 4, 20.0).met, at("sustained", 4, 20.0).value), (Met::Passed, Some(20.0)));
    let late = at("sustained", 30, 1.0);
    assert_eq!((late.met, late.why.as_str()), (Met::Undecided, "not measured: the soak has ended after 600 s"));
    let wrong = judged_with(
        &Requirement { minute: Some(1), ..requirement("sustained", Limit::AtLeast(1.0)) },
        &cell(&[("soak_check_tokens", "contradicted")], &[]),
        &evidence,
    );
    assert_eq!(wrong.why, "not measured: the check of the soak's answers contradicts it");
    let early = at("sustained", 2, 1.0);
    assert_eq!((early.met, early.n), (Met::Undecided, 4), "four windows of two minutes have no interval");
    let without = judged(&Requirement { minute: Some(1), ..requirement("sustained", Limit::AtLeast(1.0)) }, &cell(&[], &[]));
    assert_eq!(without.why, "not measured: the cell has no soak");
}

#[test]
fn words_and_what_is_exact() {
    let is = |metric: &str, word: &str| requirement(metric, Limit::Is(word.to_owned()));
    let met = |asked: &Requirement, fields: &[(&'static str, &str)]| judged(asked, &cell(fields, &[])).met;
    let placement = is("placement", "npu");
    assert_eq!(met(&placement, &[("unit_found", "npu")]), Met::Passed);
    assert_eq!(met(&placement, &[("unit_found", "npu"), ("check_unit", "not-checkable")]), Met::Undecided);
    assert_eq!(met(&placement, &[("unit_found", "cpu"), ("check_unit", "contradicted"), ("status", "unverified")]), Met::Violated);
    assert_eq!(met(&placement, &[]), Met::Undecided);
    let stable = is("stability", "stable");
    assert_eq!(["stable", "unstable", "unknown"].map(|w| met(&stable, &[("stability", w)])), [Met::Passed, Met::Violated, Met::Undecided]);
    let agreement = requirement("agreement", Limit::AtLeast(0.95));
    assert_eq!(met(&agreement, &[("token_agreement", "0.95")]), Met::Passed);
    assert_eq!(met(&agreement, &[("token_agreement", "0.5"), ("status", "unverified")]), Met::Violated);
    assert_eq!(met(&agreement, &[("token_agreement", "NaN")]), Met::Undecided);
    let size = judged(&requirement("model-size", Limit::AtMost(1900.0)), &cell(&[("model_mb", "2000"), ("device_class", "emulator")], &[]));
    assert_eq!((size.met, size.mde), (Met::Violated, None));
}

/// The verdict is that of support.csv over the combination, and what happened at the cell goes first.
#[test]
fn support_is_of_the_combination_and_of_the_cell() {
    let runs = requirement("support", Limit::Is("runs".to_owned()));
    let own = [("model", "tiny"), ("quant", "w4"), ("backend", "mnn"), ("unit_requested", "npu"), ("device_class", "emulator")];
    let met = |word: &str, op: &str, reason: &str, fields: &[(&'static str, &str)]| {
        let mut evidence = Evidence::default();
        let supported = evidence::Supported { word: word.to_owned(), op: op.to_owned(), reason: reason.to_owned() };
        evidence.add_support(["phone-1", "tiny", "w4", "mnn", "npu"], supported);
        let found = judged_with(&runs, &cell(&[&own[..], fields].concat(), &[]), &evidence);
        (found.met, found.found.unwrap_or_default(), found.why)
    };
    let is = |met: Met, found: &str, why: &str| (met, found.to_owned(), why.to_owned());
    // An emulator's times say nothing about a device; what its compiler refuses does.
    assert_eq!(met("runs", "", "", &[]), is(Met::Passed, "runs", ""));
    let failed = [("status", "failed"), ("failure_kind", "runtime"), ("reason", "too long")];
    assert_eq!(met("runs", "", "too long", &failed), is(Met::Violated, "fails", "other cells of it run, and this one is failed: too long"));
    let unverified = [("status", "unverified"), ("failure_kind", "verify"), ("reason", "alarm")];
    assert_eq!(
        met("runs-with-fallback", "/x/Mod", "fmod", &unverified),
        is(Met::Violated, "runs-with-fallback", "/x/Mod ran on another unit: fmod")
    );
    assert_eq!(met("fails-at-op", "", "", &failed), is(Met::Violated, "fails-at-op", "an operation can't run on this unit"));
    assert_eq!(met("fails", "", "crash", &failed), is(Met::Violated, "fails", "crash"));
    // Nothing that is about the model.
    let cable = [("status", "failed"), ("failure_kind", "infra"), ("reason", "cable")];
    assert_eq!(met("fails", "", "crash", &cable), is(Met::Undecided, "", "not measured: the cell is failed: cable"));
    let skipped = [("status", "skipped"), ("reason", "no SDK")];
    assert_eq!(met("not-tried", "", "no SDK", &skipped), is(Met::NotTried, "", "not measured: the cell is skipped: no SDK"));
    assert_eq!(met("flies", "", "", &[]), is(Met::Undecided, "", "not measured: support.csv says flies, which this bench does not know"));
    let other = met("runs", "", "", &[("unit_requested", "cpu")]);
    assert_eq!(other, is(Met::Undecided, "", "not measured: support.csv has no row of this model, quantisation, backend and unit"));
}

#[test]
fn the_word_of_a_run() {
    let of = |all: &[(usize, Met)]| {
        let judged: Vec<Judged> = all
            .iter()
            .map(|(place, met)| Judged { met: *met, ..unknown(*place, &requirement("ttft", Limit::AtMost(1.0)), "c", *met, "") })
            .collect();
        overall(&judged)
    };
    assert_eq!(of(&[]), Met::Passed);
    assert_eq!(of(&[(0, Met::Passed), (0, Met::NotTried), (1, Met::Passed)]), Met::Passed);
    assert_eq!(of(&[(0, Met::Passed), (1, Met::NotTried)]), Met::Undecided, "no cell answers the second");
    assert_eq!(of(&[(0, Met::Passed), (0, Met::Undecided)]), Met::Undecided);
    assert_eq!(of(&[(0, Met::Undecided), (1, Met::Violated)]), Met::Violated);
}

/// Every column that a word names is one of the tables.
#[test]
fn the_columns_exist() {
    use crate::{
        results::schema::{CELLS, METRICS},
        scenario::{SUBJECTS, Source},
    };
    for subject in SUBJECTS {
        let unit = subject.units.first().map_or("", |u| u.0);
        match subject.source {
            Source::Metric(name) => {
                let metric = METRICS.iter().find(|m| m.name == name).unwrap_or_else(|| panic!("{name}"));
                assert_eq!(metric.higher_is_better, subject.higher_is_better, "{name}");
                assert!(
                    name.ends_with(
                        &unit.to_lowercase().replace('/', "_").replace('%', "battery_pct").replace("tok_battery", "tokens_per_battery")
                    ) || unit == "tok/%",
                    "{name} {unit}"
                );
            }
            Source::Exact(column) | Source::Word(column, _) => assert!(CELLS.columns.iter().any(|c| c.name == column), "{column}"),
            _ => {}
        }
    }
}
