//! dma-bufs that processes hold: where the NPU's weights, KV cache and I/O live (rpcmem, ION, dma-heap), and which no RSS shows.
//!
//! `/proc/PID/fd/N` of a dma-buf points to `/dmabuf:NAME` (its file system's dynamic name, since kernel 5.3) or `anon_inode:dmabuf` (before), and
//! `/proc/PID/fdinfo/N` has after the usual lines (Documentation/filesystems/proc.rst, 3.8 "DMA Buffer files"):
//!
//! ```text
//! pos:    0
//! flags:  04002
//! mnt_id: 9
//! ino:    63107
//! size:   32768
//! count:  2
//! exp_name:       system-heap
//! ```
//!
//! `size` is in bytes; `ino` (of any file since 5.14) tells buffers apart, which several descriptors and processes share: each counts once. Kernels
//! without it give the inode by `stat` of the descriptor; before 5.3 all buffers share one inode, and there they can't be told apart.
//!
//! What this can't see: a buffer whose descriptors are all closed and that only a mapping or a driver (FastRPC) still holds. It is a lower bound.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use crate::procfs;

/// Where open files of processes are looked up; the kernel's procfs but in tests.
pub trait OpenFiles {
    /// The descriptors of a process.
    fn list(&self, pid: i32) -> io::Result<Vec<i32>>;
    /// What a descriptor points to.
    fn target(&self, pid: i32, fd: i32) -> io::Result<PathBuf>;
    /// The text of its fdinfo.
    fn info(&self, pid: i32, fd: i32) -> io::Result<Vec<u8>>;
    /// Its inode.
    fn inode(&self, pid: i32, fd: i32) -> io::Result<u64>;
}

/// A folder like `/proc`.
pub struct Proc(pub PathBuf);

impl OpenFiles for Proc {
    fn list(&self, pid: i32) -> io::Result<Vec<i32>> {
        let entries = fs::read_dir(self.0.join(format!("{pid}/fd")))?;
        Ok(entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect())
    }

    fn target(&self, pid: i32, fd: i32) -> io::Result<PathBuf> {
        fs::read_link(self.0.join(format!("{pid}/fd/{fd}")))
    }

    fn info(&self, pid: i32, fd: i32) -> io::Result<Vec<u8>> {
        fs::read(self.0.join(format!("{pid}/fdinfo/{fd}")))
    }

    fn inode(&self, pid: i32, fd: i32) -> io::Result<u64> {
        fs::metadata(self.0.join(format!("{pid}/fd/{fd}"))).map(|m| m.ino())
    }
}

/// The dma-bufs of some processes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Buffers {
    /// Bytes of distinct ones.
    pub bytes: u64,
    /// How many.
    pub count: usize,
    /// Something was there and could not be read: then `bytes` misses some.
    pub unread: Option<Unread>,
}

/// Why a buffer could not be counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unread {
    /// The kernel's refusal, if it was one.
    pub errno: Option<i32>,
    /// What, in words.
    pub what: &'static str,
}

/// Looks at every descriptor of the processes. One that vanishes meanwhile, process or descriptor, has no buffers any more.
pub fn scan(files: &impl OpenFiles, pids: &[i32]) -> Buffers {
    let mut sizes: HashMap<u64, u64> = HashMap::new();
    let mut unread = None;
    let mut note = |error: &io::Error, what| {
        if !is_gone(error) {
            unread.get_or_insert(Unread { errno: error.raw_os_error(), what });
        }
    };
    for &pid in pids {
        let fds = match files.list(pid) {
            Ok(fds) => fds,
            Err(e) => {
                note(&e, "/proc/PID/fd");
                continue;
            }
        };
        for fd in fds {
            let old = match files.target(pid, fd) {
                Ok(target) if target.as_os_str().as_bytes().starts_with(b"/dmabuf") => false,
                Ok(target) if target.as_os_str().as_bytes().starts_with(b"anon_inode:dmabuf") => true,
                Ok(_) => continue,
                Err(e) => {
                    note(&e, "/proc/PID/fd");
                    continue;
                }
            };
            let info = match files.info(pid, fd) {
                Ok(info) => info,
                Err(e) => {
                    note(&e, "/proc/PID/fdinfo");
                    continue;
                }
            };
            let number = |key| procfs::field(&info, key).and_then(|text| text.parse::<u64>().ok());
            let inode = number("ino").filter(|_| !old).map_or_else(|| if old { Err(no_value()) } else { files.inode(pid, fd) }, Ok);
            match (number("size"), inode) {
                (Some(size), Ok(inode)) => {
                    sizes.insert(inode, size);
                }
                (Some(_), Err(e)) => note(&e, "inode numbers of dma-bufs"),
                (None, _) => note(&no_value(), "sizes of dma-bufs in fdinfo"),
            }
        }
    }
    Buffers { bytes: sizes.values().sum(), count: sizes.len(), unread }
}

/// A kernel that does not say it.
fn no_value() -> io::Error {
    io::ErrorKind::InvalidData.into()
}

/// The process or the descriptor is not there any more.
fn is_gone(error: &io::Error) -> bool {
    // ESRCH is what an open file of a process that ended gives.
    error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(nix::errno::Errno::ESRCH as i32)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recorded() -> Proc {
        Proc(PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/proc-dmabuf")))
    }

    /// Refuses one thing, as SELinux or another owner would.
    struct Refusing {
        list: Option<i32>,
        info: Option<(i32, i32)>,
        errno: i32,
    }

    impl OpenFiles for Refusing {
        fn list(&self, pid: i32) -> io::Result<Vec<i32>> {
            if self.list == Some(pid) { Err(io::Error::from_raw_os_error(self.errno)) } else { recorded().list(pid) }
        }
        fn target(&self, pid: i32, fd: i32) -> io::Result<PathBuf> {
            recorded().target(pid, fd)
        }
        fn info(&self, pid: i32, fd: i32) -> io::Result<Vec<u8>> {
            if self.info == Some((pid, fd)) { Err(io::Error::from_raw_os_error(self.errno)) } else { recorded().info(pid, fd) }
        }
        fn inode(&self, pid: i32, fd: i32) -> io::Result<u64> {
            recorded().inode(pid, fd)
        }
    }

    const WEIGHTS: u64 = 1 << 30;

    #[test]
    fn a_buffer_of_two_processes_and_two_descriptors_counts_once() {
        let all = Buffers { bytes: WEIGHTS + 32768 + 8192, count: 3, unread: None };
        assert_eq!(scan(&recorded(), &[1000, 1001]), all);
        assert_eq!(scan(&recorded(), &[1001, 1000]), all);
        assert_eq!(scan(&recorded(), &[1001]), Buffers { bytes: WEIGHTS + 8192, count: 2, unread: None });
        assert_eq!(scan(&recorded(), &[]), Buffers::default());
    }

    #[test]
    fn who_vanishes_is_no_error() {
        // 1002 was never there; of 1001 only the listing came too late; and a process that ends under an open file gives ESRCH.
        assert_eq!(scan(&recorded(), &[1000, 1002]), Buffers { bytes: WEIGHTS + 32768, count: 2, unread: None });
        let ended = Refusing { list: None, info: Some((1001, 9)), errno: 3 };
        assert_eq!(scan(&ended, &[1001]), Buffers { bytes: WEIGHTS, count: 1, unread: None });
    }

    #[test]
    fn what_is_refused_is_said() {
        let refusing = Refusing { list: None, info: Some((1001, 9)), errno: 13 };
        let found = scan(&refusing, &[1000, 1001]);
        assert_eq!((found.count, found.unread), (2, Some(Unread { errno: Some(13), what: "/proc/PID/fdinfo" })));
        let refusing = Refusing { list: Some(1001), info: None, errno: 13 };
        assert_eq!(scan(&refusing, &[1000, 1001]).unread, Some(Unread { errno: Some(13), what: "/proc/PID/fd" }));
    }

    #[test]
    fn buffers_that_cannot_be_told_apart_are_not_counted() {
        let found = scan(&recorded(), &[3000]);
        assert_eq!((found.bytes, found.unread), (0, Some(Unread { errno: None, what: "inode numbers of dma-bufs" })));
    }
}
