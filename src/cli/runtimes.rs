//! `bench runtimes list|install`.

use std::{collections::BTreeMap, path::PathBuf};

use bench_backend_api::Availability;
use clap::Subcommand;
use serde_json::json;

use super::{
    Format,
    exit::{Code, Failed},
};
use crate::{
    device, registry,
    runtimes::{self, Cache, python, qairt},
    scenario::find_soc,
};

/// Lists and installs what the backends need
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Shows what is there, which version, what is missing and how to get it
    List {
        /// How the list is printed
        #[arg(long, value_enum, default_value_t = Format::Human)]
        format: Format,
    },
    /// Installs a runtime into the user's cache
    Install {
        /// `python` (the pinned packages: ONNX Runtime, QNN plugin with Genie and HTP emulator, MNN) or `qairt` (Qualcomm's SDK)
        runtime: String,
        /// Do not ask before the download
        #[arg(long)]
        yes: bool,
        /// Qualcomm's licence of the SDK was read and is accepted
        #[arg(long, alias = "accept-license")]
        accept_licence: bool,
        /// Take this archive instead of fetching one
        #[arg(long, value_name = "FILE")]
        from: Option<PathBuf>,
        /// Version of the SDK
        #[arg(long)]
        version: Option<String>,
    },
}

/// The cache, or the error that says how to name one.
pub fn cache() -> anyhow::Result<Cache> {
    Cache::locate().ok_or_else(|| super::usage("no home folder: set BENCH_CACHE to a folder for runtimes and models"))
}

pub fn main(args: Args) -> anyhow::Result<Code> {
    let cache = cache()?;
    match args.verb {
        Verb::List { format } => list(&cache, format),
        Verb::Install { runtime, yes, accept_licence, from, version } => match runtime.as_str() {
            "python" => {
                if python::Environment::open(&cache).is_none() && !consent(yes)? {
                    return Err(Failed { code: Code::Unavailable, message: "nothing was installed".to_owned() }.into());
                }
                let say = |text: &str| super::note(text);
                let environment = python::Environment::install(&cache, &say).map_err(unavailable)?;
                super::print(&format!("{}\n", environment.interpreter.display()))?;
                Ok(Code::Done)
            }
            "qairt" => {
                let say = |text: &str| super::note(text);
                let sdk = qairt::Sdk::install(&cache, accept_licence, from.as_deref(), version.as_deref(), &say).map_err(unavailable)?;
                super::print(&format!("{}\n", sdk.root.display()))?;
                Ok(Code::Done)
            }
            other => Err(super::usage(format!("no runtime `{other}`: python or qairt"))),
        },
    }
}

/// An error of an install: the runtime is not there.
pub fn unavailable(error: impl std::error::Error) -> anyhow::Error {
    Failed { code: Code::Unavailable, message: error.to_string() }.into()
}

/// Names size and licences, and asks on a terminal. Elsewhere `--yes` is the answer (design 2b.16).
pub fn consent(yes: bool) -> anyhow::Result<bool> {
    use std::io::{IsTerminal, Write};
    super::note(&format!("the Python environment is missing: {}", python::NOTICE));
    if yes {
        return Ok(true);
    }
    if !std::io::stdin().is_terminal() {
        let message = "nothing is downloaded without consent: pass --yes, or run `bench runtimes install python --yes` first".to_owned();
        return Err(Failed { code: Code::Unavailable, message }.into());
    }
    eprint!("download and install? [y/N] ");
    std::io::stderr().flush()?;
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

fn list(cache: &Cache, format: Format) -> anyhow::Result<Code> {
    let (soc_model, htp_arch) = find_soc("SM8650").map_or((57, 75), |s| (s.soc_model, s.htp_arch));
    let device = device::local_facts(soc_model, htp_arch);
    let needs = registry::BACKENDS.iter().flat_map(|b| b.needs(&device));
    let installed = runtimes::find(cache, needs);
    let states: BTreeMap<&str, Availability> = registry::BACKENDS.iter().map(|b| (b.id(), b.probe(&device, &installed))).collect();
    if format == Format::Json {
        let needs: Vec<_> = installed.0.iter().map(|(need, found)| json!({"need": need, "found": found})).collect();
        let text = serde_json::to_string_pretty(&json!({"cache": cache.0, "backends": states, "found": needs}))?;
        super::print(&format!("{text}\n"))?;
        return Ok(Code::Done);
    }
    let mut lines: Vec<String> = states
        .into_iter()
        .map(|(id, state)| match state {
            Availability::Ready { version } => format!("{id:<10} ready     {version}"),
            Availability::Missing { what, remedy } => format!("{id:<10} missing   {what}\n{:<10} to do     {remedy}", ""),
            Availability::Refused { reason } => format!("{id:<10} not here  {reason}"),
        })
        .collect();
    lines.push(format!("cache: {}\n", cache.0.display()));
    super::print(&lines.join("\n"))?;
    Ok(Code::Done)
}
