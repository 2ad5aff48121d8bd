//! The colour of each backend: the same on every page and picture of every run.

use std::collections::{BTreeMap, BTreeSet};

use crate::registry;
use crate::report::charts::{GUESTS, PALETTE, Swatch};
use crate::report::load::Run;

/// Colours of the backends of a page. A backend of the registry has the colour of its place there. A program of a scenario has one of the
/// guests', by its name; where two programs of one page would share one, the later by name gives way, since a chart must tell them apart.
#[derive(Debug, Default)]
pub struct Colours(BTreeMap<String, usize>);

impl Colours {
    /// Colours for all backends of the runs.
    pub fn of(runs: &[Run]) -> Self {
        Self::among(runs.iter().flat_map(|run| &run.cells).map(|cell| cell.backend.as_str()).collect())
    }

    fn among(backends: BTreeSet<&str>) -> Self {
        let mut guests: BTreeMap<String, usize> = BTreeMap::new();
        for backend in backends.into_iter().filter(|backend| registered(backend).is_none()) {
            let home = guest(backend);
            let free = (0..GUESTS).map(|step| (home + step) % GUESTS).find(|place| !guests.values().any(|taken| taken == place));
            // With more programs than colours the label has to tell.
            guests.insert(backend.to_owned(), free.unwrap_or(home));
        }
        Self(guests)
    }

    /// The colour of a backend.
    pub fn get(&self, backend: &str) -> Swatch {
        let home = PALETTE.len() - GUESTS;
        let guest = || home + self.0.get(backend).copied().unwrap_or_else(|| guest(backend));
        PALETTE[registered(backend).filter(|place| *place < home).unwrap_or_else(guest)]
    }
}

/// The place of a backend in the registry.
fn registered(backend: &str) -> Option<usize> {
    registry::reader_ids().iter().position(|id| *id == backend)
}

/// The place of a name among the guests' colours (FNV-1a, which gives the same in every version).
fn guest(backend: &str) -> usize {
    let hash = backend.bytes().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    hash as usize % GUESTS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_backend_of_the_registry_has_a_colour_of_its_own() {
        let ids = registry::reader_ids();
        assert!(ids.len() <= PALETTE.len() - GUESTS, "the palette needs more colours: see the search in palette.rs");
        let on_a_page = Colours::among(["genie", "mnn", "mine"].into());
        let colours: BTreeSet<&str> = ids.iter().map(|id| on_a_page.get(id).light).collect();
        assert_eq!(colours.len(), ids.len());
        for id in registry::BACKENDS.iter().map(|backend| backend.id()) {
            assert!(ids.contains(&id), "{id} is no reader, and so without a colour");
            // Whoever else is on the page.
            assert_eq!(on_a_page.get(id), Colours::default().get(id));
        }
    }

    #[test]
    fn programs_of_a_scenario_keep_their_colour_and_never_take_a_registered_one() {
        let registered: Vec<Swatch> = registry::reader_ids().iter().map(|id| Colours::default().get(id)).collect();
        let names: BTreeSet<&str> = ["mine", "yours", "theirs", "ours"].into();
        let page = Colours::among(names.clone());
        let colours: BTreeSet<&str> = names.iter().map(|name| page.get(name).light).collect();
        assert_eq!(colours.len(), 4, "four programs have four colours, whatever their names");
        for name in names {
            let alone = Colours::among([name, "genie"].into());
            assert_eq!(alone.get(name), Colours::default().get(name), "alone on a page it has the colour of its name");
            assert!(!registered.contains(&page.get(name)));
        }
        let many: Vec<String> = (0..9).map(|n| format!("p{n}")).collect();
        let page = Colours::among(many.iter().map(String::as_str).collect());
        assert!(many.iter().all(|name| !registered.contains(&page.get(name))));
    }
}
