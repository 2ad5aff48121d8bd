//! `adb connect` and `adb disconnect`, by `adb_client`. It blocks, so it gets a thread.

use std::net::SocketAddrV4;

use adb_client::{RustADBError, server::ADBServer};

use super::{AdbError, Server};

/// `adb_client` runs a program before every request to a server on this machine, meant to be `adb start-server`. That would end a running
/// server of another version, and start one on port 5037 whatever the address. We know that the server runs; a program that can't
/// exist makes the attempt a no-op.
const NO_PROGRAM: &str = "/dev/null/the-server-already-runs";

/// Connects a server to a device on the network. An answer takes up to ten seconds when nobody is there.
pub async fn connect(server: &Server, target: &str) -> Result<(), AdbError> {
    let during = format!("adb connect {target}");
    if let Some((at, device)) = both(server, target).await {
        return blocking(during, move || ours(at).connect_device(device)).await;
    }
    // A name, IPv6 or a socket file: `adb_client` takes IPv4 only.
    let said = server.ask(&format!("host:connect:{target}")).await?;
    if said.starts_with("connected to") || said.starts_with("already connected to") { Ok(()) } else { Err(AdbError::Refused { during, said }) }
}

/// Ends such a connection.
pub async fn disconnect(server: &Server, target: &str) -> Result<(), AdbError> {
    let during = format!("adb disconnect {target}");
    if let Some((at, device)) = both(server, target).await {
        return blocking(during, move || ours(at).disconnect_device(device)).await;
    }
    server.ask(&format!("host:disconnect:{target}")).await.map(|_| ())
}

async fn both(server: &Server, target: &str) -> Option<(SocketAddrV4, SocketAddrV4)> {
    Some((server.v4().await?, target.parse().ok()?))
}

fn ours(address: SocketAddrV4) -> ADBServer {
    ADBServer::new_from_path(address, Some(NO_PROGRAM.to_owned()))
}

async fn blocking(during: String, work: impl FnOnce() -> Result<(), RustADBError> + Send + 'static) -> Result<(), AdbError> {
    let refused = |during: String, said: String| AdbError::Refused { during, said };
    match tokio::task::spawn_blocking(work).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(RustADBError::ADBRequestFailed(said))) => Err(refused(during, said)),
        Ok(Err(e)) => Err(refused(during, e.to_string())),
        Err(e) => Err(refused(during, e.to_string())),
    }
}
