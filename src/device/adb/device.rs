//! An ADB device as a [`Device`]: work folders, staging by content, and runs under the agent that survive the connection.
//!
//! On the device, below the work root: `store/` (see `stage`), `work/<name>/` for one launch, `work/<name>.out<N>/` for the agent's
//! evidence of its steps. The evidence is copied to the host's `spec.out_dir`, `done.json` last.

use std::{
    fmt,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use bench_agent::spec::{Done, Spec};
use bench_backend_api::{DeviceClass, DeviceFacts};
use tokio::time::{Instant, sleep};

use super::{
    AdbError, Facts, Server, facts,
    remote::{Patience, Remote},
    run,
    shell::{Limits, quote},
    stage::Store,
    sync::Over,
};
use crate::device::{Cancel, Device, DeviceError};

/// How long a step before or after a run waits for a lost device. Shorter than a run may, because nobody can call it off.
const ABSENCE: Duration = Duration::from_secs(30);

/// Called with a file's name, the bytes sent and all bytes.
pub type OnProgress = Arc<dyn Fn(&str, u64, u64) + Send + Sync>;

/// How a device is used.
#[derive(Clone)]
pub struct Options {
    /// The agent's program, built for the device.
    pub agent: std::path::PathBuf,
    /// The work root on the device.
    pub root: String,
    /// QNN's number of the chip.
    pub soc_model: u32,
    /// Hexagon architecture.
    pub htp_arch: u32,
    /// What a device that is no phone is (a board); found out when absent.
    pub class: Option<DeviceClass>,
    /// When a silent device counts as gone.
    pub patience: Patience,
    /// How long a lost device is waited for before a run on it is given up.
    pub reconnect: Duration,
    /// Told about every block of a staged file.
    pub progress: Option<OnProgress>,
}

impl Options {
    /// The usual ones, for an agent.
    pub fn new(agent: impl Into<std::path::PathBuf>) -> Self {
        Self {
            agent: agent.into(),
            root: "/data/local/tmp/bench".to_owned(),
            soc_model: 0,
            htp_arch: 0,
            class: None,
            patience: Patience::default(),
            reconnect: Duration::from_mins(5),
            progress: None,
        }
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
    facts: DeviceFacts,
    store: Store,
    steps: AtomicU64,
}

impl Adb {
    /// The device of a serial; asks it what it is.
    pub async fn open(server: Server, serial: &str, options: Options) -> Result<Self, AdbError> {
        let remote = Remote::new(server, serial, options.patience);
        let said = facts::ask(&remote, &options.root).await?;
        let facts = device_facts(serial, &said, &options);
        let store = Store::new(&options.root);
        Ok(Self { remote, options, said, facts, store, steps: AtomicU64::new(0) })
    }

    /// What the device said about itself.
    pub fn said(&self) -> &Facts {
        &self.said
    }

    /// The device for single requests: shell, stat, push, pull.
    pub fn remote(&self) -> &Remote {
        &self.remote
    }

    /// Ends what an earlier `bench` left running below the work root; what was found, as `pid start-time` of agents and commands.
    /// Only for whoever holds the lock of the device.
    pub async fn end_orphans(&self) -> Result<Vec<String>, AdbError> {
        run::end_orphans(&self.remote, &self.options.root).await
    }

    async fn stage_file(&self, host: &Path, folder: &str, name: &str) -> Result<(), AdbError> {
        let to = inside(folder, name)?;
        let label = host.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let progress = |sent, all| {
            if let Some(told) = &self.options.progress {
                told(&label, sent, all);
            }
        };
        let stored = self.store.put(&self.remote, host, &progress).await?;
        // Some systems' policies refuse hard links to this user.
        let (from, to, parent) = (quote(&stored), quote(&to), quote(parent(&to)));
        let script = format!("mkdir -p -- {parent} && {{ ln -f -- {from} {to} 2>/dev/null || ln -sf -- {from} {to}; }}");
        self.remote.sh("staging a file", &script).await.map(|_| ())
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

    /// Does something that may be done twice, again if the device was lost meanwhile and comes back.
    async fn again<T, F: Future<Output = Result<T, AdbError>> + Send>(&self, mut work: impl FnMut() -> F + Send) -> Result<T, AdbError> {
        let until = Instant::now() + self.options.reconnect.min(ABSENCE);
        loop {
            let error = match work().await {
                Err(e) if e.is_lost() => e,
                result => return result,
            };
            loop {
                if Instant::now() >= until {
                    return Err(error);
                }
                sleep(Duration::from_millis(300)).await;
                if run::revive(&self.remote).await.is_ok() {
                    break;
                }
            }
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
    // What ran where decides: programs of a PC's architecture are no phone, whatever the properties say.
    let found = if arch.starts_with("aarch64") || arch.starts_with("arm") { DeviceClass::Phone } else { DeviceClass::Emulator };
    DeviceFacts {
        name: serial.to_owned(),
        class: options.class.unwrap_or(found),
        os: if said.android.is_some() { "android" } else { "linux" }.to_owned(),
        arch,
        cpu: said.soc().map(|s| s.value.clone()),
        cores: said.cores,
        memory_mb: said.memory_mb,
        kernel: said.kernel.clone(),
        soc_model: options.soc_model,
        htp_arch: options.htp_arch,
        remote: true,
    }
}

impl Device for Adb {
    fn facts(&self) -> &DeviceFacts {
        &self.facts
    }

    async fn work_folder(&self, name: &str) -> Result<String, DeviceError> {
        let path = inside(&self.work(), name)?;
        let q = quote(&path);
        let script = format!("rm -rf -- {q} {q}.out[0-9]* && mkdir -p -- {q}");
        self.again(|| self.remote.sh("making a work folder", &script)).await?;
        Ok(path)
    }

    async fn stage(&self, host: &Path, folder: &str, name: &str) -> Result<(), DeviceError> {
        Ok(self.again(|| self.stage_file(host, folder, name)).await?)
    }

    async fn write(&self, folder: &str, name: &str, bytes: &[u8]) -> Result<(), DeviceError> {
        let path = inside(folder, name)?;
        Ok(self.again(|| self.remote.write(&path, bytes, 0o644)).await?)
    }

    async fn run(&self, spec: &Spec, cancel: Cancel) -> Result<Done, DeviceError> {
        let agent = self.again(|| self.store.put(&self.remote, &self.options.agent, &|_, _| ())).await?;
        let out = format!("{}.out{}", spec.cwd.trim_end_matches('/'), self.steps.fetch_add(1, Ordering::Relaxed));
        Ok(run::run(&self.remote, &agent, &out, spec, cancel, self.options.reconnect).await?)
    }

    async fn fetch(&self, folder: &str, name: &str, host: &Path, limit: u64) -> Result<bool, DeviceError> {
        Ok(self.again(|| self.fetch_file(folder, name, host, limit)).await?)
    }

    async fn remove(&self, folder: &str) {
        // Only what `work_folder` has made.
        if folder.strip_prefix(&self.work()).is_some_and(|rest| rest.len() > 1 && rest.starts_with('/')) {
            let q = quote(folder);
            let _ = self.remote.exec(&format!("rm -rf -- {q} {q}.out[0-9]*"), Limits::default()).await;
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
}
