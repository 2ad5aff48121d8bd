//! An MNN model as llmexport writes it: `config.json` (how it is run), `llm_config.json` (what it is), `llm.mnn`, its weights, its tokenizer.

use std::path::Path;

use bench_backend_api::{Geometry, Quant};
use serde_json::{Value, json};

use super::{
    error::ImportError,
    files::{self, positive, word},
    found::Found,
    model::{name_of, quant_in, quant_of_bits},
};

const CONFIG: &str = "config.json";
const SHAPE: &str = "llm_config.json";
/// First word of MNN's own tokenizer files.
const MAGIC: &str = "430";

/// Whether a folder holds one.
pub fn is_one(names: &[String]) -> bool {
    let has = |name: &str| names.iter().any(|n| n == name);
    (has(SHAPE) || has(CONFIG)) && names.iter().any(|n| files::ends(n, "mnn"))
}

/// Reads one.
pub fn read(folder: &Path, names: &[String]) -> Result<Found, ImportError> {
    let mut found = Found { kind: "an MNN model", backend: "mnn", root: folder.to_owned(), ..Found::default() };
    let config = files::json(folder, CONFIG)?;
    if config.is_some() {
        found.config = Some(CONFIG.to_owned());
    } else {
        found.notes.push(format!("no {CONFIG}: MNN's programs are started with one"));
    }
    let config = config.unwrap_or_else(|| json!({}));
    for (key, usual) in [("/llm_model", "llm.mnn"), ("/llm_weight", "llm.mnn.weight")] {
        let name = word(&config, key).unwrap_or(usual);
        // Small models have their weights inside; what the configuration names has to be there.
        if !names.iter().any(|n| n == name) && (config.pointer(key).is_some() || key == "/llm_model") {
            return Err(ImportError::bad(folder, format!("{name} is not there, without which MNN can't load the model")));
        }
    }
    for (what, key) in [("backend of the configuration", "/backend_type"), ("precision", "/precision"), ("memory", "/memory")] {
        if let Some(value) = word(&config, key) {
            found.fact(what, value, CONFIG);
        }
    }
    found.take("CPU threads", positive(&config, "/thread_num"), CONFIG);

    let about = files::json(folder, SHAPE)?.unwrap_or_else(|| json!({}));
    if let Some(kind) = word(&about, "/model_type") {
        found.fact("architecture", kind, SHAPE);
    }
    found.context = found.take("context, tokens", positive(&about, "/max_position_embeddings"), SHAPE);
    found.shape = Geometry {
        layers: found.take("layers", positive(&about, "/layer_nums"), SHAPE),
        hidden: found.take("hidden width", positive(&about, "/hidden_size"), SHAPE),
        // [2, 1, 0, kv-heads, head-dim], where the export tells it.
        kv_heads: found.take("key-value heads", positive(&about, "/key_value_shape/3"), SHAPE),
        head_dim: found.take("width of a head", positive(&about, "/key_value_shape/4"), SHAPE),
        ..Geometry::default()
    };
    tokenizer(&mut found, &config, names)?;
    quantisation(&mut found)?;
    if names.iter().any(|n| n == "config_qnn.json") {
        found.notes.push(
            "config_qnn.json is an export for the NPU: add an [[artifact]] with `unit = \"npu\"` and that `config` to measure it"
                .to_owned(),
        );
    }
    let wanted = |n: &&String| !n.starts_with('.') && !files::ends(n, "md") && !files::ends(n, "log");
    found.files = names.iter().filter(wanted).cloned().collect();
    found.name = name_of(&folder.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default());
    Ok(found)
}

/// MNN's own tokenizer file tells the vocabulary; prompts need the model's `tokenizer.json`.
fn tokenizer(found: &mut Found, config: &Value, names: &[String]) -> Result<(), ImportError> {
    if names.iter().any(|n| n == "tokenizer.json") {
        found.fact("tokenizer", "tokenizer.json", "the folder");
        found.tokenizer = Some("tokenizer.json".to_owned());
    } else {
        let help = "no tokenizer.json: copy the one of the original model into the folder for prompts of real text";
        found.notes.push(help.to_owned());
    }
    let name = word(config, "/tokenizer_file").unwrap_or("tokenizer.txt");
    if !names.iter().any(|n| n == name) || !files::ends(name, "txt") {
        return Ok(());
    }
    // `430 <kind>`, `<specials> <stops> <prefixes>`, their ids in that order, `<vocabulary> ...`.
    let text = files::text(&found.root.join(name))?;
    let numbers =
        |line: Option<&str>| -> Vec<u32> { line.into_iter().flat_map(str::split_whitespace).filter_map(|w| w.parse().ok()).collect() };
    let mut lines = text.lines();
    if lines.next().and_then(|l| l.split_whitespace().next()) != Some(MAGIC) {
        return Ok(());
    }
    let (counts, ids, vocab) = (numbers(lines.next()), numbers(lines.next()), numbers(lines.next()));
    found.shape.vocab = found.take("vocabulary, tokens", vocab.first().copied().filter(|n| *n > 0), name);
    if let [specials, stops, prefixes] = counts.as_slice() {
        let at = |n: usize, many: u32| (many > 0).then(|| ids.get(n).copied()).flatten();
        found.shape.eos = found.take("EOS", at(*specials as usize, *stops), name);
        found.shape.bos = found.take("BOS", at((*specials as usize).saturating_add(*stops as usize), *prefixes), name);
    }
    Ok(())
}

fn quantisation(found: &mut Found) -> Result<(), ImportError> {
    let args = files::json(&found.root, "export_args.json")?;
    let meta = files::json(&found.root, "meta.json")?;
    let folder = found.root.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    let bits = args.as_ref().and_then(|a| positive(a, "/quant_bit")).and_then(quant_of_bits);
    let made = meta.as_ref().and_then(|m| Quant::parse(word(m, "/quant")?));
    let sources = [(bits, "export_args.json"), (made, "meta.json"), (quant_in(&folder), "the folder's name")];
    if let Some((Some(quant), from)) = sources.into_iter().find(|(quant, _)| quant.is_some()) {
        found.fact("quantisation", &quant, from);
        found.quant = Some(quant);
    }
    if let Some(block) = args.as_ref().and_then(|a| positive(a, "/quant_block")) {
        found.fact("quantisation group", &block, "export_args.json");
    }
    Ok(())
}
