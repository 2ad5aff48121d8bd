//! Runs made by hand: a plan and its rows, whose selection can be worked out on paper.

mod damage;
mod numbers;
mod runs;
mod sessions;

use bench_backend_api::{Axis, Quant, Setting, Workload};

use super::{Candidate, Group, Ranking, Selection, select, sessions::Session, wish::Wish};
use crate::{
    gate::{
        require::Evidence,
        run::{Cell, Key, Launch, Run},
    },
    scenario::{Limit, Plan, PlannedCell, Prefer, Preset, Requirement, Statistic},
};

/// A plan with its rows.
struct Lab {
    session: Session,
    pattern: PlannedCell,
}

/// Values of a metric, one a launch.
type Metrics<'a> = &'a [(&'static str, &'a [f64])];

impl Lab {
    fn new() -> Self {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/results/example-pc/plan.toml");
        let mut plan = Plan::from_toml(&std::fs::read_to_string(path).expect("the example")).expect("a plan");
        let pattern = plan.cells.swap_remove(0);
        plan.cells.clear();
        Self { session: Session { plan, run: Run { id: "made".to_owned(), ..Run::default() } }, pattern }
    }

    /// A cell of `backend` in `w4a16` at a prompt, on a phone and timed token by token unless the fields say otherwise.
    fn cell(&mut self, backend: &str, prompt: u32, fields: &[(&'static str, &str)], metrics: Metrics) {
        self.tuned(backend, prompt, None, fields, metrics);
    }

    fn tuned(&mut self, backend: &str, prompt: u32, profile: Option<&str>, fields: &[(&'static str, &str)], metrics: Metrics) {
        let mut planned = self.pattern.clone();
        planned.cell.backend = backend.to_owned();
        planned.cell.quant = Quant::W4a16;
        planned.cell.workload = Workload::Generate { prompt_tokens: prompt, gen_tokens: 16 };
        if let Some(profile) = profile {
            planned.cell.axes.insert(Axis::PerfProfile, Setting::Asked(profile.to_owned()));
        }
        planned.id = planned.cell.id();
        let usual = [
            ("status", "ok"),
            ("device_class", "phone"),
            ("ttft_scope", "ids"),
            ("ttft_method", "token_event"),
            ("check_unit", "confirmed"),
            ("artifact", backend),
        ];
        let values = |values: &[f64]| values.iter().zip(0..).map(|(value, launch)| Launch { launch, value: *value }).collect();
        let cell = Cell {
            fields: usual.iter().chain(fields).map(|(name, value)| (*name, (*value).to_owned())).collect(),
            metrics: metrics.iter().map(|(name, all)| (*name, values(all))).collect(),
            ..Cell::default()
        };
        let device = fields.iter().find(|(name, _)| *name == "device").map_or("phone-1", |(_, value)| value).to_owned();
        self.session.run.cells.insert(Key { device, cell: planned.id.clone() }, cell);
        if !self.session.plan.cells.iter().any(|known| known.id == planned.id) {
            self.session.plan.cells.push(planned);
        }
    }

    fn require(&mut self, metric: &str, limit: Limit, prompt: Option<u32>) {
        let text = match &limit {
            Limit::AtMost(value) => format!("<= {value}"),
            Limit::AtLeast(value) => format!(">= {value}"),
            Limit::Is(word) => format!("== {word}"),
        };
        let cells = prompt.map(|n| ("prompt-tokens".to_owned(), vec![n.to_string()])).into_iter().collect();
        let statistic = Some(Statistic::Median);
        self.session.plan.require.push(Requirement { metric: metric.to_owned(), limit, text, statistic, phase: None, minute: None, cells });
    }

    fn prefer(&mut self, weights: &[(&str, f64)]) {
        let weights = weights.iter().map(|(word, weight)| ((*word).to_owned(), *weight)).collect();
        self.session.plan.prefer = Some(Prefer { use_case: None, weights });
    }

    fn select(&self) -> Selection {
        self.select_for(None)
    }

    /// For another use than the scenario's.
    fn select_for(&self, asked: Option<&Preset>) -> Selection {
        select(std::slice::from_ref(&self.session), &[Evidence::default()], Wish::of(&self.session.plan, asked))
    }
}

/// The selection of several sessions.
fn together<const N: usize>(labs: [Lab; N]) -> Selection {
    let sessions = labs.map(|lab| lab.session);
    let wish = Wish::of(&sessions[0].plan, None);
    select(&sessions, &[(); N].map(|()| Evidence::default()), wish)
}

fn only(selection: &Selection) -> &Group {
    assert_eq!(selection.groups.len(), 1, "{:?}", selection.groups);
    &selection.groups[0]
}

fn candidate<'a>(group: &'a Group, backend: &str) -> &'a Candidate {
    group.candidates.iter().find(|candidate| candidate.backend == backend).unwrap_or_else(|| panic!("no {backend}"))
}

/// Backends of a ranking, best first.
fn order<'a>(group: &'a Group, ranking: &Ranking) -> Vec<&'a str> {
    ranking.places.iter().map(|place| group.candidates[place.candidate].backend.as_str()).collect()
}

fn close(found: f64, wanted: f64) {
    assert!((found - wanted).abs() < 1e-9, "{found} is not {wanted}");
}

/// So many launches of about a value: it, a little less, a little more, and so on. Their median is the value.
fn about(value: f64, n: usize) -> Vec<f64> {
    let step = |at: usize| at.div_ceil(2) as f64 * if at.is_multiple_of(2) { 1e-3 } else { -1e-3 };
    let all: Vec<f64> = (0..n).map(|at| value * (1.0 + step(at))).collect();
    if n.is_multiple_of(2) { all.iter().map(|one| one + value * 5e-4).collect() } else { all }
}
