//! Memory that the Adreno driver (kgsl) holds for processes: `/sys/class/kgsl/kgsl/proc/PID/`, a folder for each process that has the device open.
//!
//! `gpumem_mapped` and `gpumem_unmapped` (kernels since about 5.4): bytes that the driver allocated for the process, as far as they are mapped into
//! it (and so in its RSS) and not. They are what Qualcomm's memtrack HAL tells Android as smaps-accounted and smaps-unaccounted. Older drivers have
//! `kernel`, the sum. Not taken: `imported_mem` and `ion` (dma-bufs, counted as such), `user` (the process's own pages, in `RssAnon` already).

use std::io;
use std::path::Path;

use super::dmabuf::Unread;

/// Where the driver shows it.
pub const ROOT: &str = "/sys/class/kgsl/kgsl/proc";

/// The driver's memory of some processes, bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gpu {
    mapped: u64,
    unmapped: u64,
    /// From drivers that don't tell the two apart.
    whole: u64,
}

impl Gpu {
    /// All of it, KiB.
    pub fn total_kb(&self) -> u64 {
        (self.mapped + self.unmapped + self.whole) / 1024
    }

    /// What surely stands in neither `RssAnon` nor `RssShmem`, KiB: all that is not mapped, and what is mapped beyond `shmem_kb`: a driver that
    /// takes its pages from shmem has them in `RssShmem`, any other in `RssFile`. `None` where the driver does not say what is mapped.
    pub fn apart_kb(&self, shmem_kb: u64) -> Option<u64> {
        (self.whole == 0).then(|| self.unmapped / 1024 + (self.mapped / 1024).saturating_sub(shmem_kb))
    }
}

/// Whether there is such a driver that may be listed.
pub fn is_here() -> bool {
    std::fs::read_dir(ROOT).is_ok()
}

/// Sums over processes; one without a folder has not opened the GPU.
pub fn read(root: &Path, pids: &[i32]) -> Result<Gpu, Unread> {
    let mut sum = Gpu::default();
    for pid in pids {
        let folder = root.join(pid.to_string());
        let number = |name: &str| match std::fs::read_to_string(folder.join(name)) {
            // Signed: a page that is mapped twice makes the rest negative for a moment.
            Ok(text) => Ok(text.trim().parse::<i64>().ok().map(|n| n.max(0).cast_unsigned())),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(Unread { errno: e.raw_os_error(), what: "/sys/class/kgsl/kgsl/proc/PID" }),
        };
        match (number("gpumem_mapped")?, number("gpumem_unmapped")?) {
            (Some(mapped), Some(unmapped)) => {
                sum.mapped += mapped;
                sum.unmapped += unmapped;
            }
            _ => sum.whole += number("kernel")?.unwrap_or(0),
        }
    }
    Ok(sum)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn new_and_old_drivers() {
        let root = std::env::temp_dir().join(format!("bench-agent-kgsl-{}", std::process::id()));
        let write = |pid: &str, name: &str, text: &str| {
            fs::create_dir_all(root.join(pid)).unwrap();
            fs::write(root.join(pid).join(name), text).unwrap();
        };
        write("7", "gpumem_mapped", "2097152\n");
        write("7", "gpumem_unmapped", "1048576\n");
        write("8", "gpumem_mapped", "0\n");
        write("8", "gpumem_unmapped", "-4096\n");
        // 3 MiB of 7; 9 never opened the GPU.
        let gpu = read(&root, &[7, 8, 9]).unwrap();
        assert_eq!(gpu.total_kb(), 3072);
        // Mapped pages of a driver without shmem, then of one whose 2 MiB are in RssShmem already.
        assert_eq!((gpu.apart_kb(0), gpu.apart_kb(2048), gpu.apart_kb(50_000)), (Some(3072), Some(1024), Some(1024)));
        write("10", "kernel", "4096\n");
        let old = read(&root, &[10]).unwrap();
        assert_eq!((old.total_kb(), old.apart_kb(0)), (4, None));
        fs::remove_dir_all(&root).unwrap();
    }
}
