//! What a file means: names, quantities, files on disk, and what the backends can do. Every check goes on after a problem.

mod artifacts;
mod device;
mod matrix;
mod measure;
mod models;
mod pin;
mod power;
mod prefer;
mod require;
mod settle;
mod soak;

use std::{
    collections::BTreeMap,
    ops::Range,
    path::{Path, PathBuf},
};

use bench_backend_api::{Axis, AxisFit, Backend, Unit};
use sha2::{Digest, Sha256};

use super::{
    checked::{Matrix, Roots, Scenario},
    command::Command,
    problem::{Collector, Problems},
    suggest::{self, show},
    value::At,
    wire,
};

/// Words of what only a process of its own tells of a cell.
const OF_PROCESS: [&str; 2] = ["load", "memory"];

/// What the checks share.
struct Context<'a> {
    out: &'a mut Collector,
    /// The scenario's folder, absolute, without `..`.
    dir: PathBuf,
    /// The same as the user wrote it, for messages.
    shown_dir: &'a Path,
    backends: &'a [&'a dyn Backend],
    readers: &'a [&'a str],
    commands: Vec<Command>,
    /// Ids of `[backends]`, also of those whose description has a problem.
    command_ids: Vec<String>,
    /// Tokenizers that are not there, by model: where they are named, and in words.
    no_tokenizer: BTreeMap<String, (Range<usize>, String)>,
    damaged: Vec<String>,
}

/// Checks a file that the walk has been through. The result counts only if `out` holds no error.
pub fn check(
    file: wire::File,
    damaged: Vec<String>,
    text: &str,
    dir: &Path,
    backends: &[&dyn Backend],
    readers: &[&str],
    out: &mut Collector,
) -> Scenario {
    let mut cx = Context {
        out,
        dir: models::normal(&std::path::absolute(dir).unwrap_or_else(|_| dir.to_owned())),
        shown_dir: dir,
        backends,
        readers,
        commands: Vec::new(),
        command_ids: file.backends.iter().flat_map(|b| b.keys().map(|k| k.value.clone())).collect(),
        no_tokenizer: BTreeMap::new(),
        damaged,
    };
    if let Some(name) = &file.name {
        cx.name(name, "the scenario");
    }
    let device = cx.device(file.device.as_ref());
    cx.commands(file.backends, device.local);
    let models = cx.models(file.models.unwrap_or_default());
    let artifacts = cx.artifacts(&file.artifact.unwrap_or_default(), &models);
    let matrix = file.matrix.as_ref().map(|m| (cx.matrix(&m.value, &models), m));
    let seed = file.measure.as_ref().and_then(|m| m.seed.as_ref()).map_or(1, |s| s.value);
    let of_process = |r: &wire::Require| r.metric.as_ref().is_some_and(|metric| OF_PROCESS.contains(&metric.value.as_str()));
    let required = file.require.iter().flatten().any(|r| of_process(&r.value));
    let prefer = file.prefer.as_ref().map(|p| cx.prefer(p));
    let weighed = prefer.iter().flat_map(|p| p.words()).any(|word| OF_PROCESS.contains(&word));
    let wished = file.measure.as_ref().and_then(|m| m.share_launches.as_ref());
    let share_launches = cx.share_launches(wished, file.power.is_some(), required || weighed);
    let measure = cx.measure(file.measure.unwrap_or_default());
    let quantised = matrix.as_ref().and_then(|(m, _)| m.quant.iter().copied().find(|q| !q.is_float()));
    let verify = cx.verify(file.verify.unwrap_or_default(), &models, quantised);
    let telemetry_rate_hz = cx.telemetry(file.telemetry.unwrap_or_default());
    let environment = cx.environment(file.environment.unwrap_or_default());
    let settle = file.settle.map(|s| cx.settle(s, environment.ambient_c));
    let pins = cx.pins(file.pin.unwrap_or_default(), device.local);
    let soak = cx.soak(file.soak, telemetry_rate_hz > 0.0);
    let power = cx.power(file.power, device.local, telemetry_rate_hz > 0.0);
    let runtimes = cx.runtimes(file.runtimes.as_ref());
    let (matrix, written) = matrix.unzip();
    let required = file.require.unwrap_or_default();
    let require = cx.requirements(&required, &models, matrix.as_ref(), soak.as_ref(), verify.reference);
    let scenario = Scenario {
        name: file.name.map(|n| n.value).unwrap_or_default(),
        sha256: crate::hex(&Sha256::digest(text.as_bytes())),
        dir: cx.dir.clone(),
        device,
        models: models.into_iter().filter_map(|(name, model)| Some((name, model?))).collect(),
        artifacts,
        matrix: matrix.unwrap_or_default(),
        measure,
        share_launches,
        seed,
        verify,
        telemetry_rate_hz,
        settle,
        environment,
        pins,
        soak,
        power,
        require,
        prefer,
        commands: cx.commands.clone(),
        runtimes,
        ab: None,
        warnings: Problems::default(),
    };
    // What the combinations come to can only be said of a file that is otherwise right.
    if let Some(written) = written.filter(|_| !cx.out.failed()) {
        cx.combinations(&scenario, written, &required);
    }
    scenario
}

impl Context<'_> {
    /// Whether the walk took something out at a path or below it.
    fn is_damaged(&self, path: &str) -> bool {
        self.damaged.iter().any(|d| d.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '['])))
    }

    /// A name becomes part of file names and of command lines.
    fn name(&mut self, name: &At<String>, of: &str) {
        let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-.".contains(c);
        let begins = name.value.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit());
        if !begins || !name.value.chars().all(fits) || name.value.len() > 64 {
            let help = "use small letters, digits, `-` and `.`, a letter or digit first, 64 at most".to_owned();
            self.out.error(name.span(), format!("{} can't be the name of {of}", show(&name.value)), help);
        }
    }

    fn runtimes(&mut self, written: Option<&wire::Runtimes>) -> Roots {
        let mut root = |path: &Option<At<String>>| {
            let path = path.as_ref()?;
            let full = models::normal(&self.dir.join(&path.value));
            if !full.is_dir() {
                self.missing(path.span(), format!("the folder {} is not there", show(&path.value)));
            }
            Some(full)
        };
        written.map_or_else(Roots::default, |w| Roots { qairt: root(&w.qairt), sets: root(&w.sets) })
    }

    /// Whether a backend exists that can run cells.
    fn backend(&mut self, id: &At<String>) -> bool {
        let word = id.value.as_str();
        if self.backends.iter().any(|b| b.id() == word) || self.command_ids.iter().any(|c| c == word) {
            return true;
        }
        let known: Vec<&str> = self.backends.iter().map(|b| b.id()).chain(self.command_ids.iter().map(String::as_str)).collect();
        let help = suggest::help(word, &known);
        if self.readers.contains(&word) {
            let message = format!("this version can't run {}: only `bench parse` knows it", show(word));
            self.out.error(id.span(), message, format!("backends that run: {}", known.join(", ")));
        } else {
            self.out.error(id.span(), format!("unknown backend {}", show(word)), help);
        }
        false
    }

    /// Whether a model is one of `[models]`.
    fn model<T>(&mut self, name: &At<String>, models: &BTreeMap<String, T>) -> bool {
        let known = models.contains_key(&name.value);
        if !known && !self.is_damaged("models") {
            let names: Vec<&str> = models.keys().map(String::as_str).collect();
            self.out.error(
                name.span(),
                format!("unknown model {}", show(&name.value)),
                match suggest::nearest(&name.value, names.iter().copied()) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => {
                        format!("describe it in [models.{}]", name.value.chars().filter(|c| !c.is_control()).take(48).collect::<String>())
                    }
                },
            );
        }
        known
    }

    fn commands(&mut self, programs: Option<BTreeMap<At<String>, wire::Program>>, local: bool) {
        for (id, program) in programs.unwrap_or_default() {
            self.name(&id, "a backend");
            if self.backends.iter().any(|b| b.id() == id.value) || self.readers.contains(&id.value.as_str()) {
                let message = format!("{} is the name of a built-in backend", show(&id.value));
                self.out.error(id.span(), message, "give the program another name, for instance `my-runner`".to_owned());
            }
            let (mut command, mut files) = (Vec::new(), Vec::new());
            for (place, word) in program.command.unwrap_or_default().into_iter().enumerate() {
                // An absolute path is the device's own, which can be looked at here only if the device is this machine.
                let is_path = word.value.starts_with("./")
                    || word.value.starts_with("../")
                    || (place == 0 && word.value.contains('/') && (local || !word.value.starts_with('/')));
                if word.value.contains('\0') || (place == 0 && word.value.is_empty()) {
                    self.out.error(word.span(), "not a word of a command line", None);
                } else if is_path {
                    files.push(place);
                    command.extend(self.existing(&word).map(|p| p.display().to_string()));
                } else {
                    command.push(word.value);
                }
            }
            let unit = program.unit.and_then(|u| Unit::parse(&u.value)).unwrap_or(Unit::Cpu);
            self.commands.push(Command { id: id.value, command, files, unit });
        }
    }
}

/// How an axis value fits a backend or a command of the scenario.
pub fn fit(backends: &[&dyn Backend], id: &str, axis: Axis, value: &str) -> AxisFit {
    backends.iter().find(|b| b.id() == id).map_or_else(|| Command::axis(axis), |b| b.axis(axis, value))
}

/// The values of a list that are usable as the checked matrix's.
fn values<T>(list: &[At<T>]) -> Vec<T>
where
    T: Clone,
{
    list.iter().map(|v| v.value.clone()).collect()
}

/// An empty matrix has no cells whatever else is in it.
const fn is_empty(matrix: &Matrix) -> bool {
    matrix.backend.is_empty()
        || matrix.model.is_empty()
        || matrix.quant.is_empty()
        || matrix.prompt_tokens.is_empty()
        || matrix.gen_tokens.is_empty()
}
