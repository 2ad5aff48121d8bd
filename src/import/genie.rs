//! A Genie bundle, as AI Hub exports it and the SDK's samples have it: `genie_config.json`, context binaries, `tokenizer.json`, and often
//! `htp_backend_ext_config.json` and `metadata.json` (AI Hub's own description of each binary's inputs and outputs).

use std::{collections::BTreeSet, path::Path};

use bench_backend_api::{Geometry, Quant};
use serde_json::Value;

use super::{
    binary::Told,
    error::ImportError,
    files::{self, count, positive, word},
    found::{Chip, Found},
    model::{name_of, part_of, quant_in},
    yaml,
};

const CONFIG: &str = "genie_config.json";
const EXTENSION: &str = "htp_backend_ext_config.json";
const TOKENIZER: &str = "tokenizer.json";

/// The configuration of a bundle: by its usual name, or the only JSON file that describes a dialog with an engine.
pub fn config_of(folder: &Path, names: &[String]) -> Option<String> {
    if names.iter().any(|n| n == CONFIG) {
        return Some(CONFIG.to_owned());
    }
    let describes = |n: &&String| {
        let small = folder.join(n).metadata().is_ok_and(|m| m.len() < 1 << 20);
        files::ends(n, "json") && small && matches!(files::json(folder, n), Ok(Some(v)) if v.pointer("/dialog/engine").is_some())
    };
    let mut found = names.iter().filter(describes);
    found.next().filter(|_| found.next().is_none()).cloned()
}

/// Reads a bundle.
pub fn read(folder: &Path, names: &[String], config_name: &str) -> Result<Found, ImportError> {
    let path = folder.join(config_name);
    let config = files::json(folder, config_name)?.ok_or_else(|| ImportError::bad(&path, "not there"))?;
    let Some(dialog) = config.get("dialog").filter(|d| d.is_object()) else {
        return Err(ImportError::bad(&path, "no table `dialog`, which every Genie configuration has"));
    };
    let mut found = Found { kind: "a Genie bundle", backend: "genie", root: folder.to_owned(), ..Found::default() };
    found.config = Some(config_name.to_owned());
    configuration(&mut found, dialog, config_name);
    let binaries = binaries(&mut found, dialog, names, &path)?;
    metadata(&mut found, names)?;
    extension(&mut found, dialog)?;
    told(&mut found, &binaries)?;
    tokenizer(&mut found, dialog, names);

    let first = binaries.first().map_or("", String::as_str);
    let stem = part_of(first).map_or(first.trim_end_matches(".bin"), |(.., at)| first[..at].trim_end_matches('_').trim_end_matches("part"));
    if found.name.is_empty() {
        found.name = name_of(stem);
    }
    if found.quant.is_none() {
        let folder_name = folder.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
        let from = [first, &folder_name].into_iter().find_map(|name| Some((quant_in(name)?, name.to_owned())));
        if let Some((quant, name)) = from {
            found.fact("quantisation", &quant, &format!("the name {name}"));
            found.quant = Some(quant);
        }
    }
    Ok(found)
}

fn configuration(found: &mut Found, dialog: &Value, from: &str) {
    found.context = found.take("context, tokens", positive(dialog, "/context/size"), from);
    let engine = "/engine/backend/QnnHtp";
    let theta = ["/engine/model/positional-encoding/rope-theta", &format!("{engine}/rope-theta")]
        .into_iter()
        .find_map(|at| dialog.pointer(at).and_then(Value::as_f64))
        .filter(|theta| *theta >= 1.0);
    let half = positive(dialog, "/engine/model/positional-encoding/rope-dim").and_then(|n| n.checked_mul(2));
    found.shape = Geometry {
        vocab: found.take("vocabulary, tokens", positive(dialog, "/context/n-vocab"), from),
        bos: found.take("BOS", count(dialog, "/context/bos-token"), from),
        eos: found.take("EOS", count(dialog, "/context/eos-token"), from),
        pad: found.take("PAD", count(dialog, "/context/pad-token"), from),
        hidden: found.take("hidden width", positive(dialog, "/context/n-embd"), from),
        head_dim: found.take("width of a head", positive(dialog, &format!("{engine}/kv-dim")).or(half), from),
        rope_theta: found.take("rope theta", theta, from),
        ..Geometry::default()
    };
    if let Some(scaling) = word(dialog, "/engine/model/positional-encoding/rope-scaling/rope-type") {
        found.fact("rope scaling", scaling, from);
    }
    found.take("CPU threads", positive(dialog, "/engine/n-threads"), from);
    if let Some(kind) = word(dialog, "/engine/backend/type") {
        found.fact("Genie's engine", kind, from);
        if kind != "QnnHtp" {
            found.notes.push(format!("the engine is {kind}: bench runs Genie on the NPU (QnnHtp) only"));
        }
    }
    if dialog.get("engine").is_some_and(Value::is_array) {
        found.notes.push("the configuration has several engines (a draft model): only what it says of the dialog was read".to_owned());
    }
}

/// The context binaries: every one that the configuration names has to be there, and of a set of parts every part.
fn binaries(found: &mut Found, dialog: &Value, names: &[String], config: &Path) -> Result<Vec<String>, ImportError> {
    let listed = dialog.pointer("/engine/model/binary/ctx-bins").and_then(Value::as_array);
    let mut binaries: Vec<String> = match listed {
        Some(list) => list.iter().filter_map(Value::as_str).map(|p| p.rsplit(['/', '\\']).next().unwrap_or(p).to_owned()).collect(),
        None => names.iter().filter(|n| files::ends(n, "bin")).cloned().collect(),
    };
    let gone: Vec<&str> = binaries.iter().filter(|b| !names.contains(b)).map(String::as_str).collect();
    if !gone.is_empty() {
        return Err(ImportError::bad(config, format!("ctx-bins names {}, which the folder does not hold", gone.join(", "))));
    }
    if binaries.is_empty() {
        return Err(ImportError::bad(config, "the folder holds no context binary (*.bin)"));
    }
    let parts: BTreeSet<u32> = binaries.iter().filter_map(|b| Some(part_of(b)?.0)).collect();
    if let Some((_, whole, _)) = binaries.iter().find_map(|b| part_of(b)) {
        let missing: Vec<String> = (1..=whole.min(1000)).filter(|n| !parts.contains(n)).map(|n| n.to_string()).collect();
        if !missing.is_empty() {
            return Err(ImportError::bad(config, format!("of {whole} parts of the model ctx-bins lacks part {}", missing.join(", "))));
        }
    }
    binaries.dedup();
    found.fact("context binaries", &binaries.len(), if listed.is_some() { "ctx-bins" } else { "the folder" });
    found.files.extend(binaries.iter().cloned());
    Ok(binaries)
}

/// AI Hub's own description of the export.
fn metadata(found: &mut Found, names: &[String]) -> Result<(), ImportError> {
    let (name, data) = if let Some(data) = files::json(&found.root, "metadata.json")? {
        ("metadata.json", data)
    } else if names.iter().any(|n| n == "metadata.yaml") {
        ("metadata.yaml", yaml::read(&files::text(&found.root.join("metadata.yaml"))?))
    } else {
        return Ok(());
    };
    if let Some(id) = word(&data, "/model_id").or(word(&data, "/model_name")).filter(|id| !id.is_empty()) {
        found.fact("model", id, name);
        found.name = name_of(id);
    }
    if let Some(precision) = word(&data, "/precision") {
        found.quant = Quant::parse(&precision.to_ascii_lowercase()).or_else(|| quant_in(precision));
        found.fact("quantisation", precision, name);
    }
    if let Some(version) = word(&data, "/tool_versions/qairt") {
        found.fact("made with QAIRT", version, name);
    }
    let mut told = Told::default();
    let (mut layers, mut kv) = (BTreeSet::new(), None);
    for file in data.get("model_files").and_then(Value::as_object).into_iter().flat_map(|files| files.values()) {
        for (tensor, about) in file.get("inputs").and_then(Value::as_object).into_iter().flatten() {
            let shape: Vec<u64> = about.get("shape").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_u64).collect();
            let size = |n: &u64| u32::try_from(*n).ok().filter(|n| *n > 0);
            told.names(tensor.as_bytes());
            match (tensor.as_str(), shape.as_slice()) {
                ("input_ids", [.., ar]) => told.ar.extend(size(ar)),
                // Keys are [kv-heads, 1, head-dim, context - AR].
                (key, [heads, 1, dim, _]) if key.starts_with("past_key_") => kv = Some((size(heads), size(dim))),
                _ => {}
            }
        }
        layers.append(&mut told.layers);
    }
    told.layers = layers;
    if let Some((heads, dim)) = kv {
        found.shape.kv_heads = found.take("key-value heads", heads, name);
        if found.shape.head_dim.is_none() {
            found.shape.head_dim = found.take("width of a head", dim, name);
        }
    }
    found.shape.layers = found.take("layers", told.depth(), name);
    found.chunk = found.take("AR of the prefill graph, tokens", told.ar.last().copied().filter(|ar| *ar > 1), name);
    Ok(())
}

/// The HTP's configuration names the chip.
fn extension(found: &mut Found, dialog: &Value) -> Result<(), ImportError> {
    let named = word(dialog, "/engine/backend/extensions").map(|p| p.rsplit(['/', '\\']).next().unwrap_or(p).to_owned());
    let name = named.clone().unwrap_or_else(|| EXTENSION.to_owned());
    let Some(data) = files::json(&found.root, &name)? else {
        if let Some(name) = named {
            found.notes.push(format!("the configuration names {name}, which the folder does not hold"));
        }
        return Ok(());
    };
    let arch = word(&data, "/devices/0/dsp_arch").and_then(|a| a.trim_start_matches(['v', 'V']).parse::<u32>().ok());
    found.chip.soc_model = found.take("soc_model", positive(&data, "/devices/0/soc_model"), &name);
    found.chip.htp_arch = found.take("Hexagon version", arch, &name);
    if let Some(profile) = word(&data, "/devices/0/cores/0/perf_profile") {
        found.fact("performance profile", profile, &name);
    }
    found.files.push(name);
    Ok(())
}

/// What the binaries say of themselves in plain text.
fn told(found: &mut Found, binaries: &[String]) -> Result<(), ImportError> {
    let mut told = Told::default();
    for name in binaries {
        told.names(name.trim_end_matches(".bin").as_bytes());
        told.read(&found.root.join(name))?;
    }
    let from = "the context binaries' text";
    if found.chunk.is_none() {
        found.chunk = found.take("AR of the prefill graph, tokens", told.ar.last().copied().filter(|ar| *ar > 1), from);
    }
    if found.shape.layers.is_none() {
        found.shape.layers = found.take("layers", told.depth(), from);
    }
    if let (Some(context), false) = (found.context, told.cl.is_empty())
        && !told.cl.contains(&context)
    {
        let list: Vec<String> = told.cl.iter().map(u32::to_string).collect();
        found.notes.push(format!("context.size is {context}, and the graphs were made for {}", list.join(", ")));
    }
    if let [one, others @ ..] = told.chips.as_slice() {
        let words = |chip: &Chip| format!("{} (Hexagon v{})", chip.soc.as_deref().unwrap_or("?"), chip.htp_arch.unwrap_or(0));
        found.fact("made for", &words(one), from);
        if !others.is_empty() {
            let list: Vec<String> = told.chips.iter().map(words).collect();
            found.notes.push(format!("the context binaries were made for different chips: {}", list.join(", ")));
        }
        if found.chip.htp_arch.is_some_and(|arch| Some(arch) != one.htp_arch) {
            let arch = found.chip.htp_arch.unwrap_or(0);
            found.notes.push(format!("the HTP configuration is for Hexagon v{arch}, and the context binaries are for {}", words(one)));
        }
        // What the binaries are is what counts: a chip of another version refuses them.
        found.chip.soc.clone_from(&one.soc);
        if found.chip.htp_arch != one.htp_arch {
            found.chip.soc_model = None;
        }
        found.chip.htp_arch = one.htp_arch;
    }
    Ok(())
}

fn tokenizer(found: &mut Found, dialog: &Value, names: &[String]) {
    let named = word(dialog, "/tokenizer/path").map(|p| p.rsplit(['/', '\\']).next().unwrap_or(p).to_owned());
    let tokenizer = [named.as_deref(), Some(TOKENIZER)].into_iter().flatten().find(|n| names.iter().any(|have| have == n));
    if let Some(name) = tokenizer {
        found.fact("tokenizer", name, "the folder");
        found.tokenizer = Some(name.to_owned());
        found.files.push(name.to_owned());
    }
}
