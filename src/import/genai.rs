//! A model for onnxruntime-genai: `genai_config.json` beside ONNX files and the tokenizer.

use std::path::Path;

use bench_backend_api::Geometry;
use serde_json::Value;

use super::{
    error::ImportError,
    files::{self, count, positive, word},
    found::Found,
    model::{name_of, quant_in},
};

/// Name of its configuration.
pub const CONFIG: &str = "genai_config.json";

/// Reads one.
pub fn read(folder: &Path, names: &[String]) -> Result<Found, ImportError> {
    let path = folder.join(CONFIG);
    let config = files::json(folder, CONFIG)?.ok_or_else(|| ImportError::bad(&path, "not there"))?;
    let Some(model) = config.get("model").filter(|m| m.is_object()) else {
        return Err(ImportError::bad(&path, "no table `model`, which every configuration of onnxruntime-genai has"));
    };
    let mut found = Found { kind: "an onnxruntime-genai model", backend: "ort-genai", root: folder.to_owned(), ..Found::default() };
    found.config = Some(CONFIG.to_owned());
    if let Some(kind) = word(model, "/type") {
        found.fact("architecture", kind, CONFIG);
    }
    found.context = found.take("context, tokens", positive(model, "/context_length"), CONFIG);
    found.shape = Geometry {
        layers: found.take("layers", positive(model, "/decoder/num_hidden_layers"), CONFIG),
        hidden: found.take("hidden width", positive(model, "/decoder/hidden_size"), CONFIG),
        heads: found.take("heads", positive(model, "/decoder/num_attention_heads"), CONFIG),
        kv_heads: found.take("key-value heads", positive(model, "/decoder/num_key_value_heads"), CONFIG),
        head_dim: found.take("width of a head", positive(model, "/decoder/head_size"), CONFIG),
        vocab: found.take("vocabulary, tokens", positive(model, "/vocab_size"), CONFIG),
        bos: found.take("BOS", count(model, "/bos_token_id"), CONFIG),
        eos: found.take("EOS", count(model, "/eos_token_id"), CONFIG),
        pad: found.take("PAD", count(model, "/pad_token_id"), CONFIG),
        ..Geometry::default()
    };
    // A model for the NPU takes its prompt in windows of a fixed width.
    found.chunk = found.take("AR of the prefill graph, tokens", positive(model, "/decoder/sliding_window/window_size"), CONFIG);
    let providers = model.pointer("/decoder/session_options/provider_options").and_then(Value::as_array);
    let providers: Vec<&str> =
        providers.into_iter().flatten().filter_map(Value::as_object).flat_map(|o| o.keys()).map(String::as_str).collect();
    found.fact("execution providers", &if providers.is_empty() { "cpu".to_owned() } else { providers.join(", ") }, CONFIG);

    if !names.iter().any(|n| files::ends(n, "onnx")) {
        return Err(ImportError::bad(folder, "holds no *.onnx, without which onnxruntime-genai has no model"));
    }
    if let Some(file) = word(model, "/decoder/filename").filter(|file| !names.iter().any(|n| n == file)) {
        found.notes.push(format!("{CONFIG} names {file}, which the folder does not hold"));
    }
    if names.iter().any(|n| n == "tokenizer.json") {
        found.fact("tokenizer", "tokenizer.json", "the folder");
        found.tokenizer = Some("tokenizer.json".to_owned());
    }
    let folder_name = folder.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    found.quant = found.take("quantisation", quant_in(&folder_name), "the folder's name");
    found.name = name_of(&folder_name);
    found.files = names.iter().filter(|n| !n.starts_with('.') && !files::ends(n, "md")).cloned().collect();
    Ok(found)
}
