//! The text of qnn-profile-viewer, of its `Execute Stat N` readers, and of loggers that print the same events.

use bench_backend_api::{ReadMeasurement, Reading, npu::merged, text::plausible_rate};

use super::events::{Entry, Heading, Section, detail, entry, heading, is_op};
use super::npu;
use super::ops::{Op, is_total, layers, report, time, with_total, with_unit};

/// `Layer::method` of a profile with details, and of one with linting.
const METHODS: [&str; 2] = ["qnn-detailed", "qnn-linting"];

/// The entries of one execution, or of a mean over executions.
#[derive(Debug, Default)]
struct Run {
    entries: Vec<Entry>,
    /// Operations with the method that they come from.
    ops: Vec<(&'static str, Vec<Op>)>,
}
impl Run {
    fn get(&self, key: &str) -> Option<(f64, &str)> {
        self.entries.iter().find(|entry| entry.key.eq_ignore_ascii_case(key)).and_then(|entry| Some((entry.value?, entry.unit.as_str())))
    }

    /// Name, value and unit of what is told of the whole.
    fn events(&self) -> impl Iterator<Item = (&str, f64, &str)> {
        self.entries.iter().filter_map(|entry| Some((entry.key.as_str(), entry.value?, entry.unit.as_str())))
    }

    fn push(&mut self, entry: Entry) {
        if is_op(&entry) {
            if self.ops.is_empty() {
                self.ops.push(("qnn-detailed", Vec::new()));
            }
            if let Some((_, list)) = self.ops.last_mut() {
                list.push(Op::new(&entry.key, entry.value, &entry.unit));
            }
            return;
        }
        if let Some((name, value)) = detail(&entry) {
            if let Some(op) = self.ops.last_mut().and_then(|(_, list)| list.last_mut()) {
                op.details.insert(name.to_owned(), value);
            }
            return;
        }
        if let Some(method) = METHODS.into_iter().find(|method| is_total(&entry.key, method)) {
            self.ops.push((method, Vec::new()));
        }
        self.entries.push(entry);
    }
}

/// One graph's executions.
#[derive(Debug, Default)]
struct Graph {
    name: String,
    average: Run,
    min: Run,
    max: Run,
    runs: Vec<Run>,
}

/// Everything read from the text.
#[derive(Debug, Default)]
struct Profile {
    init: Vec<Entry>,
    other: Vec<(&'static str, Entry)>,
    graphs: Vec<Graph>,
    ips: Option<(f64, String)>,
    warnings: Vec<String>,
    recognised: bool,
    npu: bool,
}
impl Profile {
    fn graph(&mut self, name: Option<&str>) -> &mut Graph {
        let name = name.unwrap_or("");
        let place = self.graphs.iter().position(|graph| graph.name == name).unwrap_or_else(|| {
            self.graphs.push(Graph { name: name.to_owned(), ..Graph::default() });
            self.graphs.len() - 1
        });
        &mut self.graphs[place]
    }

    fn read(text: &str) -> Self {
        let mut profile = Self::default();
        let mut section = Section::None;
        let mut graph: Option<String> = None;
        let mut next_run = true;
        for (index, line) in text.lines().enumerate() {
            match heading(line) {
                Some(Heading::Section(new)) => {
                    (section, graph, next_run) = (new, None, true);
                    profile.recognised |= new != Section::Other;
                    continue;
                }
                Some(Heading::Graph(name)) => {
                    (graph, next_run) = (Some(name), true);
                    continue;
                }
                Some(Heading::Title) => {
                    (section, graph) = (Section::None, None);
                    profile.recognised = true;
                    continue;
                }
                Some(Heading::Nothing) => continue,
                None => {}
            }
            let bare = line.trim().trim_end_matches(':').to_ascii_lowercase();
            if bare.strip_prefix("execute stat ").is_some_and(|number| number.trim().bytes().all(|byte| byte.is_ascii_digit())) {
                (section, next_run) = (Section::Runs, true);
                profile.recognised = true;
                continue;
            }
            let entry = match entry(line) {
                Some(Ok(entry)) => entry,
                Some(Err(warning)) => {
                    profile.warnings.push(format!("line {}: {warning}", index + 1));
                    continue;
                }
                None => continue,
            };
            profile.npu |= entry.key.contains("HVX") || entry.key.contains("ccelerator");
            profile.place(entry, section, graph.as_deref(), &mut next_run);
        }
        profile
    }

    fn place(&mut self, entry: Entry, section: Section, graph: Option<&str>, next_run: &mut bool) {
        let lower = entry.key.to_ascii_lowercase();
        if lower.starts_with("netrun ips") {
            self.recognised = true;
            self.ips = entry.value.map(|value| (value, entry.unit));
            return;
        }
        let executing = lower.contains("(execute")
            || lower.contains("opid_")
            || lower.contains("hvx")
            || lower.contains("vtcm acquire")
            || lower.contains("times yield");
        match section {
            Section::Init => self.init.push(entry),
            Section::Compose => self.other.push(("Compose Graphs", entry)),
            Section::Finalize => self.other.push(("Finalize", entry)),
            Section::DeInit => self.other.push(("De-Init", entry)),
            Section::Other | Section::Overall => {}
            Section::Average => self.graph(graph).average.push(entry),
            Section::Min => self.graph(graph).min.push(entry),
            Section::Max => self.graph(graph).max.push(entry),
            Section::None if lower.contains("(load binary)") || lower.contains("(init)") || lower.contains("(finalize)") => {
                self.recognised = true;
                self.other.push(("", entry));
            }
            Section::None if !executing => {}
            Section::None | Section::Runs => {
                self.recognised = true;
                let runs = &mut self.graph(graph).runs;
                let again = !is_op(&entry) && runs.last().is_some_and(|run| run.get(&entry.key).is_some());
                if std::mem::take(next_run) || again || runs.is_empty() {
                    runs.push(Run::default());
                }
                if let Some(run) = runs.last_mut() {
                    run.push(entry);
                }
            }
        }
    }
}

const SOURCES: [&str; 5] =
    ["NetRun", "QNN (execute) time", "RPC (execute) time", "QNN accelerator (execute) time", "Accelerator (execute) time"];

/// Reads the text; `None` when it has none of the viewer's headings and events.
pub fn reading(text: &str) -> Option<Reading> {
    let profile = Profile::read(text);
    if !profile.recognised {
        return None;
    }
    let mut reading = Reading { warnings: profile.warnings.clone(), ..Reading::default() };
    for graph in &profile.graphs {
        let name = if graph.name.is_empty() { "inference" } else { &graph.name };
        let mut measurement = ReadMeasurement::new(name);
        figures(&mut measurement, graph, &mut reading.warnings);
        if !measurement.metrics.is_empty() || !measurement.reported.is_empty() {
            reading.measurements.push(measurement);
        }
        let averaged = !graph.average.entries.is_empty();
        let told = if averaged { npu::of_mean(graph.average.events()) } else { npu::of_executions(graph.runs.iter().map(Run::events)) };
        reading.npu = merged(reading.npu.take(), told.as_ref());
        graph_layers(graph, profile.npu.then_some("npu"), &mut reading);
    }
    whole(&profile, &mut reading);
    if !reading.measurements.iter().any(|measurement| measurement.metrics.contains_key("latency_ms")) {
        reading.warnings.push("the profile holds no time of an execution".to_owned());
    }
    Some(reading)
}

/// Figures of one graph: the mean of the Average section, else of the single runs.
fn figures(measurement: &mut ReadMeasurement, graph: &Graph, warnings: &mut Vec<String>) {
    let mut keep = |result: Result<f64, String>| result.map_err(|warning| warnings.push(warning)).ok();
    let averaged = SOURCES.iter().find_map(|&key| Some((key, vec![graph.average.get(key)?])));
    let single = || {
        SOURCES.iter().find_map(|&key| {
            let values: Vec<(f64, &str)> = graph.runs.iter().filter_map(|run| run.get(key)).collect();
            (!values.is_empty()).then_some((key, values))
        })
    };
    let Some((source, values)) = averaged.or_else(single) else {
        report_entries(measurement, graph);
        return;
    };
    let times: Vec<f64> = values.into_iter().filter_map(|(value, unit)| keep(time(source, value, unit))).collect();
    super::ops::add_latencies(measurement, &times);
    if let Some(least) = graph.min.get(source).and_then(|(value, unit)| keep(time(source, value, unit))) {
        measurement.metric("latency_min_ms", least);
    }
    if let Some((value, unit)) = graph.max.get(source) {
        report(measurement, &format!("Max {source} ({unit})"), value);
    }
    if source != "NetRun" {
        warnings.push(format!("the latency is `{source}`: this output has no NetRun time"));
    }
    report_entries(measurement, graph);
}

fn report_entries(measurement: &mut ReadMeasurement, graph: &Graph) {
    let runs: Vec<&Run> = if graph.average.entries.is_empty() { graph.runs.iter().collect() } else { vec![&graph.average] };
    for entry in runs.iter().flat_map(|run| &run.entries) {
        let key = with_unit(&entry.key, &entry.unit);
        let values: Vec<f64> = runs.iter().filter_map(|run| run.get(&entry.key)).map(|(value, _)| value).collect();
        if !values.is_empty() {
            report(measurement, &key, values.iter().sum::<f64>() / values.len() as f64);
        }
    }
}

fn graph_layers(graph: &Graph, unit: Option<&str>, reading: &mut Reading) {
    let runs: Vec<&Run> =
        if graph.average.ops.iter().any(|(_, ops)| !ops.is_empty()) { vec![&graph.average] } else { graph.runs.iter().collect() };
    for method in METHODS {
        let lists: Vec<&[Op]> = runs
            .iter()
            .flat_map(|run| &run.ops)
            .filter(|(of, ops)| *of == method && !ops.is_empty())
            .map(|(_, ops)| ops.as_slice())
            .collect();
        let same =
            lists.windows(2).all(|pair| pair[0].len() == pair[1].len() && pair[0].iter().zip(pair[1]).all(|(a, b)| a.name == b.name));
        if same {
            let mut rows = layers(&lists, &graph.name, unit, method);
            let total = |run: &&Run| run.entries.iter().find(|entry| is_total(&entry.key, method))?.value;
            with_total(&mut rows, runs.iter().map(total));
            if !graph.average.ops.is_empty() {
                // The Average section does not say of how many executions.
                for layer in &mut rows {
                    layer.count = None;
                }
            }
            reading.layers.extend(rows);
        } else {
            reading.warnings.push("the executions have different operations: the operations of the first one are given".to_owned());
            reading.layers.extend(layers(&lists[..1], &graph.name, unit, method));
        }
    }
}

/// What belongs to the run and not to one graph: loading, and the throughput of everything.
fn whole(profile: &Profile, reading: &mut Reading) {
    let mut load = None;
    if let Some(entry) = profile.init.iter().find(|entry| entry.key.eq_ignore_ascii_case("NetRun")) {
        load = entry.value.map(|value| time("NetRun (init)", value, &entry.unit));
    } else {
        // Without NetRun's own time: what QNN took to load or to prepare.
        let ready = |entry: &&Entry| {
            let lower = entry.key.to_ascii_lowercase();
            ["qnn (load binary)", "qnn (init)", "qnn (finalize)"].iter().any(|start| lower.starts_with(start))
        };
        let times: Vec<(f64, &str)> = profile
            .init
            .iter()
            .chain(profile.other.iter().map(|(_, entry)| entry))
            .filter(ready)
            .filter_map(|entry| Some((entry.value?, entry.unit.as_str())))
            .collect();
        if !times.is_empty() {
            load = Some(times.into_iter().map(|(value, unit)| time("QNN load", value, unit)).sum());
        }
    }
    let load = load.and_then(|load| load.map_err(|warning| reading.warnings.push(warning)).ok());
    let ips = profile.ips.as_ref().and_then(|(value, unit)| {
        let good = plausible_rate(*value) && unit.starts_with("inf/");
        if !good {
            reading.warnings.push(format!("NetRun IPS: {value} {unit} can not be a throughput, the value is left out"));
        }
        good.then_some(*value)
    });
    let named: Vec<(String, f64)> = profile
        .init
        .iter()
        .map(|entry| ("Init", entry))
        .chain(profile.other.iter().map(|(section, entry)| (*section, entry)))
        .filter_map(|(section, entry)| {
            let name = format!("{section} {}", with_unit(&entry.key, &entry.unit));
            Some((name.trim_start().to_owned(), entry.value?))
        })
        .collect();
    if load.is_none() && ips.is_none() && named.is_empty() {
        return;
    }
    // With several graphs the throughput is nobody's alone.
    if reading.measurements.is_empty() || (ips.is_some() && reading.measurements.len() > 1) {
        reading.measurements.push(ReadMeasurement::new("inference"));
    }
    let last = reading.measurements.len() - 1;
    if let Some(ips) = ips {
        reading.measurements[last].metric("throughput_inf_s", ips);
    }
    let first = &mut reading.measurements[0];
    if let Some(load) = load {
        first.metric("load_ms", load);
    }
    for (key, value) in &named {
        report(first, key, *value);
    }
}
