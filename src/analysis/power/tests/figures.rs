//! A launch's figures from readings and what it did.

use super::*;

fn launch(load: &Load, telemetry: &Telemetry, meter: Option<&Meter>, asked: Asked<'_>, base: &Result<Baseline, String>) -> LaunchPower {
    let mut out = super::launch(load, telemetry, meter, asked);
    out.less(load, base.as_ref().map_err(String::as_str));
    out
}

/// 0.2 A idle, ripple included: 0.8 W.
fn idle(t: f64) -> f64 {
    0.2 + 0.005 * (t * 2.0 * std::f64::consts::PI / 3.0).sin()
}

fn quiet() -> Result<Baseline, String> {
    baseline(&one_battery(&ABI, 62.0, &idle), None, Asked::default(), (1.0, 61.0), Some(CurrentUnit::Microampere), BaselineState::NoModel)
        .map_err(|e| e.to_string())
}

/// 15 queries of 10 s from 5 s on: 4 s prefill at 1.5 A (6 W), 6 s decode at 1.0 A (4 W).
fn mixed(t: f64) -> f64 {
    let ripple = 0.002 * (t * 9.0).sin();
    let level = if (5.0..155.0).contains(&t) { if (t - 5.0).rem_euclid(10.0) < 4.0 { 1.5 } else { 1.0 } } else { 0.2 };
    level + ripple
}

fn load() -> Load {
    let begins = (0..15).map(|q| 5.0 + 10.0 * f64::from(q));
    Load {
        window: (5.0, 155.0),
        prompt_tokens: Some(15 * 512),
        gen_tokens: 15 * 60,
        queries: 15,
        prefill: begins.clone().map(|b| (b, b + 4.0)).collect(),
        decode: begins.map(|b| (b + 4.0, b + 10.0)).collect(),
        seconds: None,
    }
}

#[test]
fn gross_net_and_baseline() {
    let base = quiet().unwrap();
    near(base.w, 0.8, 0.01);
    assert!(base.spread_w < 0.03 && base.charge_state.as_deref() == Some("discharging"), "{base:?}");
    let out = launch(&load(), &one_battery(&ABI, 160.0, &mixed), None, Asked::default(), &Ok(base));
    // 15 x (6 W x 4 s + 4 W x 6 s) = 720 J; less 0.8 W x 150 s.
    let error = out.error_j.unwrap();
    near(out.gross_j.unwrap(), 720.0, error);
    near(out.net_j.unwrap(), 600.0, error + 1.5);
    near(out.net_j_per_query.unwrap(), 40.0, 1.0);
    near(out.avg_w.unwrap(), 4.8, 0.05);
    near(out.peak_w.unwrap(), 6.0, 0.02);
    assert_eq!((out.method.as_deref(), out.charge_state.as_deref()), (Some("battery"), Some("discharging")));
    // Per phase, but no joules of a token: the window mixes both.
    near(out.prefill_w.unwrap().0, 6.0, 0.15);
    near(out.decode_w.unwrap().0, 4.0, 0.15);
    near(out.prefill_w.unwrap().1, 6.0, 0.02);
    near(out.decode_w.unwrap().1, 4.0, 0.02);
    assert_eq!((out.j_per_tok, out.j_per_prompt_tok), (None, None));
    assert!(out.why("energy_j_per_tok").unwrap().contains("decode is 60 % of the window"), "{:?}", out.absent);
    // 4.0 Ah at 80 % are 50 mAh a percent: at 4 V 720 J. 900 tokens cost 720 J: as many as one percent, near enough.
    near(out.tokens_per_pct.unwrap(), 900.0, 15.0);
    // 72000 J at 4.8 W.
    near(out.hours.unwrap(), 4.1667, 0.05);
    assert_eq!(out.percent_method, Some("charge_counter / capacity"));
    for metric in METRICS {
        assert!(out.get(metric).is_some() != out.why(metric).is_some(), "{metric}");
    }
}

#[test]
fn loops_of_one_phase_have_joules_a_token() {
    let decode = Load { decode: vec![(5.0, 155.0)], prefill: vec![(5.0, 6.0)], gen_tokens: 1500, ..load() };
    let out = launch(&decode, &one_battery(&ABI, 160.0, &mixed), None, Asked::default(), &quiet());
    // 600 J net for 1500 tokens.
    near(out.j_per_tok.unwrap(), 0.4, 0.015);
    assert_eq!(out.j_per_prompt_tok, None);
    let prefill = Load { prefill: vec![(5.0, 155.0)], decode: vec![], prompt_tokens: Some(60_000), gen_tokens: 0, ..load() };
    let out = launch(&prefill, &one_battery(&ABI, 160.0, &mixed), None, Asked::default(), &quiet());
    near(out.j_per_prompt_tok.unwrap(), 0.01, 0.0004);
    assert_eq!((out.j_per_tok, out.tokens_per_pct), (None, None));
    assert_eq!(out.why("tokens_per_battery_pct"), Some("no token came"));
    let unknown = launch(&Load { prompt_tokens: None, ..prefill }, &one_battery(&ABI, 160.0, &mixed), None, Asked::default(), &quiet());
    assert_eq!(unknown.why("energy_j_per_prompt_tok"), Some("how many tokens its prefill took is not known"));
}

#[test]
fn a_soak_has_the_joules_of_its_window_and_no_watts_of_single_queries() {
    let soak = Load { prefill: vec![], decode: vec![], seconds: Some((2.0, 148.0)), gen_tokens: 1500, ..load() };
    let out = launch(&soak, &one_battery(&ABI, 160.0, &mixed), None, Asked::default(), &quiet());
    near(out.gross_j.unwrap(), 720.0, out.error_j.unwrap());
    // 148 of 150 s are decode: 600 J net for 1500 tokens.
    near(out.j_per_tok.unwrap(), 0.4, 0.015);
    assert!(out.why("energy_j_per_prompt_tok").unwrap().contains("prefill is 1 % of the window"), "{:?}", out.absent);
    assert!(out.why("decode_power_w").unwrap().contains("soak.csv"), "{:?}", out.absent);
}

#[test]
fn no_net_without_a_good_baseline() {
    let trace = one_battery(&ABI, 160.0, &mixed);
    let with = |base: &Result<Baseline, String>| launch(&load(), &trace, None, Asked::default(), base);
    let out = with(&Err("no baseline: [power] baseline = \"60s\"".to_owned()));
    assert!(out.net_j.is_none() && out.gross_j.is_some() && out.why("energy_net_j").unwrap().starts_with("no baseline"));
    let good = quiet().unwrap();
    // Net is 4 W: 0.8 W is 20 % of it.
    assert!(with(&Ok(Baseline { spread_w: 0.75, ..good.clone() })).net_j.is_some());
    let out = with(&Ok(Baseline { spread_w: 0.85, ..good.clone() }));
    assert!(out.net_j.is_none() && out.baseline_w == Some(good.w), "{out:?}");
    assert!(out.why("energy_j_per_tok").unwrap().contains("20 % of the net"));
    assert!(
        with(&Ok(Baseline { charge_state: Some("full".to_owned()), ..good.clone() })).why("energy_net_j").unwrap().contains("charge state")
    );
    assert!(with(&Ok(Baseline { method: "meter".to_owned(), ..good })).why("energy_net_j").unwrap().contains("by meter"));
}

#[test]
fn a_baseline_lasts_a_minute() {
    let of = |seconds: f64, gauge: &Gauge| {
        baseline(&one_battery(gauge, seconds + 2.0, &idle), None, Asked::default(), (1.0, 1.0 + seconds), None, BaselineState::NoModel)
    };
    assert!(matches!(of(50.0, &ABI), Err(Refusal::Short { .. })));
    assert!(of(60.0, &ABI).is_ok());
    assert!(matches!(of(60.0, &Gauge { update_s: 13.0, ..ABI }), Err(Refusal::Short { .. })));
    // At idle uA look like mA: the counter contradicts, and the launches know better.
    let asleep = one_battery(&ABI, 70.0, &|t| 0.015 + 0.001 * (t * 3.0).sin());
    let told = |hint| baseline(&asleep, None, Asked::default(), (1.0, 66.0), hint, BaselineState::Resident);
    assert!(matches!(told(None), Err(Refusal::Contradiction(_))));
    near(told(Some(CurrentUnit::Microampere)).unwrap().w, 0.06, 0.002);
}

#[test]
fn phases_shorter_than_the_gauge_have_no_watts() {
    let slow = one_battery(&Gauge { update_s: 1.5, ..ABI }, 160.0, &mixed);
    let out = launch(&load(), &slow, None, Asked::default(), &quiet());
    assert!(out.prefill_w.is_none() && out.decode_w.is_some());
    assert!(out.why("prefill_power_w").unwrap().starts_with("a prefill lasts 4.00 s at most"), "{:?}", out.absent);
}

#[test]
fn a_refused_window_has_a_reason_for_everything() {
    let out = launch(&Load { window: (5.0, 65.0), ..load() }, &one_battery(&ABI, 160.0, &mixed), None, Asked::default(), &quiet());
    assert_eq!((out.absent.len(), out.avg_w, out.method.as_deref()), (METRICS.len(), None, Some("battery")));
    assert!(out.why("power_avg_w").unwrap().starts_with("window of 60.0 s, needed 120 s"));
    assert_eq!(out.charge_state.as_deref(), Some("discharging"));
}

#[test]
fn the_cells_own_baseline_comes_first() {
    let no_model = quiet();
    // The same gauge with 0.05 A more of a model in memory: 1.0 W.
    let heavier = |t: f64| idle(t) + 0.05;
    let resident = baseline(&one_battery(&ABI, 66.0, &heavier), None, Asked::default(), (5.0, 65.0), None, BaselineState::Resident);
    let resident = resident.map_err(|e| e.to_string());
    let word = |chosen: Result<&Baseline, &str>| chosen.map(|b| b.state.as_str()).map_err(str::to_owned);
    let err = |why: &str| Err::<Baseline, _>(why.to_owned());
    assert_eq!(word(chosen(Some(&resident), &no_model)), Ok("resident"));
    assert_eq!(word(chosen(Some(&resident), &err("none"))), Ok("resident"));
    assert_eq!(word(chosen(None, &no_model)), Ok("no-model"));
    // What its readings do not carry is no figure; the other one says what it is.
    assert_eq!(word(chosen(Some(&err("3 updates")), &no_model)), Ok("no-model"));
    assert_eq!(word(chosen(Some(&err("3 updates")), &err("off"))), Err("3 updates".to_owned()));
    assert_eq!(word(chosen(None, &err("off"))), Err("off".to_owned()));

    let mut out = super::launch(&load(), &one_battery(&ABI, 160.0, &mixed), None, Asked::default());
    let gross = out.gross_j.unwrap();
    out.less(&load(), chosen(Some(&resident), &no_model));
    assert_eq!(out.baseline_state, Some(BaselineState::Resident));
    near(out.baseline_w.unwrap(), 1.0, 0.01);
    // 1.0 W over 150 s.
    near(gross - out.net_j.unwrap(), 150.0, 1.5);
}
