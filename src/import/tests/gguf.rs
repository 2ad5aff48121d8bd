//! `.gguf` files, written here by the GGUF specification (little-endian: magic, version, counts, metadata, tensors).

use bench_backend_api::Quant;

use super::{
    super::{look, write},
    folder::Folder,
};
use crate::random::SplitMix64;

fn text(value: &str) -> Vec<u8> {
    [&(value.len() as u64).to_le_bytes()[..], value.as_bytes()].concat()
}
fn entry(key: &str, kind: u32, value: &[u8]) -> Vec<u8> {
    [text(key), kind.to_le_bytes().to_vec(), value.to_vec()].concat()
}
fn u32_of(key: &str, n: u32) -> Vec<u8> {
    entry(key, 4, &n.to_le_bytes())
}
fn f32_of(key: &str, f: f32) -> Vec<u8> {
    entry(key, 6, &f.to_le_bytes())
}
fn list(key: &str, kind: u32, items: &[Vec<u8>]) -> Vec<u8> {
    entry(key, 9, &[&kind.to_le_bytes()[..], &(items.len() as u64).to_le_bytes(), &items.concat()].concat())
}
fn tensor(name: &str, kind: u32) -> Vec<u8> {
    [
        text(name),
        2_u32.to_le_bytes().to_vec(),
        vec![8, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0],
        kind.to_le_bytes().to_vec(),
        vec![0; 8],
    ]
    .concat()
}
fn file(version: u32, entries: &[Vec<u8>], tensors: &[Vec<u8>]) -> Vec<u8> {
    let head = [
        b"GGUF".to_vec(),
        version.to_le_bytes().to_vec(),
        (tensors.len() as u64).to_le_bytes().to_vec(),
        (entries.len() as u64).to_le_bytes().to_vec(),
    ];
    [head.concat(), entries.concat(), tensors.concat()].concat()
}

fn model() -> Vec<u8> {
    let entries = [
        entry("general.architecture", 8, &text("llama")),
        entry("general.name", 8, &text("My Llama 3B")),
        u32_of("general.file_type", 15),
        u32_of("llama.block_count", 28),
        u32_of("llama.context_length", 8192),
        u32_of("llama.embedding_length", 3072),
        u32_of("llama.feed_forward_length", 8192),
        u32_of("llama.attention.head_count", 24),
        list("llama.attention.head_count_kv", 5, &[8_i32.to_le_bytes().to_vec(), 8_i32.to_le_bytes().to_vec()]),
        f32_of("llama.rope.freq_base", 500_000.0),
        f32_of("llama.attention.layer_norm_rms_epsilon", 0.00001),
        list("tokenizer.ggml.tokens", 8, &[text("<s>"), text("</s>"), text("a"), text("b")]),
        list("tokenizer.ggml.scores", 6, &[vec![0; 4], vec![0; 4], vec![0; 4], vec![0; 4]]),
        entry("tokenizer.chat_template", 8, &text(&"x".repeat(9000))),
        u32_of("tokenizer.ggml.bos_token_id", 0),
        u32_of("tokenizer.ggml.eos_token_id", 1),
        entry("a.bool", 7, &[1]),
        entry("a.negative", 5, &(-1_i32).to_le_bytes()),
        entry("a.double", 12, &2.5_f64.to_le_bytes()),
    ];
    file(3, &entries, &[tensor("token_embd.weight", 1), tensor("blk.0.attn_q.weight", 12)])
}

#[test]
fn the_header_tells_the_shape() {
    let folder = Folder::new("models");
    folder.file("my.Q4_K_M.gguf", model());
    let found = folder.found();
    assert_eq!(
        (found.backend, found.name.as_str(), found.quant, found.context),
        ("llama-cpp", "my-llama-3b", Some(Quant::Q4KM), Some(8192))
    );
    let g = &found.shape;
    // 3072 / 24 = 128.
    assert_eq!(
        (g.layers, g.hidden, g.heads, g.kv_heads, g.head_dim, g.ffn),
        (Some(28), Some(3072), Some(24), Some(8), Some(128), Some(8192))
    );
    assert_eq!((g.vocab, g.bos, g.eos, g.pad, g.experts), (Some(4), Some(0), Some(1), None, 0));
    assert_eq!((g.rope_theta, g.tied_embeddings, g.embedding_bits, g.lm_head_bits), (Some(500_000.0), true, 16, 0));
    assert!((g.norm_eps.unwrap() - 1e-5).abs() < 1e-9);
    assert_eq!(found.unknown(), ["pad"]);

    // No backend of this version runs it: what is written is its shape, which reads back.
    let written = write(&found, folder.base.path(), false, false).expect("written");
    assert_eq!(written.scenario, None);
    let text = std::fs::read_to_string(&written.geometry).unwrap();
    for line in [
        "layers = 28\n",
        "kv-heads = 8\n",
        "rope-theta = 500000.0\n",
        "tied-embeddings = true\n",
        "embedding-bits = 16\n",
        "# not found: pad\n",
    ] {
        assert!(text.contains(line), "{line} in {text}");
    }
}

#[test]
fn a_quantisation_without_a_class_is_said() {
    let folder = Folder::new("m");
    folder.file("m-Q4_0.gguf", file(2, &[entry("general.architecture", 8, &text("qwen2")), u32_of("general.file_type", 17)], &[]));
    let found = folder.found();
    assert_eq!((found.quant, found.name.as_str(), found.shape.layers), (None, "m-q4-0", None));
    assert!(found.notes[0].contains("general.file_type is 17"), "{:?}", found.notes);
    folder.file("m-Q4_0.gguf", file(2, &[entry("general.architecture", 8, &text("qwen2"))], &[]));
    assert_eq!(folder.found().quant, Some(Quant::Q4_0));
}

#[test]
fn cut_off_anywhere_it_is_an_error() {
    let folder = Folder::new("m");
    let whole = model();
    for end in 0..whole.len() {
        folder.file("m.gguf", &whole[..end]);
        let error = folder.refused();
        assert!(error.contains("m.gguf: ") && (error.contains("too early") || error.contains("claims a list")), "{end}: {error}");
    }
}

#[test]
fn claims_are_held_against_the_file() {
    let folder = Folder::new("m");
    let refused = |bytes: Vec<u8>| folder.file("m.gguf", bytes).refused();
    let huge = u64::MAX.to_le_bytes();
    let counts = |tensors: [u8; 8], keys: [u8; 8]| [b"GGUF\x03\0\0\0".to_vec(), tensors.to_vec(), keys.to_vec()].concat();
    assert!(refused(b"GGML\x03\0\0\0".to_vec()).contains("not a GGUF file"));
    assert!(refused(b"GGUF\0\0\0\x03".to_vec()).contains("version 50331648 of GGUF"));
    assert!(refused(counts(huge, [0; 8])).contains("more than any model has"));
    assert!(refused(counts([0; 8], huge)).contains("more than any model has"));
    let value = |kind: u32, bytes: &[u8]| file(3, &[entry("k", kind, bytes)], &[]);
    assert!(refused(value(8, &huge)).contains("too early"));
    assert!(refused(value(8, &(1_u64 << 62).to_le_bytes())).contains("too early"));
    assert!(refused(value(99, &[0; 8])).contains("unknown type 99"));
    let of = |kind: u32, length: [u8; 8]| [kind.to_le_bytes().to_vec(), length.to_vec()].concat();
    assert!(refused(value(9, &[of(8, huge), vec![0; 64]].concat())).contains("claims a list of 18446744073709551615 entries"));
    assert!(refused(value(9, &[of(10, huge), vec![0; 64]].concat())).contains("no file can hold"));
    assert!(refused(value(9, &[of(4, (1_u64 << 40).to_le_bytes()), vec![0; 64]].concat())).contains("too early"));
    let deep = (0..9).fold(of(4, [0; 8]), |inner, _| [of(9, 1_u64.to_le_bytes()), inner].concat());
    assert!(refused(value(9, &deep)).contains("lists in lists"));
    assert!(refused(file(3, &[], &[])).contains("general.architecture"));
}

#[test]
fn damaged_anywhere_it_is_no_panic() {
    let folder = Folder::new("m");
    let whole = model();
    let mut random = SplitMix64::new(3);
    for _ in 0..500 {
        let mut bytes = whole.clone();
        for _ in 0..3 {
            let at = random.below(bytes.len());
            bytes[at] = random.next() as u8;
        }
        folder.file("m.gguf", &bytes);
        if let Ok(found) = look(&folder.path) {
            let out = tempfile::tempdir().unwrap();
            write(&found, out.path(), false, false).expect("written");
        }
    }
}
