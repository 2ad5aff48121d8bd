//! The private copy of `genie_config.json` (rule R4): the user's own, or a minimal one, with greedy sampling, the asked length, local paths
//! and no stop.

use bench_backend_api::{Axis, Failure, FailureKind, Launch, Unit, note, tool};
use serde_json::{Value, json};

/// Name of the copy in the work folder.
pub const CONFIG: &str = "genie_config.json";
/// Name of the HTP's configuration beside it.
pub const EXTENSION: &str = "htp_backend_ext_config.json";

/// What a copy is made for.
#[derive(Debug, Clone, Copy, Default)]
pub struct Wanted {
    /// Tokens out, where the tool takes the number from the configuration only.
    pub max_tokens: Option<u32>,
    /// The HTP's configuration is staged beside it.
    pub extension: bool,
}

/// The copy.
///
/// # Errors
/// The configuration, or the artifact, is not Genie's.
pub fn config(launch: &Launch<'_>, wanted: Wanted) -> Result<Value, Failure> {
    let cell = launch.cell;
    let Some(g) = &cell.model.geometry else {
        return Err(usage(format!("models.{}: no geometry", cell.model.name)));
    };
    let threads: u32 = cell.asked(Axis::Threads).and_then(|t| t.parse().ok()).unwrap_or(2);
    let own = launch.artifact.meta.get("config");
    let bins = binaries(launch, own)?;
    let mut config = own.cloned().unwrap_or_else(|| {
        json!({"dialog": {"version": 1, "type": "basic",
            "context": {"version": 1, "size": cell.model.context, "n-vocab": g.vocab, "bos-token": g.bos, "eos-token": g.eos, "pad-token": g.pad},
            "tokenizer": {"version": 1, "path": "tokenizer.json"},
            "engine": {"version": 1, "n-threads": threads,
                "backend": {"version": 1, "type": "QnnHtp", "QnnHtp": {"version": 1, "use-mmap": false, "spill-fill-bufsize": 0,
                    "mmap-budget": 0, "poll": false, "cpu-mask": "0x3", "kv-dim": g.head_dim, "pos-id-dim": g.head_dim.map(|d| d / 2),
                    "allow-async-init": false, "rope-theta": g.rope_theta}},
                "model": {"version": 1, "type": "binary", "binary": {"version": 1}}}}})
    });
    let Some(dialog) = config.get_mut("dialog").and_then(Value::as_object_mut) else {
        return Err(usage("the Genie configuration has no table `dialog`".to_owned()));
    };
    dialog.insert("sampler".to_owned(), json!({"version": 1, "seed": 42, "temp": 1.0, "top-k": 1, "top-p": 1.0}));
    dialog.remove("stop-sequence");
    dialog.remove("max-num-tokens");
    if let Some(n) = wanted.max_tokens {
        dialog.insert("max-num-tokens".to_owned(), json!(n));
    }
    if let Some(context) = dialog.get_mut("context").and_then(Value::as_object_mut).filter(|_| own.is_some()) {
        // The last id of a shipped vocabulary is a reserved one or padding, which no model emits. The made model may emit any.
        let vocab = context.get("n-vocab").and_then(Value::as_u64).or(g.vocab.map(u64::from));
        let missing = || usage("the Genie configuration has no `dialog.context.n-vocab`, and the geometry no `vocab`".to_owned());
        context.insert("eos-token".to_owned(), json!(vocab.ok_or_else(missing)?.saturating_sub(1)));
        context.remove("eot-token");
    }
    if let Some(tokenizer) = dialog.get_mut("tokenizer").and_then(Value::as_object_mut) {
        tokenizer.insert("path".to_owned(), json!("tokenizer.json"));
    }
    // Dialogs with a draft model have a list of engines.
    match dialog.get_mut("engine") {
        Some(Value::Object(engine)) => {
            if own.is_some() && cell.asked(Axis::Threads).is_some() {
                engine.insert("n-threads".to_owned(), json!(threads));
            }
            if let Some(binary) = engine.get_mut("model").and_then(|m| m.get_mut("binary")).and_then(Value::as_object_mut) {
                binary.insert("ctx-bins".to_owned(), json!(bins));
            }
            if let Some(backend) = engine.get_mut("backend").and_then(Value::as_object_mut) {
                on_npu(backend.get("type"), cell.unit)?;
                if wanted.extension {
                    backend.insert("extensions".to_owned(), json!(EXTENSION));
                } else if launch.device.remote {
                    backend.remove("extensions");
                }
            }
        }
        Some(Value::Array(_)) if cell.asked(Axis::Threads).is_none() => {}
        Some(Value::Array(_)) => return Err(usage("`threads` can't be set in a Genie configuration with several engines".to_owned())),
        _ => return Err(usage("the Genie configuration has no table `dialog.engine`".to_owned())),
    }
    if launch.device.remote {
        localise(&mut config, launch)?;
    }
    Ok(config)
}

/// What a configuration that was used says of decoding, for [`bench_backend_api::Parsed::notes`]. Nothing of bytes that are none.
pub fn notes(bytes: &[u8]) -> Vec<(&'static str, String)> {
    let root: Value = serde_json::from_slice(bytes).unwrap_or_default();
    let Some(dialog) = root.get("dialog").and_then(Value::as_object) else { return Vec::new() };
    // Dialog types of QAIRT 2.40 in which each step gives one token; the others (ssd-q1, lade, spd, eaglet) guess ahead.
    let kind = dialog.get("type").and_then(Value::as_str).unwrap_or("basic");
    let plain = ["basic", "kv-share", "multistream"].contains(&kind);
    let sampler = &root["dialog"]["sampler"];
    let number = |key: &str| sampler[key].as_f64();
    let greedy = sampler["greedy"] == true || number("top-k") == Some(1.0) || number("temp") == Some(0.0);
    let drawn =
        || ["temp", "top-k", "top-p"].iter().filter_map(|key| Some(format!("{key} {}", number(key)?))).collect::<Vec<_>>().join(", ");
    let sampling = if greedy { "greedy".to_owned() } else { format!("drawn: {}", drawn()) };
    let context = root.pointer("/dialog/context/size").and_then(Value::as_u64).map(|size| (note::CONTEXT, size.to_string()));
    let decoding = if plain { "false" } else { kind }.to_owned();
    [(note::SAMPLING, sampling), (note::SPECULATIVE, decoding)].into_iter().chain(context).collect()
}

/// Gives every path in a configuration its place in the work folder.
pub fn localise(config: &mut Value, launch: &Launch<'_>) -> Result<(), Failure> {
    let files: Vec<String> = launch.artifact.files.iter().cloned().chain([EXTENSION.to_owned()]).collect();
    tool::localise(config, &files)
}

/// The files of the artifact that are staged beside the copy: on another machine all that the configuration may name.
pub fn files<'a>(launch: &Launch<'a>) -> impl Iterator<Item = &'a String> {
    let remote = launch.device.remote;
    let own = |name: &str| [CONFIG, EXTENSION, "meta.json", "make.log"].contains(&name) || has_extension(name, "onnx");
    let wanted = move |f: &&String| {
        if remote { !own(f.as_str()) } else { has_extension(f, "bin") || f.as_str() == "tokenizer.json" }
    };
    launch.artifact.files.iter().filter(wanted)
}

/// The context binaries in the order in which Genie is to load them: as the user's configuration lists them, else prefill before decode.
fn binaries(launch: &Launch<'_>, own: Option<&Value>) -> Result<Vec<String>, Failure> {
    let files = &launch.artifact.files;
    let base = |name: &str| name.rsplit(['/', '\\']).next().unwrap_or(name).to_owned();
    let listed = own.and_then(|c| c.pointer("/dialog/engine/model/binary/ctx-bins")).and_then(Value::as_array);
    if let Some(listed) = listed.filter(|l| !l.is_empty()) {
        let find = |name: &Value| {
            let name = base(name.as_str().unwrap_or_default());
            let found = files.iter().find(|f| base(f) == name).cloned();
            found.ok_or_else(|| usage(format!("the Genie configuration names {name}, which is not among the artifact's files")))
        };
        return listed.iter().map(find).collect();
    }
    let mut bins: Vec<String> = files.iter().filter(|f| has_extension(f, "bin")).cloned().collect();
    if bins.is_empty() {
        return Err(usage("the artifact holds no context binary (*.bin)".to_owned()));
    }
    bins.sort_by_key(|name| (name.contains("decode"), name.clone()));
    Ok(bins)
}

/// Nothing in Genie's output says which processor ran: the configuration does.
fn on_npu(engine: Option<&Value>, unit: Unit) -> Result<(), Failure> {
    match engine.and_then(Value::as_str) {
        Some("QnnHtp") | None => Ok(()),
        Some(other) => Err(usage(format!("{unit} asked, and the Genie configuration's backend is {other}"))),
    }
}

/// What the copy changed of the user's configuration, one pointer a change; kept with the launch.
pub fn changes(before: &Value, after: &Value) -> Vec<String> {
    fn walk(at: &str, before: Option<&Value>, after: Option<&Value>, found: &mut Vec<String>) {
        match (before, after) {
            (Some(Value::Object(a)), Some(Value::Object(b))) => {
                for key in a.keys().chain(b.keys().filter(|k| !a.contains_key(*k))) {
                    walk(&format!("{at}/{key}"), a.get(key), b.get(key), found);
                }
            }
            (a, b) if a == b => {}
            (a, b) => {
                let show = |v: Option<&Value>| v.map_or_else(|| "none".to_owned(), Value::to_string);
                found.push(format!("{at}: {} -> {}", show(a), show(b)));
            }
        }
    }
    let mut found = Vec::new();
    walk("", Some(before), Some(after), &mut found);
    found
}

fn has_extension(name: &str, extension: &str) -> bool {
    name.rsplit('.').next().is_some_and(|e| e.eq_ignore_ascii_case(extension))
}

fn usage(message: String) -> Failure {
    Failure::new(FailureKind::Usage, message)
}
