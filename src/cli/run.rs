//! `bench run SCENARIO`.

use std::{
    fs,
    path::{Path, PathBuf},
};

use bench_backend_api::{Backend, Installed, Need};
use tokio::sync::watch;

use super::{
    Format,
    console::Console,
    exit::{Code, Failed},
    runtimes::{cache, consent, unavailable},
};
use crate::{
    device::{
        self,
        local::{LOCAL, Local, end_orphan},
    },
    registry,
    results::folder::Folder,
    run::{self, Outcome, RunError, Setup},
    runtimes::{self, Cache, agent_for, python},
    scenario::Plan,
};

/// Measures the cells of a scenario
#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub struct Args {
    /// Scenario file
    #[arg(required_unless_present = "resume")]
    scenario: Option<PathBuf>,
    /// Only these cells, for instance backend=genie,quant=w4a16
    #[arg(long, value_name = "KEY=VALUE,...", conflicts_with = "resume")]
    only: Option<String>,
    /// Folder for run folders; the run becomes OUT/<run>
    #[arg(long, default_value = "results")]
    out: PathBuf,
    /// Folder for the page
    #[arg(long, default_value = "reports")]
    reports: PathBuf,
    /// Go on with a run that was interrupted
    #[arg(long, value_name = "RUN")]
    resume: Option<PathBuf>,
    /// With --resume: also try again what failed for the cell's own reasons
    #[arg(long, requires = "resume")]
    retry_failed: bool,
    /// Do not ask before a download
    #[arg(long)]
    yes: bool,
    /// Never download
    #[arg(long)]
    offline: bool,
    /// An unavailable backend ends the run with exit code 5
    #[arg(long)]
    strict: bool,
    /// Make no page
    #[arg(long)]
    no_report: bool,
    /// How events are printed
    #[arg(long, value_enum, default_value_t = Format::Human)]
    format: Format,
}

pub fn main(args: &Args) -> anyhow::Result<Code> {
    let cache = cache()?;
    let (old, plan) = match (&args.resume, &args.scenario) {
        (Some(run), scenario) => resume(run, scenario.as_deref()).map(|(folder, plan)| (Some(folder), plan))?,
        (None, Some(scenario)) => (None, super::plan::load(scenario, args.only.as_deref())?.1),
        (None, None) => return Err(super::usage("name a scenario, or a run to --resume")),
    };
    if plan.cells.is_empty() {
        return Err(Failed { code: Code::Nothing, message: "the scenario has no cell".to_owned() }.into());
    }
    let own = registry::commands(&plan.commands);
    let backends = registry::with(&own);
    let facts = device::local_facts(plan.device.soc_model, plan.device.htp_arch);
    let agent = agent_for(&cache, &facts).map_err(unavailable)?;
    let device = Local::new(agent, cache.join("work"), plan.device.soc_model, plan.device.htp_arch);
    let installed = install(&cache, &plan, &backends, &device, args)?;
    // Not before everything is there: a run folder in which nothing was tried helps nobody.
    let folder = old.map_or_else(|| begin(&plan, args), Ok)?;
    let console = Console::new(args.format);
    end_orphans(&folder)?;
    let device = device.locked(alone(&cache, &console)?);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let result = runtime.block_on(async {
        let (stop, cancel) = watch::channel(false);
        tokio::spawn(async move {
            if asked_to_stop().await {
                let _ = stop.send(true);
            }
            // The second Ctrl-C does not wait for the runner to end; the agent still ends it.
            if asked_to_stop().await {
                std::process::exit(Code::Interrupted as i32);
            }
        });
        let setup = Setup {
            plan: &plan,
            backends: &backends,
            installed: &installed,
            device: &device,
            cache: &cache,
            folder: &folder,
            console: &console,
            cancel,
            retry_failed: args.retry_failed,
        };
        run::run(setup).await
    });
    finish(args, &folder, &console, result)
}

/// Waits for Ctrl-C, or for the TERM of whoever manages the job; `false` where nobody can ask.
async fn asked_to_stop() -> bool {
    #[cfg(unix)]
    if let Ok(mut terminate) = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()) {
        return tokio::select! {
            asked = tokio::signal::ctrl_c() => asked.is_ok(),
            asked = terminate.recv() => asked.is_some(),
        };
    }
    tokio::signal::ctrl_c().await.is_ok()
}

/// Ends what a killed bench left running in this run: its agents hold the lock of the device.
fn end_orphans(folder: &Folder) -> anyhow::Result<()> {
    if folder.path.join("journal.jsonl").is_file() {
        let recorded = crate::results::launches::read(&folder.path, LOCAL)?;
        recorded.unfinished.iter().for_each(|dir| end_orphan(dir));
    }
    Ok(())
}

/// Waits until no other run measures on this device: two at once would measure each other.
fn alone(cache: &Cache, console: &Console) -> anyhow::Result<fs::File> {
    let path = cache.join("local.lock");
    let open = || -> std::io::Result<fs::File> {
        fs::create_dir_all(&cache.0)?;
        let lock = fs::File::create(&path)?;
        if lock.try_lock().is_err() {
            console.line("another bench run is measuring on this device: waiting for it to end");
            lock.lock()?;
        }
        Ok(lock)
    };
    open().map_err(|e| Failed { code: Code::Unavailable, message: format!("{}: {e}", path.display()) }.into())
}

fn finish(args: &Args, folder: &Folder, console: &Console, result: Result<Outcome, RunError>) -> anyhow::Result<Code> {
    let path = folder.path.display();
    let resume = format!("bench run --resume {path}");
    let outcome = result.map_err(|e| {
        if e.disk_full() {
            let message = format!("the disk is full: {e}\neverything measured before is kept; free some space, then `{resume}`");
            return anyhow::Error::from(Failed { code: Code::Unavailable, message });
        }
        anyhow::Error::from(e)
    })?;
    let human = args.format == Format::Human;
    if !args.no_report {
        match super::report::page(std::slice::from_ref(&folder.path), &args.reports) {
            Ok(page) if human => console.line(&format!("page: {}", page.display())),
            Ok(_) => {}
            Err(e) => console.line(&format!("warning: the page could not be made ({e}); the tables are in {path}")),
        }
    }
    if outcome.interrupted {
        if human {
            console.line(&format!("go on with: {resume}"));
        }
        return Ok(Code::Interrupted);
    }
    let tried = outcome.ok + outcome.failed + outcome.unverified;
    if tried == 0 || (args.strict && !outcome.unavailable.is_empty()) {
        let reasons = outcome.unavailable.join("\n");
        let (code, message) = if reasons.is_empty() {
            (Code::Nothing, format!("nothing to run: every cell is skipped, see {path}/cells.csv"))
        } else {
            (Code::Unavailable, reasons)
        };
        return Err(Failed { code, message }.into());
    }
    Ok(if outcome.failed + outcome.unverified > 0 { Code::Failed } else { Code::Done })
}

/// A new run folder with its plan.
fn begin(plan: &Plan, args: &Args) -> anyhow::Result<Folder> {
    let stamp = jiff::Timestamp::now().strftime("%Y%m%dT%H%M%SZ").to_string();
    let salt = python::short_hash(&[stamp.as_bytes(), &std::process::id().to_le_bytes(), &nanoseconds().to_le_bytes()]);
    let folder = Folder::create(args.out.join(format!("{stamp}-{}-{}", plan.name, &salt[..6])))?;
    let plan_file = folder.path.join("plan.toml");
    crate::results::folder::write_whole(&plan_file, plan.to_toml()?.as_bytes())?;
    Ok(folder)
}

fn nanoseconds() -> i128 {
    jiff::Timestamp::now().as_nanosecond()
}

/// The stored plan of a run; a scenario named beside it must be the one that the run was made from.
fn resume(run: &Path, scenario: Option<&Path>) -> anyhow::Result<(Folder, Plan)> {
    let folder = Folder::open(run.to_path_buf())?;
    let plan_file = folder.path.join("plan.toml");
    let bad = |message: String| anyhow::Error::from(Failed { code: Code::Usage, message: format!("{}: {message}", plan_file.display()) });
    let text = fs::read_to_string(&plan_file).map_err(|e| bad(e.to_string()))?;
    let plan = Plan::from_toml(&text).map_err(|e| bad(e.to_string()))?;
    if let Some(path) = scenario {
        let now = super::load(path).map_err(|problems| bad(format!("{} problems in {}", problems.problems.len(), problems.file)))?;
        if now.sha256 != plan.scenario_sha256 {
            return Err(bad(format!("{} is not the scenario of this run any more: leave it out to use the stored plan", path.display())));
        }
    }
    Ok((folder, plan))
}

/// Finds what the plan's backends need, and installs the Python environment when it is needed and allowed.
fn install(cache: &Cache, plan: &Plan, backends: &[&dyn Backend], device: &Local, args: &Args) -> anyhow::Result<Installed> {
    use crate::device::Device;
    let used = |b: &&&dyn Backend| plan.cells.iter().any(|c| c.skipped.is_none() && c.cell.backend == b.id());
    let mut needs: Vec<Need> = backends.iter().filter(used).flat_map(|b| b.needs(device.facts())).collect();
    if run::needs_recipes(plan) {
        needs.push(Need::Python);
    }
    let found = runtimes::find(cache, device.facts(), needs.clone());
    let wanted = needs.iter().any(|n| matches!(n, Need::Python | Need::PythonPackage { .. }) && found.get(n).is_none());
    if !wanted || args.offline {
        return Ok(found);
    }
    if !consent(args.yes)? {
        return Ok(found);
    }
    let say = |text: &str| super::note(text);
    python::Environment::install(cache, &say).map_err(unavailable)?;
    Ok(runtimes::find(cache, device.facts(), needs))
}
