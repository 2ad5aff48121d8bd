//! `bench estimate` from the command line.

mod support;

use std::{
    fs,
    process::{Command, Output},
};

use support::root;

fn estimate(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_bench")).arg("estimate").args(args).current_dir(root()).output().unwrap()
}

fn said(output: &Output) -> (Option<i32>, String, String) {
    (output.status.code(), String::from_utf8(output.stdout.clone()).unwrap(), String::from_utf8(output.stderr.clone()).unwrap())
}

#[test]
fn a_claim_over_the_roof_is_told_without_a_device() {
    let (code, out, _) = said(&estimate(&["llama-3.1-8b", "--soc", "sm8650", "--lm-head-bits", "8", "--claim", "25"]));
    assert_eq!(code, Some(10), "a script asks by the exit code");
    assert!(out.contains("nothing of it is measured") && out.contains("Assumed, the least of w4a16: weights 4 bits"), "{out}");
    // 4,015,131,648 + 2048 bytes, and 513 tokens of 65,536: 4.0488 GB at 76.8 GB/s.
    let line = |words: &str| out.lines().find(|l| l.contains(words)).unwrap_or_else(|| panic!("no {words} in {out}")).to_owned();
    assert!(line("decode after the prompt at most").contains(" 18.97 "), "{out}");
    assert!(line("share of the roof").contains("error: over the roof"), "{out}");
    assert!(line("prefill at most").contains(" -  needs the NPU's operations a second"), "{out}");
}

/// By hand: the roof is 18.97 tokens/s there.
#[test]
fn a_claim_has_an_exit_code() {
    let code = |more: &[&str]| said(&estimate(&[&["llama-3.1-8b", "--soc", "SM8650", "--lm-head-bits", "8"][..], more].concat())).0;
    assert_eq!([code(&[]), code(&["--claim", "18.9"]), code(&["--claim", "19.1"])], [Some(0), Some(0), Some(10)]);
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("part.toml");
    fs::write(&file, "name = \"m\"\nlayers = 32\nkv-heads = 8\nhead-dim = 128\n").unwrap();
    assert_eq!(said(&estimate(&[file.to_str().unwrap(), "--soc", "SM8650", "--claim", "5"])).0, Some(11), "no roof is known");
}

#[test]
fn json_has_every_figure_with_its_method() {
    let args = [
        "scenarios/models/llama-3.2-3b.toml",
        "--soc",
        "SM8750",
        "--quant",
        "w4",
        "--context",
        "2048",
        "--prompt",
        "128",
        "--format",
        "json",
    ];
    let (code, out, err) = said(&estimate(&args));
    assert_eq!(code, Some(0), "{err}");
    let json: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!((json["method"].as_str(), json["soc"].as_str(), json["context"].as_u64()), (Some("derived"), Some("SM8750"), Some(2048)));
    let figures = json["figures"].as_array().unwrap();
    let value = |name: &str| figures.iter().find(|f| f["name"] == name).unwrap_or_else(|| panic!("no {name}"))["value"].as_f64();
    assert_eq!(value("parameters"), Some(3_212_749_824.0));
    // 2 x 28 x 8 x 128 x 2 bytes, 2048 times.
    assert_eq!((value("kv_kb_per_tok"), value("kv_cache_mb")), (Some(114.688), Some(234.881_024)));
    assert!(figures.iter().all(|f| f["value"].is_number() != f["absent"].is_string()), "{out}");
}

#[test]
fn what_can_not_be_used_says_the_way_out() {
    let (code, _, err) = said(&estimate(&["no-such-model", "--soc", "SM8650"]));
    assert!(code == Some(2) && err.contains("scenarios/models has llama-3.1-8b, "), "{err}");
    let (code, _, err) = said(&estimate(&["../devices/sm8650", "--soc", "SM8650"]));
    assert!(code == Some(2) && err.contains("neither a file or folder"), "{err}");
    let (code, _, err) = said(&estimate(&["llama-3.1-8b", "--soc", "SM9999"]));
    assert!(code == Some(2) && err.contains("not in the catalogue of SoCs, which has SM8450, "), "{err}");
    let (code, _, err) = said(&estimate(&["llama-3.1-8b", "--soc", "SM8650", "--context", "64", "--prompt", "65"]));
    assert!(code == Some(2) && err.contains("does not fit a context of 64"), "{err}");
    for bad in [["--kv-bits", "0"], ["--ram", "-1"], ["--claim", "nan"], ["--group", "0"], ["--quant", "w3"], ["--lm-head-bits", "1e9"]] {
        assert_eq!(said(&estimate(&[&["llama-3.1-8b", "--soc", "SM8650"][..], &bad].concat())).0, Some(2), "{bad:?}");
    }
}

#[test]
fn a_hostile_geometry_is_refused_or_told_in_part() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("g.toml");
    let told = |text: &str| {
        fs::write(&file, text).unwrap();
        said(&estimate(&[file.to_str().unwrap(), "--soc", "SM8650"]))
    };
    let (code, _, err) = told("name = \"m\"\nlayers = 0\n");
    assert!(code == Some(3) && err.contains("layers"), "{err}");
    assert_eq!(told("name = \"m\"\nlayers = 99999999999\n").0, Some(3));
    assert_eq!(told("name = \"m\"\nheads = 7\nkv-heads = 2\n").0, Some(3));
    // A part is enough for a part, and a name does not steer the terminal.
    let (code, out, _) = told("name = \"m\\u001b[31m\"\nlayers = 32\nkv-heads = 8\nhead-dim = 128\n");
    assert!(code == Some(0) && !out.contains('\u{1b}') && out.contains(" 65.54  elements of 8 bits"), "{out}");
    assert!(out.contains("the geometry does not tell hidden, heads, ffn, vocab"), "{out}");
    let (code, out, _) = told(
        "name = \"m\"\nlayers = 4294967295\nhidden = 4294967295\nheads = 4294967295\nkv-heads = 4294967295\nhead-dim = 4294967294\nffn = 4294967295\nvocab = 4294967295\n",
    );
    assert!(code == Some(0) && !out.contains("inf") && !out.contains("NaN"), "{out}");
}
