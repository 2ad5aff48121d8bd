//! adb_stage [--quick]: what a second run costs in staging: 10 GB of models that the phone already has, in a new process each time: time, requests
//! and bytes sent until that is known. The files are sparse, so that they need no room on the disk of this machine or of the phone; the
//! phone gets them and its records by hand, since pushing and digesting 10 GB there is not the question. Needs what the test phone needs: root
//! and adb.

#[path = "../device/harness.rs"]
mod harness;
mod shared;

use std::{fmt::Write as _, fs::File, io, path::Path, process::Command, time::Instant};

use bench::device::adb::stage::{Store, StoreFile};
use harness::Lab;
use shared::{machine, quick, show};

const ROOT: &str = "/data/local/tmp/bench";
const FILES: u64 = 10;

#[tokio::main]
async fn main() -> io::Result<()> {
    let (rounds, total) = if quick() { (2, 20_000_000) } else { (20, 10_000_000_000) };
    let lab = Lab::start().await.expect("the test phone");
    machine();
    let files: Vec<_> = (0..FILES).map(|i| StoreFile { host: lab.file(&format!("model_{i}_of_{FILES}.bin")), executable: false }).collect();
    let mut planted = format!("mkdir -p {ROOT}/store && cd {ROOT}/store\n");
    for (i, file) in (0..).zip(&files) {
        // Sizes differ, so that digests do.
        let size = total / FILES + i;
        File::create(&file.host)?.set_len(size)?;
        let name = sha256sum(&file.host);
        let _ = writeln!(planted, "truncate -s {size} {name} && stat -c '%s %Y' {name} > {name}.ok || exit 1");
    }
    lab.remote().sh("planting the models", &planted).await.expect("the phone");
    let cache = lab.file("digests.jsonl");
    let start = Instant::now();
    stage(&lab, &files, &cache).await;
    println!("a run without a cache reads and digests {:.1} GB here: {:.1} s", total as f64 / 1e9, start.elapsed().as_secs_f64());
    let (mut times, mut requests, mut bytes) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..rounds {
        let start = Instant::now();
        let (asked, sent) = stage(&lab, &files, &cache).await;
        times.push(start.elapsed().as_secs_f64() * 1e3);
        requests.push(asked as f64);
        bytes.push(sent as f64);
    }
    show(&format!("second run, {:.1} GB staged: ms (target < 1000)", total as f64 / 1e9), &times);
    show("second run: connections to the device", &requests);
    show("second run: bytes sent (target < 64000)", &bytes);
    Ok(())
}

/// Stages as a process of its own does; connections made and bytes sent.
async fn stage(lab: &Lab, files: &[StoreFile], cache: &Path) -> (u64, u64) {
    let remote = lab.remote();
    let store = Store::new(ROOT, Some(cache.to_owned()));
    let paths = store.put_all(&remote, files, &|name, _, _| panic!("{name} is sent")).await.expect("all of it is there");
    assert_eq!(paths.len(), files.len());
    (remote.requests(), remote.sent())
}

fn sha256sum(file: &Path) -> String {
    let done = Command::new("sha256sum").arg(file).output().expect("sha256sum runs");
    String::from_utf8_lossy(&done.stdout).split_whitespace().next().expect("a digest").to_owned()
}
