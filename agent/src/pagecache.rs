//! How much of a model is in the page cache before it is loaded, and making that little or all of it (rule R8).
//!
//! Only `mincore` tells residency on every kernel that phones have: `cachestat` needs 6.5, a read with `RWF_NOWAIT` starts reading ahead on newer
//! kernels, and the figures of `/proc/self/smaps` are those of the caller's page tables. It needs a mapping, hence the unsafe code; the mapping is
//! never read through, so that a file which is cut short meanwhile can't raise SIGBUS. For files that are neither the caller's own nor writable for
//! it the kernel (5.2 on) reports every page as resident: such a load is never taken for a cold one.
#![expect(unsafe_code, reason = "mincore has no safe wrapper in nix or std, and no other call tells residency on a phone's kernel")]

use std::fs::File;
use std::io;
use std::num::NonZeroUsize;
use std::os::fd::AsFd;

use nix::errno::Errno;
use nix::fcntl::{PosixFadviseAdvice, posix_fadvise};
use nix::libc;
use nix::sys::mman::{MapFlags, ProtFlags, mmap, munmap};
use nix::unistd::{SysconfVar, sysconf};

use crate::done::PageCache;
use crate::spec::{Load, Make, Spec};

/// Bytes that are mapped at once: a multiple of every page size.
const WINDOW: u64 = 256 << 20;

/// Makes the files of a spec as it asks, and says how much of them is resident then. Files that can't be looked at are named.
pub fn prepare(spec: &Spec, load: &Load) -> PageCache {
    let mut found = PageCache { asked: load.make, ..PageCache::default() };
    let mut wrong = Vec::new();
    for name in &load.files {
        let looked = File::open(spec.in_cwd(name)).and_then(|file| {
            make(&file, load.make)?;
            Ok((file.metadata()?.len(), resident(&file)?))
        });
        match looked {
            Ok((bytes, resident)) => {
                found.bytes += bytes;
                found.resident_bytes += resident.min(bytes);
            }
            Err(e) => wrong.push(format!("{name}: {e}")),
        }
    }
    found.problem = (!wrong.is_empty()).then(|| wrong.join("; "));
    found
}

fn make(file: &File, make: Make) -> io::Result<()> {
    match make {
        Make::Asis => Ok(()),
        Make::Cold => {
            // Pages that are not yet on the disk stay whatever is advised.
            file.sync_all()?;
            Ok(posix_fadvise(file.as_fd(), 0, 0, PosixFadviseAdvice::POSIX_FADV_DONTNEED)?)
        }
        Make::Warm => io::copy(&mut &*file, &mut io::sink()).map(drop),
    }
}

/// Bytes of a file that are in the page cache, counted in whole pages.
fn resident(file: &File) -> io::Result<u64> {
    let page = sysconf(SysconfVar::PAGE_SIZE)?.and_then(|n| u64::try_from(n).ok()).unwrap_or(4096);
    let size = file.metadata()?.len();
    let mut pages = 0;
    let mut from = 0;
    while from < size {
        let length = WINDOW.min(size - from) as usize;
        let mut there = vec![0_u8; length.div_ceil(page as usize)];
        let Some(whole) = NonZeroUsize::new(length) else { break };
        // SAFETY: a new mapping at a place that the kernel chooses, which nothing reads or writes through.
        let at = unsafe { mmap(None, whole, ProtFlags::PROT_READ, MapFlags::MAP_SHARED, file, from.cast_signed()) }?;
        // SAFETY: `at` is the start of a mapping of `length` bytes, and `there` has a byte for each of its pages.
        let said = Errno::result(unsafe { libc::mincore(at.as_ptr(), length, there.as_mut_ptr().cast()) });
        // SAFETY: the mapping that was just made, and which nobody else knows.
        unsafe { munmap(at, length) }?;
        said?;
        pages += there.iter().filter(|state| **state & 1 == 1).count() as u64;
        from += length as u64;
    }
    Ok(pages * page)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::{Path, PathBuf};
    use std::process::Command;

    use super::*;

    /// On the disk of the build: `/tmp` may be memory, whose pages can't be dropped.
    fn file(name: &str, bytes: usize) -> PathBuf {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../target/tmp/{name}-{}", std::process::id()));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, vec![7; bytes]).unwrap();
        path
    }

    fn share(path: &Path, make: Make) -> f64 {
        let text =
            r#"{"v":1,"argv":["true"],"env":{},"cwd":"/","out_dir":"/x","timeout_ms":1,"grace_ms":1,"rate_hz":0,"max_output_bytes":1}"#;
        let spec: Spec = serde_json::from_str(text).unwrap();
        let found = prepare(&spec, &Load { files: vec![path.to_str().unwrap().to_owned()], make });
        assert_eq!((found.bytes, found.problem.as_deref()), (fs::metadata(path).unwrap().len(), None));
        found.resident_bytes as f64 / found.bytes as f64
    }

    /// util-linux's fincore, a second implementation; `None` where it is not installed.
    fn fincore(path: &Path) -> Option<u64> {
        let said = Command::new("fincore").args(["-b", "-n", "-o", "RES"]).arg(path).output().ok()?;
        String::from_utf8_lossy(&said.stdout).trim().parse().ok()
    }

    #[test]
    fn a_file_is_dropped_read_again_and_looked_at() {
        let path = file("pagecache", 3_000_001);
        // A file that was just written is in the cache: a load after a push is no cold one.
        assert!((share(&path, Make::Asis) - 1.0).abs() < 1e-9);
        let cold = share(&path, Make::Cold);
        if let Some(bytes) = fincore(&path) {
            assert_eq!((cold * 3_000_001.0).round() as u64, bytes.min(3_000_001));
        }
        assert!(cold < 0.02, "{cold}: this folder's file system does not drop pages");
        assert!((share(&path, Make::Warm) - 1.0).abs() < 1e-9);
        let _ = fs::remove_file(path);
    }

    #[test]
    fn half_a_file_is_half_a_file() {
        use std::os::unix::fs::FileExt;
        let path = file("pagecache-half", 1 << 20);
        assert!(share(&path, Make::Cold) < 0.02);
        let open = File::open(&path).unwrap();
        posix_fadvise(&open, 0, 0, PosixFadviseAdvice::POSIX_FADV_RANDOM).unwrap();
        for place in 0..64 {
            open.read_exact_at(&mut [0], place * 4096).unwrap();
        }
        // 64 pages of 4 KiB are a quarter of a MiB; larger pages hold more than was asked.
        let share = share(&path, Make::Asis);
        assert!((0.2..0.6).contains(&share), "{share}");
        let _ = fs::remove_file(path);
    }

    #[test]
    fn an_empty_file_and_one_that_is_missing_are_no_trouble() {
        let path = file("pagecache-empty", 0);
        let text = path.to_str().unwrap().to_owned();
        let spec =
            r#"{"v":1,"argv":["true"],"env":{},"cwd":"/","out_dir":"/x","timeout_ms":1,"grace_ms":1,"rate_hz":0,"max_output_bytes":1}"#;
        let load = Load { files: vec![text, "/nowhere/model.bin".to_owned()], make: Make::Cold };
        let found = prepare(&serde_json::from_str(spec).unwrap(), &load);
        assert_eq!((found.bytes, found.resident_bytes), (0, 0));
        assert!(found.problem.unwrap().starts_with("/nowhere/model.bin: "));
        let _ = fs::remove_file(path);
    }
}
