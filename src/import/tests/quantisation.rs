//! What files tell of their quantisation. `mixed.gguf`, `nbits.onnx` and `mostly.onnx` were written by the projects' own packages (gguf 0.x, onnx), all weights
//! 0; the figures beside them are those packages' own.

use serde_json::json;

use super::{
    super::quantisation,
    folder::{Folder, fact},
};

const GGUF: &[u8] = include_bytes!("files/mixed.gguf");
const ONNX: &[u8] = include_bytes!("files/nbits.onnx");
/// Four products of 64 x 64 weights in 4 bits, two of 128 x 256 in 8, and a float16 head of 64 x 1000; the values lie in another file.
const MOSTLY: &[u8] = include_bytes!("files/mostly.onnx");

/// The native name, and the figures in the order of their columns.
fn told(folder: &Folder, names: &[&str]) -> (Option<String>, Vec<(&'static str, f64)>) {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let told = quantisation(&folder.path, &names);
    (told.native, told.facts.into_iter().collect())
}

fn native(folder: &Folder, names: &[&str]) -> String {
    told(folder, names).0.unwrap_or_default()
}

/// gguf's reader sums its tensors (Q6_K table, Q4_K and Q6_K in the block, an F32 norm, a Q8_0 head) to 3404 bytes of 3328 weights.
#[test]
fn a_gguf_is_what_its_tensors_are() {
    let folder = Folder::new("m");
    folder.file("m.gguf", GGUF);
    let (name, facts) = told(&folder, &["m.gguf", "tokenizer.json"]);
    assert_eq!(name.as_deref(), Some("Q4_K_M"));
    let bits = 3404.0 * 8.0 / 3328.0;
    assert_eq!(facts, [("bits_per_weight", bits), ("embedding_bits", 6.0), ("group", 32.0), ("lm_head_bits", 8.0), ("weight_bits", 4.0)]);
    assert_eq!(fact(&folder.found(), "quantisation, in its own words"), Some("Q4_K_M"));

    // Two models are no one artifact, and what is cut tells nothing.
    assert_eq!(told(&folder, &["m.gguf", "m.gguf"]), (None, Vec::new()));
    folder.file("m.gguf", &GGUF[..100]);
    assert_eq!(told(&folder, &["m.gguf"]), (None, Vec::new()));
    // A type that nobody knows yet (the number after Q4_K's name in the header) leaves no figure that would have to be guessed.
    let at = GGUF.windows(18).position(|bytes| bytes == b"blk.0.attn_q.weigh").expect("the tensor") + 19 + 4 + 16;
    assert_eq!(GGUF[at], 12);
    folder.file("m.gguf", [&GGUF[..at], &[99], &GGUF[at + 1..]].concat());
    let (name, facts) = told(&folder, &["m.gguf"]);
    assert_eq!((name.as_deref(), facts), (Some("Q4_K_M"), vec![("embedding_bits", 6.0), ("lm_head_bits", 8.0)]));
}

/// MNN's own examples: the options of llmexport.py, as it keeps them.
#[test]
fn mnns_exporter_says_how_it_was_called() {
    let folder = Folder::new("Qwen3-MNN");
    folder.file("llm.mnn", "m").file("llm.mnn.weight", "w");
    assert_eq!(told(&folder, &["llm.mnn"]), (None, Vec::new()));
    let args = json!({"quant_bit": 4, "quant_block": 64, "lm_quant_bit": 8, "lm_quant_block": 64, "hqq": true, "awq": false, "sym": false, "embed_bit": 16, "gptq_path": null});
    folder.json("export_args.json", &args);
    let (name, facts) = told(&folder, &["llm.mnn", "llm.mnn.weight"]);
    assert_eq!(name.as_deref(), Some("HQQ int4 block 64, asymmetric"));
    assert_eq!(facts, [("embedding_bits", 16.0), ("group", 64.0), ("lm_head_bits", 8.0), ("weight_bits", 4.0)]);
    // Official 0.6B: the shared table in 8 bits, the layers in 4.
    folder.json("llm_config.json", &json!({"tie_embeddings": [100, 200, 300, 8, 64]}));
    assert_eq!(told(&folder, &["llm.mnn"]).1[0], ("embedding_bits", 8.0));
    folder.json(
        "export_args.json",
        &json!({"quant_bit": 4, "quant_block": 0, "lm_quant_bit": null, "sym": true, "smooth": true, "gptq_path": "/x"}),
    );
    let (name, facts) = told(&folder, &["llm.mnn"]);
    assert_eq!(name.as_deref(), Some("GPTQ SmoothQuant int4 per channel, symmetric"));
    // Without an option of its own the LM head is as the rest.
    assert_eq!(facts, [("embedding_bits", 8.0), ("group", 0.0), ("lm_head_bits", 4.0), ("weight_bits", 4.0)]);
    folder.json("export_args.json", &json!({"quant_bit": 16, "quant_block": 64}));
    assert_eq!(native(&folder, &["llm.mnn"]), "fp16");
    for nothing in [json!({}), json!({"quant_bit": "4"}), json!({"quant_bit": -4}), json!({"quant_bit": 0}), json!({"quant_bit": 999})] {
        folder.json("export_args.json", &nothing);
        assert_eq!(told(&folder, &["llm.mnn"]), (None, Vec::new()), "{nothing}");
    }
}

#[test]
fn an_onnx_model_has_its_operators() {
    let folder = Folder::new("phi");
    folder.file("model.onnx", ONNX);
    let (name, facts) = told(&folder, &["genai_config.json", "model.onnx", "model.onnx.data"]);
    assert_eq!(name.as_deref(), Some("MatMulNBits int4 block 32, accuracy level 4 x 2; int8 block 32, accuracy level 4 x 1"));
    assert_eq!(facts, [("embedding_bits", 8.0), ("group", 32.0), ("lm_head_bits", 8.0), ("weight_bits", 4.0)]);
    // Cut off anywhere, or damaged, it is no panic, and no name that the whole file does not have.
    // The last four bytes are the version of the operators, without which the graph is whole.
    for end in 0..ONNX.len() - 4 {
        if end < 600 || end + 600 > ONNX.len() {
            folder.file("model.onnx", &ONNX[..end]);
            assert_eq!(told(&folder, &["model.onnx"]), (None, Vec::new()), "{end}");
        }
    }
    for at in 0..600 {
        let mut bytes = ONNX.to_vec();
        bytes[at] = !bytes[at];
        folder.file("model.onnx", &bytes);
        told(&folder, &["model.onnx"]);
    }
}

fn changed(from: &[u8], to: &[u8]) -> Vec<u8> {
    let at = |place: usize| MOSTLY[place..].starts_with(from);
    assert!((0..MOSTLY.len()).any(at), "{from:?} is there");
    let mut bytes = Vec::new();
    let mut place = 0;
    while place < MOSTLY.len() {
        let here = at(place);
        bytes.extend_from_slice(if here { to } else { &MOSTLY[place..=place] });
        place += if here { from.len() } else { 1 };
    }
    bytes
}

/// Most operators have 4 bits, most weights 8: 16,384 against 65,536.
#[test]
fn an_onnx_models_kind_is_that_of_most_weights() {
    let folder = Folder::new("mostly");
    folder.file("model.onnx", MOSTLY);
    let (name, facts) = told(&folder, &["model.onnx"]);
    assert_eq!(name.as_deref(), Some("MatMulNBits int8 block 128 x 2; int4 block 32 x 4; float16 x 1"));
    assert_eq!(facts, [("group", 128.0), ("lm_head_bits", 16.0), ("weight_bits", 8.0)]);

    // Without the initializers (other names than the operators read) the attributes K and N tell how many weights there are.
    let other_names = changed(b"\x42\x09weight_", b"\x42\x09veight_");
    folder.file("model.onnx", &other_names);
    assert_eq!(told(&folder, &["model.onnx"]).1, [("group", 128.0), ("weight_bits", 8.0)], "and nobody knows what the head is");
    // Without those either nobody knows what most weights are.
    let at = other_names.windows(3).enumerate().filter(|(_, bytes)| *bytes == b"\x0a\x01K").map(|(at, _)| at + 2).collect::<Vec<_>>();
    assert_eq!(at.len(), 6);
    let mut nameless = other_names;
    for at in at {
        nameless[at] = b'J';
    }
    folder.file("model.onnx", &nameless);
    let (name, facts) = told(&folder, &["model.onnx"]);
    assert_eq!((name.as_deref(), facts), (Some("MatMulNBits int4 block 32 x 4; int8 block 128 x 2"), Vec::new()));
}

/// ONNX Runtime takes 2 to 8 bits a weight.
#[test]
fn absurd_bits_are_not_believed() {
    let folder = Folder::new("absurd");
    for absurd in [0, 1, 9, 33, 127] {
        folder.file("model.onnx", changed(b"\x0a\x04bits\x18\x08", &[b"\x0a\x04bits\x18".as_slice(), &[absurd]].concat()));
        assert_eq!(told(&folder, &["model.onnx"]), (None, vec![("lm_head_bits", 16.0)]), "{absurd}");
    }
    // A block that is no power of two is none.
    folder.file("model.onnx", changed(b"block_size\x18\x80\x01", b"block_size\x18\x81\x01"));
    assert_eq!(told(&folder, &["model.onnx"]).1, [("lm_head_bits", 16.0), ("weight_bits", 8.0)]);
    // As in other formats.
    folder.json("export_args.json", &json!({"quant_bit": 4, "lm_quant_bit": 77, "embed_bit": 0}));
    assert_eq!(told(&folder, &["llm.mnn"]).1, [("weight_bits", 4.0)]);
}

#[test]
fn a_vendors_word_is_its_word() {
    let folder = Folder::new("bundle");
    folder.json("metadata.json", &json!({"precision": "w4a16\nand more"}));
    assert_eq!(told(&folder, &["part_1_of_2.bin"]), (Some("w4a16and more".to_owned()), Vec::new()));
    folder.json("metadata.json", &json!({"precision": "x".repeat(5000)}));
    assert_eq!(native(&folder, &["part_1_of_2.bin"]).len(), 100);
    std::fs::remove_file(folder.path.join("metadata.json")).unwrap();
    folder.file("metadata.yaml", "model_id: qwen\nprecision: w4a16_g32\n");
    assert_eq!(native(&folder, &["part_1_of_2.bin"]), "w4a16_g32");
    folder.file("metadata.yaml", "precision: ''\n");
    assert_eq!(told(&folder, &["part_1_of_2.bin"]).0, None);
}
