//! What each cell needs before its first launch: its artifact, its prompts and its reference tokens.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{self, Read},
    path::{Path, PathBuf},
};

use bench_backend_api::{Artifact, Failure, FailureKind, Recipe, Workload};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::{
    events::Event,
    prompts::{self, PromptError, Prompts},
};
use crate::{
    chat::ChatTemplate,
    import,
    prepare::{self, Made},
    runtimes::Cache,
    scenario::{ArtifactSource, Plan, PlannedCell, Reference, Template},
};

/// The kind of recipe of a program that brings its own model.
const NO_ARTIFACT: &str = "none";

/// Key of an artifact's `meta.json`, and column: the name that its own world has for its quantisation (rule R29).
pub const QUANT_NATIVE: &str = "quant_native";

/// Name of the tokenizer in the work folder.
const TOKENIZER: &str = "tokenizer.json";

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

/// Hash of a model's own tokenizer, and prompts made with it.
type OwnPrompts = Result<(String, Prompts), Failure>;

/// Makes what cells need; equal recipes are made once.
pub struct Workshop<'a> {
    cache: &'a Cache,
    plan: &'a Plan,
    /// [`Plan::asked_before`].
    before: BTreeMap<&'a str, u32>,
    say: &'a dyn Fn(Event),
    made: BTreeMap<String, Result<Made, Failure>>,
    own: BTreeMap<(String, Vec<String>), Result<OwnFiles, Failure>>,
    exact: BTreeMap<(String, u32, u32), OwnPrompts>,
}

impl<'a> Workshop<'a> {
    /// A workshop for one plan; `say` hears what is made.
    pub fn new(cache: &'a Cache, plan: &'a Plan, say: &'a dyn Fn(Event)) -> Self {
        Self { cache, plan, before: plan.asked_before(), say, made: BTreeMap::new(), own: BTreeMap::new(), exact: BTreeMap::new() }
    }

    /// Everything that a cell needs, or the reason why it can't be had.
    pub fn ready(&mut self, planned: &PlannedCell) -> Result<ReadyCell, Failure> {
        let (mut artifact, mut paths, mut key) = match planned.source.as_ref() {
            Some(ArtifactSource::Files { root, config, files, .. }) => {
                let known = self.own.entry((root.clone(), files.clone()));
                known.or_insert_with(|| own_files(Path::new(root), config.as_deref(), files)).clone()?
            }
            Some(source @ ArtifactSource::Recipe(recipe)) if !brings_its_model(source) => {
                let made = self.make(planned, recipe)?;
                let paths = made.artifact.files.iter().map(|f| (f.clone(), made.folder.join(f))).collect();
                (made.artifact, paths, Some(made.key))
            }
            _ => (Artifact::default(), BTreeMap::new(), None),
        };
        let before = self.before(planned) * self.plan.measure.asked_queries();
        let queries = self.plan.measure.asked_queries() + before;
        let Workload::Generate { prompt_tokens, gen_tokens } = planned.cell.workload;
        let geometry = planned.cell.model.geometry.as_ref();
        let usage = |e: PromptError| Failure::new(FailureKind::Usage, format!("models.{}: {e}", planned.cell.model.name));
        let (mut prompts, tokenizer) = match text_of(self.plan, planned) {
            Text::Own(tokenizer) => {
                let (hash, made) = self.exact(planned, tokenizer, queries)?;
                // A run whose tokenizer was exchanged can't be resumed: its prompts would be others.
                key = Some(key.map_or_else(|| format!("tokenizer-{hash}"), |key| format!("{key}-{hash}")));
                (made, Some(PathBuf::from(tokenizer)))
            }
            Text::Made => {
                let text = self.make(planned, &self.text_recipe(planned))?;
                let mut prompts = prompts::from_artifact(&text.folder, geometry.and_then(|g| g.bos), prompt_tokens, gen_tokens, queries)
                    .map_err(|e| Failure::new(FailureKind::Infra, e.to_string()))?;
                if self.plan.verify.reference == Reference::None {
                    prompts.reference = None;
                }
                (prompts, Some(text.folder.join("tokenizer.json")))
            }
            Text::Random => {
                let geometry = geometry.ok_or_else(|| usage(PromptError::NoVocabulary)).map_err(no_prompts)?;
                (prompts::synthetic(geometry, self.plan.seed, prompt_tokens, queries).map_err(usage).map_err(no_prompts)?, None)
            }
        };
        // Rule R3: no query of a process has the prompt of another.
        let before = before as usize;
        prompts.ids.drain(..before);
        prompts.texts.drain(..before.min(prompts.texts.len()));
        if let Some(reference) = &mut prompts.reference {
            reference.drain(..before);
        }
        // Genie loads a tokenizer even when it is asked with token ids.
        if let Some(path) = tokenizer.filter(|_| !paths.contains_key(TOKENIZER)) {
            artifact.files.push(TOKENIZER.to_owned());
            paths.insert(TOKENIZER.to_owned(), path);
        }
        Ok(ReadyCell { artifact, paths, key, prompts })
    }

    fn before(&self, planned: &PlannedCell) -> u32 {
        self.before.get(planned.id.as_str()).copied().unwrap_or(0)
    }

    /// Prompts made with a model's own tokenizer, and the tokenizer's hash; made once for all cells that share them.
    fn exact(&mut self, planned: &PlannedCell, tokenizer: &str, queries: u32) -> OwnPrompts {
        let model = &planned.cell.model;
        let tokens = planned.cell.workload.prompt_tokens();
        let seed = self.plan.seed;
        let make = || {
            let usage = |e: &dyn std::fmt::Display| Failure::new(FailureKind::Usage, format!("models.{}: {e}", model.name));
            let path = Path::new(tokenizer);
            let chat = match self.plan.template(&model.name) {
                Template::Chat => Some(ChatTemplate::beside(path).map_err(|e| usage(&e))?),
                Template::Raw => None,
            };
            let mut hash =
                File::open(path).and_then(|mut file| content_hash(&mut file)).map_err(|e| usage(&format!("{tokenizer}: {e}")))?;
            if let Some(chat) = &chat {
                hash = Sha256::new().chain_update(hash).chain_update(chat.bytes()).finalize().into();
            }
            let prompts = prompts::exact((path, chat), model.geometry.as_ref(), seed, tokens, queries).map_err(|e| usage(&e))?;
            Ok((crate::hex(&hash[..8]), prompts))
        };
        self.exact.entry((model.name.clone(), tokens, queries)).or_insert_with(make).clone()
    }

    /// One recipe for all prompt lengths that a model has with this number of generated tokens.
    fn text_recipe(&self, planned: &PlannedCell) -> Recipe {
        let (cell, generated) = (&planned.cell, planned.cell.workload.gen_tokens());
        let same = |c: &&PlannedCell| c.cell.model == cell.model && c.cell.workload.gen_tokens() == generated && c.skipped.is_none();
        let mut lengths: Vec<u32> = self.plan.cells.iter().filter(same).map(|c| c.cell.workload.prompt_tokens()).collect();
        let most = self.plan.cells.iter().filter(same).map(|c| self.before(c) + 1).max().unwrap_or(1);
        let queries = most * self.plan.measure.asked_queries();
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

/// Where a cell's prompts come from.
#[derive(Debug, PartialEq, Eq)]
enum Text<'a> {
    /// The model's own tokenizer.
    Own(&'a str),
    /// The seed of a model that is made on the spot, with reference tokens.
    Made,
    /// Nobody names a tokenizer: random ids.
    Random,
}

fn text_of<'a>(plan: &'a Plan, planned: &PlannedCell) -> Text<'a> {
    let seeded = planned.cell.model.geometry.as_ref().is_some_and(|g| g.seed.is_some());
    let bare = planned.source.as_ref().is_none_or(brings_its_model) && plan.verify.reference == Reference::None;
    match plan.tokenizers.get(&planned.cell.model.name) {
        Some(path) => Text::Own(path),
        None if seeded && !bare => Text::Made,
        None => Text::Random,
    }
}

/// A program of the user that brings its own model.
fn brings_its_model(source: &ArtifactSource) -> bool {
    matches!(source, ArtifactSource::Recipe(recipe) if recipe.kind == NO_ARTIFACT)
}

fn no_geometry(planned: &PlannedCell) -> Failure {
    let name = &planned.cell.model.name;
    Failure::new(FailureKind::Usage, format!("models.{name}: only a model whose `geometry` has a `seed` can be made"))
}

fn no_prompts(mut failure: Failure) -> Failure {
    failure.hint = Some("name its tokenizer.json: `tokenizer = \"...\"` in its [models] section".to_owned());
    failure
}

/// Whether anything has to be made for a plan: an artifact, or prompts with their reference.
pub fn needs_recipes(plan: &Plan) -> bool {
    plan.cells.iter().any(|planned| {
        let made = |source: &ArtifactSource| matches!(source, ArtifactSource::Recipe(_)) && !brings_its_model(source);
        planned.source.as_ref().is_some_and(|source| made(source) || text_of(plan, planned) == Text::Made)
    })
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
    if let Some(meta) = meta.as_object_mut() {
        // What the user's meta.json says of it is not gainsaid.
        let told = import::quantisation(root, files);
        let facts = told.facts.into_iter().map(|(column, value)| (column, json!(value)));
        for (column, value) in facts.chain(told.native.map(|name| (QUANT_NATIVE, json!(name)))) {
            meta.entry(column).or_insert(value);
        }
        if let Some(name) = config {
            meta.insert("config".to_owned(), json(name)?);
        }
    }
    let key = format!("files-{}", crate::hex(&hash.finalize()[..8]));
    Ok((Artifact { files: files.to_vec(), meta }, paths, Some(key)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a user's meta.json says stays, what it leaves out is as the files tell it.
    #[test]
    fn own_files_tell_their_quantisation() {
        let dir = tempfile::tempdir().expect("a folder");
        let write = |name: &str, value: &Value| fs::write(dir.path().join(name), value.to_string()).expect("written");
        write("export_args.json", &json!({"quant_bit": 4, "quant_block": 64, "lm_quant_bit": 8, "hqq": true, "sym": true}));
        write("llm.mnn", &json!({}));
        write("c.json", &json!({"thread_num": 4}));
        let meta = |files: &[&str]| {
            let files: Vec<String> = files.iter().map(|name| (*name).to_owned()).collect();
            own_files(dir.path(), Some("c.json"), &files).expect("files").0.meta
        };
        let config = json!({"thread_num": 4});
        let told = json!({"quant_native": "HQQ int4 block 64, symmetric", "weight_bits": 4.0, "group": 64.0, "lm_head_bits": 8.0, "config": config});
        assert_eq!(meta(&["c.json", "llm.mnn"]), told);
        write("meta.json", &json!({"quant_native": "mine", "lm_head_bits": 16, "graphs": {}}));
        let own = json!({"quant_native": "mine", "weight_bits": 4.0, "group": 64.0, "lm_head_bits": 16, "graphs": {}, "config": config});
        assert_eq!(meta(&["c.json", "llm.mnn", "meta.json"]), own);
        assert_eq!(meta(&["c.json"]), json!({"config": config}));
    }
}
