//! The rules over what tools really printed. What is expected was counted from the graphs themselves (src/prepare/graph.py), not from the rules.

use std::{collections::BTreeMap, fs, path::Path};

use bench_backend_api::{Layer, SourceFile};

use super::{Class, Mapped, map};
use crate::registry::READERS;

fn repository(path: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// What `bench parse READER FILE` reads.
fn read(reader: &str, path: &str) -> Vec<Layer> {
    let bytes = fs::read(repository(path)).unwrap_or_else(|e| panic!("{path}: {e}"));
    let reader = READERS.iter().find(|known| known.id() == reader).unwrap();
    reader.read(&[SourceFile { name: path.to_owned(), bytes }]).unwrap().layers
}

/// The profiles of the committed example, by cell and phase: the HTP emulator over graphs of two blocks.
fn example() -> BTreeMap<(String, String), Vec<Layer>> {
    let mut found: BTreeMap<_, Vec<Layer>> = BTreeMap::new();
    let mut table = csv::Reader::from_path(repository("results/example-pc/layers.csv")).unwrap();
    let names = table.headers().unwrap().clone();
    for row in table.records().map(Result::unwrap) {
        let field = |name: &str| row[names.iter().position(|known| known == name).unwrap()].to_owned();
        if field("device_class") != "emulator" {
            continue;
        }
        let layer = Layer {
            phase: field("phase"),
            name: field("name"),
            value: field("value").parse().ok(),
            value_unit: field("value_unit"),
            method: field("method"),
            ..Layer::default()
        };
        found.entry((field("cell"), field("phase"))).or_default().push(layer);
    }
    found
}

fn counts<K: Ord>(mapped: &[Mapped], key: impl Fn(&Mapped) -> K) -> BTreeMap<K, usize> {
    let mut counts = BTreeMap::new();
    for op in mapped {
        *counts.entry(key(op)).or_default() += 1;
    }
    counts
}

fn part(op: &Mapped) -> &'static str {
    op.part.unwrap_or("none")
}

/// Operations of each part in a graph of `decoder` in graph.py: what ONNX calls nodes, of one block, plus what the compiler adds (a reshape
/// behind each MatMul; `Input` and `Output`).
#[test]
fn every_operation_of_our_own_graphs_has_its_part() {
    // Of one block: 5 nodes of a norm and its gain, twice; MatMul, heads and first of q and k; MatMul and heads of v; halves, four products,
    // difference, sum and Concat of two rotations; the new keys and values and their Concats; from `q/grouped` to `mixed/flat`; MatMul of o;
    // two sums; gate, up, down, sigmoid, silu and gated.
    let block = [
        ("norm", 12),
        ("q_proj", 3),
        ("k_proj", 3),
        ("v_proj", 2),
        ("rope", 16),
        ("kv_cache", 4),
        ("attention", 11),
        ("o_proj", 1),
        ("residual", 2),
        ("mlp", 6),
    ];
    let whole = [("embedding", 1), ("norm", 6), ("lm_head", 1)];
    // Reshapes behind MatMuls, and the ends of the graph.
    let added = [("q_proj", 2), ("k_proj", 2), ("v_proj", 2), ("o_proj", 2), ("mlp", 6), ("lm_head", 1), ("io", 2)];
    let mut float: BTreeMap<&str, usize> = BTreeMap::new();
    for (part, n) in block.into_iter().chain(block).chain(whole).chain(added) {
        *float.entry(part).or_default() += n;
    }
    assert_eq!(float.values().sum::<usize>(), 145);
    // With integers the first layout of the keys moves behind the split, once for each half; keys, values and logits change their encoding.
    let mut quantised = float.clone();
    for (part, more, fewer) in [("rope", 2 * 3, 0), ("k_proj", 0, 2), ("v_proj", 2, 0), ("lm_head", 1, 0)] {
        let n = quantised.get_mut(part).unwrap();
        *n = *n + more - fewer;
    }
    let profiles = example();
    assert_eq!(profiles.len(), 24, "two frameworks, three quantisations, two prompts, two phases");
    for ((cell, phase), layers) in profiles {
        let mapped = map(&layers, true);
        let expected = if cell.contains("fp16") { &float } else { &quantised };
        assert_eq!(&counts(&mapped, part), expected, "{cell} {phase}");
        let blocks = counts(&mapped, |op| op.block);
        assert_eq!(blocks.keys().copied().collect::<Vec<_>>(), [None, Some(0), Some(1)], "{cell} {phase}");
        assert_eq!(blocks[&Some(0)], blocks[&Some(1)], "{cell} {phase}");
        // A decoder of two blocks has 2 x (4 projections, 2 products of attention, 3 of the feed-forward) and the LM head.
        assert_eq!(counts(&mapped, |op| op.kind.map(|k| k.name.as_str()))[&Some("matmul")], 19, "{cell} {phase}");
        assert!(mapped.iter().all(|op| op.kind.is_some()), "{cell} {phase}");
    }
}

/// The share of a part in a profile's sum.
fn share(layers: &[Layer], mapped: &[Mapped], wanted: &str) -> f64 {
    let sum =
        |of: &dyn Fn(&Mapped) -> bool| layers.iter().zip(mapped).filter(|(_, op)| of(op)).filter_map(|(layer, _)| layer.value).sum::<f64>();
    sum(&|op| part(op) == wanted) / sum(&|_| true)
}

#[test]
fn other_stays_under_one_percent_in_every_profile_of_a_language_model() {
    for (reader, path) in [
        ("ort-qnn", "backends/ort-qnn/fixtures/profile-decode.csv"),
        ("mnn", "backends/mnn/fixtures/profile_by_name.stdout"),
        ("mnn", "backends/mnn/fixtures/v2basic.stdout"),
        ("llama-cpp", "backends/llama-cpp/fixtures/profile.log"),
    ] {
        let layers = read(reader, path);
        let mapped = map(&layers, true);
        assert!(!layers.is_empty(), "{path}");
        assert!(
            share(&layers, &mapped, "other") < 0.01,
            "{path}: {:?}",
            layers.iter().zip(&mapped).filter(|(_, op)| part(op) == "other").collect::<Vec<_>>()
        );
    }
}

#[test]
fn names_of_the_field_are_known() {
    let named = |name: &str, op_type: Option<&str>| {
        let op = map(&[Layer { name: name.to_owned(), op_type: op_type.map(str::to_owned), ..Layer::default() }], true)[0];
        (op.block, part(&op), op.kind.map_or("none", |kind| kind.name.as_str()))
    };
    for (name, op_type, expected) in [
        // Hugging Face through ONNX, as QNN prints it.
        ("/model/layers.3/self_attn/q_proj/MatMul:OpId_32", None, (Some(3), "q_proj", "matmul")),
        ("/model/layers.3/self_attn/q_proj/MatMul_output_0Reshape:OpId_35", None, (Some(3), "q_proj", "reshape")),
        ("/model/layers.3/input_layernorm/ReduceMean:OpId_22", None, (Some(3), "norm", "reduce")),
        ("/model/layers.3/post_attention_layernorm/Pow", None, (Some(3), "norm", "elementwise")),
        ("/model/layers.3/self_attn/rotary_emb/Concat_1", None, (Some(3), "rope", "copy")),
        ("/model/layers.3/self_attn/MatMul_1", None, (Some(3), "attention", "matmul")),
        ("/model/layers.3/self_attn/Transpose_2", None, (Some(3), "attention", "transpose")),
        ("/model/layers.3/self_attn/qkv_proj/MatMul", None, (Some(3), "qkv_proj", "matmul")),
        ("/model/layers.3/self_attn/q_norm/Mul", None, (Some(3), "norm", "elementwise")),
        ("/model/layers.3/mlp/act_fn/Sigmoid", None, (Some(3), "mlp", "elementwise")),
        ("/model/layers.3/Add_1", None, (Some(3), "residual", "elementwise")),
        ("/model/embed_tokens/Gather", Some("Gather"), (None, "embedding", "gather")),
        ("/model/norm/Mul_1", None, (None, "norm", "elementwise")),
        ("/lm_head/MatMul", Some("MatMulNBits"), (None, "lm_head", "matmul")),
        // One convolution a head, as Qualcomm's exports have it.
        ("model_layers_27_self_attn_k_proj_sha_3_Conv:OpId_9911", None, (Some(27), "k_proj", "conv")),
        ("layers_0_self_attn_q_proj_fc_post_reshape", None, (Some(0), "q_proj", "reshape")),
        ("layers_11_attention_wv_sha_0_conv", None, (Some(11), "v_proj", "conv")),
        ("layers_11_feed_forward_w2_conv", None, (Some(11), "mlp", "conv")),
        // ggml.
        ("blk.5.attn_q.weight x attn_norm-5 -> Qcur-5 (64:128 x 64:1 -> 128:1)", Some("MUL_MAT"), (Some(5), "q_proj", "matmul")),
        ("Qcur-5 x inp_pos -> Qcur-5 (64:32)", Some("ROPE"), (Some(5), "rope", "rope")),
        ("norm-5 x blk.5.attn_norm.weight -> attn_norm-5 (64)", Some("MUL"), (Some(5), "norm", "elementwise")),
        ("l_out-4 -> norm-5 (64)", Some("RMS_NORM"), (Some(5), "norm", "norm")),
        ("Kcur-5 x leaf_9 -> cache_k_l5 (view) (64)", Some("SET_ROWS"), (Some(5), "kv_cache", "copy")),
        ("q-5 x k-5 -> kq-5 (64)", Some("MUL_MAT"), (Some(5), "attention", "matmul")),
        ("kqv_out-5 x inp -> ffn_inp-5 (64)", Some("ADD"), (Some(5), "residual", "elementwise")),
        ("blk.5.ffn_down.weight x ffn_swiglu-5 -> ffn_out-5 (64)", Some("MUL_MAT"), (Some(5), "mlp", "matmul")),
        ("blk.5.attn_output.weight x kqv_out-5 -> node_31 (64)", Some("MUL_MAT"), (Some(5), "o_proj", "matmul")),
        ("token_embd.weight x inp_tokens -> embd (64)", Some("GET_ROWS"), (None, "embedding", "gather")),
        ("output.weight x result_norm -> result_output (64)", Some("MUL_MAT"), (None, "lm_head", "matmul")),
        // Our own graph for MNN.
        ("layers.1.gate", Some("Convolution"), (Some(1), "mlp", "conv")),
        ("layers.1.q/rope/x_cos", Some("BinaryOp"), (Some(1), "rope", "elementwise")),
        ("angle/half", Some("BinaryOp"), (None, "rope", "elementwise")),
        // Nothing known.
        ("/vision/patch/Foo", Some("Foo"), (None, "other", "none")),
        ("", None, (None, "other", "none")),
    ] {
        assert_eq!(named(name, op_type), expected, "{name}");
    }
}

#[test]
fn who_has_no_name_belongs_to_a_neighbour_only_where_there_is_an_order() {
    let layer = |name: &str, value: f64| Layer { name: name.to_owned(), value: Some(value), ..Layer::default() };
    let parts = |layers: &[Layer]| {
        map(layers, true).into_iter().map(|op| (part(&op), op.part_by.map(super::By::as_str), op.block)).collect::<Vec<_>>()
    };
    let graph = [
        layer("BinaryOp18", 3.0),
        layer("layers.0.q/matmul", 9.0),
        layer("Transpose_token_53", 1.0),
        layer("final_norm/out", 2.0),
        layer("MatMul_38", 8.0),
        layer("/layers.0/strange", 1.0),
    ];
    let (neighbour, name) = (Some("neighbour"), Some("name"));
    assert_eq!(
        parts(&graph),
        [
            ("q_proj", neighbour, Some(0)),
            ("q_proj", name, Some(0)),
            ("q_proj", neighbour, Some(0)),
            ("norm", name, None),
            ("lm_head", neighbour, None),
            ("other", None, Some(0)),
        ]
    );
    // A product is a part of its own: it is not the feed-forward's because that stands before it.
    assert_eq!(parts(&[layer("layers.0.up", 1.0), layer("MatMul_7", 5.0), layer("layers.0.o", 2.0)])[1], ("other", None, None));
    // A table sorted by cost.
    let sorted = [layer("layers.0.q/matmul", 9.0), layer("UnaryOp16", 3.0), layer("final_norm/out", 2.0)];
    assert_eq!(parts(&sorted)[1], ("other", None, None));
}

/// The real profile of a plain network: no part and no block, though its names count layers too.
#[test]
fn a_plain_network_has_classes_and_no_parts() {
    let layers = read("qnn", "backends/qnn/fixtures/qhas.json");
    let mapped = map(&layers, false);
    assert!(!layers.is_empty() && mapped.iter().all(|op| op.part.is_none() && op.block.is_none()), "{mapped:?}");
    for (name, kind, class) in [
        ("/resnet/encoder/stages.0/layers.0/layer/layer.0/convolution/Conv_token_13_2:OpId_37", "conv", Class::Compute),
        ("/resnet/embedder/pooler/MaxPool_token_7_2:OpId_30", "pool", Class::Compute),
        ("Transpose_token_328_2:OpId_18", "transpose", Class::Movement),
        ("pixel_values_QuantizeLinear_3:OpId_16", "quantise", Class::Movement),
        ("Input OpId_2", "io", Class::Movement),
    ] {
        let op = map(&[Layer { name: name.to_owned(), ..Layer::default() }], false)[0];
        assert_eq!((op.kind.map(|k| (k.name.as_str(), k.class)), op.part), (Some((kind, class)), None), "{name}");
    }
}
