//! `bench run SCENARIO`.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use tokio::sync::watch;

use super::{
    Format, adb,
    console::Console,
    exit::{Code, Failed},
    runtimes::{cache, unavailable},
};
use crate::{
    device::{
        self, Cancel, Device,
        adb::Adb,
        local::{LOCAL, Local, end_orphan},
    },
    gate::{
        nightly::{self, InputError, requirements},
        require::{Met, overall},
        run::load,
    },
    results::folder::Folder,
    run::{self, Outcome, RunError},
    runtimes::{Cache, agent_for},
    scenario::Plan,
};

mod ab;
mod job;
mod wanted;

use job::Job;
pub use wanted::Wanted;

/// Measures the cells of a scenario
#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub struct Args {
    /// Scenario file
    #[arg(required_unless_present_any = ["resume", "ab"])]
    scenario: Option<PathBuf>,
    /// Two scenarios, or the folders of two earlier runs, whose cells are measured pair by pair on one device, to be compared
    #[arg(long, num_args = 2, value_names = ["A", "B"], conflicts_with_all = ["scenario", "resume"])]
    ab: Option<Vec<PathBuf>>,
    /// Only these cells, for instance backend=genie,quant=w4a16; of an A/B run those of either side
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
    let (wanted, old) = Wanted::of(args)?;
    measure(args, &wanted, old, &mut Vec::new())
}

/// Measures stored plans again, for whoever judges them: one, or two as the sides of an A/B run. Gives the new folders, side A first; nothing is
/// downloaded.
pub fn again(plans: Vec<Plan>, out: &Path, servers: &adb::Servers) -> anyhow::Result<(Code, Vec<PathBuf>)> {
    let args = Args {
        scenario: None,
        ab: None,
        only: None,
        out: out.to_owned(),
        reports: PathBuf::new(),
        resume: None,
        retry_failed: false,
        servers: servers.clone(),
        on_battery: false,
        yes: false,
        offline: true,
        strict: false,
        no_report: true,
        format: Format::Human,
    };
    // A run of their own, even if they are of an earlier A/B run.
    let plans = plans.into_iter().map(|plan| Plan { ab: None, ..plan }).collect();
    let mut folders = Vec::new();
    let code = measure(&args, &Wanted::of_plans(plans), Vec::new(), &mut folders)?;
    Ok((code, folders))
}

/// Measures on every device that is meant; `old` are the folders of a run that goes on, `folders` becomes those of this one, side A first.
fn measure(args: &Args, wanted: &Wanted, old: Vec<Folder>, folders: &mut Vec<PathBuf>) -> anyhow::Result<Code> {
    let cache = cache()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let choice = wanted.device()?.clone();
    if choice.local {
        let agent = agent_for(&cache, &device::local_facts(choice.soc_model, choice.htp_arch)).map_err(unavailable)?;
        let device = Local::new(agent, cache.join("work"), choice.soc_model, choice.htp_arch);
        let plans = wanted.plans(args, device.facts(), &choice)?;
        let job = Job::new(args, &cache, wanted, plans, device, old)?;
        folders.extend(job.folders().map(|folder| folder.path.clone()));
        let console = Console::new(args.format);
        job.folders().try_for_each(end_orphans)?;
        let cancel = runtime.block_on(async { cancel() });
        let lock = alone(&cache, &job, &console, &cancel)?;
        let job = job.map_device(|device| device.locked(lock));
        let result = runtime.block_on(job.run(&cache, &console, &cancel, args));
        return finish(args, &job, &console, result);
    }
    let (mut jobs, mut old) = (Vec::new(), old);
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
        let plans = wanted.plans(args, device.facts(), &adb::chosen(device.facts(), &choice))?;
        let device = device.with_absence(plans.iter().map(run::absence).max().unwrap_or_default());
        jobs.push((Job::new(args, &cache, wanted, plans, device, std::mem::take(&mut old))?, console));
    }
    folders.extend(jobs.iter().flat_map(|(job, _)| job.folders()).map(|folder| folder.path.clone()));
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
        let result = runtime.block_on(job.run(&cache, console, &cancel, args));
        // The same device may be another job's too, under another name.
        runtime.block_on(job.device.unlock());
        finish(args, job, console, result)
    };
    let codes: Vec<anyhow::Result<Code>> = std::thread::scope(|scope| {
        let start = &start;
        let threads: Vec<_> = jobs.iter().map(|(job, console)| scope.spawn(move || start(job, console))).collect();
        threads.into_iter().map(|t| t.join().unwrap_or_else(|_| Err(anyhow::anyhow!("a session ended by a bug")))).collect()
    });
    worst(codes)
}

/// The word of several runs: the first of the design's precedence (a bug, an invalid scenario, something unavailable, failed cells).
fn worst(codes: Vec<anyhow::Result<Code>>) -> anyhow::Result<Code> {
    let rank = |result: &anyhow::Result<Code>| {
        let code = result.as_ref().map_or_else(super::exit::of, |code| *code);
        [Code::Bug, Code::Interrupted, Code::Usage, Code::Scenario, Code::Unavailable, Code::Regressed, Code::Failed, Code::Nothing]
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

fn finish<D: Device>(args: &Args, job: &Job<D>, console: &Console, result: Result<Outcome, RunError>) -> anyhow::Result<Code> {
    let folders: Vec<PathBuf> = job.folders().map(|folder| folder.path.clone()).collect();
    let (path, resume) = (job.path().display(), job.resume());
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
        match super::report::page(&folders, &args.reports) {
            Ok(page) if human => console.line(&format!("page: {}", page.display())),
            Ok(_) => {}
            Err(e) => console.line(&format!("warning: the page could not be made ({e}); the tables are in {path}")),
        }
    }
    if let [a, b] = &folders[..] {
        ab::print(args.format, console, (a, b));
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
    // Of an A/B run what is tried has to meet them.
    let required = job.folders().last().map_or(Code::Done, |folder| required(folder, console));
    let failed = outcome.failed + outcome.unverified + outcome.soaks_failed > 0;
    Ok(if failed && required != Code::Regressed { Code::Failed } else { required })
}

/// Says how the run meets what the scenario requires; undecided when nobody can tell.
fn required(folder: &Folder, console: &Console) -> Code {
    let judged = load(&folder.path).map_err(InputError::from).and_then(|run| requirements(&folder.path, &run));
    match judged {
        Ok(judged) => {
            judged.iter().filter(|one| one.met != Met::Passed).for_each(|one| console.line(&nightly::output::requirement(one)));
            if overall(&judged) == Met::Violated { Code::Regressed } else { Code::Done }
        }
        Err(e) => {
            console.line(&format!("warning: what the scenario requires could not be judged: {e}"));
            Code::Undecided
        }
    }
}
