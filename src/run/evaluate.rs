//! From time stamps to metrics (definitions: design 2b.7 and `facts/metrics.md`). Pure.

use std::borrow::Cow;

use bench_agent::spec::Done;
use bench_backend_api::{Parsed, Query, TOKENS_PER_STEP, Workload, text::plausible_ms};

use super::{
    loading::{LoadState, load_state},
    memory::{Memory, Trace, memory},
};
use crate::{analysis, results::launches::Shared, stats};

/// Metrics of one query, or of one launch; `None` has its reason in `absent`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct QueryMetrics {
    /// Milliseconds from submission to the first token.
    pub ttft_ms: Option<f64>,
    /// Prompt tokens per second until the first token.
    pub prefill_tok_s: Option<f64>,
    /// (N-1) over the time from the first to the last token.
    pub decode_tok_s: Option<f64>,
    /// Its inverse, in milliseconds.
    pub tpot_ms: Option<f64>,
    /// Quantiles of the gaps between tokens, in milliseconds.
    pub itl_ms: Option<[f64; 3]>,
    /// Milliseconds from submission to the last token.
    pub e2e_ms: Option<f64>,
    /// The runtime's own TTFT, in milliseconds.
    pub reported_ttft_ms: Option<f64>,
    /// From the runtime's own prompt count and duration.
    pub reported_prefill_tok_s: Option<f64>,
    /// From the runtime's own count and duration.
    pub reported_decode_tok_s: Option<f64>,
    /// Tokens that one step gave on average, as the runtime counts them (rule R5).
    pub tokens_per_step: Option<f64>,
    /// Executions behind figures that were composed from graph times (rule R11); `None` where they were measured.
    pub composed: Option<u32>,
    /// Where `ttft_ms` comes from (rule R6): `token_event`, `runtime_reported`, or `derived` from a prefill rate.
    pub ttft_method: Option<&'static str>,
    /// Queries behind figures that a tool reports as a mean.
    pub aggregate_n: Option<u32>,
    /// Metric and reason.
    pub absent: Vec<(&'static str, Cow<'static, str>)>,
}
impl QueryMetrics {
    fn lacks(&mut self, metrics: &[&'static str], why: impl Into<Cow<'static, str>>) {
        let why = why.into();
        self.absent.extend(metrics.iter().map(|metric| (*metric, why.clone())));
    }
}

const SEVERAL: &str = "several tokens in one event";
const ITL: [&str; 3] = ["itl_p50_ms", "itl_p90_ms", "itl_p99_ms"];

fn ms(from: u64, to: u64) -> f64 {
    to.saturating_sub(from) as f64 / 1e6
}

fn all([p50, p90, p99]: [Option<f64>; 3]) -> Option<[f64; 3]> {
    Some([p50?, p90?, p99?])
}

const SPECULATIVE: &str = "speculative decoding: a step gives several tokens (see tokens_per_step)";

/// Metrics of one query of a launch.
pub fn query_metrics(parsed: &Parsed, q: &Query) -> QueryMetrics {
    let mut m = of_query(q);
    // Rule R5: tokens that one step gave are handed out one after the other, however little time lies between them.
    if parsed.speculative().is_some() && m.itl_ms.take().is_some() {
        m.lacks(&ITL, SPECULATIVE);
    }
    m
}

fn of_query(q: &Query) -> QueryMetrics {
    let mut m = QueryMetrics { ttft_method: Some(TOKEN_EVENT), ..QueryMetrics::default() };
    if let Some(n) = q.aggregate_n {
        return reported_metrics(q, n);
    }
    let (Some(first), Some(last)) = (q.tokens.first(), q.tokens.last()) else {
        m.lacks(&["ttft_ms", "prefill_tok_s", "decode_tok_s", "tpot_ms"], "no token came");
        m.lacks(&ITL, "no token came");
        m.lacks(&["e2e_ms"], "no token came");
        return m;
    };
    let ttft = ms(q.start_ns, first.t_ns);
    // Rule R5: a first event that holds several tokens says neither when the first of them was there nor how long the others took.
    let together = q.tokens.get(1).is_some_and(|second| second.t_ns == first.t_ns);
    if ttft > 0.0 && !together {
        m.ttft_ms = Some(ttft);
        match q.prompt_tokens {
            Some(n) => m.prefill_tok_s = Some(f64::from(n) * 1e3 / ttft),
            None => m.lacks(&["prefill_tok_s"], "the prompt's length is unknown"),
        }
    } else {
        let why = if together { SEVERAL } else { "the first token has the time stamp of its prompt" };
        m.lacks(&["ttft_ms", "prefill_tok_s"], why);
    }
    let e2e = ms(q.start_ns, last.t_ns);
    if e2e > 0.0 {
        m.e2e_ms = Some(e2e);
    } else {
        m.lacks(&["e2e_ms"], "the last token has the time stamp of its prompt");
    }
    let steps = q.tokens.len() - 1;
    let decode = ms(first.t_ns, last.t_ns);
    if steps > 0 && !together {
        m.decode_tok_s = Some(steps as f64 * 1e3 / decode);
        m.tpot_ms = Some(decode / steps as f64);
    } else {
        m.lacks(&["decode_tok_s", "tpot_ms"], if together { SEVERAL } else { "one token only" });
    }
    let gaps: Vec<f64> = q.tokens.windows(2).map(|w| ms(w[0].t_ns, w[1].t_ns)).collect();
    // Rule R5: two tokens with one time stamp came in one event, and a gap between events is then no gap between tokens.
    let merged = q.tokens.windows(2).any(|w| w[0].t_ns == w[1].t_ns);
    m.itl_ms = all([0.5, 0.9, 0.99].map(|p| stats::quantile(&gaps, p))).filter(|_| !merged);
    if m.itl_ms.is_none() {
        m.lacks(&ITL, if merged { SEVERAL } else { "one token only" });
    }
    put_reported(q, &mut m);
    m
}

/// A time stamp of each token.
pub const TOKEN_EVENT: &str = "token_event";
/// The runtime's own figure.
pub const RUNTIME_REPORTED: &str = "runtime_reported";
/// The duration that a prefill rate stands for.
pub const DERIVED: &str = "derived";

fn reported(q: &Query, key: &str) -> Option<f64> {
    // What can't be a time or a count is no figure, even as the runtime's own word.
    q.reported.get(key).copied().filter(|v| *v > 0.0 && plausible_ms(*v / 1e3))
}

/// The runtime's own figures.
fn put_reported(q: &Query, m: &mut QueryMetrics) {
    m.reported_ttft_ms = reported(q, "ttft_us").map(|us| us / 1e3);
    let prefill_us = reported(q, "prefill_us").or(reported(q, "ttft_us"));
    m.reported_prefill_tok_s = prefill_us.zip(q.prompt_tokens_reported.or(q.prompt_tokens)).map(|(us, n)| f64::from(n) * 1e6 / us);
    m.tokens_per_step = reported(q, TOKENS_PER_STEP);
    m.reported_decode_tok_s = reported(q, "decode_us").zip(reported(q, "decode_steps")).map(|(us, n)| n * 1e6 / us);
}

/// Metrics of a query, or of the mean of `n`, of which only the runtime's own figures are known.
fn reported_metrics(q: &Query, n: u32) -> QueryMetrics {
    let mut m = QueryMetrics { aggregate_n: Some(n), ..QueryMetrics::default() };
    put_reported(q, &mut m);
    m.ttft_ms = m.reported_ttft_ms.or(reported(q, "prefill_us").map(|us| us / 1e3));
    m.ttft_method = m.ttft_ms.map(|_| if m.reported_ttft_ms.is_some() { RUNTIME_REPORTED } else { DERIVED });
    m.prefill_tok_s = m.reported_prefill_tok_s;
    m.decode_tok_s = m.reported_decode_tok_s;
    m.tpot_ms = m.decode_tok_s.map(|rate| 1e3 / rate);
    m.e2e_ms = reported(q, "e2e_us").map(|us| us / 1e3);
    for (metric, value) in [
        ("ttft_ms", m.ttft_ms),
        ("prefill_tok_s", m.prefill_tok_s),
        ("decode_tok_s", m.decode_tok_s),
        ("tpot_ms", m.tpot_ms),
        ("e2e_ms", m.e2e_ms),
    ] {
        if value.is_none() {
            m.lacks(&[metric], "the tool does not report it");
        }
    }
    m.lacks(&ITL, "the tool gives no time for each token");
    m
}

/// Metrics of one launch.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LaunchMetrics {
    /// Milliseconds of a load that is not known to be a cold one.
    pub load_ms: Option<f64>,
    /// Milliseconds of a cold load (rule R8): another metric.
    pub load_cold_ms: Option<f64>,
    /// Which of them the load is.
    pub load_state: LoadState,
    /// Share of the model's files that was in the page cache before.
    pub resident_share: Option<f64>,
    /// Memory, by kind and after phases.
    pub memory: Memory,
    /// VmHWM of the largest process, in 10^6 bytes.
    pub vm_hwm_mb: Option<f64>,
    /// CPU seconds.
    pub cpu_s: Option<f64>,
}
impl LaunchMetrics {
    /// A metric of the tables by its name.
    pub fn get(&self, name: &str) -> Option<f64> {
        match name {
            "load_ms" => self.load_ms,
            "load_cold_ms" => self.load_cold_ms,
            "peak_mem_mb" => self.memory.peak_mb,
            "vm_hwm_mb" => self.vm_hwm_mb,
            "cpu_s" => self.cpu_s,
            _ => self.memory.get(name),
        }
    }
}

/// Metrics of one launch, from its events, the agent's evidence of its steps, and its telemetry; its first `warmup` queries are discarded. Of a process that
/// cells shared, `parsed` and `trace` are those of the cell's part.
pub fn launch_metrics<'a>(
    parsed: &Parsed,
    steps: impl Iterator<Item = &'a Done> + Clone,
    trace: &Trace,
    warmup: u32,
    shared: Option<&Shared>,
) -> LaunchMetrics {
    let (load_state, resident_share) = load_state(steps.clone().next());
    let load = parsed.load_ns.map(|(a, b)| ms(a, b));
    let cold = load_state == LoadState::Cold;
    let mut m = LaunchMetrics {
        load_ms: load.filter(|_| !cold),
        load_cold_ms: load.filter(|_| cold),
        load_state,
        resident_share,
        memory: memory(parsed, &steps, trace, warmup),
        ..LaunchMetrics::default()
    };
    if let Some(shared) = shared {
        m.memory.of_part(shared, &steps, trace);
        return m;
    }
    for done in steps {
        let hwm = done.vm_hwm_kb.map(|kb| kb as f64 * 1024.0 / 1e6);
        m.vm_hwm_mb = hwm.map(|new| m.vm_hwm_mb.map_or(new, |old| old.max(new))).or(m.vm_hwm_mb);
        m.cpu_s = Some(m.cpu_s.unwrap_or(0.0) + done.rusage.user_s + done.rusage.sys_s);
    }
    m
}

/// What a TTFT begins with: `ids`, or `text` where the tool tokenises its prompt within it (design 2b.7).
pub fn scope(parsed: &Parsed) -> &str {
    parsed.notes.get("ttft_scope").map_or("ids", String::as_str)
}

/// Whether a launch has times of graphs only: its figures are composed, not measured.
pub fn is_composed(parsed: &Parsed) -> bool {
    !parsed.graphs.is_empty() && parsed.queries.is_empty()
}

/// The figures of one launch, which count as one value each: the medians over its measured queries (all but the first), or what is
/// composed from its graphs.
pub fn launch_figures(parsed: &Parsed, workload: Workload, warmup: u32) -> QueryMetrics {
    if is_composed(parsed) {
        return composed(parsed, workload);
    }
    let warm: Vec<QueryMetrics> = parsed.queries.iter().filter(|q| q.query >= warmup).map(|q| query_metrics(parsed, q)).collect();
    if warm.is_empty() && !parsed.queries.is_empty() {
        // Rule R1: a first query is another metric than a warm one.
        let mut m = QueryMetrics::default();
        m.lacks(&["ttft_ms", "prefill_tok_s", "decode_tok_s", "tpot_ms", "e2e_ms"], "one query a process: there is a first query only");
        m.lacks(&ITL, "one query a process: there is a first query only");
        return m;
    }
    let median = |pick: &dyn Fn(&QueryMetrics) -> Option<f64>| stats::median(&warm.iter().filter_map(pick).collect::<Vec<_>>());
    let itl = [0, 1, 2].map(|i| median(&|m| m.itl_ms.map(|q| q[i])));
    let mut absent: Vec<(&'static str, Cow<'static, str>)> = Vec::new();
    for (metric, why) in warm.iter().flat_map(|m| &m.absent) {
        if !absent.iter().any(|(known, _)| known == metric) {
            absent.push((metric, why.clone()));
        }
    }
    QueryMetrics {
        ttft_ms: median(&|m| m.ttft_ms),
        prefill_tok_s: median(&|m| m.prefill_tok_s),
        decode_tok_s: median(&|m| m.decode_tok_s),
        tpot_ms: median(&|m| m.tpot_ms),
        itl_ms: all(itl),
        e2e_ms: median(&|m| m.e2e_ms),
        reported_ttft_ms: median(&|m| m.reported_ttft_ms),
        reported_prefill_tok_s: median(&|m| m.reported_prefill_tok_s),
        reported_decode_tok_s: median(&|m| m.reported_decode_tok_s),
        tokens_per_step: median(&|m| m.tokens_per_step),
        composed: None,
        ttft_method: warm.iter().find_map(|m| m.ttft_method),
        aggregate_n: warm.iter().find_map(|m| m.aggregate_n),
        absent,
    }
}

fn composed(parsed: &Parsed, workload: Workload) -> QueryMetrics {
    let mut m = QueryMetrics { composed: Some(0), ..QueryMetrics::default() };
    match analysis::compose(&parsed.graphs, workload.prompt_tokens()) {
        Ok(c) => {
            m.composed = Some(c.executions);
            (m.ttft_ms, m.prefill_tok_s) = (Some(c.ttft_ms), Some(c.prefill_tok_s));
            (m.decode_tok_s, m.tpot_ms) = (Some(c.decode_tok_s), Some(c.tpot_ms));
        }
        Err(refusal) => m.lacks(&["ttft_ms", "prefill_tok_s", "decode_tok_s", "tpot_ms"], format!("not composed: {refusal}")),
    }
    m.lacks(&ITL, "composed from graph times, there is no token loop");
    m.lacks(&["e2e_ms"], "composed from graph times, there is no token loop");
    m
}

#[cfg(test)]
mod tests {
    use super::*;
    use bench_backend_api::{GraphTime, Token};

    fn query(start_ns: u64, stamps: &[u64]) -> Query {
        let tokens = stamps.iter().map(|t| Token { id: Some(7), t_ns: *t }).collect();
        Query { query: 1, start_ns, prompt_tokens: Some(32), tokens, ..Query::default() }
    }

    #[test]
    fn hand_computed() {
        // Submitted at 1.000 s; tokens at 1.200, 1.250, 1.300, 1.450 s.
        let m = of_query(&query(1_000_000_000, &[1_200_000_000, 1_250_000_000, 1_300_000_000, 1_450_000_000]));
        assert_eq!(m.ttft_ms, Some(200.0));
        assert_eq!(m.prefill_tok_s, Some(160.0)); // 32 / 0.2 s
        assert_eq!(m.decode_tok_s, Some(12.0)); // 3 steps / 0.25 s
        assert!((m.tpot_ms.unwrap() - 250.0 / 3.0).abs() < 1e-9);
        assert_eq!(m.e2e_ms, Some(450.0));
        // Gaps 50, 50, 150 ms: type 7 quantiles: median 50, p90 = 50 + 0.8*100, p99 = 50 + 0.98*100.
        let [p50, p90, p99] = m.itl_ms.unwrap();
        assert!((p50 - 50.0).abs() < 1e-9 && (p90 - 130.0).abs() < 1e-9 && (p99 - 148.0).abs() < 1e-9, "{p50} {p90} {p99}");
        assert!(m.absent.is_empty());
    }

    #[test]
    fn what_was_not_measured_is_absent() {
        let none = of_query(&query(1, &[]));
        assert_eq!((none.ttft_ms, none.absent.len()), (None, 8));
        let one = of_query(&query(0, &[5_000_000]));
        assert_eq!((one.ttft_ms, one.decode_tok_s, one.itl_ms), (Some(5.0), None, None));
        assert!(one.absent.contains(&("decode_tok_s", "one token only".into())));
        let merged = of_query(&query(0, &[5_000_000, 7_000_000, 7_000_000, 10_000_000]));
        assert_eq!((merged.ttft_ms, merged.itl_ms), (Some(5.0), None));
        assert!(merged.absent.contains(&("itl_p99_ms", "several tokens in one event".into())));
        assert_eq!(merged.decode_tok_s, Some(600.0)); // 3 steps in 5 ms
    }

    #[test]
    fn several_tokens_in_the_first_event_hide_the_first_token_and_the_rate() {
        let m = of_query(&query(0, &[5_000_000, 5_000_000, 9_000_000]));
        assert_eq!((m.ttft_ms, m.prefill_tok_s, m.decode_tok_s, m.tpot_ms, m.e2e_ms), (None, None, None, None, Some(9.0)));
        assert_eq!(m.absent.len(), 7);
    }

    #[test]
    fn no_time_at_all_is_no_measurement() {
        let m = of_query(&query(5, &[5, 5]));
        assert_eq!((m.ttft_ms, m.decode_tok_s, m.e2e_ms, m.absent.len()), (None, None, None, 8));
    }

    #[test]
    fn a_runtimes_own_word_must_be_possible() {
        let mut q = query(0, &[5_000_000]);
        q.reported = [("ttft_us".to_owned(), 1e300), ("decode_us".to_owned(), 2e6), ("decode_steps".to_owned(), 15.0)].into();
        let m = of_query(&q);
        assert_eq!((m.reported_ttft_ms, m.reported_prefill_tok_s, m.reported_decode_tok_s), (None, None, Some(7.5)));
    }

    #[test]
    fn what_a_tool_reports_is_marked() {
        let reported = |figures: &[(&str, f64)]| Query {
            query: 1,
            prompt_tokens_reported: Some(64),
            aggregate_n: Some(5),
            reported: figures.iter().map(|(k, v)| ((*k).to_owned(), *v)).collect(),
            ..Query::default()
        };
        // 64 tokens in 32 ms are 2000 a second; 7 steps in 35 ms are 200 a second, 5 ms each.
        let m = of_query(&reported(&[("ttft_us", 32_000.0), ("decode_us", 35_000.0), ("decode_steps", 7.0)]));
        assert_eq!((m.ttft_ms, m.prefill_tok_s, m.decode_tok_s, m.tpot_ms), (Some(32.0), Some(2000.0), Some(200.0), Some(5.0)));
        assert_eq!((m.ttft_method, m.aggregate_n, m.itl_ms, m.e2e_ms), (Some(RUNTIME_REPORTED), Some(5), None, None));
        assert!(m.absent.contains(&("itl_p50_ms", "the tool gives no time for each token".into())));
        let m = of_query(&reported(&[("prefill_us", 32_000.0)]));
        assert_eq!((m.ttft_ms, m.ttft_method, m.decode_tok_s), (Some(32.0), Some(DERIVED), None));
        // A first query alone is no metric of warm ones.
        let first = Query { query: 0, ..reported(&[("ttft_us", 32_000.0)]) };
        let m = launch_figures(&Parsed { queries: vec![first], ..Parsed::default() }, WORKLOAD, 1);
        assert_eq!((m.ttft_ms, m.absent.len()), (None, 8));
    }

    /// Three steps of 2, 1 and 3 tokens, handed out a tenth of a ms apart: 5 tokens behind the first one in 45.3 ms.
    #[test]
    fn tokens_that_were_guessed_ahead_have_no_latency_of_their_own() {
        let stamps = [10_000_000, 10_100_000, 25_000_000, 55_000_000, 55_200_000, 55_300_000];
        let one = |note: &str| {
            let mut q = query(0, &stamps);
            q.reported.insert(TOKENS_PER_STEP.to_owned(), 2.0);
            let notes = [("speculative".to_owned(), note.to_owned())].into();
            launch_figures(&Parsed { queries: vec![q], notes, ..Parsed::default() }, WORKLOAD, 1)
        };
        let m = one("ssd-q1");
        assert_eq!((m.itl_ms, m.tokens_per_step, m.ttft_ms), (None, Some(2.0), Some(10.0)));
        assert!((m.decode_tok_s.unwrap() - 5.0 / 0.0453).abs() < 1e-6, "{m:?}");
        assert!(m.absent.contains(&("itl_p99_ms", SPECULATIVE.into())), "{:?}", m.absent);
        assert!(one("false").itl_ms.is_some());
    }

    const WORKLOAD: Workload = Workload::Generate { prompt_tokens: 80, gen_tokens: 16 };

    #[test]
    fn a_launch_is_the_median_of_its_measured_queries() {
        // TTFT of the discarded query 900 ms, then 10, 30, 20 ms: median 20. Gaps of 5, 5, 5 ms: 200 tokens a second.
        let one = |number: u32, ttft: u64| {
            let first = ttft * 1_000_000;
            Query { query: number, ..query(0, &[first, first + 5_000_000]) }
        };
        let parsed = Parsed { queries: vec![one(0, 900), one(1, 10), one(2, 30), one(3, 20)], ..Parsed::default() };
        let m = launch_figures(&parsed, WORKLOAD, 1);
        assert_eq!((m.ttft_ms, m.decode_tok_s, m.composed), (Some(20.0), Some(200.0), None));
        assert_eq!(m.itl_ms, Some([5.0; 3]));
        assert_eq!(launch_figures(&Parsed::default(), WORKLOAD, 1), QueryMetrics::default());
    }

    #[test]
    fn a_launch_of_graphs_is_composed() {
        let graph = |phase: &str, tokens, latency_ms| GraphTime { phase: phase.into(), tokens, part: 1, parts: 1, n: 20, latency_ms };
        let mut parsed = Parsed { graphs: vec![graph("prefill", 32, 6.4), graph("decode", 1, 1.25)], ..Parsed::default() };
        // ceil(80 / 32) = 3 chunks of 6.4 ms; 1 / 1.25 ms.
        let m = launch_figures(&parsed, WORKLOAD, 1);
        assert!((m.ttft_ms.unwrap() - 19.2).abs() < 1e-9 && (m.decode_tok_s.unwrap() - 800.0).abs() < 1e-9, "{m:?}");
        assert_eq!((m.composed, m.e2e_ms, m.itl_ms), (Some(20), None, None));
        assert_eq!(m.absent.len(), 4);
        parsed.graphs.pop();
        let m = launch_figures(&parsed, WORKLOAD, 1);
        assert_eq!((m.ttft_ms, m.decode_tok_s, m.composed), (None, None, Some(0)));
        assert!(m.absent.contains(&("ttft_ms", "not composed: no time of a decode graph".into())), "{m:?}");
    }
}
