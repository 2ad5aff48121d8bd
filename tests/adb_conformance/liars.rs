//! A server that can't be trusted: states and lies that the real daemon does not show.

use std::{fs, time::Duration};

use bench::device::adb::{
    Address, Server,
    remote::{Patience, Remote},
    sync::Over,
};

use crate::{
    common::long,
    harness::{PATIENCE, expect_lost},
};

/// A server that answers each request with what `answer` gives, and ends the connection where that is `None`.
async fn fake(answer: impl Fn(&str) -> Option<Vec<u8>> + Send + Sync + 'static) -> Server {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let answer = std::sync::Arc::new(answer);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let answer = answer.clone();
            tokio::spawn(async move {
                let mut length = [0; 4];
                while stream.read_exact(&mut length).await.is_ok() {
                    let Ok(n) = usize::from_str_radix(&String::from_utf8_lossy(&length), 16) else { break };
                    let mut request = vec![0; n];
                    if stream.read_exact(&mut request).await.is_err() {
                        break;
                    }
                    let Some(bytes) = answer(&String::from_utf8_lossy(&request)) else { break };
                    if stream.write_all(&bytes).await.is_err() {
                        break;
                    }
                    // What follows a service is no request any more.
                    if !request.starts_with(b"host") {
                        let _ = stream.read(&mut [0; 4096]).await;
                        break;
                    }
                }
            });
        }
    });
    Server::reach(Address::Tcp("127.0.0.1".to_owned(), port)).await.unwrap()
}

fn said(status: &str, text: &str) -> Vec<u8> {
    format!("{status}{:04x}{text}", text.len()).into_bytes()
}

#[tokio::test]
async fn states_without_a_usable_device_have_words_and_a_remedy() {
    let server = fake(|request| {
        Some(match request {
            "host:devices" => said("OKAY", "a b\tunauthorized\nc\tno permissions (user is not in the plugdev group); see [x]\nd\tdevice\n"),
            "host:devices-l" => said("OKAY", "d                      device usb:1-1 transport_id:7\n"),
            r if r.starts_with("host-serial:") => said("OKAY", "shell_v2,stat_v2"),
            _ => said("FAIL", "device unauthorized.\nThis adb server's $ADB_VENDOR_KEYS is not set"),
        })
    })
    .await;
    let devices = server.devices().await.unwrap();
    assert_eq!(devices.iter().map(|d| d.serial.as_str()).collect::<Vec<_>>(), ["a b", "c", "d"]);
    assert!(devices[0].state.remedy().unwrap().contains("allow this computer"));
    assert!(devices[1].state.remedy().unwrap().contains("plugdev") && devices[1].state.to_string().contains("not in the plugdev"));
    assert_eq!((devices[2].state.remedy(), devices[2].details.as_str()), (None, "usb:1-1 transport_id:7"));
    let error = expect_lost(Remote::new(server, "a b", PATIENCE).sh("x", "true").await);
    assert!(error.to_string().contains("unauthorized"), "{error}");
}

#[tokio::test]
async fn lies_are_errors() {
    let okay = |rest: &[u8]| Some([b"OKAY", rest].concat());
    let lies: [(&str, &[u8]); 6] = [
        ("an unknown packet", b"\x09\x01\0\0\0x"),
        ("a packet longer than what comes", b"\x01\xff\xff\xff\xffabc"),
        ("an exit status of two bytes", b"\x03\x02\0\0\0\0\0"),
        ("half a head", b"\x01\x05"),
        ("nothing", b""),
        ("text", b"hello, I am no shell protocol at all, sorry"),
    ];
    for (lie, bytes) in lies {
        let bytes = bytes.to_vec();
        let server = fake(move |r| match r {
            r if r.starts_with("host-serial:") => Some(said("OKAY", "shell_v2,stat_v2")),
            r if r.starts_with("host:transport:") => okay(b""),
            _ => okay(&bytes),
        })
        .await;
        let remote = Remote::new(server, "liar", PATIENCE);
        let result = remote.exec("true", long()).await;
        assert!(result.is_err(), "{lie}: {result:?}");
        let result = remote.stat("/x").await;
        assert!(result.is_err(), "{lie}: {result:?}");
        let dir = tempfile::tempdir().unwrap();
        assert!(remote.pull("/x", &dir.path().join("x"), 100, Over::Fail, &|_, _| ()).await.is_err());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }
    for garbage in [&b"OKAYzzzz"[..], b"OKAY00", b"HTTP/1.1 400 Bad Request", b"FAILffffshort", b""] {
        let bytes = garbage.to_vec();
        let server = fake(move |_| Some(bytes.clone())).await;
        let result = Remote::new(server, "x", Patience { answer: Duration::from_millis(300), ..PATIENCE }).sh("x", "true").await;
        assert!(result.is_err(), "{garbage:?}: {result:?}");
    }
}

#[tokio::test]
async fn a_size_that_does_not_hold_is_an_error() {
    // 72 bytes of STA2: a regular file of 9 bytes; then RECV gives other contents.
    let mut stat = [0_u8; 72];
    stat[..4].copy_from_slice(b"STA2");
    stat[24..28].copy_from_slice(&0o100_644_u32.to_le_bytes());
    stat[40] = 9;
    let contents: [(&str, &[u8]); 4] = [
        ("short", b"DATA\x03\0\0\0abcDONE\0\0\0\0"),
        ("long", b"DATA\x0a\0\0\0abcdefghijDONE\0\0\0\0"),
        ("a block of 4 GB", b"DATA\xff\xff\xff\xffabc"),
        ("cut", b"DATA\x09\0\0\0abc"),
    ];
    for (what, content) in contents {
        let bytes = [b"OKAY", &stat[..], content].concat();
        let server = fake(move |r| match r {
            r if r.starts_with("host-serial:") => Some(said("OKAY", "shell_v2,stat_v2")),
            r if r.starts_with("host:transport:") => Some(b"OKAY".to_vec()),
            _ => Some(bytes.clone()),
        })
        .await;
        let dir = tempfile::tempdir().unwrap();
        let result = Remote::new(server, "liar", PATIENCE).pull("/x", &dir.path().join("x"), 100, Over::Fail, &|_, _| ()).await;
        assert!(result.is_err(), "{what}: {result:?}");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0, "{what}");
    }
}
