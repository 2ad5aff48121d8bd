//! Launches from the tables of a run folder, whose logs are gone: of each launch the times since its own spawn, in six digits.

use std::{collections::BTreeMap, fs, io, path::Path};

use bench_backend_api::{Layer, Query, Token};
use csv::{ReaderBuilder, StringRecord};
use serde_json::Value;

use super::{
    counters::Row,
    launch::{Key, Launch},
    spans::ns,
};
use crate::results::{
    read::{Loaded, TableError, cut, read, visible},
    schema::{LAUNCHES, LAYERS, SAMPLES, TELEMETRY, TOKENS},
};

/// Every row of a CSV file, one at a time; a last line without an end is half a line, and not taken.
pub fn rows(path: &Path, quoted: bool, mut each: impl FnMut(&StringRecord) -> io::Result<()>) -> io::Result<()> {
    // Where half a line would end.
    let half = if cut(path)? { fs::metadata(path)?.len() } else { u64::MAX };
    let mut reader = ReaderBuilder::new().flexible(true).has_headers(false).quoting(quoted).from_path(path)?;
    let mut row = StringRecord::new();
    loop {
        match reader.read_record(&mut row) {
            Ok(false) => return Ok(()),
            Ok(true) if reader.position().byte() >= half => return Ok(()),
            Ok(true) => each(&row)?,
            Err(e) if e.is_io_error() => return Err(e.into()),
            // Not UTF-8.
            Err(_) => {}
        }
    }
}

/// Launches by their keys, and what could not be read.
#[derive(Debug, Default)]
pub struct Tables {
    /// Launches; layers are with the profile.
    pub launches: BTreeMap<Key, Launch>,
    /// Complaints.
    pub problems: Vec<String>,
}

impl Tables {
    fn at(&mut self, key: Key) -> &mut Launch {
        self.launches.entry(key.clone()).or_insert_with(|| Launch { key, ..Launch::default() })
    }
}

/// Reads all tables but the telemetry.
pub fn launches(run: &Path) -> Result<Tables, TableError> {
    let mut tables = Tables::default();
    let wanted = [
        "cell",
        "pass",
        "launch",
        "block",
        "status",
        "reason",
        "load_ms",
        "wall_ms",
        "exit_code",
        "npu_duty_pct",
        "contended",
        "process_place",
    ];
    if let Some(mut table) = read(run, &LAUNCHES, &wanted, None)? {
        let wall = table.float("wall_ms");
        let words: Vec<(&str, Vec<Option<String>>)> =
            wanted[3..].iter().filter(|name| **name != "wall_ms").map(|name| (*name, table.text(name))).collect();
        for (row, key) in keys(&mut table).into_iter().enumerate() {
            let Some(key) = key else { continue };
            let launch = tables.at(key);
            launch.window.1 = wall[row].map(from_ms);
            launch.args.extend(words.iter().filter_map(|(name, all)| Some(((*name).to_owned(), Value::from(all[row].clone()?)))));
        }
        tables.problems.extend(table.complaint());
    }
    let mut ttft = BTreeMap::new();
    if let Some(mut table) = read(run, &SAMPLES, &["cell", "pass", "launch", "query", "ttft_ms"], None)? {
        let (query, value) = (table.int("query"), table.float("ttft_ms"));
        let keys = keys(&mut table);
        ttft = keys.into_iter().zip(query).zip(value).filter_map(|((key, query), ms)| Some(((key?, query?), ms?))).collect();
        tables.problems.extend(table.complaint());
    }
    if let Some(mut table) = read(run, &TOKENS, &["cell", "pass", "launch", "query", "id", "t_ms"], None)? {
        for ((key, query), tokens) in tokens(&mut table) {
            let first = tokens[0].t_ns;
            // Without it the submission is not known: the query begins with its first token.
            let start_ns = ttft.get(&(key.clone(), query)).map_or(first, |ms| first.saturating_sub(from_ms(*ms)));
            let query = Query { query: u32::try_from(query).unwrap_or_default(), start_ns, tokens, ..Query::default() };
            tables.at(key).parsed.queries.push(query);
        }
        tables.problems.extend(table.complaint());
    }
    for launch in tables.launches.values_mut().filter(|launch| launch.args.get("process_place").is_some_and(|place| place != "0")) {
        // Its time is counted from the start of a process that answered another cell first.
        let begin = launch.parsed.queries.iter().map(|q| q.start_ns).min().unwrap_or_default();
        launch.window = (begin, launch.window.1.map(|wall| begin.saturating_add(wall)));
    }
    let wanted = ["cell", "graph", "phase", "index", "name", "op_type", "unit", "value", "value_unit", "count", "method"];
    if let Some(mut table) = read(run, &LAYERS, &wanted, None)? {
        layers(&mut table, &mut tables);
        tables.problems.extend(table.complaint());
    }
    Ok(tables)
}

fn keys(table: &mut Loaded) -> Vec<Option<Key>> {
    let (cell, pass, launch) = (table.text("cell"), table.text("pass"), table.int("launch"));
    let number = |launch: Option<i64>| launch.and_then(|launch| u32::try_from(launch).ok());
    cell.into_iter().zip(pass).zip(launch).map(|((cell, pass), launch)| Some((cell?, pass?, number(launch)?))).collect()
}

/// Tokens by launch and query, in order of time.
fn tokens(table: &mut Loaded) -> BTreeMap<(Key, i64), Vec<Token>> {
    let (query, id, t) = (table.int("query"), table.int("id"), table.float("t_ms"));
    let mut all: BTreeMap<(Key, i64), Vec<Token>> = BTreeMap::new();
    for (row, key) in keys(table).into_iter().enumerate() {
        let (Some(key), Some(query), Some(t)) = (key, query[row], t[row]) else { continue };
        let id = id[row].and_then(|id| u32::try_from(id).ok());
        all.entry((key, query)).or_default().push(Token { id, t_ns: from_ms(t) });
    }
    for tokens in all.values_mut() {
        tokens.sort_by_key(|token| token.t_ns);
    }
    all
}

fn layers(table: &mut Loaded, tables: &mut Tables) {
    let [cell, graph, phase, name, op_type, unit, value_unit, method] =
        ["cell", "graph", "phase", "name", "op_type", "unit", "value_unit", "method"].map(|column| table.text(column));
    let (index, value, count) = (table.int("index"), table.float("value"), table.int("count"));
    let whole = |number: Option<i64>| number.and_then(|number| u32::try_from(number).ok());
    for row in 0..table.rows() {
        let Some(cell) = cell[row].clone() else { continue };
        let word = |column: &[Option<String>]| column[row].clone().unwrap_or_default();
        tables.at((cell, "profile".to_owned(), 0)).parsed.layers.push(Layer {
            graph: word(&graph),
            phase: word(&phase),
            index: whole(index[row]).unwrap_or_default(),
            name: word(&name),
            op_type: op_type[row].clone(),
            unit: unit[row].clone(),
            value: value[row],
            value_unit: word(&value_unit),
            count: whole(count[row]),
            method: word(&method),
            ..Layer::default()
        });
    }
}

/// Every row of telemetry.csv, by launch.
pub fn telemetry(run: &Path, mut each: impl FnMut(&Key, Row<'_>) -> io::Result<()>) -> io::Result<()> {
    let path = run.join(TELEMETRY.file);
    if !path.is_file() {
        return Ok(());
    }
    let mut places: Option<[Option<usize>; 8]> = None;
    let (mut written, mut key) = (Key::default(), Key::default());
    rows(&path, true, |row| {
        let Some(places) = places else {
            let place = |name: &str| row.iter().position(|column| column == name);
            places = Some(["cell", "pass", "launch", "t_ms", "value", "source", "name", "unit"].map(place));
            return Ok(());
        };
        let [cell, pass, launch, t_ms, value, source, name, unit] = places.map(|at| at.and_then(|at| row.get(at)).unwrap_or_default());
        let (Ok(launch), Ok(t_ms), Ok(value)) = (launch.parse(), t_ms.parse::<f64>(), value.parse()) else { return Ok(()) };
        if (written.0.as_str(), written.1.as_str(), written.2) != (cell, pass, launch) {
            written = (cell.to_owned(), pass.to_owned(), launch);
            // As the other tables are read.
            key = (visible(cell), visible(pass), launch);
        }
        each(&key, Row { at: ns(from_ms(t_ms)), source, name, value, unit })
    })
}

/// ms of a table as ns; a negative time is none of a launch.
fn from_ms(ms: f64) -> u64 {
    (ms.max(0.0) * 1e6).round() as u64
}
