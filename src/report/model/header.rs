//! The page as a whole, and how far each run came, in words.

use super::decision::decision;
use super::failures::{counts, gone};
use super::filters::filters;
use super::groups::{BEHIND, Colours, cells_of, panels};
use super::headline::headlines;
use super::machine::{at, environment, facts, runtimes, text, tool, warnings};
use super::panel::all;
use super::roof::Best;
use super::view::{Decision, Fact, Page, RunView};
use crate::gate::busy;
use crate::report::ReportError;
use crate::report::charts::{MODEL, PALETTE, PARTS, PHASES};
use crate::report::load::{Cell, Run, is_self_made};
use crate::report::selection::Joint;
use crate::results::{manifest::are_sides, schema::METRICS};

/// The page of these runs, each with what is selected of it or why nothing is.
pub fn page(runs: &[Run], selected: &[Joint]) -> Result<Page, ReportError> {
    let colours = Colours::of(runs);
    let best = Best::of(runs);
    let views = runs
        .iter()
        .enumerate()
        .map(|(index, run)| view(run, decision(selected, index), index, &colours, &best))
        .collect::<Result<Vec<_>, _>>()?;
    let title = match views.as_slice() {
        [one] => one.scenario.clone(),
        many => format!("{} runs", many.len()),
    };
    let tool = runs.iter().find_map(|run| tool(&run.manifest)).unwrap_or_else(|| "bench".into());
    let definitions = METRICS.iter().map(|metric| Fact { name: metric.name.into(), value: metric.meaning.into() }).collect();
    let self_made = |cell: &Cell| cell.text("artifact").is_some_and(is_self_made);
    let self_made = runs.iter().flat_map(|run| &run.cells).any(self_made);
    let palette = PALETTE.iter().chain(PARTS).chain(PHASES.iter().chain(MODEL).map(|(_, swatch)| swatch)).copied().collect();
    let paired = matches!(runs, [a, b] if are_sides(&a.manifest, &b.manifest));
    Ok(Page { origin: String::new(), title, tool, self_made, palette, definitions, paired, runs: views })
}

fn view(run: &Run, decision: Decision, index: usize, colours: &Colours, best: &Best) -> Result<RunView, ReportError> {
    let anchor = format!("r{index}");
    let id = text(at(&run.manifest, &["run"])).unwrap_or_else(|| run.folder.clone());
    Ok(RunView {
        scenario: text(at(&run.manifest, &["scenario", "name"])).unwrap_or_else(|| id.clone()),
        facts: facts(&run.manifest, &id),
        runtimes: runtimes(&run.manifest, colours),
        manifest: run.manifest.is_object(),
        counts: counts(run),
        sentences: sentences(run),
        headlines: headlines(run, &anchor, colours),
        many: run.cells.len() > BEHIND,
        filters: filters(run),
        decision,
        panels: all(run, &anchor, colours, best)?,
        // The panels' order, so that the rows of one class stand together.
        failures: panels(run).into_iter().flat_map(|(class, device)| gone(&cells_of(run, class, device), colours)).collect(),
        environment: environment(&run.manifest),
        warnings: warnings(&run.manifest),
        problems: run.problems.clone(),
        id,
        anchor,
    })
}

/// How far the run came.
fn sentences(run: &Run) -> Vec<String> {
    if run.cells.is_empty() {
        return vec!["The run has no cells.".into()];
    }
    let measured = run.cells.iter().filter(|cell| cell.counts()).count();
    let mut found = vec![match (measured, run.cells.len()) {
        (0, all) => format!("None of the {all} cells could be measured; the reasons are below."),
        (1, 1) => "The one cell was measured, and no check contradicts its figures.".into(),
        (some, all) if some == all => format!("All {all} cells were measured, and no check contradicts a figure."),
        (some, all) => {
            format!("{some} of {all} cells were measured and count; the others stand with their reasons under “Not in the figures”.")
        }
    }];
    if let Some(busy) = busy::busy(&run.manifest["device"], &run.manifest["host"]) {
        found.push(format!("The computer may have been busy with something else ({busy}): times of this run are partly that something's."));
    }
    let began = text(at(&run.manifest, &["started_utc"])).is_some();
    if began && text(at(&run.manifest, &["finished_utc"])).is_none() {
        found.push(
            "This run was interrupted before its end: cells may be missing, or have fewer launches than asked. `bench run --resume` goes on with it."
                .into(),
        );
    }
    found
}
