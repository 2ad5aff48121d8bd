//! Looks for what backends need. Nothing is installed here.

use std::{
    env,
    path::{Path, PathBuf},
};

use bench_backend_api::{DeviceFacts, Found, Installed, Need};

use super::{
    Cache,
    for_device::{from_own, from_sdk, library, program},
    python, qairt,
};
use crate::scenario::Roots;

/// Looks for everything in a list of needs.
///
/// Of our own programs the one is found that runs on the device; libraries for a device are those of its processor; Python, the
/// files of the SDK and the scenario's programs are this machine's.
pub fn find(cache: &Cache, device: &DeviceFacts, needs: impl IntoIterator<Item = Need>) -> Installed {
    find_in(&Roots::default(), cache, device, needs)
}

/// [`find`] with folders that a scenario names: what such a folder is for is taken from there or not at all.
pub fn find_in(roots: &Roots, cache: &Cache, device: &DeviceFacts, needs: impl IntoIterator<Item = Need>) -> Installed {
    let python = python::Environment::open(cache);
    let sdk = roots.qairt.as_ref().map_or_else(|| qairt::Sdk::find(cache), |root| qairt::Sdk::open(root));
    let mut installed = Installed::default();
    for need in needs {
        let found = match &need {
            Need::Python => python.as_ref().map(|p| Found { path: text(&p.interpreter), version: Some(p.version.clone()) }),
            Need::PythonPackage { distribution, module } => python.as_ref().and_then(|p| p.package(distribution, module)),
            Need::QairtFile { path } => sdk.as_ref().and_then(|s| s.file(path)),
            Need::Runner { name } => {
                let path = if device.remote { program(cache, device.triple(), name) } else { own_program(name) };
                path.map(|p| Found { path: text(&p), version: Some(env!("CARGO_PKG_VERSION").to_owned()) })
            }
            Need::DeviceLibrary { set, name } => match roots {
                Roots { sets: Some(sets), .. } if sets.join(set).is_dir() => from_own(sets, device, set, name),
                Roots { qairt: Some(_), .. } if set == "qairt" => sdk.as_ref().and_then(|sdk| from_sdk(sdk, device, name)),
                _ => library(cache, sdk.as_ref(), python.as_ref(), device, set, name),
            },
            Need::Program { name } => on_path(name).map(|p| Found { path: text(&p), version: None }),
        };
        if let Some(found) = found {
            installed.0.insert(need, found);
        }
    }
    installed
}

pub(super) fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// Finds one of our own programs for this machine: beside this executable, else in `BENCH_LIBEXEC`.
pub fn own_program(name: &str) -> Option<PathBuf> {
    let beside = env::current_exe().ok().and_then(|exe| exe.parent().map(Path::to_path_buf));
    // A test's executable is in target/<profile>/deps.
    let above = beside.as_ref().and_then(|d| d.parent().map(Path::to_path_buf));
    let libexec = env::var_os("BENCH_LIBEXEC").map(PathBuf::from);
    [beside, libexec, above].into_iter().flatten().map(|d| d.join(name)).find(|p| p.is_file())
}

/// A program by its path, or looked up on PATH.
pub fn on_path(name: &str) -> Option<PathBuf> {
    if name.contains('/') {
        return Path::new(name).canonicalize().ok().filter(|p| p.is_file());
    }
    let name = format!("{name}{}", env::consts::EXE_SUFFIX);
    env::split_paths(&env::var_os("PATH")?).map(|d| d.join(&name)).find(|p| p.is_file())
}
