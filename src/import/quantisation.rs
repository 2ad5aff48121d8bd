//! What the files of an artifact tell of its quantisation, beside its class (rule R29): the name that its own world has for it, and the figures
//! that a comparison needs. `bench import` lists it, and a run keeps it with what the artifact says of itself.

use std::{collections::BTreeMap, path::Path};

use serde_json::Value;

use super::{
    error::ImportError,
    files::{self, count, word},
    gguf, onnx, yaml,
};

/// In which `llmexport.py` keeps the options that it was called with.
const EXPORT_ARGS: &str = "export_args.json";

/// Longest name that is kept, in characters.
const LONGEST: usize = 100;

/// Most bits of a number that are believed: float32 has 32.
const MOST_BITS: f64 = 32.0;

/// What is told. Nothing here is reckoned from the class.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Quantisation {
    /// As the format or the exporter calls it: `Q4_K_M`, `HQQ int4 block 64`, `MatMulNBits int4 block 32`.
    pub native: Option<String>,
    /// Figures by their columns of `cells.csv`: bits, and weights that share a scale.
    pub facts: BTreeMap<&'static str, f64>,
}

impl Quantisation {
    /// Keeps a figure if there is one. Bits that no weight can have are not believed: a damaged or hostile file has them.
    pub(super) fn put(&mut self, column: &'static str, value: Option<f64>) -> &mut Self {
        let can_be = |value: &f64| column == "group" || (*value > 0.0 && *value <= MOST_BITS);
        self.facts.extend(value.filter(can_be).map(|value| (column, value)));
        self
    }
}

/// What the files of an artifact tell, by their names relative to `root`. A file that can't be read as what its name says tells nothing: whether
/// the model is sound is the engine's to say.
pub fn quantisation(root: &Path, names: &[String]) -> Quantisation {
    let of = |extension: &str| names.iter().filter(|name| files::ends(name, extension)).map(|name| root.join(name)).collect::<Vec<_>>();
    let folder = |path: &Path| path.parent().map_or_else(|| root.to_owned(), Path::to_path_buf);
    let told = if let [model] = &of("gguf")[..] {
        gguf::quantisation(model)
    } else if let models @ [_, ..] = &of("mnn")[..] {
        // Parts for the NPU lie in a folder beside the model.
        let exported = models.iter().map(|model| folder(model)).find(|folder| folder.join(EXPORT_ARGS).is_file());
        exported.map_or_else(|| Ok(Quantisation::default()), |folder| of_mnn(&folder))
    } else if let models @ [_, ..] = &of("onnx")[..] {
        onnx::quantisation(models)
    } else {
        of_hub(root)
    };
    let mut told = told.unwrap_or_default();
    // A vendor's text goes into tables.
    told.native = told.native.map(|text| text.chars().filter(|c| !c.is_control()).take(LONGEST).collect());
    told
}

/// MNN: `export_args.json`, in which `llmexport.py` keeps the options that it was called with, and `llm_config.json`, whose `tie_embeddings` has
/// the place, the bits and the block of a shared table.
fn of_mnn(folder: &Path) -> Result<Quantisation, ImportError> {
    let Some(args) = files::json(folder, EXPORT_ARGS)? else { return Ok(Quantisation::default()) };
    let config = files::json(folder, "llm_config.json")?.unwrap_or_default();
    let Some(bits) = count(&args, "/quant_bit").filter(|bits| (1..=MOST_BITS as u32).contains(bits)) else {
        return Ok(Quantisation::default());
    };
    let block = count(&args, "/quant_block");
    let on = |key: &str| args.get(key).is_some_and(|value| value.as_bool().unwrap_or(value.as_str().is_some_and(|text| !text.is_empty())));
    let methods = [("awq", "AWQ "), ("hqq", "HQQ "), ("gptq_path", "GPTQ "), ("smooth", "SmoothQuant ")];
    let methods: String = methods.iter().filter(|(key, _)| on(key)).map(|(_, name)| *name).collect();
    let native = if bits < 16 {
        let block = match block {
            Some(0) => " per channel".to_owned(),
            Some(block) => format!(" block {block}"),
            None => String::new(),
        };
        let sym = args.get("sym").and_then(Value::as_bool).map_or("", |sym| if sym { ", symmetric" } else { ", asymmetric" });
        format!("{methods}int{bits}{block}{sym}")
    } else {
        format!("fp{bits}")
    };
    let mut told = Quantisation { native: Some(native), ..Quantisation::default() };
    told.put("weight_bits", Some(bits.into())).put("group", block.filter(|_| bits < 16).map(f64::from));
    // Without a word of its own the LM head is as the rest (llmexport.py).
    told.put("lm_head_bits", count(&args, "/lm_quant_bit").or(Some(bits)).map(f64::from));
    told.put("embedding_bits", count(&config, "/tie_embeddings/3").or_else(|| count(&args, "/embed_bit")).map(f64::from));
    Ok(told)
}

/// AI Hub's `metadata.json`, or `.yaml`: the vendor's word for what is in the context binaries, and no figure.
fn of_hub(folder: &Path) -> Result<Quantisation, ImportError> {
    let path = folder.join("metadata.yaml");
    let data = match files::json(folder, "metadata.json")? {
        None if path.is_file() => yaml::read(&files::text(&path)?),
        data => data.unwrap_or_default(),
    };
    let native = word(&data, "/precision").map(str::trim).filter(|word| !word.is_empty()).map(str::to_owned);
    Ok(Quantisation { native, ..Quantisation::default() })
}
