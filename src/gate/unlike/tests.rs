use std::path::Path;

use serde_json::{Value, json};

use super::*;
use crate::gate::run::load;

/// What two manifests made of one differ in, as `what: a | b | weight`.
fn of_manifests(change: impl FnOnce(&mut Value, &mut Value)) -> Vec<String> {
    let manifest = json!({
        "tool": {"version": "0.1.0"}, "scenario": {"name": "s", "sha256": "00"}, "seed": 1, "segments": ["t"], "pins": [],
        "device": {"name": "R1", "class": "phone", "os": "android", "arch": "aarch64", "cpu": "Kryo", "cores": 8, "memory_mb": 16_000,
            "kernel": "6.1", "soc": "SM8650", "soc_model": 57},
        "device_says": {"facts": {"model": "X", "build": "b1", "dsp": {"firmware": {"value": {"value": "CDSP.1", "source": "f"}}},
            "cpu": [{"name": "policy0", "governor": "walt", "max_khz": 2_000_000}, {"name": "policy4", "governor": "walt", "max_khz": 3_000_000}]}},
        "environment": {"ambient_c": 22.0, "case": "none"}, "host": {"load": "0.10 0 0 1/80 9", "cpu_governor": "powersave"},
        "runtimes": {"genie": {"ready": {"version": "2.40"}}, "mnn": {"missing": {"what": "w", "remedy": "r"}}}, "programs": {"runner": "aa"},
    });
    let mut pair = (manifest.clone(), manifest);
    change(&mut pair.0, &mut pair.1);
    let run = |manifest| Run { manifest, ..Run::default() };
    let words = |d: &Difference| format!("{}: {} | {} | {:?}", d.what, d.a, d.b, d.weight);
    of_runs(&run(pair.0), &run(pair.1)).iter().map(words).collect()
}

#[test]
fn two_runs_of_the_same_differ_in_nothing() {
    assert_eq!(of_manifests(|_, _| ()), Vec::<String>::new());
}

#[test]
fn what_a_manifest_states_is_compared_by_its_weight() {
    let one = |pointer: &str, value: Value| {
        let mut found = of_manifests(|_, b| *b.pointer_mut(pointer).expect("a place") = value);
        assert_eq!(found.len(), 1, "{pointer}: {found:?}");
        found.remove(0)
    };
    assert_eq!(one("/device/soc", json!("SM8750")), "SoC: SM8650 | SM8750 | Bars");
    assert_eq!(one("/device/soc_model", json!(69)), "QNN soc_model: 57 | 69 | Bars");
    assert_eq!(one("/device/name", json!("R2")), "device: R1 | R2 | Serious");
    assert_eq!(one("/runtimes/genie/ready/version", json!("2.41")), "runtime of genie: 2.40 | 2.41 | Serious");
    assert_eq!(one("/runtimes/mnn", json!({"ready": {"version": "3.6"}})), "runtime of mnn: missing | 3.6 | Serious");
    assert_eq!(one("/programs/runner", json!("bb")), "program runner: aa | bb | Serious");
    assert_eq!(
        one("/device_says/facts/dsp/firmware", json!({"value": {"value": "CDSP.2", "source": "f"}})),
        "firmware of the compute DSP: CDSP.1 | CDSP.2 | Serious"
    );
    // What one side can't tell is no difference that anybody knows of.
    assert_eq!(
        one("/device_says/facts/dsp/firmware", json!({"denied": "Permission denied"})),
        "firmware of the compute DSP: CDSP.1 | unstated | Minor"
    );
    assert_eq!(
        one("/device_says/facts/cpu/1/max_khz", json!(2_500_000)),
        "caps of the CPU, kHz: 2000000, 3000000 | 2000000, 2500000 | Serious"
    );
    assert_eq!(one("/device_says/facts/cpu/0/governor", json!("performance")), "CPU governors: walt | performance, walt | Serious");
    assert_eq!(
        one("/pins", json!([{"name": "stay-on", "asked": "on", "found": "on"}, {"name": "gov", "asked": "p", "refused": "no"}])),
        "what was pinned: nothing | stay-on=on; gov=p (refused) | Serious"
    );
    // A phone was measured, not the computer that it hangs on.
    assert_eq!(one("/host/cpu_governor", json!("performance")), "CPU governor: powersave | performance | Minor");
    assert_eq!(one("/host/load", json!("1.20 0 0 1/80 9")), "load of the computer at the begin (1 min): 0.1 | 1.2 | Minor");
    assert_eq!(one("/scenario/sha256", json!("01")), "scenario file: 00 | 01 | Minor");
}

#[test]
fn small_differences_that_always_are_there_are_none() {
    let found = of_manifests(|_, b| {
        b["host"]["load"] = json!("1.00 0 0 1/80 9");
        b["device"]["memory_mb"] = json!(15_900);
        b["environment"]["ambient_c"] = json!(25.0);
    });
    assert_eq!(found, Vec::<String>::new());
}

/// Rule R19.
#[test]
fn the_air_is_to_be_stated_and_alike() {
    let ambient = |a: Value, b: Value| {
        of_manifests(|one, other| {
            one["environment"]["ambient_c"] = a;
            other["environment"]["ambient_c"] = b;
        })
    };
    assert_eq!(ambient(json!(22.0), json!(25.5)), ["ambient temperature: 22 °C | 25.5 °C | Serious"]);
    assert_eq!(ambient(json!(22.0), Value::Null), ["ambient temperature: 22 °C | unstated | Serious"]);
    assert_eq!(ambient(Value::Null, Value::Null), ["ambient temperature: unstated | unstated | Serious"]);
    let on_a_pc = of_manifests(|a, b| {
        for manifest in [a, b] {
            manifest["device"]["class"] = json!("pc");
            manifest["environment"] = json!({});
        }
    });
    assert_eq!(on_a_pc, ["ambient temperature: unstated | unstated | Minor"]);
}

#[test]
fn the_processor_of_a_pc_is_its_chip_and_the_emulated_one_is_not() {
    let found = of_manifests(|a, b| {
        for manifest in [&mut *a, &mut *b] {
            manifest["device"]["class"] = json!("pc");
        }
        b["device"]["cpu"] = json!("Xeon");
        b["device"]["soc_model"] = json!(69);
    });
    assert_eq!(found, ["processor: Kryo | Xeon | Bars", "QNN soc_model: 57 | 69 | Serious"]);
}

#[test]
fn a_manifest_that_can_not_be_read_is_the_first_thing_to_say() {
    let found = of_manifests(|_, b| *b = Value::Null);
    assert_eq!(found, ["manifest, so nobody knows what else differs: there | can't be read | Serious"]);
}

fn cell(fields: &[(&'static str, &str)], state: &[(&'static str, &[&str])]) -> Cell {
    Cell {
        fields: fields.iter().map(|(name, value)| (*name, (*value).to_owned())).collect(),
        state: state.iter().map(|(name, values)| (*name, values.iter().map(|v| (*v).to_owned()).collect())).collect(),
        ..Cell::default()
    }
}

#[test]
fn ways_to_measure_bar_their_metrics_alone() {
    let a = cell(&[("device_class", "phone"), ("ttft_method", "token_event"), ("decode_method", ""), ("load_state", "warm")], &[]);
    let b = cell(
        &[("device_class", "phone"), ("ttft_method", "runtime_reported"), ("decode_method", "composed"), ("load_state", "mixed")],
        &[],
    );
    let found = of_cells(&a, &b);
    let words: Vec<String> = found.iter().map(|d| format!("{} {:?} {:?}", d.words(), d.weight, d.metrics)).collect();
    assert_eq!(
        words,
        [
            r#"how the first token was timed: token_event in A, runtime_reported in B Bars ["ttft_ms"]"#,
            r#"how decode was timed: measured in A, composed in B Bars ["decode_tok_s", "tpot_ms"]"#,
            r#"page cache at warm loads: warm in A, mixed in B Serious ["load_ms"]"#,
        ]
    );
    assert!(found[0].touches("ttft_ms") && !found[0].touches("decode_tok_s"));
}

#[test]
fn a_class_bars_all_and_what_an_older_bench_did_not_write_bars_nothing() {
    let found = of_cells(&cell(&[("device_class", "pc")], &[]), &cell(&[("device_class", "emulator"), ("launch_context", "shell")], &[]));
    let words: Vec<String> = found.iter().map(|d| format!("{} {:?} {}", d.words(), d.weight, d.touches("anything"))).collect();
    assert_eq!(words, ["device class: pc in A, emulator in B Bars true", "started from: unstated in A, shell in B Serious true"]);
}

/// Rule R29: who names it is no difference by itself.
#[test]
fn a_native_name_that_only_a_scenario_states_is_said_to_be_its_word() {
    let of = |name: &str, from: &str| cell(&[("quant_native", name), ("quant_native_from", from)], &[]);
    let words = |a: &Cell, b: &Cell| of_cells(a, b).iter().map(Difference::words).collect::<Vec<_>>();
    let (told, stated) = (of("HQQ int4", "files"), of("int4 block 32", "scenario"));
    assert_eq!(words(&told, &stated), ["native name of the quantisation: HQQ int4 in A, int4 block 32, as its scenario states in B"]);
    assert_eq!(words(&told, &of("HQQ int4", "scenario")), Vec::<String>::new());
}

/// Medians by hand: 31, 36 and 30.5; 80 and 61 %.
#[test]
fn launches_that_began_warmer_are_said() {
    let a = cell(&[], &[("start_skin_c", &["30", "31", "33"]), ("start_battery_pct", &["80"]), ("start_charging", &["0", "0"])]);
    let hot = cell(&[], &[("start_skin_c", &["36", "35", "37"]), ("start_battery_pct", &["61"]), ("start_charging", &["0", "1"])]);
    let same = cell(&[], &[("start_skin_c", &["30", "31"]), ("start_battery_pct", &["61"]), ("start_charging", &["0"])]);
    let words = |b: &Cell| of_cells(&a, b).iter().map(Difference::words).collect::<Vec<_>>();
    assert_eq!(
        words(&hot),
        [
            "case at the start of launches: 31.0 °C in A, 36.0 °C in B",
            "battery at the start: not charging in A, charging and not charging in B"
        ]
    );
    assert_eq!(words(&same), Vec::<String>::new());
}

/// Rule R6. The groups of two processes are not two groups, and what one side did not write is not known to differ.
#[test]
fn programs_in_other_surroundings_are_said() {
    let a = cell(
        &[],
        &[("cpuset", &["/"]), ("nice", &["0", "0"]), ("cgroup", &["0::/uid_2000/pid_4711"]), ("selinux_domain", &["u:r:shell:s0"])],
    );
    let b =
        cell(&[], &[("cpuset", &["/foreground"]), ("nice", &["0", "-10"]), ("cgroup", &["0::/uid_2000/pid_9130"]), ("affinity", &["4-7"])]);
    let found = of_cells(&a, &b);
    let words: Vec<String> = found.iter().map(|d| format!("{} {:?}", d.words(), d.weight)).collect();
    let wanted = ["cpuset of programs: / in A, /foreground in B Serious", "nice value of programs: 0 in A, -10 and 0 in B Serious"];
    assert_eq!(words, wanted);
}

#[test]
fn what_cells_share_is_said_once_and_the_heaviest_first() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("results/example-pc");
    let (a, mut b) = (load(&folder).expect("the example"), load(&folder).expect("the example"));
    assert!(between(&a, &b, pairs(&a, &b)).iter().all(|d| d.weight == Weight::Minor), "the example differs from itself in nothing");
    for (key, cell) in &mut b.cells {
        if key.cell.starts_with("mnn.") {
            cell.fields.insert("runtime_version", "MNN 3.7".to_owned());
        }
        if key.cell.starts_with("genie.") {
            cell.fields.insert("device_class", "phone".to_owned());
        }
    }
    let found = between(&a, &b, pairs(&a, &b));
    let words: Vec<String> = found.iter().map(|d| format!("{} ({} cells)", d.words(), d.cells.len())).collect();
    assert_eq!(
        words,
        [
            "device class: emulator in A, phone in B (6 cells)",
            "runtime: 3.6.1 in A, MNN 3.7 in B (6 cells)",
            "ambient temperature: unstated in both (0 cells)"
        ]
    );
}

fn pairs<'a>(a: &'a Run, b: &'a Run) -> Vec<(&'a Key, &'a Cell, &'a Cell)> {
    a.cells.iter().map(|(key, cell)| (key, cell, &b.cells[key])).collect()
}
