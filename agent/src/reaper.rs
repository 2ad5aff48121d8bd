//! Signals, waiting for processes, and the end of the tree. The agent is the subreaper of everything below it: a process whose parent is
//! gone becomes the agent's own child, whatever its group or session. So "no children left" means that the whole tree is gone.

use std::collections::HashSet;
use std::io;
use std::os::fd::AsFd;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::prctl;
use nix::sys::signal::{SigSet, Signal, kill};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

use crate::clock;
use crate::tree::{self, Tree};

const MS: u64 = 1_000_000;
/// While ending: how often somebody new is looked for.
const LOOK_NS: u64 = 50 * MS;
/// After the first KILL: how long to go on. The sum of this, the time-out and the grace is the hard end of a run.
const KILL_NS: u64 = 5000 * MS;

/// How the command itself ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exit {
    /// `CLOCK_MONOTONIC` ns when it was reaped.
    pub at_ns: u64,
    /// Exit code.
    pub code: Option<i32>,
    /// Signal.
    pub signal: Option<i32>,
}

/// Waits for signals and processes.
pub struct Reaper {
    signals: SignalFd,
    tree: Tree,
    command: Option<i32>,
    exit: Option<Exit>,
    childless: bool,
    subreaper: bool,
    cancelled: u32,
}

impl Reaper {
    /// Becomes the subreaper, and blocks the signals that are then read in [`Self::wait`]; threads started later inherit that.
    pub fn new() -> io::Result<Self> {
        let mask: SigSet = [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP, Signal::SIGCHLD].into_iter().collect();
        mask.thread_block()?;
        let signals = SignalFd::with_flags(&mask, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)?;
        // Every Linux since 3.4 has it, qemu-user 7 does not.
        let subreaper = prctl::set_child_subreaper(true).is_ok();
        let tree = Tree::below(std::process::id().cast_signed());
        Ok(Self { signals, tree, command: None, exit: None, childless: true, subreaper, cancelled: 0 })
    }

    /// Names the process whose exit is the command's.
    pub fn follow(&mut self, pid: i32) {
        self.command = Some(pid);
        self.childless = false;
        if !self.subreaper {
            self.tree.include_session(pid);
        }
    }

    /// Whether orphans of the tree become our children.
    pub fn is_subreaper(&self) -> bool {
        self.subreaper
    }

    /// The command's exit, once it was reaped.
    pub fn exit(&self) -> Option<Exit> {
        self.exit
    }

    /// How many TERM and INT came.
    pub fn cancelled(&self) -> u32 {
        self.cancelled
    }

    /// The processes of the tree that still run.
    pub fn living(&mut self) -> Vec<i32> {
        if self.gone() { Vec::new() } else { self.tree.living() }
    }

    /// Waits until `until_ns` or until something came; reaps.
    pub fn wait(&mut self, until_ns: u64) {
        let left = until_ns.saturating_sub(clock::monotonic_ns()).div_ceil(MS);
        let timeout = PollTimeout::try_from(left.min(60_000)).unwrap_or(PollTimeout::MAX);
        // An error (EINTR) is as good as a wake: everything is looked at again.
        let _ = poll(&mut [PollFd::new(self.signals.as_fd(), PollFlags::POLLIN)], timeout);
        while let Ok(Some(signal)) = self.signals.read_signal() {
            // HUP is read and forgotten: a dead cable must not end the run.
            if [Signal::SIGTERM, Signal::SIGINT].iter().any(|&s| s as u32 == signal.ssi_signo) {
                self.cancelled += 1;
            }
        }
        self.reap();
    }

    /// Whether nobody is left.
    fn gone(&mut self) -> bool {
        self.childless && (self.subreaper || self.tree.living().is_empty())
    }

    fn reap(&mut self) {
        loop {
            let (pid, code, signal) = match waitpid(None, Some(WaitPidFlag::WNOHANG | WaitPidFlag::__WALL)) {
                Ok(WaitStatus::Exited(pid, code)) => (pid, Some(code), None),
                Ok(WaitStatus::Signaled(pid, signal, _)) => (pid, None, Some(signal as i32)),
                Ok(WaitStatus::StillAlive) => {
                    self.childless = false;
                    return;
                }
                Ok(_) | Err(Errno::EINTR) => continue,
                // Ended by a number that nix does not know (a real-time signal): somebody is reaped, and who is not said.
                Err(Errno::EINVAL) => match self.command {
                    Some(pid) if tree::read_stat(pid, &mut Vec::new()).is_none() => (Pid::from_raw(pid), None, None),
                    _ => continue,
                },
                Err(_) => {
                    self.childless = true;
                    return;
                }
            };
            if self.command == Some(pid.as_raw()) && self.exit.is_none() {
                self.exit = Some(Exit { at_ns: clock::monotonic_ns(), code, signal });
            }
        }
    }

    /// TERM, the grace, KILL: until nobody is left. Gives those that would not go. A second cancel ends the grace.
    pub fn end_tree(&mut self, grace_ms: u64) -> Vec<i32> {
        self.reap();
        let patience = self.cancelled.max(1);
        let kill_at = clock::monotonic_ns().saturating_add(grace_ms.saturating_mul(MS));
        let mut asked = HashSet::new();
        while !self.gone() && clock::monotonic_ns() < kill_at && self.cancelled <= patience {
            for pid in self.tree.living() {
                if asked.insert(pid) {
                    signal(pid, Signal::SIGTERM);
                    // One that is stopped would only get it when it goes on.
                    signal(pid, Signal::SIGCONT);
                }
            }
            self.wait(kill_at.min(clock::monotonic_ns() + LOOK_NS));
        }
        let give_up = clock::monotonic_ns() + KILL_NS;
        while !self.gone() && clock::monotonic_ns() < give_up {
            // Again and again: who forks faster than we look is caught in the end, since its parents are killed too.
            for pid in self.tree.living() {
                signal(pid, Signal::SIGKILL);
            }
            self.wait(clock::monotonic_ns() + 10 * MS);
        }
        self.living()
    }
}

fn signal(pid: i32, signal: Signal) {
    // Gone already, or not ours to signal (setuid): the loop above finds out.
    let _ = kill(Pid::from_raw(pid), signal);
}
