//! An ADB device as a [`Device`]: work folders, staging by content, and runs under the agent that survive the connection.
//!
//! On the device, below the work root: `store/` (see `stage`), `work/<name>/` for one launch, `work/<name>.out<N>/` for the agent's
//! evidence of its steps. The evidence is copied to the host's `spec.out_dir`, `done.json` last.

use std::{
    collections::BTreeSet,
    fmt,
    path::{Path, PathBuf},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU32, AtomicU64, Ordering},
    },
    time::Duration,
};

use bench_agent::spec::{Done, SourceReport, Spec};
use bench_backend_api::{DeviceClass, DeviceFacts};
use tokio::{sync::Mutex, time::sleep};

use super::{
    AdbError, Facts, Server, awake, facts,
    lock::{self, Held},
    remote::{Patience, Remote},
    run,
    shell::{Limits, line, quote},
    stage::{Cleaned, Store, StoreFile},
    sync::Over,
};
use crate::{
    device::{Adopted, Answer, Away, Cancel, Content, Device, DeviceError, Identified, Placed, ask, keep::Keep},
    run::logs::{self, Window},
};

/// The guard of what is pinned does not act sooner, however impatient the user is.
const LEAST_KEPT: Duration = Duration::from_secs(20);

/// An attempt that sent more bytes than this was a transfer; questions have a few hundred.
const PROGRESS: u64 = 1 << 20;

/// How often a transfer may be lost: a cable that always breaks at the same place ends, too.
const LOSSES: u32 = 10;

/// How long the device's log may take: it belongs to no measurement, and a `logcat` that hangs must not hold up the next one.
const LOG: Duration = Duration::from_secs(5);

/// After as many logs that did not come in time the device is not asked for them any more.
const HANGS: u32 = 2;

/// Links made in one request: a request has at most 64 kB.
const LINKS: usize = 100;

/// Called with the name of a file that is being sent, and the bytes done and all bytes of all files that have to be sent for one launch.
pub type OnProgress = Arc<dyn Fn(&str, u64, u64) + Send + Sync>;

/// How a device is used.
#[derive(Clone)]
pub struct Options {
    /// The agent's program, built for the device.
    pub agent: PathBuf,
    /// The work root on the device.
    pub root: String,
    /// The host's file in which digests of host files are kept between runs, in the user's cache folder; without it for this process alone.
    pub digests: Option<PathBuf>,
    /// What a device that is no phone is (a board); found out when absent.
    pub class: Option<DeviceClass>,
    /// When a silent device counts as gone.
    pub patience: Patience,
    /// How long a lost device is waited for before a run on it is given up.
    pub reconnect: Duration,
    /// How long it may be away on purpose, its cable cut: what is pinned on it stays that much longer.
    pub absence: Duration,
    /// Told about every block of the staged files.
    pub progress: Option<OnProgress>,
}

impl Default for Options {
    /// The usual ones, without an agent ([`Adb::with_agent`]).
    fn default() -> Self {
        Self {
            agent: PathBuf::new(),
            root: "/data/local/tmp/bench".to_owned(),
            digests: None,
            class: None,
            patience: Patience::default(),
            reconnect: Duration::from_mins(5),
            absence: Duration::ZERO,
            progress: None,
        }
    }
}

impl Options {
    /// The usual ones, for an agent.
    pub fn new(agent: impl Into<PathBuf>) -> Self {
        Self { agent: agent.into(), ..Self::default() }
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options").field("agent", &self.agent).field("root", &self.root).finish_non_exhaustive()
    }
}

/// A device over ADB.
#[derive(Debug)]
pub struct Adb {
    remote: Remote,
    options: Options,
    said: Facts,
    chip: Identified,
    facts: DeviceFacts,
    store: Store,
    steps: AtomicU64,
    lock: Mutex<Option<Held>>,
    cancel: OnceLock<Cancel>,
    /// Logs that did not come in time.
    hangs: AtomicU32,
}

impl Adb {
    /// The device of a serial; asks it what it is.
    pub async fn open(server: Server, serial: &str, options: Options) -> Result<Self, AdbError> {
        let remote = Remote::new(server, serial, options.patience);
        let said = facts::ask(&remote, &options.root).await?;
        let facts = device_facts(serial, &said, &options);
        let store = Store::new(&options.root, options.digests.clone());
        Ok(Self {
            remote,
            options,
            said,
            chip: Identified::default(),
            facts,
            store,
            steps: AtomicU64::new(0),
            lock: Mutex::default(),
            cancel: OnceLock::new(),
            hangs: AtomicU32::new(0),
        })
    }

    /// What the device said about itself.
    pub fn said(&self) -> &Facts {
        &self.said
    }

    /// The device for single requests: shell, stat, push, pull.
    pub fn remote(&self) -> &Remote {
        &self.remote
    }

    /// The agent's program, once it is known what the device is.
    #[must_use]
    pub fn with_agent(mut self, agent: PathBuf) -> Self {
        self.options.agent = agent;
        self
    }

    /// How long it may be away on purpose.
    #[must_use]
    pub fn with_absence(mut self, absence: Duration) -> Self {
        self.options.absence = absence;
        self
    }

    /// Who is told about every block of a staged file.
    #[must_use]
    pub fn with_progress(mut self, told: OnProgress) -> Self {
        self.options.progress = Some(told);
        self
    }

    /// Who can call off the waiting for a lost device. The first one counts.
    pub fn heed(&self, cancel: Cancel) {
        let _ = self.cancel.set(cancel);
    }

    /// Its chip.
    #[must_use]
    pub fn with_chip(mut self, chip: Identified) -> Self {
        let facts = &mut self.facts;
        (facts.soc_model, facts.htp_arch) = (chip.soc_model.unwrap_or(0), chip.htp_arch.unwrap_or(0));
        // Parts for boards and cars, with Android or without.
        let board = ["QCS", "QRB", "SA"].iter().any(|family| chip.part.as_deref().is_some_and(|part| part.starts_with(family)));
        if board && facts.class == DeviceClass::Phone && self.options.class.is_none() {
            facts.class = DeviceClass::Board;
        }
        (facts.soc, facts.vtcm_mb, facts.no_llm) = (chip.part.clone(), chip.vtcm_mb, chip.no_llm.clone());
        self.chip = chip;
        self
    }

    /// Its chip, as far as it is known.
    pub fn chip(&self) -> &Identified {
        &self.chip
    }

    /// Has the device to itself from here on, waiting as long as another bench measures on it; `busy` is called if that is so.
    pub async fn lock(&self, busy: impl FnOnce() + Send) -> Result<(), AdbError> {
        *self.lock.lock().await = Some(lock::wait(&self.remote, &self.options.root, busy).await?);
        Ok(())
    }

    /// Gives the device back.
    pub async fn unlock(&self) {
        *self.lock.lock().await = None;
    }

    /// Has the device to himself from here on, unless another bench measures on it: then `false`.
    pub async fn try_lock(&self) -> Result<bool, AdbError> {
        let taken = lock::take(&self.remote, &self.options.root).await?;
        let free = taken.is_some();
        *self.lock.lock().await = taken;
        Ok(free)
    }

    /// Gives back what earlier runs have left on the device: programs that a killed bench left running, work folders, and staged files. Only for
    /// whoever holds the lock.
    pub async fn clean(&self) -> Result<Cleaned, AdbError> {
        run::end_orphans(&self.remote, &self.options.root).await?;
        // What could not be put back stays written down; the caller says so.
        self.remote.sh("removing work folders", &format!("rm -rf -- {}", quote(&self.work()))).await?;
        self.store.clean(&self.remote, &[]).await
    }

    /// Removes the work root with all that is in it. Only for whoever holds the lock and has made the root: what waits for the lock makes it anew.
    ///
    /// # Errors
    /// The device is lost or refuses.
    pub async fn remove_root(&self) -> Result<(), AdbError> {
        self.store.clean(&self.remote, &[]).await?;
        self.remote.sh("removing the work root", &format!("rm -rf -- {}", quote(&self.options.root))).await.map(|_| ())
    }

    /// What of its telemetry this device lets its user see: `bench-agent probe`, by an agent that is sent for it and removed again. `None` while
    /// another bench measures on it: that would be disturbed.
    ///
    /// # Errors
    /// The device is lost or has no room, or the agent does not run on it or prints something else.
    pub async fn sources(&self, agent: &Path) -> Result<Option<Vec<SourceReport>>, AdbError> {
        let during = "listing the telemetry sources";
        // Without a work root nobody measures, and none is made for this.
        if self.remote.stat(&self.options.root).await?.is_some() && !self.try_lock().await? {
            return Ok(None);
        }
        let folder = format!("{}-probe-{}", self.options.root, std::process::id());
        let program = format!("{folder}/bench-agent");
        let said = async {
            self.remote.sh(during, &format!("mkdir -p -- {}", quote(&folder))).await?;
            self.remote.push(agent, &program, 0o755, &|_, _| ()).await?;
            self.remote.sh(during, &format!("{} probe", quote(&program))).await
        };
        let said = said.await;
        let gone = self.remote.sh(during, &format!("rm -rf -- {}", quote(&folder))).await;
        self.unlock().await;
        let said = said?;
        gone?;
        serde_json::from_str(&said).map(Some).map_err(|e| AdbError::Protocol { during: during.to_owned(), what: e.to_string() })
    }

    /// The work root on the device.
    pub fn root(&self) -> &str {
        &self.options.root
    }

    /// The lock is lost with the connection: it is taken again, unless somebody else was faster.
    async fn still_alone(&self) -> Result<(), AdbError> {
        let mut held = self.lock.lock().await;
        let Some(lock) = held.as_mut() else { return Ok(()) };
        if !lock.stands().await {
            let taken = lock::take(&self.remote, &self.options.root).await?;
            let what = "another bench took the device while the connection was lost".to_owned();
            *held = Some(taken.ok_or(AdbError::Broken { serial: self.remote.serial().to_owned(), what })?);
        }
        Ok(())
    }

    /// The agent's path on the device; it is sent if it is not there.
    async fn stored_agent(&self) -> Result<String, AdbError> {
        let agent = StoreFile { host: self.options.agent.clone(), executable: true };
        self.again(|| self.store.put(&self.remote, &agent, &|_, _, _| ())).await
    }

    async fn place_files(&self, folder: &str, files: &[Placed<'_>]) -> Result<(), AdbError> {
        let (mut wanted, mut places) = (Vec::new(), Vec::new());
        for file in files {
            let to = inside(folder, file.name)?;
            match file.content {
                Content::Bytes(bytes) => self.remote.write(&to, bytes, if file.executable { 0o755 } else { 0o644 }).await?,
                Content::Host(host) => {
                    wanted.push(StoreFile { host: host.to_owned(), executable: file.executable });
                    places.push(to);
                }
            }
        }
        let told = |name: &str, sent, all| {
            if let Some(told) = &self.options.progress {
                told(name, sent, all);
            }
        };
        let stored = self.store.put_all(&self.remote, &wanted, &told).await?;
        let folders: BTreeSet<_> = places.iter().map(|to| quote(parent(to))).collect();
        let links: Vec<_> = stored.iter().zip(&places).map(|(from, to)| format!("l {} {}", quote(from), quote(to))).collect();
        // One round trip for all links that fit a request.
        let folders: Vec<String> = folders.into_iter().collect();
        for links in links.chunks(LINKS) {
            // Some systems' policies refuse hard links to this user.
            let script = format!(
                "l() {{ ln -f -- \"$1\" \"$2\" 2>/dev/null || ln -sf -- \"$1\" \"$2\" || exit 1; }}\nmkdir -p -- {} || exit 1\n{}",
                folders.join(" "),
                links.join("\n")
            );
            self.remote.sh("placing files", &script).await?;
        }
        Ok(())
    }

    async fn fetch_file(&self, folder: &str, name: &str, host: &Path, limit: u64) -> Result<bool, AdbError> {
        let from = inside(folder, name)?;
        let mut files = self.remote.files().await?;
        // A link could point anywhere on the device.
        match files.stat(&from, false).await? {
            Some(stat) if stat.is_file() => files.pull(&from, host, limit, Over::Cut, &|_, _| ()).await.map(|_| true),
            _ => Ok(false),
        }
    }

    /// Does something that may be done twice, again if the device was lost meanwhile and comes back. The time for that is counted from the
    /// first loss. A transfer lasts for as long as it lasts: an attempt that sent something gives the device the whole time again.
    async fn again<T, F: Future<Output = Result<T, AdbError>> + Send>(&self, mut work: impl FnMut() -> F + Send) -> Result<T, AdbError> {
        let mut since = None;
        let mut losses = 0;
        loop {
            let before = self.remote.sent();
            let error = match work().await {
                Err(e) if e.is_lost() => e,
                result => return result,
            };
            losses += 1;
            if self.remote.sent() - before > PROGRESS && losses < LOSSES {
                since = None;
            }
            let since: awake::Since = *since.get_or_insert_with(awake::Since::now);
            loop {
                if since.elapsed() >= self.options.reconnect {
                    return Err(error);
                }
                tokio::select! {
                    () = sleep(Duration::from_millis(300)) => {}
                    // Who wants to stop does not wait for a device that may never come back.
                    () = self.called_off() => return Err(error),
                }
                if run::revive(&self.remote).await.is_ok() {
                    break;
                }
            }
        }
    }

    async fn follow(&self, spec: &Spec, cancel: Cancel, away: Option<Away<'_>>) -> Result<Done, AdbError> {
        let agent = self.stored_agent().await?;
        let out = format!("{}.out{}", spec.cwd.trim_end_matches('/'), self.steps.fetch_add(1, Ordering::Relaxed));
        // A device that is away on purpose is not lost before the run must be over.
        let reconnect = self.options.reconnect.saturating_add(away.map_or(Duration::ZERO, |a| a.absence));
        let done = run::run(&self.remote, &agent, &out, spec, cancel, (reconnect, away.map(|a| a.started))).await;
        // What can't be followed to its end must not go on beside the next launch: that would be measured with it.
        if done.as_ref().is_err_and(|e| !e.is_lost()) {
            let _ = run::end_orphans(&self.remote, &self.options.root).await;
        }
        done
    }

    async fn called_off(&self) {
        match self.cancel.get() {
            Some(cancel) => run::asked(&mut cancel.clone()).await,
            None => std::future::pending().await,
        }
    }

    fn work(&self) -> String {
        format!("{}/work", self.options.root)
    }
}

/// A name inside a folder: no way out of it, whatever a scenario or a device says.
fn inside(folder: &str, name: &str) -> Result<String, AdbError> {
    let good = |part: &str| !part.is_empty() && part != "." && part != "..";
    if !name.split('/').all(good) || name.contains('\0') {
        return Err(AdbError::Remote { path: name.to_owned(), said: "not a path inside the work folder".to_owned() });
    }
    Ok(format!("{folder}/{name}"))
}

fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("/", |(parent, _)| parent)
}

fn device_facts(serial: &str, said: &Facts, options: &Options) -> DeviceFacts {
    let arch = said.arch.clone().unwrap_or_else(|| "unknown".to_owned());
    // What ran where decides: programs of a PC's architecture are no phone, whatever the properties say. They are believed only where they
    // say that it is none.
    let real = (arch.starts_with("aarch64") || arch.starts_with("arm")) && said.virtual_machine.is_none();
    let found = match (real, &said.android) {
        (false, _) => DeviceClass::Emulator,
        (true, Some(_)) => DeviceClass::Phone,
        (true, None) => DeviceClass::Board,
    };
    DeviceFacts {
        name: serial.to_owned(),
        class: options.class.unwrap_or(found),
        os: if said.android.is_some() { "android" } else { "linux" }.to_owned(),
        arch,
        // The chip's name would be none of what computes there.
        cpu: said.soc().filter(|_| found != DeviceClass::Emulator).map(|s| s.value.clone()),
        cores: said.cores,
        memory_mb: said.memory_mb,
        kernel: said.kernel.clone(),
        soc_model: 0,
        htp_arch: 0,
        remote: true,
        soc: None,
        vtcm_mb: None,
        no_llm: None,
    }
}

impl Device for Adb {
    fn facts(&self) -> &DeviceFacts {
        &self.facts
    }

    fn round_trips(&self) -> u64 {
        self.remote.requests()
    }

    fn says(&self) -> serde_json::Value {
        let server = self.remote.server().address().to_string();
        serde_json::json!({"chip": self.chip, "facts": self.said, "adb_server": server, "adb_round_trips": self.remote.requests(), "adb_sent_bytes": self.remote.sent()})
    }

    async fn work_folder(&self, name: &str) -> Result<String, DeviceError> {
        let path = inside(&self.work(), name)?;
        let q = quote(&path);
        let script = format!("rm -rf -- {q} {q}.out[0-9]* && mkdir -p -- {q}");
        self.again(|| self.still_alone()).await?;
        self.again(|| self.remote.sh("making a work folder", &script)).await?;
        Ok(path)
    }

    async fn place(&self, folder: &str, files: &[Placed<'_>]) -> Result<(), DeviceError> {
        Ok(self.again(|| self.place_files(folder, files)).await?)
    }

    async fn run(&self, spec: &Spec, cancel: Cancel) -> Result<Done, DeviceError> {
        Ok(self.follow(spec, cancel, None).await?)
    }

    async fn run_away(&self, spec: &Spec, cancel: Cancel, away: Away<'_>) -> Result<Done, DeviceError> {
        Ok(self.follow(spec, cancel, Some(away)).await?)
    }

    fn cabled(&self) -> bool {
        // HOST:PORT, or what wireless debugging registers (adb-<serial>-<six characters>._adb-tls-connect._tcp).
        let serial = self.remote.serial();
        !serial.contains(':') && !serial.contains("._adb")
    }

    async fn fetch(&self, folder: &str, name: &str, host: &Path, limit: u64) -> Result<bool, DeviceError> {
        Ok(self.again(|| self.fetch_file(folder, name, host, limit)).await?)
    }

    async fn log(&self, window: &Window) -> Result<Option<String>, DeviceError> {
        if self.hangs.load(Ordering::Relaxed) >= HANGS {
            return Ok(None);
        }
        let limits = Limits { output: 3 * logs::LIMIT as u64, time: LOG };
        match self.remote.exec(&logs::command(window), limits).await {
            Ok(said) => Ok(Some(String::from_utf8_lossy(&said.stdout).into_owned())),
            Err(e) => {
                let last = matches!(e, AdbError::TimedOut { .. }) && self.hangs.fetch_add(1, Ordering::Relaxed) + 1 == HANGS;
                let more = if last { "; once more: the log of later launches is not asked for" } else { "" };
                Err(DeviceError::Log(format!("{e}{more}")))
            }
        }
    }

    async fn rescue(&self, folder: &str, host: &Path) -> Result<(), DeviceError> {
        let Some(out) = self.again(|| run::newest_out(&self.remote, folder)).await? else { return Ok(()) };
        Ok(self.again(|| run::rescue(&self.remote, &out, host)).await?)
    }

    async fn adopt(&self, name: &str, host: &Path, cancel: Cancel) -> Result<Option<Adopted>, DeviceError> {
        let work = inside(&self.work(), name)?;
        let Some(out) = self.again(|| run::newest_out(&self.remote, &work)).await? else { return Ok(None) };
        std::fs::create_dir_all(host).map_err(DeviceError::io(host))?;
        let done = match run::adopt(&self.remote, &out, host, cancel, self.options.reconnect).await {
            Ok(done) => Some(done),
            Err(e) if e.is_lost() => return Err(e.into()),
            Err(_) => {
                self.again(|| run::rescue(&self.remote, &out, host)).await?;
                None
            }
        };
        Ok(Some(Adopted { work, done }))
    }

    async fn end_orphans(&self, _: &[PathBuf]) -> Result<Vec<String>, DeviceError> {
        Ok(self.again(|| run::end_orphans(&self.remote, &self.options.root)).await?)
    }

    async fn ask(&self, argv: &[String], limit: Duration) -> Result<Answer, DeviceError> {
        // In place of the shell: the daemon hangs up its direct child when a request is given up, and nothing else.
        let script = format!("exec {}", line(argv.iter().map(String::as_str)));
        let limits = Limits { time: limit, output: 2 * ask::LIMIT };
        let asked = || async {
            match self.remote.exec(&script, limits).await {
                // Either the command is slow or the device is gone: the device is asked for something that is not slow.
                Err(AdbError::TimedOut { after, .. }) if after == limit => run::revive(&self.remote).await.and(Ok(None)),
                result => result.map(Some),
            }
        };
        let slow = || DeviceError::Slow { command: argv.join(" "), limit };
        let said = self.again(asked).await?.ok_or_else(slow)?;
        Ok(Answer { code: Some(i32::from(said.status)), stdout: said.stdout, stderr: said.stderr })
    }

    fn grows_in(&self, _: &Path) -> String {
        self.options.root.clone()
    }

    async fn agent(&self) -> Result<String, DeviceError> {
        Ok(self.stored_agent().await?)
    }

    fn keep(&self) -> Option<Keep> {
        // Twice the time that a lost device is waited for: then its host has given up.
        Some(Keep { root: self.options.root.clone(), limit: (2 * self.options.reconnect).max(LEAST_KEPT) + self.options.absence })
    }

    async fn remove(&self, folder: &str) {
        // Only what `work_folder` has made.
        if folder.strip_prefix(&self.work()).is_some_and(|rest| rest.len() > 1 && rest.starts_with('/')) {
            let q = quote(folder);
            let script = format!("rm -rf -- {q} {q}.out[0-9]*");
            let gone = self.remote.exec(&script, Limits::default()).await;
            // A link that broke meanwhile may be back at once; who waits longer does it in vain when the device is lost for good.
            if gone.is_err_and(|e| e.is_lost()) && run::revive(&self.remote).await.is_ok() {
                let _ = self.remote.exec(&script, Limits::default()).await;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_leaves_its_folder() {
        assert_eq!(inside("/w", "a/b c;.txt").unwrap(), "/w/a/b c;.txt");
        for name in ["", "/etc/passwd", "../x", "a/../../x", "a//b", "./a", "a/", "a\0b"] {
            assert!(inside("/w", name).is_err(), "{name:?}");
        }
    }

    #[test]
    fn a_virtual_machine_on_arm_is_no_phone() {
        let class = |arch: &str, android: Option<&str>, virtual_machine: Option<&str>| {
            let own = |text: Option<&str>| text.map(str::to_owned);
            let said = Facts { arch: own(Some(arch)), android: own(android), virtual_machine: own(virtual_machine), ..Facts::default() };
            device_facts("x", &said, &Options::default()).class
        };
        assert_eq!(class("aarch64", Some("14"), None), DeviceClass::Phone);
        assert_eq!(class("aarch64", None, None), DeviceClass::Board);
        assert_eq!(class("aarch64", Some("14"), Some("ro.boot.qemu=1")), DeviceClass::Emulator);
        assert_eq!(class("x86_64", Some("14"), None), DeviceClass::Emulator);
    }
}
