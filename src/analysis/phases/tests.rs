//! Numbers made by hand.

use bench_backend_api::{GraphTime, Parsed, PhasePart, PhaseSpan, Query, Token};

use super::{Stage, StageTimes, of_launch};

fn span(query: Option<u32>, phase: &str, begin_us: u64, end_us: u64) -> PhaseSpan {
    PhaseSpan { query, token: None, phase: phase.to_owned(), begin_ns: begin_us * 1000, end_ns: end_us * 1000 }
}

/// Tokens at these microseconds.
fn query(query: u32, start_us: u64, tokens_us: &[u64]) -> Query {
    let tokens = tokens_us.iter().map(|us| Token { id: None, t_ns: us * 1000 }).collect();
    Query { query, start_ns: start_us * 1000, tokens, ..Query::default() }
}

fn pieces(stages: &[StageTimes], stage: Stage) -> Vec<(&str, f64, &str)> {
    let found = stages.iter().find(|s| s.stage == stage).expect("the stage");
    let top: f64 = found.pieces.iter().filter(|p| !p.phase.contains('/')).map(|p| p.us).sum();
    assert!((top - found.whole_us).abs() < 1e-9 * found.whole_us, "the parts sum to the whole: {found:?}");
    // To a thousandth of a microsecond.
    found.pieces.iter().map(|p| (p.phase.as_str(), (p.us * 1e3).round() / 1e3, p.method.as_str())).collect()
}

/// Query 1 is submitted at 1000 us, its tokens come at 1100, 1150 and 1200.
fn timed() -> Parsed {
    Parsed {
        load_ns: Some((0, 500_000)),
        queries: vec![query(0, 600, &[800, 900, 990]), query(1, 1000, &[1100, 1150, 1200])],
        phases: vec![
            span(None, "library", 10, 110),
            span(None, "prepare", 110, 460),
            span(Some(0), "execute", 600, 990),
            span(Some(1), "h2d", 1000, 1005),
            span(Some(1), "execute", 1005, 1090),
            // Over the edge of the two stages: 8 us before the first token, 2 behind it.
            span(Some(1), "sample", 1092, 1102),
            span(Some(1), "execute", 1102, 1148),
            span(Some(1), "sample", 1148, 1150),
            span(Some(1), "execute", 1150, 1190),
        ],
        ..Parsed::default()
    }
}

#[test]
fn spans_fall_into_their_stages_and_the_rest_is_named() {
    let stages = of_launch(&timed(), 1, 32);
    assert_eq!(pieces(&stages, Stage::Load), [("library", 100.0, "events"), ("prepare", 350.0, "events"), ("unaccounted", 50.0, "rest")]);
    let prefill = [("h2d", 5.0, "events"), ("execute", 85.0, "events"), ("sample", 8.0, "events"), ("unaccounted", 2.0, "rest")];
    assert_eq!(pieces(&stages, Stage::Prefill), prefill);
    assert_eq!(pieces(&stages, Stage::Decode), [("sample", 4.0, "events"), ("execute", 86.0, "events"), ("unaccounted", 10.0, "rest")]);
    assert_eq!(stages.iter().map(|s| (s.whole_us, s.units)).collect::<Vec<_>>(), [(500.0, 1.0), (100.0, 1.0), (100.0, 2.0)]);
}

#[test]
fn sums_stand_for_spans_where_they_fit() {
    let with = |figures: &[(&str, f64)]| {
        let mut parsed = Parsed { phases: Vec::new(), ..timed() };
        parsed.queries[1].reported = figures.iter().map(|(key, us)| ((*key).to_owned(), *us)).collect();
        of_launch(&parsed, 1, 32)
    };
    let stages = with(&[("decode_h2d_us", 3.0), ("decode_execute_us", 90.0), ("decode_us", 99.0), ("prefill_sleep_us", 4.0)]);
    assert_eq!(pieces(&stages, Stage::Decode), [("h2d", 3.0, "sums"), ("execute", 90.0, "sums"), ("unaccounted", 7.0, "rest")]);
    // A name that the protocol does not know is no part, and without parts there is the whole.
    assert_eq!(pieces(&stages, Stage::Prefill), [("query", 100.0, "whole")]);
    assert_eq!(pieces(&stages, Stage::Load), [("load", 500.0, "whole")]);
    // More than the whole, and numbers that are none.
    for us in [102.0, f64::NAN, f64::INFINITY, -1.0] {
        assert_eq!(pieces(&with(&[("decode_execute_us", us)]), Stage::Decode), [("query", 100.0, "whole")], "{us}");
    }
}

#[test]
fn what_has_no_time_has_no_stage() {
    assert!(of_launch(&Parsed::default(), 0, 32).is_empty());
    // One query a process is the discarded one; two tokens in the first event hide both stages.
    let parsed = Parsed { queries: vec![query(0, 0, &[5, 9]), query(1, 20, &[30, 30, 40])], ..Parsed::default() };
    assert!(of_launch(&parsed, 1, 32).is_empty());
    let parsed = Parsed { queries: vec![query(0, 0, &[5])], load_ns: Some((7, 7)), ..Parsed::default() };
    assert_eq!(of_launch(&parsed, 0, 32).iter().map(|s| s.stage).collect::<Vec<_>>(), [Stage::Prefill]);
}

#[test]
fn a_tools_own_figures_are_one_piece() {
    let reported = [("ttft_us", 32_000.0), ("decode_us", 35_000.0), ("decode_steps", 7.0)].map(|(k, v)| (k.to_owned(), v)).into();
    let q = Query { query: 1, aggregate_n: Some(5), reported, ..Query::default() };
    let stages = of_launch(&Parsed { queries: vec![q], ..Parsed::default() }, 1, 64);
    assert_eq!(pieces(&stages, Stage::Prefill), [("query", 32_000.0, "runtime_reported")]);
    assert_eq!((pieces(&stages, Stage::Decode), stages[1].units), (vec![("query", 35_000.0, "runtime_reported")], 7.0));
}

fn part(stage: &str, name: &str, us: f64, n: u32) -> PhasePart {
    let [stage, of, name, source] = [stage, "execute", name, "qnn-ep-profile"].map(str::to_owned);
    PhasePart { stage, of, name, us, n, source }
}

/// Decode of both queries executes: query 0 190 us in one stretch, query 1 46 and 40: 276 us in 3 executions, 92 each. The profile has 69 each
/// in RPC and 13.8 on the accelerator: 0.75 and 0.15 of the 86 us that count, and 0.1 are ONNX Runtime's.
#[test]
fn a_profile_splits_the_executions_that_it_is_about() {
    let with = |n: u32, rpc: f64| {
        let scale = f64::from(n);
        let parts =
            vec![part("decode", "rpc", rpc * scale, n), part("decode", "accelerator", 13.8 * scale, n), part("prefill", "rpc", 9.0, 9)];
        of_launch(&Parsed { parts, ..timed() }, 1, 32)
    };
    let whole = [("sample", 4.0, "events"), ("execute", 86.0, "events"), ("unaccounted", 10.0, "rest")];
    let split = [
        whole[0],
        whole[1],
        ("execute/runtime", 8.6, "qnn-ep-profile"),
        ("execute/rpc", 64.5, "qnn-ep-profile"),
        ("execute/accelerator", 12.9, "qnn-ep-profile"),
        whole[2],
    ];
    assert_eq!(pieces(&with(3, 69.0), Stage::Decode), split);
    // Of other executions, and more than the whole.
    assert_eq!(pieces(&with(4, 69.0), Stage::Decode), whole);
    assert_eq!(pieces(&with(3, 79.0), Stage::Decode), whole);
    assert_eq!(pieces(&with(3, 69.0), Stage::Prefill).len(), 4);
}

/// 350 us of preparing, of which two graphs' profiles have 30 + 40 on the host and 105 + 35 on the NPU: 140 are left for ONNX Runtime.
#[test]
fn loading_is_split_by_the_profiles_of_all_graphs() {
    let load = |name: &str, us: f64| PhasePart { of: "prepare".to_owned(), ..part("load", name, us, 1) };
    let parts = vec![load("host", 30.0), load("accelerator", 105.0), load("host", 40.0), load("accelerator", 35.0)];
    let stages = of_launch(&Parsed { parts, ..timed() }, 1, 32);
    let wanted = [
        ("library", 100.0, "events"),
        ("prepare", 350.0, "events"),
        ("prepare/runtime", 140.0, "qnn-ep-profile"),
        ("prepare/host", 70.0, "qnn-ep-profile"),
        ("prepare/accelerator", 140.0, "qnn-ep-profile"),
        ("unaccounted", 50.0, "rest"),
    ];
    assert_eq!(pieces(&stages, Stage::Load), wanted);
}

/// Two binaries a phase (rule R11): NetRun 6 + 4 ms for a chunk, of which QNN's own wall time is 5.5 + 3.5; 80 tokens are 3 chunks of 32.
#[test]
fn graphs_of_a_tool_without_a_loop_are_composed() {
    let graph = |phase: &str, tokens, part, latency_ms| GraphTime { phase: phase.into(), tokens, part, parts: 2, n: 20, latency_ms };
    let graphs = vec![graph("prefill", 32, 1, 6.0), graph("prefill", 32, 2, 4.0), graph("decode", 1, 1, 0.75), graph("decode", 1, 2, 0.25)];
    let parts = vec![
        part("prefill", "host", 500.0 * 20.0, 20),
        part("prefill", "accelerator", 5000.0 * 20.0, 20),
        part("prefill", "host", 500.0 * 20.0, 20),
        part("prefill", "accelerator", 3000.0 * 20.0, 20),
    ];
    let stages = of_launch(&Parsed { graphs, parts, ..Parsed::default() }, 1, 80);
    let prefill = [
        ("execute", 30_000.0, "composed"),
        ("execute/runtime", 3000.0, "qnn-ep-profile"),
        ("execute/host", 3000.0, "qnn-ep-profile"),
        ("execute/accelerator", 24_000.0, "qnn-ep-profile"),
    ];
    assert_eq!(pieces(&stages, Stage::Prefill), prefill);
    assert_eq!(pieces(&stages, Stage::Decode), [("execute", 1000.0, "composed")]);
}
