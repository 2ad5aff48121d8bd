//! A small model in each engine's form, of a few bytes: the stand-ins run nothing.

use std::{fs, path::Path};

use serde_json::json;

/// Writes it into a folder, with a question of so many tokens.
pub fn small_model(dir: &Path, prompt: u32) {
    let model = dir.join("model");
    fs::create_dir_all(model.join("genai")).unwrap();
    let graph = |tokens: u32, binary: &str| {
        json!({"tokens": tokens, "binary": binary, "inputs": {"input_ids": {"dtype": "int32", "shape": [1, tokens]}},
            "outputs": {"logits": {"dtype": "float16", "shape": [1, tokens, 64]}}})
    };
    // Made for 8 Gen 3 with another version than the one that runs it.
    let meta = json!({"soc_model": 57, "htp_arch": 75, "qairt": "2.31.0",
        "graphs": {"prefill": graph(32, "prefill.bin"), "decode": graph(1, "decode.bin")}});
    let provider = json!([{"qnn": {"backend_path": "libQnnHtp.so"}}]);
    let genai =
        json!({"model": {"context_length": 128, "decoder": {"filename": "model.onnx", "session_options": {"provider_options": provider}}}});
    let mnn = json!({"llm_model": "llm.mnn", "llm_weight": "llm.mnn.weight", "backend_type": "cpu"});
    let binary = b"\0v2.31.0.250101000000\0input_ids\0logits\0";
    let question = "word ".repeat(prompt as usize);
    for (name, bytes) in [
        ("prefill.bin", &binary[..]),
        ("decode.bin", binary),
        ("prefill.onnx", b"\x08\x08"),
        ("decode.onnx", b"\x08\x08"),
        ("meta.json", meta.to_string().as_bytes()),
        ("tokenizer.json", br#"{"model": {"type": "WordLevel", "vocab": {}}}"#),
        ("genai/model.onnx", b"\x08\x08"),
        ("genai/tokenizer.json", b"{}"),
        ("genai/genai_config.json", genai.to_string().as_bytes()),
        ("config.json", mnn.to_string().as_bytes()),
        ("llm.mnn", b"m"),
        ("llm.mnn.weight", b"weights"),
        ("tokenizer.txt", b"t"),
        ("prompt.txt", question.trim_end().as_bytes()),
    ] {
        fs::write(model.join(name), bytes).unwrap();
    }
    let geometry = "name = \"small\"\nlayers = 1\nhidden = 8\nheads = 1\nkv-heads = 1\nhead-dim = 8\nffn = 8\nvocab = 64\nrope-theta = 10000.0\n\
        norm-eps = 1e-5\ntied-embeddings = false\nexperts = 0\nlm-head-bits = 8\nembedding-bits = 16\nbos = 0\neos = 1\npad = 2\n";
    fs::write(dir.join("small.toml"), geometry).unwrap();
}
