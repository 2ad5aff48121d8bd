//! Selection: from one run, with what its scenario requires and prefers, to what to ship, or to why nobody can say.
//!
//! ```text
//! plan, preset -> wish -> candidates (their cells, judged by `gate::require`) -> group (rankings, front) -> verdict -> words
//! ```
//!
//! Pure but for [`read`]. It never sets beside each other what may not be compared: classes, devices and models have groups of their own, ways of
//! timing rankings of their own (rule R6), composed figures are headroom (rule R11), and of an emulator nothing is selected.

mod candidates;
mod group;
mod rank;
mod read;
mod samples;
mod standing;
mod types;
mod verdict;
mod wish;
mod words;

#[cfg(test)]
mod tests;

pub use read::{Selected, Unselected, read};
pub use types::*;
pub use words::{deciding, figure_words, first_words, ordered, sure_words, table};

use crate::{
    gate::{
        require::{Evidence, judge_others},
        run::Run,
    },
    scenario::{Plan, Preset},
};
use wish::Wish;

/// The selection of a run. `asked` is a preset for another use than the scenario's.
pub fn select(plan: &Plan, run: &Run, evidence: &Evidence, asked: Option<&Preset>) -> Selection {
    of_wish(plan, run, evidence, Wish::of(plan, asked))
}

fn of_wish(plan: &Plan, run: &Run, evidence: &Evidence, wish: Wish) -> Selection {
    let judged = judge_others(&wish.requirements, plan, run, evidence);
    let busy = run.busy();
    let of_pool = |pool: &candidates::Pool| group::group(pool, &wish, busy.as_deref().filter(|_| pool.class == "pc"));
    let groups = candidates::pools(plan, run, &wish, &judged).iter().map(of_pool).collect();
    let Wish { use_case, needs, weights, .. } = wish;
    Selection { run: run.id.clone(), use_case, needs, weights, groups }
}
