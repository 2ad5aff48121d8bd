//! `[models]`, and paths.

use std::{
    collections::BTreeMap,
    ops::Range,
    path::{Component, Path, PathBuf},
};

use bench_backend_api::Model;

use super::{
    super::{
        checked::{ModelSpec, Template},
        geometry,
        suggest::show,
        value::At,
        wire,
    },
    Context,
};
use crate::chat::ChatTemplate;

impl Context<'_> {
    /// The models by name, `None` for one that has a problem: it is known all the same.
    pub(super) fn models(&mut self, models: BTreeMap<At<String>, wire::Model>) -> BTreeMap<String, Option<ModelSpec>> {
        if models.is_empty() && !self.is_damaged("models") {
            self.out.error(0..0, "[models] describes no model", "add [models.<name>] with its `context`".to_owned());
        }
        models.into_iter().map(|(name, model)| (name.value.clone(), self.one_model(&name, model))).collect()
    }

    fn one_model(&mut self, name: &At<String>, wire: wire::Model) -> Option<ModelSpec> {
        self.name(name, "a model");
        if let (Some(context), Some(chunk)) = (&wire.context, &wire.chunk)
            && chunk.value > context.value
        {
            let message = format!("a chunk of {} tokens does not fit a context of {}", chunk.value, context.value);
            self.out.error(chunk.span(), message, "the prefill graph's AR is at most the context length".to_owned());
        }
        let mut shape = None;
        if let Some(file) = &wire.geometry
            && self.existing(file).is_some()
        {
            match geometry::read(&self.shown_dir.join(&file.value), self.out) {
                Ok(geometry) => shape = geometry,
                Err(problem) => self.out.error(file.span(), format!("{} {}", show(&file.value), problem.message), problem.help),
            }
        }
        let tokenizer = wire.tokenizer.as_ref().and_then(|file| match self.lookup(file) {
            Ok(full) => full.to_str().map(str::to_owned),
            Err(words) => {
                // Whether that is an error is known once the model's artifacts have been looked at.
                self.no_tokenizer.insert(name.value.clone(), (file.span(), words));
                None
            }
        });
        if let Some(file) = wire.tokenizer.as_ref().filter(|_| shape.as_ref().is_some_and(|g| g.seed.is_some())) {
            let help = "a model that is made on the spot comes with a tokenizer: take out this key, or the geometry's `seed`".to_owned();
            self.out.error(file.span(), "`tokenizer` is for models of your own, and this one's geometry has a `seed`", help);
        }
        let template = self.template(wire.template.as_ref(), wire.tokenizer.is_some(), tokenizer.as_deref());
        let context = wire.context?.value;
        let chunk = wire.chunk.map(|c| c.value);
        Some(ModelSpec { model: Model { name: name.value.clone(), context, chunk, geometry: shape }, tokenizer, template })
    }

    /// What a model's prompts are, and whether they can be that.
    fn template(&mut self, wire: Option<&At<wire::Template>>, named: bool, tokenizer: Option<&str>) -> Template {
        let Some(asked) = wire.filter(|asked| asked.value == wire::Template::Chat) else { return Template::Raw };
        if !named {
            let help = "name the model's `tokenizer`: its chat template stands beside it".to_owned();
            self.out.error(asked.span(), "`template = \"chat\"` of a model without a tokenizer", help);
        }
        if let Some(Err(e)) = tokenizer.map(|path| ChatTemplate::beside(Path::new(path))) {
            let help = "take the file from where the model comes from, or ask for `template = \"raw\"`".to_owned();
            self.out.error(asked.span(), e.to_string(), help);
        }
        Template::Chat
    }

    /// The absolute path of a file that the scenario names, if it is there.
    pub(super) fn existing(&mut self, path: &At<String>) -> Option<PathBuf> {
        match self.lookup(path) {
            Ok(full) => Some(full),
            Err(words) => {
                self.missing(path.span(), words);
                None
            }
        }
    }

    /// The same, with what is wrong in words.
    pub(super) fn lookup(&self, path: &At<String>) -> Result<PathBuf, String> {
        let full = normal(&self.dir.join(&path.value));
        if !path.value.is_empty() && full.is_file() {
            return Ok(full);
        }
        let state = if full.is_dir() { "is a folder, not a file" } else { "is not there" };
        Err(format!("the file {} {state}", show(&path.value)))
    }

    /// Reports a file that is not there.
    pub(super) fn missing(&mut self, span: Range<usize>, words: String) {
        let help = format!("paths are relative to the scenario's folder, {}", self.shown_dir.display());
        self.out.error(span, words, help);
    }
}

/// A path without `.` and `..`, by its words alone.
pub fn normal(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                out.pop();
            }
            part => out.push(part),
        }
    }
    out
}
