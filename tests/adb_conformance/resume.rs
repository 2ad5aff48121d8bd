//! Big files after a cut: what has arrived is not sent again.

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use bench::device::{
    Device,
    adb::{
        Adb, AdbError, Options, connect,
        stage::{Store, StoreFile},
    },
};

use crate::{
    common::big_file,
    harness::{Lab, agent, expect_lost},
};

const ROOT: &str = "/data/local/tmp/bench";
const MB: u64 = 1_000_000;

/// Stages a file as a process of its own would; `done` is told the bytes so far. Each attempt is slowed down, or it would be over too soon.
fn stage(lab: &Lab, file: &Path, done: &Arc<AtomicU64>) -> tokio::task::JoinHandle<Result<String, AdbError>> {
    let (remote, file, done) = (lab.remote(), StoreFile { host: file.to_owned(), executable: false }, done.clone());
    done.store(0, Ordering::Relaxed);
    tokio::spawn(async move {
        let told = |_: &str, bytes, _| {
            done.store(bytes, Ordering::Relaxed);
            std::thread::sleep(Duration::from_millis(5));
        };
        Store::new(ROOT, None).put(&remote, &file, &told).await
    })
}

/// Waits until so many bytes are on their way.
async fn reached(done: &AtomicU64, bytes: u64) {
    let until = Instant::now() + Duration::from_mins(1);
    while done.load(Ordering::Relaxed) < bytes {
        assert!(Instant::now() < until, "{done:?} of {bytes}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Stages the file to its end; the bytes that went over the wire.
async fn finish(lab: &Lab, file: &Path) -> u64 {
    let remote = lab.remote();
    let wanted = StoreFile { host: file.to_owned(), executable: false };
    let path = Store::new(ROOT, None).put(&remote, &wanted, &|_, _, _| ()).await.unwrap();
    let there = remote.sh("digest", &format!("sha256sum < {path}")).await.unwrap();
    let here = std::process::Command::new("sha256sum").stdin(std::fs::File::open(file).unwrap()).output().unwrap();
    assert_eq!(there.as_bytes(), here.stdout);
    let left = remote.sh("ls", &format!("ls {ROOT}/store")).await.unwrap();
    assert!(left.lines().count() == 2 && !left.contains("part") && !left.contains("rest") && !left.contains("new"), "{left}");
    remote.sent()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_big_file_goes_on_after_every_kind_of_cut() {
    let Some(mut lab) = Lab::start().await else { return };
    let (file, done) = (lab.file("model.bin"), Arc::new(AtomicU64::new(0)));
    big_file(&file, 200);
    // The daemon dies.
    let attempt = stage(&lab, &file, &done);
    reached(&done, 60 * MB).await;
    lab.phone.tell("kill");
    expect_lost(attempt.await.unwrap());
    lab.ready().await;
    // The connection ends and the daemon lives on: it removes what it was writing, by name.
    let attempt = stage(&lab, &file, &done);
    reached(&done, 100 * MB).await;
    let mut disconnect = std::process::Command::new("adb");
    disconnect.args(["disconnect", &lab.phone.address]).env("ADB_SERVER_SOCKET", lab.server.address().to_string());
    assert!(disconnect.output().unwrap().status.success());
    expect_lost(attempt.await.unwrap());
    connect::connect(&lab.server, &lab.phone.address).await.unwrap();
    lab.ready().await;
    // The link is cut and mended, and the daemon goes on with what was on its way.
    let attempt = stage(&lab, &file, &done);
    reached(&done, 140 * MB).await;
    lab.phone.tell("unplug");
    expect_lost(attempt.await.unwrap());
    lab.phone.tell("plug");
    lab.ready().await;
    let sent = finish(&lab, &file).await;
    println!("after three cuts {sent} bytes of 200 MB were left to send");
    assert!(sent < 110 * MB, "{sent}: 140 MB had been sent, buffers on the way aside");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_spoilt_beginning_is_not_gone_on_with() {
    let Some(mut lab) = Lab::start().await else { return };
    let (file, done) = (lab.file("model.bin"), Arc::new(AtomicU64::new(0)));
    big_file(&file, 100);
    let attempt = stage(&lab, &file, &done);
    reached(&done, 50 * MB).await;
    lab.phone.tell("kill");
    expect_lost(attempt.await.unwrap());
    lab.ready().await;
    let spoil = format!(
        "cd {ROOT}/store && f=$(echo *.part) && [ -s $f ] && {{ head -c 1000 $f; echo spoilt; tail -c +1008 $f; }} > t && cat t > $f && rm t"
    );
    lab.remote().sh("spoil", &spoil).await.unwrap();
    assert!(finish(&lab, &file).await > 100 * MB, "all of it was sent again");
}

/// A model takes minutes; the time in which a lost device may come back counts from its loss.
#[tokio::test(flavor = "multi_thread")]
async fn a_device_lost_late_in_a_transfer_has_its_whole_time_to_come_back() {
    let Some(mut lab) = Lab::start().await else { return };
    let file = lab.file("model.bin");
    big_file(&file, 100);
    let done = Arc::new(AtomicU64::new(0));
    let mut options = Options::new(agent());
    options.reconnect = Duration::from_secs(4);
    options.progress = Some(Arc::new({
        let done = done.clone();
        move |_: &str, bytes, _| {
            done.store(bytes, Ordering::Relaxed);
            // About a megabyte at a time.
            std::thread::sleep(Duration::from_millis(100));
        }
    }));
    let late = options.reconnect + Duration::from_secs(1);
    let device = Adb::open(lab.server.clone(), &lab.phone.address, options).await.unwrap();
    let work = device.work_folder("w").await.unwrap();
    let staging = tokio::spawn(async move { device.stage(&file, &work, "model.bin").await });
    reached(&done, 1).await;
    tokio::time::sleep(late).await;
    assert!(done.load(Ordering::Relaxed) < 99 * MB, "the test cuts a transfer");
    lab.phone.tell("kill");
    staging.await.unwrap().unwrap();
}
