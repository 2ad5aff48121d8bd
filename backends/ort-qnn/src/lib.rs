//! ONNX Runtime with the QNN execution provider.

use std::sync::LazyLock;

use bench_backend_api::knowledge::{DSP, SYSTEM, Table};
use bench_backend_qnn::codes;

mod adapter;
mod reader;

pub use adapter::{OrtQnn, profiles};

pub use reader::{OrtQnnReader, log, trace};

/// What no measurement says of this framework ([`bench_backend_api::Card`]).
pub const CARD: &str = include_str!("../card.toml");

/// What is known of failures here: of the device, its DSP, QNN, and this framework.
pub static TABLE: LazyLock<Table> = LazyLock::new(|| Table::embedded(&[SYSTEM, DSP, codes::FAILURES, include_str!("../failures.toml")]));

#[cfg(test)]
mod tests {
    #[test]
    fn the_table_is_sound() {
        assert_eq!(super::TABLE.problems(), Vec::<String>::new());
    }
}
