//! MNN: reading what `llm_bench`, `llm_demo` and the plain-network tools print.

use std::sync::LazyLock;

use bench_backend_api::knowledge::{DSP, SYSTEM, Table};

mod adapter;
mod reader;

pub use adapter::Mnn;

pub use reader::MnnReader;

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
}
