//! One device behind a server: what the other modules ask things of.

use std::{
    collections::BTreeSet,
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    sync::OnceCell,
};

use super::{AdbError, Server, protocol, server::Stream};

/// How long something may take before the device counts as gone, although nobody says so.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    /// Opening a service, and one small question to it.
    pub answer: Duration,
    /// A transfer in which not a single block moves.
    pub stall: Duration,
}
impl Default for Patience {
    fn default() -> Self {
        Self { answer: protocol::ANSWER, stall: Duration::from_secs(30) }
    }
}

/// A device behind a server. Cheap to clone; every request is a connection of its own, so there is nothing to reconnect.
#[derive(Debug, Clone)]
pub struct Remote {
    server: Server,
    serial: String,
    pub(super) patience: Patience,
    features: Arc<OnceCell<BTreeSet<String>>>,
    pub(super) compression: Arc<OnceCell<bool>>,
    requests: Arc<AtomicU64>,
    sent: Arc<AtomicU64>,
}

impl Remote {
    /// The device of that serial, which need not be there yet.
    pub fn new(server: Server, serial: impl Into<String>, patience: Patience) -> Self {
        Self {
            server,
            serial: serial.into(),
            patience,
            features: Arc::default(),
            compression: Arc::default(),
            requests: Arc::default(),
            sent: Arc::default(),
        }
    }

    /// Takes the daemon's features for granted instead of asking (a daemon that claims more than it does, a test).
    #[must_use]
    pub fn assuming(self, features: &[&str]) -> Self {
        let features = features.iter().map(|f| (*f).to_owned()).collect();
        Self { features: Arc::new(OnceCell::new_with(Some(features))), ..self }
    }

    /// Pushes everything as it is, whatever the daemon can do.
    #[must_use]
    pub fn uncompressed(self) -> Self {
        Self { compression: Arc::new(OnceCell::new_with(Some(false))), ..self }
    }

    /// Its serial, or `HOST:PORT`.
    pub fn serial(&self) -> &str {
        &self.serial
    }

    /// Its server.
    pub fn server(&self) -> &Server {
        &self.server
    }

    /// Connections made to the device so far.
    pub fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    /// Bytes sent to the device so far, requests included.
    pub fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }

    /// Whether server and daemon have a feature; asked once.
    pub(super) async fn has(&self, feature: &str) -> Result<bool, AdbError> {
        let ask = || protocol::limited(&self.serial, "asking for features", self.patience.answer, self.server.features(&self.serial));
        Ok(self.features.get_or_try_init(ask).await?.contains(feature))
    }

    pub(super) async fn open(&self, during: &str, service: &str) -> Result<Stream, AdbError> {
        self.requests.fetch_add(1, Ordering::Relaxed);
        let stream = self.server.service(&self.serial, during, service, self.patience.answer).await?;
        self.sent.fetch_add(service.len() as u64, Ordering::Relaxed);
        Ok(Box::new(Counted { stream, sent: self.sent.clone() }))
    }
}

/// A connection whose bytes to the device are counted.
struct Counted {
    stream: Stream,
    sent: Arc<AtomicU64>,
}
impl AsyncRead for Counted {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}
impl AsyncWrite for Counted {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        if let Poll::Ready(Ok(n)) = written {
            self.sent.fetch_add(n as u64, Ordering::Relaxed);
        }
        written
    }
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }
    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
