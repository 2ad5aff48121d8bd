//! adb_push [--quick]: push of a file to the test phone, ours over the `adb push` of this machine, as a ratio of the medians of interleaved
//! pairs. Once with random bytes, which are sent as they are, and once with text, which is compressed where the daemon takes that; the
//! program of Debian 12 (29.0.6) never compresses. Needs what the test phone needs: root and adb.

#[path = "../device/harness.rs"]
mod harness;
mod shared;

use std::{io, path::Path, process::Command, time::Instant};

use bench::device::adb::{Address, remote::Remote};
use harness::Lab;
use shared::{MB, machine, quick, show, show_ratio, write_random};

const TO: &str = "/data/local/tmp/pushed";

#[tokio::main]
async fn main() -> io::Result<()> {
    let (pairs, megabytes) = if quick() { (1, 8) } else { (10, 1000) };
    let lab = Lab::start().await.expect("the test phone");
    machine();
    let (random, text) = (lab.file("random.bin"), lab.file("text.json"));
    write_random(&random, megabytes * MB)?;
    let line =
        "{\"name\": \"model.layers.17.self_attn.k_proj\", \"shape\": [1, 8, 128, 4096], \"offset\": 1048576, \"scale\": 0.00390625},\n";
    std::fs::write(&text, line.repeat((megabytes * MB) as usize / line.len()))?;
    for (name, file, remote) in [
        ("random, as it is", &random, lab.remote().uncompressed()),
        ("random, compression allowed", &random, lab.remote()),
        ("text, compression allowed", &text, lab.remote()),
    ] {
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        // The first pair is thrown away.
        for pair in 0..=pairs {
            let (a, b) = if pair % 2 == 0 {
                let a = push(&remote, file).await;
                (a, cli(&lab, file).await)
            } else {
                let b = cli(&lab, file).await;
                (push(&remote, file).await, b)
            };
            if pair > 0 {
                ours.push(megabytes as f64 / a);
                theirs.push(megabytes as f64 / b);
            }
        }
        show(&format!("push of {megabytes} MB, {name}: bench, MB/s"), &ours);
        show(&format!("push of {megabytes} MB, {name}: adb push, MB/s"), &theirs);
        show_ratio("  bench over adb push", &ours, &theirs, if file == &random { ">= 0.95" } else { "> 1" });
    }
    Ok(())
}

async fn push(remote: &Remote, file: &Path) -> f64 {
    let start = Instant::now();
    remote.push(file, TO, 0o644, &|_, _| ()).await.expect("a push");
    let seconds = start.elapsed().as_secs_f64();
    removed(remote).await;
    seconds
}

async fn cli(lab: &Lab, file: &Path) -> f64 {
    let Address::Tcp(host, port) = &lab.adb.address else { unreachable!("the harness uses TCP") };
    let start = Instant::now();
    let mut adb = Command::new("adb");
    adb.args(["-L", &format!("tcp:{host}:{port}"), "-s", &lab.phone.address, "push"]).arg(file).arg(TO);
    let done = adb.output().expect("adb runs");
    let seconds = start.elapsed().as_secs_f64();
    assert!(done.status.success(), "{done:?}");
    removed(&lab.remote()).await;
    seconds
}

/// The pages of a removed file are not written back while the next push runs.
async fn removed(remote: &Remote) {
    remote.sh("removing a pushed file", &format!("rm {TO}")).await.expect("rm");
}
