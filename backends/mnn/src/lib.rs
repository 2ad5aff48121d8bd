//! MNN: reading what `llm_bench`, `llm_demo` and the plain-network tools print.

use std::sync::LazyLock;

use bench_backend_api::knowledge::{DSP, SYSTEM, Table};

mod adapter;
mod reader;

pub use adapter::Mnn;

pub use reader::MnnReader;

/// What no measurement says of this framework ([`bench_backend_api::Card`]).
pub const CARD: &str = include_str!("../card.toml");

/// How its programs and models for a phone are made, since it publishes none: `{soc}`, `{soc_model}` and `{htp_arch}` are the chip's.
pub const BUILD_GUIDE: &str = include_str!("../device/build.txt");

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
            ("fail_adsp_path.stderr", "adsp-path-unquoted"),
            ("fail_dir_not_json.stderr", "mnn-config-folder"),
            ("fail_fallback_opencl.stdout", "mnn-on-cpu"),
            ("fail_missing_model.stderr", "mnn-config"),
            ("fail_missing_model.stdout", "mnn-files"),
            ("fail_missing_val.stderr", "mnn-arguments"),
            ("fail_missing_weight.stdout", "mnn-files"),
            ("fail_oom.stderr", "mnn-allocation"),
            ("fail_oom.stdout", "mnn-memory"),
            ("fail_permission.stderr", "exec-denied"),
            ("fail_trunc_mnn.stdout", "mnn-module"),
            ("fail_demo_missing_model.stdout", "mnn-files"),
            ("fail_demo_noargs.stdout", "mnn-demo-usage"),
        ] {
            let text = std::fs::read_to_string(format!("{}/fixtures/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap();
            assert_eq!(super::TABLE.nearest(text.lines()).map(|found| found.entry.id.as_str()), Some(id), "{name}");
        }
    }
}
