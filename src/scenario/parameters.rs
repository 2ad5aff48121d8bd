//! How many weights a model has, by part. Pure arithmetic over its geometry.

use bench_backend_api::Geometry;
use thiserror::Error;

/// Weights of a Llama-like decoder: grouped-query attention without biases, a gated feed-forward (three matrices), RMSNorm.
///
/// Sums agree with the published counts of Llama 2, 3.1, 3.2 and Phi-3.5 to the last weight; models with biases (Qwen2) have some
/// hundredths of a percent more. Counts are `f64`, so that no geometry overflows; above 2^53 they are rounded.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Parameters {
    /// Query, key, value and output projections of all layers.
    pub attention: f64,
    /// Feed-forward of all layers, all experts.
    pub feed_forward: f64,
    /// Two norms a layer, and the last one.
    pub norms: f64,
    /// LM head; where [`Self::tied`], the embedding table itself.
    pub head: f64,
    /// Embedding table, of which a token reads one row.
    pub embedding: f64,
    /// The LM head is the embedding table: one set of weights.
    pub tied: bool,
}

/// What of a geometry is not known, or is 0.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the geometry does not tell {}", .0.join(", "))]
pub struct Unknown(pub Vec<&'static str>);

impl Unknown {
    /// The values, or the names of those that are absent or 0.
    pub fn of<const N: usize>(keys: [(&'static str, Option<u32>); N]) -> Result<[f64; N], Self> {
        let missing: Vec<&str> = keys.iter().filter(|(_, value)| value.is_none_or(|v| v == 0)).map(|(key, _)| *key).collect();
        if missing.is_empty() { Ok(keys.map(|(_, value)| f64::from(value.unwrap_or_default()))) } else { Err(Self(missing)) }
    }
}

impl Parameters {
    /// Those of a geometry.
    ///
    /// # Errors
    /// The names of what the geometry lacks.
    pub fn of(g: &Geometry) -> Result<Self, Unknown> {
        let [layers, hidden, heads, kv, dim, ffn, vocab] = Unknown::of([
            ("layers", g.layers),
            ("hidden", g.hidden),
            ("heads", g.heads),
            ("kv-heads", g.kv_heads),
            ("head-dim", g.head_dim),
            ("ffn", g.ffn),
            ("vocab", g.vocab),
        ])?;
        Ok(Self {
            attention: layers * hidden * dim * (2.0 * heads + 2.0 * kv),
            feed_forward: layers * 3.0 * hidden * ffn * f64::from(g.experts.max(1)),
            norms: (2.0 * layers + 1.0) * hidden,
            head: hidden * vocab,
            embedding: hidden * vocab,
            tied: g.tied_embeddings,
        })
    }

    /// All weights.
    pub fn total(&self) -> f64 {
        self.blocks() + self.embedding + if self.tied { 0.0 } else { self.head }
    }

    /// The weights of the transformer blocks and the last norm.
    pub fn blocks(&self) -> f64 {
        self.attention + self.feed_forward + self.norms
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn geometry([layers, hidden, heads, kv, dim, ffn, vocab]: [u32; 7], tied: bool) -> Geometry {
        Geometry {
            layers: Some(layers),
            hidden: Some(hidden),
            heads: Some(heads),
            kv_heads: Some(kv),
            head_dim: Some(dim),
            ffn: Some(ffn),
            vocab: Some(vocab),
            tied_embeddings: tied,
            ..Geometry::default()
        }
    }

    /// Shapes from the models' config.json, counts from the metadata of their safetensors on Hugging Face.
    #[test]
    fn counts_are_those_that_are_published() {
        for (shape, tied, published) in [
            ([32, 4096, 32, 8, 128, 14336, 128_256], false, 8_030_261_248_u64),
            ([28, 3072, 24, 8, 128, 8192, 128_256], true, 3_212_749_824),
            ([16, 2048, 32, 8, 64, 8192, 128_256], true, 1_235_814_400),
            ([32, 3072, 32, 32, 96, 8192, 32_064], false, 3_821_079_552),
            ([32, 4096, 32, 32, 128, 11008, 32_000], false, 6_738_415_616),
        ] {
            assert_eq!(Parameters::of(&geometry(shape, tied)).unwrap().total() as u64, published, "{shape:?}");
        }
    }

    #[test]
    fn what_is_absent_or_zero_is_named() {
        let mut g = geometry([32, 4096, 32, 8, 128, 14336, 128_256], false);
        (g.kv_heads, g.ffn) = (None, Some(0));
        assert_eq!(Parameters::of(&g).unwrap_err().to_string(), "the geometry does not tell kv-heads, ffn");
        assert_eq!(Parameters::of(&Geometry::default()).unwrap_err().0.len(), 7);
    }

    #[test]
    fn no_geometry_overflows() {
        let g = Geometry { experts: u32::MAX, ..geometry([u32::MAX; 7], false) };
        let parameters = Parameters::of(&g).unwrap();
        // 4 x 2^128 in attention, 3 x 2^128 in the feed-forward; the rest is small beside them.
        assert!((parameters.total() / 2_f64.powi(128) - 7.0).abs() < 1e-6);
    }
}
