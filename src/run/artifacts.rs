//! What each cell needs before its first launch: its artifact, its prompts and its reference tokens.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{self, Read},
    path::{Path, PathBuf},
};

use bench_backend_api::{Artifact, Failure, FailureKind, Recipe};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::{
    events::Event,
    prompts::{self, Prompts},
};
use crate::{
    prepare::{self, Made},
    runtimes::Cache,
    scenario::{ArtifactSource, Plan, PlannedCell, Reference},
};

/// The kind of recipe of a program that brings its own model.
const NO_ARTIFACT: &str = "none";

/// A cell that is ready to be launched.
#[derive(Debug, Clone)]
pub struct ReadyCell {
    /// The artifact as the adapter sees it.
    pub artifact: Artifact,
    /// Host path of each of its files.
    pub paths: BTreeMap<String, PathBuf>,
    /// Cache key, or hash of the user's files.
    pub key: Option<String>,
    /// Prompts and reference.
    pub prompts: Prompts,
}

/// Makes what cells need; equal recipes are made once.
pub struct Workshop<'a> {
    cache: &'a Cache,
    plan: &'a Plan,
    say: &'a dyn Fn(Event),
    made: BTreeMap<String, Result<Made, Failure>>,
    own: BTreeMap<(String, Vec<String>), Result<OwnFiles, Failure>>,
}

impl<'a> Workshop<'a> {
    /// A workshop for one plan; `say` hears what is made.
    pub fn new(cache: &'a Cache, plan: &'a Plan, say: &'a dyn Fn(Event)) -> Self {
        Self { cache, plan, say, made: BTreeMap::new(), own: BTreeMap::new() }
    }

    /// Everything that a cell needs, or the reason why it can't be had.
    pub fn ready(&mut self, planned: &PlannedCell) -> Result<ReadyCell, Failure> {
        let (mut artifact, mut paths, key) = match planned.source.as_ref() {
            Some(ArtifactSource::Files { root, config, files }) => {
                let known = self.own.entry((root.clone(), files.clone()));
                known.or_insert_with(|| own_files(Path::new(root), config.as_deref(), files)).clone()?
            }
            Some(ArtifactSource::Recipe(recipe)) if recipe.kind != NO_ARTIFACT => {
                let made = self.make(planned, recipe)?;
                let paths = made.artifact.files.iter().map(|f| (f.clone(), made.folder.join(f))).collect();
                (made.artifact, paths, Some(made.key))
            }
            _ => (Artifact::default(), BTreeMap::new(), None),
        };
        let bare = paths.is_empty() && self.plan.verify.reference == Reference::None;
        let queries = self.plan.measure.warmup + self.plan.measure.queries;
        let workload = planned.cell.workload;
        let prompts = if bare {
            let geometry = planned.cell.model.geometry.as_ref().ok_or_else(|| no_geometry(planned))?;
            prompts::synthetic(geometry, self.plan.seed, workload.prompt_tokens(), queries)
                .map_err(|e| Failure::new(FailureKind::Usage, format!("models.{}: {e}", planned.cell.model.name)))?
        } else {
            let text = self.make(planned, &self.text_recipe(planned, queries))?;
            // Genie loads a tokenizer even when it is asked with token ids.
            if !paths.contains_key("tokenizer.json") {
                artifact.files.push("tokenizer.json".to_owned());
                paths.insert("tokenizer.json".to_owned(), text.folder.join("tokenizer.json"));
            }
            let mut prompts = prompts::from_artifact(&text.folder, workload.prompt_tokens(), workload.gen_tokens(), queries)
                .map_err(|e| Failure::new(FailureKind::Infra, e.to_string()))?;
            if self.plan.verify.reference == Reference::None {
                prompts.reference = None;
            }
            prompts
        };
        Ok(ReadyCell { artifact, paths, key, prompts })
    }

    /// One recipe for all prompt lengths that a model has with this number of generated tokens.
    fn text_recipe(&self, planned: &PlannedCell, queries: u32) -> Recipe {
        let (cell, generated) = (&planned.cell, planned.cell.workload.gen_tokens());
        let same = |c: &&PlannedCell| c.cell.model == cell.model && c.cell.workload.gen_tokens() == generated && c.skipped.is_none();
        let mut lengths: Vec<u32> = self.plan.cells.iter().filter(same).map(|c| c.cell.workload.prompt_tokens()).collect();
        lengths.sort_unstable();
        lengths.dedup();
        let args = BTreeMap::from([
            ("lengths".to_owned(), json!(lengths)),
            ("prompts_per_length".to_owned(), json!(queries)),
            ("gen_tokens".to_owned(), json!(generated)),
            ("context".to_owned(), json!(cell.model.context)),
        ]);
        Recipe { kind: "text".to_owned(), args }
    }

    fn make(&mut self, planned: &PlannedCell, recipe: &Recipe) -> Result<Made, Failure> {
        let geometry = planned.cell.model.geometry.as_ref().filter(|g| g.seed.is_some()).ok_or_else(|| no_geometry(planned))?;
        let key = prepare::key(recipe, geometry);
        if let Some(result) = self.made.get(&key) {
            return result.clone();
        }
        let model = &planned.cell.model.name;
        let quant = recipe.args.get("quant").and_then(Value::as_str).map(|q| format!(" {q}")).unwrap_or_default();
        let what = format!("{} of {model}{quant}", recipe.kind);
        (self.say)(Event::Preparing { what: what.clone() });
        let result = prepare::make(self.cache, recipe, geometry).map_err(|e| Failure::new(FailureKind::Infra, e.to_string()));
        if let Ok(made) = &result {
            (self.say)(Event::Prepared { what, seconds: made.seconds, cached: made.cached });
        }
        self.made.insert(key, result.clone());
        result
    }
}

fn no_geometry(planned: &PlannedCell) -> Failure {
    let mut failure = Failure::new(
        FailureKind::Usage,
        format!("models.{}: without a geometry that has a `seed` this version can't make prompts", planned.cell.model.name),
    );
    failure.hint = Some("real models with their own tokenizer come with a later version".to_owned());
    failure
}

/// Whether anything has to be made for a plan: an artifact, or prompts with their reference.
pub fn needs_recipes(plan: &Plan) -> bool {
    let made = |source: &ArtifactSource| !matches!(source, ArtifactSource::Recipe(recipe) if recipe.kind == NO_ARTIFACT);
    plan.cells.iter().filter_map(|c| c.source.as_ref()).any(|source| made(source) || plan.verify.reference != Reference::None)
}

fn content_hash(file: &mut File) -> io::Result<[u8; 32]> {
    let mut hash = Sha256::new();
    let mut block = vec![0; 1 << 20];
    loop {
        match file.read(&mut block)? {
            0 => return Ok(hash.finalize().into()),
            n => hash.update(&block[..n]),
        }
    }
}

type OwnFiles = (Artifact, BTreeMap<String, PathBuf>, Option<String>);

/// A user's own files; read once, in blocks, since a model may have gigabytes.
fn own_files(root: &Path, config: Option<&str>, files: &[String]) -> Result<OwnFiles, Failure> {
    let mut hash = Sha256::new();
    let mut paths = BTreeMap::new();
    let usage = |path: &Path, e: &dyn std::fmt::Display| Failure::new(FailureKind::Usage, format!("{}: {e}", path.display()));
    for name in files {
        let path = root.join(name);
        let mut file = File::open(&path).map_err(|e| usage(&path, &e))?;
        hash.update((name.len() as u64).to_le_bytes());
        hash.update(name.as_bytes());
        hash.update(content_hash(&mut file).map_err(|e| usage(&path, &e))?);
        paths.insert(name.clone(), path);
    }
    let json = |name: &str| -> Result<Value, Failure> {
        let path = root.join(name);
        let text = fs::read(&path).map_err(|e| usage(&path, &e))?;
        serde_json::from_slice(&text).map_err(|e| usage(&path, &format!("not JSON: {e}")))
    };
    let mut meta = if paths.contains_key("meta.json") { json("meta.json")? } else { json!({}) };
    if let (Some(name), Some(meta)) = (config, meta.as_object_mut()) {
        meta.insert("config".to_owned(), json(name)?);
    }
    let key = format!("files-{}", crate::hex(&hash.finalize()[..8]));
    Ok((Artifact { files: files.to_vec(), meta }, paths, Some(key)))
}
