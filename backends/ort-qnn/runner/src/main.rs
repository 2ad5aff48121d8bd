//! `bench-ort-qnn-runner JOB.json`: the runner of ONNX Runtime with the QNN execution provider.
//!
//! It drives two graphs with an explicit KV cache, prefill and decode, as a program that ships them would: there is no engine
//! of the vendor in between. Runtime: `onnxruntime` (libonnxruntime), `qnn_ep` (the plugin provider), `qnn_backend`
//! (libQnnHtp.so). Files: `prefill`, `decode`, `meta`. Options: `ep.NAME` for the provider, `session.NAME` for the session,
//! `fallback` = `forbid` (default) or `allow`.

mod encoding;
mod engine;
mod generate;
mod layout;

use std::process::ExitCode;

use bench_runner_protocol::{Event, EventWriter, Failure, Job, LoadLaps, Phase, monotonic_ns, run};

use crate::{engine::Engine, generate::Generator};

fn main() -> ExitCode {
    run(work)
}

fn work(job: &Job, events: &mut EventWriter) -> Result<(), Failure> {
    let mut notes = Vec::new();
    let begin = monotonic_ns();
    events.now(&Event::LoadBegin { t_ns: begin })?;
    let mut laps = LoadLaps::new(begin);
    let loaded = Engine::load(job, &mut laps, &mut notes).and_then(|engine| {
        let unit = engine.unit;
        let generator = Generator::new(engine, job)?;
        notes.extend(laps.over(Phase::Allocate));
        Ok((generator, unit, monotonic_ns()))
    });
    for note in notes {
        events.now(&note)?;
    }
    let (mut generator, unit, t_ns) = loaded?;
    let graphs = ["prefill", "decode"].map(str::to_owned).to_vec();
    events.now(&Event::LoadEnd { t_ns, unit, graphs })?;
    if job.soak_ms.is_some() {
        events.compact();
    }
    job.idle(events)?;
    job.each_query(|query| generator.answer(query, events))
}
