//! Expansion of the matrix: order, exclusion, collapse of axes, ids.

use bench_backend_api::{Axis, Cell, Setting, Unit};

use super::*;

fn cells(text: &str) -> Vec<(Cell, Option<String>)> {
    let scenario = check(text).expect("good");
    scenario.plan(&BACKENDS, &fake::device()).cells.into_iter().map(|c| (c.cell, c.skipped)).collect()
}

fn ids(text: &str) -> Vec<String> {
    cells(text).into_iter().map(|(c, _)| c.id()).collect()
}

/// The good scenario with one model, quant and prompt length, and further lines in its matrix.
fn small(lines: &str) -> String {
    with("\"fp16\", \"w4a16\"", "\"fp16\"").replace("[32, 96]", "32").replace("[measure]", &format!("{lines}\n[measure]"))
}

#[test]
fn the_last_list_varies_fastest() {
    let short: Vec<String> = ids(GOOD).iter().map(|id| id.rsplit_once('-').expect("a hash").0.to_owned()).collect();
    assert_eq!(
        short,
        [
            "alpha.tiny.fp16.p32.g16",
            "alpha.tiny.fp16.p96.g16",
            "alpha.tiny.w4a16.p32.g16",
            "alpha.tiny.w4a16.p96.g16",
            "beta.tiny.fp16.p32.g16",
            "beta.tiny.fp16.p96.g16",
            "beta.tiny.w4a16.p32.g16",
            "beta.tiny.w4a16.p96.g16",
        ]
    );
}

/// Hashes computed by Python: `hashlib.sha256(b"alpha|tiny|fp16|(32, 16)|perf-profile=burst").hexdigest()[:8]`, and the same with
/// nothing after the last bar. A change here would orphan every recorded run.
#[test]
fn ids_never_change() {
    assert_eq!(ids(&small("perf-profile = \"burst\""))[0], "alpha.tiny.fp16.p32.g16.perf-profile=burst-8d621aa9");
    assert_eq!(ids(&small(""))[0], "alpha.tiny.fp16.p32.g16-fb5ee41b");
}

#[test]
fn axes_that_a_backend_cannot_set_collapse() {
    let list = cells(&small("perf-profile = [\"burst\", \"balanced\"]\nthreads = [1, 4]\nkv = [\"fp16\", \"int8\"]"));
    let settings: Vec<_> = list
        .iter()
        .map(|(c, _)| {
            (c.backend.as_str(), c.axes[&Axis::PerfProfile].to_string(), c.axes[&Axis::Threads].to_string(), c.axes[&Axis::Kv].clone())
        })
        .collect();
    let expected = [("alpha", "burst", "n/a"), ("alpha", "balanced", "n/a"), ("beta", "fixed:burst", "1"), ("beta", "fixed:burst", "4")];
    assert_eq!(settings, expected.map(|(b, p, t)| (b, p.to_owned(), t.to_owned(), Setting::NotApplicable)));
}

#[test]
fn asking_for_the_default_does_not_rename_a_cell() {
    let plain = ids(&small(""));
    assert_eq!(ids(&small("context = 128\nbatch = 1")), plain);
    assert_eq!(ids(&small("unit = \"npu\""))[0], plain[0], "alpha's default is the NPU");
    let list = cells(&small("unit = [\"npu\", \"cpu\"]"));
    let units: Vec<_> = list.iter().map(|(c, _)| (c.backend.as_str(), c.unit, c.asked(Axis::Unit))).collect();
    assert_eq!(units[..2], [("alpha", Unit::Npu, None), ("alpha", Unit::Cpu, Some("cpu"))]);
}

#[test]
fn what_cannot_be_measured_is_skipped_with_its_reason() {
    let list = cells(&small("unit = [\"npu\", \"cpu\"]"));
    assert_eq!((list[2].0.backend.as_str(), list[2].0.unit, list[2].1.as_deref()), ("beta", Unit::Npu, Some("unit npu: the CPU only")));
    assert_eq!(list[3].1, None);
    let long = cells(&small("").replace("gen-tokens = [16]", "gen-tokens = 64").replace("prompt-tokens = 32", "prompt-tokens = [64, 96]"));
    assert_eq!(long[0].1, None, "64 + 64 fills the context to the last token");
    assert_eq!(long[1].1.as_deref(), Some("context 128 is shorter than 96 prompt + 64 generated tokens"));
    let context = cells(&small("context = [32, 256]"));
    assert_eq!(context[0].1.as_deref(), Some("context 32 is shorter than 32 prompt + 16 generated tokens"));
    assert_eq!((context[1].0.model.context, context[1].0.asked(Axis::Context)), (256, Some("256")));
    let none = cells(&GOOD.replace("\"fp16\", ", ""));
    assert_eq!(none[0].1.as_deref(), Some("no [[artifact]] for tiny w4a16 on alpha, and alpha can make only fp16"));
}

#[test]
fn a_value_that_no_backend_can_set_is_an_error() {
    assert_eq!(
        only(&small("unit = [\"cpu\", \"gpu\"]")),
        "13:16 no backend of the matrix can set `unit` to `gpu` / alpha: no GPU; beta: no GPU; they can: cpu, npu"
    );
    assert_eq!(only(&small("variant = \"a b\"")), "13:11 `a b` can't be a value of `variant` / use 1 to 64 characters without spaces");
}

#[test]
fn exclude_takes_lists_and_works_before_the_collapse() {
    let text = with(
        "[measure]",
        "exclude = [{ backend = \"alpha\", quant = [\"fp16\", \"w4a16\"], prompt-tokens = 96 }, { backend = [\"beta\"] }]\n[measure]",
    );
    assert_eq!(ids(&text).len(), 2);
    let threads = small("threads = [1, 4]\nexclude = [{ backend = \"alpha\", threads = 1 }]");
    assert_eq!(cells(&threads).len(), 3, "alpha's other value still gives its one cell");
}

#[test]
fn commands_of_the_scenario_are_backends() {
    let text = small("threads = [1, 2]\nunit = \"cpu\"").replace("\"alpha\", \"beta\"", "\"mine\"")
        + "[backends.mine]\ncommand = [\"python3\", \"./Cargo.toml\"]\nunit = \"npu\"\n";
    let scenario = check(&text).expect("good");
    let command = &scenario.commands[0];
    assert_eq!((command.id.as_str(), command.unit, command.command[0].as_str()), ("mine", Unit::Npu, "python3"));
    assert!(Path::new(&command.command[1]).is_absolute(), "a path is relative to the scenario, not to the work folder");
    let plan = scenario.plan(&BACKENDS, &fake::device());
    assert_eq!(plan.cells.len(), 2);
    let cell = &plan.cells[1];
    assert_eq!(
        (cell.cell.unit, cell.cell.asked(Axis::Threads), &cell.cell.axes[&Axis::Unit]),
        (Unit::Npu, Some("2"), &Setting::NotApplicable)
    );
    assert_eq!(cell.skipped.as_deref(), Some("no [[artifact]] for tiny fp16 on mine"));
}
