//! Selection: from one run or several sessions, with what their scenario requires and prefers, to what to ship, or to why nobody can say.
//!
//! ```text
//! sessions; plan, preset -> wish -> candidates (their cells, judged by `gate::require`) -> group (rankings, front) -> verdict -> words
//! ```
//!
//! Pure but for [`read`]. It never sets beside each other what may not be compared: classes, devices and models have groups of their own, ways of
//! timing rankings of their own (rule R6), composed figures are headroom (rule R11), and of an emulator nothing is selected.

mod candidates;
mod group;
mod rank;
mod samples;
mod sessions;
mod standing;
mod types;
mod verdict;
mod wish;
mod words;

#[cfg(test)]
mod tests;

pub use sessions::{Joint, Selected, Unselected, read};
pub use types::*;
pub use words::{deciding, figure_words, first_words, ordered, sure_words, table};

use crate::gate::require::{Evidence, judge_others};
use sessions::Session;
use wish::Wish;

/// The selection of some sessions of one scenario on one device, with what else is known of each.
fn select(sessions: &[Session], evidence: &[Evidence], wish: Wish) -> Selection {
    let judge = |(session, evidence): (&Session, &Evidence)| judge_others(&wish.requirements, &session.plan, &session.run, evidence);
    let judged: Vec<_> = sessions.iter().zip(evidence).map(judge).collect();
    let of_session =
        |session: &Session, busy: String| if sessions.len() > 1 { format!("{busy} in the session {}", session.run.id) } else { busy };
    let busy = sessions.iter().find_map(|session| Some(of_session(session, session.run.busy()?)));
    let of_pool = |pool: &candidates::Pool| group::group(pool, &wish, busy.as_deref().filter(|_| pool.class == "pc"));
    let groups = candidates::pools(sessions, &wish, &judged).iter().map(of_pool).collect();
    let Wish { use_case, needs, weights, .. } = wish;
    Selection { runs: sessions.iter().map(|session| session.run.id.clone()).collect(), use_case, needs, weights, groups }
}
