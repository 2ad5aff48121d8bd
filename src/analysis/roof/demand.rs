//! What a decoder moves, computes and holds.

use bench_backend_api::Geometry;

use super::precision::Precision;
use crate::scenario::{Parameters, Unknown};

/// What peaks of memory have beside weights and KV cache, in 10^6 bytes: graphs, activations and the runtime of public measurements.
pub const REST_MB: (f64, f64) = (200.0, 400.0);

/// Bytes that one token adds to the KV cache: keys and values of every layer, 2 x layers x kv-heads x head-dim x bytes of an element
/// (Pope et al. 2022, arXiv 2211.05102, section 3.3; Kwon et al. 2023, arXiv 2309.06180, section 3: 800 KB for OPT-13B).
///
/// # Errors
/// The names of what the geometry lacks.
pub fn kv_bytes_per_token(g: &Geometry, bits: f64) -> Result<f64, Unknown> {
    let [layers, kv, dim] = Unknown::of([("layers", g.layers), ("kv-heads", g.kv_heads), ("head-dim", g.head_dim)])?;
    Ok(2.0 * layers * kv * dim * bits / 8.0)
}

/// A decoder at a precision. Bytes of weights are those of the numbers alone: padding and graph code are not in them.
#[derive(Debug, Clone, PartialEq)]
pub struct Demand {
    parameters: Parameters,
    precision: Precision,
    kv_per_token: f64,
    /// Bytes of one row of the embedding table.
    row: f64,
    /// Layers x width of all heads, which attention's operations grow with.
    attended: f64,
    experts: u32,
}

impl Demand {
    /// That of a geometry.
    ///
    /// # Errors
    /// The names of what the geometry lacks.
    pub fn of(g: &Geometry, precision: &Precision) -> Result<Self, Unknown> {
        let parameters = Parameters::of(g)?;
        let [layers, hidden, heads, dim] =
            Unknown::of([("layers", g.layers), ("hidden", g.hidden), ("heads", g.heads), ("head-dim", g.head_dim)])?;
        Ok(Self {
            parameters,
            precision: precision.clone(),
            kv_per_token: kv_bytes_per_token(g, precision.kv)?,
            row: hidden * precision.embedding / 8.0,
            attended: layers * heads * dim,
            experts: g.experts,
        })
    }

    /// Its weights by part.
    pub const fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// Why figures of one token can't be told, if they can't.
    pub fn mixture(&self) -> Option<String> {
        (self.experts > 1).then(|| format!("a mixture of {} experts: how many of them a token reads is not known", self.experts))
    }

    /// Weights that each token reads, in bytes: all blocks and the LM head, of the embedding table one row. Of a mixture it is all experts.
    pub fn weights_read(&self) -> f64 {
        (self.parameters.blocks() * self.precision.weight + self.parameters.head * self.precision.head) / 8.0 + self.row
    }

    /// All weights, in bytes. A tied table counts once, at the narrower of its two precisions: the least.
    pub fn weights(&self) -> f64 {
        let p = &self.parameters;
        let ends = if p.tied {
            p.head * self.precision.head.min(self.precision.embedding)
        } else {
            p.head * self.precision.head + p.embedding * self.precision.embedding
        };
        (p.blocks() * self.precision.weight + ends) / 8.0
    }

    /// Bytes of one token in the KV cache.
    pub const fn kv_per_token(&self) -> f64 {
        self.kv_per_token
    }

    /// Bytes that a decode step moves: the weights once, the KV cache of the tokens before it, and its own keys and values. With batch 1
    /// nothing is shared between tokens (Williams et al. 2009, the roofline; Pope et al. 2022, section 2). Activations stay on the chip.
    pub fn decode_bytes(&self, depth: f64) -> f64 {
        self.weights_read() + self.kv_per_token * (depth + 1.0)
    }

    /// Operations of a prompt token in a prompt of `prompt` tokens, a multiplication with an addition being two: 2 for each weight of the
    /// matrices, and for attention 4 x layers x heads x head-dim for each token that it sees, which are (prompt + 1) / 2 on average
    /// (Kaplan et al. 2020, arXiv 2001.08361, table 1, has 2N + 2 x layers x context x width).
    pub fn prompt_operations(&self, prompt: f64) -> f64 {
        let matrices = self.parameters.attention + self.parameters.feed_forward;
        2.0 * matrices + 4.0 * self.attended * f64::midpoint(prompt, 1.0)
    }

    /// Operations of a whole prompt: those of its tokens, and the LM head once, for the first token that is generated.
    pub fn prefill_operations(&self, prompt: f64) -> f64 {
        prompt * self.prompt_operations(prompt) + 2.0 * self.parameters.head
    }

    /// Tokens of context that fit beside the weights and the least rest in so many bytes of memory, if nothing else were there.
    pub fn context_in(&self, memory: f64) -> f64 {
        ((memory - self.weights() - REST_MB.0 * 1e6) / self.kv_per_token).floor().max(0.0)
    }
}
