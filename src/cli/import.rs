//! `bench import SOURCE`: from a model's folder to a scenario that can be run.

use std::path::PathBuf;

use bench_backend_api::Quant;
use serde_json::json;

use super::{
    Format, console,
    exit::{Code, Failed},
};
use crate::{
    device::soc,
    import::{self, Found, ImportError, Written},
    registry,
};

/// Writes a scenario for a model that you have: a Genie bundle, a .gguf, an MNN or onnxruntime-genai folder
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The model's folder or file
    source: PathBuf,
    /// Name of scenario and model (default: from the files)
    #[arg(long)]
    name: Option<String>,
    /// SoC of the phone, for instance SM8650 (default: the one that the files were made for)
    #[arg(long, value_name = "SOC")]
    device_soc: Option<String>,
    /// Class of the quantisation, if the files do not tell: w4a16, w4, q4_0 ...
    #[arg(long, value_parser = import::quant_of)]
    quant: Option<Quant>,
    /// Context length in tokens, if the files do not tell
    #[arg(long, value_name = "TOKENS", value_parser = clap::value_parser!(u32).range(1..))]
    context: Option<u32>,
    /// Folder for the scenario; the geometry goes to OUT/models
    #[arg(long, default_value = "scenarios")]
    out: PathBuf,
    /// Write over files that are there
    #[arg(long)]
    force: bool,
    /// How the findings are printed
    #[arg(long, value_enum, default_value_t = Format::Human)]
    format: Format,
}

pub fn main(args: &Args) -> anyhow::Result<Code> {
    let failed = |e: ImportError| Failed { code: Code::Usage, message: e.to_string() };
    let mut found = import::look(&args.source).map_err(failed)?;
    asked(&mut found, args)?;
    let runs = registry::BACKENDS.iter().any(|b| b.id() == found.backend);
    let written = import::write(&found, &args.out, runs, args.force).map_err(failed)?;
    // What was written is read as a user's file would be.
    let problems = written.scenario.as_ref().and_then(|path| super::load(path).err());
    match args.format {
        Format::Json => super::print(&format!("{}\n", serde_json::to_string_pretty(&json(&found, &written))?))?,
        Format::Human => super::say(&human(&found, &written))?,
    }
    if let Some(problems) = problems {
        super::note_problems(&problems, false);
        let message = format!("{}: what was found makes no whole scenario yet; mend the file, then `bench check` it", problems.file);
        return Err(Failed { code: Code::Scenario, message }.into());
    }
    Ok(Code::Done)
}

/// What the user says counts more than what the files say.
fn asked(found: &mut Found, args: &Args) -> anyhow::Result<()> {
    if let Some(name) = &args.name {
        found.name.clone_from(name);
    }
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-.".contains(c);
    if !found.name.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit())
        || !found.name.chars().all(fits)
        || found.name.len() > 64
    {
        return Err(super::usage(format!(
            "--name {}: use small letters, digits, `-` and `.`, a letter or digit first, 64 at most",
            found.name
        )));
    }
    if let Some(part) = &args.device_soc {
        let Some(known) = soc::find(part) else {
            return Err(super::usage(format!("--device-soc {part}: not in the catalogue of SoCs (scenarios/devices)")));
        };
        if found.chip.htp_arch.is_some_and(|arch| arch != known.htp_arch) {
            let arch = found.chip.htp_arch.unwrap_or_default();
            found.notes.push(format!("the files are for Hexagon v{arch}, and {} has v{}: it will refuse them", known.soc, known.htp_arch));
        }
        found.chip.soc = Some(known.soc.clone());
    }
    found.quant = args.quant.or(found.quant);
    found.context = args.context.or(found.context);
    Ok(())
}

fn human(found: &Found, written: &Written) -> String {
    let mut lines = vec![format!("{} in {}", found.kind, found.root.display()), "found:".to_owned()];
    lines.extend(found.facts.iter().map(|f| format!("  {:<34} {}  ({})", f.what, f.value, f.from)));
    let mut unknown: Vec<&str> = found.unknown();
    unknown.extend(found.chunk.is_none().then_some("AR of the prefill graph"));
    unknown.extend(found.tokenizer.is_none().then_some("tokenizer.json"));
    if !unknown.is_empty() {
        lines.push(format!("not found: {}", unknown.join(", ")));
    }
    lines.extend(found.notes.iter().map(|note| format!("note: {note}")));
    lines.push("written:".to_owned());
    lines.extend(written.scenario.iter().chain([&written.geometry]).map(|path| format!("  {}", path.display())));
    match &written.scenario {
        Some(path) => {
            lines.push("next:".to_owned());
            lines.extend(["doctor", "run"].map(|verb| format!("  bench {verb} {}", path.display())));
        }
        None => lines.push(format!(
            "no scenario: this version has no backend that runs it; `bench parse {}` reads what its own tool prints",
            found.backend
        )),
    }
    lines.iter().map(|line| console::printable(line) + "\n").collect()
}

fn json(found: &Found, written: &Written) -> serde_json::Value {
    json!({"kind": found.kind, "backend": found.backend, "name": found.name, "found": found.facts, "not_found": found.unknown(),
        "notes": found.notes, "scenario": written.scenario, "geometry": written.geometry})
}
