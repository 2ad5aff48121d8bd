//! Which idle time is taken off which launch: a run folder made by hand, of a battery at 4.0 V whose current is known.

use std::fmt::Write;

use super::*;
use crate::{
    analysis::soak::{Soak, Worked},
    results::launches::StepRecord,
};
use bench_backend_api::{Query, Token};

const S: u64 = 1_000_000_000;

/// A load of 10 s, an idle time of 65 s of which the gauge shows the load for the first five, a discarded query, and 14 of 10 s from 80 s on, 4 s of
/// them prefill. What is new shows half a second late. In A: 0.5 while loading, 0.25 idle (1 W), and what the queries draw.
fn amperes(t_s: f64, queries: f64) -> f64 {
    let level = if t_s < 15.0 {
        0.5
    } else if t_s < 75.5 {
        0.25
    } else {
        queries
    };
    // A gauge that is renewed twice a second.
    level + if (t_s * 2.0).floor() % 2.0 == 0.0 { 0.002 } else { -0.002 }
}

fn query(number: u32) -> Query {
    let start = if number == 0 { 75 } else { 70 + 10 * u64::from(number) };
    let tokens = if number == 0 { [1, 5] } else { [4, 10] }.map(|after| Token { id: None, t_ns: (start + after) * S });
    Query { query: number, start_ns: start * S, prompt_tokens: Some(32), tokens: tokens.to_vec(), ..Query::default() }
}

/// What the measured queries of a soak add up to: 14 of 4 s of prefill and 6 s of decode.
fn worked() -> Worked {
    Worked { first: query(1), last: query(14), queries: 14, prompt_tokens: Some(14 * 32), gen_tokens: 28, prefill_s: 56.0, decode_s: 84.0 }
}

/// A launch in a folder of its own.
fn launch(run: &Path, cell: &str, (pass, segment): (Pass, u32), idles: bool, queries_a: f64) -> (PathBuf, Record) {
    let dir = run.join(format!("{cell}-{pass}-{segment}"));
    fs::create_dir_all(&dir).unwrap();
    let mut text = "t_ns,source,name,value,unit\n".to_owned();
    for i in 0..2250_u64 {
        let t = i * S / 10;
        let current = -(amperes(i as f64 / 10.0, queries_a) * 1e6).round();
        for (name, value) in [("current_now", current), ("voltage_now", 4e6), ("status", 2.0)] {
            writeln!(text, "{t},battery,battery/{name},{value},raw").unwrap();
        }
    }
    fs::write(dir.join("telemetry.csv"), text).unwrap();
    let soak = pass == Pass::Soak;
    let parsed = Parsed {
        idle_ns: idles.then_some((10 * S, 75 * S)),
        queries: if soak { Vec::new() } else { (0..15).map(query).collect() },
        ..Parsed::default()
    };
    let record = Record {
        format_version: 1,
        cell: cell.to_owned(),
        pass,
        launch: segment,
        block: 0,
        segment,
        status: Status::Ok,
        failure: None,
        checks: None,
        parsed,
        steps: vec![StepRecord { name: "run".to_owned(), argv: Vec::new(), done: None }],
        staged: crate::results::launches::Staged::default(),
        lmkd_kills: None,
        round_trips: 0,
        start: crate::results::start::Start::default(),
        shared: None,
        soak: soak.then(|| Soak { worked: Some(worked()), ..Soak::default() }),
    };
    (dir, record)
}

#[test]
fn each_cell_has_its_own_and_each_segment() {
    let dir = tempfile::tempdir().unwrap();
    let mut plan = Plan::from_toml(include_str!("../../../results/example-pc/plan.toml")).unwrap();
    plan.measure.warmup = 1;
    let power = |ms| Some(Power { baseline_ms: ms, ..Power::default() });
    plan.power = power(60_000);
    let (measure, soak) = (Pass::Measure, Pass::Soak);
    let launches = vec![
        launch(dir.path(), "a", (measure, 0), true, 1.0),
        launch(dir.path(), "a", (soak, 0), false, 2.0),
        launch(dir.path(), "a", (measure, 1), false, 1.0),
        launch(dir.path(), "b", (measure, 0), false, 1.0),
        launch(dir.path(), "c", (soak, 0), true, 2.0),
    ];
    let recorded = Recorded { launches, ..Recorded::default() };
    let all = RunPower::read(dir.path(), &plan, "local", &recorded);
    let of = |place: usize| all.of(&recorded.launches[place].1).unwrap();
    let near = |value: Option<f64>, truth: f64| assert!((value.unwrap() / truth - 1.0).abs() < 0.01, "{value:?} is not {truth}");
    // 140 s of 4 W or 8 W, less those of the idle watt.
    for (place, gross_j, net_j) in [(0, 560.0, 420.0), (1, 1120.0, 980.0), (4, 1120.0, 980.0)] {
        let found = of(place);
        near(found.gross_j, gross_j);
        near(found.baseline_w, 1.0);
        near(found.net_j, net_j);
        assert_eq!(found.baseline_state, Some(BaselineState::Resident));
    }
    // Another segment, another cell.
    for place in [2, 3] {
        let found = of(place);
        near(found.gross_j, 560.0);
        assert_eq!((found.baseline_w, found.baseline_state, found.net_j), (None, None, None));
        assert_eq!(found.why("energy_net_j"), Some("the baseline could not be measured"));
    }
    // Nobody asked for one.
    plan.power = power(0);
    let none = RunPower::read(dir.path(), &plan, "local", &recorded);
    assert_eq!(none.of(&recorded.launches[0].1).unwrap().baseline_w, None);
}
