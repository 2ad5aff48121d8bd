//! Two manifests.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{Difference, FAR_C, UNSTATED, Weight};
use crate::{
    gate::run::Run,
    results::{others::minute, read::visible},
};

/// A place in the manifest whose value is compared as it stands.
struct Fact {
    pointer: &'static str,
    words: &'static str,
    weight: Weight,
}

const fn fact(pointer: &'static str, words: &'static str, weight: Weight) -> Fact {
    Fact { pointer, words, weight }
}

const FACTS: &[Fact] = &[
    fact("/device/soc", "SoC", Weight::Bars),
    fact("/device/name", "device", Weight::Serious),
    fact("/device/class", "class of the device", Weight::Serious),
    fact("/device/os", "operating system", Weight::Serious),
    fact("/device/arch", "architecture", Weight::Bars),
    fact("/device/cores", "cores", Weight::Serious),
    fact("/device/kernel", "kernel", Weight::Serious),
    fact("/device_says/facts/model", "model of the device", Weight::Serious),
    fact("/device_says/facts/build", "Android build", Weight::Serious),
    fact("/device_says/facts/dsp/firmware/value/value", "firmware of the compute DSP", Weight::Serious),
    fact("/device_says/facts/uid", "user that programs run as", Weight::Serious),
    fact("/device_says/facts/selinux", "SELinux", Weight::Minor),
    fact("/device_says/facts/thermal", "Android's thermal status at the end", Weight::Serious),
    fact("/device_says/facts/battery_saver", "battery saver", Weight::Serious),
    fact("/device_says/facts/airplane", "airplane mode", Weight::Minor),
    fact("/device_says/facts/ddr_max_khz/value", "highest clock of the memory, kHz", Weight::Serious),
    fact("/tool/version", "bench", Weight::Serious),
    fact("/tool/commit", "commit of bench", Weight::Serious),
    fact("/scenario/name", "scenario", Weight::Serious),
    fact("/scenario/sha256", "scenario file", Weight::Minor),
    fact("/environment/supply", "supply", Weight::Serious),
    fact("/environment/case", "case", Weight::Serious),
    fact("/python_lock", "Python packages", Weight::Minor),
    fact("/seed", "seed of the order", Weight::Minor),
];

/// Of this computer, which matters where it is what was measured.
const HOST: &[Fact] = &[
    fact("/host/cpu_governor", "CPU governor", Weight::Serious),
    fact("/host/cpu_max_khz", "cap of the CPU, kHz", Weight::Serious),
    fact("/host/swappiness", "swappiness", Weight::Minor),
    fact("/host/boot_id", "boot (the machine was started anew)", Weight::Minor),
];

/// What differs between two runs as a whole.
pub fn of_runs(a: &Run, b: &Run) -> Vec<Difference> {
    let (a, b) = (&a.manifest, &b.manifest);
    if a.is_null() || b.is_null() {
        let word = |manifest: &Value| if manifest.is_null() { "can't be read" } else { "there" };
        return vec![Difference::new("manifest, so nobody knows what else differs", word(a), word(b), Weight::Serious)];
    }
    let plain = |fact: &Fact, weight: Weight| Difference::of(fact.words, at(a, fact.pointer), at(b, fact.pointer), weight);
    let mut found: Vec<Difference> = FACTS.iter().filter_map(|fact| plain(fact, fact.weight)).collect();
    let pc = |manifest: &Value| manifest["device"]["class"] == "pc";
    let both_pc = pc(a) && pc(b);
    // Of a phone the part number is the processor; of a PC the processor's name is, and what its emulator takes itself for is no chip.
    found.extend(plain(&fact("/device/cpu", "processor", Weight::Bars), if both_pc { Weight::Bars } else { Weight::Minor }));
    let chip = fact("/device/soc_model", "QNN soc_model", Weight::Bars);
    found.extend(plain(&chip, if both_pc { Weight::Serious } else { Weight::Bars }));
    found.extend(HOST.iter().filter_map(|fact| plain(fact, if both_pc { fact.weight } else { Weight::Minor })));
    found.extend(memory(a, b));
    found.extend(load(a, b, both_pc));
    found.extend(Difference::of("CPU governors", governors(a), governors(b), Weight::Serious));
    found.extend(Difference::of("caps of the CPU, kHz", caps(a), caps(b), Weight::Serious));
    found.extend(runtimes(a, b));
    found.extend(programs(a, b));
    found.extend(Difference::of("what was pinned", pins(a), pins(b), Weight::Serious));
    found.extend(ambient(a, b, both_pc));
    let segments = |manifest: &Value| manifest["segments"].as_array().map(|all| all.len().to_string());
    found.extend(Difference::of("segments (the run was resumed)", segments(a), segments(b), Weight::Minor));
    found
}

fn at(manifest: &Value, pointer: &str) -> Option<String> {
    text(manifest.pointer(pointer)?)
}

/// A scalar as text; empty text and a 0 for "no such chip" state nothing.
fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) if !text.is_empty() => Some(visible(text)),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(yes) => Some(if *yes { "on" } else { "off" }.to_owned()),
        _ => None,
    }
}

/// The kernel of a virtual machine keeps some megabytes more or less for itself.
fn memory(a: &Value, b: &Value) -> Option<Difference> {
    let mb = |manifest: &Value| manifest["device"]["memory_mb"].as_f64();
    let (a, b) = mb(a).zip(mb(b))?;
    let say = |mb: f64| format!("{mb:.0} MB");
    ((a - b).abs() > 0.05 * a.max(b)).then(|| Difference::new("memory", say(a), say(b), Weight::Serious))
}

/// One core more or less that others kept busy when the runs began.
fn load(a: &Value, b: &Value, pc: bool) -> Option<Difference> {
    let minute = |manifest: &Value| minute(manifest["host"]["load"].as_str()?);
    let (one, other) = minute(a).zip(minute(b))?;
    let weight = if pc { Weight::Serious } else { Weight::Minor };
    let say = |load: f64| format!("{load:.1}");
    ((one - other).abs() >= 1.0).then(|| Difference::new("load of the computer at the begin (1 min)", say(one), say(other), weight))
}

fn policies(manifest: &Value) -> impl Iterator<Item = &Value> {
    manifest.pointer("/device_says/facts/cpu").and_then(Value::as_array).into_iter().flatten()
}

fn governors(manifest: &Value) -> Option<String> {
    let all: BTreeSet<String> = policies(manifest).filter_map(|policy| text(&policy["governor"])).collect();
    joined(all)
}

fn caps(manifest: &Value) -> Option<String> {
    joined(policies(manifest).filter_map(|policy| text(&policy["max_khz"])))
}

fn joined(all: impl IntoIterator<Item = String>) -> Option<String> {
    let all: Vec<String> = all.into_iter().collect();
    (!all.is_empty()).then(|| all.join(", "))
}

fn keys<'a>(a: &'a Value, b: &'a Value) -> BTreeSet<&'a String> {
    [a, b].into_iter().filter_map(Value::as_object).flat_map(|fields| fields.keys()).collect()
}

/// Versions of the backends' runtimes. One that neither could use is none of the comparison's business.
fn runtimes(a: &Value, b: &Value) -> Vec<Difference> {
    let version = |manifest: &Value, id: &str| {
        let says = &manifest["runtimes"][id];
        let ready = says.get("ready").map(|ready| text(&ready["version"]).unwrap_or_else(|| UNSTATED.to_owned()));
        ready.or_else(|| ["missing", "refused"].into_iter().find(|state| says.get(*state).is_some()).map(str::to_owned))
    };
    let all = keys(&a["runtimes"], &b["runtimes"]);
    all.into_iter()
        .filter_map(|id| Difference::of(format!("runtime of {}", visible(id)), version(a, id), version(b, id), Weight::Serious))
        .collect()
}

/// The programs in the measured path.
fn programs(a: &Value, b: &Value) -> Vec<Difference> {
    let hash = |manifest: &Value, name: &str| text(&manifest["programs"][name]);
    let all = keys(&a["programs"], &b["programs"]);
    all.into_iter()
        .filter_map(|name| Difference::of(format!("program {}", visible(name)), hash(a, name), hash(b, name), Weight::Serious))
        .collect()
}

/// What was set on the device, with what became of it. Nothing pinned is a statement.
fn pins(manifest: &Value) -> Option<String> {
    let pins = manifest.get("pins")?.as_array()?;
    let one = |pin: &Value| {
        let name: Vec<String> = ["name", "instance"].iter().filter_map(|key| text(&pin[*key])).collect();
        let state = match (text(&pin["refused"]), text(&pin["found"])) {
            (Some(_), _) => " (refused)".to_owned(),
            (None, None) => " (not read back)".to_owned(),
            (None, Some(_)) => String::new(),
        };
        format!("{}={}{state}", name.join(" "), text(&pin["asked"]).unwrap_or_default())
    };
    Some(if pins.is_empty() { "nothing".to_owned() } else { pins.iter().map(one).collect::<Vec<_>>().join("; ") })
}

/// Rule R19: over 3 C apart, or unstated. On a PC, which has a fan, an unstated one is for the record.
fn ambient(a: &Value, b: &Value, pc: bool) -> Option<Difference> {
    let celsius = |manifest: &Value| manifest["environment"]["ambient_c"].as_f64();
    let say = |value: Option<f64>| value.map_or_else(|| UNSTATED.to_owned(), |c| format!("{c} °C"));
    let (one, other) = (celsius(a), celsius(b));
    let weight = match one.zip(other) {
        Some((one, other)) if (one - other).abs() <= FAR_C => return None,
        None if pc => Weight::Minor,
        _ => Weight::Serious,
    };
    Some(Difference::new("ambient temperature", say(one), say(other), weight))
}
