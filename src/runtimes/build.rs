//! Our own programs for devices, built from the source tree: the static agent, which needs nothing but Rust, and the runners, which
//! are Android programs and need the linker of Google's NDK.

use std::{
    env, fs, io,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use thiserror::Error;

use super::{Cache, for_device::agent_triple};

/// The triple of phones.
pub const PHONE: &str = "aarch64-linux-android";

/// Android's API level that runners are linked for (Android 11); newer phones run them too.
const API: u32 = 30;

/// Why a program can't be built.
#[derive(Debug, Error)]
pub enum BuildError {
    /// There is no source tree.
    #[error("{0} is not a source tree of bench (no agent/Cargo.toml): get one and name it with --source DIR")]
    NoSource(PathBuf),
    /// Rust can't build for the target.
    #[error("Rust's library for {0} is not installed: run `rustup target add {0}`")]
    NoTarget(String),
    /// The folder is no NDK, or one without the linker.
    #[error("{ndk} is not an NDK with a compiler for Android API {API} on this computer: there is no {linker}")]
    NoLinker {
        /// What was given as the NDK.
        ndk: PathBuf,
        /// What it has to hold.
        linker: PathBuf,
    },
    /// Cargo failed; it has said why.
    #[error("`{0}` failed; nothing was installed")]
    Cargo(String),
    /// The file system refused.
    #[error("{path}: {source}")]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

fn io_error(path: &Path) -> impl FnOnce(io::Error) -> BuildError + '_ {
    move |source| BuildError::Io { path: path.to_path_buf(), source }
}

/// The source tree: as named, else the one that this program was built from.
pub fn source(named: Option<PathBuf>) -> Result<PathBuf, BuildError> {
    let source = named.unwrap_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")));
    if source.join("agent/Cargo.toml").is_file() { Ok(source) } else { Err(BuildError::NoSource(source)) }
}

/// The NDK: as named, else `ANDROID_NDK_HOME` or `ANDROID_NDK_ROOT`.
pub fn ndk(named: Option<PathBuf>) -> Option<PathBuf> {
    let set = |name: &str| env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    named.or_else(|| set("ANDROID_NDK_HOME")).or_else(|| set("ANDROID_NDK_ROOT"))
}

/// Builds the static agent for `aarch64` or `x86_64`. musl and rust-lld come with Rust: no NDK and no cross compiler is needed.
pub fn agent(cache: &Cache, source: &Path, arch: &str) -> Result<PathBuf, BuildError> {
    let env = [("RUSTFLAGS".to_owned(), "-C linker=rust-lld -C link-self-contained=yes".into())];
    build(cache, source, &agent_triple(arch), "bench-agent", &env)
}

/// Builds a runner for phones.
pub fn runner(cache: &Cache, source: &Path, ndk: &Path, name: &str) -> Result<PathBuf, BuildError> {
    let linker = linker(ndk)?;
    let env = ["CARGO_TARGET_AARCH64_LINUX_ANDROID_LINKER", "CC_aarch64_linux_android"].map(|n| (n.to_owned(), linker.clone().into()));
    build(cache, source, PHONE, name, &env)
}

/// The compiler driver that links for phones, as every NDK since r19 names it.
fn linker(ndk: &Path) -> Result<PathBuf, BuildError> {
    let (host, suffix) = match env::consts::OS {
        // The NDK's folder has this name on ARM Macs too.
        "macos" => ("darwin-x86_64", ""),
        "windows" => ("windows-x86_64", ".cmd"),
        _ => ("linux-x86_64", ""),
    };
    let linker = ndk.join("toolchains/llvm/prebuilt").join(host).join("bin").join(format!("{PHONE}{API}-clang{suffix}"));
    if linker.is_file() { Ok(linker) } else { Err(BuildError::NoLinker { ndk: ndk.to_path_buf(), linker }) }
}

/// Builds one package and puts its program into the cache.
fn build(cache: &Cache, source: &Path, triple: &str, package: &str, env: &[(String, std::ffi::OsString)]) -> Result<PathBuf, BuildError> {
    if !has_target(triple) {
        return Err(BuildError::NoTarget(triple.to_owned()));
    }
    // A target folder of our own: wherever cargo is configured to build, the result is found, and the source tree is left alone.
    let target = cache.runtimes().join("build");
    let args = ["build", "--profile", "dist", "-p", package, "--target", triple];
    let mut cargo = Command::new("cargo");
    cargo.args(args).arg("--target-dir").arg(&target).current_dir(source).stdin(Stdio::null());
    cargo.envs(env.iter().map(|(name, value)| (name, value)));
    if !cargo.status().is_ok_and(|status| status.success()) {
        return Err(BuildError::Cargo(format!("cargo {}", args.join(" "))));
    }
    install(&target.join(triple).join("dist").join(package), &cache.built(triple))
}

/// Whether Rust's standard library for a target is there, with or without rustup.
fn has_target(triple: &str) -> bool {
    let printed = Command::new("rustc").args(["--print", "target-libdir", "--target", triple]).output();
    printed.is_ok_and(|o| o.status.success() && Path::new(String::from_utf8_lossy(&o.stdout).trim()).is_dir())
}

/// Copies a program beside its final name and renames it: a program that runs, or two builds at once, never see half of it.
fn install(program: &Path, folder: &Path) -> Result<PathBuf, BuildError> {
    fs::create_dir_all(folder).map_err(io_error(folder))?;
    let name = program.file_name().unwrap_or_default();
    let part = folder.join(format!(".{}.{}.part", name.display(), std::process::id()));
    let to = folder.join(name);
    fs::copy(program, &part).and_then(|_| fs::rename(&part, &to)).map_err(io_error(program))?;
    Ok(to)
}
