//! What the manifest says about device, runtimes and environment. Every field may be missing.

use serde_json::Value;

use super::figures::DASH;
use super::groups::Colours;
use super::view::{Fact, RuntimeView, Section};
use crate::report::charts::swatch_svg;
use crate::results::read::visible;

/// Most facts of one section: a manifest is small, and a page has an end.
const MOST: usize = 150;

/// A scalar as text.
pub fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) if !text.is_empty() => Some(visible(text)),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(yes) => Some(if *yes { "yes" } else { "no" }.to_owned()),
        _ => None,
    }
}

/// A field by path.
pub fn at<'a>(value: &'a Value, path: &[&str]) -> &'a Value {
    path.iter().fold(value, |value, key| value.get(key).unwrap_or(&Value::Null))
}

/// The devices: one object or a list of them.
fn devices(manifest: &Value) -> Vec<&Value> {
    match (at(manifest, &["device"]), at(manifest, &["devices"])) {
        (device @ Value::Object(_), _) => vec![device],
        (Value::Array(list), _) | (_, Value::Array(list)) => list.iter().collect(),
        (_, Value::Object(named)) => named.values().collect(),
        _ => Vec::new(),
    }
}

/// What a device computes on: the chip of a phone or board, the processor of a machine that runs its own engines or an emulator. One that is
/// not known is only itself.
pub fn chip(manifest: &Value, device: &str, class: &str) -> String {
    let found = devices(manifest).into_iter().find(|found| at(found, &["name"]).as_str() == Some(device)).unwrap_or(&Value::Null);
    let part = |key: &str| text(at(found, &[key]));
    let chip = match class {
        "pc" | "emulator" => part("cpu"),
        _ => part("soc").or_else(|| part("soc_model").map(|model| format!("soc_model {model}"))),
    };
    chip.unwrap_or_else(|| device.to_owned())
}

/// The facts of the run's head.
pub fn facts(manifest: &Value, run: &str) -> Vec<Fact> {
    let mut facts = Vec::new();
    let mut push = |name: &str, value: Option<String>| facts.push(Fact { name: name.into(), value: value.unwrap_or_else(|| DASH.into()) });
    let field = |path: &[&str]| text(at(manifest, path));
    for device in devices(manifest) {
        let part = |key: &str| text(at(device, &[key]));
        let unit = |key: &str, unit: &str| part(key).map(|value| format!("{value} {unit}"));
        push("Device", join(&[part("name"), part("os"), part("arch")]));
        push("Processor", join(&[part("cpu"), unit("cores", "cores"), unit("memory_mb", "MB of memory")]));
        if let Some(soc) = join(&[
            part("soc"),
            part("soc_model").map(|model| format!("soc_model {model}")),
            part("htp_arch").map(|arch| format!("HTP {arch}")),
        ]) {
            // A machine of x86_64 has none: what it says is which one the emulator takes itself for.
            push(if matches!(part("class").as_deref(), Some("pc" | "emulator")) { "Emulates" } else { "SoC" }, Some(soc));
        }
        push("Kernel", part("kernel"));
    }
    phone(at(manifest, &["device_says", "facts"]), &mut push);
    let scenario_file = field(&["scenario", "path"]);
    let hash = field(&["scenario", "sha256"]).map(|hash| format!("SHA-256 {}…", hash.chars().take(12).collect::<String>()));
    push("Scenario", join(&[scenario_file, hash]));
    push("Started", field(&["started_utc"]));
    push("Finished", field(&["finished_utc"]).or_else(|| Some("not recorded: the run may have been interrupted".into())));
    push("Run", Some(run.to_owned()));
    push("Tool", tool(manifest));
    push("Seed", field(&["seed"]));
    facts
}

/// What a phone or board said about itself when the run ended; nothing for this machine.
fn phone(says: &Value, push: &mut impl FnMut(&str, Option<String>)) {
    if !says.is_object() {
        return;
    }
    let field = |path: &[&str]| text(at(says, path));
    let with = |path: &[&str], unit: &str| field(path).map(|value| format!("{value} {unit}"));
    push("Model", join(&[field(&["manufacturer"]), field(&["model"])]));
    let android = field(&["android"]).map(|v| format!("Android {v}"));
    push("Build", join(&[android, field(&["build"]), field(&["selinux"]).map(|s| format!("SELinux {s}"))]));
    push(
        "Battery",
        join(&[with(&["battery", "level_percent"], "%"), field(&["battery", "status"]), with(&["battery", "temperature_c"], "°C")]),
    );
    push("Thermal status", field(&["thermal"]));
    let governors = at(says, &["cpu"]).as_array().into_iter().flatten().filter_map(|policy| text(at(policy, &["governor"])));
    let governors: std::collections::BTreeSet<String> = governors.collect();
    push("CPU governor", join(&governors.into_iter().map(Some).collect::<Vec<_>>()));
    let launch = |key: &str| field(&["launch", key]);
    push(
        "Started from",
        join(&[launch("context"), launch("cpuset").map(|c| format!("cpuset {c}")), launch("nice").map(|n| format!("nice {n}"))]),
    );
}

/// Name and version of the program that measured.
pub fn tool(manifest: &Value) -> Option<String> {
    let version = text(at(manifest, &["tool", "version"]))?;
    let commit = text(at(manifest, &["tool", "commit"]))
        .map_or_else(String::new, |commit| format!(" ({})", commit.chars().take(12).collect::<String>()));
    Some(format!("bench {version}{commit}"))
}

fn join(parts: &[Option<String>]) -> Option<String> {
    let known: Vec<&str> = parts.iter().flatten().map(String::as_str).collect();
    (!known.is_empty()).then(|| known.join(", "))
}

/// The runtimes, as the manifest has them: `{"ready": {"version"}}`, `{"missing": {"what", "remedy"}}` or `{"refused": {"reason"}}`.
pub fn runtimes(manifest: &Value, colours: &Colours) -> Vec<RuntimeView> {
    let Some(runtimes) = at(manifest, &["runtimes"]).as_object() else { return Vec::new() };
    let view = |(backend, says): (&String, &Value)| {
        let backend = visible(backend);
        let field = |state: &str, key: &str| text(at(says, &[state, key]));
        let (state, text, remedy) = if says.get("missing").is_some() {
            ("missing", field("missing", "what").unwrap_or_else(|| "something".into()), field("missing", "remedy"))
        } else if says.get("refused").is_some() {
            ("refused", field("refused", "reason").unwrap_or_else(|| "no reason given".into()), None)
        } else {
            ("ready", field("ready", "version").unwrap_or_else(|| "version not stated".into()), None)
        };
        RuntimeView { key: swatch_svg(colours.get(&backend)), backend, state, text, remedy }
    };
    let mut found: Vec<RuntimeView> = runtimes.iter().map(view).collect();
    // What ran comes first.
    found.sort_by(|a, b| (a.state != "ready", &a.backend).cmp(&(b.state != "ready", &b.backend)));
    found
}

/// Sections of the environment: what the manifest holds beyond the head.
pub fn environment(manifest: &Value) -> Vec<Section> {
    let mut sections = Vec::new();
    for (key, title) in
        [("device", "Device"), ("devices", "Devices"), ("host", "Host"), ("settings", "Settings"), ("segments", "Segments of the run")]
    {
        let mut facts = Vec::new();
        flatten(at(manifest, &[key]), "", &mut facts);
        if !facts.is_empty() {
            sections.push(Section { title: title.into(), facts });
        }
    }
    sections
}

/// Warnings of the run.
pub fn warnings(manifest: &Value) -> Vec<String> {
    let list = at(manifest, &["warnings"]).as_array();
    list.into_iter().flatten().map(|warning| text(warning).unwrap_or_else(|| warning.to_string())).collect()
}

fn flatten(value: &Value, name: &str, facts: &mut Vec<Fact>) {
    if facts.len() >= MOST {
        return;
    }
    let below = |key: &str| if name.is_empty() { key.to_owned() } else { format!("{name}.{key}") };
    let below = |key: &str| visible(&below(key));
    match value {
        Value::Object(fields) => fields.iter().for_each(|(key, value)| flatten(value, &below(key), facts)),
        Value::Array(list) if list.iter().all(|item| text(item).is_some()) && !list.is_empty() => {
            let name = if name.is_empty() { "begun" } else { name };
            facts.push(Fact { name: name.to_owned(), value: list.iter().filter_map(text).collect::<Vec<_>>().join(", ") });
        }
        Value::Array(list) => list.iter().enumerate().for_each(|(index, value)| flatten(value, &below(&index.to_string()), facts)),
        Value::Null if name.is_empty() => {}
        scalar => facts.push(Fact { name: name.to_owned(), value: text(scalar).unwrap_or_else(|| DASH.to_owned()) }),
    }
}
