//! llama.cpp: reading what `llama-bench`, `llama-cli`, `llama-completion` and `llama-server` print.

use std::sync::LazyLock;

use bench_backend_api::knowledge::{DSP, SYSTEM, Table};

mod reader;

pub use reader::LlamaCppReader;

/// What no measurement says of this framework ([`bench_backend_api::Card`]).
pub const CARD: &str = include_str!("../card.toml");

/// What is known of failures here: of this framework, the device, and its DSP.
static TABLE: LazyLock<Table> = LazyLock::new(|| Table::embedded(&[include_str!("../failures.toml"), SYSTEM, DSP]));

#[cfg(test)]
mod tests {
    #[test]
    fn the_table_is_sound() {
        assert_eq!(super::TABLE.problems(), Vec::<String>::new());
    }
    #[test]
    fn every_failed_run_of_the_fixtures_is_explained() {
        for (name, id) in [
            ("fail_bad_device.stderr", "llama-device"),
            ("fail_bad_number.stderr", "llama-arguments"),
            ("fail_dspqueue.txt", "llama-dsp-lost"),
            ("fail_missing.stderr", "llama-model"),
            ("fail_nobackend.stderr", "llama-backend"),
            ("fail_one_of_two.stderr", "llama-model"),
            ("fail_oom.stderr", "llama-context"),
            ("fail_session.stderr", "llama-skel"),
        ] {
            let text = std::fs::read_to_string(format!("{}/fixtures/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap();
            assert_eq!(super::TABLE.nearest(text.lines()).map(|found| found.entry.id.as_str()), Some(id), "{name}");
        }
    }
}
