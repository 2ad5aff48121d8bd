//! This machine as a device. It uses the agent exactly as a phone will.

use std::{
    fs::{self, File},
    io::{self, Read},
    path::{Component, Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use bench_agent::{
    pidfile::ProcessId,
    spec::{Done, Spec},
};
use bench_backend_api::DeviceFacts;
use tokio::{
    io::{AsyncRead, AsyncReadExt},
    process::Command,
};

use super::{Adopted, Answer, Cancel, Content, Device, DeviceError, Placed, ask, facts};

/// Name of this machine in tables and folders.
pub const LOCAL: &str = "local";

/// This machine.
#[derive(Debug)]
pub struct Local {
    facts: DeviceFacts,
    agent: PathBuf,
    work: PathBuf,
    lock: Option<File>,
}

impl Local {
    /// `agent` is the agent's program, `work` the folder in which work folders are made.
    pub fn new(agent: PathBuf, work: PathBuf, soc_model: u32, htp_arch: u32) -> Self {
        Self { facts: facts::local(soc_model, htp_arch), agent, work, lock: None }
    }

    /// The lock of this device. Agents share it: if bench is killed, the next run waits until the last agent has ended its command.
    #[must_use]
    pub fn locked(self, lock: File) -> Self {
        Self { lock: Some(lock), ..self }
    }
}

/// A name inside a folder: no way out of it, whatever a scenario or a device says.
fn inside(folder: &str, name: &str) -> Result<PathBuf, DeviceError> {
    let path = Path::new(name);
    if name.is_empty() || !path.components().all(|c| matches!(c, Component::Normal(_))) {
        let source = io::Error::new(io::ErrorKind::InvalidInput, "not a path inside the work folder");
        return Err(DeviceError::Io { path: path.to_path_buf(), source });
    }
    Ok(Path::new(folder).join(path))
}

/// A place in the work folder where nothing stands. What stood there may be a hard link: writing over it, or copying the same file
/// onto it, would destroy the user's own file.
fn new_place(folder: &str, name: &str) -> Result<PathBuf, DeviceError> {
    let path = inside(folder, name)?;
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).map_err(DeviceError::io(parent))?;
    }
    match fs::remove_file(&path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(DeviceError::Io { path, source: e }),
        _ => Ok(path),
    }
}

/// Makes a file a program. One that is not yet is copied first: what stands in a work folder may be a link to the user's own.
#[cfg(unix)]
fn make_program(path: &Path) -> Result<(), DeviceError> {
    use std::os::unix::fs::PermissionsExt;
    let mode = fs::metadata(path).map_err(DeviceError::io(path))?.permissions().mode();
    if mode & 0o111 == 0 {
        let bytes = fs::read(path).map_err(DeviceError::io(path))?;
        fs::remove_file(path).map_err(DeviceError::io(path))?;
        fs::write(path, bytes).map_err(DeviceError::io(path))?;
        fs::set_permissions(path, fs::Permissions::from_mode(mode | 0o755)).map_err(DeviceError::io(path))?;
    }
    Ok(())
}
#[cfg(not(unix))]
fn make_program(_: &Path) -> Result<(), DeviceError> {
    Ok(())
}

impl Device for Local {
    fn facts(&self) -> &DeviceFacts {
        &self.facts
    }

    async fn work_folder(&self, name: &str) -> Result<String, DeviceError> {
        let path = self.work.join(name);
        if path.exists() {
            fs::remove_dir_all(&path).map_err(DeviceError::io(&path))?;
        }
        fs::create_dir_all(&path).map_err(DeviceError::io(&path))?;
        Ok(path.to_string_lossy().into_owned())
    }

    async fn place(&self, folder: &str, files: &[Placed<'_>]) -> Result<(), DeviceError> {
        for file in files {
            let to = new_place(folder, file.name)?;
            match file.content {
                Content::Host(host) => {
                    // A hard link costs nothing; across file systems it becomes a copy. Of a symbolic link its file is meant.
                    let host = host.canonicalize().map_err(DeviceError::io(host))?;
                    if fs::hard_link(&host, &to).is_err() {
                        fs::copy(&host, &to).map_err(DeviceError::io(&host))?;
                    }
                }
                Content::Bytes(bytes) => fs::write(&to, bytes).map_err(DeviceError::io(&to))?,
            }
            if file.executable {
                make_program(&to)?;
            }
        }
        Ok(())
    }

    async fn run(&self, spec: &Spec, mut cancel: Cancel) -> Result<Done, DeviceError> {
        let out = Path::new(&spec.out_dir);
        fs::create_dir_all(out).map_err(DeviceError::io(out))?;
        let spec_file = out.join("spec.json");
        let bytes = serde_json::to_vec_pretty(spec).map_err(|e| DeviceError::Agent(e.to_string()))?;
        fs::write(&spec_file, bytes).map_err(DeviceError::io(&spec_file))?;
        let mut command = Command::new(&self.agent);
        // A group of its own: Ctrl-C in the terminal must reach bench alone, which then asks the agent to stop.
        #[cfg(unix)]
        command.process_group(0);
        command.arg("run").arg(&spec_file).stdin(self.agent_stdin()?).stdout(Stdio::null()).stderr(Stdio::piped());
        let child = command.spawn().map_err(|e| DeviceError::Agent(format!("{}: {e}", self.agent.display())))?;
        let pid = child.id();
        let mut finished = Box::pin(child.wait_with_output());
        let output = tokio::select! {
            output = &mut finished => output,
            () = stopped(&mut cancel) => {
                terminate(pid);
                finished.await
            }
        };
        let output = output.map_err(|e| DeviceError::Agent(e.to_string()))?;
        // A full disk may have cost the command its events or the agent its evidence: neither is to blame.
        room(out)?;
        room(Path::new(&spec.cwd))?;
        let done = out.join("done.json");
        let bytes = fs::read(&done).map_err(|_| {
            let words = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            DeviceError::Agent(format!("left no evidence ({}): {words}", output.status))
        })?;
        serde_json::from_slice(&bytes).map_err(|e| DeviceError::Agent(format!("{}: {e}", done.display())))
    }

    async fn fetch(&self, folder: &str, name: &str, host: &Path, limit: u64) -> Result<bool, DeviceError> {
        let from = inside(folder, name)?;
        let Ok(meta) = fs::symlink_metadata(&from) else { return Ok(false) };
        if !meta.is_file() {
            return Ok(false);
        }
        let file = File::open(&from).map_err(DeviceError::io(&from))?;
        let mut to = File::create(host).map_err(DeviceError::io(host))?;
        io::copy(&mut file.take(limit), &mut to).map_err(DeviceError::io(host))?;
        Ok(true)
    }

    async fn ask(&self, argv: &[String], limit: Duration) -> Result<Answer, DeviceError> {
        let Some((program, words)) = argv.split_first() else { return Err(DeviceError::Agent("asked for no program".to_owned())) };
        let mut command = Command::new(program);
        command.args(words).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        #[cfg(unix)]
        command.process_group(0);
        let mut child = match command.spawn() {
            Ok(child) => child,
            Err(e) => {
                let code = if e.kind() == io::ErrorKind::NotFound { 127 } else { 126 };
                return Ok(Answer { code: Some(code), stdout: Vec::new(), stderr: format!("{program}: {e}").into_bytes() });
            }
        };
        let pid = child.id();
        let (out, err) = (child.stdout.take(), child.stderr.take());
        let work = async { tokio::try_join!(whole(out), whole(err), child.wait()) };
        match tokio::time::timeout(limit, work).await {
            Ok(Ok((stdout, stderr, status))) => Ok(Answer { code: status.code(), stdout, stderr }),
            Ok(Err(e)) => Err(DeviceError::Io { path: program.into(), source: e }),
            Err(_) => {
                end_group(pid);
                Err(DeviceError::Slow { command: argv.join(" "), limit })
            }
        }
    }

    async fn agent(&self) -> Result<String, DeviceError> {
        Ok(self.agent.to_string_lossy().into_owned())
    }

    async fn rescue(&self, _: &str, _: &Path) -> Result<(), DeviceError> {
        // The agent writes into the host's folder here.
        Ok(())
    }

    async fn adopt(&self, name: &str, host: &Path, cancel: Cancel) -> Result<Option<Adopted>, DeviceError> {
        let work = self.work.join(name);
        if !work.is_dir() {
            return Ok(None);
        }
        let agent =
            || fs::read_to_string(host.join("agent.pid")).ok().and_then(|t| t.parse::<ProcessId>().ok()).filter(ProcessId::is_alive);
        let mut told = false;
        while let Some(process) = agent() {
            if *cancel.borrow() && !std::mem::replace(&mut told, true) {
                terminate(u32::try_from(process.pid).ok());
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        let done = fs::read(host.join("done.json")).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
        Ok(Some(Adopted { work: work.to_string_lossy().into_owned(), done }))
    }

    async fn remove(&self, folder: &str) {
        let _ = fs::remove_dir_all(folder);
    }

    async fn end_orphans(&self, launches: &[PathBuf]) -> Result<Vec<String>, DeviceError> {
        for dir in launches {
            end_orphan(dir);
        }
        Ok(Vec::new())
    }
}

impl Local {
    /// The agent never reads its standard input: it is only a way to share the lock, which belongs to the open file.
    fn agent_stdin(&self) -> Result<Stdio, DeviceError> {
        match &self.lock {
            Some(lock) => Ok(lock.try_clone().map_err(DeviceError::io("local.lock"))?.into()),
            None => Ok(Stdio::null()),
        }
    }
}

/// An error if the disk of a folder has no room for a few small files.
fn room(folder: &Path) -> Result<(), DeviceError> {
    let probe = folder.join("room.tmp");
    let written = fs::write(&probe, vec![0; 32 << 10]);
    let _ = fs::remove_file(&probe);
    written.map_err(DeviceError::io(folder))
}

/// Ends the agent of a launch that a killed orchestrator left behind, and waits until it is gone. An agent that was itself
/// killed leaves its command: that is ended too.
pub fn end_orphan(launch_dir: &Path) {
    // Each step of a launch with several has a folder of its own.
    let steps = fs::read_dir(launch_dir).into_iter().flatten().filter_map(Result::ok).map(|e| e.path()).filter(|p| p.is_dir());
    let folders: Vec<PathBuf> = steps.chain([launch_dir.to_path_buf()]).collect();
    for path in folders.iter().flat_map(|dir| ["agent.pid", "child.pid"].map(|file| dir.join(file))) {
        let Some(process) = fs::read_to_string(path).ok().and_then(|t| t.parse::<ProcessId>().ok()) else { continue };
        let mut tries = 0;
        while process.is_alive() && tries < 100 {
            if tries % 40 == 0 {
                terminate(u32::try_from(process.pid).ok());
            }
            std::thread::sleep(Duration::from_millis(50));
            tries += 1;
        }
    }
}

/// Waits until the user wants to stop; for ever if nobody can want that any more.
async fn stopped(cancel: &mut Cancel) {
    if cancel.wait_for(|stop| *stop).await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// All of a stream; an error if it is more than an answer may have.
async fn whole(stream: Option<impl AsyncRead + Unpin>) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if let Some(stream) = stream {
        stream.take(ask::LIMIT + 1).read_to_end(&mut bytes).await?;
    }
    if bytes.len() as u64 > ask::LIMIT { Err(io::Error::other("the answer has over 16 MiB")) } else { Ok(bytes) }
}

/// Kills a command that is past its time, with what it started in its group.
#[cfg(unix)]
fn end_group(pid: Option<u32>) {
    use nix::{
        sys::signal::{Signal, killpg},
        unistd::Pid,
    };
    if let Some(pid) = pid.and_then(|p| i32::try_from(p).ok()) {
        let _ = killpg(Pid::from_raw(pid), Signal::SIGKILL);
    }
}
#[cfg(not(unix))]
fn end_group(_: Option<u32>) {}

#[cfg(unix)]
fn terminate(pid: Option<u32>) {
    use nix::{
        sys::signal::{Signal, kill},
        unistd::Pid,
    };
    if let Some(pid) = pid.and_then(|p| i32::try_from(p).ok()) {
        let _ = kill(Pid::from_raw(pid), Signal::SIGTERM);
    }
}
#[cfg(not(unix))]
fn terminate(_: Option<u32>) {}
