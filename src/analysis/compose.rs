//! Prefill and decode of a model, composed from the times of its graphs under a tool that has no token loop (rule R11).
//!
//! The result is an upper bound of speed: sampling, the update of the KV cache and the switch between graphs are not in it. It is
//! marked `composed` wherever it stands and is never ranked beside measured figures (design 2b.9).

use bench_backend_api::GraphTime;
use thiserror::Error;

/// What a model would do if nothing but its graphs took time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Composed {
    /// Milliseconds of all prefill executions that the prompt needs: the last one's logits give the first token.
    pub ttft_ms: f64,
    /// Prompt tokens, those that pad the last chunk not counted, per second of prefill.
    pub prefill_tok_s: f64,
    /// One over the time of one decode step.
    pub decode_tok_s: f64,
    /// Milliseconds of one decode step.
    pub tpot_ms: f64,
    /// Executions behind the averages; the smallest number where graphs differ.
    pub executions: u32,
}

/// Why nothing is composed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Refusal {
    /// A phase has no graph at all.
    #[error("no time of a {phase} graph")]
    NoPhase {
        /// `prefill` or `decode`.
        phase: &'static str,
    },
    /// A phase is split into several binaries, and the time of one is unknown: the sum of the others would be no bound.
    #[error("no time of part {part} of {parts} of {phase}")]
    NoPart {
        /// `prefill` or `decode`.
        phase: &'static str,
        /// The part, from 1.
        part: u32,
        /// Parts of the phase.
        parts: u32,
    },
    /// The graphs do not belong together.
    #[error("the {phase} graphs do not fit together: {why}")]
    Mixed {
        /// `prefill` or `decode`.
        phase: &'static str,
        /// What differs.
        why: &'static str,
    },
    /// A time that can't be one.
    #[error("the time of a {phase} graph is not a positive number")]
    NoTime {
        /// `prefill` or `decode`.
        phase: &'static str,
    },
}

/// One phase: the tokens of an execution, and the time of one pass through all of its parts.
struct Phase {
    tokens: u32,
    ms: f64,
    executions: u32,
}

fn phase(graphs: &[GraphTime], phase: &'static str) -> Result<Phase, Refusal> {
    let parts: Vec<&GraphTime> = graphs.iter().filter(|g| g.phase == phase).collect();
    let first = parts.first().ok_or(Refusal::NoPhase { phase })?;
    let mixed = |why| Err(Refusal::Mixed { phase, why });
    if parts.iter().any(|g| g.parts != first.parts) {
        return mixed("they do not agree on how many there are");
    }
    if parts.iter().any(|g| g.tokens != first.tokens) {
        return mixed("they take different numbers of tokens");
    }
    if first.tokens == 0 {
        return mixed("the tokens of an execution are unknown");
    }
    if let Some(part) = (1..=first.parts).find(|n| !parts.iter().any(|g| g.part == *n)) {
        return Err(Refusal::NoPart { phase, part, parts: first.parts });
    }
    if parts.len() != first.parts as usize {
        return mixed("a part is there twice");
    }
    if parts.iter().any(|g| !g.latency_ms.is_finite() || g.latency_ms <= 0.0) {
        return Err(Refusal::NoTime { phase });
    }
    let executions = parts.iter().map(|g| g.n).min().unwrap_or_default();
    Ok(Phase { tokens: first.tokens, ms: parts.iter().map(|g| g.latency_ms).sum(), executions })
}

/// Composes: prefill = ceil(prompt / AR) x the sum over its parts, decode = 1 / the sum over its parts.
///
/// # Errors
/// A phase or a part without a time: what is left would not be a bound of anything.
pub fn compose(graphs: &[GraphTime], prompt_tokens: u32) -> Result<Composed, Refusal> {
    let prefill = phase(graphs, "prefill")?;
    let decode = phase(graphs, "decode")?;
    if decode.tokens != 1 {
        return Err(Refusal::Mixed { phase: "decode", why: "an execution takes more than one token" });
    }
    let ttft_ms = f64::from(prompt_tokens.div_ceil(prefill.tokens)) * prefill.ms;
    Ok(Composed {
        ttft_ms,
        prefill_tok_s: f64::from(prompt_tokens) * 1e3 / ttft_ms,
        decode_tok_s: 1e3 / decode.ms,
        tpot_ms: decode.ms,
        executions: prefill.executions.min(decode.executions),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(phase: &str, tokens: u32, part: u32, parts: u32, latency_ms: f64) -> GraphTime {
        GraphTime { phase: phase.to_owned(), tokens, part, parts, n: 20, latency_ms }
    }

    #[test]
    fn hand_computed() {
        let graphs = [graph("prefill", 32, 1, 1, 6.4), graph("decode", 1, 1, 1, 1.25)];
        // 80 tokens need ceil(80 / 32) = 3 executions: 3 x 6.4 = 19.2 ms; 80 / 0.0192 s = 4166.67; 1 / 1.25 ms = 800.
        let c = compose(&graphs, 80).unwrap();
        assert!((c.ttft_ms - 19.2).abs() < 1e-9 && (c.prefill_tok_s - 4_166.666_666_7).abs() < 1e-6, "{c:?}");
        assert!((c.decode_tok_s - 800.0).abs() < 1e-9 && (c.tpot_ms - 1.25).abs() < 1e-12 && c.executions == 20, "{c:?}");
        // A prompt of whole chunks pads nothing: 2 x 6.4 ms for 64 tokens.
        assert!((compose(&graphs, 64).unwrap().prefill_tok_s - 5000.0).abs() < 1e-9);
        assert!((compose(&graphs, 1).unwrap().ttft_ms - 6.4).abs() < 1e-12);
    }

    #[test]
    fn every_part_counts() {
        let mut graphs = vec![
            graph("prefill", 128, 1, 3, 2.0),
            graph("prefill", 128, 2, 3, 30.0),
            graph("prefill", 128, 3, 3, 28.0),
            graph("decode", 1, 2, 3, 20.0),
            graph("decode", 1, 1, 3, 1.0),
            graph("decode", 1, 3, 3, 19.0),
        ];
        graphs[1].n = 5;
        // 300 tokens: 3 chunks x (2 + 30 + 28) = 180 ms; a decode step 1 + 20 + 19 = 40 ms, 25 a second.
        let c = compose(&graphs, 300).unwrap();
        assert!((c.ttft_ms - 180.0).abs() < 1e-9 && (c.decode_tok_s - 25.0).abs() < 1e-9, "{c:?}");
        assert_eq!(c.executions, 5);
    }

    #[test]
    fn what_is_not_whole_is_refused() {
        let (prefill, decode) = (graph("prefill", 32, 1, 1, 6.4), graph("decode", 1, 1, 1, 1.25));
        let refused = |graphs: &[&GraphTime]| compose(&graphs.iter().map(|g| (*g).clone()).collect::<Vec<_>>(), 32).unwrap_err();
        assert_eq!(refused(&[]), Refusal::NoPhase { phase: "prefill" });
        assert_eq!(refused(&[&prefill]), Refusal::NoPhase { phase: "decode" });
        let half = graph("decode", 1, 1, 2, 1.0);
        assert_eq!(refused(&[&prefill, &half]), Refusal::NoPart { phase: "decode", part: 2, parts: 2 });
        assert_eq!(refused(&[&prefill, &half]).to_string(), "no time of part 2 of 2 of decode");
        assert!(matches!(refused(&[&prefill, &decode, &decode]), Refusal::Mixed { phase: "decode", .. }));
        assert!(matches!(refused(&[&prefill, &half, &graph("decode", 1, 2, 3, 1.0)]), Refusal::Mixed { .. }));
        assert!(matches!(refused(&[&graph("prefill", 0, 1, 1, 1.0), &decode]), Refusal::Mixed { phase: "prefill", .. }));
        assert!(matches!(refused(&[&prefill, &graph("decode", 4, 1, 1, 1.0)]), Refusal::Mixed { phase: "decode", .. }));
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(refused(&[&prefill, &graph("decode", 1, 1, 1, bad)]), Refusal::NoTime { phase: "decode" });
        }
    }
}
