//! MNN on a device that is another machine: its own llm_bench, or llm_demo where `variant` names it. Neither gives a time for each token, and
//! both lie about what ran and how much: their words are read with that in mind (`reader/`).

use std::sync::LazyLock;

use bench_backend_api::{
    Availability, Axis, Captured, Cell, Check, Checks, DeviceFacts, Expected, Failure, FailureKind, Installed, Launch, Layer, Need,
    ParseError, Parsed, Pass, Paths, Quant, Query, Source, StagedFile, Step, Unit, check_bos, check_reported, note,
    tool::{self, Told, Tool, Words, has_hexagon},
};
use serde_json::{Value, json};

use super::backend_type;
use crate::reader::MnnReader;

static BENCH: LazyLock<Tool> =
    LazyLock::new(|| Tool::parse(include_str!("../../device/llm_bench.toml")).expect("the description is checked by a test"));
static DEMO: LazyLock<Tool> =
    LazyLock::new(|| Tool::parse(include_str!("../../device/llm_demo.toml")).expect("the description is checked by a test"));

const BENCH_NAME: &str = "llm_bench";
const DEMO_NAME: &str = "llm_demo";
/// MNN's own programs, which `variant` can ask for.
pub const PROGRAMS: [&str; 2] = [BENCH_NAME, DEMO_NAME];
const RESULT: &str = "result.json";
/// The text that llm_demo is asked with.
const PROMPT: &str = "prompt.txt";
/// A model that was compiled for the NPU on the PC: it runs as a plugin of the CPU's backend.
const QNN_CONFIG: &str = "config_qnn.json";
/// MNN's own default; the PC's runner has its own reasons for another.
const THREADS: u32 = 4;
/// What `thread_num` means to OpenCL: buffers, and the quick way of tuning (formats/mnn.md).
const OPENCL_MODE: u32 = 68;

/// What a launch runs.
struct Run<'a> {
    tool: &'static Tool,
    name: &'static str,
    /// Its configuration, a file of the artifact.
    config: &'a str,
    /// The group of libraries that the unit needs.
    unit: Option<&'static str>,
    backend: &'static str,
    threads: u32,
}

impl<'a> Run<'a> {
    fn of(launch: &Launch<'a>) -> Result<Self, Failure> {
        let usage = |message: &str| Failure::new(FailureKind::Usage, message);
        let cell = launch.cell;
        let named = |name: &str| launch.artifact.files.iter().find(|f| f.rsplit('/').next() == Some(name)).map(String::as_str);
        let (tool, name): (&'static Tool, _) = match cell.asked(Axis::Variant) {
            Some(DEMO_NAME) => (&DEMO, DEMO_NAME),
            _ => (&BENCH, BENCH_NAME),
        };
        let offline = named(QNN_CONFIG).filter(|_| cell.unit == Unit::Npu);
        let config =
            offline.or(named("config.json")).ok_or_else(|| usage("the artifact has no config.json: name the files of MNN's folder"))?;
        if name == DEMO_NAME && named(PROMPT).is_none() && question(launch).is_none() {
            let message = "variant = llm_demo: its question is one line of text, and a chat template has several: name the model's tokenizer, with \
                           template = \"raw\", or add a prompt.txt of the asked length to the artifact's files";
            return Err(usage(message));
        }
        let unit = match (cell.unit, offline) {
            (Unit::Npu, Some(_)) => Some("qnn"),
            (Unit::Npu, None) => Some("hexagon"),
            (Unit::Gpu, _) => Some("gpu"),
            _ => None,
        };
        let backend = if offline.is_some() { "cpu" } else { backend_type(cell.unit) };
        let usual = if cell.unit == Unit::Gpu { OPENCL_MODE } else { THREADS };
        let threads = cell.asked(Axis::Threads).and_then(|t| t.parse().ok()).unwrap_or(usual);
        Ok(Self { tool, name, config, unit, backend, threads })
    }
}

/// The text of the first prompt. Each line would be a prompt of its own, and one that begins with `#` is skipped.
fn question<'a>(launch: &Launch<'a>) -> Option<&'a String> {
    launch.texts.first().filter(|text| !text.is_empty() && !text.contains(['\n', '\r']) && !text.starts_with('#'))
}

/// llm_bench: 0 normal, 1 high, 2 low. A float model is computed in float; the quantised ones as MNN's own tools run them.
fn precision(quant: Quant) -> (&'static str, &'static str) {
    if quant == Quant::Fp32 { ("1", "high") } else { ("2", "low") }
}

/// Queries behind the mean: the tool makes one more and throws it away, as a launch does.
fn repetitions(launch: &Launch<'_>) -> usize {
    launch.prompts.len().saturating_sub(1).max(1)
}

pub fn needs(device: &DeviceFacts) -> Vec<Need> {
    BENCH.all_needs(device).into_iter().chain([DEMO.program(device)]).collect()
}

pub fn probe(device: &DeviceFacts, installed: &Installed) -> Availability {
    let (bench, demo) = (BENCH.probe(device, installed), DEMO.probe(device, installed));
    match (bench, demo) {
        (Err(missing), Err(_)) => missing,
        _ => Availability::Ready { version: tool::version_of("MNN", installed, &BENCH.library("libMNN.so", device)) },
    }
}

/// The artifact as it is, but for the configuration that llm_demo reads: a private copy (rule R4).
pub fn stage(launch: &Launch<'_>) -> Result<Vec<StagedFile>, Failure> {
    let (run, device) = (Run::of(launch)?, launch.device);
    let cell = launch.cell;
    let mut files = tool::staged(&[run.tool], device, launch.installed)?;
    if let Some(group) = run.unit {
        if cell.unit == Unit::Npu && !has_hexagon(device) {
            return Err(Failure::new(FailureKind::Usage, format!("unit = npu: MNN has no NPU on {}", device.arch)));
        }
        files.extend(run.tool.stage_extra(group, &format!("unit = {}", cell.unit), device, launch.installed)?);
    }
    let copy = if run.name == DEMO_NAME { Some(demo_config(launch, &run)?) } else { None };
    let wanted = |f: &&String| f.as_str() != "make.log" && !(copy.is_some() && f.as_str() == run.config);
    files.extend(launch.artifact.files.iter().filter(wanted).map(|f| StagedFile { name: f.clone(), source: Source::Artifact(f.clone()) }));
    let own_prompt = launch.artifact.files.iter().any(|f| f.rsplit('/').next() == Some(PROMPT));
    let text = question(launch).filter(|_| copy.is_some() && !own_prompt);
    files.extend(text.map(|text| StagedFile { name: PROMPT.to_owned(), source: Source::Bytes(text.clone().into_bytes()) }));
    files.extend(copy.map(|bytes| StagedFile { name: run.config.to_owned(), source: Source::Bytes(bytes) }));
    let mut told = Told { tool: run.name.to_owned(), ..Told::default() };
    let scope = if run.name == DEMO_NAME { "text" } else { "ids" };
    let place = if run.name == DEMO_NAME { 0 } else { repetitions(launch) };
    for (key, value) in [
        ("backend_type", run.backend.to_owned()),
        ("precision", precision(cell.quant).1.to_owned()),
        ("threads", run.threads.to_string()),
        ("repetitions", repetitions(launch).to_string()),
        ("query", place.to_string()),
        ("offline_qnn", (run.unit == Some("qnn")).to_string()),
        ("ttft_scope", scope.to_owned()),
        // What is reported is the speed of the prefill: the time of the first token follows from it.
        ("ttft_method", "derived".to_owned()),
    ] {
        told.notes.insert(key.to_owned(), value);
    }
    // llm_bench reads the model's own configuration; llm_demo a copy of it.
    let own = launch.artifact.meta.get("config");
    let word = |key: &str| own.and_then(|config| config.get(key)).and_then(Value::as_str);
    let greedy = (run.name == DEMO_NAME).then(|| "greedy".to_owned());
    let sampling = greedy.or_else(|| word("sampler_type").map(|kind| format!("{kind}, as config.json says")));
    let guesses = own.map(|_| word("speculative_type").unwrap_or("false"));
    let prompt = match (run.name, own_prompt) {
        (DEMO_NAME, false) => None,
        (DEMO_NAME, true) => Some("the artifact's prompt.txt"),
        _ => Some("the tool's own, the same for every query"),
    };
    for (key, value) in
        [(note::SAMPLING, sampling), (note::SPECULATIVE, guesses.map(str::to_owned)), (note::OWN_PROMPT, prompt.map(str::to_owned))]
    {
        told.notes.extend(value.map(|value| (key.to_owned(), value)));
    }
    files.push(told.staged());
    Ok(files)
}

fn demo_config(launch: &Launch<'_>, run: &Run<'_>) -> Result<Vec<u8>, Failure> {
    let own = launch.artifact.meta.get("config").and_then(Value::as_object).ok_or_else(|| {
        let message = "variant = llm_demo: name MNN's config.json in the artifact's `config`, so that its copy can ask for the unit";
        Failure::new(FailureKind::Usage, message)
    })?;
    let mut config = own.clone();
    // A folder of this machine for temporary files is none of the device's.
    config.remove("tmp_path");
    let mut config = Value::Object(config);
    tool::localise(&mut config, &launch.artifact.files)?;
    for (key, value) in [
        ("backend_type", json!(run.backend)),
        ("thread_num", json!(run.threads)),
        ("precision", json!(precision(launch.cell.quant).1)),
        ("sampler_type", json!("greedy")),
        ("reuse_kv", json!(false)),
        // The prompt is whole, with the chat template where one was asked for (rule R4): a second one around it would be other tokens.
        ("use_template", json!(false)),
    ] {
        config[key] = value;
    }
    Ok(serde_json::to_vec_pretty(&config).unwrap_or_default())
}

pub fn steps(launch: &Launch<'_>, paths: &Paths) -> Vec<Step> {
    let Ok(run) = Run::of(launch) else { return Vec::new() };
    let workload = launch.cell.workload;
    let prompt_file = launch.artifact.files.iter().find(|f| f.rsplit('/').next() == Some(PROMPT));
    let mut words = Words::from([
        ("config", format!("./{}", run.config)),
        ("backend", run.backend.to_owned()),
        ("precision", precision(launch.cell.quant).0.to_owned()),
        ("threads", run.threads.to_string()),
        ("prompt", workload.prompt_tokens().to_string()),
        ("generate", workload.gen_tokens().to_string()),
        ("repetitions", repetitions(launch).to_string()),
        ("json", RESULT.to_owned()),
    ]);
    // An operator of a GPU or NPU ends after the tool's clock was read.
    if launch.pass == Pass::Profile && launch.cell.unit == Unit::Cpu {
        words.insert("profile", "--profile".to_owned());
    }
    words.insert("prompt_file", prompt_file.map_or_else(|| format!("./{PROMPT}"), |f| format!("./{f}")));
    vec![run.tool.step("query", launch.device, paths, &words, vec![RESULT.to_owned(), Told::FILE.to_owned()])]
}

/// What the tool left. Its exit status says nothing: llm_demo returns 0 where it loaded nothing.
pub fn read(captured: &Captured, told: &Told) -> Result<Parsed, ParseError> {
    let mut parsed = Parsed::default();
    let Some(reading) = tool::read(&MnnReader, captured, &[RESULT, "stdout.txt", "stderr.txt"])? else {
        parsed.failure = Some(Failure::new(FailureKind::Runtime, format!("{} printed nothing", told.tool)));
        return Ok(parsed);
    };
    parsed.warnings = reading.warnings;
    parsed.failure = reading.failure;
    // Asked for on the CPU only.
    parsed.layers = reading.layers.into_iter().map(|layer| Layer { unit: Some("cpu".to_owned()), ..layer }).collect();
    let number = |key: &str| told.notes.get(key).and_then(|n| n.parse::<u32>().ok());
    let n = if told.tool == DEMO_NAME { 1 } else { number("repetitions").unwrap_or(1) };
    if let Some(read) =
        reading.measurements.iter().find(|m| m.metrics.contains_key("decode_tok_s") || m.metrics.contains_key("prefill_tok_s"))
    {
        parsed.queries.push(Query::reported(number("query").unwrap_or(1), n, read));
        for (key, note) in [("backend", "backend_reported"), ("load_ms", "reported_load_ms")] {
            let value = read.reported.get(key).or(read.metrics.get(key));
            if let Some(value) = value {
                parsed.notes.insert(note.to_owned(), value.as_str().map_or_else(|| value.to_string(), str::to_owned));
            }
        }
    } else if parsed.failure.is_none() {
        parsed.failure = Some(Failure::new(FailureKind::Runtime, format!("{} printed no speed", told.tool)));
    }
    Ok(parsed)
}

pub fn verify(cell: &Cell, expected: &Expected, parsed: &Parsed, captured: &Captured, told: &Told) -> Checks {
    let (mut count, mut reasons) = check_reported(expected, 1, parsed);
    if count == Check::Confirmed && told.tool == BENCH_NAME {
        count = Check::NotCheckable;
        reasons.push("llm_bench prints the lengths that it was asked for, whether or not it came to them".to_owned());
    }
    reasons.push(format!("{} prints no token ids", told.tool));
    let bos = check_bos(expected, parsed, &mut reasons);
    let (unit, unit_found, why) = unit(cell, parsed, captured, told);
    reasons.extend(why);
    Checks { count, tokens: Check::NotCheckable, unit, bos, token_agreement: None, unit_found, reasons }
}

/// Which unit ran. The tool's own word is not enough: it stays what was asked when MNN fell back to the CPU, and an offline QNN model is `CPU`.
/// So the libraries of the unit have to be in the process.
fn unit(cell: &Cell, parsed: &Parsed, captured: &Captured, told: &Told) -> (Check, Option<String>, Option<String>) {
    let offline = told.notes.get("offline_qnn").is_some_and(|v| v == "true");
    let label = parsed.notes.get("backend_reported").map(|b| b.to_ascii_lowercase());
    let found = match label.as_deref() {
        Some("cpu") if !offline => Some("cpu"),
        Some("opencl") => Some("gpu"),
        Some("hexagon") => Some("npu"),
        _ => None,
    };
    if let Some(found) = found.filter(|f| *f != cell.unit.as_str()) {
        return (Check::Contradicted, Some(found.to_owned()), Some(format!("{} asked, llm_bench ran on {found}", cell.unit)));
    }
    let libraries: &[&str] = match (cell.unit, offline) {
        (Unit::Npu, true) => &["libQnnHtp"],
        (Unit::Npu, false) => &["libMNN_htpops"],
        (Unit::Gpu, _) => &["libOpenCL", "libMNN_CL"],
        _ => &["libMNN"],
    };
    let mapped = captured.evidence.mapped.iter().any(|l| libraries.iter().any(|library| l.contains(library)));
    match (mapped, cell.unit) {
        (true, Unit::Cpu) if found.is_none() => (Check::NotCheckable, None, Some("llm_demo does not say which unit it used".to_owned())),
        (true, _) => (Check::Confirmed, Some(cell.unit.to_string()), None),
        (false, _) => (Check::NotCheckable, None, Some(format!("{} was not seen in the process", libraries.join(" or ")))),
    }
}
