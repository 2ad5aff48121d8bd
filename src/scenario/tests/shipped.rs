//! The files under `scenarios/`.

use super::{
    super::{load, schema},
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
