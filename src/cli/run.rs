//! `bench run SCENARIO`.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use bench_backend_api::{Backend, DeviceFacts, Installed, Need};
use tokio::sync::watch;

use super::{
    Format, adb,
    console::Console,
    exit::{Code, Failed},
    runtimes::{cache, consent, unavailable},
};
use crate::{
    device::{
        self, Cancel, Device,
        adb::Adb,
        local::{LOCAL, Local, end_orphan},
    },
    registry,
    results::folder::Folder,
    run::{self, Outcome, RunError, Setup},
    runtimes::{self, Cache, agent_for, python},
    scenario::{DeviceChoice, Plan, Power, Scenario},
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
    #[command(flatten)]
    servers: adb::Servers,
    /// Measure power on the battery: asks to unplug the device, and to plug it in again
    #[arg(long, conflicts_with = "resume")]
    on_battery: bool,
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
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let (old, wanted) = match (&args.resume, &args.scenario) {
        (Some(run), scenario) => resume(run, scenario.as_deref()).map(|(folder, plan)| (Some(folder), Wanted::Plan(Box::new(plan))))?,
        (None, Some(scenario)) => (None, Wanted::Scenario(Box::new(super::plan::scenario(scenario)?))),
        (None, None) => return Err(super::usage("name a scenario, or a run to --resume")),
    };
    let choice = wanted.device().clone();
    if choice.local {
        let agent = agent_for(&cache, &device::local_facts(choice.soc_model, choice.htp_arch)).map_err(unavailable)?;
        let device = Local::new(agent, cache.join("work"), choice.soc_model, choice.htp_arch);
        let job = Job::new(args, &cache, wanted.plan(args, device.facts(), choice)?, device, old)?;
        let console = Console::new(args.format);
        end_orphans(&job.folder)?;
        let cancel = runtime.block_on(async { cancel() });
        let lock = alone(&cache, &job, &console, &cancel)?;
        let job = Job { device: job.device.locked(lock), ..job };
        let result = runtime.block_on(job.run(&cache, &console, cancel, args));
        return finish(args, &job.folder, &console, result);
    }
    let mut jobs = Vec::new();
    let mut old = old;
    let devices = runtime.block_on(args.servers.open(&choice))?;
    let several = devices.len() > 1;
    for device in devices {
        let name = &device.facts().name;
        let console = Arc::new(if several { Console::of_device(args.format, name) } else { Console::new(args.format) });
        device.chip().findings.iter().for_each(|finding| console.line(&format!("{name}: {finding}")));
        let shown = console.clone();
        let device = device.with_progress(Arc::new(move |file, sent, all| shown.sending(file, sent, all)));
        let agent = agent_for(&cache, device.facts()).map_err(unavailable)?;
        let device = device.with_agent(agent);
        let chosen = adb::chosen(device.facts(), &choice);
        let plan = wanted.plan(args, device.facts(), chosen)?;
        let device = device.with_absence(run::absence(&plan));
        jobs.push((Job::new(args, &cache, plan, device, old.take())?, console));
    }
    let cancel = runtime.block_on(async { cancel() });
    let start = |job: &Job<Adb>, console: &Console| {
        job.device.heed(cancel.clone());
        let _alone = alone(&cache, job, console, &cancel)?;
        let busy = || {
            console.line("another bench is measuring on this device, from another computer or under another name: waiting for it to end");
        };
        runtime.block_on(async {
            let mut stop = cancel.clone();
            tokio::select! {
                locked = job.device.lock(busy) => locked.map_err(unavailable),
                Ok(_) = stop.wait_for(|stop| *stop) => Err(job.not_begun()),
            }
        })?;
        let result = runtime.block_on(job.run(&cache, console, cancel.clone(), args));
        // The same device may be another job's too, under another name.
        runtime.block_on(job.device.unlock());
        finish(args, &job.folder, console, result)
    };
    let codes: Vec<anyhow::Result<Code>> = std::thread::scope(|scope| {
        let start = &start;
        let threads: Vec<_> = jobs.iter().map(|(job, console)| scope.spawn(move || start(job, console))).collect();
        threads.into_iter().map(|t| t.join().unwrap_or_else(|_| Err(anyhow::anyhow!("a session ended by a bug")))).collect()
    });
    worst(codes)
}

/// What the command line names: a scenario, or the stored plan of a run.
enum Wanted {
    Scenario(Box<Scenario>),
    Plan(Box<Plan>),
}
impl Wanted {
    fn device(&self) -> &DeviceChoice {
        match self {
            Self::Scenario(scenario) => &scenario.device,
            Self::Plan(plan) => &plan.device,
        }
    }

    /// The plan for one device.
    fn plan(&self, args: &Args, facts: &DeviceFacts, chosen: DeviceChoice) -> anyhow::Result<Plan> {
        let mut plan = match self {
            Self::Scenario(scenario) => super::plan::of(scenario, facts, args.only.as_deref())?,
            Self::Plan(plan) => Plan::clone(plan),
        };
        plan.device = chosen;
        if args.on_battery {
            let power = plan.power.get_or_insert_with(Power::by_hand);
            if !power.usb_off.is_empty() {
                return Err(super::usage("--on-battery, while the scenario's [power] usb-off cuts the cable: one of them"));
            }
            power.on_battery = true;
        }
        if plan.cells.is_empty() {
            return Err(Failed { code: Code::Nothing, message: "the scenario has no cell".to_owned() }.into());
        }
        Ok(plan)
    }
}

/// The run of one device.
struct Job<D> {
    plan: Plan,
    installed: Installed,
    device: D,
    folder: Folder,
}

impl<D: Device> Job<D> {
    fn new(args: &Args, cache: &Cache, plan: Plan, device: D, old: Option<Folder>) -> anyhow::Result<Self> {
        let own = registry::commands(&plan.commands);
        let installed = install(cache, &plan, &registry::with(&own), device.facts(), args)?;
        // Not before everything is there: a run folder in which nothing was tried helps nobody.
        let folder = old.map_or_else(|| begin(&plan, args), Ok)?;
        Ok(Self { plan, installed, device, folder })
    }

    /// The user stopped it while the device was another's.
    fn not_begun(&self) -> anyhow::Error {
        let (device, path) = (&self.device.facts().name, self.folder.path.display());
        let message = format!("interrupted while another bench measured on {device}; begin with: bench run --resume {path}");
        Failed { code: Code::Interrupted, message }.into()
    }

    async fn run(&self, cache: &Cache, console: &Console, cancel: Cancel, args: &Args) -> Result<Outcome, RunError> {
        let own = registry::commands(&self.plan.commands);
        let setup = Setup {
            plan: &self.plan,
            backends: &registry::with(&own),
            installed: &self.installed,
            device: &self.device,
            cache,
            folder: &self.folder,
            console,
            cancel,
            retry_failed: args.retry_failed,
        };
        Ok(run::run(std::slice::from_ref(&setup)).await?.pop().unwrap_or_default())
    }
}

/// The word of several runs: the first of the design's precedence (a bug, an invalid scenario, something unavailable, failed cells).
fn worst(codes: Vec<anyhow::Result<Code>>) -> anyhow::Result<Code> {
    let rank = |result: &anyhow::Result<Code>| {
        let code = result.as_ref().map_or_else(super::exit::of, |code| *code);
        [Code::Bug, Code::Interrupted, Code::Usage, Code::Scenario, Code::Unavailable, Code::Failed, Code::Nothing]
            .iter()
            .position(|c| *c == code)
            .unwrap_or(usize::MAX)
    };
    let mut all = codes;
    all.sort_by_key(rank);
    let first = all.remove(0);
    // Every error is told, not the first alone.
    for error in all.into_iter().filter_map(Result::err) {
        super::tell(&error);
    }
    first
}

/// Becomes true when the user wants to stop; the second Ctrl-C does not wait for the runner to end, which the agent still ends.
fn cancel() -> Cancel {
    let (stop, cancel) = watch::channel(false);
    tokio::spawn(async move {
        if asked_to_stop().await {
            let _ = stop.send(true);
        }
        if asked_to_stop().await {
            super::note("not waiting for the runner to end; `bench run --resume RUN` goes on where this run stopped");
            std::process::exit(Code::Interrupted as i32);
        }
        // Kept open: a closed channel would read as nobody being able to ask.
        std::future::pending::<()>().await;
    });
    cancel
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

/// Ends what a killed bench left running in this run: its agents hold the lock of this computer.
fn end_orphans(folder: &Folder) -> anyhow::Result<()> {
    if folder.path.join("journal.jsonl").is_file() {
        let recorded = crate::results::launches::read(&folder.path, LOCAL)?;
        // A soak is waited for and adopted: its agent holds the lock until it ends.
        let soak = |dir: &&PathBuf| dir.file_name().is_some_and(|name| name.to_string_lossy().starts_with("soak-"));
        recorded.in_flight().iter().filter(|dir| !soak(dir)).for_each(|dir| end_orphan(dir));
    }
    Ok(())
}

/// The file that a run of this computer keeps locked while it measures on a device.
pub fn lock_file(cache: &Cache, device: &str) -> PathBuf {
    let safe = device.replace(|c: char| !(c.is_ascii_alphanumeric() || "-_.".contains(c)), "_");
    cache.join(&format!("{safe}.lock"))
}

/// How often a lock that another run holds is tried.
const TRY: Duration = Duration::from_millis(200);

/// Waits until no other run of this computer measures on this device: two at once would measure each other.
fn alone<D: Device>(cache: &Cache, job: &Job<D>, console: &Console, cancel: &Cancel) -> anyhow::Result<fs::File> {
    let path = lock_file(cache, &job.device.facts().name);
    let unusable = |e: std::io::Error| anyhow::Error::from(Failed { code: Code::Unavailable, message: format!("{}: {e}", path.display()) });
    fs::create_dir_all(&cache.0).map_err(unusable)?;
    let lock = fs::File::create(&path).map_err(unusable)?;
    let mut told = false;
    loop {
        match lock.try_lock() {
            Ok(()) => return Ok(lock),
            Err(fs::TryLockError::Error(e)) => return Err(unusable(e)),
            // Tried again and again instead of waited for, so that the user can stop it.
            Err(fs::TryLockError::WouldBlock) if *cancel.borrow() => return Err(job.not_begun()),
            Err(fs::TryLockError::WouldBlock) => {}
        }
        if !told {
            console.line("another bench run is measuring on this device: waiting for it to end");
            told = true;
        }
        std::thread::sleep(TRY);
    }
}

fn finish(args: &Args, folder: &Folder, console: &Console, result: Result<Outcome, RunError>) -> anyhow::Result<Code> {
    let path = folder.path.display();
    let resume = format!("bench run --resume {path}");
    let outcome = result.map_err(|e| {
        if e.disk_full() {
            let words = e.to_string();
            let words = if words.contains("disk is full") { words } else { format!("the disk is full: {words}") };
            let message = format!("{words}\neverything measured before is kept; free some space, then `{resume}`");
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
    if let Some(words) = outcome.lost {
        let message = format!("the device was lost: {words}\neverything measured before is kept; when it is back, `{resume}`");
        return Err(Failed { code: Code::Unavailable, message }.into());
    }
    if let Some(words) = outcome.aborted {
        let message = format!("the device is not as [settle] asks: {words}\neverything measured before is kept; go on with `{resume}`");
        return Err(Failed { code: Code::Unavailable, message }.into());
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
    Ok(if outcome.failed + outcome.unverified + outcome.soaks_failed > 0 { Code::Failed } else { Code::Done })
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
fn install(cache: &Cache, plan: &Plan, backends: &[&dyn Backend], device: &DeviceFacts, args: &Args) -> anyhow::Result<Installed> {
    let used = |b: &&&dyn Backend| plan.cells.iter().any(|c| c.skipped.is_none() && c.cell.backend == b.id());
    let mut needs: Vec<Need> = backends.iter().filter(used).flat_map(|b| b.needs(device)).collect();
    if run::needs_recipes(plan) {
        needs.push(Need::Python);
    }
    let found = runtimes::find(cache, device, needs.clone());
    let wanted = needs.iter().any(|n| matches!(n, Need::Python | Need::PythonPackage { .. }) && found.get(n).is_none());
    if !wanted || args.offline {
        return Ok(found);
    }
    if !consent(args.yes)? {
        return Ok(found);
    }
    let say = |text: &str| super::note(text);
    python::Environment::install(cache, &say).map_err(unavailable)?;
    Ok(runtimes::find(cache, device, needs))
}
