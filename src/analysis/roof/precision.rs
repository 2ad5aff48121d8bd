//! Bits of weights, LM head, embedding and KV cache: what is told, and else the least that the class of a quantisation can be.

use bench_backend_api::Quant;
use serde::Serialize;

/// What is known beside the class, in bits; `None` where it is not.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Told {
    /// Of a weight of the blocks, without scales.
    pub weight: Option<f64>,
    /// Weights that share a scale of 16 bits. Not for the classes of ggml, whose scales are part of the format.
    pub group: Option<u32>,
    /// Of a weight of the LM head.
    pub head: Option<f64>,
    /// Of a value of the embedding table.
    pub embedding: Option<f64>,
    /// Of an element of the KV cache.
    pub kv: Option<f64>,
}

/// Bits of each part, and which of them are assumed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Precision {
    /// Of a weight of the blocks, its share of the scales included.
    pub weight: f64,
    /// Of a weight of the LM head.
    pub head: f64,
    /// Of a value of the embedding table.
    pub embedding: f64,
    /// Of an element of the KV cache.
    pub kv: f64,
    /// What is not told and hence the least of its class, in words.
    pub assumed: Vec<String>,
}

/// Least bits of a weight of a class, as its name says; of ggml's classes with the scales of its blocks: `Q4_0` has 18 bytes for 32 weights,
/// `Q8_0` 34, `Q4_K` 144 for 256 (ggml-common.h, `block_q4_0`, `block_q8_0`, `block_q4_K`), and `q4_k_m` has some tensors of more.
const fn weight_bits(quant: Quant) -> f64 {
    match quant {
        Quant::Fp32 => 32.0,
        Quant::Fp16 | Quant::Bf16 => 16.0,
        Quant::W8 | Quant::W8a16 | Quant::W8a8 => 8.0,
        Quant::W4 | Quant::W4a16 | Quant::W4a8 => 4.0,
        Quant::Q8_0 => 8.5,
        Quant::Q4_0 | Quant::Q4KM => 4.5,
    }
}

/// Least bits of an element of the KV cache: 8 where activations are integers (QNN's graphs take the cache as 8 or 16 bits), else half floats,
/// unless something else was asked for.
const fn kv_bits(quant: Quant) -> f64 {
    match quant {
        Quant::W8a16 | Quant::W4a16 | Quant::W8a8 | Quant::W4a8 => 8.0,
        _ => 16.0,
    }
}

/// Whether the format itself says how scales are kept.
const fn of_ggml(quant: Quant) -> bool {
    matches!(quant, Quant::Q8_0 | Quant::Q4_0 | Quant::Q4KM)
}

impl Precision {
    /// That of a class with what is known beside it. What is told and is no width (0, negative, not finite) counts as not told.
    pub fn of(quant: Quant, told: Told) -> Self {
        let mut assumed = Vec::new();
        let mut or = |what: &str, told: Option<f64>, least: f64| {
            told.filter(|bits| bits.is_finite() && *bits > 0.0).unwrap_or_else(|| {
                assumed.push(format!("{what} {least} bits"));
                least
            })
        };
        let least = weight_bits(quant);
        let weight = or("weights", told.weight, least);
        let head = or("LM head", told.head, least);
        let embedding = or("embedding", told.embedding, least);
        let kv = or("KV cache", told.kv, kv_bits(quant));
        let group = told.group.filter(|group| *group > 0 && !of_ggml(quant));
        let scale = group.map_or(0.0, |group| 16.0 / f64::from(group));
        if group.is_none() && !quant.is_float() && !of_ggml(quant) {
            assumed.push("scales not counted".to_owned());
        }
        Self { weight: weight + scale, head, embedding, kv, assumed }
    }
}
