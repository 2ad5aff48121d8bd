//! Files, there and back.

use std::{fs, sync::atomic::Ordering::Relaxed, time::Instant};

use bench::device::adb::{AdbError, sync::Over};

use crate::{
    common::{big_file, same_content},
    harness::Lab,
};

#[tokio::test(flavor = "multi_thread")]
async fn sizes_over_4_gib_are_right() {
    let Some(lab) = Lab::start().await else { return };
    let remote = lab.remote();
    let path = "/data/local/tmp/big file";
    remote.sh("make", "truncate -s 5000000000 '/data/local/tmp/big file'").await.unwrap();
    let stat = remote.stat(path).await.unwrap().unwrap();
    assert_eq!((stat.size, stat.narrow, stat.is_file()), (5_000_000_000, false, true));
    assert_eq!(remote.stat("/data/local/tmp/none").await.unwrap(), None);
    assert_eq!(remote.stat("/system/build.prop/x").await.unwrap(), None);
    let narrow = remote.clone().assuming(&["shell_v2"]).stat(path).await.unwrap().unwrap();
    assert_eq!((narrow.size, narrow.narrow), (705_032_704, true), "and the old form says that it is not to be trusted");
}

#[tokio::test(flavor = "multi_thread")]
async fn two_hundred_megabytes_there_and_back() {
    let Some(lab) = Lab::start().await else { return };
    let remote = lab.remote();
    let (from, to) = (lab.file("from"), lab.file("to"));
    big_file(&from, 200);
    let path = "/data/local/tmp/new/folder/a file.bin";
    let seen = std::sync::atomic::AtomicU64::new(0);
    let start = Instant::now();
    let sent = remote
        .push(&from, path, 0o640, &|done, all| {
            assert!(done <= all && all == 200_000_000);
            assert!(seen.swap(done, Relaxed) < done);
        })
        .await
        .unwrap();
    println!("push: {:.0} MB/s", 200.0 / start.elapsed().as_secs_f64());
    assert_eq!((sent, seen.into_inner()), (200_000_000, 200_000_000));
    let stat = remote.stat(path).await.unwrap().unwrap();
    assert_eq!((stat.mode, stat.size), (0o100_640, 200_000_000));
    let changed = fs::metadata(&from).unwrap().modified().unwrap().duration_since(std::time::UNIX_EPOCH).unwrap();
    assert_eq!(stat.mtime, i64::try_from(changed.as_secs()).unwrap());
    let start = Instant::now();
    remote.pull(path, &to, 1 << 30, Over::Fail, &|_, _| ()).await.unwrap();
    println!("pull: {:.0} MB/s", 200.0 / start.elapsed().as_secs_f64());
    assert!(same_content(&from, &to));

    // The refusals.
    let missing = remote.pull("/data/local/tmp/none", &lab.file("none"), 1, Over::Fail, &|_, _| ()).await;
    assert!(matches!(missing, Err(AdbError::Remote { .. })), "{missing:?}");
    let folder = remote.pull("/data/local/tmp", &lab.file("none"), 1, Over::Fail, &|_, _| ()).await;
    assert!(matches!(folder, Err(AdbError::Remote { .. })), "{folder:?}");
    let large = remote.pull(path, &lab.file("none"), 1000, Over::Fail, &|_, _| ()).await;
    assert!(matches!(large, Err(AdbError::TooMuch { .. })), "{large:?}");
    assert_eq!(remote.pull(path, &lab.file("head"), 1000, Over::Cut, &|_, _| ()).await.unwrap(), 1000);
    let denied = remote.push(&from, "/system/x", 0o644, &|_, _| ()).await.unwrap_err();
    assert!(denied.to_string().contains("Permission denied"), "{denied}");
    assert!(remote.push(&lab.file("absent"), path, 0o644, &|_, _| ()).await.is_err());
    assert_eq!(remote.stat(path).await.unwrap().unwrap().size, 200_000_000, "a failed push leaves the old file");
    let left: Vec<_> = fs::read_dir(lab.folder.path()).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    assert!(left.iter().all(|n| !n.contains("none") && !n.contains("part")), "{left:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_can_be_compressed_is() {
    let Some(lab) = Lab::start().await else { return };
    let (text, noise, to) = (lab.file("text"), lab.file("noise"), "/data/local/tmp/to");
    fs::write(&text, "{\"node\": [1, 2, 3], \"name\": \"layers.0.attention\"}\n".repeat(200_000)).unwrap();
    big_file(&noise, 10);
    let size = fs::metadata(&text).unwrap().len();
    let sent = async |remote: bench::device::adb::remote::Remote, host: &std::path::Path| {
        let seen = std::sync::atomic::AtomicU64::new(0);
        let all = fs::metadata(host).unwrap().len();
        assert_eq!(remote.push(host, to, 0o640, &|done, _| seen.store(done, Relaxed)).await.unwrap(), all);
        assert_eq!(seen.into_inner(), all, "progress counts what the file has, not what is sent");
        assert_eq!(remote.stat(to).await.unwrap().unwrap().mode, 0o100_640);
        let back = lab.file("back");
        remote.pull(to, &back, 1 << 30, Over::Fail, &|_, _| ()).await.unwrap();
        assert!(same_content(host, &back));
        remote.sent()
    };
    // The server (29 in Debian 12) need not know of it: the daemon is asked.
    let compressed = sent(lab.remote(), &text).await;
    println!("{size} bytes of text: {compressed} were sent");
    assert!(compressed < size / 10);
    assert!(sent(lab.remote().uncompressed(), &text).await > size);
    assert!(sent(lab.remote().assuming(&["shell_v2", "stat_v2"]), &text).await > size, "an old daemon");
    let noise_sent = sent(lab.remote(), &noise).await;
    assert!((10_000_000..10_010_000).contains(&noise_sent), "{noise_sent}: what does not compress goes as it is");
    // Not a file of the daemon's user.
    let denied = lab.remote().push(&text, "/system/x", 0o644, &|_, _| ()).await.unwrap_err();
    assert!(denied.to_string().contains("Permission denied"), "{denied}");
}
