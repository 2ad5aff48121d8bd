//! ExecuTorch: reading what its runners print, and its ETDump.

use std::sync::LazyLock;

use bench_backend_api::knowledge::{DSP, SYSTEM, Table};
use bench_backend_qnn::codes;

mod reader;

pub use reader::ExecuTorchReader;

/// What no measurement says of this framework ([`bench_backend_api::Card`]).
pub const CARD: &str = include_str!("../card.toml");

/// What is known of failures here: of the device, its DSP, QNN, and this framework.
static TABLE: LazyLock<Table> = LazyLock::new(|| Table::embedded(&[SYSTEM, DSP, codes::FAILURES, include_str!("../failures.toml")]));

#[cfg(test)]
mod tests {
    #[test]
    fn the_table_is_sound() {
        assert_eq!(super::TABLE.problems(), Vec::<String>::new());
    }
}
