//! Which processes belong to the command: all descendants of the agent, which is their subreaper, so that nobody escapes to init.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

use crate::procfs::{self, Stat};

/// How descendants are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// `/proc/PID/task/*/children`, cheap; needs `CONFIG_PROC_CHILDREN`, which many phones lack.
    Children,
    /// The parents of all processes in `/proc`.
    Scan,
}

/// Finds the descendants of one process.
pub struct Tree {
    root: i32,
    method: Method,
    /// Known to belong to somebody else. Reading the stat of 800 processes of a phone takes 10 ms, of the new ones nothing.
    strangers: HashSet<i32>,
    /// Also whoever is in this session, wherever its parents went.
    session: Option<i32>,
    buffer: Vec<u8>,
}

impl Tree {
    /// The tree below `root`, which is itself not part of it.
    pub fn below(root: i32) -> Self {
        let method = if Path::new(&format!("/proc/{root}/task/{root}/children")).exists() { Method::Children } else { Method::Scan };
        Self { root, method, strangers: HashSet::new(), session: None, buffer: Vec::new() }
    }

    /// How descendants are found here.
    pub fn method(&self) -> Method {
        self.method
    }

    /// Counts the members of a session as living too: for a kernel (or emulator) that knows no subreaper. Who leaves both is lost.
    pub fn include_session(&mut self, session: i32) {
        self.session = Some(session);
    }

    /// All descendants, zombies included, in no order. What others told apart before is trusted.
    pub fn descendants(&mut self) -> Vec<i32> {
        match self.method {
            Method::Children => self.by_children(),
            Method::Scan => self.by_scan(),
        }
    }

    /// All descendants that still run, with nothing trusted from before.
    pub fn living(&mut self) -> Vec<i32> {
        self.strangers.clear();
        let mut pids = self.descendants();
        if let Some(session) = self.session {
            for pid in all_pids() {
                if !pids.contains(&pid) && read_stat(pid, &mut self.buffer).is_some_and(|stat| stat.session == session) {
                    pids.push(pid);
                }
            }
        }
        pids.retain(|&pid| read_stat(pid, &mut self.buffer).is_some_and(|stat| stat.state != b'Z' && stat.state != b'X'));
        pids
    }

    fn by_children(&mut self) -> Vec<i32> {
        let mut found = Vec::new();
        let mut next = Some(self.root);
        let mut done = 0;
        while let Some(pid) = next {
            // Every thread has its own list. A process may end meanwhile: then there is nothing to read.
            for task in fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten() {
                self.buffer.clear();
                let read = File::open(task.path().join("children")).and_then(|mut f| f.read_to_end(&mut self.buffer));
                if read.is_ok() {
                    for child in procfs::parse_children(&self.buffer) {
                        if !found.contains(&child) {
                            found.push(child);
                        }
                    }
                }
            }
            next = found.get(done).copied();
            done += 1;
        }
        found
    }

    fn by_scan(&mut self) -> Vec<i32> {
        let pids: HashSet<i32> = all_pids().collect();
        self.strangers.retain(|pid| pids.contains(pid));
        let mut parents = HashMap::new();
        for &pid in pids.difference(&self.strangers) {
            if let Some(stat) = read_stat(pid, &mut self.buffer) {
                parents.insert(pid, stat.ppid);
            }
        }
        parents.remove(&self.root);
        let found = split(self.root, &parents, &mut self.strangers);
        self.strangers.remove(&self.root);
        found
    }
}

/// The descendants of `root` among `parents` (child to parent); who surely is none joins the strangers.
fn split(root: i32, parents: &HashMap<i32, i32>, strangers: &mut HashSet<i32>) -> Vec<i32> {
    let mut found: HashSet<i32> = HashSet::new();
    loop {
        let before = found.len() + strangers.len();
        for (&pid, &parent) in parents {
            if parent == root || found.contains(&parent) {
                found.insert(pid);
            } else if parent <= 1 || strangers.contains(&parent) {
                // Only a known parent makes a stranger: one that just vanished may have been of the tree, and its child is ours next time.
                strangers.insert(pid);
            }
        }
        if found.len() + strangers.len() == before {
            return found.into_iter().collect();
        }
    }
}

fn all_pids() -> impl Iterator<Item = i32> {
    fs::read_dir("/proc").into_iter().flatten().flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// The stat of a process, if it is there.
pub fn read_stat(pid: i32, buffer: &mut Vec<u8>) -> Option<Stat> {
    buffer.clear();
    File::open(format!("/proc/{pid}/stat")).ok()?.read_to_end(buffer).ok()?;
    procfs::parse_stat(buffer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn an_orphan_of_a_vanished_parent_is_not_a_stranger() {
        // 10 is the root, 20 and 21 below it, 30 the init's, 40's parent 39 is not to be seen.
        let parents = HashMap::from([(20, 10), (21, 20), (30, 1), (31, 30), (40, 39)]);
        let mut strangers = HashSet::new();
        let mut found = split(10, &parents, &mut strangers);
        found.sort_unstable();
        assert_eq!(found, [20, 21]);
        let mut others: Vec<_> = strangers.into_iter().collect();
        others.sort_unstable();
        assert_eq!(others, [30, 31]);
    }

    #[test]
    fn both_methods_find_a_grandchild() {
        let mut child = Command::new("sh").args(["-c", "sleep 30 & echo; wait"]).stdout(std::process::Stdio::piped()).spawn().unwrap();
        let mut line = [0];
        child.stdout.as_mut().unwrap().read_exact(&mut line).unwrap();
        let me = std::process::id().cast_signed();
        let mut below = Tree::below(child.id().cast_signed());
        let grandchild = below.descendants();
        assert_eq!(grandchild.len(), 1);
        below.method = Method::Scan;
        assert_eq!(below.descendants(), grandchild);
        assert_eq!(below.living(), grandchild);
        let mut mine = Tree::below(me);
        mine.method = Method::Scan;
        for _ in 0..2 {
            let all = mine.descendants();
            assert!(all.contains(&child.id().cast_signed()) && all.contains(&grandchild[0]));
            assert!(!all.contains(&me) && !all.contains(&1));
        }
        let _ = Command::new("kill").arg(grandchild[0].to_string()).status();
        let _ = child.wait();
    }
}
