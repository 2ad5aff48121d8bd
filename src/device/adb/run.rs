//! A run that survives its connection. The agent is started detached and needs nobody; here it is only watched, by questions that start no
//! process on the device (`stat` and reads of its file service), and its evidence is taken when it is there. A lost connection is mended, a lost
//! run is told apart by what is left: `done.json` (adopted), a living agent (watched on), neither (R18, a reboot), and each has its words.

use std::{path::Path, time::Duration};

use bench_agent::{
    pidfile::ProcessId,
    spec::{Done, Spec},
};
use tokio::{
    sync::Notify,
    time::{Instant, sleep},
};

use super::{
    AdbError, Server, awake, connect,
    protocol::DeviceState,
    remote::Remote,
    shell::{Limits, quote},
    sync::{Files, Over},
};
use crate::device::{Cancel, keep::ALIVE};

/// What the agent may need after time-out and grace to have ended everything (agent/README.md), and to write its evidence on a slow disk.
const HARD_END: Duration = Duration::from_secs(11 + 20);
/// An agent leaves its pid file within milliseconds of its start.
const START: Duration = Duration::from_secs(15);
/// Questions come at least and at most this far apart, and late by a fortieth of the run's time: each is one `stat` of the daemon's.
const POLL: [Duration; 2] = [Duration::from_millis(40), Duration::from_millis(250)];
/// Whether the agent lives is asked less often than whether it is done.
const LIVES: Duration = Duration::from_secs(2);
/// How long a lost device is still waited for after the user wanted to stop.
pub(super) const LEAVING: Duration = Duration::from_secs(10);
/// The evidence and how much of each file is taken. What the agent bounds itself has room to spare; telemetry of an hour at 10 Hz has some
/// 200 MB. `done.json` is last.
const EVIDENCE: [(&str, u64); 7] = [
    ("stdout.txt", 128 << 20),
    ("stderr.txt", 128 << 20),
    ("telemetry.csv", 512 << 20),
    ("windows.csv", 512 << 20),
    ("agent.pid", 4 << 10),
    ("child.pid", 4 << 10),
    (DONE, 16 << 20),
];
const DONE: &str = "done.json";
/// Prints what is another after every start of the device.
const BOOT: &str = "cat /proc/sys/kernel/random/boot_id 2>/dev/null || echo unknown";

/// Runs a spec under the agent and copies the evidence to the host's `spec.out_dir`. After an error the run may go on: the caller ends it.
pub(super) async fn run(
    remote: &Remote,
    agent: &str,
    out: &str,
    spec: &Spec,
    cancel: Cancel,
    (reconnect, begun): (Duration, Option<&Notify>),
) -> Result<Done, AdbError> {
    let here = Path::new(&spec.out_dir);
    std::fs::create_dir_all(here).map_err(AdbError::host(here))?;
    let mut there = spec.clone();
    out.clone_into(&mut there.out_dir);
    let bytes = serde_json::to_vec_pretty(&there).map_err(|e| broken(remote, format!("the spec can't be written: {e}")))?;
    // Kept beside the evidence too.
    let spec_file = here.join("spec.json");
    std::fs::write(&spec_file, &bytes).map_err(AdbError::host(&spec_file))?;

    let mut watch = Watch::new(remote, (agent, out, &bytes), spec, &cancel, reconnect);
    watch.begun = begun;
    let stop = Stop::No;
    if let Err(e) = watch.start().await {
        // Whether it was started is not known: what is there when the device is back tells.
        if !e.is_lost() {
            return Err(e);
        }
        watch.mend(e).await?;
    }
    watch.follow(stop, cancel, here, Duration::from_millis(spec.grace_ms)).await
}

/// Watches a run that an earlier bench has started, and copies its evidence to `here`. An agent that is dead without evidence is an error.
pub(super) async fn adopt(remote: &Remote, out: &str, here: &Path, cancel: Cancel, reconnect: Duration) -> Result<Done, AdbError> {
    let spec_file = format!("{out}/spec.json");
    let bytes = remote.files().await?.read(&spec_file, 1 << 20).await?;
    let spec: Option<Spec> = bytes.as_deref().and_then(|bytes| serde_json::from_slice(bytes).ok());
    let spec = spec.ok_or_else(|| broken(remote, format!("{spec_file} is not there, or no spec of this version")))?;
    let bytes = bytes.unwrap_or_default();
    let grace = Duration::from_millis(spec.grace_ms);
    // Its hard end is counted anew, since nobody knows how long it has run: the agent's own time-out is the one that ends it.
    let mut watch = Watch::new(remote, ("", out, &bytes), &spec, &cancel, reconnect);
    // What never began, or has been ended long ago, is not started now.
    if !watch.is_done().await? {
        let path = format!("{out}/agent.pid");
        let text = watch.files().await?.read(&path, 100).await?;
        watch.id = text.and_then(|t| String::from_utf8_lossy(&t).trim().parse().ok());
        if watch.id.is_none() {
            return Err(broken(remote, "its agent never began".to_owned()));
        }
    }
    watch.follow(Stop::No, cancel, here, grace).await
}

/// The evidence folder of the last step of a work folder.
pub(super) async fn newest_out(remote: &Remote, work: &str) -> Result<Option<String>, AdbError> {
    let script = format!("ls -1dt -- {}.out[0-9]* 2>/dev/null | head -n 1; true", quote(work));
    let said = remote.sh("looking for evidence", &script).await?;
    Ok(Some(said.trim().to_owned()).filter(|path| path.starts_with(work)))
}

/// Copies what an agent that left no `done.json` has written until then.
pub(super) async fn rescue(remote: &Remote, out: &str, here: &Path) -> Result<(), AdbError> {
    let mut files = remote.files().await?;
    for (name, limit) in EVIDENCE.into_iter().filter(|(name, _)| *name != DONE) {
        let path = format!("{out}/{name}");
        if files.stat(&path, false).await?.is_some_and(|stat| stat.is_file()) {
            files.pull(&path, &here.join(name), limit, Over::Fail, &|_, _| ()).await?;
        }
    }
    Ok(())
}

/// Waits until the user wants to stop; for ever if nobody can want that any more.
pub(super) async fn asked(cancel: &mut Cancel) {
    if cancel.wait_for(|stop| *stop).await.is_err() {
        std::future::pending::<()>().await;
    }
}

fn broken(remote: &Remote, what: String) -> AdbError {
    AdbError::Broken { serial: remote.serial().to_owned(), what }
}

/// How far the agent has been asked to end.
#[derive(Clone, Copy, PartialEq)]
enum Stop {
    No,
    /// TERM was sent, and when.
    Term(Instant),
}

enum Seen {
    Running,
    Done,
}

struct Watch<'a> {
    remote: &'a Remote,
    agent: &'a str,
    out: &'a str,
    spec: &'a [u8],
    started: Instant,
    /// The same in the time that this process was awake.
    since: awake::Since,
    /// From the start; then nothing of the run can be alive any more.
    hard_end: Duration,
    reconnect: Duration,
    cancel: Cancel,
    boot: Option<String>,
    files: Option<Files>,
    id: Option<ProcessId>,
    /// When the agent was last asked for.
    asked: Option<Instant>,
    /// Told once the agent is seen at work.
    begun: Option<&'a Notify>,
}

impl<'a> Watch<'a> {
    /// Nothing is known of the run yet. `place` is the agent's program, its folder for evidence, and the spec as it lies there.
    fn new(remote: &'a Remote, place: (&'a str, &'a str, &'a [u8]), spec: &Spec, cancel: &Cancel, reconnect: Duration) -> Self {
        let (agent, out, bytes) = place;
        Self {
            remote,
            agent,
            out,
            spec: bytes,
            started: Instant::now(),
            since: awake::Since::now(),
            hard_end: Duration::from_millis(spec.timeout_ms.saturating_add(spec.grace_ms)).saturating_add(HARD_END),
            reconnect,
            cancel: cancel.clone(),
            boot: None,
            files: None,
            id: None,
            asked: None,
            begun: None,
        }
    }
}

impl Watch<'_> {
    /// Starts the agent in a session and group of its own. Starting it twice does no harm: it locks its folder.
    async fn start(&mut self) -> Result<(), AdbError> {
        self.remote.write(&self.file("spec.json"), self.spec, 0o644).await?;
        // Daemons without shell_v2 give a terminal, whose end hangs up all that has it: the session is left before anything goes to the
        // background. The last command is none that the shell could turn into, or `setsid` would not be waited for.
        let script = format!(
            "{BOOT}\n\
             cd {} || exit 1\n\
             $(command -v setsid) sh -c '\"$0\" run spec.json </dev/null >/dev/null 2>>agent.err &' {}\n\
             true",
            quote(self.out),
            quote(self.agent)
        );
        let said = self.remote.sh("starting the agent", &script).await?;
        self.boot = boot(&said);
        self.asked = None;
        Ok(())
    }

    /// Watches it to its end, whatever happens to the connection, and takes its evidence.
    async fn follow(&mut self, mut stop: Stop, mut cancel: Cancel, here: &Path, grace: Duration) -> Result<Done, AdbError> {
        loop {
            match self.look().await {
                Ok(Seen::Done) => break,
                Ok(Seen::Running) => {}
                Err(e) if e.is_lost() => self.mend(e).await?,
                Err(e) => return Err(e),
            }
            if self.id.is_some()
                && let Some(begun) = self.begun.take()
            {
                begun.notify_one();
            }
            let wanted = *cancel.borrow();
            stop = self.stop(stop, wanted, grace).await?;
            tokio::select! {
                () = sleep(self.pause()) => {}
                () = asked(&mut cancel), if stop == Stop::No => {}
            }
        }
        self.collect(here).await
    }

    fn pause(&self) -> Duration {
        (self.started.elapsed() / 40).clamp(POLL[0], POLL[1])
    }

    fn file(&self, name: &str) -> String {
        format!("{}/{name}", self.out)
    }

    async fn files(&mut self) -> Result<&mut Files, AdbError> {
        if self.files.is_none() {
            self.files = Some(self.remote.files().await?);
        }
        Ok(self.files.as_mut().expect("just made"))
    }

    /// One look at the run.
    async fn look(&mut self) -> Result<Seen, AdbError> {
        if self.is_done().await? {
            return Ok(Seen::Done);
        }
        if self.asked.is_some_and(|t| t.elapsed() < LIVES) {
            return Ok(Seen::Running);
        }
        if self.id.is_none() {
            let path = self.file("agent.pid");
            let text = self.files().await?.read(&path, 100).await?;
            self.id = text.and_then(|t| String::from_utf8_lossy(&t).trim().parse().ok());
        }
        let Some(id) = self.id else {
            let words = self.file("agent.err");
            let complains = self.files().await?.stat(&words, false).await?.is_some_and(|s| s.size > 0);
            if complains || self.since.elapsed() > START {
                return Err(broken(self.remote, format!("bench-agent did not start: {}", self.last_words().await)));
            }
            return Ok(Seen::Running);
        };
        self.asked = Some(Instant::now());
        let stat = self.files().await?.read(&format!("/proc/{}/stat", id.pid), 4096).await;
        let alive = match stat {
            Ok(text) => text.is_some_and(|t| id.matches(&t)),
            Err(e) if e.is_lost() => return Err(e),
            // The daemon may not look there on this device, or the process just ended; the shell knows.
            Err(_) => {
                self.files = None;
                let said = self.remote.exec(&format!("cat /proc/{}/stat", id.pid), Limits::default()).await?;
                id.matches(&said.stdout)
            }
        };
        // It may have finished between the two questions.
        if alive {
            return Ok(Seen::Running);
        }
        if self.is_done().await? { Ok(Seen::Done) } else { Err(self.gone().await) }
    }

    async fn is_done(&mut self) -> Result<bool, AdbError> {
        let path = self.file("done.json");
        let result = self.files().await?.stat(&path, false).await;
        if result.is_err() {
            self.files = None;
        }
        Ok(result?.is_some())
    }

    /// The agent is dead and left nothing; the words say why this happens. A device may have been restarted and be back before anything was
    /// seen of it, so its boot is asked; a connection that is lost meanwhile is what is told.
    async fn gone(&self) -> AdbError {
        let said = match self.remote.sh("asking why bench-agent is gone", BOOT).await {
            Ok(said) => said,
            Err(e) if e.is_lost() => return e,
            Err(_) => String::new(),
        };
        if self.is_restarted(&said) {
            return self.restarted();
        }
        broken(
            self.remote,
            format!(
                "bench-agent is gone and left no evidence: when adbd is restarted (USB mode, `adb root`, `adb tcpip`, on some phones the \
                 cable), Android ends everything that it started; the kernel's out-of-memory killer does it too. {}",
                self.last_words().await
            ),
        )
    }

    fn is_restarted(&self, said: &str) -> bool {
        self.boot.as_ref().zip(boot(said)).is_some_and(|(was, is)| *was != is)
    }

    fn restarted(&self) -> AdbError {
        broken(self.remote, "the device was restarted during the run".to_owned())
    }

    async fn last_words(&self) -> String {
        let script = format!("tail -c 600 -- {}", quote(&self.file("agent.err")));
        let said = self.remote.exec(&script, Limits::default()).await.map(|o| o.text()).unwrap_or_default();
        let said = said.trim();
        if said.is_empty() { "it said nothing".to_owned() } else { format!("its last words: {said}") }
    }

    /// Ends the agent when the user wants that, or when it is past its own hard end; once more with KILL if TERM does not help.
    async fn stop(&mut self, stop: Stop, wanted: bool, grace: Duration) -> Result<Stop, AdbError> {
        let overdue = self.started.elapsed() > self.hard_end;
        match stop {
            Stop::No if wanted || overdue => match end(self.remote, self.out, "TERM").await {
                Ok(()) => Ok(Stop::Term(Instant::now())),
                // The next look mends the connection, the round after it asks again.
                Err(e) if e.is_lost() => {
                    self.files = None;
                    Ok(Stop::No)
                }
                Err(e) => Err(e),
            },
            Stop::Term(at) if at.elapsed() > grace.saturating_add(HARD_END) => {
                let _ = end(self.remote, self.out, "KILL").await;
                Err(broken(self.remote, "bench-agent did not end when told to and was killed".to_owned()))
            }
            other => Ok(other),
        }
    }

    /// Waits for a lost device. Afterwards a look tells what became of the run.
    async fn mend(&mut self, first: AdbError) -> Result<(), AdbError> {
        self.files = None;
        let since = awake::Since::now();
        let mut patience = self.reconnect;
        let mut last = first;
        let mut wait = Duration::from_millis(100);
        let mut cancel = self.cancel.clone();
        let mut leaving = false;
        while since.elapsed() < patience {
            tokio::select! {
                back = self.back() => match back {
                    Ok(()) => return Ok(()),
                    Err(e) if e.is_lost() => last = e,
                    Err(e) => return Err(e),
                },
                // Who wants to stop does not wait for a device that may never come back; the spec's hard end stops the agent.
                () = asked(&mut cancel), if !leaving => {
                    leaving = true;
                    patience = patience.min(since.elapsed() + LEAVING);
                }
            }
            sleep(wait).await;
            wait = (wait * 2).min(Duration::from_secs(2));
        }
        Err(last)
    }

    async fn back(&mut self) -> Result<(), AdbError> {
        revive(self.remote).await?;
        let during = "looking for a run after a lost connection";
        let script = format!("{BOOT}\ncd {} && ls agent.pid done.json 2>/dev/null; true", quote(self.out));
        let said = self.remote.sh(during, &script).await?;
        let left: Vec<_> = said.lines().skip(1).collect();
        if left.contains(&"done.json") {
            return Ok(());
        }
        if self.is_restarted(&said) {
            return Err(self.restarted());
        }
        if left.contains(&"agent.pid") {
            // Asked at once whether it lives.
            self.asked = None;
            return Ok(());
        }
        // The connection was lost before the agent was there.
        (self.started, self.since) = (Instant::now(), awake::Since::now());
        self.start().await
    }

    /// Copies the evidence; `done.json` last, so that where it is, the rest is complete.
    async fn collect(&mut self, here: &Path) -> Result<Done, AdbError> {
        let mut since: Option<awake::Since> = None;
        loop {
            match self.copy(here).await {
                Ok(done) => return Ok(done),
                Err(e) if e.is_lost() && since.is_none_or(|s| s.elapsed() < self.reconnect) => {
                    since.get_or_insert_with(awake::Since::now);
                    self.mend(e).await?;
                }
                Err(e) => return Err(e),
            }
        }
    }

    async fn copy(&mut self, here: &Path) -> Result<Done, AdbError> {
        let mut cut = Vec::new();
        for (name, limit) in EVIDENCE {
            let path = self.file(name);
            let files = self.files().await?;
            // A folder of an earlier launch may have one that this one has not.
            let Some(stat) = files.stat(&path, false).await?.filter(super::sync::Stat::is_file) else { continue };
            let over = if name == DONE { Over::Fail } else { Over::Cut };
            let taken = files.pull(&path, &here.join(name), limit, over, &|_, _| ()).await?;
            if stat.size > taken {
                cut.push(format!("{name} was cut: the first {} of its {} bytes were taken", taken, stat.size));
                // What is still on its way would be read as the next answer.
                self.files = None;
            }
        }
        let done = here.join(DONE);
        if !done.exists() {
            return Err(broken(self.remote, format!("{} is no file", self.file(DONE))));
        }
        let bytes = std::fs::read(&done).map_err(AdbError::host(&done))?;
        let mut read: Done = serde_json::from_slice(&bytes).map_err(|e| broken(self.remote, format!("done.json can't be read: {e}")))?;
        read.notes.extend(cut);
        Ok(read)
    }
}

/// What [`BOOT`] printed before anything else; `None` where a device doesn't tell.
fn boot(said: &str) -> Option<String> {
    said.lines().next().map(str::trim).filter(|boot| !boot.is_empty() && *boot != "unknown").map(str::to_owned)
}

/// A server that was restarted has forgotten the devices on the network; one that is gone may be the user's own, which is started again.
pub(super) async fn revive(remote: &Remote) -> Result<(), AdbError> {
    let server = Server::reach(remote.server().address().clone()).await?;
    let serial = remote.serial();
    let listed = server.devices().await?.into_iter().find(|d| d.serial == serial);
    let why = match listed {
        Some(d) if d.state == DeviceState::Device => return Ok(()),
        Some(d) => format!("its state is {}", d.state),
        None if serial.contains(':') => {
            return connect::connect(&server, serial).await.map_err(|e| AdbError::Lost {
                serial: serial.to_owned(),
                during: "connecting again".to_owned(),
                why: e.to_string(),
            });
        }
        None => "the server does not see it".to_owned(),
    };
    Err(AdbError::Lost { serial: serial.to_owned(), during: "waiting for it".to_owned(), why })
}

/// Sends a signal to the agent of an evidence folder (its command ends with it), or KILL to both and the command's whole group. Processes
/// are recognised by their start time: a pid may belong to somebody else by now.
async fn end(remote: &Remote, out: &str, signal: &str) -> Result<(), AdbError> {
    let script = format!("{ALIVE}\ncd {} || exit 0\n{}", quote(out), ending(signal));
    remote.sh("ending a run", &script).await.map(|_| ())
}

fn ending(signal: &str) -> &'static str {
    if signal == "TERM" {
        "alive agent.pid && kill -TERM $p; true"
    } else {
        // The agent last: as long as it lives, its command's orphans are its children.
        "alive child.pid && { kill -KILL -$p; kill -KILL $p; }; alive agent.pid && kill -KILL $p; true"
    }
}

/// See [`super::Adb::end_orphans`].
pub(super) async fn end_orphans(remote: &Remote, root: &str) -> Result<Vec<String>, AdbError> {
    // TERM to every agent; those that do not end within five seconds, and commands without an agent, are killed.
    let script = format!(
        "{ALIVE}\ncd {}/work 2>/dev/null || exit 0\n\
         for d in *.out*; do [ -d \"$d\" ] || continue; for f in child.pid agent.pid; do \
           alive \"$d/$f\" && echo \"$p $s\" && [ $f = agent.pid ] && kill -TERM $p; done; done\n\
         n=0; while [ $n -lt 25 ]; do left=; for f in *.out*/*.pid; do [ -e \"$f\" ] && alive \"$f\" && left=1; done; \
           [ -z \"$left\" ] && break; n=$((n+1)); sleep 0.2; done\n\
         for d in *.out*; do [ -d \"$d\" ] || continue; ( cd \"$d\" && {} ); done; true",
        quote(root),
        ending("KILL")
    );
    let said = remote.sh("ending what an earlier bench left", &script).await?;
    Ok(said.lines().map(str::to_owned).collect())
}
