//! onnxruntime-genai as a backend: model_benchmark of the user's own build, on a device that is another machine. It reports the mean of its
//! queries; which processor runs the model stands in the model's own `genai_config.json`.

use std::sync::LazyLock;

use bench_backend_api::{
    Availability, Axis, AxisFit, Backend, Captured, Cell, Check, Checks, Description, DeviceClass, DeviceFacts, Ended, Expected, Failure,
    FailureKind, Hint, Installed, Launch, Need, ParseError, Parsed, Paths, Query, Recipe, Source, StagedFile, Step, Unit, check_bos,
    check_reported,
    knowledge::Table,
    note,
    tool::{self, Told, Tool, Words, has_hexagon},
};
use bench_backend_qnn::context;

use crate::reader::OrtGenaiReader;

/// ONNX Runtime's own loop over a language model.
#[derive(Debug, Clone, Copy)]
pub struct OrtGenai;

static BENCHMARK: LazyLock<Tool> =
    LazyLock::new(|| Tool::parse(include_str!("../device/model_benchmark.toml")).expect("the description is checked by a test"));

const NAME: &str = "model_benchmark";
/// The file that makes a folder a model of onnxruntime-genai.
const CONFIG: &str = "genai_config.json";

/// Queries behind the mean: one more is made first and thrown away (`-w 1`), as a launch does.
fn repetitions(launch: &Launch<'_>) -> usize {
    launch.prompts.len().saturating_sub(1).max(1)
}

/// The folder of the model in the work folder.
fn model_folder(launch: &Launch<'_>) -> Result<String, Failure> {
    let config = launch.artifact.files.iter().find(|f| f.rsplit('/').next() == Some(CONFIG));
    let config = config.ok_or_else(|| {
        Failure::new(FailureKind::Usage, format!("the artifact has no {CONFIG}: name the files of a folder of onnxruntime-genai"))
    })?;
    Ok(config.rsplit_once('/').map_or_else(|| ".".to_owned(), |(folder, _)| format!("./{folder}")))
}

impl Backend for OrtGenai {
    fn id(&self) -> &'static str {
        "ort-genai"
    }

    fn describe(&self) -> Description {
        Description { name: "onnxruntime-genai", default_unit: Unit::Npu, makes: &[], layers: false }
    }

    fn needs(&self, device: &DeviceFacts) -> Vec<Need> {
        if device.remote { BENCHMARK.all_needs(device) } else { Vec::new() }
    }

    fn probe(&self, device: &DeviceFacts, installed: &Installed) -> Availability {
        if !device.remote {
            return Availability::Refused { reason: "model_benchmark is run on a phone or board, not on this computer".to_owned() };
        }
        if let Err(missing) = BENCHMARK.probe(device, installed) {
            return missing;
        }
        let library = BENCHMARK.library("libonnxruntime-genai.so", device);
        Availability::Ready { version: tool::version_of("onnxruntime-genai", installed, &library) }
    }

    fn axis(&self, axis: Axis, value: &str) -> AxisFit {
        match (axis, value) {
            (Axis::Unit, "npu" | "cpu") => AxisFit::Settable,
            (Axis::Context | Axis::Variant, _) => AxisFit::OfArtifact,
            (Axis::Unit, _) => AxisFit::Unsupported("on a phone onnxruntime-genai has providers for the NPU and the CPU".to_owned()),
            (Axis::Batch, _) => AxisFit::Fixed("1"),
            (Axis::Kv | Axis::PerfProfile, _) => AxisFit::Fixed("as-in-genai_config"),
            (Axis::Threads, _) => AxisFit::NotApplicable,
        }
    }

    fn device_class(&self, cell: &Cell, device: &DeviceFacts) -> DeviceClass {
        if cell.unit == Unit::Npu { tool::npu_class(device) } else { device.class }
    }

    /// Its builder needs a model of a known family: there is nothing that could be made on the spot.
    fn recipe(&self, _: &Cell, _: &DeviceFacts) -> Option<Recipe> {
        None
    }

    fn stage(&self, launch: &Launch<'_>) -> Result<Vec<StagedFile>, Failure> {
        model_folder(launch)?;
        let (device, installed) = (launch.device, launch.installed);
        let mut files = tool::staged(&[&BENCHMARK], device, installed)?;
        if launch.cell.unit == Unit::Npu {
            context::fits(launch)?;
            files.extend(BENCHMARK.stage_extra("npu", "unit = npu", device, installed)?);
            if has_hexagon(device) {
                files.extend(BENCHMARK.stage_extra("npu-hexagon", "unit = npu", device, installed)?);
            }
            // A build with the provider inside needs no other.
            files.extend(BENCHMARK.stage_extra("plugin", "the provider", device, installed).unwrap_or_default());
        }
        files.extend(launch.artifact.files.iter().map(|f| StagedFile { name: f.clone(), source: Source::Artifact(f.clone()) }));
        let notes = [
            ("engine", "genai".to_owned()),
            ("ttft_method", "runtime_reported".to_owned()),
            (note::OWN_PROMPT, "the tool's own, the same for every query".to_owned()),
            ("repetitions", repetitions(launch).to_string()),
        ];
        let notes = notes.into_iter().map(|(k, v)| (k.to_owned(), v)).collect();
        files.push(Told { tool: NAME.to_owned(), notes }.staged());
        Ok(files)
    }

    fn steps(&self, launch: &Launch<'_>, paths: &Paths) -> Vec<Step> {
        let Ok(model) = model_folder(launch) else { return Vec::new() };
        let workload = launch.cell.workload;
        let words = Words::from([
            ("model", model),
            ("prompt", workload.prompt_tokens().to_string()),
            ("generate", workload.gen_tokens().to_string()),
            ("repetitions", repetitions(launch).to_string()),
        ]);
        vec![BENCHMARK.step("query", launch.device, paths, &words, vec![Told::FILE.to_owned()])]
    }

    fn parse(&self, captured: &Captured) -> Result<Parsed, ParseError> {
        let told = Told::of(captured).unwrap_or_default();
        let mut parsed = Parsed::default();
        told.note(&mut parsed);
        let Some(reading) = tool::read(&OrtGenaiReader, captured, &["stdout.txt", "stderr.txt"])? else {
            parsed.failure = Some(Failure::new(FailureKind::Runtime, "model_benchmark printed nothing"));
            return Ok(parsed);
        };
        parsed.warnings = reading.warnings;
        parsed.failure = reading.failure;
        let n = told.notes.get("repetitions").and_then(|n| n.parse().ok()).unwrap_or(1);
        match reading.measurements.iter().find(|m| m.metrics.contains_key("ttft_ms") || m.metrics.contains_key("decode_tok_s")) {
            Some(read) => parsed.queries.push(Query::reported(n, n, read)),
            None if parsed.failure.is_none() => {
                parsed.failure = Some(Failure::new(FailureKind::Runtime, "model_benchmark printed no figures"));
            }
            None => {}
        }
        Ok(parsed)
    }

    fn verify(&self, cell: &Cell, expected: &Expected, parsed: &Parsed, captured: &Captured) -> Checks {
        let (count, mut reasons) = check_reported(expected, 1, parsed);
        reasons.push("model_benchmark prints no token ids".to_owned());
        let bos = check_bos(expected, parsed, &mut reasons);
        // It does not say which provider worked, and falls back to the CPU without a word: the library of the NPU has to be there, or not.
        let npu = captured.evidence.mapped.iter().any(|l| l.contains("libQnnHtp"));
        let (unit, unit_found) = match (cell.unit, npu) {
            (Unit::Npu, true) => (Check::Confirmed, Some("npu".to_owned())),
            (Unit::Npu, false) if captured.evidence.mapped.is_empty() || !seen_whole(&captured.ended) => (Check::NotCheckable, None),
            (Unit::Npu, false) => (Check::Contradicted, Some("cpu".to_owned())),
            (_, true) => (Check::Contradicted, Some("npu".to_owned())),
            (_, false) => (Check::NotCheckable, None),
        };
        match unit {
            Check::Contradicted => reasons.push(format!("{} asked, {} found", cell.unit, unit_found.as_deref().unwrap_or("nothing"))),
            Check::NotCheckable => {
                reasons.push("model_benchmark does not say which unit it used, and no look at its libraries could tell".to_owned());
            }
            Check::Confirmed => {}
        }
        Checks { count, tokens: Check::NotCheckable, unit, bos, token_agreement: None, unit_found, reasons }
    }

    fn knowledge(&self) -> &'static Table {
        &bench_backend_ort_qnn::TABLE
    }

    fn explain(&self, failure: &Failure, launch: &Launch<'_>) -> Option<Hint> {
        bench_backend_qnn::explain(self, failure, launch)
    }
}

/// Whether a library that was not seen was not there: the agent looks at 1, 2, 3, 4 and 5 s, and a shorter launch may have loaded it after the
/// last look.
fn seen_whole(ended: &Ended) -> bool {
    ended.window_ns.is_some_and(|(start, end)| end.saturating_sub(start) >= 6_000_000_000)
}

#[cfg(test)]
mod tests;
