//! One run folder as comparisons see it: the facts of its cells, and for every metric one value a launch.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use polars::prelude::{Expr, col, lit};
use serde::Serialize;
use serde_json::Value;
use thiserror::Error;

use super::busy::busy;
use crate::{
    results::{
        folder::id_of,
        read::{Loaded, TableError, read, visible},
        schema::{CELLS, FORMAT_VERSION, LAUNCHES, METRICS, SAMPLES, Table, Type},
    },
    stats,
    words::count,
};

/// Why a folder can't be compared.
#[derive(Debug, Error)]
pub enum RunError {
    /// The folder has no `cells.csv`.
    #[error("{0} is not a finished run folder, it has no cells.csv: finish it with `bench run --resume`, or name another")]
    NotARun(PathBuf),
    /// One of its files is of a newer bench.
    #[error("{path}: format {found} is newer than this bench knows ({FORMAT_VERSION}): update bench")]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: i64,
    },
    /// A table that can't be read.
    #[error(transparent)]
    Table(#[from] TableError),
}

/// One run.
#[derive(Debug, Default)]
pub struct Run {
    /// The folder.
    pub folder: PathBuf,
    /// Its id.
    pub id: String,
    /// Name of its scenario; empty when the manifest has none.
    pub scenario: String,
    /// When it began, RFC 3339; empty when the manifest does not say.
    pub started_utc: String,
    /// `manifest.json`, or null: raw, so that those of older versions are read too.
    pub manifest: Value,
    /// Its cells.
    pub cells: BTreeMap<Key, Cell>,
    /// What is missing or makes no sense, in words.
    pub problems: Vec<String>,
}

/// What is compared with the same of another run.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Key {
    /// Name of the device.
    pub device: String,
    /// Id of the cell.
    pub cell: String,
}

/// One cell.
#[derive(Debug, Clone, Default)]
pub struct Cell {
    /// Its row of `cells.csv`, without the metrics; empty values are not in it.
    pub fields: BTreeMap<&'static str, String>,
    /// By metric of [`METRICS`], in the order of the launches. A metric without values is not in it.
    pub metrics: BTreeMap<&'static str, Vec<Launch>>,
    /// By metric, how many of its values in the tables are no measurement: no finite numbers, or of a query not above 0.
    pub unmeasured: BTreeMap<&'static str, usize>,
    /// By metric, how the launches in the tables are not those that `cells.csv` counts, in words.
    pub short: BTreeMap<&'static str, String>,
    /// By column of [`STATE`], what the launches that count say; empty values are not in it.
    pub state: BTreeMap<&'static str, Vec<String>>,
}

/// What is said of a run whose manifest has no `finished_utc`.
pub const UNFINISHED: &str = "is not finished: it is running now, or `bench run --resume` goes on with it";

/// Columns of `launches.csv` that tell in what state a launch was made.
pub const STATE: [&str; 13] = [
    "start_skin_c",
    "start_npu_c",
    "start_cpu_c",
    "start_battery_c",
    "start_battery_pct",
    "start_charging",
    "start_screen",
    "cpuset",
    "cgroup",
    "nice",
    "oom_score_adj",
    "affinity",
    "selinux_domain",
];

/// What one launch gives for a metric: the median of its warm queries, or its own figure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Launch {
    /// Number of the launch within the cell.
    pub launch: i64,
    /// Value in the metric's unit.
    pub value: f64,
}

impl Run {
    /// Whether it shared its computer, in words ([`busy`]).
    pub fn busy(&self) -> Option<String> {
        busy(&self.manifest["device"], &self.manifest["host"])
    }
}

impl Cell {
    /// A field of `cells.csv`, or "".
    pub fn field(&self, name: &str) -> &str {
        self.fields.get(name).map_or("", String::as_str)
    }

    /// Whether its figures count.
    pub fn is_ok(&self) -> bool {
        self.field("status") == "ok"
    }

    /// Why a metric, or a column of figures of `cells.csv`, is none: values that can't be one, launches that are not those that are counted.
    pub fn damage(&self, name: &str) -> Option<String> {
        if let Some(n) = self.unmeasured.get(name) {
            return Some(format!("of {name} the tables have {} that can't be one: 0, less, or no number", count(*n, "value")));
        }
        let own = || {
            let text = self.fields.get(name).filter(|text| !could_be(name, text))?;
            Some(format!("cells.csv has {text} as {name}, which can't be one"))
        };
        self.short.get(name).cloned().or_else(own)
    }

    /// The values of a metric in the order of the launches.
    pub fn values(&self, metric: &str) -> Vec<f64> {
        self.metrics.get(metric).into_iter().flatten().map(|launch| launch.value).collect()
    }
}

/// Whether a column can hold this text: of the figures that are looked at here all but a share of tokens are above 0.
fn could_be(name: &str, text: &str) -> bool {
    let is_number = CELLS.columns.iter().any(|column| column.name == name && column.ty != Type::Text);
    let sound = |value: f64| match name {
        "token_agreement" => (0.0..=1.0).contains(&value),
        _ => value.is_finite() && value > 0.0,
    };
    !is_number || text.parse().is_ok_and(sound)
}

/// Reads a run folder. Only `cells.csv` must be there; what else is missing is told in [`Run::problems`].
pub fn load(folder: &Path) -> Result<Run, RunError> {
    let mut run = Run { folder: folder.to_owned(), id: id_of(folder), ..Run::default() };
    let text = fs::read_to_string(folder.join("manifest.json")).map_err(|e| e.to_string());
    match text.and_then(|text| serde_json::from_str::<Value>(&text).map_err(|e| e.to_string())) {
        Ok(manifest) => {
            if let Some(found) = manifest["format_version"].as_i64().filter(|found| *found > i64::from(FORMAT_VERSION)) {
                return Err(RunError::Newer { path: folder.join("manifest.json"), found });
            }
            if manifest["finished_utc"].as_str().is_none() {
                run.problems.push(UNFINISHED.to_owned());
            }
            run.manifest = manifest;
        }
        Err(e) => run.problems.push(format!("manifest.json can't be read, so device, runtimes and environment are unknown: {e}")),
    }
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    (run.scenario, run.started_utc) = (word(&run.manifest["scenario"]["name"]), word(&run.manifest["started_utc"]));

    let facts: Vec<&'static str> = CELLS.columns.iter().map(|column| column.name).collect();
    let counts: Vec<(&str, String)> = METRICS.iter().map(|metric| (metric.name, format!("{}_n", metric.name))).collect();
    let wanted: Vec<&str> = facts.iter().copied().chain(counts.iter().map(|(_, column)| column.as_str())).collect();
    let mut cells = read(folder, &CELLS, &wanted, None)?.ok_or_else(|| RunError::NotARun(folder.to_owned()))?;
    if let Some(found) = cells.newer() {
        return Err(RunError::Newer { path: folder.join(CELLS.file), found });
    }
    let columns: Vec<_> = facts.into_iter().map(|name| (name, cells.text(name))).collect();
    for (row, key) in keys(&cells).into_iter().enumerate() {
        let fields = columns.iter().filter_map(|(name, values)| Some((*name, values[row].clone()?))).collect();
        if run.cells.insert(key.clone(), Cell { fields, ..Cell::default() }).is_some() {
            run.problems.push(format!("cells.csv has {} on {} twice: the last row counts", key.cell, key.device));
        }
    }
    of_launches(folder, &mut run)?;
    of_queries(folder, &mut run)?;
    let rows = keys(&cells);
    for (metric, column) in &counts {
        for row in cells.not_numbers(column) {
            if let Some(cell) = run.cells.get_mut(&rows[row]) {
                cell.short.insert(metric, format!("cells.csv has no number as {column}"));
            }
        }
    }
    let counts: Vec<_> = counts.iter().map(|(metric, column)| (*metric, cells.int(column))).collect();
    complain(&mut run, &cells, &counts);
    for cell in run.cells.values_mut() {
        cell.metrics.values_mut().for_each(|launches| launches.sort_by_key(|launch| launch.launch));
    }
    Ok(run)
}

/// Launches of a metric in a table that are not as many as `cells.csv` counts.
struct Differ {
    name: &'static str,
    found: usize,
    count: usize,
}

impl Differ {
    fn told(&self) -> String {
        let Self { name, found, count } = self;
        if found > count { format!("{found} of {name} for {count}") } else { format!("{found} of the {count} launches of {name}") }
    }

    fn words(&self) -> String {
        let Self { name, found, count } = self;
        if found > count {
            format!("{found} launches of {name}, of which cells.csv counts {count}")
        } else {
            format!("{} that cells.csv counts", self.told())
        }
    }
}

/// Says what the tables lack that they should have, and what they have too much.
fn complain(run: &mut Run, cells: &Loaded, counts: &[(&'static str, Vec<Option<i64>>)]) {
    let planned = run.manifest["cells"].as_object().into_iter().flat_map(|cells| cells.keys());
    let lost: Vec<&String> = planned.filter(|id| !run.cells.keys().any(|key| key.cell == **id)).collect();
    let mut said = Vec::new();
    if let Some(first) = lost.first() {
        let (lost, first) = (count(lost.len(), "cell"), visible(first));
        said.push(format!("cells.csv has no row of {lost} that the manifest names, the first being {first}: it was cut off"));
    }
    let keys = keys(cells);
    for (file, per_query) in [(SAMPLES.file, true), (LAUNCHES.file, false)] {
        let of_file = |name: &str| METRICS.iter().any(|metric| metric.name == name && metric.per_query == per_query);
        // Those of a regression are counted over several cells.
        let counted = counts.iter().filter(|(name, _)| of_file(name) && !name.starts_with("energy_j_per"));
        let counted = counted.flat_map(|(name, values)| values.iter().zip(&keys).map(move |(count, key)| (*name, *count, key)));
        let differ = counted.filter_map(|(name, count, key)| {
            let cell = run.cells.get(key).filter(|cell| cell.field("decode_method") != "composed")?;
            let (found, count) = (cell.metrics.get(name).map_or(0, Vec::len), usize::try_from(count?).ok()?);
            // Of launches `cells.csv` takes those that give the metric by all that is known of them.
            (found < count || (found > count && per_query && cell.is_ok())).then_some((key, Differ { name, found, count }))
        });
        let mut by_cell: BTreeMap<&Key, Vec<Differ>> = BTreeMap::new();
        differ.for_each(|(key, one)| by_cell.entry(key).or_default().push(one));
        let missing = !run.folder.join(file).is_file();
        for (key, all) in &by_cell {
            let Some(cell) = run.cells.get_mut(key) else { continue };
            let words = |one: &Differ| if missing { format!("{file} is missing") } else { format!("{file} has {}", one.words()) };
            cell.short.extend(all.iter().map(|one| (one.name, words(one))));
        }
        for (more, what) in [(false, "lacks launches that cells.csv counts"), (true, "has launches that cells.csv does not count")] {
            let of = |all: &[Differ]| all.iter().find(|one| (one.found > one.count) == more).map(Differ::told);
            let told: Vec<(&Key, String)> = by_cell.iter().filter_map(|(key, all)| Some((*key, of(all)?))).collect();
            if let Some((key, words)) = told.first() {
                said.push(format!("{file} {what}, in {}, the first being {}: {words}", count(told.len(), "cell"), key.cell));
            }
        }
    }
    said.extend(cells.complaint());
    run.problems.extend(said);
    unknown(run, CELLS.file, cells);
}

fn unknown(run: &mut Run, file: &str, table: &Loaded) {
    if !table.unknown().is_empty() {
        let names = table.unknown().join(", ");
        run.problems.push(format!("{file} has columns that this bench does not know and does not compare: {names}"));
    }
}

fn counted() -> Expr {
    col("pass").eq(lit("measure")).and(col("status").eq(lit("ok")))
}

/// Metrics of whole launches. The first launch of a segment pays for staging and page cache: its load is none of `load_ms`.
fn of_launches(folder: &Path, run: &mut Run) -> Result<(), RunError> {
    let metrics: Vec<&'static str> = METRICS.iter().filter(|metric| !metric.per_query).map(|metric| metric.name).collect();
    let wanted: Vec<&str> = metrics.iter().copied().chain(STATE).collect();
    let Some(mut table) = table(folder, run, &LAUNCHES, &wanted, counted())? else { return Ok(()) };
    let (keys, launch, segment) = (keys(&table), table.int("launch"), table.int("segment"));
    let mut firsts: BTreeMap<(&Key, Option<i64>), i64> = BTreeMap::new();
    for (row, key) in keys.iter().enumerate() {
        let first = firsts.entry((key, segment[row])).or_insert(i64::MAX);
        *first = (*first).min(launch[row].unwrap_or(i64::MAX));
    }
    let composed: Vec<bool> = keys.iter().map(|key| run.cells.get(key).is_some_and(|c| c.field("decode_method") == "composed")).collect();
    for name in metrics {
        for (row, value) in table.float(name).into_iter().enumerate() {
            let (Some(value), Some(launch)) = (value, launch[row]) else { continue };
            let first = firsts.get(&(&keys[row], segment[row])) == Some(&launch);
            if composed[row] || (name.starts_with("load_") && first) {
                continue;
            }
            let Some(cell) = run.cells.get_mut(&keys[row]) else { continue };
            cell.metrics.entry(name).or_default().push(Launch { launch, value });
        }
    }
    for name in STATE {
        for (key, value) in keys.iter().zip(table.text(name)) {
            if let (Some(cell), Some(value)) = (run.cells.get_mut(key), value) {
                cell.state.entry(name).or_default().push(value);
            }
        }
    }
    run.problems.extend(table.complaint());
    inherited(run);
    Ok(())
}

/// What programs inherit, of runs whose `launches.csv` does not tell it yet: as the device said of its shell.
fn inherited(run: &mut Run) {
    let said = run.manifest.pointer("/device_says/facts/launch").cloned().unwrap_or_default();
    for name in ["cpuset", "nice", "affinity"] {
        let value = match &said[name] {
            Value::String(text) => text.clone(),
            Value::Number(number) => number.to_string(),
            _ => continue,
        };
        for cell in run.cells.values_mut() {
            cell.state.entry(name).or_insert_with(|| vec![value.clone()]);
        }
    }
}

/// Metrics of queries: the median of a launch's warm ones.
fn of_queries(folder: &Path, run: &mut Run) -> Result<(), RunError> {
    let metrics: Vec<&'static str> = METRICS.iter().filter(|metric| metric.per_query).map(|metric| metric.name).collect();
    let warm = counted().and(col("query_kind").eq(lit("warm_query")));
    let Some(mut table) = table(folder, run, &SAMPLES, &metrics, warm)? else { return Ok(()) };
    let (keys, launch) = (keys(&table), table.int("launch"));
    for name in metrics {
        let mut queries: BTreeMap<(&Key, i64), Vec<f64>> = BTreeMap::new();
        for (row, value) in table.float(name).into_iter().enumerate() {
            let (Some(value), Some(launch)) = (value, launch[row]) else { continue };
            if value <= 0.0
                && let Some(cell) = run.cells.get_mut(&keys[row])
            {
                *cell.unmeasured.entry(name).or_default() += 1;
            }
            queries.entry((&keys[row], launch)).or_default().push(value);
        }
        for ((key, launch), values) in queries {
            let (Some(value), Some(cell)) = (stats::median(&values), run.cells.get_mut(key)) else { continue };
            cell.metrics.entry(name).or_default().push(Launch { launch, value });
        }
    }
    run.problems.extend(table.complaint());
    Ok(())
}

fn table(folder: &Path, run: &mut Run, table: &'static Table, metrics: &[&str], filter: Expr) -> Result<Option<Loaded>, RunError> {
    let wanted: Vec<&str> = ["format_version", "device", "cell", "launch", "segment"].into_iter().chain(metrics.iter().copied()).collect();
    let Some(mut found) = read(folder, table, &wanted, Some(filter))? else {
        run.problems.push(format!("{} is missing: its metrics can't be compared", table.file));
        return Ok(None);
    };
    if let Some(version) = found.newer() {
        return Err(RunError::Newer { path: folder.join(table.file), found: version });
    }
    unknown(run, table.file, &found);
    let keys = keys(&found);
    for name in METRICS.iter().map(|metric| metric.name).filter(|name| metrics.contains(name)) {
        for row in found.not_numbers(name) {
            if let Some(cell) = run.cells.get_mut(&keys[row]) {
                *cell.unmeasured.entry(name).or_default() += 1;
            }
        }
    }
    Ok(Some(found))
}

fn keys(table: &Loaded) -> Vec<Key> {
    let (devices, cells) = (table.text("device"), table.text("cell"));
    let word = |value: Option<String>| value.unwrap_or_default();
    devices.into_iter().zip(cells).map(|(device, cell)| Key { device: word(device), cell: word(cell) }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder whose name is a pattern is that folder, and none that the pattern describes.
    #[test]
    fn names_of_folders_are_no_patterns() {
        let dir = tempfile::tempdir().expect("a folder");
        for (name, cell) in [("[b]", "mine"), ("b", "another")] {
            fs::create_dir(dir.path().join(name)).expect("made");
            fs::write(dir.path().join(name).join(CELLS.file), format!("device,cell\nd,{cell}\n")).expect("written");
        }
        let run = load(&dir.path().join("[b]")).expect("a run");
        assert_eq!(run.cells.keys().map(|key| key.cell.as_str()).collect::<Vec<_>>(), ["mine"]);
    }

    /// The launches of the committed example give what its `cells.csv` says: the medians there are made by another path (`results::summary`).
    #[test]
    fn medians_over_launches_are_those_of_cells_csv() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("results/example-pc");
        let run = load(&folder).expect("the example");
        assert_eq!((run.scenario.as_str(), run.problems.len()), ("pc", 0), "{:?}", run.problems);
        let names: Vec<&str> = ["device", "cell", "ttft_ms", "decode_tok_s", "load_ms", "peak_mem_mb", "cpu_s"].to_vec();
        let mut table = read(&folder, &CELLS, &names, None).expect("a table").expect("cells.csv");
        let keys = keys(&table);
        let mut compared = 0;
        for name in &names[2..] {
            for (row, median) in table.float(name).into_iter().enumerate() {
                let found = stats::median(&run.cells[&keys[row]].values(name));
                assert_eq!(found.is_some(), median.is_some(), "{name} of {:?}", keys[row]);
                let Some((found, median)) = found.zip(median) else { continue };
                // Tables hold six digits.
                assert!((found - median).abs() <= 1e-5 * median.abs(), "{name} of {:?}: {found} is not {median}", keys[row]);
                compared += 1;
            }
        }
        assert!(compared > 40, "{compared}");
    }
}
