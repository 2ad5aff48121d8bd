//! Genie on a device that is another machine: our runner where it is built for it, else the SDK's own programs, whose figures are those
//! of Genie's profile.

use std::sync::LazyLock;

use bench_backend_api::{
    Availability, Axis, Captured, Check, DeviceFacts, Expected, Failure, FailureKind, Installed, JOB_FILE, Launch, Need, ParseError,
    Parsed, Paths, Query, Source, StagedFile, Step, check_reported,
    tool::{self, Told, Tool, Words},
};
use bench_backend_qnn::{context, htp};
use serde_json::json;

use super::{
    PROFILE, QUERY,
    config::{self, CONFIG, EXTENSION, Wanted},
};
use crate::reader::GenieReader;

static RUNNER: LazyLock<Tool> =
    LazyLock::new(|| Tool::parse(include_str!("../../device/bench-genie-runner.toml")).expect("the description is checked by a test"));
static APP: LazyLock<Tool> =
    LazyLock::new(|| Tool::parse(include_str!("../../device/genie-app.toml")).expect("the description is checked by a test"));
static T2T: LazyLock<Tool> =
    LazyLock::new(|| Tool::parse(include_str!("../../device/genie-t2t-run.toml")).expect("the description is checked by a test"));

/// The programs that `variant` can ask for; the first one runs on this machine too.
pub const PROGRAMS: [&str; 3] = [Way::BenchGenieRunner.name(), Way::GenieApp.name(), Way::GenieT2tRun.name()];

const SCRIPT: &str = "queries.txt";
const PROFILE_CONFIG: &str = "profile_config.json";

/// A way to ask Genie, the best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// Our runner: a time stamp for each token.
    BenchGenieRunner,
    /// The SDK's scripted program: all queries in one process, as its profile reports them.
    GenieApp,
    /// The SDK's program for one query a process: a first query, as its profile reports it.
    GenieT2tRun,
}

impl Way {
    const ALL: [Self; 3] = [Self::BenchGenieRunner, Self::GenieApp, Self::GenieT2tRun];

    fn tool(self) -> &'static Tool {
        match self {
            Self::BenchGenieRunner => &RUNNER,
            Self::GenieApp => &APP,
            Self::GenieT2tRun => &T2T,
        }
    }

    /// Its program, which is also the value of `variant` that asks for it.
    const fn name(self) -> &'static str {
        match self {
            Self::BenchGenieRunner => "bench-genie-runner",
            Self::GenieApp => "genie-app",
            Self::GenieT2tRun => "genie-t2t-run",
        }
    }

    fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|way| way.name() == name)
    }

    /// The best one that is there, or what the best one lacks.
    fn best(device: &DeviceFacts, installed: &Installed) -> Result<Self, Availability> {
        tool::best(&Self::ALL.map(|way| (way, way.tool())), device, installed)
    }

    fn of(launch: &Launch<'_>) -> Result<Self, Failure> {
        let asked = launch.cell.asked(Axis::Variant).and_then(Self::named);
        match asked {
            Some(way) => Ok(way),
            None => Self::best(launch.device, launch.installed)
                .map_err(|_| Failure::new(FailureKind::Usage, "neither our runner nor a program of the SDK is there")),
        }
    }

    /// Results that a launch of so many queries leaves.
    fn results(self, queries: u32) -> u32 {
        if self == Self::GenieT2tRun { 1 } else { queries }
    }
}

pub fn needs(device: &DeviceFacts) -> Vec<Need> {
    Way::ALL.into_iter().flat_map(|way| way.tool().all_needs(device)).collect()
}

pub fn probe(device: &DeviceFacts, installed: &Installed) -> Availability {
    let way = match context::reachable(device).and_then(|()| Way::best(device, installed)) {
        Ok(way) => way,
        Err(missing) => return missing,
    };
    let version = tool::version_of("QAIRT", installed, &RUNNER.library("libGenie.so", device));
    Availability::Ready { version: format!("{version}, {}", way.name()) }
}

/// Everything but the job of our runner, which is made as on this machine.
pub fn stage(launch: &Launch<'_>, job: impl FnOnce() -> Result<Vec<u8>, Failure>) -> Result<Vec<StagedFile>, Failure> {
    let (device, way) = (launch.device, Way::of(launch)?);
    context::fits(launch)?;
    let bytes = |name: &str, bytes: Vec<u8>| StagedFile { name: name.to_owned(), source: Source::Bytes(bytes) };
    let profile = launch.cell.asked(Axis::PerfProfile);
    let tool = way.tool();
    let mut files = tool::staged(&[tool], device, launch.installed)?;

    let readable = launch.installed.missing(&tool.extra("perf-profile", device)).is_none();
    let extension = profile.is_some() || readable;
    if extension {
        let why = format!("perf-profile = {}: without this library it would silently be none", profile.unwrap_or("runtime-default"));
        files.extend(tool.stage_extra("perf-profile", &why, device, launch.installed)?);
        let mut htp = json!({"devices": htp::devices(profile, device)});
        if tool::has_hexagon(device) {
            // As the bundles of Qualcomm's AI Hub have it (formats/genie.md): their parts share weights.
            htp["memory"] = json!({"mem_type": "shared_buffer"});
            htp["context"] = json!({"weight_sharing_enabled": true});
        }
        files.push(bytes(EXTENSION, serde_json::to_vec_pretty(&htp).unwrap_or_default()));
    }
    let max_tokens = (way != Way::BenchGenieRunner).then(|| launch.cell.workload.gen_tokens());
    let config = config::config(launch, Wanted { max_tokens, extension })?;
    let mut notes = htp::notes(profile, device);
    notes.insert("ttft_method".to_owned(), if way == Way::BenchGenieRunner { "token_event" } else { "runtime_reported" }.to_owned());
    let scope = if way != Way::BenchGenieRunner && as_text(launch) { "text" } else { "ids" };
    notes.insert("ttft_scope".to_owned(), scope.to_owned());
    notes.extend(launch.cell.model.chunk.map(|chunk| ("chunk".to_owned(), chunk.to_string())));
    if let Some(own) = launch.artifact.meta.get("config") {
        // Paths apart: those of this machine are nothing that the device should hear of.
        let mut own = own.clone();
        if let Some(extensions) = own.pointer_mut("/dialog/engine/backend/extensions") {
            *extensions = json!(EXTENSION);
        }
        config::localise(&mut own, launch)?;
        notes.insert("config_changes".to_owned(), config::changes(&own, &config).join("; "));
    }
    let bos = config.pointer("/dialog/context/bos-token").and_then(serde_json::Value::as_u64);
    files.push(bytes(CONFIG, serde_json::to_vec_pretty(&config).unwrap_or_default()));
    match way {
        Way::BenchGenieRunner => files.push(bytes(JOB_FILE, job()?)),
        Way::GenieApp => {
            files.push(bytes(PROFILE_CONFIG, br#"{"profile": {"version": 1}}"#.to_vec()));
            files.push(bytes(SCRIPT, script(launch).into_bytes()));
        }
        Way::GenieT2tRun => {}
    }
    if way != Way::BenchGenieRunner {
        let queries = way.results(launch.prompts.len() as u32) as usize;
        files.extend(launch.prompts.iter().enumerate().take(queries).map(|(i, ids)| {
            let prompt = if as_text(launch) { launch.texts[i].clone() } else { tokens(ids, bos) };
            bytes(&prompt_file(i), prompt.into_bytes())
        }));
    }
    files.push(Told { tool: way.name().to_owned(), notes }.staged());
    Ok(files)
}

fn prompt_file(query: usize) -> String {
    format!("prompt-{query}.txt")
}

/// Whether the prompts go in as text: that the programs of the SDK take a file of text is known, how they want token ids is not.
fn as_text(launch: &Launch<'_>) -> bool {
    launch.texts.len() >= launch.prompts.len()
}

/// The prompt's ids without the BOS that Genie puts before them.
fn tokens(ids: &[u32], bos: Option<u64>) -> String {
    let ids = match ids {
        [first, rest @ ..] if Some(u64::from(*first)) == bos => rest,
        _ => ids,
    };
    ids.iter().map(u32::to_string).collect::<Vec<_>>().join(" ") + "\n"
}

/// Every query from an empty KV cache, and one profile of them all.
fn script(launch: &Launch<'_>) -> String {
    let command = if as_text(launch) { "query" } else { "tokenQuery" };
    let mut lines = vec![
        format!("profile config create profile_config {PROFILE_CONFIG}"),
        "profile create profile profile_config".to_owned(),
        format!("dialog config create config {CONFIG}"),
        "dialog config bind profile config profile".to_owned(),
        "dialog create dialog config".to_owned(),
    ];
    for query in 0..launch.prompts.len() {
        lines.push(format!("dialog {command} dialog {} answer-{query}.txt", prompt_file(query)));
        lines.push("dialog reset dialog".to_owned());
    }
    lines.push("dialog free dialog".to_owned());
    lines.push(format!("profile save profile {PROFILE}"));
    lines.extend(["dialog config free config", "profile free profile", "profile config free profile_config"].map(str::to_owned));
    lines.join("\n") + "\n"
}

pub fn steps(launch: &Launch<'_>, paths: &Paths) -> Vec<Step> {
    let Ok(way) = Way::of(launch) else { return Vec::new() };
    let prompt = if as_text(launch) { "prompt" } else { "tokens" };
    let words = Words::from([
        ("job", JOB_FILE.to_owned()),
        ("config", CONFIG.to_owned()),
        ("profile", PROFILE.to_owned()),
        ("script", SCRIPT.to_owned()),
        (prompt, prompt_file(0)),
    ]);
    vec![way.tool().step(QUERY, launch.device, paths, &words, vec![PROFILE.to_owned(), CONFIG.to_owned(), Told::FILE.to_owned()])]
}

/// The program of the SDK that a captured launch ran; `None` where tokens were timed.
pub fn reporting(captured: &Captured) -> Option<Way> {
    Way::named(&Told::of(captured)?.tool).filter(|way| *way != Way::BenchGenieRunner)
}

impl Way {
    /// What a program of the SDK left: its profile, and what it printed. No exit status is trusted.
    pub fn read(self, captured: &Captured) -> Result<Parsed, ParseError> {
        let mut parsed = Parsed::default();
        let profiled = captured.files.get(PROFILE).is_some_and(|bytes| !bytes.iter().all(u8::is_ascii_whitespace));
        let version = captured.text("stdout.txt").unwrap_or_default();
        let version =
            version.lines().find_map(|l| l.strip_prefix("Using libGenie.so version ").or_else(|| l.strip_prefix("libGenie.so = ")));
        if let Some(version) = version {
            parsed.notes.insert("runtime_version".to_owned(), format!("Genie API {}", version.trim()));
        }
        let Some(reading) = tool::read(&GenieReader, captured, &[PROFILE, "stdout.txt", "stderr.txt"])? else {
            parsed.failure = Some(Failure::new(FailureKind::Runtime, format!("{} printed nothing and left no profile", self.name())));
            return Ok(parsed);
        };
        parsed.warnings = reading.warnings;
        parsed.failure = reading.failure;
        if !profiled && parsed.failure.is_none() {
            let words = "left no profile: Genie writes one only when its queries succeed";
            parsed.failure = Some(Failure::new(FailureKind::Runtime, format!("{} {words}", self.name())));
        }
        if profiled {
            let queries = reading.measurements.iter().filter(|m| m.label.starts_with("query"));
            parsed.queries = queries.zip(0..).map(|(m, query)| Query::reported(query, 1, m)).collect();
            if let Some(ms) = reading.measurements.iter().find_map(|m| m.metrics.get("load_ms")) {
                parsed.notes.insert("reported_load_ms".to_owned(), ms.to_string());
            }
        }
        Ok(parsed)
    }

    /// Counts as Genie reports them.
    pub fn check_count(self, expected: &Expected, parsed: &Parsed) -> (Check, Vec<String>) {
        check_reported(expected, self.results(expected.queries), parsed)
    }
}
