//! ONNX Runtime with the QNN execution provider.

use std::sync::LazyLock;

use bench_backend_api::knowledge::{DSP, SYSTEM, Table};
use bench_backend_qnn::codes;

mod adapter;
mod reader;

pub use adapter::OrtQnn;

pub use reader::{OrtQnnReader, log, trace};

/// What is known of failures here: of the device, its DSP, QNN, and this framework.
static TABLE: LazyLock<Table> = LazyLock::new(|| Table::embedded(&[SYSTEM, DSP, codes::FAILURES, include_str!("../failures.toml")]));

#[cfg(test)]
mod tests {
    #[test]
    fn the_table_is_sound() {
        assert_eq!(super::TABLE.problems(), Vec::<String>::new());
    }
    #[test]
    fn every_failed_run_of_the_fixtures_is_explained() {
        for (name, id) in
            [("fail-run.txt", "qnn-graph-lost"), ("fallback-disabled.txt", "linker-missing"), ("fallback-silent.txt", "qnn-skel")]
        {
            let text = std::fs::read_to_string(format!("{}/fixtures/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap();
            assert_eq!(super::TABLE.nearest(text.lines()).map(|found| found.entry.id.as_str()), Some(id), "{name}");
        }
    }
}
