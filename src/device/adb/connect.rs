//! `adb connect`, by `adb_client`. It blocks, so it gets a thread.
//!
//! It takes IPv4 alone, and it pulls in a TLS library with C and assembler sources whether TLS is used or not, so it is a dependency on
//! Linux only: names, IPv6, socket files and other systems get the same request from here.

use super::{AdbError, Server};

/// Connects a server to a device on the network. An answer takes up to ten seconds when nobody is there.
pub async fn connect(server: &Server, target: &str) -> Result<(), AdbError> {
    let during = format!("adb connect {target}");
    #[cfg(target_os = "linux")]
    if let Some((mut at, device)) = client::both(server, target).await {
        return client::blocking(during, move || at.connect_device(device)).await;
    }
    let said = server.ask(&format!("host:connect:{target}")).await?;
    if said.starts_with("connected to") || said.starts_with("already connected to") {
        Ok(())
    } else {
        Err(AdbError::Refused { during, said })
    }
}

#[cfg(target_os = "linux")]
mod client {
    use std::{
        net::{SocketAddr, SocketAddrV4},
        time::Duration,
    };

    use adb_client::{RustADBError, server::ADBServer};

    use super::{AdbError, Server};
    use crate::device::adb::server::Address;

    /// `adb_client` runs a program before every request to a server on this machine, meant to be `adb start-server`. That would end a running
    /// server of another version, and start one on port 5037 whatever the address. We know that the server runs; a program that can't
    /// exist makes the attempt a no-op.
    const NO_PROGRAM: &str = "/dev/null/the-server-already-runs";

    /// The server as `adb_client` has it, and the device, if both have addresses that it can take.
    pub(super) async fn both(server: &Server, target: &str) -> Option<(ADBServer, SocketAddrV4)> {
        let Address::Tcp(host, port) = server.address() else { return None };
        let mut found = tokio::net::lookup_host((host.as_str(), *port)).await.ok()?;
        let v4 = found.find_map(|a| if let SocketAddr::V4(v4) = a { Some(v4) } else { None })?;
        Some((ADBServer::new_from_path(v4, Some(NO_PROGRAM.to_owned())), target.parse().ok()?))
    }

    /// How long the server may take; it says that nobody is there after about ten seconds.
    const LIMIT: Duration = Duration::from_secs(30);

    /// In a thread that nobody waits for any more when the server stays silent: `adb_client` has no limit.
    pub(super) async fn blocking(during: String, work: impl FnOnce() -> Result<(), RustADBError> + Send + 'static) -> Result<(), AdbError> {
        let (tell, told) = tokio::sync::oneshot::channel();
        std::thread::spawn(move || tell.send(work()));
        let said = match tokio::time::timeout(LIMIT, told).await {
            Ok(Ok(Ok(()))) => return Ok(()),
            Ok(Ok(Err(RustADBError::ADBRequestFailed(said)))) => said,
            Ok(Ok(Err(e))) => e.to_string(),
            Ok(Err(e)) => e.to_string(),
            Err(_) => return Err(AdbError::TimedOut { serial: "the adb server".to_owned(), during, after: LIMIT }),
        };
        Err(AdbError::Refused { during, said })
    }
}
