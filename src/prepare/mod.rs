//! Artifacts made on the spot: the recipes are Python scripts of this folder, carried inside the executable, and their results
//! are cached by what goes in (recipe, arguments, geometry, tool versions), never by their own bytes, which differ from build to
//! build for context binaries (design 2b.2).

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Instant,
};

use bench_backend_api::{Artifact, Geometry, Recipe};
use serde_json::{Map, Value, json};
use thiserror::Error;

use crate::runtimes::{
    Cache,
    python::{Environment, lock_hash, short_hash},
};

/// Every file of the recipes' program. `make.py` is its entry.
const SCRIPTS: &[(&str, &str)] = &[
    ("builders.py", include_str!("builders.py")),
    ("calibration.py", include_str!("calibration.py")),
    ("geometry.py", include_str!("geometry.py")),
    ("graph.py", include_str!("graph.py")),
    ("kind_mnn.py", include_str!("kind_mnn.py")),
    ("kind_qnn.py", include_str!("kind_qnn.py")),
    ("kind_text.py", include_str!("kind_text.py")),
    ("make.py", include_str!("make.py")),
    ("mnn_format.py", include_str!("mnn_format.py")),
    ("qnn.py", include_str!("qnn.py")),
    ("reference.py", include_str!("reference.py")),
    ("tokenizer.py", include_str!("tokenizer.py")),
    ("weights.py", include_str!("weights.py")),
];

/// Why an artifact can't be made.
#[derive(Debug, Error)]
pub enum PrepareError {
    /// The recipe needs the Python environment.
    #[error("the recipe `{0}` needs the Python environment: run `bench runtimes install python`")]
    NoPython(String),
    /// The recipe's program failed.
    #[error("recipe `{kind}`: {words} (whole output: {log})")]
    Recipe {
        /// Which recipe.
        kind: String,
        /// Its last words.
        words: String,
        /// Where its output is.
        log: PathBuf,
    },
    /// The file system refused.
    #[error("{path}: {source}")]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

fn io_error(path: &Path) -> impl FnOnce(io::Error) -> PrepareError + '_ {
    move |source| PrepareError::Io { path: path.to_path_buf(), source }
}

/// A made artifact in the cache.
#[derive(Debug, Clone)]
pub struct Made {
    /// Its cache key.
    pub key: String,
    /// Its folder.
    pub folder: PathBuf,
    /// Its files and facts.
    pub artifact: Artifact,
    /// Seconds that the making took; 0 when it was in the cache.
    pub seconds: f64,
    /// It was in the cache.
    pub cached: bool,
}

/// What goes into the recipe: also what its cache key is made of.
fn arguments(recipe: &Recipe, geometry: &Geometry) -> Value {
    let mut args: Map<String, Value> = recipe.args.clone().into_iter().collect();
    args.insert("geometry".to_owned(), json!(geometry));
    Value::Object(args)
}

/// Cache key of a recipe's result.
pub fn key(recipe: &Recipe, geometry: &Geometry) -> String {
    let mut parts: Vec<Vec<u8>> =
        vec![recipe.kind.clone().into_bytes(), arguments(recipe, geometry).to_string().into_bytes(), lock_hash().into_bytes()];
    parts.extend(SCRIPTS.iter().map(|(_, text)| text.as_bytes().to_vec()));
    format!("{}-{}", recipe.kind, short_hash(&parts.iter().map(Vec::as_slice).collect::<Vec<_>>()))
}

/// Takes the artifact from the cache, or makes it. Two processes that want the same one wait for each other.
pub fn make(cache: &Cache, recipe: &Recipe, geometry: &Geometry) -> Result<Made, PrepareError> {
    let key = key(recipe, geometry);
    let root = cache.join("artifacts");
    fs::create_dir_all(&root).map_err(io_error(&root))?;
    let folder = root.join(&key);
    let lock_path = root.join(format!("{key}.lock"));
    let lock = File::create(&lock_path).map_err(io_error(&lock_path))?;
    lock.lock().map_err(io_error(&lock_path))?;
    let started = Instant::now();
    let cached = folder.join("meta.json").is_file();
    if !cached {
        build(cache, recipe, geometry, &root, &key, &lock)?;
    }
    let meta_path = folder.join("meta.json");
    let meta = fs::read(&meta_path).map_err(io_error(&meta_path))?;
    let damaged =
        |e: serde_json::Error| PrepareError::Recipe { kind: recipe.kind.clone(), words: format!("meta.json: {e}"), log: meta_path.clone() };
    let meta = serde_json::from_slice(&meta).map_err(damaged)?;
    let artifact = Artifact { files: list(&folder)?, meta };
    Ok(Made { key, folder, artifact, seconds: if cached { 0.0 } else { started.elapsed().as_secs_f64() }, cached })
}

fn build(cache: &Cache, recipe: &Recipe, geometry: &Geometry, root: &Path, key: &str, lock: &File) -> Result<(), PrepareError> {
    let python = Environment::open(cache).ok_or_else(|| PrepareError::NoPython(recipe.kind.clone()))?;
    let part = root.join(format!("{key}.part"));
    if part.exists() {
        fs::remove_dir_all(&part).map_err(io_error(&part))?;
    }
    let (scripts, out) = (part.join("scripts"), part.join("out"));
    for dir in [&scripts, &out] {
        fs::create_dir_all(dir).map_err(io_error(dir))?;
    }
    for (name, text) in SCRIPTS {
        let path = scripts.join(name);
        fs::write(&path, text).map_err(io_error(&path))?;
    }
    let args = part.join("args.json");
    fs::write(&args, arguments(recipe, geometry).to_string()).map_err(io_error(&args))?;
    let log = root.join(format!("{key}.log"));
    let failed = |words: String| PrepareError::Recipe { kind: recipe.kind.clone(), words, log: log.clone() };
    let mut command = Command::new(&python.interpreter);
    command.arg(scripts.join("make.py")).arg(&recipe.kind).arg(&args).arg(&out).current_dir(&part);
    command.env("PYTHONDONTWRITEBYTECODE", "1").env("PYTHONNOUSERSITE", "1");
    // A lock belongs to the open file, which the recipe's program now shares: if we are killed, nobody touches its folder until it is gone.
    command.stdin(Stdio::from(lock.try_clone().map_err(io_error(&log))?));
    let output = command.output().map_err(|e| failed(e.to_string()))?;
    fs::write(&log, [output.stdout, output.stderr.clone()].concat()).map_err(io_error(&log))?;
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(failed(text.lines().rev().find(|l| !l.trim().is_empty()).unwrap_or("no reason given").to_owned()));
    }
    if !out.join("meta.json").is_file() {
        return Err(failed("it made no meta.json".to_owned()));
    }
    for file in list(&out)? {
        // Work folders hold hard links to these files: a tool must not change them.
        let path = out.join(&file);
        let mut permissions = fs::metadata(&path).map_err(io_error(&path))?.permissions();
        permissions.set_readonly(true);
        fs::set_permissions(&path, permissions).map_err(io_error(&path))?;
    }
    let folder = root.join(key);
    if folder.exists() {
        fs::remove_dir_all(&folder).map_err(io_error(&folder))?;
    }
    fs::rename(&out, &folder).map_err(io_error(&folder))?;
    fs::remove_dir_all(&part).map_err(io_error(&part))
}

/// Files of a folder, relative, sorted.
pub fn list(folder: &Path) -> Result<Vec<String>, PrepareError> {
    let mut files = Vec::new();
    let mut stack = vec![folder.to_path_buf()];
    while let Some(dir) = stack.pop() {
        for entry in fs::read_dir(&dir).map_err(io_error(&dir))?.filter_map(Result::ok) {
            let path = entry.path();
            if path.is_dir() {
                stack.push(path);
            } else if let Ok(relative) = path.strip_prefix(folder) {
                files.push(relative.to_string_lossy().into_owned());
            }
        }
    }
    files.sort();
    Ok(files)
}
