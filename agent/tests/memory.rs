//! Memory of a program whose heap, shared memory and mapped files are known.

mod common;

use std::fs;
use std::process::Command;

use common::Run;

/// Takes known amounts, in MB of 2^20 bytes: 160 of heap, 96 of a memfd, 64 of a mapped file; before its `load_end` for a moment 80 more of heap.
/// It prints what it had before, by the page tables (`Anonymous:` of smaps), which is another account than the counters that the agent reads.
const PROGRAM: &str = r#"
import mmap, os, time
MB = 1 << 20
def event(name):
    with open("events.jsonl", "a") as file:
        file.write('{"v":1,"event":"%s","t_ns":%d}\n' % (name, time.monotonic_ns()))
def taken(size, *how):
    memory = mmap.mmap(*how, size)
    for at in range(0, size, 4096):
        memory[at] = 1
    return memory
with open("/proc/self/smaps") as file:
    print(sum(int(line.split()[1]) for line in file if line.startswith("Anonymous:")), flush=True)
heap = mmap.mmap(-1, 160 * MB, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
for at in range(0, len(heap), 4096):
    heap[at] = 1
shared = os.memfd_create("shared")
os.ftruncate(shared, 96 * MB)
shm = taken(96 * MB, shared)
with open("weights.bin", "r+b") as file:
    weights = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
total = sum(weights[at] for at in range(0, len(weights), 4096))
more = mmap.mmap(-1, 80 * MB, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
for at in range(0, len(more), 4096):
    more[at] = 1
time.sleep(0.15)
more.close()
event("load_end")
time.sleep(1.2)
event("end")
time.sleep(0.3)
"#;

const MB: u64 = 1024;

fn near(what: &str, kb: u64, wanted: u64) {
    assert!(kb.abs_diff(wanted) * 50 <= wanted, "{what}: {kb} KiB, wanted {wanted} within 2 %");
}

#[test]
fn a_known_heap_shared_memory_and_mapped_file() {
    // At one sample a second, so that the peak of a sixth of one is seen only by the reading of a load.
    let mut run = Run::new(&["python3", "-I", "-S", "-c", PROGRAM]);
    run.spec.rate_hz = 1.0;
    run.spec.phase_file = Some("events.jsonl".to_owned());
    fs::write(run.work("weights.bin"), vec![7; 64 << 20]).unwrap();
    let kind = Command::new("stat").args(["-f", "-c", "%T", run.spec.cwd.as_str()]).output().unwrap();
    // A file of a tmpfs is shared memory, to the kernel too.
    let in_memory = kind.stdout.starts_with(b"tmpfs");
    let done = run.finish();
    assert_eq!(done.ended.code, Some(0), "{}", run.read("stderr.txt"));
    let before: u64 = run.read("stdout.txt").trim().parse().unwrap();
    let memory = done.memory.as_ref().expect("memory by kind");
    let shmem = 96 * MB + if in_memory { 64 * MB } else { 0 };

    near("peak", memory.peak.total_kb(), before + (160 + 80) * MB + shmem);
    near("shared memory at the peak", memory.peak.shmem_kb, shmem);
    assert_eq!((memory.peak.dmabuf_kb, memory.dmabuf_max_kb), (Some(0), Some(0)), "{:?}", memory.dmabuf_absent);
    let at: Vec<_> = memory.points.iter().map(|point| point.at.as_str()).collect();
    assert_eq!(at, ["load_end", "end"]);
    near("after load", memory.points[0].now.total_kb(), before + 160 * MB + shmem);
    near("at the end", memory.points[1].now.total_kb(), before + 160 * MB + shmem);
    if !in_memory {
        // Python and its libraries are mapped files too.
        assert!((64 * MB..90 * MB).contains(&memory.file_max_kb), "{}", memory.file_max_kb);
    }
    // RSS has the mapped file in it; the peak of R22 does not.
    let rss = done.peak_rss_kb.unwrap();
    assert!(rss >= memory.peak.total_kb() && done.vm_hwm_kb.unwrap() + 2 * MB >= rss, "{rss} {:?}", done.vm_hwm_kb);
    let table = run.read("telemetry.csv");
    for name in ["anon_kb", "shmem_kb", "file_kb", "swap_kb", "dmabuf_kb"] {
        assert!(table.contains(&format!(",process,{name},")), "{name}");
    }
}

#[test]
fn no_sampling_no_memory() {
    let mut run = Run::sh("sleep 0.1");
    run.spec.rate_hz = 0.0;
    assert_eq!(run.finish().memory, None);
}
