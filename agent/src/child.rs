//! Starting the command.

use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use nix::sys::prctl;
use nix::sys::signal::{SigSet, Signal};
use nix::unistd::setsid;

use crate::spec::Spec;

/// Starts it with piped output streams, in a session of its own. An error is a sentence for a human.
pub fn spawn(spec: &Spec) -> Result<Child, String> {
    let (program, arguments) = spec.argv.split_first().ok_or("argv names no program")?;
    if !Path::new(&spec.cwd).is_dir() {
        return Err(format!("cannot start {program}: its working directory {} is not a directory", spec.cwd));
    }
    let stdin = match &spec.stdin {
        None => Stdio::null(),
        Some(path) => File::open(spec.in_cwd(path)).map_err(|e| format!("cannot open {path} as standard input: {e}"))?.into(),
    };
    let mut command = Command::new(program);
    command.args(arguments).env_clear().envs(&spec.env).current_dir(&spec.cwd);
    command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped());
    // SAFETY: between fork and exec only system calls that are async-signal-safe, no allocation and no lock.
    #[expect(unsafe_code, reason = "a child would inherit our blocked signals; std has no safe way to unblock them before exec")]
    unsafe {
        command.pre_exec(before_exec);
    }
    command.spawn().map_err(|e| explain(spec, program, &e))
}

fn before_exec() -> io::Result<()> {
    // A session and not only a group: without a terminal nothing can hang it up or stop it for writing.
    setsid()?;
    // Should the agent itself be killed (its adbd died, say), nobody would be left to end the command. A run without it is still a run.
    let _ = prctl::set_pdeathsig(Signal::SIGKILL);
    SigSet::empty().thread_set_mask()?;
    Ok(())
}

fn explain(spec: &Spec, program: &str, error: &io::Error) -> String {
    let path = if program.contains('/') { spec.in_cwd(program).display().to_string() } else { program.to_owned() };
    let exists = program.contains('/') && spec.in_cwd(program).exists();
    let hint = match error.raw_os_error() {
        Some(libc_errno::ENOENT) if exists => {
            "; the file exists, so its interpreter or dynamic loader does not (`file` and `readelf -l` name it)"
        }
        Some(libc_errno::ENOENT) if !program.contains('/') => "; it is in no folder of the PATH in env",
        Some(libc_errno::EACCES) => {
            "; it needs the execute permission and a folder that is not mounted noexec (on Android: below /data/local/tmp)"
        }
        Some(libc_errno::ENOEXEC) => "; it is no program for this CPU, or a script without #!",
        _ => "",
    };
    format!("cannot start {path}: {error}{hint}")
}

/// The few error numbers that get a hint; the same on every Linux architecture.
mod libc_errno {
    pub const ENOENT: i32 = nix::errno::Errno::ENOENT as i32;
    pub const ENOEXEC: i32 = nix::errno::Errno::ENOEXEC as i32;
    pub const EACCES: i32 = nix::errno::Errno::EACCES as i32;
}
