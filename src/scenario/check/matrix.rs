//! `[matrix]`: its lists, and what their combinations come to.

use std::collections::{BTreeMap, HashSet};

use bench_backend_api::{Axis, AxisFit, Quant, Unit};

use super::{
    super::{
        checked::{Matrix, ModelSpec, Scenario},
        expand::{self, Applicable},
        key::{Key, Selector},
        suggest::show,
        value::{At, Texts},
        wire,
    },
    Context, fit, is_empty, values,
};

/// More combinations than this are a slip of the pen: at a minute each they take a week.
const MAX_COMBINATIONS: u64 = 10_000;

impl Context<'_> {
    pub(super) fn matrix(&mut self, wire: &wire::Matrix, models: &BTreeMap<String, Option<ModelSpec>>) -> Matrix {
        let mut backend = wire.backend.texts();
        backend.retain(|b| self.backend(b));
        let mut model = wire.model.texts();
        model.retain(|m| self.model(m, models));
        let quant = wire.quant.texts();
        let prompt = wire.prompt_tokens.as_ref().map(|l| l.0.clone()).unwrap_or_default();
        let generated = wire.gen_tokens.as_ref().map(|l| l.0.clone()).unwrap_or_default();
        for list in [&wire.backend.texts(), &wire.model.texts(), &quant, &wire.prompt_tokens.texts(), &wire.gen_tokens.texts()] {
            self.twice(list);
        }
        let mut axes = BTreeMap::new();
        for axis in Axis::ALL {
            let list = wire.axis(*axis);
            self.twice(&list);
            for value in &list {
                self.axis_text(*axis, value);
                self.settable(*axis, value, &backend);
            }
            if !list.is_empty() {
                axes.insert(*axis, values(&list));
            }
        }
        let exclude = wire.exclude.iter().flatten().map(|e| self.exclude(e, models)).collect();
        Matrix {
            backend: values(&backend),
            model: values(&model),
            quant: quant.iter().filter_map(|q| Quant::parse(&q.value)).collect(),
            prompt_tokens: prompt.iter().map(|p| p.value.0).collect(),
            gen_tokens: generated.iter().map(|g| g.value.0).collect(),
            axes,
            exclude,
        }
    }

    fn twice(&mut self, list: &[At<String>]) {
        let mut seen = HashSet::new();
        for value in list.iter().filter(|v| !seen.insert(&v.value)) {
            self.out.error(value.span(), format!("{} is listed twice", show(&value.value)), "take one of them out".to_owned());
        }
    }

    /// A value that no backend of the matrix can set is a mistake; one that only some can't is a skipped cell with its reason.
    fn settable(&mut self, axis: Axis, value: &At<String>, backends: &[At<String>]) {
        let mut reasons = Vec::new();
        for backend in backends {
            match fit(self.backends, &backend.value, axis, &value.value) {
                AxisFit::Unsupported(reason) => reasons.push(format!("{}: {reason}", backend.value)),
                AxisFit::Settable | AxisFit::OfArtifact | AxisFit::Fixed(_) | AxisFit::NotApplicable => return,
            }
        }
        if reasons.is_empty() {
            return; // no known backend, which has been said already
        }
        if axis == Axis::Unit {
            let can = |u: &&Unit| backends.iter().any(|b| fit(self.backends, &b.value, axis, u.as_str()) == AxisFit::Settable);
            let can: Vec<&str> = Unit::ALL.iter().filter(can).map(|u| u.as_str()).collect();
            if !can.is_empty() {
                reasons.push(format!("they can: {}", can.join(", ")));
            }
        }
        let message = format!("no backend of the matrix can set `{axis}` to {}", show(&value.value));
        self.out.error(value.span(), message, reasons.join("; "));
    }

    fn exclude(&mut self, at: &At<wire::Exclude>, models: &BTreeMap<String, Option<ModelSpec>>) -> Selector {
        let wire = &at.value;
        wire.backend.texts().iter().for_each(|b| {
            self.backend(b);
        });
        wire.model.texts().iter().for_each(|m| {
            self.model(m, models);
        });
        let mut keys = BTreeMap::new();
        for key in Key::all() {
            let texts = match key {
                Key::Backend => wire.backend.texts(),
                Key::Model => wire.model.texts(),
                Key::Quant => wire.quant.texts(),
                Key::PromptTokens => wire.prompt_tokens.texts(),
                Key::GenTokens => wire.gen_tokens.texts(),
                Key::Axis(axis) => wire.axis(axis),
            };
            if !texts.is_empty() {
                keys.insert(key, values(&texts));
            }
        }
        if keys.is_empty() && !self.is_damaged("matrix.exclude") {
            self.out.error(at.span(), "an empty `exclude` leaves everything out", "name at least one key".to_owned());
        }
        Selector(keys)
    }

    /// What the combinations of a scenario without errors come to.
    pub(super) fn combinations(&mut self, scenario: &Scenario, written: &At<wire::Matrix>, required: &[At<wire::Require>]) {
        let matrix = &scenario.matrix;
        let lists = [matrix.backend.len(), matrix.model.len(), matrix.quant.len(), matrix.prompt_tokens.len(), matrix.gen_tokens.len()];
        let count =
            lists.iter().chain(&matrix.axes.values().map(Vec::len).collect::<Vec<_>>()).fold(1_u64, |n, l| n.saturating_mul(*l as u64));
        if count > MAX_COMBINATIONS {
            let help = format!("{MAX_COMBINATIONS} are the most; split the scenario");
            return self.out.error(written.span(), format!("[matrix] has {count} combinations"), help);
        }
        let expansion = expand::expand(scenario, self.backends);
        for (rule, _) in written.value.exclude.iter().flatten().zip(&expansion.excluded).filter(|(_, n)| **n == 0) {
            self.out.warning(rule.span(), "this `exclude` leaves nothing out", "it agrees with no combination of the matrix".to_owned());
        }
        if expansion.cells.is_empty() || is_empty(matrix) {
            let help = "every combination is left out by `exclude`".to_owned();
            return self.out.error(written.span(), "[matrix] leaves no cell to measure", help);
        }
        for (requirement, at) in scenario.require.iter().zip(required) {
            if !expansion.cells.iter().any(|cell| requirement.selects(&cell.cell)) {
                let span = at.value.r#where.as_ref().map_or(at.span(), At::span);
                let help = "compare it with the lists of [matrix]".to_owned();
                self.out.error(span, "this requirement is about no cell of the matrix", help);
            }
        }
        let applicable = Applicable::new(scenario);
        let mut used = vec![false; scenario.artifacts.len()];
        for cell in &expansion.cells {
            applicable.to(&cell.cell).for_each(|i| used[i] = true);
        }
        for (artifact, _) in scenario.artifacts.iter().zip(used).filter(|(_, used)| !used) {
            let help = "compare its keys with the lists of [matrix]".to_owned();
            self.out.warning(artifact.span.0..artifact.span.1, "this artifact is for no cell of the matrix", help);
        }
    }
}
