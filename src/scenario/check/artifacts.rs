//! `[[artifact]]`: which files, and for which cells.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    path::{Path, PathBuf},
};

use bench_backend_api::{Axis, Quant};

use super::{
    super::{
        checked::{ArtifactSource, ArtifactSpec, ModelSpec},
        suggest::show,
        value::At,
        wire,
    },
    Context, models,
};

/// A glob that matches more than this was not meant so.
const MAX_FILES: usize = 10_000;

impl Context<'_> {
    pub(super) fn artifacts(&mut self, list: &[At<wire::Artifact>], models: &BTreeMap<String, Option<ModelSpec>>) -> Vec<ArtifactSpec> {
        let mut specs = Vec::new();
        let mut first: HashMap<_, usize> = HashMap::new();
        for (i, artifact) in list.iter().enumerate() {
            let Some(spec) = self.artifact(i, artifact, models) else { continue };
            let key = (spec.backend.clone(), spec.model.clone(), spec.quant, spec.axes.clone());
            if let Some(other) = first.insert(key, i) {
                let help = format!("artifact {} is for the same cells; tell them apart by `variant` or `context`", other + 1);
                self.out.error(artifact.span(), "two artifacts for the same cells", help);
            }
            specs.push(spec);
        }
        specs
    }

    fn artifact(&mut self, place: usize, at: &At<wire::Artifact>, models: &BTreeMap<String, Option<ModelSpec>>) -> Option<ArtifactSpec> {
        let wire = &at.value;
        if let Some(backend) = &wire.backend {
            self.backend(backend);
        }
        if let Some(model) = &wire.model {
            self.model(model, models);
            if let Some(spec) = models.get(&model.value).and_then(Option::as_ref) {
                self.prompts(model, spec);
            }
        }
        for axis in Axis::ALL {
            wire.axis(*axis).iter().for_each(|v| self.axis_text(*axis, v));
        }
        if wire.config.is_none() && wire.files.is_none() && !self.is_damaged(&format!("artifact[{place}]")) {
            self.out.error(at.span(), "the artifact names no file", "add `files = [\"…\"]`, `config = \"…\"` or both".to_owned());
        }
        let config = wire.config.as_ref().and_then(|c| self.existing(c));
        let mut found: BTreeSet<PathBuf> = config.iter().cloned().collect();
        for pattern in wire.files.iter().flat_map(|f| &f.0) {
            self.matches(pattern, &mut found);
        }
        let source = self.source(at, config.as_deref(), &found)?;
        Some(ArtifactSpec {
            model: wire.model.as_ref()?.value.clone(),
            quant: Quant::parse(&wire.quant.as_ref()?.value)?,
            backend: wire.backend.as_ref()?.value.clone(),
            axes: Axis::ALL.iter().filter_map(|a| Some((*a, wire.axis(*a).pop()?.value))).collect(),
            source,
            span: at.span,
        })
    }

    /// Prompts come from the model's own tokenizer, or from the seed of one that is made on the spot. Without either they are random
    /// token ids of its vocabulary, which is enough for engines that take ids.
    fn prompts(&mut self, model: &At<String>, spec: &ModelSpec) {
        let geometry = spec.model.geometry.as_ref();
        if spec.tokenizer.is_some() || geometry.is_some_and(|g| g.seed.is_some()) {
            return;
        }
        let help = format!("add `tokenizer = \"path/to/tokenizer.json\"` to [models.{}]", spec.model.name);
        if geometry.is_some_and(|g| g.vocab.is_some()) {
            let message = format!("{} has no `tokenizer`: its prompts will be random token ids, and no text", show(&model.value));
            self.out.warning(model.span(), message, help);
        } else {
            let message =
                format!("{} has no `tokenizer`, and no `geometry` that tells `vocab`: no prompts can be made for it", show(&model.value));
            self.out.error(model.span(), message, help);
        }
    }

    /// Adds the files that a glob matches.
    fn matches(&mut self, pattern: &At<String>, found: &mut BTreeSet<PathBuf>) {
        // The folder's own name may hold characters that mean something in a glob.
        let absolute = Path::new(&pattern.value).is_absolute();
        let root = if absolute { String::new() } else { glob::Pattern::escape(&format!("{}/", self.dir.display())) };
        let paths = match glob::glob(&format!("{root}{}", pattern.value)) {
            Ok(paths) => paths,
            Err(e) => return self.out.error(pattern.span(), format!("{} is not a path or glob: {}", show(&pattern.value), e.msg), None),
        };
        let mut any = false;
        for path in paths.flatten().filter(|p| p.is_file()) {
            any = true;
            found.insert(models::normal(&path));
            if found.len() > MAX_FILES {
                return self.out.error(pattern.span(), format!("{} matches over {MAX_FILES} files", show(&pattern.value)), None);
            }
        }
        if !any {
            let help = format!("paths are relative to the scenario's folder, {}", self.shown_dir.display());
            self.out.error(pattern.span(), format!("{} matches no file", show(&pattern.value)), help);
        }
    }

    fn source(&mut self, at: &At<wire::Artifact>, config: Option<&Path>, found: &BTreeSet<PathBuf>) -> Option<ArtifactSource> {
        let mut root = found.first()?.parent()?.to_owned();
        while !found.iter().all(|f| f.starts_with(&root)) {
            root.pop();
        }
        let relative = |file: &Path| file.strip_prefix(&root).ok()?.to_str().map(str::to_owned);
        let files: Option<Vec<String>> = found.iter().map(|f| relative(f)).collect();
        let (Some(files), Some(shown)) = (files, root.to_str()) else {
            self.out.error(at.span(), "a file of the artifact has a name that is not UTF-8", "rename it".to_owned());
            return None;
        };
        Some(ArtifactSource::Files { root: shown.to_owned(), config: config.and_then(relative), files })
    }

    /// Values of axes become parts of ids, tables and command lines.
    pub(super) fn axis_text(&mut self, axis: Axis, value: &At<String>) {
        if value.value.is_empty() || value.value.len() > 64 || value.value.chars().any(|c| c.is_control() || c.is_whitespace()) {
            let help = "use 1 to 64 characters without spaces".to_owned();
            self.out.error(value.span(), format!("{} can't be a value of `{axis}`", show(&value.value)), help);
        }
    }
}
