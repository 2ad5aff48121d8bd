//! What runs on a device: our own programs built for it, and the vendors' libraries for its processor.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

use bench_backend_api::{DeviceFacts, Found};
use thiserror::Error;

use super::{Cache, android, find::text, own_program, python, qairt::Sdk};

const AGENT: &str = "bench-agent";

/// There is no agent for a device.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum NoAgent {
    /// The PC engines and the local agent need Linux.
    #[error("this computer runs {0}, and the PC engines are Linux only: measure a phone from here, or the PC engines on Linux x86_64")]
    NotLinux(String),
    /// It is not beside `bench`.
    #[error("bench-agent is not beside bench: run `cargo build --workspace`, or name its folder in BENCH_LIBEXEC")]
    Local,
    /// It was not built for the device's processor.
    #[error(
        "no bench-agent for the device ({triple}): run `bench runtimes build --arch {arch}` in the source tree, or put it into $BENCH_LIBEXEC/{triple}/"
    )]
    Device {
        /// Rust's name of what it has to be built for.
        triple: String,
        /// The device's processor.
        arch: String,
    },
}

/// The agent's program for a device. On a device that is another machine it is the static one, whatever system runs there; where this
/// computer's processor is the device's, its own serves too (the test phone).
pub fn agent_for(cache: &Cache, device: &DeviceFacts) -> Result<PathBuf, NoAgent> {
    if device.remote {
        let triple = agent_triple(&device.arch);
        let own = || program(cache, device.triple(), AGENT).filter(|_| device.arch == env::consts::ARCH);
        return program(cache, &triple, AGENT).or_else(own).ok_or(NoAgent::Device { triple, arch: device.arch.clone() });
    }
    if device.os != "linux" {
        return Err(NoAgent::NotLinux(device.os.clone()));
    }
    own_program(AGENT).ok_or(NoAgent::Local)
}

/// What the static agent is built for.
pub(super) fn agent_triple(arch: &str) -> String {
    format!("{arch}-unknown-linux-musl")
}

/// One of our own programs for a triple: as built by `bench runtimes build`, in `$BENCH_LIBEXEC/<triple>`, beside `bench` when the
/// device runs this machine's programs, and where cargo leaves it in the target folder that `bench` was built in.
pub(super) fn program(cache: &Cache, triple: &str, name: &str) -> Option<PathBuf> {
    let named = [cache.built(triple)].into_iter().chain(env::var_os("BENCH_LIBEXEC").map(|d| PathBuf::from(d).join(triple)));
    if let Some(path) = named.map(|d| d.join(name)).find(|p| p.is_file()) {
        return Some(path);
    }
    let own = env::consts::OS == "linux" && triple == format!("{}-unknown-linux-gnu", env::consts::ARCH);
    if let Some(path) = own.then(|| own_program(name)).flatten() {
        return Some(path);
    }
    let exe = env::current_exe().ok()?;
    exe.ancestors().skip(2).take(3).find_map(|target| in_target_folder(target, triple, name))
}

/// Best first: what is made for devices, then what a developer has just built.
fn in_target_folder(target: &Path, triple: &str, name: &str) -> Option<PathBuf> {
    ["dist", "release", "debug"].into_iter().map(|profile| target.join(triple).join(profile).join(name)).find(|p| p.is_file())
}

/// A library for a device, of one set; its version names what it comes from. What the user has built comes first ([`from_own`]), and is the only
/// source of sets that nobody publishes for phones (`mnn`, `onnxruntime-genai`).
///
/// - `qairt`: the user's SDK, else, on x86_64, the Python package onnxruntime-qnn (Genie and the HTP emulator).
/// - `onnxruntime`: the archives of `bench runtimes install android` for an Android phone, the Python packages on x86_64. There
///   `libonnxruntime.so` carries its version in its file name.
pub(super) fn library(
    cache: &Cache,
    sdk: Option<&Sdk>,
    python: Option<&python::Environment>,
    device: &DeviceFacts,
    set: &str,
    name: &str,
) -> Option<Found> {
    let libexec = env::var_os("BENCH_LIBEXEC").map(PathBuf::from);
    if let Some(found) = libexec.into_iter().chain([cache.sets()]).find_map(|root| from_own(&root, device, set, name)) {
        return Some(found);
    }
    let x86 = python.filter(|_| device.arch == "x86_64");
    match set {
        "qairt" => sdk.and_then(|s| from_sdk(s, device, name)).or_else(|| from_qnn_package(x86?, name)),
        "onnxruntime" if device.triple() == "aarch64-linux-android" => android::Trio::open(cache).and_then(|trio| trio.library(name)),
        "onnxruntime" => x86.and_then(|x86| from_package(x86, "onnxruntime", "capi", name).or_else(|| from_qnn_package(x86, name))),
        _ => None,
    }
}

/// A library of the emulator, or of the C++ library that the package brings beside it.
fn from_qnn_package(python: &python::Environment, name: &str) -> Option<Found> {
    ["", "../onnxruntime_qnn.libs"].into_iter().find_map(|folder| from_package(python, "onnxruntime-qnn", folder, name))
}

/// What the user has built: `<set>/<target>/<name>` below `$BENCH_LIBEXEC` or [`Cache::sets`], the version in the first line of `version.txt` beside
/// it. Targets are named as the QAIRT SDK does it: `aarch64-android`.
pub(super) fn from_own(root: &Path, device: &DeviceFacts, set: &str, name: &str) -> Option<Found> {
    let folder = root.join(set).join(device.qairt_target());
    let version = || fs::read_to_string(folder.join("version.txt")).ok()?.lines().next().map(|l| l.trim().to_owned());
    let path = folder.join(name);
    path.is_file().then(|| Found { path: text(&path), version: version() })
}

/// Libraries of the processor, or what the DSP loads: a skel is for one Hexagon version (formats: lib/hexagon-v75/unsigned).
pub(super) fn from_sdk(sdk: &Sdk, device: &DeviceFacts, name: &str) -> Option<Found> {
    let skel = || sdk.file(&format!("lib/hexagon-v{}/unsigned/{name}", device.htp_arch));
    sdk.file(&format!("lib/{}/{name}", device.qairt_target()))
        .or_else(|| name.to_ascii_lowercase().ends_with("skel.so").then(skel).flatten())
}

/// A library in a folder of a Python package: by its name, or by its name and a version behind it.
fn from_package(python: &python::Environment, distribution: &str, folder: &str, name: &str) -> Option<Found> {
    let package = python.package(distribution, &distribution.replace('-', "_"))?;
    let folder = Path::new(&package.path).join(folder);
    let versioned = format!("{name}.");
    let mut fits: Vec<PathBuf> = fs::read_dir(folder)
        .ok()?
        .filter_map(Result::ok)
        .filter(|e| e.file_name().to_str().is_some_and(|n| n == name || n.starts_with(&versioned)))
        .map(|e| e.path())
        .collect();
    fits.sort();
    let path = fits.into_iter().next()?;
    Some(Found { path: text(&path), version: Some(format!("{distribution} {}", package.version?)) })
}

#[cfg(test)]
mod tests;
