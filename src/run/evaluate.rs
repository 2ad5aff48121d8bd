//! From time stamps to metrics (definitions: design 2b.7 and `facts/metrics.md`). Pure.

use bench_agent::spec::Done;
use bench_backend_api::{Parsed, Query};

use crate::stats;

/// Metrics of one query; `None` has its reason in `absent`.
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
    /// Metric and reason.
    pub absent: Vec<(&'static str, &'static str)>,
}

fn ms(from: u64, to: u64) -> f64 {
    to.saturating_sub(from) as f64 / 1e6
}

/// Metrics of one query.
pub fn query_metrics(q: &Query) -> QueryMetrics {
    let mut m = QueryMetrics::default();
    let (Some(first), Some(last)) = (q.tokens.first(), q.tokens.last()) else {
        for metric in ["ttft_ms", "prefill_tok_s", "decode_tok_s", "tpot_ms", "itl_p50_ms", "itl_p90_ms", "itl_p99_ms", "e2e_ms"] {
            m.absent.push((metric, "no token came"));
        }
        return m;
    };
    let ttft = ms(q.start_ns, first.t_ns);
    m.ttft_ms = Some(ttft);
    m.e2e_ms = Some(ms(q.start_ns, last.t_ns));
    match q.prompt_tokens {
        Some(n) if ttft > 0.0 => m.prefill_tok_s = Some(f64::from(n) * 1e3 / ttft),
        Some(_) => m.absent.push(("prefill_tok_s", "the first token came at once")),
        None => m.absent.push(("prefill_tok_s", "the prompt's length is unknown")),
    }
    let steps = q.tokens.len() - 1;
    let decode = ms(first.t_ns, last.t_ns);
    if steps > 0 && decode > 0.0 {
        m.decode_tok_s = Some(steps as f64 * 1e3 / decode);
        m.tpot_ms = Some(decode / steps as f64);
    } else {
        let why = if steps == 0 { "one token only" } else { "all tokens came at once" };
        m.absent.extend([("decode_tok_s", why), ("tpot_ms", why)]);
    }
    let gaps: Vec<f64> = q.tokens.windows(2).map(|w| ms(w[0].t_ns, w[1].t_ns)).collect();
    // Rule R5: two tokens with one time stamp came in one event, and a gap between events is then no gap between tokens.
    let merged = q.tokens.windows(2).any(|w| w[0].t_ns == w[1].t_ns);
    let quantiles = [0.5, 0.9, 0.99].map(|p| stats::quantile(&gaps, p));
    match quantiles {
        [Some(a), Some(b), Some(c)] if !merged => m.itl_ms = Some([a, b, c]),
        _ => {
            let why = if merged { "several tokens in one event" } else { "one token only" };
            m.absent.extend([("itl_p50_ms", why), ("itl_p90_ms", why), ("itl_p99_ms", why)]);
        }
    }
    let reported = |key: &str| q.reported.get(key).copied().filter(|v| *v > 0.0);
    m.reported_ttft_ms = reported("ttft_us").map(|us| us / 1e3);
    let prefill_us = reported("prefill_us").or(reported("ttft_us"));
    m.reported_prefill_tok_s = prefill_us.zip(q.prompt_tokens_reported.or(q.prompt_tokens)).map(|(us, n)| f64::from(n) * 1e6 / us);
    m.reported_decode_tok_s = reported("decode_us").zip(reported("decode_steps")).map(|(us, n)| n * 1e6 / us);
    m
}

/// Metrics of one launch.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LaunchMetrics {
    /// Milliseconds of loading.
    pub load_ms: Option<f64>,
    /// Highest resident memory of the process tree, in 10^6 bytes.
    pub peak_mem_mb: Option<f64>,
    /// VmHWM of the largest process, in 10^6 bytes.
    pub vm_hwm_mb: Option<f64>,
    /// CPU seconds.
    pub cpu_s: Option<f64>,
}

/// Metrics of one launch, from its events and the agent's evidence of its steps.
pub fn launch_metrics<'a>(parsed: &Parsed, steps: impl Iterator<Item = &'a Done>) -> LaunchMetrics {
    let mut m = LaunchMetrics { load_ms: parsed.load_ns.map(|(a, b)| ms(a, b)), ..LaunchMetrics::default() };
    let mb = |kb: u64| kb as f64 * 1024.0 / 1e6;
    let larger = |old: Option<f64>, new: Option<f64>| new.map(|n| old.map_or(n, |o| o.max(n))).or(old);
    for done in steps {
        m.peak_mem_mb = larger(m.peak_mem_mb, done.peak_rss_kb.map(mb));
        m.vm_hwm_mb = larger(m.vm_hwm_mb, done.vm_hwm_kb.map(mb));
        m.cpu_s = Some(m.cpu_s.unwrap_or(0.0) + done.rusage.user_s + done.rusage.sys_s);
    }
    m
}

/// Median over the measured queries (all but the first) of a launch.
pub fn warm_median(parsed: &Parsed, warmup: u32, metric: impl Fn(&QueryMetrics) -> Option<f64>) -> Option<f64> {
    let values: Vec<f64> = parsed.queries.iter().filter(|q| q.query >= warmup).filter_map(|q| metric(&query_metrics(q))).collect();
    stats::median(&values)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bench_backend_api::Token;

    fn query(start_ns: u64, stamps: &[u64]) -> Query {
        let tokens = stamps.iter().map(|t| Token { id: Some(7), t_ns: *t }).collect();
        Query { query: 1, start_ns, prompt_tokens: Some(32), tokens, ..Query::default() }
    }

    #[test]
    fn hand_computed() {
        // Submitted at 1.000 s; tokens at 1.200, 1.250, 1.300, 1.450 s.
        let m = query_metrics(&query(1_000_000_000, &[1_200_000_000, 1_250_000_000, 1_300_000_000, 1_450_000_000]));
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
        let none = query_metrics(&query(1, &[]));
        assert_eq!((none.ttft_ms, none.absent.len()), (None, 8));
        let one = query_metrics(&query(0, &[5_000_000]));
        assert_eq!((one.ttft_ms, one.decode_tok_s, one.itl_ms), (Some(5.0), None, None));
        assert!(one.absent.contains(&("decode_tok_s", "one token only")));
        let merged = query_metrics(&query(0, &[5_000_000, 5_000_000, 9_000_000]));
        assert_eq!(merged.itl_ms, None);
        assert!(merged.absent.contains(&("itl_p99_ms", "several tokens in one event")));
        assert_eq!(merged.decode_tok_s, Some(500.0)); // 2 steps in 4 ms
    }
}
