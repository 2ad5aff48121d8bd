//! `bench estimate MODEL --soc X`: what is possible, without a device.

use std::{
    fmt::Write as _,
    path::{Path, PathBuf},
};

use bench_backend_api::{Geometry, Quant};
use serde_json::json;

use super::{
    Format, console,
    exit::{Code, Failed},
};
use crate::{
    analysis::roof::{Asked, Figure, Precision, Told, estimate},
    device::soc,
    import, lang,
    scenario::read_geometry,
    words,
};

/// Folder in which models are looked up by name.
const MODELS: &str = "scenarios/models";

/// Says what a model needs and how fast a SoC can decode it at best, without a device; every figure is derived, none measured
#[derive(Debug, clap::Args)]
pub struct Args {
    /// A geometry file, a model's folder or .gguf, or the name of a file in scenarios/models
    model: String,
    /// The SoC, for instance SM8650
    #[arg(long)]
    soc: String,
    /// Class of the quantisation (default: the one that the files tell, else w4a16)
    #[arg(long, value_parser = import::quant_of)]
    quant: Option<Quant>,
    /// Context length in tokens (default: the one that the files tell, else 4096)
    #[arg(long, value_name = "TOKENS", value_parser = clap::value_parser!(u32).range(1..))]
    context: Option<u32>,
    /// Prompt in tokens, the depth at which decoding begins (default 512, or the context if that is shorter)
    #[arg(long, value_name = "TOKENS", value_parser = clap::value_parser!(u32).range(1..))]
    prompt: Option<u32>,
    /// Weights that share a scale of 16 bits (default: scales are not counted)
    #[arg(long, value_name = "WEIGHTS", value_parser = clap::value_parser!(u32).range(1..))]
    group: Option<u32>,
    /// Bits of a weight of the LM head (default: the least of the class)
    #[arg(long, value_name = "BITS", value_parser = bits)]
    lm_head_bits: Option<f64>,
    /// Bits of a value of the embedding table (default: the least of the class)
    #[arg(long, value_name = "BITS", value_parser = bits)]
    embedding_bits: Option<f64>,
    /// Bits of an element of the KV cache (default: the least of the class)
    #[arg(long, value_name = "BITS", value_parser = bits)]
    kv_bits: Option<f64>,
    /// Memory of the device in GB, for the context that fits
    #[arg(long, value_name = "GB", value_parser = positive)]
    ram: Option<f64>,
    /// What the device draws while decoding in W, for the least energy of a token
    #[arg(long, value_name = "W", value_parser = positive)]
    power: Option<f64>,
    /// A decode rate in tokens/s to hold against the roof: over it the exit code is 10, without a roof 11
    #[arg(long, value_name = "TOK_S", value_parser = positive)]
    claim: Option<f64>,
    /// How the figures are printed
    #[arg(long, value_enum, default_value_t = Format::Human)]
    format: Format,
}

fn positive(text: &str) -> Result<f64, String> {
    text.parse().ok().filter(|n: &f64| n.is_finite() && *n > 0.0).ok_or_else(|| "a number over 0".to_owned())
}

fn bits(text: &str) -> Result<f64, String> {
    positive(text).ok().filter(|n| *n <= 64.0).ok_or_else(|| "a number of bits, over 0 and 64 at most".to_owned())
}

/// A model as far as it is known.
struct Known {
    geometry: Geometry,
    quant: Option<Quant>,
    context: Option<u32>,
}

pub fn main(args: &Args) -> anyhow::Result<Code> {
    let Some(soc) = soc::find(&args.soc) else {
        let known: Vec<&str> = soc::catalogue().iter().map(|s| s.soc.as_str()).collect();
        return Err(super::usage(format!("--soc {}: not in the catalogue of SoCs, which has {}", args.soc, known.join(", "))));
    };
    let known = model(&args.model)?;
    let quant = args.quant.or(known.quant).unwrap_or(Quant::W4a16);
    let context = args.context.or(known.context).unwrap_or(4096);
    let prompt = args.prompt.unwrap_or(512.min(context));
    if prompt > context {
        return Err(super::usage(format!("--prompt {prompt}: does not fit a context of {context} tokens")));
    }
    let told = Told { weight: None, group: args.group, head: args.lm_head_bits, embedding: args.embedding_bits, kv: args.kv_bits };
    let memory = args.ram.map(|gb| gb * 1e9);
    let asked = Asked { geometry: &known.geometry, quant, told, soc, context, prompt, memory, power: args.power, claim: args.claim };
    let (precision, figures) = estimate(&asked);
    let text = match args.format {
        Format::Json => serde_json::to_string_pretty(&json(&asked, &precision, &figures))? + "\n",
        Format::Human => lang::say(&human(&asked, &precision, &figures)).into_owned(),
    };
    super::print(&text)?;
    Ok(code(&figures))
}

/// A claim is held against the roof like a requirement against a run: over it 10, and 11 where there is no roof to hold it against.
fn code(figures: &[Figure]) -> Code {
    match figures.iter().find(|figure| figure.name == "claim_share").map(|figure| figure.value) {
        Some(Some(share)) if share > 1.0 => Code::Regressed,
        Some(None) => Code::Undecided,
        _ => Code::Done,
    }
}

/// Finds the model.
fn model(named: &str) -> anyhow::Result<Known> {
    let path = Path::new(named);
    let of_toml = |path: &Path| match read_geometry(path) {
        Ok(geometry) => Ok(Known { geometry, quant: None, context: None }),
        Err(problems) => {
            super::note_problems(&problems, false);
            let message = format!("{}: not a geometry that can be used", path.display());
            Err(Failed { code: Code::Scenario, message }.into())
        }
    };
    if path.extension().is_some_and(|e| e == "toml") && path.is_file() {
        return of_toml(path);
    }
    if path.exists() {
        let found = import::look(path).map_err(|e| Failed { code: Code::Usage, message: e.to_string() })?;
        return Ok(Known { geometry: Geometry { name: found.name, ..found.shape }, quant: found.quant, context: found.context });
    }
    // A name, never a path out of the folder.
    let file = PathBuf::from(MODELS).join(format!("{named}.toml"));
    if path.components().count() == 1 && file.is_file() {
        return of_toml(&file);
    }
    let known = match names().as_slice() {
        [] => format!("there is no folder {MODELS} here"),
        names => format!("{MODELS} has {}", names.join(", ")),
    };
    Err(super::usage(format!("{named}: neither a file or folder nor a known model; {known}")))
}

fn names() -> Vec<String> {
    let entries = std::fs::read_dir(MODELS).into_iter().flatten().filter_map(Result::ok);
    let toml =
        |path: PathBuf| path.extension().is_some_and(|e| e == "toml").then(|| path.file_stem()?.to_str().map(str::to_owned)).flatten();
    let mut names: Vec<String> = entries.filter_map(|e| toml(e.path())).collect();
    names.sort();
    names
}

const DERIVED: &str = "derived";

fn json(a: &Asked<'_>, precision: &Precision, figures: &[Figure]) -> serde_json::Value {
    json!({"method": DERIVED, "model": a.geometry.name, "quant": a.quant, "soc": a.soc.soc, "context": a.context,
        "prompt_tokens": a.prompt, "bits": precision, "figures": figures})
}

fn human(a: &Asked<'_>, precision: &Precision, figures: &[Figure]) -> String {
    let mut lines = vec![
        format!("{} {}, context {}, prompt {}, on {} ({})", a.geometry.name, a.quant, a.context, a.prompt, a.soc.soc, a.soc.name),
        "Derived from the model's shape and the SoC's data; nothing of it is measured.".to_owned(),
    ];
    if !precision.assumed.is_empty() {
        lines.push(format!("Assumed, the least of {}: {}.", a.quant, precision.assumed.join(", ")));
    }
    let width = figures.iter().map(|f| f.words.len()).max().unwrap_or_default();
    for figure in figures {
        let mut line = format!("  {:<width$}  ", figure.words);
        let (value, words) = match (figure.value, &figure.absent) {
            (Some(value), _) => (words::figure(value), figure.how.as_str()),
            (None, why) => ("-".to_owned(), why.as_deref().unwrap_or_default()),
        };
        let _ = write!(line, "{value:>9}  {words}");
        lines.push(line.trim_end().to_owned());
    }
    lines.iter().map(|line| console::printable(line) + "\n").collect()
}
