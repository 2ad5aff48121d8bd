//! When something goes away.

use std::{
    fs::{self, File},
    time::{Duration, Instant},
};

use bench::device::{
    Device,
    adb::{Adb, AdbError, Options, sync::Over},
};

use crate::{
    common::long,
    harness::{Lab, PATIENCE, agent, expect_lost},
};

#[tokio::test(flavor = "multi_thread")]
async fn a_device_that_dies_in_a_command_is_lost_and_then_back() {
    let Some(mut lab) = Lab::start().await else { return };
    let remote = lab.remote();
    for way in ["kill", "reboot"] {
        let command = tokio::spawn({
            let remote = remote.clone();
            async move { remote.exec("echo partial; sleep 30; echo end", long()).await }
        });
        tokio::time::sleep(Duration::from_millis(400)).await;
        lab.phone.tell(way);
        let start = Instant::now();
        expect_lost(command.await.unwrap());
        println!("{way}: lost after {:?}", start.elapsed());
        assert!(start.elapsed() < Duration::from_secs(5));
        lab.ready().await;
        assert_eq!(remote.exec("exit 9", long()).await.unwrap().status, 9);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cut_push_leaves_no_file_and_a_cut_pull_none_here() {
    let Some(mut lab) = Lab::start().await else { return };
    let remote = lab.remote();
    let (from, to) = (lab.file("from"), lab.file("to"));
    // Sparse: it costs nothing and takes seconds to send.
    File::create(&from).unwrap().set_len(3_000_000_000).unwrap();
    let path = "/data/local/tmp/cut.bin";
    let push = tokio::spawn({
        let (remote, from) = (remote.clone(), from.clone());
        async move { remote.push(&from, path, 0o644, &|_, _| ()).await }
    });
    tokio::time::sleep(Duration::from_millis(700)).await;
    lab.phone.tell("kill");
    let start = Instant::now();
    expect_lost(push.await.unwrap());
    println!("push lost after {:?}", start.elapsed());
    lab.ready().await;
    assert_eq!(remote.stat(path).await.unwrap(), None, "nothing under the final name");
    assert!(remote.stat(&format!("{path}.part")).await.unwrap().is_some(), "the test did cut a push");

    remote.sh("make", &format!("rm -f {path}.part; truncate -s 3000000000 {path}")).await.unwrap();
    let pull = tokio::spawn({
        let (remote, to) = (remote.clone(), to.clone());
        async move { remote.pull(path, &to, u64::MAX, Over::Fail, &|_, _| ()).await }
    });
    tokio::time::sleep(Duration::from_millis(700)).await;
    lab.phone.tell("kill");
    let start = Instant::now();
    expect_lost(pull.await.unwrap());
    println!("pull lost after {:?}", start.elapsed());
    assert_eq!(fs::read_dir(lab.folder.path()).unwrap().count(), 1, "only the file to push");
    lab.ready().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_daemon_that_hangs_is_found_out_by_our_own_limits() {
    let Some(mut lab) = Lab::start().await else { return };
    let remote = lab.remote();
    let from = lab.file("from");
    File::create(&from).unwrap().set_len(1_000_000_000).unwrap();
    let push = tokio::spawn({
        let (remote, from) = (remote.clone(), from.clone());
        async move { remote.push(&from, "/data/local/tmp/x", 0o644, &|_, _| ()).await }
    });
    tokio::time::sleep(Duration::from_millis(150)).await;
    lab.phone.tell("stop");
    let start = Instant::now();
    let error = expect_lost(push.await.unwrap());
    assert!(matches!(error, AdbError::TimedOut { .. }), "{error}");
    let error = expect_lost(remote.sh("x", "true").await);
    assert!(matches!(error, AdbError::TimedOut { .. }), "{error}");
    println!("both found out after {:?}", start.elapsed());
    assert!(start.elapsed() < 5 * PATIENCE.answer);
    let state = lab.server.devices().await.unwrap().remove(0).state;
    println!("the server still says {state}");
    lab.phone.tell("cont");
    lab.ready().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn between_launches_the_users_patience_counts_and_can_be_called_off() {
    let Some(mut lab) = Lab::start().await else { return };
    let options = Options { patience: PATIENCE, reconnect: Duration::from_secs(90), ..Options::new(agent()) };
    let device = Adb::open(lab.server.clone(), &lab.phone.address, options).await.unwrap();
    // Longer than the half minute that was once the most. The server sees it some ten seconds after its return.
    lab.phone.tell("down");
    let folder = tokio::spawn(async move { (device.work_folder("w").await.is_ok(), device) });
    tokio::time::sleep(Duration::from_secs(33)).await;
    lab.phone.tell("up");
    let (made, device) = folder.await.unwrap();
    assert!(made, "it came back in time");
    lab.phone.tell("down");
    let (stop, cancel) = tokio::sync::watch::channel(false);
    device.heed(cancel);
    let folder = tokio::spawn(async move { device.work_folder("w").await.is_err() });
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(!folder.is_finished(), "a lost device is waited for");
    stop.send(true).unwrap();
    let ended = tokio::time::timeout(Duration::from_secs(30), folder).await;
    assert!(ended.expect("nobody waits any more").unwrap());
}
