//! A llama.cpp model: what the metadata of a `.gguf` tells (names of the keys: the GGUF specification of the ggml project).

mod header;
mod types;

use std::{collections::BTreeMap, path::Path};

use bench_backend_api::{Geometry, Quant};

use super::{
    error::ImportError,
    found::Found,
    model::{name_of, quant_in},
    quantisation::Quantisation,
};
use header::{Header, Tensor, Value};
use types::{Kind, file_type};

/// Classes of `general.file_type`, by number (llama.cpp's `llama_ftype`).
const FILE_TYPES: [(u32, Quant); 6] =
    [(0, Quant::Fp32), (1, Quant::Fp16), (2, Quant::Q4_0), (7, Quant::Q8_0), (15, Quant::Q4KM), (32, Quant::Bf16)];

/// The embedding table, and the matrix of the LM head: a model without one of its own reads the table.
const EMBEDDING: &str = "token_embd.weight";
const LM_HEAD: &str = "output.weight";

/// Reads the header of a model file.
pub fn read(path: &Path) -> Result<Found, ImportError> {
    let header = Header::read(path)?;
    let root = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let file = path.file_name().and_then(|n| n.to_str()).ok_or_else(|| ImportError::bad(path, "a name that is not UTF-8"))?;
    let mut found = Found { kind: "a llama.cpp model (GGUF)", backend: "llama-cpp", root: root.to_owned(), ..Found::default() };
    found.files.push(file.to_owned());
    found.fact("version of the format", &header.version, file);
    let Some(architecture) = header.text("general.architecture").map(str::to_owned) else {
        return Err(ImportError::bad(path, "its metadata has no `general.architecture`"));
    };
    found.fact("architecture", &architecture, file);

    let of = |key: &str| header.count(&format!("{architecture}.{key}")).filter(|n| *n > 0);
    let (hidden, heads) = (of("embedding_length"), of("attention.head_count"));
    let whole = |hidden: u32, heads: u32| hidden.is_multiple_of(heads).then(|| hidden / heads);
    let head_dim = of("attention.key_length").or_else(|| whole(hidden?, heads?));
    let tokens = header.get("tokenizer.ggml.tokens").and_then(Value::length).and_then(|n| u32::try_from(n).ok());
    found.context = found.take("context, tokens", of("context_length"), file);
    let float = |key: &str| header.get(&format!("{architecture}.{key}")).and_then(Value::float);
    found.shape = Geometry {
        layers: found.take("layers", of("block_count"), file),
        hidden: found.take("hidden width", hidden, file),
        heads: found.take("heads", heads, file),
        // A model without a number of its own has as many as heads.
        kv_heads: found.take("key-value heads", of("attention.head_count_kv").or(heads), file),
        head_dim: found.take("width of a head", head_dim.filter(|d| d.is_multiple_of(2)), file),
        ffn: found.take("feed-forward width", of("feed_forward_length"), file),
        vocab: found.take("vocabulary, tokens", tokens.or_else(|| of("vocab_size")), file),
        rope_theta: found.take("rope theta", float("rope.freq_base").filter(|t| *t >= 1.0), file),
        norm_eps: found.take("epsilon of the norm", float("attention.layer_norm_rms_epsilon").filter(|e| (0.0..=1.0).contains(e)), file),
        experts: found.take("experts", of("expert_count"), file).unwrap_or(0),
        bos: found.take("BOS", header.count("tokenizer.ggml.bos_token_id"), file),
        eos: found.take("EOS", header.count("tokenizer.ggml.eos_token_id"), file),
        pad: found.take("PAD", header.count("tokenizer.ggml.padding_token_id"), file),
        ..Geometry::default()
    };
    // What a shape states is before quantisation.
    let bits = |name: &str| kind_of(&header, name).filter(|kind| kind.is_plain()).map_or(0, |kind| kind.bits);
    found.shape.tied_embeddings = header.tensors.contains_key(EMBEDDING) && !header.tensors.contains_key(LM_HEAD);
    found.shape.embedding_bits = bits(EMBEDDING);
    found.shape.lm_head_bits = bits(LM_HEAD);

    let file_type = header.count("general.file_type");
    let by_type = file_type.and_then(|number| FILE_TYPES.iter().find(|(n, _)| *n == number).map(|(_, quant)| *quant));
    found.quant = match (by_type, file_type, quant_in(file)) {
        (Some(quant), ..) => found.take("quantisation", Some(quant), "general.file_type"),
        (None, Some(number), _) => {
            found.notes.push(format!("general.file_type is {number}, a quantisation that this version has no class for"));
            None
        }
        (None, None, by_name) => found.take("quantisation", by_name, "the file's name"),
    };
    found.notes.push("the tokenizer is inside the .gguf: put the model's tokenizer.json beside it for prompts of real text".to_owned());
    if root.join("tokenizer.json").is_file() {
        found.notes.pop();
        found.fact("tokenizer", "tokenizer.json", "the folder");
        found.tokenizer = Some("tokenizer.json".to_owned());
    }
    found.name = name_of(header.text("general.name").filter(|n| !n.is_empty()).unwrap_or_else(|| file.trim_end_matches(".gguf")));
    Ok(found)
}

fn kind_of(header: &Header, name: &str) -> Option<&'static Kind> {
    Kind::of(header.tensors.get(name)?.kind)
}

/// What a model file tells of its quantisation: the file's own word for it, and what its tensors are. Width and group are of the type that holds
/// most weights of the blocks.
///
/// # Errors
/// A file that is no GGUF, or damaged.
pub fn quantisation(path: &Path) -> Result<Quantisation, ImportError> {
    let header = Header::read(path)?;
    let main = most(header.tensors.iter().filter(|(name, _)| name.starts_with("blk.")).map(|(_, tensor)| tensor));
    let named = header.count("general.file_type").and_then(file_type).or_else(|| Some(main?.name));
    let mut told = Quantisation { native: named.map(str::to_owned), ..Quantisation::default() };
    let bits = |kind: Option<&Kind>| kind.map(|kind| f64::from(kind.bits)).filter(|bits| *bits > 0.0);
    told.put("weight_bits", bits(main)).put("group", main.and_then(Kind::group).map(|group| group as f64));
    told.put("embedding_bits", bits(kind_of(&header, EMBEDDING)));
    told.put("lm_head_bits", bits(kind_of(&header, LM_HEAD).or_else(|| kind_of(&header, EMBEDDING))));
    told.put("bits_per_weight", bits_per_weight(&header));
    Ok(told)
}

/// The type that holds most weights.
fn most<'a>(tensors: impl Iterator<Item = &'a Tensor>) -> Option<&'static Kind> {
    let mut sums: BTreeMap<u32, f64> = BTreeMap::new();
    for tensor in tensors {
        *sums.entry(tensor.kind).or_default() += tensor.weights? as f64;
    }
    let (number, _) = sums.into_iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
    Kind::of(number)
}

/// Bytes of all tensors x 8 over their weights; `None` where one of them is of a type that this version does not know.
fn bits_per_weight(header: &Header) -> Option<f64> {
    let (mut bytes, mut weights) = (0.0, 0.0);
    for tensor in header.tensors.values() {
        let (kind, own) = (Kind::of(tensor.kind)?, tensor.weights? as f64);
        bytes += own / kind.block as f64 * kind.bytes as f64;
        weights += own;
    }
    (weights > 0.0).then(|| bytes * 8.0 / weights)
}
