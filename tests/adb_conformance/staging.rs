//! The store by content.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
    time::Instant,
};

use bench::device::{
    Device,
    adb::{
        Adb, Options,
        remote::Remote,
        stage::{Cleaned, Store, StoreFile},
    },
};

use crate::{
    common::big_file,
    harness::{Lab, agent},
};

const ROOT: &str = "/data/local/tmp/bench";

fn data(host: &Path) -> StoreFile {
    StoreFile { host: host.to_owned(), executable: false }
}

/// The names in the store.
async fn names(remote: &Remote) -> Vec<String> {
    remote.sh("ls", &format!("ls {ROOT}/store")).await.unwrap().lines().map(str::to_owned).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_there_is_not_sent_again() {
    let Some(lab) = Lab::start().await else { return };
    let file = lab.file("model.bin");
    big_file(&file, 30);
    let sent = std::sync::Arc::new(std::sync::atomic::AtomicU64::new(0));
    let open = || async {
        let mut options = Options::new(agent());
        let count = sent.clone();
        options.progress = Some(std::sync::Arc::new(move |_: &str, done, _| count.store(done, std::sync::atomic::Ordering::Relaxed)));
        Adb::open(lab.server.clone(), &lab.phone.address, options).await.unwrap()
    };
    let stage = async |device: &Adb| {
        sent.store(0, std::sync::atomic::Ordering::Relaxed);
        let work = device.work_folder("w").await.unwrap();
        device.stage(&file, &work, "model.bin").await.unwrap();
        let hash = device.remote().sh("hash", &format!("sha256sum < {work}/model.bin")).await.unwrap();
        (sent.load(std::sync::atomic::Ordering::Relaxed), hash)
    };
    let device = open().await;
    let (first, hash) = stage(&device).await;
    assert_eq!(first, 30_000_000);
    assert_eq!(stage(&device).await, (0, hash.clone()), "this process knows");
    assert_eq!(stage(&open().await).await, (0, hash.clone()), "another one asks");
    // Spoilt on the device with its old size: found out by the time of change, and sent again.
    let spoil = "cd /data/local/tmp/bench/store; for f in *.ok; do f=${f%.ok}; chmod 644 $f; { printf x; tail -c +2 $f; } > t && cat t > $f; rm t; touch -d 2020-01-01T00:00:00 $f; done";
    device.remote().sh("spoil", spoil).await.unwrap();
    assert_eq!(stage(&open().await).await, (30_000_000, hash.clone()));
    // Only touched: the digest is computed there and nothing is sent.
    device.remote().sh("touch", "touch -d 2020-01-01T00:00:00 /data/local/tmp/bench/store/*").await.unwrap();
    assert_eq!(stage(&open().await).await, (0, hash));
}

#[tokio::test(flavor = "multi_thread")]
async fn many_files_are_one_question() {
    let Some(lab) = Lab::start().await else { return };
    let remote = lab.remote();
    let mut files = Vec::new();
    for i in 0..60 {
        let host = lab.file(&format!("it's {i}"));
        // Two of each content.
        fs::write(&host, format!("content {}", i / 2).repeat(1000 + i / 2)).unwrap();
        // The host's permission is the other way round: it does not count.
        fs::set_permissions(&host, fs::Permissions::from_mode(if i < 2 { 0o644 } else { 0o755 })).unwrap();
        files.push(StoreFile { host, executable: i < 2 });
    }
    let total: u64 = (0..30_u64).map(|i| (8 + i.to_string().len() as u64) * (1000 + i)).sum();
    let cache = lab.file("cache/digests.jsonl");
    let (seen, calls) = (AtomicU64::new(0), AtomicU64::new(0));
    let told = |name: &str, done, all| {
        assert!(name.starts_with("it's ") && all == total && seen.swap(done, Ordering::Relaxed) <= done, "{name} {done} {all}");
        calls.fetch_add(1, Ordering::Relaxed);
    };
    let paths = Store::new(ROOT, Some(cache.clone())).put_all(&remote, &files, &told).await.unwrap();
    assert_eq!((seen.into_inner(), calls.into_inner()), (total, 30));
    for (i, path) in paths.iter().enumerate() {
        assert_eq!(path, &paths[i / 2 * 2]);
        assert_eq!(path.strip_suffix(".x").is_some(), i < 2);
        let stat = remote.stat(path).await.unwrap().unwrap();
        assert_eq!(stat.mode & 0o777, if i < 2 { 0o555 } else { 0o444 });
        assert_eq!(stat.size, (8 + (i as u64 / 2).to_string().len() as u64) * (1000 + i as u64 / 2));
    }
    assert_eq!(names(&remote).await.len(), 60, "30 contents, each with its record");

    // Another process, which knows the digests from the cache alone.
    let (store, again) = (Store::new(ROOT, Some(cache)), lab.remote());
    assert!(again.sh("the features are asked for first", "true").await.is_ok());
    let (requests, sent, start) = (again.requests(), again.sent(), Instant::now());
    assert_eq!(store.put_all(&again, &files, &|_, _, _| panic!("nothing is sent")).await.unwrap(), paths);
    println!("60 files: {:?}, {} bytes", start.elapsed(), again.sent() - sent);
    assert_eq!(again.requests() - requests, 1);
    assert!(again.sent() - sent < 4000);
    store.put_all(&again, &files, &|_, _, _| panic!("nothing is sent")).await.unwrap();
    assert_eq!(again.requests() - requests, 1, "this process knows");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_content_is_not_taken_in() {
    let Some(lab) = Lab::start().await else { return };
    let (remote, file, cache) = (lab.remote(), lab.file("file"), lab.file("digests"));
    fs::write(&file, "right").unwrap();
    Store::new(ROOT, Some(cache.clone())).put(&remote, &data(&file), &|_, _, _| ()).await.unwrap();
    // A digest that is not the file's: what arrives is found to be another content.
    let text = fs::read_to_string(&cache).unwrap();
    let right = text.split("\"sha256\":\"").nth(1).unwrap()[..64].to_owned();
    fs::write(&cache, text.replace(&right, &"ab".repeat(32))).unwrap();
    let error = Store::new(ROOT, Some(cache)).put(&remote, &data(&file), &|_, _, _| ()).await.unwrap_err();
    assert!(error.to_string().contains(&format!("{right} arrived instead of abab")) && !error.is_lost(), "{error}");
    assert_eq!(names(&remote).await, [right.clone(), format!("{right}.ok")]);
}

#[tokio::test(flavor = "multi_thread")]
async fn cleaning_gives_room_back() {
    let Some(lab) = Lab::start().await else { return };
    let (remote, store) = (lab.remote(), Store::new(ROOT, None));
    assert_eq!(store.clean(&remote, &[]).await.unwrap(), Cleaned::default(), "nothing was ever staged");
    let files: Vec<_> = ["one", "two", "three"].map(|n| lab.file(n)).into();
    for (i, file) in files.iter().enumerate() {
        fs::write(file, vec![i as u8; 1 << 20]).unwrap();
    }
    let files: Vec<_> = files.iter().map(|f| data(f)).collect();
    let paths = store.put_all(&remote, &files, &|_, _, _| ()).await.unwrap();
    remote
        .sh(
            "an old partial file, and a hostile name",
            &format!("cd {ROOT}/store && echo x > $(printf 'f%.0s' $(seq 64)).part && echo x > 'a; reboot'"),
        )
        .await
        .unwrap();
    let cleaned = store.clean(&remote, &paths[1..2]).await.unwrap();
    assert_eq!(cleaned.files, 4);
    assert!((2 << 20..(2 << 20) + 100_000).contains(&cleaned.bytes), "{cleaned:?}");
    let kept = paths[1].rsplit('/').next().unwrap();
    assert_eq!(names(&remote).await, [kept.to_owned(), format!("{kept}.ok")]);
    let sent = AtomicU64::new(0);
    store.put_all(&remote, &files, &|_, done, _| sent.store(done, Ordering::Relaxed)).await.unwrap();
    assert_eq!(sent.into_inner(), 2 << 20, "the same process sends again what it has removed");
    assert_eq!(store.clean(&remote, &[]).await.unwrap().files, 3);
    assert_eq!(names(&remote).await, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_is_told_before_and_while_sending() {
    let Some(mut lab) = Lab::start().await else { return };
    lab.phone.tell("full 150000");
    let (remote, store) = (lab.remote(), Store::new(ROOT, None));
    let files: Vec<PathBuf> = ["one", "two"].map(|n| lab.file(n)).into();
    files.iter().enumerate().for_each(|(i, f)| big_file(f, 50 + i));
    // Each would fit, both would not leave the reserve: neither is sent.
    let files: Vec<_> = files.iter().map(|f| data(f)).collect();
    let error = store.put_all(&remote, &files, &|_, _, _| panic!("nothing is sent")).await.unwrap_err();
    assert!(error.disk_full() && error.to_string().contains("101 MB are needed"), "{error}");
    store.put(&remote, &files[0], &|_, _, _| ()).await.unwrap();
    // Nobody asks before a plain push: the daemon says it in the middle.
    let large = lab.file("large");
    big_file(&large, 200);
    let error = remote.push(&large, &format!("{ROOT}/large"), 0o644, &|_, _| ()).await.unwrap_err();
    assert!(error.disk_full() && !error.is_lost(), "{error}");
    assert_eq!(remote.sh("ls", &format!("ls {ROOT}")).await.unwrap(), "store\n", "and nothing of it is left");
}
