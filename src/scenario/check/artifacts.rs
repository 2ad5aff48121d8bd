//! `[[artifact]]`: which files, and for which cells.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    ops::Range,
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
        // A tokenizer comes with its model's files: who tells how to get those has told it all.
        for (model, (span, words)) in std::mem::take(&mut self.no_tokenizer) {
            let mut mine = list.iter().filter(|a| a.value.model.as_ref().is_some_and(|m| m.value == model)).peekable();
            if mine.peek().is_none() || mine.any(|a| a.value.origin.is_none()) {
                self.missing(span, words);
            }
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
        }
        for axis in Axis::ALL {
            wire.axis(*axis).iter().for_each(|v| self.axis_text(*axis, v));
        }
        if wire.config.is_none() && wire.files.is_none() && !self.is_damaged(&format!("artifact[{place}]")) {
            self.out.error(at.span(), "the artifact names no file", "add `files = [\"…\"]`, `config = \"…\"` or both".to_owned());
        }
        wire.quant_native.iter().for_each(|name| self.native(name));
        let mut absent = Vec::new();
        let mut found = BTreeSet::new();
        let config = wire.config.as_ref().and_then(|path| self.lookup(path).map_err(|words| absent.push((path.span(), words))).ok());
        found.extend(config.clone());
        for pattern in wire.files.iter().flat_map(|f| &f.0) {
            if !self.matches(pattern, &mut found) {
                absent.push((pattern.span(), format!("{} matches no file", show(&pattern.value))));
            }
        }
        let source = if let Some(reason) = self.origin(wire, absent) {
            Err(reason)
        } else {
            if let Some((model, spec)) = wire.model.as_ref().and_then(|m| Some((m, models.get(&m.value)?.as_ref()?))) {
                self.prompts(model, spec);
            }
            Ok(self.source(at, config.as_deref(), &found)?)
        };
        Some(ArtifactSpec {
            model: wire.model.as_ref()?.value.clone(),
            quant: Quant::parse(&wire.quant.as_ref()?.value)?,
            backend: wire.backend.as_ref()?.value.clone(),
            axes: Axis::ALL.iter().filter_map(|a| Some((*a, wire.axis(*a).pop()?.value))).collect(),
            source,
            span: at.span,
        })
    }

    /// Reports files that are not there: as errors, or, where the scenario tells how to get them, as one warning. Then the reason why the
    /// artifact's cells are skipped.
    fn origin(&mut self, wire: &wire::Artifact, mut absent: Vec<(Range<usize>, String)>) -> Option<String> {
        let Some(origin) = &wire.origin else {
            for (span, words) in absent {
                self.missing(span, words);
            }
            return None;
        };
        absent.extend(wire.model.as_ref().and_then(|m| self.no_tokenizer.get(&m.value)).cloned());
        let (span, words) = absent.first()?;
        let more = if absent.len() > 1 { format!(", nor {} more of its files", absent.len() - 1) } else { String::new() };
        let way = origin.value.split_whitespace().collect::<Vec<_>>().join(" ");
        self.out.warning(span.clone(), format!("{words}{more}"), way.clone());
        Some(format!("{words}{more}: {way}"))
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

    /// Adds the files that a glob matches; false if there is none.
    fn matches(&mut self, pattern: &At<String>, found: &mut BTreeSet<PathBuf>) -> bool {
        // The folder's own name may hold characters that mean something in a glob.
        let absolute = Path::new(&pattern.value).is_absolute();
        let root = if absolute { String::new() } else { glob::Pattern::escape(&format!("{}/", self.dir.display())) };
        let paths = match glob::glob(&format!("{root}{}", pattern.value)) {
            Ok(paths) => paths,
            Err(e) => {
                self.out.error(pattern.span(), format!("{} is not a path or glob: {}", show(&pattern.value), e.msg), None);
                return true;
            }
        };
        let mut any = false;
        for path in paths.flatten().filter(|p| p.is_file()) {
            any = true;
            found.insert(models::normal(&path));
            if found.len() > MAX_FILES {
                self.out.error(pattern.span(), format!("{} matches over {MAX_FILES} files", show(&pattern.value)), None);
                break;
            }
        }
        any
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
        let quant_native = at.value.quant_native.as_ref().map(|name| name.value.clone());
        Some(ArtifactSource::Files { root: shown.to_owned(), config: config.and_then(relative), files, quant_native })
    }

    /// A name for people, in tables.
    fn native(&mut self, name: &At<String>) {
        if name.value.trim().is_empty() || name.value.chars().count() > 100 || name.value.chars().any(char::is_control) {
            let help = "use 1 to 100 characters in one line, for instance `HQQ int4 block 64`".to_owned();
            self.out.error(name.span(), format!("{} can't be a `quant-native`", show(&name.value)), help);
        }
    }

    /// Values of axes become parts of ids, tables and command lines.
    pub(super) fn axis_text(&mut self, axis: Axis, value: &At<String>) {
        if value.value.is_empty() || value.value.len() > 64 || value.value.chars().any(|c| c.is_control() || c.is_whitespace()) {
            let help = "use 1 to 64 characters without spaces".to_owned();
            self.out.error(value.span(), format!("{} can't be a value of `{axis}`", show(&value.value)), help);
        }
    }
}
