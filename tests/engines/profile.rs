//! What the profiles and phases of the real engines must say.

use std::{collections::BTreeMap, path::Path};

use crate::support::{Row, number, table};

/// The parts of each stage sum to it, and the stages are those that the other tables have.
pub fn where_the_time_goes(run_dir: &Path, cells: &[&Row]) {
    let phases = table(run_dir, "phases.csv");
    for cell in cells {
        let of = |pass: &str, stage: &str| {
            // A load may have been a cold one.
            let same = |r: &Row| r["stage"].strip_suffix("_cold").unwrap_or(&r["stage"]) == stage;
            let rows = phases.iter().filter(|r| r["cell"] == cell["cell"] && r["pass"] == pass && same(r));
            rows.map(|r| (r["phase"].as_str(), (number(r, "ms").unwrap(), number(r, "share").unwrap()))).collect::<BTreeMap<_, _>>()
        };
        let backend = cell["backend"].as_str();
        for (stage, least, whole_ms, parts) in [
            ("prefill", 0.9, number(cell, "ttft_ms"), &["h2d", "execute", "d2h", "sample"][..]),
            ("decode", 0.97, number(cell, "tpot_ms"), &["h2d", "execute", "d2h", "sample"]),
            ("load", 0.9, number(cell, "first_launch_load_ms"), &["read", "library", "init", "prepare", "allocate"]),
        ] {
            let (rows, name) = (of("measure", stage), format!("{stage} of {}", cell["cell"]));
            let [ms, share] = [|v: &(f64, f64)| v.0, |v: &(f64, f64)| v.1].map(|pick| rows.values().map(pick).sum::<f64>());
            assert!((share - 1.0).abs() < 1e-4, "{name}: shares sum to {share}");
            // The one launch's mean over two queries against their median.
            assert!((ms / whole_ms.unwrap() - 1.0).abs() < 1e-3, "{name}: {ms} of {whole_ms:?}");
            if backend == "genie" && stage != "load" {
                assert_eq!(rows.keys().copied().collect::<Vec<_>>(), ["query"], "{name}: Genie shows nothing of it");
                continue;
            }
            let named: f64 = parts.iter().filter_map(|phase| Some(rows.get(phase)?.1)).sum();
            assert!(named > least, "{name}: {named} in {rows:?}");
            let main = if stage == "load" { "prepare" } else { "execute" };
            assert!(rows[main].1 > 0.0 && rows.contains_key("unaccounted"), "{name}: {rows:?}");
        }
        if backend == "ort-qnn" {
            let rows = of("profile", "decode");
            let inside: f64 =
                ["runtime", "host+rpc+dsp", "accelerator"].map(|part| rows[format!("execute/{part}").as_str()].0).iter().sum();
            assert!((inside / rows["execute"].0 - 1.0).abs() < 1e-3, "the emulator's executions: {rows:?}");
            assert!(rows["execute/accelerator"].1 > 0.5 && rows["h2d"].1 < 0.2, "{rows:?}");
        }
    }
}

/// Parts, sums and places of real profiles, against the graph as it is made and against what the tools print of the whole.
pub fn operations_have_their_places(run_dir: &Path, layers: &[Row]) {
    let placement = table(run_dir, "placement.csv");
    for backend in ["ort-qnn", "genie", "mnn"] {
        for phase in ["prefill", "decode"] {
            let of: Vec<&Row> = layers.iter().filter(|l| l["backend"] == backend && l["phase"] == phase).collect();
            let share = |column: &str, word: &str| of.iter().filter(|l| l[column] == word).filter_map(|l| number(l, "share")).sum::<f64>();
            assert!(
                share("part", "other") < 0.01,
                "{backend} {phase}: {:?}",
                of.iter().filter(|l| l["part"] == "other").collect::<Vec<_>>()
            );
            assert!(share("op_class", "") < 0.01, "{backend} {phase}");
            // Both blocks compute the same; what engines move at a graph's ends belongs to one of them.
            let block = |number: &str| of.iter().filter(|l| l["block"] == number && l["op_class"] == "compute").count();
            assert_eq!((block("0"), block("2")), (block("1"), 0), "{backend} {phase}");
            for part in ["norm", "q_proj", "k_proj", "v_proj", "o_proj", "rope", "attention", "mlp", "lm_head"] {
                assert!(of.iter().any(|l| l["part"] == part), "{backend} {phase}: no {part}");
            }
            let placed: Vec<&Row> = placement.iter().filter(|p| p["backend"] == backend && p["phase"] == phase).collect();
            let unit = if backend == "mnn" { "cpu" } else { "npu" };
            assert_eq!(
                placed.iter().map(|p| (p["unit"].as_str(), p["share"].as_str())).collect::<Vec<_>>(),
                [(unit, "1")],
                "{backend} {phase}"
            );
            assert_eq!(placed[0]["ops"], of.len().to_string());
            if backend != "mnn" {
                // QNN prints cycles of the whole graph beside those of its operations: they account for all of it.
                let (sum, total) = (number(placed[0], "value").unwrap(), number(of[0], "graph_total").unwrap());
                assert!((sum / total - 1.0).abs() < 1e-3, "{backend} {phase}: {sum} of {total} cycles");
                assert!((number(placed[0], "accounted").unwrap() - 1.0).abs() < 1e-3);
                let folded = of.iter().filter(|l| l["value"] == "0").count();
                assert!(
                    folded > 0
                        && of.iter().filter(|l| l["folded"] == "1").count() == folded
                        && placed[0]["ops_folded"] == folded.to_string()
                );
            }
        }
    }
    assert!(table(run_dir, "fallbacks.csv").is_empty());
    let support = table(run_dir, "support.csv");
    assert!(
        support.len() == 3 && support.iter().all(|s| s["support"] == "runs" && s["cells"] == "2" && s["cells_ok"] == "1"),
        "{support:?}"
    );
}
