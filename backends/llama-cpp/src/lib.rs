//! llama.cpp: reading what `llama-bench`, `llama-cli`, `llama-completion` and `llama-server` print.

use std::sync::LazyLock;

use bench_backend_api::knowledge::{DSP, SYSTEM, Table};

mod reader;

pub use reader::LlamaCppReader;

/// What is known of failures here: of this framework, the device, and its DSP.
static TABLE: LazyLock<Table> = LazyLock::new(|| Table::embedded(&[include_str!("../failures.toml"), SYSTEM, DSP]));

#[cfg(test)]
mod tests {
    #[test]
    fn the_table_is_sound() {
        assert_eq!(super::TABLE.problems(), Vec::<String>::new());
    }
}
