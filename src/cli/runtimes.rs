//! `bench runtimes list|install|build`.

mod list;

use std::{collections::BTreeSet, path::PathBuf};

use bench_backend_api::{DeviceFacts, Need};
use clap::Subcommand;

use super::exit::{Code, Failed};
use crate::{
    registry,
    runtimes::{Cache, android, build, python, qairt},
};

/// Lists, installs and builds what the backends need
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Shows what is there, which version, what is missing and how to get it
    List(list::Args),
    /// Installs a runtime into the user's cache
    Install {
        /// `python` (the pinned packages: ONNX Runtime, QNN plugin with Genie and HTP emulator, MNN), `qairt` (Qualcomm's SDK), or
        /// `android` (ONNX Runtime with its QNN provider, for phones)
        runtime: String,
        /// Do not ask before the download
        #[arg(long)]
        yes: bool,
        /// Qualcomm's licence of the SDK was read and is accepted
        #[arg(long, alias = "accept-license")]
        accept_licence: bool,
        /// Take these archives instead of fetching them: one of `qairt`, three of `android`
        #[arg(long, value_name = "FILE", num_args = 1..)]
        from: Vec<PathBuf>,
        /// Version of the SDK
        #[arg(long)]
        version: Option<String>,
        /// Address of a Maven repository that has the archives of `android`
        #[arg(long, value_name = "URL", env = android::REPOSITORY)]
        repository: Option<String>,
    },
    /// Builds our own programs for devices: the agent, and with an NDK the runners
    Build {
        /// Android's NDK, which links the runners [default: ANDROID_NDK_HOME or ANDROID_NDK_ROOT]
        #[arg(long, value_name = "DIR")]
        ndk: Option<PathBuf>,
        /// Processor of the device
        #[arg(long, default_value = "aarch64", value_parser = ["aarch64", "x86_64"])]
        arch: String,
        /// The source tree of bench [default: the one that this program was built from]
        #[arg(long, value_name = "DIR")]
        source: Option<PathBuf>,
    },
}

/// The cache, or the error that says how to name one.
pub fn cache() -> anyhow::Result<Cache> {
    Cache::locate().ok_or_else(|| super::usage("no home folder: set BENCH_CACHE to a folder for runtimes and models"))
}

pub fn main(args: Args) -> anyhow::Result<Code> {
    let cache = cache()?;
    let say = |text: &str| super::note(text);
    match args.verb {
        Verb::List(args) => list::main(&cache, &args),
        Verb::Build { ndk, arch, source } => build_programs(&cache, ndk, &arch, source),
        Verb::Install { runtime, yes, accept_licence, from, version, repository } => {
            let path = match runtime.as_str() {
                "python" => {
                    if python::Environment::open(&cache).is_none() && !consent(yes)? {
                        return Err(nothing_installed());
                    }
                    python::Environment::install(&cache, &say).map_err(unavailable)?.interpreter
                }
                "qairt" => {
                    let from = from.first().map(PathBuf::as_path);
                    qairt::Sdk::install(&cache, accept_licence, from, version.as_deref(), &say).map_err(unavailable)?.root
                }
                "android" => {
                    if !agree(&android::notice(), "bench runtimes install android --yes", yes)? {
                        return Err(nothing_installed());
                    }
                    android::Trio::install(&cache, &from, repository.as_deref(), &say).map_err(unavailable)?.folder
                }
                other => return Err(super::usage(format!("no runtime `{other}`: python or qairt or android"))),
            };
            super::print(&format!("{}\n", path.display()))?;
            Ok(Code::Done)
        }
    }
}

fn build_programs(cache: &Cache, ndk: Option<PathBuf>, arch: &str, source: Option<PathBuf>) -> anyhow::Result<Code> {
    let source = build::source(source).map_err(unavailable)?;
    // Runners for x86_64 devices are this computer's own, beside bench.
    let ndk = build::ndk(ndk).filter(|_| arch == "aarch64");
    super::note(&format!("building the agent for {arch}"));
    let mut programs = vec![build::agent(cache, &source, arch).map_err(unavailable)?];
    if let Some(ndk) = &ndk {
        for name in runners(&list::phone("SM8650")?) {
            super::note(&format!("building {name} for phones"));
            programs.push(build::runner(cache, &source, ndk, &name).map_err(unavailable)?);
        }
    } else if arch == "aarch64" {
        super::note(
            "no runners were built: that takes Android's NDK (--ndk DIR). Without them a phone is measured through the vendors' own programs, \
             which say nothing about single tokens: no token latencies, and first queries only where the program answers one query a process",
        );
    }
    let lines: Vec<String> = programs.iter().map(|p| format!("{}\n", p.display())).collect();
    super::print(&lines.concat())?;
    Ok(Code::Done)
}

/// Our own programs that backends need, here or on the device.
fn runners(device: &DeviceFacts) -> BTreeSet<String> {
    let here = DeviceFacts { os: "linux".to_owned(), arch: "x86_64".to_owned(), remote: false, ..device.clone() };
    let needs = registry::BACKENDS.iter().flat_map(|b| [b.needs(device), b.needs(&here)].concat());
    needs.filter_map(|need| if let Need::Runner { name } = need { Some(name) } else { None }).collect()
}

/// An error of an install: the runtime is not there.
pub fn unavailable(error: impl std::error::Error) -> anyhow::Error {
    Failed { code: Code::Unavailable, message: error.to_string() }.into()
}

fn nothing_installed() -> anyhow::Error {
    Failed { code: Code::Unavailable, message: "nothing was installed".to_owned() }.into()
}

/// Consent to the download of the Python environment.
pub fn consent(yes: bool) -> anyhow::Result<bool> {
    let notice = format!("the Python environment is missing: {}", python::NOTICE);
    agree(&notice, "bench runtimes install python --yes", yes)
}

/// Names size and licences, and asks on a terminal. Elsewhere `--yes` is the answer (design 2b.16).
fn agree(notice: &str, command: &str, yes: bool) -> anyhow::Result<bool> {
    use std::io::{IsTerminal, Write};
    super::note(notice);
    if yes {
        return Ok(true);
    }
    if !std::io::stdin().is_terminal() {
        let message = format!("nothing is installed without consent: pass --yes, or run `{command}` first");
        return Err(Failed { code: Code::Unavailable, message }.into());
    }
    eprint!("{}", crate::lang::say("install? [y/N] "));
    std::io::stderr().flush()?;
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
