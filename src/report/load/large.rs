//! The tables that grow with the run: read side by side, each in one pass.

use std::{collections::BTreeMap, path::Path, sync::Arc, thread};

use bench_tables::{Columns, Wanted};

use super::layers::layers;
use super::timeline::sampled;
use super::types::{CellKey, Layer, Timeline};
use crate::results::{
    read::{TableError, columns, complaint, visible},
    schema::{LAYERS, SAMPLES, TELEMETRY, TOKENS, Table},
};

/// What a table tells of each cell, and what is to be said of the table.
pub type ByCell<T> = (BTreeMap<CellKey, T>, Option<String>);

/// What is taken of them; a table that the folder lacks is `None`.
pub struct Large {
    /// Samples of the first measured launches.
    pub telemetry: Option<ByCell<Timeline>>,
    /// Tokens of the measured launches.
    pub tokens: Option<Columns>,
    /// Queries of the measured launches.
    pub samples: Option<Columns>,
    /// Operations of the profile pass.
    pub layers: Option<ByCell<Vec<Layer>>>,
}

const OF_TELEMETRY: Wanted = Wanted {
    words: &["device", "cell", "source", "name", "unit"],
    numbers: &["t_ms", "value"],
    only: &[("pass", "measure"), ("launch", "0")],
};
const OF_TOKENS: Wanted =
    Wanted { words: &["device", "cell"], numbers: &["launch", "query", "t_ms", "itl_ms"], only: &[("pass", "measure")] };
const OF_SAMPLES: Wanted = Wanted {
    words: &["device", "cell", "status", "query_kind"],
    numbers: &["launch", "query", "aggregate_n", "ttft_ms", "decode_tok_s"],
    only: &[("pass", "measure")],
};
// The profile pass feeds this table and nothing else: profiling slows what it looks at.
const OF_LAYERS: Wanted = Wanted {
    words: &[
        "device",
        "cell",
        "graph",
        "phase",
        "name",
        "op_type",
        "part",
        "op_kind",
        "op_class",
        "unit",
        "value_unit",
        "value_means",
        "method",
    ],
    numbers: &["value", "folded", "count"],
    only: &[],
};

/// Reads them; the largest beside the others.
pub fn large(dir: &Path) -> Result<Large, TableError> {
    let read = |table: &'static Table, wanted: Wanted<'static>| move || columns(dir, table, &wanted);
    thread::scope(|scope| {
        let telemetry = scope.spawn(|| {
            let of = |table: Columns| (sampled(&table), complaint(TELEMETRY.file, table.cut, table.not_numbers()));
            read(&TELEMETRY, OF_TELEMETRY)().map(|table| table.map(of))
        });
        let of = |table: Columns| (layers(&table), complaint(LAYERS.file, table.cut, table.not_numbers()));
        let layers = read(&LAYERS, OF_LAYERS)().map(|table| table.map(of));
        let (tokens, samples) = (read(&TOKENS, OF_TOKENS)(), read(&SAMPLES, OF_SAMPLES)());
        let telemetry = telemetry.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        Ok(Large { telemetry: telemetry?, tokens: tokens?, samples: samples?, layers: layers? })
    })
}

/// The rows of each cell, in the order of the table.
pub fn by_cell(table: &Columns) -> Vec<(CellKey, Vec<u32>)> {
    let [devices, cells] = ["device", "cell"].map(|name| shown(table, name));
    let key = |codes: &[u32]| CellKey { device: devices[codes[0] as usize].to_string(), cell: cells[codes[1] as usize].to_string() };
    table.groups(&table.all(), &["device", "cell"]).into_iter().map(|group| (key(&group.codes), group.rows)).collect()
}

/// The different words of a column as they may be shown, each once.
pub fn shown(table: &Columns, column: &str) -> Vec<Arc<str>> {
    table.words(column).names.iter().map(|name| visible(name).into()).collect()
}
