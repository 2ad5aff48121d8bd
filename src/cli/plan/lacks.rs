//! Which backends of a plan are not there yet.

use bench_backend_api::{Availability, Backend, DeviceFacts, Need};

use crate::{
    runtimes::{Cache, find_in},
    scenario::Plan,
};

/// A backend whose cells would be skipped if the run began now.
#[derive(Debug, serde::Serialize)]
pub struct Lack {
    /// Its id.
    pub backend: String,
    /// What is missing and how to get it, or why it can't run there.
    pub why: String,
}

/// The backends of a plan that lack something which the run itself would not install.
pub fn lacks(plan: &Plan, backends: &[&dyn Backend], facts: &DeviceFacts, cache: &Cache) -> Vec<Lack> {
    let used = |b: &&&dyn Backend| plan.cells.iter().any(|c| c.skipped.is_none() && c.cell.backend == b.id());
    let lack = |backend: &&dyn Backend| {
        let needs = backend.needs(facts);
        let installed = find_in(&plan.runtimes, cache, facts, needs.clone());
        let why = match backend.probe(facts, &installed) {
            Availability::Ready { .. } => return None,
            Availability::Refused { reason } => reason,
            Availability::Missing { what, remedy } => {
                // `bench run` offers to install these.
                let offered = |need: &Need| matches!(need, Need::Python | Need::PythonPackage { .. });
                if needs.iter().filter(|need| installed.get(need).is_none()).all(offered) {
                    return None;
                }
                format!("{what} is missing: {remedy}")
            }
        };
        Some(Lack { backend: backend.id().to_owned(), why })
    };
    backends.iter().filter(used).filter_map(lack).collect()
}
