//! The job of a launch in the runner protocol, for the adapters whose runner is ours (or a user's) program.

use std::collections::BTreeMap;

use bench_runner_protocol::{Job, Model, Profile, Query, VERSION};

use crate::{
    backend::Launch,
    cell::{Axis, Pass, Unit},
    measurement::{Failure, FailureKind},
};

/// Name of the job file in the work folder.
pub const JOB_FILE: &str = "job.json";

/// The job of a launch: model, prompts, unit, threads and performance profile as asked. The adapter adds files, runtime and options.
///
/// Fails for a model whose vocabulary nobody tells: token ids mean nothing without it.
pub fn job(launch: &Launch<'_>) -> Result<Job, Failure> {
    let model = &launch.cell.model;
    let known = model.geometry.as_ref().and_then(|g| Some((g, g.vocab?)));
    let Some((g, vocab)) = known else {
        let message = format!("models.{}: no geometry that tells `vocab`, which the runner has to know", model.name);
        return Err(Failure::new(FailureKind::Usage, message));
    };
    let gen_tokens = launch.cell.workload.gen_tokens();
    let queries = launch.prompts.iter().zip(0..).map(|(ids, query)| Query { query, ids: ids.clone(), gen_tokens }).collect();
    let unit = match launch.cell.unit {
        Unit::Npu => Some(bench_runner_protocol::Unit::Npu),
        Unit::Cpu => Some(bench_runner_protocol::Unit::Cpu),
        Unit::Gpu => Some(bench_runner_protocol::Unit::Gpu),
        Unit::Hybrid => None,
    };
    Ok(Job {
        v: VERSION,
        model: Model {
            context: model.context,
            chunk: model.usual_chunk(),
            vocab,
            layers: g.layers,
            kv_heads: g.kv_heads,
            head_dim: g.head_dim,
            rope_theta: g.rope_theta,
            bos: g.bos,
            pad: g.pad,
            files: BTreeMap::new(),
        },
        runtime: BTreeMap::new(),
        queries,
        threads: launch.cell.asked(Axis::Threads).and_then(|t| t.parse().ok()),
        unit,
        perf_profile: launch.cell.asked(Axis::PerfProfile).map(str::to_owned),
        profile: if launch.pass == Pass::Profile { Profile::Layers } else { Profile::Off },
        options: BTreeMap::new(),
        soak_ms: None,
        idle_ms: 0,
    })
}

/// The job of a launch with the duration of its soak: what an adapter made, prolonged by the orchestrator. `None` for bytes that are no job.
pub fn prolonged(job: &[u8], soak_ms: u64) -> Option<Vec<u8>> {
    let mut job: Job = serde_json::from_slice(job).ok()?;
    job.soak_ms = Some(soak_ms);
    Some(job_bytes(&job))
}

/// The job of a launch with time to idle before its first query. `None` for bytes that are no job.
pub fn idled(job: &[u8], idle_ms: u64) -> Option<Vec<u8>> {
    let mut job: Job = serde_json::from_slice(job).ok()?;
    job.idle_ms = idle_ms;
    Some(job_bytes(&job))
}

/// The job of a launch whose queries have lengths of their own: one number of tokens out for each. `None` for bytes that are no job, and for a job of
/// another number of queries.
pub fn mixed(job: &[u8], gen_tokens: &[u32]) -> Option<Vec<u8>> {
    let mut job: Job = serde_json::from_slice(job).ok()?;
    if job.queries.len() != gen_tokens.len() {
        return None;
    }
    for (query, n) in job.queries.iter_mut().zip(gen_tokens) {
        query.gen_tokens = *n;
    }
    Some(job_bytes(&job))
}

/// The job file's content.
pub fn job_bytes(job: &Job) -> Vec<u8> {
    serde_json::to_vec_pretty(job).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_query_has_its_own_length() {
        let job = br#"{"v":1,"model":{"context":8,"chunk":8,"vocab":8,"files":{}},
            "queries":[{"query":0,"ids":[1],"gen_tokens":9},{"query":1,"ids":[1,2],"gen_tokens":9}]}"#;
        let told: serde_json::Value = serde_json::from_slice(&mixed(job, &[3, 5]).expect("a job")).expect("JSON");
        let lengths = [0, 1].map(|query| told["queries"][query]["gen_tokens"].as_u64());
        assert_eq!((lengths, &told["queries"][1]["ids"]), ([Some(3), Some(5)], &serde_json::json!([1, 2])));
        assert!(mixed(job, &[3]).is_none() && mixed(b"no job", &[3, 5]).is_none());
    }
}
