//! Genie bundles, in the shape of AI Hub's (samples/genie: config and HTP configuration; metadata: qai_hub_models' ModelMetadata).

use bench_backend_api::Quant;
use serde_json::{Value, json};

use super::{
    super::{Chip, ImportError, look, write},
    folder::{Folder, fact, plan},
};
use crate::scenario::ArtifactSource;

fn config() -> Value {
    json!({"dialog": {"version": 1, "type": "basic",
        "context": {"version": 1, "size": 4096, "n-vocab": 151_936, "bos-token": 151_643, "eos-token": [151_645, 151_643]},
        "sampler": {"version": 1, "seed": 7, "temp": 0.7, "top-k": 20, "top-p": 0.8},
        "tokenizer": {"version": 1, "path": "tokenizer.json"},
        "engine": {"version": 1, "n-threads": 3,
            "backend": {"version": 1, "type": "QnnHtp", "QnnHtp": {"version": 1, "use-mmap": true, "spill-fill-bufsize": 0, "mmap-budget": 0,
                "poll": true, "cpu-mask": "0xe0", "kv-dim": 128, "allow-async-init": false}, "extensions": "htp_backend_ext_config.json"},
            "model": {"version": 1, "type": "binary", "binary": {"version": 1, "ctx-bins": ["qwen_w4a16_part_1_of_2.bin", "qwen_w4a16_part_2_of_2.bin"]},
                "positional-encoding": {"type": "rope", "rope-dim": 64, "rope-theta": 1_000_000}}}}})
}

/// The text in front of a binary: names of graphs and tensors, then the compiler's settings.
fn binary(part: u32, layers: std::ops::Range<u32>, chip: &str) -> Vec<u8> {
    let mut bytes = vec![0, 0, 0, 3];
    for (phase, ar) in [("prompt", 128), ("token", 1)] {
        bytes.extend(format!("{phase}_ar{ar}_cl4096_{part}_of_2\0").bytes());
        for layer in layers.clone() {
            bytes.extend(format!("\x01past_key_{layer}_in\0\x08past_value_{layer}_in\0past_key_{layer}_out\0").bytes());
        }
    }
    bytes.extend(vec![0xff; 3000]);
    bytes.extend(format!("debug=false;{chip}num_nsps=1;").bytes());
    bytes.extend(vec![0; 200]);
    bytes
}

const SM8750: &str = "soc_type=SM8750;arch=79;";

fn bundle() -> Folder {
    let folder = Folder::new("qwen-bundle");
    folder.json("genie_config.json", &config()).file("tokenizer.json", "{}");
    folder.json(
        "htp_backend_ext_config.json",
        &json!({"devices": [{"soc_model": 69, "dsp_arch": "v79", "cores": [{"core_id": 0, "perf_profile": "burst"}]}]}),
    );
    folder.file("qwen_w4a16_part_1_of_2.bin", binary(1, 0..2, SM8750)).file("qwen_w4a16_part_2_of_2.bin", binary(2, 2..5, SM8750));
    folder
}

#[test]
fn a_bundle_becomes_a_scenario_that_passes_check() {
    let folder = bundle();
    let found = folder.found();
    assert_eq!((found.backend, found.name.as_str(), found.quant), ("genie", "qwen-w4a16", Some(Quant::W4a16)));
    assert_eq!((found.context, found.chunk), (Some(4096), Some(128)));
    let g = &found.shape;
    assert_eq!((g.layers, g.head_dim, g.vocab, g.rope_theta), (Some(5), Some(128), Some(151_936), Some(1e6)));
    assert_eq!((g.bos, g.eos, g.pad, g.kv_heads, g.ffn), (Some(151_643), Some(151_645), None, None, None));
    assert_eq!(found.chip, Chip { soc: Some("SM8750".into()), soc_model: Some(69), htp_arch: Some(79) });
    assert_eq!(found.unknown(), ["hidden", "heads", "kv-heads", "ffn", "norm-eps", "pad"]);
    assert_eq!((fact(&found, "CPU threads"), fact(&found, "performance profile")), (Some("3"), Some("burst")));
    assert!(found.notes.is_empty(), "{:?}", found.notes);

    let (written, scenario) = folder.written(&found);
    assert!(scenario.warnings.is_empty(), "{}", scenario.warnings);
    assert_eq!(
        (scenario.device.local, scenario.device.soc.as_str(), scenario.device.soc_model, scenario.device.htp_arch),
        (false, "SM8750", 69, 79)
    );
    let plan = plan(&scenario);
    let ids: Vec<&str> = plan.cells.iter().map(|c| c.id.rsplit_once('-').unwrap().0).collect();
    assert_eq!(ids, ["genie.qwen-w4a16.w4a16.p128.g128", "genie.qwen-w4a16.w4a16.p512.g128", "genie.qwen-w4a16.w4a16.p1024.g128"]);
    assert_eq!(plan.tokenizers["qwen-w4a16"], folder.path.join("tokenizer.json").display().to_string());
    let Some(ArtifactSource::Files { root, config, files, .. }) = &plan.cells[0].source else { panic!("{:?}", plan.cells[0]) };
    assert_eq!((root.as_str(), config.as_deref()), (folder.path.to_str().unwrap(), Some("genie_config.json")));
    let wanted =
        ["genie_config.json", "htp_backend_ext_config.json", "qwen_w4a16_part_1_of_2.bin", "qwen_w4a16_part_2_of_2.bin", "tokenizer.json"];
    assert_eq!(files, &wanted);
    let model = &plan.cells[0].cell.model;
    assert_eq!((model.context, model.chunk, model.geometry.as_ref().and_then(|g| g.layers)), (4096, Some(128), Some(5)));
    let text = std::fs::read_to_string(written.scenario.unwrap()).unwrap();
    assert!(text.contains("config = \"../qwen-bundle/genie_config.json\""), "{text}");
    assert!(!text.contains(folder.base.path().to_str().unwrap()), "no path of this machine: {text}");
    let geometry = std::fs::read_to_string(written.geometry).unwrap();
    assert!(geometry.ends_with("# not found: hidden, heads, kv-heads, ffn, norm-eps, pad\n"), "{geometry}");
}

#[test]
fn ai_hubs_metadata_tells_more_in_either_form() {
    let tensors = json!({"input_ids": {"shape": [1, 64], "dtype": "int32"}, "past_key_0_in": {"shape": [8, 1, 64, 3968], "dtype": "uint8"},
        "past_key_1_in": {"shape": [8, 1, 64, 3968], "dtype": "uint8"}});
    let json = json!({"model_id": "llama_v3_2_1b", "runtime": "genie", "precision": "w4a16", "tool_versions": {"qairt": "2.37.1"},
        "model_files": {"part.bin": {"inputs": tensors, "outputs": {}}}})
    .to_string();
    let yaml = "# an export\nmodel_id: llama_v3_2_1b\nprecision: w4a16\ntool_versions:\n  qairt: 2.37.1\nmodel_files:\n  part.bin:\n    inputs:\n\
        \x20     input_ids:\n        shape: [1, 64]\n        dtype: int32\n      past_key_0_in:\n        shape: [8, 1, 64, 3968]\n\
        \x20     past_key_1_in:\n        shape: [8, 1, 64, 3968]\n    outputs: {}\n";
    for (name, text) in [("metadata.json", json.as_str()), ("metadata.yaml", yaml)] {
        let folder = Folder::new("b");
        folder.json("genie_config.json", &config()).file(name, text);
        // Nothing in names or binaries tells anything here.
        let mut own = config();
        own["dialog"]["engine"]["model"]["binary"]["ctx-bins"] = json!(["model.bin"]);
        own["dialog"]["engine"]["backend"]["QnnHtp"]["kv-dim"] = Value::Null;
        own["dialog"]["engine"]["model"]["positional-encoding"] = Value::Null;
        folder.json("genie_config.json", &own).file("model.bin", "nothing");
        let found = folder.found();
        assert_eq!((found.name.as_str(), found.quant, found.chunk), ("llama-v3-2-1b", Some(Quant::W4a16), Some(64)), "{name}");
        assert_eq!((found.shape.layers, found.shape.kv_heads, found.shape.head_dim), (Some(2), Some(8), Some(64)), "{name}");
        assert_eq!(fact(&found, "made with QAIRT"), Some("2.37.1"), "{name}");
    }
}

#[test]
fn a_bundle_that_lacks_a_part_is_refused() {
    let gone = bundle();
    std::fs::remove_file(gone.path.join("qwen_w4a16_part_2_of_2.bin")).unwrap();
    assert!(gone.refused().ends_with("ctx-bins names qwen_w4a16_part_2_of_2.bin, which the folder does not hold"), "{}", gone.refused());
    let mut one = config();
    one["dialog"]["engine"]["model"]["binary"]["ctx-bins"] = json!(["deep/qwen_w4a16_part_2_of_2.bin"]);
    let folder = bundle();
    folder.json("genie_config.json", &one);
    assert!(folder.refused().ends_with("of 2 parts of the model ctx-bins lacks part 1"), "{}", folder.refused());
    for (text, why) in [("[]", "not a JSON object"), ("{\"dialog\": 1}", "no table `dialog`"), ("{", "not JSON: "), ("\u{0}", "not JSON: ")]
    {
        folder.file("genie_config.json", text);
        assert!(folder.refused().contains(why), "{}", folder.refused());
    }
    folder.file("genie_config.json", [0xff, 0xfe]);
    assert!(folder.refused().ends_with("not UTF-8 text"));
}

#[test]
fn the_binaries_say_for_which_chip_they_are() {
    let folder = bundle();
    folder.file("qwen_w4a16_part_1_of_2.bin", binary(1, 0..2, "soc_type=SM8650;arch=75;"));
    let notes = folder.found().notes;
    assert!(notes[0].contains("different chips: SM8650 (Hexagon v75), SM8750 (Hexagon v79)"), "{notes:?}");
    assert!(notes[1].starts_with("the HTP configuration is for Hexagon v79, and the context binaries are for SM8650"), "{notes:?}");
    assert_eq!(folder.found().chip, Chip { soc: Some("SM8650".into()), soc_model: None, htp_arch: Some(75) });

    // A chip that the catalogue does not have is stated in full; without its number it has to be named.
    let odd = bundle();
    let ext = |model: Value| json!({"devices": [{"soc_model": model, "dsp_arch": "v79"}]});
    for part in [1, 2] {
        odd.file(&format!("qwen_w4a16_part_{part}_of_2.bin"), binary(part, part..part + 1, "soc_type=SX1;arch=79;"));
    }
    odd.json("htp_backend_ext_config.json", &ext(json!(999)));
    let (_, scenario) = odd.written(&odd.found());
    assert_eq!((scenario.device.soc.as_str(), scenario.device.soc_model, scenario.device.htp_arch), ("SX1", 999, 79));
    odd.json("htp_backend_ext_config.json", &ext(json!(69)));
    assert!(std::fs::remove_dir_all(odd.base.path().join("out")).is_ok());
    assert_eq!(odd.written(&odd.found()).1.device.soc, "SM8750", "a name that is no SoC's: the number tells it");
    odd.json("htp_backend_ext_config.json", &ext(Value::Null));
    let error = write(&odd.found(), &odd.base.path().join("other"), true, false).expect_err("no number");
    assert!(matches!(error, ImportError::NotTold { option: "--device-soc SM8650", .. }), "{error}");
}

#[test]
fn what_is_there_is_not_written_over() {
    let folder = bundle();
    let found = folder.found();
    let (written, _) = folder.written(&found);
    let scenario = written.scenario.unwrap();
    std::fs::write(&scenario, "mine").unwrap();
    let out = folder.base.path().join("out");
    let again = write(&found, &out, true, false).expect_err("there").to_string();
    assert!(again.contains("is there already") && again.ends_with("write over it with --force"), "{again}");
    std::fs::remove_file(&written.geometry).unwrap();
    assert!(write(&found, &out, true, false).is_err());
    assert!(!written.geometry.exists(), "nothing is written if something can't be");
    assert_eq!(std::fs::read_to_string(&scenario).unwrap(), "mine");
    write(&found, &out, true, true).expect("forced");
    assert!(std::fs::read_to_string(&scenario).unwrap().starts_with("# A Genie bundle imported from ../qwen-bundle\n"));
}

#[test]
fn names_that_mean_something_elsewhere_are_taken_as_they_are() {
    let folder = Folder::new("a [b]\n\"c\" * #d");
    let mut own = config();
    own["dialog"]["engine"]["model"]["binary"]["ctx-bins"] = json!(["w4a16 [x]*.bin"]);
    own["dialog"]["engine"]["backend"]["extensions"] = Value::Null;
    folder.json("genie_config.json", &own).file("w4a16 [x]*.bin", binary(1, 0..1, SM8750)).file("tokenizer.json", "{}");
    let found = folder.found();
    assert_eq!(found.name, "w4a16-x");
    let (_, scenario) = folder.written(&found);
    let Some(ArtifactSource::Files { files, .. }) = &plan(&scenario).cells[0].source else { panic!("no files") };
    assert_eq!(files, &["genie_config.json", "tokenizer.json", "w4a16 [x]*.bin"]);
    // The configuration stands for its folder.
    assert_eq!(look(&folder.path.join("genie_config.json")).unwrap(), found);
}
