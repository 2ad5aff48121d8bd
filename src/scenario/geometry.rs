//! A model's geometry file: the shape of a decoder. Its problems are reported in that file.

use std::{path::Path, sync::LazyLock};

use bench_backend_api::Geometry;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::{
    load::{read_text, read_toml},
    problem::{Collector, Problem, Problems},
    schema::schema_of,
    source::SourceText,
    value::At,
};

/// Shape of a decoder. Of a real model, what is known; a model that is made on the spot (one with a `seed`) needs every key without a default.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct File {
    /// Name of the geometry.
    #[schemars(required)]
    name: Option<At<String>>,
    /// Number of transformer blocks.
    #[schemars(range(min = 1))]
    layers: Option<At<u32>>,
    /// Width of the residual stream.
    #[schemars(range(min = 1))]
    hidden: Option<At<u32>>,
    /// Query heads.
    #[schemars(range(min = 1))]
    heads: Option<At<u32>>,
    /// Key-value heads; a divisor of `heads`.
    #[schemars(range(min = 1))]
    kv_heads: Option<At<u32>>,
    /// Width of a head; even, because the rotary embedding turns pairs.
    #[schemars(range(min = 2))]
    head_dim: Option<At<u32>>,
    /// Width of the feed-forward layer.
    #[schemars(range(min = 1))]
    ffn: Option<At<u32>>,
    /// Vocabulary size, in tokens.
    #[schemars(range(min = 1))]
    vocab: Option<At<u32>>,
    /// Base of the rotary embedding.
    #[schemars(range(min = 1.0))]
    rope_theta: Option<At<f64>>,
    /// Epsilon of RMSNorm.
    #[schemars(range(min = 0.0, max = 1.0))]
    norm_eps: Option<At<f64>>,
    /// Whether the LM head is the embedding table (default false).
    tied_embeddings: Option<At<bool>>,
    /// Experts of a mixture, 0 for a dense model (default 0).
    experts: Option<At<u32>>,
    /// Precision of the LM head, in bits (default 32).
    #[schemars(range(min = 1, max = 64))]
    lm_head_bits: Option<At<u32>>,
    /// Precision of the embedding table, in bits (default 32).
    #[schemars(range(min = 1, max = 64))]
    embedding_bits: Option<At<u32>>,
    /// Seed of the synthetic weights, if the model is made on the spot.
    #[schemars(range(min = 0, max = i64::MAX))]
    seed: Option<At<u64>>,
    /// Token that begins every text; absent for a model without one.
    bos: Option<At<u32>>,
    /// Token that ends a text.
    eos: Option<At<u32>>,
    /// Token that fills a chunk.
    pad: Option<At<u32>>,
}

static SCHEMA: LazyLock<Value> = LazyLock::new(schema_of::<File>);

/// Reads a geometry file. `None` when it has problems, which are then in `out`.
pub fn read(path: &Path, out: &mut Collector) -> Result<Option<Geometry>, Box<Problem>> {
    let text = read_text(path)?;
    let mut own = Collector::new(SourceText::new(&path.display().to_string(), &text));
    let geometry = read_toml::<File>(&text, &SCHEMA, &mut own).and_then(|(file, damaged)| {
        // What was taken out is not missing as well.
        if damaged.is_empty() {
            whole(&file, &mut own);
        }
        checked(file, &mut own)
    });
    let failed = own.failed();
    out.adopt(own);
    Ok(geometry.filter(|_| !failed))
}

/// Reads a geometry file that stands alone.
///
/// # Errors
/// Every problem of the file.
pub fn read_alone(path: &Path) -> Result<Geometry, Problems> {
    let file = path.display().to_string();
    let mut out = Collector::new(SourceText::new(&file, ""));
    let problems = match read(path, &mut out) {
        Ok(Some(geometry)) => return Ok(geometry),
        Ok(None) => out.finish().0.problems,
        Err(problem) => vec![*problem],
    };
    Err(Problems { file, problems, omitted: 0 })
}

/// A model can only be made if its whole shape is told.
fn whole(file: &File, out: &mut Collector) {
    let Some(seed) = &file.seed else { return };
    let told = [
        ("layers", file.layers.is_some()),
        ("hidden", file.hidden.is_some()),
        ("heads", file.heads.is_some()),
        ("kv-heads", file.kv_heads.is_some()),
        ("head-dim", file.head_dim.is_some()),
        ("ffn", file.ffn.is_some()),
        ("vocab", file.vocab.is_some()),
        ("rope-theta", file.rope_theta.is_some()),
        ("norm-eps", file.norm_eps.is_some()),
        ("bos", file.bos.is_some()),
        ("eos", file.eos.is_some()),
        ("pad", file.pad.is_some()),
    ];
    let missing: Vec<String> = told.iter().filter(|(_, told)| !told).map(|(key, _)| format!("`{key}`")).collect();
    if !missing.is_empty() {
        let help = "`seed` makes the model on the spot; for a model of your own leave `seed` out".to_owned();
        out.error(seed.span(), format!("a model with a `seed` needs {}", missing.join(", ")), help);
    }
}

fn checked(file: File, out: &mut Collector) -> Option<Geometry> {
    if let (Some(heads), Some(kv)) = (&file.heads, &file.kv_heads)
        && heads.value % kv.value != 0
    {
        let help = "every key-value head serves the same number of query heads".to_owned();
        out.error(kv.span(), format!("{} query heads can't share {} key-value heads evenly", heads.value, kv.value), help);
    }
    if let Some(dim) = file.head_dim.as_ref().filter(|d| d.value % 2 != 0) {
        out.error(
            dim.span(),
            format!("`head-dim` must be even, not {}", dim.value),
            "the rotary embedding turns pairs of values".to_owned(),
        );
    }
    for (name, token) in [("bos", &file.bos), ("eos", &file.eos), ("pad", &file.pad)] {
        if let (Some(token), Some(vocab)) = (token, &file.vocab)
            && token.value >= vocab.value
        {
            let help = format!("token ids go from 0 to {}", vocab.value - 1);
            out.error(token.span(), format!("`{name}` is token {} of a vocabulary of {}", token.value, vocab.value), help);
        }
    }
    Some(Geometry {
        name: file.name?.value,
        layers: file.layers.map(|v| v.value),
        hidden: file.hidden.map(|v| v.value),
        heads: file.heads.map(|v| v.value),
        kv_heads: file.kv_heads.map(|v| v.value),
        head_dim: file.head_dim.map(|v| v.value),
        ffn: file.ffn.map(|v| v.value),
        vocab: file.vocab.map(|v| v.value),
        rope_theta: file.rope_theta.map(|v| v.value),
        norm_eps: file.norm_eps.map(|v| v.value),
        tied_embeddings: file.tied_embeddings.is_some_and(|t| t.value),
        experts: file.experts.map_or(0, |e| e.value),
        lm_head_bits: file.lm_head_bits.map_or(32, |b| b.value),
        embedding_bits: file.embedding_bits.map_or(32, |b| b.value),
        seed: file.seed.map(|s| s.value),
        bos: file.bos.map(|v| v.value),
        eos: file.eos.map(|v| v.value),
        pad: file.pad.map(|v| v.value),
    })
}
