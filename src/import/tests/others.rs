//! MNN and onnxruntime-genai folders (formats: pc/mnn/model_files), names, and what is nothing that is known.

use bench_backend_api::Quant;
use serde_json::json;

use super::{
    super::{look, model, write},
    folder::{Folder, fact, plan},
};

fn mnn() -> Folder {
    let folder = Folder::new("Qwen2.5-0.5B-4bit-MNN");
    folder.json("config.json", &json!({"llm_model": "llm.mnn", "llm_weight": "llm.mnn.weight", "backend_type": "cpu", "thread_num": 4, "precision": "low", "memory": "low"}));
    folder.json(
        "llm_config.json",
        &json!({"model_type": "qwen2", "hidden_size": 896, "layer_nums": 24, "key_value_shape": [2, 1, 0, 2, 64], "max_position_embeddings": 2048}),
    );
    folder.file("llm.mnn", "m").file("llm.mnn.weight", "w").file("tokenizer.txt", "430 3\n2 1 1\n7 8 9 10\n151646 151387\nPHM+\n");
    folder
}

#[test]
fn an_mnn_folder_becomes_a_scenario_that_passes_check() {
    let folder = mnn();
    let found = folder.found();
    assert_eq!(
        (found.backend, found.name.as_str(), found.quant, found.context),
        ("mnn", "qwen2.5-0.5b-4bit-mnn", Some(Quant::W4), Some(2048))
    );
    let g = &found.shape;
    assert_eq!((g.layers, g.hidden, g.kv_heads, g.head_dim, g.heads), (Some(24), Some(896), Some(2), Some(64), None));
    // Two special tokens, then one that stops, then one that begins.
    assert_eq!((g.vocab, g.eos, g.bos), (Some(151_646), Some(9), Some(10)));
    assert_eq!((fact(&found, "CPU threads"), fact(&found, "memory")), (Some("4"), Some("low")));
    assert!(found.notes.iter().any(|n| n.starts_with("no tokenizer.json")), "{:?}", found.notes);
    let (_, scenario) = folder.written(&found);
    let warnings: Vec<&str> = scenario.warnings.problems.iter().map(|p| p.message.as_str()).collect();
    assert_eq!(warnings, ["`qwen2.5-0.5b-4bit-mnn` has no `tokenizer`: its prompts will be random token ids, and no text"]);
    assert_eq!(plan(&scenario).cells.len(), 3);

    // The export's own words count more than the folder's name, and a tokenizer makes prompts of text.
    folder.json("export_args.json", &json!({"quant_bit": 8, "quant_block": 64})).file("tokenizer.json", "{}");
    let found = folder.found();
    assert_eq!(
        (found.quant, found.tokenizer.as_deref(), fact(&found, "quantisation group")),
        (Some(Quant::W8), Some("tokenizer.json"), Some("64"))
    );
    std::fs::remove_file(folder.path.join("llm.mnn.weight")).unwrap();
    assert!(folder.refused().contains("llm.mnn.weight is not there"), "{}", folder.refused());
}

#[test]
fn odd_values_are_absent() {
    let folder = mnn();
    folder.json(
        "llm_config.json",
        &json!({"hidden_size": -1, "layer_nums": "24", "key_value_shape": [2, 1, 0], "max_position_embeddings": 4_294_967_296_u64}),
    );
    for tokenizer in ["", "430", "430 3\n-1 x 1\n\n", "430 3\n4294967295 4294967295 4294967295\n1\n0\n", "431 3\n1 1 1\n1 2 3\n9\n"] {
        folder.file("tokenizer.txt", tokenizer);
        let found = folder.found();
        assert_eq!(found.shape, bench_backend_api::Geometry::default(), "{tokenizer:?}");
        let error = write(&found, &folder.base.path().join("out"), true, false).expect_err("no context").to_string();
        assert!(
            error.starts_with("the context length could not be found in ") && error.ends_with("name it, for instance --context 4096"),
            "{error}"
        );
    }
}

#[test]
fn a_genai_folder_tells_its_shape() {
    let folder = Folder::new("phi-3.5-w4a16-qnn");
    folder.json(
        "genai_config.json",
        &json!({"model": {"bos_token_id": 1, "context_length": 4096, "eos_token_id": [32_007, 32_000], "pad_token_id": 32_000, "vocab_size": 32_064, "type": "phi3",
            "decoder": {"session_options": {"provider_options": [{"qnn": {"backend_path": "QnnHtp.dll"}}]}, "filename": "model.onnx", "head_size": 96,
                "hidden_size": 3072, "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 32}}}),
    );
    assert!(folder.refused().contains("holds no *.onnx"));
    folder.file("model.onnx", "m").file("tokenizer.json", "{}");
    let found = folder.found();
    assert_eq!((found.backend, found.quant, found.context), ("ort-genai", Some(Quant::W4a16), Some(4096)));
    let g = &found.shape;
    assert_eq!(
        (g.layers, g.hidden, g.heads, g.kv_heads, g.head_dim, g.vocab),
        (Some(32), Some(3072), Some(32), Some(32), Some(96), Some(32_064))
    );
    assert_eq!((g.bos, g.eos, g.pad, fact(&found, "execution providers")), (Some(1), Some(32_007), Some(32_000), Some("qnn")));
    folder.json("genai_config.json", &json!({"search": {}}));
    assert!(folder.refused().ends_with("no table `model`, which every configuration of onnxruntime-genai has"));
}

#[test]
fn what_is_nothing_known_is_told_what_was_looked_for() {
    let folder = Folder::new("empty");
    for word in ["genie_config.json", "genai_config.json", "llm.mnn", "*.gguf"] {
        assert!(folder.refused().contains(word), "{}", folder.refused());
    }
    folder.file("a.gguf", "").file("b.GGUF", "");
    assert!(folder.refused().ends_with("holds several models, name one of them: a.gguf, b.GGUF"), "{}", folder.refused());
    folder.file("notes.txt", "");
    assert!(look(&folder.path.join("notes.txt")).unwrap_err().to_string().contains("nothing that can be imported"));
    assert!(look(&folder.path.join("gone")).is_err());
}

#[test]
fn names_tell_a_quantisation_only_as_words() {
    let cases = [
        ("llama_v3_2_3b_w4a16_part_1_of_3.bin", Some(Quant::W4a16)),
        ("Qwen2-1.5B-Instruct-MNN-int8", Some(Quant::W8)),
        ("model.Q4_K_M.gguf", Some(Quant::Q4KM)),
        ("raw4life", None),
        ("w40", None),
        ("", None),
    ];
    for (name, quant) in cases {
        assert_eq!(model::quant_in(name), quant, "{name}");
    }
    assert_eq!(model::part_of("x_part_12_of_40.bin"), Some((12, 40, 7)));
    assert_eq!([model::part_of("_of_"), model::part_of("a_of_3"), model::part_of("1_of_x")], [None; 3]);
    assert_eq!(["Phi 3.5 Mini!", "--", "é", "../.."].map(model::name_of), ["phi-3.5-mini", "model", "model", "model"]);
}
