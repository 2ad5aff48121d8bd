//! From the matrix to cells: combinations, exclusion, and the collapse of axes that a backend can't set.

use std::collections::{BTreeMap, HashMap, HashSet};

use bench_backend_api::{Axis, AxisFit, Backend, Cell, Model, Quant, Setting, Unit, Workload};

use super::{
    check::fit,
    checked::{ArtifactSpec, Scenario},
    key::{self, Key},
};

/// A cell, and the reason why it can't be measured.
pub struct Expanded {
    /// The cell.
    pub cell: Cell,
    /// Why it is skipped.
    pub skipped: Option<String>,
}

/// The cells of a matrix.
pub struct Expansion {
    /// In the order of the matrix: the last list varies fastest.
    pub cells: Vec<Expanded>,
    /// Combinations that each `exclude` left out.
    pub excluded: Vec<usize>,
}

/// All cells of a scenario. Combinations that differ only in what their backend can't set are one cell.
pub fn expand(scenario: &Scenario, backends: &[&dyn Backend]) -> Expansion {
    let m = &scenario.matrix;
    let texts = |numbers: &[u32]| numbers.iter().map(u32::to_string).collect::<Vec<_>>();
    let mut lists: Vec<(Key, Vec<String>)> = vec![
        (Key::Backend, m.backend.clone()),
        (Key::Model, m.model.clone()),
        (Key::Quant, m.quant.iter().map(ToString::to_string).collect()),
        (Key::PromptTokens, texts(&m.prompt_tokens)),
        (Key::GenTokens, texts(&m.gen_tokens)),
    ];
    lists.extend(m.axes.iter().map(|(axis, values)| (Key::Axis(*axis), values.clone())));

    let mut fits = Fits { scenario, backends, known: HashMap::new() };
    let mut seen = HashSet::new();
    let mut out = Expansion { cells: Vec::new(), excluded: vec![0; m.exclude.len()] };
    let mut places = vec![0; lists.len()];
    if lists.iter().any(|(_, values)| values.is_empty()) {
        return out;
    }
    loop {
        let pick =
            |wanted: Key| lists.iter().zip(&places).find(|((key, _), _)| *key == wanted).map(|((_, values), at)| values[*at].as_str());
        let excluded_by = m.exclude.iter().position(|e| e.selects(|key, value| pick(key) == Some(value)));
        if let Some(rule) = excluded_by {
            out.excluded[rule] += 1;
        } else {
            let workload = Workload::Generate { prompt_tokens: m.prompt_tokens[places[3]], gen_tokens: m.gen_tokens[places[4]] };
            let asked = m.axes.keys().filter_map(|axis| Some((*axis, pick(Key::Axis(*axis))?)));
            let expanded = fits.cell(&m.backend[places[0]], &m.model[places[1]], m.quant[places[2]], workload, asked);
            // What was asked for tells cells apart, as in their ids, without the cost of a hash for each combination.
            let asked = |e: &Expanded| e.cell.axes.keys().filter_map(|a| Some((*a, e.cell.asked(*a)?.to_owned()))).collect::<Vec<_>>();
            if let Some(expanded) = expanded.filter(|e| seen.insert((places[..5].to_vec(), asked(e)))) {
                out.cells.push(expanded);
            }
        }
        // Like an odometer: the last list first.
        let Some(turn) = (0..lists.len()).rev().find(|i| places[*i] + 1 < lists[*i].1.len()) else { return out };
        places[turn] += 1;
        places[turn + 1..].fill(0);
    }
}

/// How axis values fit backends, each asked once.
struct Fits<'a> {
    scenario: &'a Scenario,
    backends: &'a [&'a dyn Backend],
    known: HashMap<(String, Axis, String), AxisFit>,
}
impl Fits<'_> {
    fn cell<'v>(
        &mut self,
        backend: &str,
        model: &str,
        quant: Quant,
        workload: Workload,
        asked: impl Iterator<Item = (Axis, &'v str)>,
    ) -> Option<Expanded> {
        let model: Model = self.scenario.models.get(model)?.model.clone();
        let default_unit = self.default_unit(backend);
        let built_for = model.context;
        let mut cell = Cell { backend: backend.to_owned(), model, quant, workload, unit: default_unit, axes: BTreeMap::new() };
        let mut skipped = None;
        for (axis, value) in asked {
            let setting = match self.fit(backend, axis, value) {
                AxisFit::Settable | AxisFit::OfArtifact => Setting::Asked(value.to_owned()),
                AxisFit::Fixed(only) => Setting::Fixed(only.to_owned()),
                AxisFit::NotApplicable => Setting::NotApplicable,
                AxisFit::Unsupported(reason) => {
                    skipped.get_or_insert(format!("{axis} {value}: {reason}"));
                    Setting::Asked(value.to_owned())
                }
            };
            match (axis, &setting) {
                (Axis::Unit, Setting::Asked(v) | Setting::Fixed(v)) => cell.unit = Unit::parse(v).unwrap_or(default_unit),
                (Axis::Context, Setting::Asked(v) | Setting::Fixed(v)) => cell.model.context = v.parse().unwrap_or(built_for),
                _ => {}
            }
            // Asking for the default is not asking, so that naming an axis does not rename the cells that there were (design 2b.2).
            let default = matches!(&setting, Setting::Asked(v) if match axis {
                Axis::Unit => v == default_unit.as_str(),
                Axis::Context => *v == built_for.to_string(),
                Axis::Batch => v == "1",
                _ => false,
            });
            if !default {
                cell.axes.insert(axis, setting);
            }
        }
        let (prompt, generated, context) = (workload.prompt_tokens(), workload.gen_tokens(), cell.model.context);
        if u64::from(prompt) + u64::from(generated) > u64::from(context) {
            skipped.get_or_insert(format!("context {context} is shorter than {prompt} prompt + {generated} generated tokens"));
        }
        Some(Expanded { cell, skipped })
    }

    fn default_unit(&self, backend: &str) -> Unit {
        let of_command = || self.scenario.commands.iter().find(|c| c.id == backend).map_or(Unit::Cpu, |c| c.unit);
        self.backends.iter().find(|b| b.id() == backend).map_or_else(of_command, |b| b.describe().default_unit)
    }

    fn fit(&mut self, backend: &str, axis: Axis, value: &str) -> AxisFit {
        let key = (backend.to_owned(), axis, value.to_owned());
        self.known.entry(key).or_insert_with(|| fit(self.backends, backend, axis, value)).clone()
    }
}

/// Which artifacts are for which cells.
pub struct Applicable<'a> {
    artifacts: &'a [ArtifactSpec],
    by_cell: HashMap<(&'a str, &'a str, Quant), Vec<usize>>,
}
impl<'a> Applicable<'a> {
    /// An index over a scenario's artifacts.
    pub fn new(scenario: &'a Scenario) -> Self {
        let mut by_cell: HashMap<_, Vec<usize>> = HashMap::new();
        for (i, a) in scenario.artifacts.iter().enumerate() {
            by_cell.entry((a.backend.as_str(), a.model.as_str(), a.quant)).or_default().push(i);
        }
        Self { artifacts: &scenario.artifacts, by_cell }
    }

    /// Places of the artifacts that are for a cell, in the order of the file.
    pub fn to<'s>(&'s self, cell: &'s Cell) -> impl Iterator<Item = usize> + 's {
        let candidates = self.by_cell.get(&(cell.backend.as_str(), cell.model.name.as_str(), cell.quant));
        let fits = |i: &usize| self.artifacts[*i].axes.iter().all(|(axis, value)| key::cell_has(cell, Key::Axis(*axis), value));
        candidates.into_iter().flatten().copied().filter(fits)
    }

    /// The artifact of a cell: the one that names most axes, the first of equals.
    pub fn best(&self, cell: &Cell) -> Option<&'a ArtifactSpec> {
        self.to(cell).map(|i| &self.artifacts[i]).reduce(|best, next| if next.axes.len() > best.axes.len() { next } else { best })
    }
}
