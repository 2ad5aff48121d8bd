//! The tables that grow with the run: read side by side, each in one pass.

use std::{collections::BTreeMap, path::Path, sync::Arc, thread};

use bench_tables::{Columns, Wanted};

use super::layers::layers;
use super::timeline::sampled;
use super::types::{CellKey, Layer, Timeline};
use crate::results::{
    read::{TableError, columns, complaint, parts, visible},
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
    thread::scope(|scope| {
        let telemetry = scope.spawn(|| told(dir, &TELEMETRY, &OF_TELEMETRY, sampled, Timeline::join));
        let layers = told(dir, &LAYERS, &OF_LAYERS, layers, |all: &mut Vec<Layer>, more| all.extend(more))?;
        let (tokens, samples) = (columns(dir, &TOKENS, &OF_TOKENS)?, columns(dir, &SAMPLES, &OF_SAMPLES)?);
        let telemetry = telemetry.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        Ok(Large { telemetry, tokens, samples, layers })
    })
}

/// What a table tells of each cell: by each part of it, joined in their order.
fn told<T: Default + Send>(
    dir: &Path,
    table: &'static Table,
    wanted: &Wanted<'_>,
    tell: fn(&Columns) -> BTreeMap<CellKey, T>,
    join: fn(&mut T, T),
) -> Result<Option<ByCell<T>>, TableError> {
    let of = |part: Columns| (tell(&part), part.cut, part.not_numbers());
    let all = |parts: Vec<(BTreeMap<CellKey, T>, bool, usize)>| {
        let (mut found, mut cut, mut not_numbers) = (BTreeMap::new(), false, 0);
        for (of_part, is_cut, wrong) in parts {
            for (key, more) in of_part {
                join(found.entry(key).or_default(), more);
            }
            (cut, not_numbers) = (cut || is_cut, not_numbers + wrong);
        }
        (found, complaint(table.file, cut, not_numbers))
    };
    parts(dir, table, wanted, of).map(|parts| parts.map(all))
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
