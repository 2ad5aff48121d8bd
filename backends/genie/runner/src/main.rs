//! `bench-genie-runner JOB.json`: the runner of Genie's dialog API.
//!
//! Runtime: `genie` (libGenie.so), `config` (genie_config.json in the working folder; it names the model's files). Options:
//! `log_level` 1 error (default) .. 4 verbose; `htp_arch`, the Hexagon architecture that context binaries have to be made for: a phone
//! refuses those of another one by itself, the emulator runs them as if nothing were wrong. What else may be set, threads and the performance profile among it, stands in
//! the configuration, which the caller writes. Leaves `genie_profile.json` in the working folder.

mod config;
mod ffi;
mod profile;

use std::{fs, path::Path, process::ExitCode};

use bench_runner_protocol::{Event, EventWriter, Failure, Finish, Job, LoadLaps, Model, Phase, Query, check_chip, monotonic_ns, run};

use crate::{
    config::Config,
    ffi::{Dialog, Genie, Profile},
};

/// Where the profile of the whole process is left.
const PROFILE_FILE: &str = "genie_profile.json";
/// Genie's status for a full context.
const CONTEXT_EXCEEDED: i32 = 4;
/// Queries of a soak whose figures are taken from the profile.
const READ_QUERIES: usize = 100;

/// Queries found in the profile so far, and how many are looked for.
struct Seen {
    count: usize,
    most: usize,
}

fn main() -> ExitCode {
    run(work)
}

fn work(job: &Job, events: &mut EventWriter) -> Result<(), Failure> {
    let log_level = log_level(job)?;
    let config = Config::read(Path::new(job.runtime("config")?))?;
    events.now(&Event::note("effective_options", format!("log_level={log_level} config={}", job.runtime("config")?)))?;
    check_arch(job, &config)?;
    let begin = monotonic_ns();
    events.now(&Event::LoadBegin { t_ns: begin })?;
    let mut laps = LoadLaps::new(begin);
    let genie = Genie::load(Path::new(job.runtime("genie")?))?;
    events.defer_all(laps.over(Phase::Library));
    events.defer(Event::note("genie_api", genie.version()));
    let profile = Profile::new(genie)?;
    // Also after a failure: the profile is evidence.
    let result = queries(job, &config, (genie, log_level, &profile), laps, events);
    let saved = profile.json().and_then(|json| Ok(fs::write(PROFILE_FILE, json)?));
    result.and(saved)
}

fn queries(
    job: &Job,
    config: &Config,
    (genie, log_level, profile): (&'static Genie, i32, &Profile),
    mut laps: LoadLaps,
    events: &mut EventWriter,
) -> Result<(), Failure> {
    let dialog = Dialog::new(genie, config.json.clone(), log_level, profile)?;
    let t_ns = monotonic_ns();
    // One call reads the binaries, makes contexts and buffers: Genie shows nothing of what is in it.
    events.defer_all(laps.over(Phase::Prepare));
    events.now(&Event::note("engine", config.engine.as_str()))?;
    if let Some(init) = profile.json().ok().and_then(|json| profile::init_us(&json)) {
        events.now(&Event::note("init_us", init.to_string()))?;
    }
    events.now(&Event::LoadEnd { t_ns, unit: config.proven_unit(), graphs: Vec::new() })?;
    let mut seen = Seen { count: 0, most: job.soak_ms.map_or(usize::MAX, |_| READ_QUERIES) };
    if job.soak_ms.is_some() {
        events.compact();
    }
    job.idle(events)?;
    job.each_query(|query| {
        answer(query, &job.model, config, &dialog, profile, &mut seen, events)?;
        dialog.reset()
    })
}

/// Answers one query. A query of Genie's that failed leaves none in the profile.
fn answer(
    query: &Query,
    model: &Model,
    config: &Config,
    dialog: &Dialog<'_>,
    profile: &Profile,
    seen: &mut Seen,
    events: &mut EventWriter,
) -> Result<(), Failure> {
    let ids = config.without_bos(&query.ids);
    dialog.set_max_tokens(query.gen_tokens)?;
    events.now(&Event::Prompt { t_ns: monotonic_ns(), query: query.query, tokens: config.submitted(ids) })?;
    let (status, calls) = dialog.token_query(ids, query.gen_tokens as usize + 2);
    let end = monotonic_ns();

    let mut i = 0;
    for call in &calls {
        for id in &call.ids {
            events.defer(Event::Token { query: query.query, i, id: Some(*id), t_ns: call.t_ns });
            i += 1;
        }
        if call.ids.len() > 1 {
            events.defer(Event::note(
                "merged_callbacks",
                format!("query {}: {} tokens at once, up to token {}", query.query, call.ids.len(), i - 1),
            ));
        }
    }
    // Genie's profile holds every query since the dialog was made: reading it after each of a soak's thousands would be the load itself.
    let all = if seen.count < seen.most { profile.json().map(|json| profile::queries(&json)).unwrap_or_default() } else { Vec::new() };
    let own = if all.len() > seen.count { all.last().cloned().unwrap_or_default() } else { profile::QueryProfile::default() };
    seen.count = all.len().max(seen.count);
    let finish = match status {
        0 if i == query.gen_tokens => Finish::Length,
        0 => Finish::Eos,
        CONTEXT_EXCEEDED => Finish::Context,
        _ => Finish::Error,
    };
    events.now(&Event::QueryEnd {
        query: query.query,
        t_ns: end,
        prompt_tokens: own.prompt_tokens,
        generated_tokens: own.generated_tokens,
        finish,
        reported: own.figures,
    })?;
    match status {
        0 => Ok(()),
        CONTEXT_EXCEEDED => Err(Failure::usage(format!(
            "query {}: the context is full after {i} tokens (Genie's status {status}): it takes prompts of up to context - chunk + 1 = {} tokens, and {} with the output",
            query.query,
            model.context.saturating_sub(model.chunk) + 1,
            model.context
        ))),
        _ => Err(Failure::runtime(format!("query {}: GenieDialog_tokenQuery: status {status}", query.query))),
    }
}

/// Refuses context binaries that were made for another Hexagon architecture than the job's.
fn check_arch(job: &Job, config: &Config) -> Result<(), Failure> {
    let Some(wanted) = job.options.get("htp_arch") else { return Ok(()) };
    let wanted: u32 = wanted.parse().map_err(|_| Failure::usage("option htp_arch: a number, for instance 75"))?;
    check_chip(config.binaries.iter().map(Path::new), wanted)
}

fn log_level(job: &Job) -> Result<i32, Failure> {
    if let Some(key) = job.options.keys().find(|key| !["log_level", "htp_arch"].contains(&key.as_str())) {
        return Err(Failure::usage(format!("unknown option {key}: log_level or htp_arch")));
    }
    match job.options.get("log_level").map_or("1", String::as_str).parse() {
        Ok(level @ 1..=4) => Ok(level),
        _ => Err(Failure::usage("option log_level: 1 (error) to 4 (verbose)")),
    }
}
