//! The files under `scenarios/`.

use super::{
    super::{Plan, load, schema},
    fake::Fake,
    *,
};

/// `BENCH_UPDATE=1 cargo test` writes the file anew.
#[test]
fn the_schema_file_is_current() {
    if std::env::var_os("BENCH_UPDATE").is_some() {
        std::fs::write("scenarios/schema.json", schema()).expect("written");
    }
    let file = std::fs::read_to_string("scenarios/schema.json").expect("scenarios/schema.json");
    assert!(file == schema(), "scenarios/schema.json is out of date: BENCH_UPDATE=1 cargo test the_schema_file_is_current");
    assert!(file.ends_with("}\n") && !file.contains("null"));
}

/// The newcomer's scenario has no problem and no warning, and each engine its three quantisations at two lengths.
#[test]
fn the_first_scenario_is_good() {
    let engines = ["genie", "ort-qnn", "mnn", "qnn"].map(|id| Fake { id });
    let backends: Vec<&dyn Backend> = engines.iter().map(|e| e as &dyn Backend).collect();
    let scenario = load(Path::new("scenarios/pc.toml"), &backends, &[]).unwrap_or_else(|p| panic!("{}", p.render(false)));
    assert!(scenario.warnings.is_empty(), "{}", scenario.warnings);
    let plan = scenario.plan(&backends, &fake::device());
    assert_eq!(plan.cells.len(), 24);
    let geometry = plan.cells[0].cell.model.geometry.as_ref().expect("a geometry");
    assert_eq!((geometry.layers, geometry.hidden, geometry.vocab, geometry.seed), (Some(2), Some(128), Some(512), Some(1)));
    let minutes = super::super::estimate(&plan, &backends, &super::super::Assumptions::default()).expected.as_secs_f64() / 60.0;
    assert!((1.0..8.0).contains(&minutes), "{minutes}");
}

/// The scenario that shows the way to a phone needs no files either.
#[test]
fn the_first_scenario_for_a_phone_is_good() {
    let engines = ["genie", "ort-qnn"].map(|id| Fake { id });
    let backends: Vec<&dyn Backend> = engines.iter().map(|e| e as &dyn Backend).collect();
    let scenario = load(Path::new("scenarios/phone.toml"), &backends, &[]).unwrap_or_else(|p| panic!("{}", p.render(false)));
    assert!(scenario.warnings.is_empty(), "{}", scenario.warnings);
    assert_eq!((scenario.device.local, scenario.device.soc_model), (false, 57));
    assert_eq!(scenario.plan(&backends, &fake::device()).runnable().len(), 8);
}

/// Power: lengths that vary independently, so that the joules of a token can be told apart (rule R15).
#[test]
fn the_scenario_for_power_is_good() {
    let engines = ["genie", "ort-qnn"].map(|id| Fake { id });
    let backends: Vec<&dyn Backend> = engines.iter().map(|e| e as &dyn Backend).collect();
    // The fake engines run on the CPU alone.
    let text = std::fs::read_to_string("scenarios/power.toml").expect("shipped").replace("\"npu\"", "\"cpu\"");
    let scenario = check_text("power", &text, Path::new("scenarios"), &backends, &[]).unwrap_or_else(|p| panic!("{p}"));
    assert!(scenario.warnings.is_empty(), "{}", scenario.warnings);
    let power = scenario.power.clone().expect("[power]");
    assert_eq!((power.baseline_ms, power.measured, power.on_battery), (60_000, false, false));
    let plan = scenario.plan(&backends, &fake::device());
    assert_eq!(plan.runnable().len(), 8);
    let rows: Vec<Vec<f64>> =
        plan.cells.iter().map(|c| vec![f64::from(c.cell.workload.prompt_tokens()), f64::from(c.cell.workload.gen_tokens())]).collect();
    let joules: Vec<f64> = rows.iter().map(|r| 0.01 * r[0] + 0.2 * r[1]).collect();
    assert!(crate::analysis::power::least_squares(&rows, &joules).is_ok());
    // It is kept in the plan that a resume goes on with.
    let again = Plan::from_toml(&plan.to_toml().expect("text")).expect("a plan");
    assert_eq!(again.power, Some(power));
}

/// A phone's scenario is right before its files are there: a warning for each artifact with the way to get it, and as many skipped rows.
#[test]
fn the_scenarios_for_phones_say_what_is_missing() {
    // Not in place: whoever has the files has put them there.
    let dir = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(dir.path().join("models")).expect("made");
    for model in ["phi-3.5-mini", "llama-3.2-3b", "llama-3.1-8b"] {
        std::fs::copy(format!("scenarios/models/{model}.toml"), dir.path().join(format!("models/{model}.toml"))).expect("copied");
    }
    let engines = ["genie", "ort-qnn", "mnn", "qnn", "alpha"].map(|id| Fake { id });
    let backends: Vec<&dyn Backend> = engines.iter().map(|e| e as &dyn Backend).collect();
    for (file, soc, soc_model, words) in [
        ("8gen3", "SM8650", 57, "--chipset qualcomm-snapdragon-8gen3 "),
        ("8elite", "SM8750", 69, "--chipset qualcomm-snapdragon-8-elite "),
        ("qcs8550", "QCS8550", 66, "--chipset qualcomm-qcs8550-proxy "),
    ] {
        let text = std::fs::read_to_string(format!("scenarios/{file}.toml")).expect("shipped");
        // The fake engines run on the CPU alone.
        let text = text.replace("\"npu\"", "\"cpu\"");
        let scenario = check_text(file, &text, dir.path(), &backends, &[]).unwrap_or_else(|p| panic!("{p}"));
        assert_eq!((scenario.device.soc.as_str(), scenario.device.soc_model, scenario.device.local), (soc, soc_model, false));
        assert_eq!(scenario.warnings.problems.len(), 8, "{}", scenario.warnings);
        assert!(
            scenario
                .warnings
                .problems
                .iter()
                .all(|p| p.message.contains(" more of its files") && p.help.as_ref().is_some_and(|h| h.len() > 100))
        );
        let plan = scenario.plan(&backends, &fake::device());
        assert_eq!((plan.cells.len(), plan.runnable().len()), (24, 0));
        assert!(plan.cells.iter().any(|c| c.skipped.as_ref().is_some_and(|s| s.contains(words))));
        let mnn = format!("--soc_id={soc_model} ");
        assert!(plan.cells.iter().filter(|c| c.cell.backend == "mnn").all(|c| c.skipped.as_ref().is_some_and(|s| s.contains(&mnn))));
    }
}

/// The shapes add up to the parameters that their authors name, in billions.
#[test]
fn the_shapes_have_their_models_size() {
    for (model, billions) in [("phi-3.5-mini", 3.82), ("llama-3.2-3b", 3.21), ("llama-3.1-8b", 8.03)] {
        let text = with("chunk = 32", &format!("geometry = \"scenarios/models/{model}.toml\""));
        let scenario = check(&text).unwrap_or_else(|p| panic!("{p}"));
        let g = scenario.models["tiny"].model.geometry.clone().expect("a geometry");
        let of = |n: Option<u32>| f64::from(n.expect("told"));
        let (hidden, heads, head_dim) = (of(g.hidden), of(g.heads), of(g.head_dim));
        let attention = 2.0 * hidden * heads * head_dim + 2.0 * hidden * of(g.kv_heads) * head_dim;
        let tables = if g.tied_embeddings { 1.0 } else { 2.0 } * of(g.vocab) * hidden;
        let all = of(g.layers) * (attention + 3.0 * hidden * of(g.ffn)) + tables;
        assert!((all / 1e9 - billions).abs() < 0.01, "{model}: {all}");
        assert!(g.seed.is_none() && (heads * head_dim - hidden).abs() < 0.5);
    }
}

/// The soak is right before its files are there, and so is the time that it takes.
#[test]
fn the_thermal_soak_says_what_is_missing() {
    let dir = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(dir.path().join("models")).expect("made");
    std::fs::copy("scenarios/models/phi-3.5-mini.toml", dir.path().join("models/phi-3.5-mini.toml")).expect("copied");
    let engines = ["genie", "ort-qnn"].map(|id| Fake { id });
    let backends: Vec<&dyn Backend> = engines.iter().map(|e| e as &dyn Backend).collect();
    let text = std::fs::read_to_string("scenarios/thermal-soak.toml").expect("shipped").replace("\"npu\"", "\"cpu\"");
    let scenario = check_text("thermal-soak", &text, dir.path(), &backends, &[]).unwrap_or_else(|p| panic!("{p}"));
    assert_eq!(scenario.warnings.problems.len(), 2, "{}", scenario.warnings);
    let soak = scenario.soak.as_ref().expect("a soak");
    assert_eq!((soak.duration_ms, soak.window_ms, soak.cool_down_ms, soak.trip.len()), (1_800_000, 30_000, 120_000, 3));
    assert_eq!(scenario.plan(&backends, &fake::device()).soaked().len(), 0);
}

/// The nightly scenario is right before its files are there, and so is what its comment says about a PC.
#[test]
fn the_nightly_scenario_is_good_on_a_phone_and_on_a_pc() {
    let dir = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(dir.path().join("models")).expect("made");
    for model in ["phi-3.5-mini", "tiny-llama"] {
        std::fs::copy(format!("scenarios/models/{model}.toml"), dir.path().join(format!("models/{model}.toml"))).expect("copied");
    }
    let engines = ["genie", "ort-qnn", "mnn"].map(|id| Fake { id });
    let backends: Vec<&dyn Backend> = engines.iter().map(|e| e as &dyn Backend).collect();
    let text = std::fs::read_to_string("scenarios/nightly.toml").expect("shipped");
    let scenario = check_text("nightly", &text.replace("\"npu\"", "\"cpu\""), dir.path(), &backends, &[]).unwrap_or_else(|p| panic!("{p}"));
    assert_eq!(scenario.warnings.problems.len(), 2, "{}", scenario.warnings);
    assert!(scenario.soak.is_none() && scenario.settle.is_some() && !scenario.device.local);
    assert_eq!((scenario.measure.repetitions_min, scenario.measure.repetitions_max), (20, 20));

    // The four steps of the comment.
    let cut = |text: &str, from: &str, to: &str| {
        let (head, rest) = text.split_once(from).expect(from);
        let at = rest.find(to).expect(to);
        format!("{head}{}", &rest[at..])
    };
    let pc = text.replacen("[device]\n", "[device]\nlocal = true\n", 1);
    let pc = cut(&pc, "[models.\"phi-3.5-mini\"]", "[matrix]");
    let pc = cut(&pc, "[matrix]", "[measure]");
    let pc = pc.replacen(
        "[measure]",
        "[models.\"tiny-llama\"]\ncontext = 128\nchunk = 32\ngeometry = \"models/tiny-llama.toml\"\n[matrix]\nbackend = \"mnn\"\nmodel = \"tiny-llama\"\n\
         quant = [\"w8\", \"w4\"]\nunit = \"cpu\"\nprompt-tokens = [32, 96]\ngen-tokens = 16\n[measure]",
        1,
    );
    let pc = cut(&cut(&pc, "[settle.zones]", "[telemetry]"), "charging = ", "quiet-cpu");
    let scenario = check_text("nightly", &pc, dir.path(), &backends, &[]).unwrap_or_else(|p| panic!("{p}\n{pc}"));
    assert!(scenario.warnings.is_empty() && scenario.device.local, "{}", scenario.warnings);
    assert_eq!(scenario.plan(&backends, &fake::device()).runnable().len(), 4);
}
