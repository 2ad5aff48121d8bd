//! The plan: every cell with its artifact or the reason why it is skipped, and all that a run needs to repeat or resume it.

use std::collections::BTreeMap;

use bench_backend_api::{Axis, AxisFit, Backend, Cell, DeviceFacts, Quant, Recipe};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    ab::Ab,
    check::fit,
    checked::{ArtifactSource, DeviceChoice, Measure, Roots, Scenario, Template, Verify},
    command::Command,
    expand::{self, Applicable},
    filter::Filter,
    order,
    power::Power,
    prefer::Prefer,
    require::Requirement,
    soak::Soak,
    state::{Environment, Pin, Settle},
};
use crate::safe::printable;

/// Version of `plan.toml`.
pub const FORMAT_VERSION: u32 = 1;

/// What a run does. It is kept as `plan.toml` in the run folder, and `--resume` goes on from that file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Version of this format.
    pub format_version: u32,
    /// Name of the scenario.
    pub name: String,
    /// Seed of the order, and of the prompts of models that are not made on the spot.
    pub seed: u64,
    /// SHA-256 of the scenario file, in hex.
    pub scenario_sha256: String,
    /// The device.
    pub device: DeviceChoice,
    /// How often and in which order.
    pub measure: Measure,
    /// What tokens are compared with.
    pub verify: Verify,
    /// Samples per second of every telemetry source; 0 is off.
    pub telemetry_rate_hz: f64,
    /// What is waited for before each block; nothing when absent.
    #[serde(default)]
    pub settle: Option<Settle>,
    /// What is around the device.
    #[serde(default)]
    pub environment: Environment,
    /// What is set on the device for the time of the run.
    #[serde(default)]
    pub pins: Vec<Pin>,
    /// The soak after the measurement, if there is one.
    #[serde(default)]
    pub soak: Option<Soak>,
    /// What is done about power; absent without `[power]`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub power: Option<Power>,
    /// What the product needs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub require: Vec<Requirement>,
    /// What the selection prefers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefer: Option<Prefer>,
    /// Programs of the user.
    #[serde(default)]
    pub commands: Vec<Command>,
    /// Where runtimes are taken from instead of where they are usually.
    #[serde(default)]
    pub runtimes: Roots,
    /// The other side, of an A/B run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ab: Option<Ab>,
    /// Absolute path of the `tokenizer.json` of each model that has its own.
    #[serde(default)]
    pub tokenizers: BTreeMap<String, String>,
    /// What the prompts of each model are, where that is not raw text.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub templates: BTreeMap<String, Template>,
    /// The cells in the order of the matrix.
    #[serde(default)]
    pub cells: Vec<PlannedCell>,
}

/// A cell of a plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlannedCell {
    /// [`Cell::id`].
    pub id: String,
    /// Why it is not measured; absent when it is.
    pub skipped: Option<String>,
    /// Number of the group of cells that share their launches (rule R2); absent for a cell that has its own, as all have in plans of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub launch_group: Option<u32>,
    /// Where its artifact comes from; absent when it is skipped.
    pub source: Option<ArtifactSource>,
    /// The cell.
    pub cell: Cell,
}

/// Why a stored plan can't be used.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// It is not a plan.
    #[error("is damaged (line {line}: {message}): put the file back, or start a new run")]
    Unreadable {
        /// Counted from 1.
        line: usize,
        /// What is wrong there.
        message: String,
    },
    /// A newer version of `bench` wrote it.
    #[error("has format version {found}, this bench knows up to {FORMAT_VERSION}: use the newer bench that wrote it")]
    Newer {
        /// Its version.
        found: u32,
    },
    /// A requirement or preference that no scenario can have: somebody changed it since.
    #[error("{0}: put back what the run wrote, or start a new run")]
    Senseless(String),
    /// A value of the plan has no TOML form.
    #[error("can't write the plan as TOML: {0}")]
    Unwritable(#[from] toml::ser::Error),
}

impl Scenario {
    /// The cells of the scenario on a device. `backends` holds the built-in ones and those made from [`Scenario::commands`].
    pub fn plan(&self, backends: &[&dyn Backend], device: &DeviceFacts) -> Plan {
        let artifacts = Applicable::new(self);
        let cells = expand::expand(self, backends).cells.into_iter().map(|expanded| {
            let cell = expanded.cell;
            let (source, skipped) = match expanded.skipped {
                Some(reason) => (None, Some(reason)),
                None => {
                    match source(&artifacts, &cell, backends, device).and_then(|source| Self::holds(&artifacts, &cell, backends, source)) {
                        Ok(source) => (Some(source), None),
                        Err(reason) => (None, Some(reason)),
                    }
                }
            };
            PlannedCell { id: cell.id(), skipped, launch_group: None, source, cell }
        });
        let mut cells: Vec<PlannedCell> = cells.collect();
        if self.share_launches {
            group(&mut cells, backends, device);
        }
        Plan {
            format_version: FORMAT_VERSION,
            name: self.name.clone(),
            seed: self.seed,
            scenario_sha256: self.sha256.clone(),
            device: self.device.clone(),
            measure: self.measure.clone(),
            verify: self.verify.clone(),
            telemetry_rate_hz: self.telemetry_rate_hz,
            settle: self.settle.clone(),
            environment: self.environment.clone(),
            pins: self.pins.clone(),
            soak: self.soak.clone(),
            power: self.power.clone(),
            require: self.require.clone(),
            prefer: self.prefer.clone(),
            commands: self.commands.clone(),
            runtimes: self.runtimes.clone(),
            ab: None,
            tokenizers: self.models.iter().filter_map(|(name, spec)| Some((name.clone(), spec.tokenizer.clone()?))).collect(),
            templates: self.models.iter().map(|(name, spec)| (name.clone(), spec.template)).filter(|(_, t)| *t != Template::Raw).collect(),
            cells,
        }
    }

    /// Refuses a source without what the cell's label says of it.
    fn holds(artifacts: &Applicable<'_>, cell: &Cell, backends: &[&dyn Backend], source: ArtifactSource) -> Result<ArtifactSource, String> {
        for axis in [Axis::Variant, Axis::Kv, Axis::Context] {
            let Some(value) = cell.asked(axis) else { continue };
            if fit(backends, &cell.backend, axis, value) != AxisFit::OfArtifact {
                continue;
            }
            let (held, why) = match &source {
                ArtifactSource::Files { .. } => {
                    let named = artifacts.best(cell).is_some_and(|a| a.axes.contains_key(&axis));
                    (named, format!("the [[artifact]] for this cell does not say `{axis}`, and {} can't set it", cell.backend))
                }
                ArtifactSource::Recipe(recipe) => (
                    made_with(recipe, cell.quant, axis, value),
                    format!("no [[artifact]] names it, and what bench makes has no such {axis}"),
                ),
            };
            if !held {
                return Err(format!("{axis} {value}: {why}"));
            }
        }
        Ok(source)
    }
}

/// Whether what a recipe makes has a value of an axis.
fn made_with(recipe: &Recipe, quant: Quant, axis: Axis, value: &str) -> bool {
    let is = |arg: &str| recipe.args.get(arg).map(ToString::to_string);
    match axis {
        Axis::Context => is("context").as_deref() == Some(value),
        // The KV cache of a model of half floats has 16 bits, said or not.
        Axis::Kv => is("kv_bits").map_or(quant == Quant::Fp16 && value == "16", |bits| bits == value),
        _ => false,
    }
}

impl Plan {
    /// The plan as `plan.toml` holds it.
    ///
    /// # Errors
    /// A value without a TOML form, which a plan that [`Scenario::plan`] made does not have.
    pub fn to_toml(&self) -> Result<String, PlanError> {
        Ok(toml::to_string(self)?)
    }

    /// Reads `plan.toml`.
    ///
    /// # Errors
    /// Text that is not a plan, or the plan of a newer version.
    pub fn from_toml(text: &str) -> Result<Self, PlanError> {
        #[derive(Deserialize)]
        struct Version {
            format_version: u32,
        }
        // First the version alone: a newer plan would otherwise fail on a detail.
        let bad = |error: toml::de::Error| {
            let place = error.span().map_or(0, |span| span.start);
            let line = text.bytes().take(place).filter(|byte| *byte == b'\n').count() + 1;
            // A line without an end is no reason for a message without one.
            PlanError::Unreadable { line, message: printable(error.message()).chars().take(200).collect() }
        };
        let found = toml::from_str::<Version>(text).map_err(bad)?.format_version;
        if found > FORMAT_VERSION {
            return Err(PlanError::Newer { found });
        }
        let plan: Self = toml::from_str(text).map_err(bad)?;
        let preferred = plan.prefer.iter().filter_map(Prefer::fault);
        let fault = preferred.chain(plan.require.iter().filter_map(Requirement::fault)).next();
        fault.map_or(Ok(plan), |fault| Err(PlanError::Senseless(fault)))
    }

    /// Keeps the cells that a filter selects, and says how many are left.
    pub fn retain(&mut self, filter: &Filter) -> usize {
        self.cells.retain(|c| filter.selects(c));
        self.cells.len()
    }

    /// What the prompts of a model are.
    pub fn template(&self, model: &str) -> Template {
        self.templates.get(model).copied().unwrap_or_default()
    }

    /// Places in `cells` of those that are measured.
    pub fn runnable(&self) -> Vec<usize> {
        (0..self.cells.len()).filter(|i| self.cells[*i].skipped.is_none()).collect()
    }

    /// The measured cells by what they are launched in: those that share their launches together, every other by itself. In the order of the plan.
    pub fn groups(&self) -> Vec<Vec<usize>> {
        let mut groups: Vec<Vec<usize>> = Vec::new();
        let mut shared: BTreeMap<u32, usize> = BTreeMap::new();
        for place in self.runnable() {
            let known = self.cells[place].launch_group.map(|group| *shared.entry(group).or_insert(groups.len()));
            match known.and_then(|known| groups.get_mut(known)) {
                Some(group) => group.push(place),
                None => groups.push(vec![place]),
            }
        }
        groups
    }

    /// By the id of each cell that shares its launches: the cells before it in them that ask for prompts of its length.
    pub fn asked_before(&self) -> BTreeMap<&str, u32> {
        let (mut known, mut all) = (BTreeMap::new(), BTreeMap::new());
        for c in &self.cells {
            let Some(group) = c.launch_group else { continue };
            let before: &mut u32 = known.entry((group, c.cell.workload.prompt_tokens())).or_default();
            all.insert(c.id.as_str(), *before);
            *before += 1;
        }
        all
    }

    /// The measured launches in order, for `repetitions_max` launches a cell; places refer to `cells`.
    pub fn schedule(&self) -> Vec<order::Scheduled> {
        order::schedule(self.measure.order, self.seed, &self.groups(), self.measure.repetitions_max)
    }
}

/// Brings the cells together that differ in prompt and generated length only, and whose backend can answer them in one process.
fn group(cells: &mut [PlannedCell], backends: &[&dyn Backend], device: &DeviceFacts) {
    fn but_lengths(c: &PlannedCell) -> impl PartialEq {
        (&c.cell.backend, &c.cell.model, c.cell.quant, c.cell.unit, &c.cell.axes, &c.source)
    }
    let mixes = |cell: &Cell| backends.iter().any(|b| b.id() == cell.backend && b.mixes_lengths(cell, device));
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for place in (0..cells.len()).filter(|place| cells[*place].skipped.is_none() && mixes(&cells[*place].cell)) {
        match groups.iter_mut().find(|group| but_lengths(&cells[group[0]]) == but_lengths(&cells[place])) {
            Some(group) => group.push(place),
            None => groups.push(vec![place]),
        }
    }
    for (number, group) in (0..).zip(groups.into_iter().filter(|group| group.len() > 1)) {
        for place in group {
            cells[place].launch_group = Some(number);
        }
    }
}

fn source(artifacts: &Applicable<'_>, cell: &Cell, backends: &[&dyn Backend], device: &DeviceFacts) -> Result<ArtifactSource, String> {
    if let Some(artifact) = artifacts.best(cell) {
        return artifact.source.clone();
    }
    let Some(backend) = backends.iter().find(|b| b.id() == cell.backend) else {
        return Err(format!("no [[artifact]] for {} {} on {}", cell.model.name, cell.quant, cell.backend));
    };
    if let Some(recipe) = backend.recipe(cell, device) {
        let args = recipe.args.into_iter().filter_map(|(k, v)| Some((k, without_null(v)?))).collect();
        return Ok(ArtifactSource::Recipe(Recipe { kind: recipe.kind, args }));
    }
    let makes: Vec<&str> = backend.describe().makes.iter().map(|q| q.as_str()).collect();
    let why = if makes.is_empty() {
        format!("{} can make none", cell.backend)
    } else if backend.describe().makes.contains(&cell.quant) {
        format!("{} can't make one from what the scenario tells of the model", cell.backend)
    } else {
        format!("{} can make only {}", cell.backend, makes.join(", "))
    };
    Err(format!("no [[artifact]] for {} {} on {}, and {why}", cell.model.name, cell.quant, cell.backend))
}

/// TOML has no null: a recipe's absent argument is left out.
fn without_null(value: Value) -> Option<Value> {
    match value {
        Value::Null => None,
        Value::Array(list) => Some(Value::Array(list.into_iter().filter_map(without_null).collect())),
        Value::Object(map) => Some(Value::Object(map.into_iter().filter_map(|(k, v)| Some((k, without_null(v)?))).collect())),
        other => Some(other),
    }
}
