//! Genie: Qualcomm's dialog runtime over QNN context binaries.

use std::sync::LazyLock;

use bench_backend_api::knowledge::{DSP, SYSTEM, Table};
use bench_backend_qnn::codes;

mod adapter;
mod reader;
mod timeline;

pub use adapter::Genie;

pub use reader::GenieReader;

/// What no measurement says of this framework ([`bench_backend_api::Card`]).
pub const CARD: &str = include_str!("../card.toml");

/// What is known of failures here: of the device, its DSP, QNN, and this framework.
static TABLE: LazyLock<Table> = LazyLock::new(|| Table::embedded(&[include_str!("../failures.toml"), SYSTEM, DSP, codes::FAILURES]));

#[cfg(test)]
mod tests {
    #[test]
    fn the_table_is_sound() {
        assert_eq!(super::TABLE.problems(), Vec::<String>::new());
    }
    #[test]
    fn every_failed_run_of_the_fixtures_is_explained() {
        for (name, id) in [
            ("fail-5005-kernel-line.txt", "qnn-binary-refused"),
            ("fail-context-exceeded.txt", "genie-context"),
            ("fail-logcat.txt", "dsp-skel"),
            ("fail-missing-key.txt", "genie-config"),
        ] {
            let text = std::fs::read_to_string(format!("{}/fixtures/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap();
            assert_eq!(super::TABLE.nearest(text.lines()).map(|found| found.entry.id.as_str()), Some(id), "{name}");
        }
    }
}
