//! Soaks that were made up, so that every figure is known beforehand.

use std::{collections::BTreeMap, fmt::Write};

use bench_backend_api::{Query, Token};

use super::{Input, Soak, Trace, analyse};

const S: u64 = 1_000_000_000;
const MS: u64 = 1_000_000;
/// When the made-up program started, on the made-up device's clock.
const BOOT: u64 = 77_000 * S;

fn domain(zone: &str) -> Option<&'static str> {
    match zone {
        z if z.starts_with("nsp") => Some("npu"),
        z if z.starts_with("cpu") => Some("cpu"),
        "skin" => Some("skin"),
        _ => None,
    }
}

/// A soak whose decode takes `gap_ms(second)` a token: 50 tokens a query, 100 ms to the first, 20 ms between queries, two prompts.
struct Made {
    seconds: u64,
    queries: Vec<Query>,
    telemetry: String,
}

impl Made {
    fn new(seconds: u64, gap_ms: impl Fn(f64) -> f64) -> Self {
        let mut queries = Vec::new();
        let mut t = BOOT;
        for query in 0.. {
            let start_ns = t;
            t += 100 * MS;
            let prompt = query % 2;
            let mut tokens = vec![Token { id: Some(prompt * 100), t_ns: t }];
            for i in 1..50 {
                t += (gap_ms((t - BOOT) as f64 / 1e9) * 1e6) as u64;
                tokens.push(Token { id: Some(prompt * 100 + i), t_ns: t });
            }
            queries.push(Query { query, start_ns, tokens, end_ns: Some(t), ..Query::default() });
            if t - BOOT >= seconds * S {
                break;
            }
            t += 20 * MS;
        }
        Self { seconds, queries, telemetry: String::new() }
    }

    /// A value of every second, and every change alone if it is one of those of a long run.
    fn sampled(&mut self, source: &str, name: &str, value: impl Fn(f64) -> f64) -> &mut Self {
        for second in 0..=self.seconds {
            let _ = writeln!(self.telemetry, "{},{source},{name},{},x", BOOT + second * S, value(second as f64));
        }
        self
    }

    fn analysed(&self, window_s: u64, change: impl FnOnce(&mut Input<'_>)) -> Soak {
        self.against(None, window_s, change)
    }

    fn against(&self, reference: Option<&[Vec<u32>]>, window_s: u64, change: impl FnOnce(&mut Input<'_>)) -> Soak {
        let trace = Trace::read(&self.telemetry);
        let peaks = BTreeMap::new();
        let mut input = Input {
            queries: &self.queries,
            warmup: 1,
            speculative: false,
            prompts: 2,
            gen_tokens: 50,
            reference,
            least_agreement: 1.0,
            trace: &trace,
            peaks: &peaks,
            domain: &domain,
            own_domain: "npu",
            power: None,
            window_ns: window_s * S,
            asked_s: self.seconds as f64,
            early: None,
        };
        change(&mut input);
        analyse(&input).expect("measured queries")
    }
}

fn near(found: Option<f64>, wanted: f64, error: f64) {
    let found = found.unwrap_or_else(|| panic!("absent, {wanted} wanted"));
    assert!((found - wanted).abs() <= error, "{found}, not {wanted} within {error}");
}

/// From 200 s on a token takes 16 ms instead of 10: the device's clocks fell. Its NPU warms up by 6 C a minute until then.
fn throttled() -> Made {
    let mut made = Made::new(600, |s| if s < 200.0 { 10.0 } else { 16.0 });
    made.sampled("thermal", "nsphvx-0", |s| 40.0 + 6.0 * s.min(200.0) / 60.0);
    made.sampled("thermal", "nsphmx-1", |s| 39.0 + 6.0 * s.min(200.0) / 60.0);
    made.sampled("thermal", "cpuss-0", |_| 55.0).sampled("thermal", "odd-zone", |_| 150.0);
    made.sampled("cooling", "cdsp_sw_hvx", |s| if s < 199.0 { 0.0 } else { 2.0 });
    made.sampled("cpufreq", "policy7_cap", |s| if s < 230.0 { 3302.4 } else { 2956.8 }).sampled("cpufreq", "policy7", |_| 2900.0);
    made.sampled("cpufreq", "policy7_max", |_| 3302.4).sampled("cpufreq", "policy0", |_| 1800.0);
    made
}

#[test]
fn one_slow_window_is_no_throttling() {
    // Slow for half of the window from 100 s on: 5 s of it with twice the gaps.
    let soak = Made::new(300, |s| if (102.0..107.0).contains(&s) { 20.0 } else { 10.0 }).analysed(10, |_| ());
    let least = soak.windows.iter().map(|w| w.tok_s).fold(f64::INFINITY, f64::min);
    assert!(least < 0.85 * soak.initial_tok_s.unwrap(), "{least}");
    assert_eq!(soak.time_to_throttle_s, None);
}

#[test]
fn the_throttling_of_a_made_up_phone() {
    let soak = throttled().analysed(10, |_| ());
    // A query of 50 tokens takes 100 + 49 gaps + 20 ms: 610 ms, then 904 ms. Begun with query 1, 610 ms after the start.
    let (fast, slow) = (50.0 / 0.610, 50.0 / 0.904);
    near(soak.initial_tok_s, fast, 0.02 * fast);
    near(soak.sustained_ratio, slow / fast, 0.02);
    near(soak.span_s, 60.0, 0.0);
    // The first slow window begins within a window of 200 s.
    near(soak.time_to_throttle_s, 200.0, 10.0);
    near(soak.steady_state_s, 205.0, 10.0);
    near(soak.minute_1_tok_s, fast, 0.02 * fast);
    assert_eq!((soak.minute_30_tok_s, soak.windows.len()), (None, 60));
    assert!(soak.absent.contains(&("minute_30_tok_s".to_owned(), "not reached".to_owned())));
    let w = &soak.windows[3];
    near(w.decode_tok_s, 100.0, 0.01);
    assert_eq!(w.itl_ms.map(|q| q.map(|v| (v * 1e3).round())), Some([10_000.0; 4]));
    assert_eq!(w.ttft_ms.map(|q| q.map(f64::round)), Some([100.0; 2]));
    // Of the windows every token is in one, but those of the discarded query and of a short rest.
    let all: u32 = soak.windows.iter().map(|w| w.tokens).sum();
    let made: usize = throttled().queries.iter().skip(1).map(|q| q.tokens.len()).sum();
    assert!(all as usize <= made && made - all as usize <= 5 * 62, "{all} of {made}");
}

#[test]
fn the_heat_of_a_made_up_phone() {
    let soak = throttled().analysed(10, |_| ());
    assert_eq!(soak.heat_domain.as_deref(), Some("npu"));
    let rise = soak.rise_60s.expect("a rise");
    assert!((rise.value - 6.0).abs() < 1e-9 && rise.lo < 6.0 && rise.hi > 6.0 && rise.hi - rise.lo < 1.0, "{rise:?}");
    // 20 C in 200 s, then nothing: over 5 minutes 4 C a minute.
    near(soak.rise_5min.map(|r| r.value), 4.0, 1e-9);
    assert_eq!(soak.peaks, BTreeMap::from([("npu".to_owned(), 60.0), ("cpu".to_owned(), 55.0)]));
    // Window 1 is from 10.6 to 20.6 s: the hottest zone's mean is that of 10 to 20 s as it was read each second.
    near(soak.windows[1].domains.get("npu").map(|t| t[0]), 40.0 + 0.1 * 15.1, 0.05);
    assert!(!soak.windows[1].domains.contains_key("skin"));
    let first = soak.first_throttle.as_ref().expect("throttled");
    assert_eq!((first.name.as_str(), first.change), ("cooling cdsp_sw_hvx", [0.0, 2.0]));
    near(Some(first.t_s), 199.0 - 0.61, 1e-6);
    // From 199 s to the end.
    near(soak.throttled_fraction, 401.0 / 599.4, 0.002);
    near(soak.windows[40].cpu_cap, 2956.8 / 3302.4, 1e-9);
    assert_eq!((soak.windows[40].cpu_mhz, soak.windows[40].cooling, soak.windows[2].cooling), (Some(2900.0), Some(2.0), Some(0.0)));
    let kinds: Vec<&str> = soak.happenings.iter().map(|h| h.kind.as_str()).collect();
    assert_eq!(kinds, ["throttle"]);
    near(soak.happenings[0].temp_c, 40.0 + 19.9, 1e-6);
}

#[test]
fn a_peak_between_two_rows_is_not_lost() {
    let peaks = BTreeMap::from([("nsphmx-1".to_owned(), 63.5), ("nsphvx-0".to_owned(), 140.0), ("odd-zone".to_owned(), 150.0)]);
    // A reference to a local: the closure sets it for the time of the call.
    let made = throttled();
    let trace = Trace::read(&made.telemetry);
    let heat = super::heat::Heat { trace: &trace, domain: &domain, hold_ns: 20 * S };
    assert_eq!(heat.peaks(&peaks).get("npu"), Some(&63.5));
}

#[test]
fn a_soak_without_throttling_and_without_sensors() {
    let soak = Made::new(90, |_| 10.0).analysed(10, |_| ());
    near(soak.sustained_ratio, 1.0, 0.02);
    near(soak.span_s, 30.0, 0.2);
    near(soak.steady_state_s, 0.0, 0.0);
    assert_eq!((soak.time_to_throttle_s, soak.throttled_fraction, soak.rise_60s, soak.first_throttle.clone()), (None, None, None, None));
    let why: Vec<&str> = soak.absent.iter().map(|(figure, _)| figure.as_str()).collect();
    for figure in ["time_to_throttle_s", "throttled_fraction", "rise_60s", "first_throttle", "minute_30_tok_s", "latency_temp"] {
        assert!(why.contains(&figure), "{figure} in {why:?}");
    }
    // Two answers to each prompt at least, all the same.
    assert!(soak.windows.iter().skip(1).all(|w| w.check == "confirmed" && w.wrong + w.changed == 0));
}

#[test]
fn latency_that_follows_temperature() {
    // 10 ms at 40 C and 0.5 ms more for each further one.
    let temp = |s: f64| 40.0 + s / 60.0;
    let mut made = Made::new(600, |s| 10.0 + 0.5 * (temp(s) - 40.0));
    made.sampled("thermal", "nsphvx-0", temp);
    let a = made.analysed(20, |_| ()).latency_temp.expect("an association");
    assert!((a.slope - 0.5).abs() < 0.02 && a.rho > 0.99, "{a:?}");
    let mut made = Made::new(600, |s| 20.0 - 0.5 * (temp(s) - 40.0));
    made.sampled("thermal", "nsphvx-0", temp);
    assert!(made.analysed(20, |_| ()).latency_temp.is_some_and(|a| a.rho < -0.99));
}

#[test]
fn the_first_wrong_tokens_and_their_temperature() {
    let reference: Vec<Vec<u32>> = (0..2).map(|p| (0..50).map(|i| p * 100 + i).collect()).collect();
    let mut made = throttled();
    let wrong = made.queries.iter().position(|q| q.start_ns > BOOT + 100 * S).unwrap();
    made.queries[wrong].tokens[7].id = Some(9999);
    made.queries[wrong + 20].tokens[0].id = Some(9999);
    let soak = made.against(Some(&reference), 10, |_| ());
    let h: Vec<_> = soak.happenings.iter().filter(|h| h.kind == "wrong-tokens").collect();
    assert_eq!(h.len(), 1);
    assert!(h[0].what.contains(&format!("query {wrong}")) && h[0].what.contains("token 7"), "{}", h[0].what);
    near(h[0].temp_c, 40.0 + 0.1 * 100.0, 0.2);
    let bad: Vec<usize> = soak.windows.iter().enumerate().filter(|(_, w)| w.check == "contradicted").map(|(i, _)| i).collect();
    let of = |q: usize| ((made.queries[q].end_ns.unwrap() - made.queries[1].start_ns) / (10 * S)) as usize;
    assert_eq!(bad, [of(wrong), of(wrong + 20)]);
    // Without a reference the first answer to the same prompt is the measure.
    let soak = made.analysed(10, |_| ());
    assert_eq!(soak.windows.iter().map(|w| w.changed).sum::<u32>(), 2);
    assert!(soak.happenings.iter().any(|h| h.kind == "changed-tokens"));
    // A quantised model may differ from its float reference and still has to give what it gave before.
    let soak = made.against(Some(&reference), 10, |input| input.least_agreement = 0.1);
    assert_eq!((soak.windows.iter().map(|w| w.wrong).sum::<u32>(), soak.windows.iter().map(|w| w.changed).sum::<u32>()), (1, 2));
}

#[test]
fn a_slow_token_is_told_with_what_happened_around_it() {
    let mut made = throttled();
    let q = made.queries.iter().position(|q| q.start_ns > BOOT + 198 * S).unwrap();
    // One token of that query comes 300 ms late, and everything after it too.
    for later in &mut made.queries[q..] {
        let from = if later.query as usize == q { 10 } else { 0 };
        later.tokens.iter_mut().skip(from).for_each(|t| t.t_ns += 300 * MS);
        later.end_ns = later.end_ns.map(|t| t + 300 * MS);
        later.start_ns += if from == 0 { 300 * MS } else { 0 };
    }
    let soak = made.analysed(10, |_| ());
    let slow: Vec<_> = soak.happenings.iter().filter(|h| h.kind == "slow-token").collect();
    assert_eq!(slow.len(), 1, "{:?}", soak.happenings);
    assert!(slow[0].what.starts_with("token 10 of query"), "{}", slow[0].what);
    assert!(slow[0].what.contains("310.0 ms where 10.0 ms are usual; cooling cdsp_sw_hvx from 0 to 2"), "{}", slow[0].what);
}

#[test]
fn an_early_end_keeps_its_windows() {
    let mut made = throttled();
    made.queries.truncate(100);
    let cut = made.queries[99].tokens.len() / 2;
    made.queries[99].tokens.truncate(cut);
    made.queries[99].end_ns = None;
    let soak = made.analysed(10, |input| input.early = Some("the device was restarted".to_owned()));
    assert_eq!((soak.windows.len(), soak.early.as_deref()), (6, Some("the device was restarted")));
    assert_eq!(soak.happenings.last().map(|h| h.kind.as_str()), Some("end"));
    assert!(soak.windows.iter().all(|w| w.tok_s > 70.0));
    // What cooled and capped later is none of this launch's.
    assert_eq!((soak.first_throttle, soak.throttled_fraction), (None, Some(0.0)));
}

#[test]
fn next_to_nothing_is_no_panic() {
    let made = Made::new(1, |_| 10.0);
    for keep in 0..made.queries.len() {
        let part = Made { queries: made.queries[..keep].to_vec(), telemetry: String::new(), seconds: 1 };
        let trace = Trace::default();
        let peaks = BTreeMap::new();
        let input = Input {
            queries: &part.queries,
            warmup: 1,
            speculative: false,
            prompts: 0,
            gen_tokens: 50,
            reference: None,
            least_agreement: 1.0,
            trace: &trace,
            peaks: &peaks,
            domain: &domain,
            own_domain: "npu",
            power: Some(&super::Series::default()),
            window_ns: 0,
            asked_s: 1.0,
            early: None,
        };
        let soak = if keep < 2 { analyse(&input) } else { None };
        assert!(soak.is_none());
    }
    // One measured query without a token, and one that took no time.
    let mut bare = Made::new(1, |_| 10.0);
    bare.queries.truncate(2);
    bare.queries[1].tokens.clear();
    bare.queries[1].end_ns = None;
    assert_eq!(bare.analysed(10, |_| ()).sustained_ratio, None);
}

#[test]
fn the_watts_of_a_window_are_those_of_its_time() {
    let made = Made::new(35, |_| 10.0);
    let begin = made.queries[1].start_ns;
    // A gauge that changes once, and stands at 8 W from then on.
    let power: &super::Series = Box::leak(Box::new(vec![(begin, 4.0), (begin + 2_500 * MS, 8.0)].into()));
    let soak = made.analysed(10, |input| input.power = Some(power));
    let watts: Vec<Option<f64>> = soak.windows.iter().take(2).map(|w| w.watts).collect();
    // (2.5 s x 4 W + 7.5 s x 8 W) / 10 s, then 8 W.
    near(watts[0], 7.0, 1e-9);
    near(watts[1], 8.0, 1e-9);
}

#[test]
fn a_token_after_the_last_whole_window_is_in_none() {
    let token = |s: u64| Token { id: None, t_ns: s * S };
    let made = |tokens: &[u64]| {
        let tokens = tokens.iter().map(|s| token(*s)).collect();
        Made { queries: vec![Query { query: 1, start_ns: 0, tokens, ..Query::default() }], telemetry: String::new(), seconds: 24 }
    };
    let counts = |made: Made| made.analysed(10, |_| ()).windows.iter().map(|w| w.tokens).collect::<Vec<_>>();
    // 24 s are two windows of 10 s and a rest of less than half of one.
    assert_eq!(counts(made(&[1, 11, 12, 24])), [1, 2]);
    assert_eq!(counts(made(&[1, 11, 12, 20])), [1, 3], "the end of the last window belongs to it");
}

#[test]
fn what_the_measured_queries_add_up_to() {
    let mut made = Made::new(5, |_| 10.0);
    made.queries.iter_mut().for_each(|q| q.prompt_tokens = Some(32));
    let measured = made.queries.len() as u32 - 1;
    // The last one was ended before its first token.
    let last = made.queries.last_mut().unwrap();
    last.tokens.clear();
    let worked = made.analysed(1, |_| ()).worked.expect("measured queries");
    let n = f64::from(measured - 1);
    assert_eq!((worked.first.query, worked.last.query, worked.queries), (1, measured - 1, measured - 1));
    assert_eq!((worked.prompt_tokens, worked.gen_tokens), (Some(32 * u64::from(measured - 1)), 50 * u64::from(measured - 1)));
    // 100 ms to the first token, 49 gaps of 10 ms.
    near(Some(worked.prefill_s), 0.1 * n, 1e-9);
    near(Some(worked.decode_s), 0.49 * n, 1e-9);
    assert_eq!(worked.ends().len(), 2);
}

/// Tokens of one query at the given milliseconds after its start.
fn one_query(ms: &[u64]) -> Made {
    let tokens: Vec<Token> = ms.iter().map(|t| Token { id: Some(1), t_ns: BOOT + t * MS }).collect();
    let end_ns = tokens.last().map(|t| t.t_ns);
    let queries = vec![Query { query: 1, start_ns: BOOT, tokens, end_ns, ..Query::default() }];
    Made { seconds: 12, queries, telemetry: String::new() }
}

/// Of an agent that was killed nobody knows when its program ran: a time stamp of the wall clock is then not seen to be wrong.
#[test]
fn times_of_another_clock_do_not_fill_the_memory() {
    let soak = one_query(&[1000, 1_764_500_000_000]).analysed(1, |_| ());
    assert!(soak.windows.len() <= 100_000);
    let _ = one_query(&[1000, 18_000_000_000_000]).analysed(1, |_| ());
}
