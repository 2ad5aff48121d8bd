//! Candidates from cells: those that differ in the workload alone are one, since a product chooses backend, quantisation and settings, and meets
//! every prompt.

use std::collections::{BTreeMap, BTreeSet};

use bench_backend_api::{Axis, Setting};

use super::{
    sessions::Session,
    standing::findings,
    types::{Candidate, Standing, State},
    wish::Wish,
};
use crate::{
    gate::{
        require::Judged,
        run::{Cell, Key},
    },
    report::{load::is_composed, timing::Timing},
    scenario::PlannedCell,
};

/// A cell with its row.
#[derive(Debug, Clone, Copy)]
pub struct Entry<'a> {
    /// Place of its session.
    pub session: usize,
    /// As planned.
    pub planned: &'a PlannedCell,
    /// Device and id.
    pub key: &'a Key,
    /// As measured.
    pub row: &'a Cell,
}

/// A candidate with its cells.
#[derive(Debug)]
pub struct Pick<'a> {
    /// What is said of it.
    pub candidate: Candidate,
    /// All of its cells.
    pub entries: Vec<Entry<'a>>,
}

/// Candidates of one class, device and model.
#[derive(Debug)]
pub struct Pool<'a> {
    /// phone, board, pc or emulator.
    pub class: String,
    /// Name of the device.
    pub device: String,
    /// Name of the model.
    pub model: String,
    /// In the order of the scenario.
    pub picks: Vec<Pick<'a>>,
}

/// What a workload is made of beside prompt and generated length: not a choice between engines, since another one is another task.
const OF_WORKLOAD: [Axis; 2] = [Axis::Context, Axis::Batch];

impl Entry<'_> {
    /// A field of its row.
    fn field(&self, name: &str) -> &str {
        self.row.field(name)
    }

    /// Prompt and generated tokens, context and batch: only like is set beside like.
    pub fn workload(&self) -> (u32, u32, u32, String) {
        let cell = &self.planned.cell;
        let batch = cell.asked(Axis::Batch).unwrap_or("1").to_owned();
        (cell.workload.prompt_tokens(), cell.workload.gen_tokens(), cell.model.context, batch)
    }

    /// Composed of graph times, in any of its speeds.
    pub fn is_composed(&self) -> bool {
        is_composed(|column| Some(self.field(column)))
    }

    fn axes(&self) -> BTreeMap<String, String> {
        let cell = &self.planned.cell;
        let chosen = cell.axes.iter().filter(|(axis, setting)| {
            // What a backend can't set was not chosen.
            !OF_WORKLOAD.contains(axis) && matches!(setting, Setting::Asked(_))
        });
        chosen.map(|(axis, setting)| (axis.as_str().to_owned(), setting.to_string())).collect()
    }
}

/// The candidates of some sessions, with what was judged in each. A cell of the plan without a row is none of anybody.
pub fn pools<'a>(sessions: &'a [Session], wish: &Wish, judged: &[Vec<Judged>]) -> Vec<Pool<'a>> {
    let mut pools: Vec<Pool> = Vec::new();
    for (session, Session { plan, run }) in sessions.iter().enumerate() {
        let mut rows: BTreeMap<&str, Vec<(&Key, &Cell)>> = BTreeMap::new();
        for (key, cell) in &run.cells {
            rows.entry(&key.cell).or_default().push((key, cell));
        }
        let of_planned = |planned: &'a PlannedCell| {
            let rows = rows.get(planned.id.as_str()).cloned().unwrap_or_default();
            rows.into_iter().map(move |(key, row)| Entry { session, planned, key, row })
        };
        for entry in plan.cells.iter().flat_map(of_planned) {
            let (planned, key, row) = (entry.planned, entry.key, entry.row);
            let (class, model) = (row.field("device_class"), planned.cell.model.name.as_str());
            let same = |pool: &Pool| pool.class == class && pool.device == key.device && pool.model == model;
            let place = pools.iter().position(same).unwrap_or_else(|| {
                pools.push(Pool { class: class.to_owned(), device: key.device.clone(), model: model.to_owned(), picks: Vec::new() });
                pools.len() - 1
            });
            join(&mut pools[place].picks, entry);
        }
    }
    for pick in pools.iter_mut().flat_map(|pool| &mut pool.picks) {
        describe(pick);
        pick.candidate.findings = findings(pick, wish, sessions, judged);
        let doubt = silent(pick, sessions).or_else(|| broken(pick));
        pick.candidate.state = state(pick, doubt.is_some());
        pick.candidate.reason = pick.candidate.reason.take().or(doubt.filter(|_| pick.candidate.state == State::Undecided));
    }
    let rank = |class: &str| ["phone", "board", "pc", "emulator"].iter().position(|known| *known == class).unwrap_or(4);
    pools.sort_by(|a, b| (rank(&a.class), &a.class, &a.device, &a.model).cmp(&(rank(&b.class), &b.class, &b.device, &b.model)));
    pools
}

fn join<'a>(picks: &mut Vec<Pick<'a>>, entry: Entry<'a>) {
    let (cell, axes) = (&entry.planned.cell, entry.axes());
    let same = |pick: &Pick| {
        let known = &pick.candidate;
        known.backend == cell.backend && known.quant == cell.quant.as_str() && known.axes == axes
    };
    if let Some(pick) = picks.iter_mut().find(|pick| same(pick)) {
        pick.entries.push(entry);
        return;
    }
    let settings: Vec<String> = axes.iter().map(|(axis, value)| format!(", {axis} {value}")).collect();
    let candidate = Candidate {
        name: format!("{} · {}{}", cell.backend, cell.quant, settings.concat()),
        backend: cell.backend.clone(),
        quant: cell.quant.as_str().to_owned(),
        axes,
        engine: None,
        timing: None,
        state: State::NotTried,
        reason: None,
        findings: Vec::new(),
        cells: Vec::new(),
        lost: 0,
    };
    picks.push(Pick { candidate, entries: vec![entry] });
}

impl<'a> Pick<'a> {
    /// Its cells that count.
    pub fn counted(&self) -> impl Iterator<Item = &Entry<'a>> {
        self.entries.iter().filter(|entry| entry.row.is_ok())
    }
}

fn describe(pick: &mut Pick) {
    let only = |values: BTreeSet<String>| values.first().filter(|_| values.len() == 1).cloned().filter(|value| !value.is_empty());
    let engine = only(pick.counted().map(|entry| entry.field("engine").to_owned()).collect());
    let timings: BTreeSet<String> = pick.counted().map(timing).collect();
    let cells: Vec<String> = pick.counted().map(|entry| entry.key.cell.clone()).collect();
    let why = match (timings.len(), cells.is_empty()) {
        (2.., _) => Some("its cells were timed in different ways, so that it is not ranked".to_owned()),
        (_, true) => pick.entries.iter().map(|entry| entry.field("reason")).find(|reason| !reason.is_empty()).map(str::to_owned),
        _ => None,
    };
    let lost = pick.entries.len() - cells.len();
    pick.candidate = Candidate { engine, timing: only(timings), reason: why, cells, lost, ..pick.candidate.clone() };
}

/// How a first token was timed, in words (rule R6).
fn timing(entry: &Entry) -> String {
    let [scope, method, context] = ["ttft_scope", "ttft_method", "launch_context"].map(|column| entry.field(column));
    Timing { scope, method, context }.words()
}

/// That a candidate has no cell that counts in one of several sessions: what it would have been there nobody knows.
fn silent(pick: &Pick, sessions: &[Session]) -> Option<String> {
    let counts = |session: usize| pick.counted().any(|entry| entry.session == session);
    let lacking = (0..sessions.len()).find(|session| !counts(*session)).filter(|_| pick.counted().next().is_some())?;
    Some(format!("none of its cells counts in the session {}", sessions[lacking].run.id))
}

/// That a check contradicts a cell of a candidate, or that one failed: a product meets every prompt.
fn broken(pick: &Pick) -> Option<String> {
    pick.counted().next()?;
    let lost = pick.entries.iter().find(|entry| !entry.row.is_ok() && entry.field("status") != "skipped")?;
    Some(format!("its cell {} does not count ({}): {}", lost.key.cell, lost.field("status"), lost.field("reason")))
}

/// `doubt`: what a part of its cells shows can't be told of all.
fn state(pick: &Pick, doubt: bool) -> State {
    let stands = |standing: Standing| pick.candidate.findings.iter().any(|finding| finding.standing == standing);
    if stands(Standing::Violated) {
        return State::Vetoed;
    }
    if pick.counted().next().is_none() {
        let skipped = pick.entries.iter().all(|entry| entry.field("status") == "skipped");
        return if skipped { State::NotTried } else { State::Failed };
    }
    if pick.counted().any(Entry::is_composed) {
        return State::Headroom;
    }
    let open = [Standing::Undecided, Standing::NotMeasured, Standing::Damaged];
    if doubt || open.into_iter().any(stands) { State::Undecided } else { State::Passes }
}
