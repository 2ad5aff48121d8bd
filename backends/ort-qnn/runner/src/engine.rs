//! The only part that speaks ONNX Runtime: environment, sessions, tensors. `ort` has been a release candidate since 2024, so
//! that nothing of it may show outside.

mod graph;
mod raw;
mod tensor;

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use bench_runner_protocol::{Event, Failure, Job, LoadLaps, Phase, Profile, Unit, check_chip, mapped_library, with_causes};
use ort::{environment::Environment, session::Session};

pub use graph::{Cache, Graph};

use crate::encoding::Meta;

const QNN: &str = "QNNExecutionProvider";
const CPU: &str = "CPUExecutionProvider";

/// Values of the provider's option `htp_performance_mode` (ONNX Runtime's documentation of the QNN execution provider).
const PERFORMANCE_MODES: [&str; 10] = [
    "burst",
    "balanced",
    "default",
    "high_performance",
    "high_power_saver",
    "low_balanced",
    "extreme_power_saver",
    "low_power_saver",
    "power_saver",
    "sustained_high_performance",
];

/// The two graphs of a model, ready to run.
pub struct Engine {
    /// Takes a chunk of the prompt.
    pub prefill: Graph,
    /// Takes one token.
    pub decode: Graph,
    /// What could be proved of where the graphs run.
    pub unit: Option<Unit>,
    /// One environment a process, ever; it must outlive the sessions.
    _environment: Environment,
}

/// What the job asks of both sessions.
struct Request<'a> {
    job: &'a Job,
    unit: Unit,
    allow_fallback: bool,
}

impl Engine {
    /// Loads library, plugin and both graphs; what it finds, and what it spends its time on, goes into `notes`.
    pub fn load(job: &Job, laps: &mut LoadLaps, notes: &mut Vec<Event>) -> Result<Self, Failure> {
        let request = Request::new(job)?;
        request.check_chip()?;
        notes.extend(laps.over(Phase::Read));
        let library = job.runtime("onnxruntime")?;
        let failed = |e: &dyn std::error::Error| Failure::runtime(format!("{library}: {}", with_causes(e)));
        let builder = ort::init_from(library).map_err(|e| match raw::linker_problem(library) {
            Some(problem) => Failure::runtime(format!("{library}: {problem}")),
            None => failed(&e),
        })?;
        let environment = builder.with_name("bench").with_telemetry(false).build().map_err(|e| failed(&e))?;
        notes.push(Event::note("engine", "graph"));
        if let Some(version) = raw::version(library) {
            notes.push(Event::note("runtime_version", version));
        }
        if request.unit != Unit::Cpu {
            let plugin = job.runtime("qnn_ep")?;
            environment.register_ep_library(QNN, plugin).map_err(|e| Failure::runtime(format!("{plugin}: {e}")))?;
        }
        notes.extend(laps.over(Phase::Library));
        let meta = match job.model.files.get("meta") {
            Some(path) => Meta::read(path.as_ref()).map_err(Failure::model)?,
            None => Meta::default(),
        };
        let mut providers = Vec::new();
        let mut open = |name: &str| {
            let session = request.open(&environment, name, notes)?;
            providers.push(note_providers(&session, name, notes));
            notes.extend(laps.over(Phase::Prepare));
            let graph = Graph::new(session, name, &job.model, &meta);
            notes.extend(laps.over(Phase::Allocate));
            graph
        };
        let (prefill, decode) = (open("prefill")?, open("decode")?);
        decode.check_kv_of(&prefill)?;
        if decode.ar != 1 {
            return Err(Failure::model(format!("graph decode takes {} tokens, not 1", decode.ar)));
        }
        let unit = proven_unit(&providers);
        Ok(Self { prefill, decode, unit, _environment: environment })
    }
}

impl<'a> Request<'a> {
    fn new(job: &'a Job) -> Result<Self, Failure> {
        let allow_fallback = match job.options.get("fallback").map(String::as_str) {
            None | Some("forbid") => false,
            Some("allow") => true,
            Some(other) => return Err(Failure::usage(format!("option fallback = {other:?}: forbid or allow"))),
        };
        if let Some(key) = job.options.keys().find(|k| *k != "fallback" && !k.starts_with("ep.") && !k.starts_with("session.")) {
            return Err(Failure::usage(format!("unknown option {key}: ep.*, session.* or fallback")));
        }
        let request = Self { job, unit: job.unit.unwrap_or(Unit::Npu), allow_fallback };
        if request.unit != Unit::Cpu {
            // The provider takes both in silence: a name of no mode as none, a missing backend as "no node for me".
            if let Some(mode) = job.perf_profile.as_deref().filter(|mode| !PERFORMANCE_MODES.contains(mode)) {
                return Err(Failure::usage(format!("perf_profile {mode:?}: one of {}", PERFORMANCE_MODES.join(", "))));
            }
            let backend = job.runtime("qnn_backend")?;
            if backend.contains('/') && !Path::new(backend).is_file() {
                return Err(Failure::runtime(format!("{backend}: no such file")));
            }
        }
        Ok(request)
    }

    /// On a PC the emulator runs context binaries of any Hexagon architecture; those of another one than the job's are refused here. They
    /// stand in the graphs themselves or beside them.
    fn check_chip(&self) -> Result<(), Failure> {
        let wanted = self.job.options.get("ep.htp_arch").and_then(|arch| arch.parse().ok());
        let Some(wanted) = wanted.filter(|_| self.unit == Unit::Npu && cfg!(target_arch = "x86_64")) else { return Ok(()) };
        let mut files: Vec<PathBuf> =
            ["prefill", "decode"].iter().filter_map(|g| self.job.model.files.get(*g)).map(PathBuf::from).collect();
        for folder in files.iter().filter_map(|f| f.parent()).map(Path::to_path_buf).collect::<BTreeSet<_>>() {
            let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { &folder };
            let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
            files.extend(entries.filter(|path| path.extension().is_some_and(|e| e == "bin")));
        }
        check_chip(files.iter().map(PathBuf::as_path), wanted)
    }

    /// Options of the execution provider: ours, then the job's, which may replace ours.
    fn provider_options(&self, graph: &str) -> Result<Vec<(String, String)>, Failure> {
        let mut options = vec![
            ("backend_path".to_owned(), self.job.runtime("qnn_backend")?.to_owned()),
            // Quantised inputs and outputs are ours to convert: the runner passes raw KV from run to run.
            ("offload_graph_io_quantization".to_owned(), "0".to_owned()),
        ];
        if let Some(mode) = &self.job.perf_profile {
            options.push(("htp_performance_mode".to_owned(), mode.clone()));
        }
        if self.job.profile == Profile::Layers {
            let path = format!("profile_{graph}.csv");
            // The provider appends to the file of an earlier run.
            let _ = fs::remove_file(&path);
            options.push(("profiling_level".to_owned(), "detailed".to_owned()));
            options.push(("profiling_file_path".to_owned(), path));
        }
        for (key, value) in &self.job.options {
            if let Some(key) = key.strip_prefix("ep.") {
                options.retain(|(k, _)| k != key);
                options.push((key.to_owned(), value.clone()));
            }
        }
        Ok(options)
    }

    fn open(&self, environment: &Environment, graph: &str, notes: &mut Vec<Event>) -> Result<Session, Failure> {
        let file = self.job.file(graph)?;
        let fail = |e: &dyn std::fmt::Display| Failure::model(format!("{file}: {e}"));
        let mut builder = Session::builder(environment).map_err(|e| fail(&e))?;
        if let Some(threads) = self.job.threads {
            builder = builder.with_intra_threads(threads as usize).map_err(|e| fail(&e))?;
        }
        let mut entries = vec![("session.record_ep_graph_assignment_info".to_owned(), "1".to_owned())];
        if self.unit != Unit::Cpu && !self.allow_fallback {
            entries.push(("session.disable_cpu_ep_fallback".to_owned(), "1".to_owned()));
        }
        for (key, value) in self.job.options.iter().filter(|(key, _)| key.starts_with("session.")) {
            entries.push((key.clone(), value.clone()));
        }
        for (key, value) in &entries {
            builder = builder.with_config_entry(key, value).map_err(|e| fail(&e))?;
        }
        let name = if self.unit == Unit::Cpu { CPU } else { QNN };
        let options = if self.unit == Unit::Cpu { Vec::new() } else { self.provider_options(graph)? };
        // Explicit also for the CPU: the default policy would take any registered plugin's device.
        let Some(device) = environment.devices().find(|d| d.ep().is_ok_and(|ep| ep == name)) else {
            return Err(Failure::runtime(format!("{name} shows no device")));
        };
        if graph == "prefill"
            && let Some(version) = raw::provider_version(&device)
        {
            notes.push(Event::note("provider_version", format!("{name} {version}")));
        }
        let shown: Vec<_> = entries.iter().chain(&options).map(|(k, v)| format!("{k}={v}")).collect();
        notes.push(Event::note("effective_options", format!("{graph}: {}", shown.join(" "))));
        let prefixed: Vec<_> = options.into_iter().map(|(key, value)| (format!("{name}.{key}"), value)).collect();
        builder.with_devices([device], Some(&prefixed)).map_err(|e| fail(&e))?.commit_from_file(file).map_err(|e| fail(&e))
    }
}

/// Notes how many nodes each provider got; the names of the providers, or `None` if the session does not tell.
fn note_providers(session: &Session, graph: &str, notes: &mut Vec<Event>) -> Option<Vec<String>> {
    let by_provider = raw::nodes_by_provider(session)?;
    let counts: Vec<_> = by_provider.iter().map(|(name, nodes)| format!("{name}={}", nodes.len())).collect();
    notes.push(Event::note("providers", format!("{graph}: {}", counts.join(" "))));
    if by_provider.contains_key(QNN)
        && let Some(fallen) = by_provider.get(CPU)
    {
        let some: Vec<_> = fallen.iter().take(20).map(String::as_str).collect();
        notes.push(Event::note("fallback_nodes", format!("{graph}: {} nodes: {}", fallen.len(), some.join(", "))));
    }
    Some(by_provider.into_keys().collect())
}

/// The unit of all nodes of all graphs, if they are on one: a provider's nodes are where the library that it has loaded is.
fn proven_unit(providers: &[Option<Vec<String>>]) -> Option<Unit> {
    let mut all = providers.iter().map(|p| p.as_ref());
    let first = all.next()??;
    if first.len() != 1 || !all.all(|p| p == Some(first)) {
        return None;
    }
    match first[0].as_str() {
        CPU => Some(Unit::Cpu),
        QNN => [("libQnnHtp.so", Unit::Npu), ("libQnnGpu.so", Unit::Gpu), ("libQnnCpu.so", Unit::Cpu)]
            .into_iter()
            .find_map(|(library, unit)| mapped_library(library).then_some(unit)),
        _ => None,
    }
}
