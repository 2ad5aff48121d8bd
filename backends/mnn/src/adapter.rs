//! MNN as a backend: a small Python runner over the MNN package's own engine, and MNN's own programs on another machine.

mod device;

use std::collections::BTreeMap;

use bench_backend_api::{
    Availability, Axis, AxisFit, Backend, Captured, Cell, Check, Checks, Description, DeviceClass, DeviceFacts, Expected, Failure,
    Fallback, Installed, Invocation, JOB_FILE, Launch, Need, ParseError, Parsed, Paths, Program, Quant, Recipe, Source, StagedFile, Step,
    Unit, check_bos, check_count, check_tokens, job, job_bytes,
    knowledge::Table,
    note, parsed_from_events,
    tool::{self, Told},
};
use serde_json::json;

/// MNN's LLM engine.
#[derive(Debug, Clone, Copy)]
pub struct Mnn;

const RUNNER: &str = "mnn_runner.py";
const RUNNER_TEXT: &str = include_str!("../runner/mnn_runner.py");
const MADE: &[Quant] = &[Quant::Fp32, Quant::W8, Quant::W4];

fn package() -> Need {
    Need::PythonPackage { distribution: "mnn".to_owned(), module: "MNN".to_owned() }
}

/// MNN's name of the backend for a unit.
const fn backend_type(unit: Unit) -> &'static str {
    match unit {
        Unit::Cpu | Unit::Hybrid => "cpu",
        Unit::Gpu => "opencl",
        Unit::Npu => "hexagon",
    }
}

impl Backend for Mnn {
    fn id(&self) -> &'static str {
        "mnn"
    }

    fn describe(&self) -> Description {
        Description { name: "MNN", default_unit: Unit::Cpu, makes: MADE, layers: true }
    }

    fn needs(&self, device: &DeviceFacts) -> Vec<Need> {
        if device.remote { device::needs(device) } else { vec![Need::Python, package()] }
    }

    fn probe(&self, device: &DeviceFacts, installed: &Installed) -> Availability {
        if device.remote {
            return device::probe(device, installed);
        }
        match (installed.get(&Need::Python), installed.get(&package())) {
            (Some(_), Some(found)) => Availability::Ready { version: format!("MNN {}", found.version.as_deref().unwrap_or("unknown")) },
            _ => Availability::Missing { what: "the Python package mnn".to_owned(), remedy: "bench runtimes install python".to_owned() },
        }
    }

    fn axis(&self, axis: Axis, value: &str) -> AxisFit {
        match (axis, value) {
            (Axis::Unit, "hybrid") => AxisFit::Unsupported("MNN runs a model on one unit".to_owned()),
            (Axis::Unit | Axis::Threads, _) => AxisFit::Settable,
            (Axis::Variant, program) if device::PROGRAMS.contains(&program) => AxisFit::Settable,
            (Axis::Context | Axis::Variant, _) => AxisFit::OfArtifact,
            (Axis::Kv, _) => AxisFit::Fixed("runtime-default"),
            (Axis::Batch, _) => AxisFit::Fixed("1"),
            (Axis::PerfProfile, _) => AxisFit::NotApplicable,
        }
    }

    fn device_class(&self, _: &Cell, device: &DeviceFacts) -> DeviceClass {
        device.class
    }

    fn recipe(&self, cell: &Cell, _: &DeviceFacts) -> Option<Recipe> {
        cell.model.geometry.as_ref()?.seed?;
        if !MADE.contains(&cell.quant) {
            return None;
        }
        let args = BTreeMap::from([("context".to_owned(), json!(cell.model.context)), ("quant".to_owned(), json!(cell.quant.as_str()))]);
        Some(Recipe { kind: "mnn-llm".to_owned(), args })
    }

    fn mixes_lengths(&self, _: &Cell, device: &DeviceFacts) -> bool {
        !device.remote
    }

    fn stage(&self, launch: &Launch<'_>) -> Result<Vec<StagedFile>, Failure> {
        if launch.device.remote {
            return device::stage(launch);
        }
        tool::runs_here(launch.cell, &device::PROGRAMS)?;
        let mut job = job(launch)?;
        job.threads.get_or_insert(1);
        job.model.files.insert("config".to_owned(), "config.json".to_owned());
        job.options.insert("backend_type".to_owned(), backend_type(launch.cell.unit).to_owned());
        // A float model is computed in float; the quantised ones as MNN's own tools run them.
        let precision = if launch.cell.quant == Quant::Fp32 { "high" } else { "low" };
        job.options.insert("precision".to_owned(), precision.to_owned());
        let mut files = vec![
            StagedFile { name: JOB_FILE.to_owned(), source: Source::Bytes(job_bytes(&job)) },
            StagedFile { name: RUNNER.to_owned(), source: Source::Bytes(RUNNER_TEXT.as_bytes().to_vec()) },
        ];
        let wanted = |f: &&String| !matches!(f.as_str(), "make.log" | "tokenizer.json");
        files.extend(
            launch.artifact.files.iter().filter(wanted).map(|f| StagedFile { name: f.clone(), source: Source::Artifact(f.clone()) }),
        );
        Ok(files)
    }

    fn steps(&self, launch: &Launch<'_>, paths: &Paths) -> Vec<Step> {
        if launch.device.remote {
            return device::steps(launch, paths);
        }
        let env = BTreeMap::from([("PYTHONDONTWRITEBYTECODE".to_owned(), "1".to_owned()), ("PYTHONNOUSERSITE".to_owned(), "1".to_owned())]);
        let args = vec![RUNNER.to_owned(), JOB_FILE.to_owned()];
        let invocation = Invocation { program: Program::Need(Need::Python), args, env, outputs: Vec::new() };
        vec![Step { name: "query".to_owned(), invocation }]
    }

    fn parse(&self, captured: &Captured) -> Result<Parsed, ParseError> {
        let mut parsed = match Told::of(captured) {
            None => {
                let mut parsed = parsed_from_events(captured)?;
                // Our runner takes the largest logit of each forward() itself, whatever the model's configuration says.
                parsed.notes.insert(note::SAMPLING.to_owned(), "greedy".to_owned());
                parsed
            }
            Some(told) => {
                let mut parsed = device::read(captured, &told)?;
                told.note(&mut parsed);
                parsed
            }
        };
        if let Some(line) = replaced(&parsed, captured) {
            let (unit, reason) = (Some(Unit::Cpu.as_str().to_owned()), Some(line.trim().to_owned()));
            parsed.fallbacks.push(Fallback { unit, reason, source: "mnn-log".to_owned(), ..Fallback::default() });
        }
        Ok(parsed)
    }

    fn verify(&self, cell: &Cell, expected: &Expected, parsed: &Parsed, captured: &Captured) -> Checks {
        if let Some(told) = Told::of(captured) {
            return device::verify(cell, expected, parsed, captured, &told);
        }
        let (count, mut reasons) = check_count(expected, parsed);
        let (tokens, token_agreement, why) = check_tokens(cell.quant, expected, parsed);
        reasons.extend(why);
        // The ids go in as they are; MNN counts what went in.
        let bos = check_bos(expected, parsed, &mut reasons);
        let replaced = replaced(parsed, captured);
        let unit_found = if replaced.is_some() { Some("cpu".to_owned()) } else { parsed.unit_reported.clone() };
        let unit = match unit_found.as_deref() {
            Some(found) if found == cell.unit.as_str() => Check::Confirmed,
            Some(found) => {
                reasons.push(format!(
                    "{} asked, MNN used {found}{}",
                    cell.unit,
                    replaced.map(|r| format!(" ({})", r.trim())).unwrap_or_default()
                ));
                Check::Contradicted
            }
            None => {
                reasons.push("MNN does not say which unit it used".to_owned());
                Check::NotCheckable
            }
        };
        Checks { count, tokens, unit, bos, token_agreement, unit_found, reasons }
    }

    fn knowledge(&self) -> &'static Table {
        &crate::TABLE
    }
}

/// The line in which MNN says that it took the CPU for a backend that it lacks: all that it says of it.
fn replaced(parsed: &Parsed, captured: &Captured) -> Option<String> {
    let log = captured.text("stdout.txt").unwrap_or_default();
    parsed.notes.get("fallback").cloned().or_else(|| log.lines().find(|l| l.contains("Can't Find type=")).map(str::to_owned))
}

#[cfg(test)]
mod tests;
