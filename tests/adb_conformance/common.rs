//! What the tests share.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{Read, Write},
    path::Path,
    time::Duration,
};

use bench::device::{
    Device,
    adb::{Adb, Options, remote::Remote, shell::Limits},
};
use bench_agent::spec::{Done, Spec};
use tokio::sync::watch;

use crate::harness::{Lab, PATIENCE, agent};

pub async fn open(lab: &Lab) -> Adb {
    let mut options = Options::new(agent());
    options.patience = PATIENCE;
    options.reconnect = Duration::from_secs(40);
    Adb::open(lab.server.clone(), &lab.phone.address, options).await.expect("the phone answers")
}

/// What runs on the phone besides adbd, by its command line. Not through `tr`, which this toybox does not have.
pub async fn processes(remote: &Remote) -> Vec<String> {
    let script = "for p in /proc/[0-9]*; do c=$(xargs -0 < $p/cmdline) && [ -n \"$c\" ] && echo \"${p#/proc/} $c\"; done 2>/dev/null; true";
    let said = remote.sh("processes", script).await.expect("ps");
    let ours = |l: &&str| !l.starts_with("1 ") && !l.contains("adbd") && !l.contains("for p in /proc") && !l.contains("xargs -0");
    said.lines().filter(ours).map(str::to_owned).collect()
}

pub fn never() -> watch::Receiver<bool> {
    watch::channel(false).1
}

pub fn spec(work: &str, out: &Path, argv: &[&str]) -> Spec {
    Spec {
        v: 1,
        argv: argv.iter().map(|a| (*a).to_owned()).collect(),
        env: BTreeMap::from([("PATH".to_owned(), "/system/bin:/usr/bin:/bin".to_owned())]),
        cwd: work.to_owned(),
        stdin: None,
        out_dir: out.to_str().unwrap().to_owned(),
        timeout_ms: 60_000,
        grace_ms: 500,
        rate_hz: 0.0,
        max_output_bytes: 1 << 20,
        watch: Vec::new(),
        phase_file: None,
        compact_ms: 0,
        window_ms: 0,
        trip: Vec::new(),
        load: None,
    }
}

pub async fn sh<D: Device>(device: &D, work: &str, out: &Path, script: &str) -> Done {
    device.run(&spec(work, out, &["/bin/sh", "-c", script]), never()).await.expect(script)
}

pub const HOSTILE: &str = "it's $HOME `id`; rm -rf \"x\" & \\ * ünïcödé 模型\n2nd line -n";

pub fn long() -> Limits {
    Limits { time: Duration::from_mins(1), output: 100 << 20 }
}

/// A file of the host with content that does not repeat.
pub fn big_file(path: &Path, megabytes: usize) {
    let mut file = File::create(path).unwrap();
    let mut x = 0x9e37_79b9_7f4a_7c15_u64;
    for _ in 0..megabytes {
        let mut block = Vec::with_capacity(1_000_000);
        for _ in 0..125_000 {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            block.extend(x.to_le_bytes());
        }
        file.write_all(&block).unwrap();
    }
}

pub fn same_content(one: &Path, other: &Path) -> bool {
    let (mut one, mut other) = (File::open(one).unwrap(), File::open(other).unwrap());
    let mut blocks = [vec![0; 1 << 20], vec![0; 1 << 20]];
    loop {
        let n = one.read(&mut blocks[0]).unwrap();
        if n == 0 {
            return other.read(&mut blocks[1]).unwrap() == 0;
        }
        if other.read_exact(&mut blocks[1][..n]).is_err() || blocks[0][..n] != blocks[1][..n] {
            return false;
        }
    }
}
