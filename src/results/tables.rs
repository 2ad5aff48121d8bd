//! The tables, derived from journal, records and telemetry: a pure function of the run folder, so that they can be made again
//! after any crash.

use std::{
    borrow::Cow,
    collections::BTreeMap,
    fmt::Display,
    fs::{self, File},
    io::{BufWriter, Write},
    path::{Path, PathBuf},
};

use bench_backend_api::{DeviceClass, Pass, Query};

use super::{
    boot,
    folder::FolderError,
    launches::{self, Record, Recorded},
    layers,
    manifest::Manifest,
    npu::Npu,
    phases, placement,
    portable::Portable,
    power::RunPower,
    prefix, roof,
    schema::{self, FORMAT_VERSION, METRIC_ENDS, METRICS, Table},
    soak,
    start::Start,
    summary::{self, COMPOSED},
    support,
};
use crate::{
    analysis::power::{BaselineState, METRICS as METRICS_OF_POWER},
    device::zones::Domain,
    run::{
        LaunchMetrics, MEMORY_FIGURES, QueryMetrics, RUNTIME_REPORTED, Trace, events::Status, is_composed, launch_figures, launch_metrics,
        query_metrics, scope, warmup,
    },
    safe::printable_lines,
    scenario::{Plan, PlannedCell},
    stats::Summary,
};

/// One row: values by column name. A column without a value is empty.
#[derive(Debug, Clone, Default)]
pub struct Row(BTreeMap<String, String>);
impl Row {
    /// Sets a column.
    pub fn set(&mut self, column: &'static str, value: impl Display) -> &mut Self {
        self.0.insert(column.to_owned(), value.to_string());
        self
    }
    /// The value of a column, unless it is empty.
    pub fn get(&self, column: &str) -> Option<&str> {
        self.0.get(column).map(String::as_str).filter(|text| !text.is_empty())
    }
    /// Sets a column if there is a value.
    pub fn maybe(&mut self, column: &'static str, value: Option<impl Display>) -> &mut Self {
        if let Some(value) = value {
            self.set(column, value);
        }
        self
    }
    /// Sets a number if there is one, rounded to what a measurement can mean (6 significant digits).
    pub fn number(&mut self, column: &'static str, value: Option<f64>) -> &mut Self {
        self.maybe(column, value.filter(|v| v.is_finite()).map(significant))
    }
    /// Sets the columns of a metric that is estimated over several cells, with its 95 % interval.
    pub fn estimate(&mut self, metric: &str, value: f64, (lo, hi): (f64, f64), n: usize) -> &mut Self {
        for (end, value) in [("", value), ("_lo", lo), ("_hi", hi), ("_coverage", 0.95)] {
            self.0.insert(format!("{metric}{end}"), significant(value));
        }
        self.0.insert(format!("{metric}_n"), n.to_string());
        self
    }
    /// Sets the columns of a metric. One value has no interval.
    pub fn summary(&mut self, metric: &str, s: &Summary) -> &mut Self {
        let ends = [("_lo", s.lo), ("_hi", s.hi), ("_coverage", s.coverage)];
        for (end, value) in [("", s.median), ("_mad", s.mad)].into_iter().chain(ends.into_iter().filter(|_| s.n > 1)) {
            self.0.insert(format!("{metric}{end}"), significant(value));
        }
        if let Some(centre) = s.centre {
            self.0.insert(format!("{metric}_centre"), significant(centre));
        }
        self.0.insert(format!("{metric}_n"), s.n.to_string());
        self
    }
}

impl Row {
    /// Adds metrics that have no value, with the reason, to the column `absent`.
    pub fn also_absent(&mut self, absent: &[(&'static str, String)]) {
        let known = self.get("absent").map(str::to_owned);
        let words = known.into_iter().chain(absent.iter().map(|(metric, why)| format!("{metric}={why}")));
        let words = words.collect::<Vec<_>>().join(";");
        self.set("absent", words);
    }
}

/// Six significant digits, without an exponent.
pub fn significant(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    let digits = (5 - value.abs().log10().floor() as i32).clamp(0, 12);
    let text = format!("{value:.*}", digits as usize);
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// A table being written: complete under its name after [`Writer::finish`], or not there.
struct Writer {
    path: PathBuf,
    temporary: PathBuf,
    columns: Vec<String>,
    portable: Portable,
    csv: csv::Writer<BufWriter<File>>,
}
impl Writer {
    fn new(run: &Path, table: &Table) -> Result<Self, FolderError> {
        let path = run.join(table.file);
        let temporary = run.join(format!("{}.tmp", table.file));
        let file = File::create(&temporary).map_err(FolderError::io(&temporary))?;
        let columns = column_names(table);
        let mut csv = csv::Writer::from_writer(BufWriter::new(file));
        csv.write_record(&columns).map_err(|e| csv_error(&path, e))?;
        Ok(Self { path, temporary, columns, portable: Portable::new(run), csv })
    }
    fn row(&mut self, row: &Row) -> Result<(), FolderError> {
        debug_assert!(row.0.keys().all(|k| self.columns.iter().any(|c| c == k)), "unknown column in {row:?}");
        let values = self.columns.iter().map(|column| match (column.as_str(), row.0.get(column)) {
            // The columns that hold words of tools, and with them paths.
            ("reason" | "warnings" | "effective_options" | "soak_ended" | "what", Some(text)) => Cow::Owned(self.portable.text(text)),
            (_, text) => Cow::Borrowed(text.map_or("", String::as_str)),
        });
        // A table is shown on terminals too, and words of tools and devices stand in it. Most values are numbers, and millions.
        let plain = |text: &str| text.bytes().all(|byte| matches!(byte, b' '..=b'~'));
        let values: Vec<Cow<'_, str>> = values.map(|text| if plain(&text) { text } else { printable_lines(&text).into() }).collect();
        self.csv.write_record(values.iter().map(|v| v.as_bytes())).map_err(|e| csv_error(&self.path, e))
    }
    fn finish(mut self) -> Result<(), FolderError> {
        self.csv.flush().map_err(FolderError::io(&self.path))?;
        let mut file = self.csv.into_inner().map_err(|e| FolderError::Io { path: self.path.clone(), source: e.into_error() })?;
        file.flush().map_err(FolderError::io(&self.path))?;
        fs::rename(&self.temporary, &self.path).map_err(FolderError::io(&self.path))
    }
}

fn csv_error(path: &Path, e: csv::Error) -> FolderError {
    match e.into_kind() {
        csv::ErrorKind::Io(source) => FolderError::Io { path: path.to_path_buf(), source },
        other => FolderError::Damaged { path: path.to_path_buf(), message: format!("{other:?}") },
    }
}

/// All columns of a table: `cells.csv` has those of [`METRIC_ENDS`] for every metric beside its fixed ones.
pub fn column_names(table: &Table) -> Vec<String> {
    let mut names: Vec<String> = table.columns.iter().map(|c| c.name.to_owned()).collect();
    if table.file == schema::CELLS.file {
        for metric in METRICS {
            names.extend(METRIC_ENDS.map(|end| format!("{}{end}", metric.name)));
        }
    }
    names
}

/// Writes every table of a run folder; also says what was recorded, and the status of each cell.
pub fn write(run: &Path, plan: &Plan, manifest: &Manifest) -> Result<(Recorded, Vec<(String, Status)>), FolderError> {
    let written = write_all(run, plan, manifest);
    if written.is_err() {
        // On a full disk the room is needed for what comes after it.
        for table in schema::TABLES {
            let _ = fs::remove_file(run.join(format!("{}.tmp", table.file)));
        }
    }
    written
}

fn write_all(run: &Path, plan: &Plan, manifest: &Manifest) -> Result<(Recorded, Vec<(String, Status)>), FolderError> {
    let mut recorded = launches::read(run, &manifest.device.name)?;
    let prefixes = prefix::check(&mut recorded, plan);
    let roofs = roof::check(&mut recorded, plan, manifest);
    let placed = placement::check(&mut recorded, plan);
    let power = RunPower::read(run, plan, &manifest.device.name, &recorded);
    let context = Context { plan, manifest, power: &power };
    let npu = Npu::of(plan, manifest, &recorded);
    let mut samples = Writer::new(run, &schema::SAMPLES)?;
    let mut launch_table = Writer::new(run, &schema::LAUNCHES)?;
    let mut tokens = Writer::new(run, &schema::TOKENS)?;
    let mut operations = Writer::new(run, &schema::LAYERS)?;
    let mut telemetry = Writer::new(run, &schema::TELEMETRY)?;
    let mut soak_table = Writer::new(run, &schema::SOAK)?;
    let mut happened = Writer::new(run, &schema::SOAK_EVENTS)?;
    let mut windows = Writer::new(run, &schema::TELEMETRY_WINDOWS)?;
    // By cell, pass and launch: the same order whatever order they ran in, so that two runs can be compared line by line.
    let sessions = boot::sessions(&recorded, plan, manifest);
    let mut ordered: Vec<_> = recorded.launches.iter().zip(sessions).collect();
    ordered.sort_by_key(|((_, r), _)| (context.place(&r.cell), r.pass, r.launch));
    let mut metrics: Measured = BTreeMap::new();
    for ((dir, record), session) in ordered {
        let trace = context.telemetry(record, dir, &mut telemetry)?;
        let m = launch_metrics(
            &record.timed(),
            record.steps.iter().filter_map(|s| s.done.as_ref()),
            &trace,
            context.discarded(record),
            record.shared.as_ref(),
        );
        let mut launch = context.launch(record, &m);
        launch.maybe("boot_session", session).number("uptime_s", boot::uptime_s(record));
        npu.launch(record, &mut launch);
        launch_table.row(&launch)?;
        metrics.insert((record.cell.clone(), record.pass, record.launch), m);
        if record.pass == Pass::Soak {
            context.soak(record, dir, &mut soak_table, &mut happened, &mut windows)?;
        }
        for query in &record.parsed.queries {
            samples.row(&context.sample(record, query))?;
            for row in context.tokens(record, query) {
                tokens.row(&row)?;
            }
        }
        if is_composed(&record.parsed) {
            samples.row(&context.composed(record))?;
        }
        // Whatever a launch that failed, or that was measured, says of its operations is no profile.
        if placement::is_profile(record) {
            for row in context.layers(record) {
                operations.row(&row)?;
            }
        }
    }
    for table in [samples, launch_table, tokens, operations, telemetry, soak_table, happened, windows] {
        table.finish()?;
    }
    let mut parts = Writer::new(run, &schema::PHASES)?;
    for row in phases::rows(plan, manifest, &recorded) {
        parts.row(&row)?;
    }
    parts.finish()?;
    let mut cells = Writer::new(run, &schema::CELLS)?;
    let mut placement_table = Writer::new(run, &schema::PLACEMENT)?;
    let mut fallbacks = Writer::new(run, &schema::FALLBACKS)?;
    let mut support = Writer::new(run, &schema::SUPPORT)?;
    let mut ended = Vec::new();
    let mut statuses = Vec::new();
    let ranks = soak::ranks(plan, manifest, &recorded);
    for cell in &plan.cells {
        let (mut row, status) = summary::row(cell, plan, manifest, &recorded, (&metrics, &power));
        row.maybe("check_prefix", prefixes.get(&cell.id));
        roof::cell(&mut row, roofs.get(&cell.id));
        placement::cell(&mut row, placed.get(&cell.id));
        if status == Status::Ok {
            npu.cell(&cell.id, &recorded, &mut row);
        }
        soak::cell(&mut row, &cell.id, plan, &recorded, &ranks);
        cells.row(&row)?;
        statuses.push((cell.id.clone(), status));
        if let Some(placed) = placed.get(&cell.id) {
            placement::rows(placed, &context.of_cell(cell)).iter().try_for_each(|row| placement_table.row(row))?;
            placement::fallback_rows(placed, &context.of_cell(cell)).iter().try_for_each(|row| fallbacks.row(row))?;
        }
        ended.push(support::Ended::of(cell, status, &row, placed.get(&cell.id)));
    }
    support::rows(&ended, |cell| context.of_device(cell)).iter().try_for_each(|row| support.row(row))?;
    for table in [cells, placement_table, fallbacks, support] {
        table.finish()?;
    }
    Ok((recorded, statuses))
}

/// The metrics of every launch, by cell, pass and number.
pub type Measured = BTreeMap<(String, Pass, u32), LaunchMetrics>;

/// How every program is started so far: over a shell, not by Android's activity manager.
pub const SHELL: &str = "shell";

/// The columns of what a launch's program inherited (rule R6).
fn inherited(row: &mut Row, record: &Record) {
    let Some(done) = boot::first_step(record) else { return };
    let context = &done.launch_context;
    row.set("launch_context", SHELL).maybe("cpuset", context.cpuset.as_ref());
    row.maybe("cgroup", context.cgroup.as_ref().map(|lines| lines.lines().collect::<Vec<_>>().join(";")));
    row.maybe("nice", context.nice).maybe("oom_score_adj", context.oom_score_adj);
    row.maybe("affinity", context.affinity.as_ref()).maybe("selinux_domain", context.selinux.as_ref());
}

/// The columns of how a launch began.
fn begun(row: &mut Row, start: &Start) {
    row.set("settle", start.settle.as_str()).number("settle_s", start.settle_s).set("settle_lacks", start.lacks.join(";"));
    for (domain, column) in
        [(Domain::Skin, "start_skin_c"), (Domain::Npu, "start_npu_c"), (Domain::Cpu, "start_cpu_c"), (Domain::Battery, "start_battery_c")]
    {
        row.number(column, start.domains.get(&domain).copied());
    }
    row.number("start_battery_pct", start.battery_pct).maybe("start_charging", start.charging.map(u8::from));
    row.set("pins", &start.pins).maybe("start_screen", start.screen.map(|on| if on { "on" } else { "off" }));
    let users = start.contended_by.as_ref().map(|all| if all.is_empty() { "nobody".to_owned() } else { all.join(";") });
    row.maybe("contended_by", users);
}

struct Context<'a> {
    plan: &'a Plan,
    manifest: &'a Manifest,
    power: &'a RunPower,
}

impl Context<'_> {
    fn place(&self, cell: &str) -> usize {
        self.plan.cells.iter().position(|c| c.id == cell).unwrap_or(usize::MAX)
    }

    fn discarded(&self, record: &Record) -> u32 {
        warmup(&self.plan.measure, record.pass, &record.parsed).discarded
    }

    fn class(&self, record: &Record) -> Option<DeviceClass> {
        self.manifest.cells.get(&record.cell).map(|c| c.device_class)
    }

    fn base(&self, record: &Record) -> Row {
        let mut row = Row::default();
        row.set("format_version", FORMAT_VERSION).set("device", &self.manifest.device.name).set("cell", &record.cell);
        row
    }

    /// Where a cell was measured.
    fn of_device(&self, planned: &PlannedCell) -> Row {
        let mut row = Row::default();
        row.set("format_version", FORMAT_VERSION).set("run", &self.manifest.run).set("device", &self.manifest.device.name);
        row.maybe("device_class", self.manifest.cells.get(&planned.id).map(|c| c.device_class));
        row
    }

    /// The same, and which cell it is.
    fn of_cell(&self, planned: &PlannedCell) -> Row {
        let mut row = self.of_device(planned);
        row.set("cell", &planned.id).set("backend", &planned.cell.backend);
        row
    }

    fn sample(&self, record: &Record, query: &Query) -> Row {
        let kind = match record.shared.as_ref().map_or(0, |shared| shared.place) {
            _ if query.query >= self.discarded(record) => "warm_query",
            0 => "first_query",
            // Another cell had the first query of the process.
            _ => "discarded_query",
        };
        let metrics = query_metrics(&record.parsed, query);
        let mut row = self.figures(record, query.query, kind, &metrics);
        row.maybe("prompt_tokens", query.prompt_tokens).maybe("ttft_method", metrics.ttft_method);
        if metrics.aggregate_n.is_some() {
            row.maybe("aggregate_n", metrics.aggregate_n.filter(|n| *n > 1));
            row.set("prefill_method", RUNTIME_REPORTED).set("decode_method", RUNTIME_REPORTED);
        } else {
            row.set("generated_tokens", query.tokens.len());
        }
        row.maybe("reported_prompt_tokens", query.prompt_tokens_reported).maybe("reported_generated_tokens", query.generated_reported);
        row.maybe("finish", query.finish.as_ref());
        row
    }

    /// The one row of a launch that has times of graphs only: nothing was submitted, and no token came.
    fn composed(&self, record: &Record) -> Row {
        let planned = self.plan.cells.iter().find(|c| c.id == record.cell);
        let figures = planned.map(|p| launch_figures(&record.parsed, p.cell.workload, self.discarded(record))).unwrap_or_default();
        let mut row = self.figures(record, 0, "warm_query", &figures);
        row.maybe("aggregate_n", figures.composed.filter(|n| *n > 0));
        row.set("ttft_method", COMPOSED).set("prefill_method", COMPOSED).set("decode_method", COMPOSED);
        row
    }

    fn figures(&self, record: &Record, query: u32, kind: &str, m: &QueryMetrics) -> Row {
        let mut row = self.base(record);
        row.set("run", &self.manifest.run).set("pass", record.pass).set("launch", record.launch).set("query", query);
        if let Some(planned) = self.plan.cells.iter().find(|c| c.id == record.cell) {
            row.set("backend", &planned.cell.backend);
            row.set("model", &planned.cell.model.name).set("quant", planned.cell.quant);
        }
        row.maybe("device_class", self.class(record));
        row.set("query_kind", kind).set("segment", record.segment).set("status", record.status.as_str());
        row.number("ttft_ms", m.ttft_ms).number("prefill_tok_s", m.prefill_tok_s).number("decode_tok_s", m.decode_tok_s);
        row.number("tpot_ms", m.tpot_ms).number("e2e_ms", m.e2e_ms);
        for (i, column) in ["itl_p50_ms", "itl_p90_ms", "itl_p99_ms"].into_iter().enumerate() {
            row.number(column, m.itl_ms.map(|q| q[i]));
        }
        row.set("ttft_scope", scope(&record.parsed));
        row.number("reported_ttft_ms", m.reported_ttft_ms).number("reported_prefill_tok_s", m.reported_prefill_tok_s);
        row.number("reported_decode_tok_s", m.reported_decode_tok_s).number("tokens_per_step", m.tokens_per_step);
        let absent: Vec<String> = m.absent.iter().map(|(metric, why)| format!("{metric}={why}")).collect();
        row.set("absent", absent.join(";"));
        row
    }

    fn launch(&self, record: &Record, m: &LaunchMetrics) -> Row {
        let mut row = self.base(record);
        row.set("run", &self.manifest.run).set("pass", record.pass).set("launch", record.launch).set("block", record.block);
        row.set("segment", record.segment).set("status", record.status.as_str());
        row.maybe("failure_kind", record.failure.as_ref().map(|f| f.kind)).maybe("reason", record.failure.as_ref().map(|f| &f.message));
        let done = || record.steps.iter().filter_map(|s| s.done.as_ref());
        row.number("load_ms", m.load_ms).number("load_cold_ms", m.load_cold_ms).set("load_state", m.load_state.as_str());
        row.number("resident_share", m.resident_share).number("peak_mem_mb", m.memory.peak_mb);
        row.maybe("peak_mem_method", m.memory.method.as_ref()).number("vm_hwm_mb", m.vm_hwm_mb).number("cpu_s", m.cpu_s);
        for name in MEMORY_FIGURES {
            row.number(name, m.memory.get(name));
        }
        row.number("mem_growth_mb_per_h_lo", m.memory.growth.map(|g| g.lo)).number("mem_growth_mb_per_h_hi", m.memory.growth.map(|g| g.hi));
        let absent: Vec<String> = m.memory.absent.iter().map(|(name, why)| format!("{name}={why}")).collect();
        row.set("absent", absent.join(";"));
        // Of the process: in the row of the first of its cells alone, so that they can be added up.
        if record.shared.as_ref().is_none_or(|shared| shared.place == 0) {
            row.maybe("lmkd_kills", record.lmkd_kills).maybe("adb_round_trips", Some(record.round_trips).filter(|n| *n > 0));
        }
        row.number("wall_ms", done().next().map(|_| record.took().as_secs_f64() * 1e3));
        if let Some(shared) = &record.shared {
            row.set("process", &shared.process).set("process_place", shared.place);
        }
        row.maybe("broke", record.start.broke.as_ref());
        row.number("idle_ms", record.parsed.idle_ns.map(|(from, to)| to.saturating_sub(from) as f64 / 1e6));
        if !record.parsed.queries.is_empty() {
            let warmup = warmup(&self.plan.measure, record.pass, &record.parsed);
            row.set("discarded_queries", warmup.discarded).maybe("warmed_up", warmup.stable.map(u8::from));
        }
        if let Some(last) = done().next_back() {
            row.maybe("exit_code", last.ended.code).maybe("signal", last.ended.signal);
        }
        if let Some(checks) = &record.checks {
            row.set("check_count", checks.count).set("check_tokens", checks.tokens).set("check_unit", checks.unit);
            row.maybe("check_bos", checks.bos);
            row.number("token_agreement", checks.token_agreement).maybe("unit_found", checks.unit_found.as_ref());
        }
        inherited(&mut row, record);
        // Rule R17: boot time runs on while the machine sleeps, monotonic time does not.
        let slept = done().any(|d| (d.boottime_minus_monotonic_ns[1] - d.boottime_minus_monotonic_ns[0]).abs() > 100_000_000);
        row.maybe("suspended", slept.then_some(1)).maybe("runtime_version", record.parsed.notes.get("runtime_version"));
        begun(&mut row, &record.start);
        row.set("warnings", record.parsed.warnings.join(";"));
        self.power(record, &mut row);
        row
    }

    fn power(&self, record: &Record, row: &mut Row) {
        let Some(p) = self.power.of(record) else { return };
        for metric in METRICS_OF_POWER {
            row.number(metric, p.get(metric));
        }
        row.number("prefill_power_peak_w", p.prefill_w.map(|w| w.1)).number("decode_power_peak_w", p.decode_w.map(|w| w.1));
        row.number("energy_error_j", p.error_j).number("baseline_w", p.baseline_w).number("power_update_hz", p.update_hz);
        row.maybe("power_method", p.method.as_ref()).maybe("power_unit_inferred", p.unit.as_ref());
        row.maybe("baseline_state", p.baseline_state.map(BaselineState::as_str));
        // A clock of Unix time has ten digits before the point.
        row.maybe("meter_offset_s", p.clock.map(|c| format!("{:.3}", c.offset_s))).number("meter_error_s", p.clock.map(|c| c.error_s));
        row.number("meter_drift_ppm", p.clock.and_then(|c| c.drift_ppm));
        row.maybe("charge_state", p.charge_state.as_ref()).maybe("battery_pct_method", p.percent_method);
        row.also_absent(&p.absent);
    }

    fn tokens(&self, record: &Record, query: &Query) -> Vec<Row> {
        let Some(start) = record.steps.iter().find_map(|s| s.done.as_ref()).map(|d| d.start_ns) else { return Vec::new() };
        let mut before = None;
        let mut rows = Vec::new();
        for (i, token) in query.tokens.iter().enumerate() {
            let mut row = self.base(record);
            row.set("run", &self.manifest.run).set("pass", record.pass).set("launch", record.launch).set("query", query.query);
            row.set("i", i).maybe("id", token.id).number("t_ms", Some(token.t_ns.saturating_sub(start) as f64 / 1e6));
            row.number("itl_ms", before.map(|b: u64| token.t_ns.saturating_sub(b) as f64 / 1e6));
            before = Some(token.t_ns);
            rows.push(row);
        }
        rows
    }

    /// Windows and events of a soak, and what the agent kept of each of its windows.
    fn soak(&self, record: &Record, dir: &Path, table: &mut Writer, events: &mut Writer, windows: &mut Writer) -> Result<(), FolderError> {
        let base = || {
            let mut row = self.base(record);
            row.set("run", &self.manifest.run).maybe("device_class", self.class(record)).set("launch", record.launch);
            if let Some(planned) = self.plan.cells.iter().find(|c| c.id == record.cell) {
                row.set("backend", &planned.cell.backend);
            }
            row
        };
        if let Some(soak) = &record.soak {
            for (number, window) in soak.windows.iter().enumerate() {
                let mut row = base();
                soak::window(&mut row, number, window);
                table.row(&row)?;
            }
            for happening in &soak.happenings {
                let mut row = base();
                soak::happening(&mut row, happening);
                events.row(&row)?;
            }
        }
        let Some(start) = record.steps.iter().find_map(|s| s.done.as_ref()).map(|d| d.start_ns) else { return Ok(()) };
        let mut written = Ok(());
        soak::telemetry_windows(&dir.join("windows.csv"), start, |t_ms, [source, name, min, max, mean, n, unit]| {
            let mut row = self.base(record);
            row.number("t_ms", Some(t_ms)).set("pass", record.pass).set("launch", record.launch).set("source", source).set("name", name);
            row.number("min", min.parse().ok()).number("max", max.parse().ok()).number("mean", mean.parse().ok());
            row.maybe("n", n.parse::<u64>().ok()).set("unit", unit);
            if written.is_ok() {
                written = windows.row(&row);
            }
        });
        written
    }

    fn layers(&self, record: &Record) -> Vec<Row> {
        let Some(planned) = self.plan.cells.iter().find(|c| c.id == record.cell) else { return Vec::new() };
        layers::rows(&record.parsed.layers, planned.cell.workload, &self.of_cell(planned))
    }

    /// The agent's `t_ns,source,name,value,unit`, with the keys of the launch (of a process that cells shared each row is one cell's); also gives what of it is about memory.
    fn telemetry(&self, record: &Record, dir: &Path, table: &mut Writer) -> Result<Trace, FolderError> {
        let mut trace = Trace::default();
        let Some(start) = record.steps.iter().find_map(|s| s.done.as_ref()).map(|d| d.start_ns) else { return Ok(trace) };
        for path in record.telemetry_files(dir) {
            let Ok(mut reader) = csv::ReaderBuilder::new().flexible(true).from_path(&path) else { continue };
            for line in reader.records().filter_map(Result::ok) {
                let (Some(t), Some(value)) =
                    (line.get(0).and_then(|t| t.parse::<u64>().ok()), line.get(3).and_then(|v| v.parse::<f64>().ok()))
                else {
                    continue;
                };
                if record.shared.as_ref().is_some_and(|shared| !shared.holds(t)) {
                    continue;
                }
                trace.add(t, line.get(1).unwrap_or(""), line.get(2).unwrap_or(""), value);
                let mut row = self.base(record);
                row.number("t_ms", Some((t as f64 - start as f64) / 1e6)).set("pass", record.pass).set("launch", record.launch);
                row.set("source", line.get(1).unwrap_or("")).set("name", line.get(2).unwrap_or("")).number("value", Some(value));
                row.set("unit", line.get(4).unwrap_or(""));
                table.row(&row)?;
            }
        }
        Ok(trace)
    }
}

#[cfg(test)]
mod tests {
    use super::{Row, significant};
    use crate::stats::Summary;

    #[test]
    fn one_value_has_no_interval() {
        let columns = |values: &[f64]| {
            let mut row = Row::default();
            row.summary("ttft_ms", &Summary::of(values).unwrap());
            ["ttft_ms", "ttft_ms_lo", "ttft_ms_hi", "ttft_ms_coverage", "ttft_ms_n"].map(|c| row.0.get(c).cloned().unwrap_or_default())
        };
        assert_eq!(columns(&[5.0]), ["5", "", "", "", "1"]);
        assert_eq!(columns(&[5.0, 7.0, 6.0]), ["6", "5", "7", "0.75", "3"]);
    }

    #[test]
    fn six_digits_and_no_exponent() {
        for (value, text) in [
            (0.0, "0"),
            (123.456_789, "123.457"),
            (0.000_012_345_678, "0.0000123457"),
            (12_345_678.9, "12345679"),
            (-1.5, "-1.5"),
            (100.0, "100"),
        ] {
            assert_eq!(significant(value), text);
        }
    }
}
