//! What a model needs of a device's memory, before anything is measured.
//!
//! need = weights + KV cache + activations
//!
//! - weights: the artifact's files, which are mapped or copied whole; without files the parameters times the bits of the class.
//! - KV cache: that of a token (`analysis/roof`) for each token of the context. Its precision is the artifact's secret unless the
//!   axis `kv` tells; 16 bits are assumed, which is the most.
//! - activations, graphs and the runtime: 0.4 GB, the upper end of what public peaks leave beside the other two (0.2 to 0.4 GB).

use bench_backend_api::Geometry;

use crate::analysis::roof::kv_bytes_per_token;

/// Activations, graphs and the runtime, in bytes.
pub const REST: u64 = 400_000_000;

/// Bytes of the KV cache for a context of so many tokens, with elements of so many bits; `None` for an unknown shape.
pub fn kv_bytes(g: &Geometry, context: u32, bits: u32) -> Option<u64> {
    let bytes = kv_bytes_per_token(g, f64::from(bits)).ok()? * f64::from(context);
    // More than any device has.
    (bytes < u64::MAX as f64).then_some(bytes as u64)
}

/// Bytes that a model needs beside what already runs; without a known shape the KV cache is left out, and the figure is a lower bound.
pub fn need_bytes(weights: u64, g: Option<&Geometry>, context: u32, kv_bits: u32) -> u64 {
    let kv = g.and_then(|g| kv_bytes(g, context, kv_bits)).unwrap_or(0);
    weights.saturating_add(kv).saturating_add(REST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cache_of_a_known_model() {
        // Llama-3.2-3B: 28 layers, 8 key-value heads of 128: 2 x 28 x 8 x 128 x 4096 x 2 bytes = 469,762,048.
        let g = Geometry { layers: Some(28), kv_heads: Some(8), head_dim: Some(128), ..Geometry::default() };
        assert_eq!(kv_bytes(&g, 4096, 16), Some(469_762_048));
        assert_eq!(kv_bytes(&g, 4096, 8), Some(234_881_024));
        assert_eq!(kv_bytes(&Geometry::default(), 4096, 16), None);
        assert_eq!(need_bytes(2_000_000_000, Some(&g), 4096, 16), 2_869_762_048);
        assert_eq!(need_bytes(1, None, 4096, 16), 400_000_001);
        let huge = Geometry { layers: Some(u32::MAX), kv_heads: Some(u32::MAX), head_dim: Some(u32::MAX), ..Geometry::default() };
        assert_eq!(kv_bytes(&huge, u32::MAX, 16), None);
    }
}
