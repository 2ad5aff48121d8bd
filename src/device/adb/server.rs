//! Where the adb server is, and a connection to it.

use std::{
    fmt, io,
    pin::Pin,
    process::Stdio,
    str::FromStr,
    task::{Context, Poll},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
    process::Command,
    time::{sleep, timeout},
};

use super::AdbError;

/// The port of the user's own server.
const DEFAULT_PORT: u16 = 5037;
/// A server on this machine answers in microseconds; one behind a tunnel gets this long.
const CONNECT: Duration = Duration::from_secs(5);
/// `adb start-server` waits for its server, which looks for USB devices first.
const START: Duration = Duration::from_secs(20);

/// The address of an adb server.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Address {
    /// Host name or address, and port.
    Tcp(String, u16),
    /// A socket in the file system (Unix only).
    Path(String),
}

impl Default for Address {
    fn default() -> Self {
        Self::Tcp("127.0.0.1".to_owned(), DEFAULT_PORT)
    }
}

impl Address {
    /// As the `adb` program finds it: `-H` and `-P` first (either may be absent), then `ADB_SERVER_SOCKET`, then
    /// `ANDROID_ADB_SERVER_ADDRESS` and `ANDROID_ADB_SERVER_PORT`, then this machine's port 5037. `variable` reads the environment.
    pub fn find(host: Option<&str>, port: Option<u16>, variable: impl Fn(&str) -> Option<String>) -> Result<Self, AdbError> {
        let Self::Tcp(default_host, default_port) = Self::default() else { unreachable!("the default is TCP") };
        if host.is_some() || port.is_some() {
            return Ok(Self::Tcp(host.map_or(default_host, str::to_owned), port.unwrap_or(default_port)));
        }
        let set = |name: &str| variable(name).filter(|v| !v.is_empty());
        if let Some(socket) = set("ADB_SERVER_SOCKET") {
            return socket.parse();
        }
        let port = match set("ANDROID_ADB_SERVER_PORT") {
            None => default_port,
            Some(text) => text.parse().map_err(|_| AdbError::Address(format!("ANDROID_ADB_SERVER_PORT={text}")))?,
        };
        Ok(Self::Tcp(set("ANDROID_ADB_SERVER_ADDRESS").unwrap_or(default_host), port))
    }

    /// Whether it is where the `adb` program starts a server of its own accord.
    fn is_the_users_own(&self) -> bool {
        matches!(self, Self::Tcp(host, DEFAULT_PORT) if ["127.0.0.1", "localhost", "::1"].contains(&host.as_str()))
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(host, port) => write!(f, "tcp:{host}:{port}"),
            Self::Path(path) => write!(f, "localfilesystem:{path}"),
        }
    }
}

impl FromStr for Address {
    type Err = AdbError;

    fn from_str(text: &str) -> Result<Self, AdbError> {
        let wrong = || AdbError::Address(text.to_owned());
        if let Some(path) = text.strip_prefix("localfilesystem:").filter(|p| !p.is_empty()) {
            return Ok(Self::Path(path.to_owned()));
        }
        let rest = text.strip_prefix("tcp:").ok_or_else(wrong)?;
        let (host, port) = rest.rsplit_once(':').unwrap_or(("127.0.0.1", rest));
        let host = host.strip_prefix('[').and_then(|h| h.strip_suffix(']')).unwrap_or(host);
        let port = port.parse().ok().filter(|p| *p != 0).ok_or_else(wrong)?;
        if host.is_empty() { Err(wrong()) } else { Ok(Self::Tcp(host.to_owned(), port)) }
    }
}

/// Both directions of a connection, over TCP or a socket file.
pub trait Duplex: AsyncRead + AsyncWrite + Send + Sync + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Sync + Unpin> Duplex for T {}
/// A connection to the server.
pub type Stream = Box<dyn Duplex>;

/// A connection that acknowledges at once what it has read. The adb server writes an answer in pieces and leaves Nagle's algorithm on: where
/// the kernel delays acknowledgements, a small file takes 40 ms more, now and then. Linux wants to be told after every read.
struct Prompt(TcpStream);
impl AsyncRead for Prompt {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let read = Pin::new(&mut self.0).poll_read(cx, buffer);
        #[cfg(any(target_os = "linux", target_os = "android"))]
        if read.is_ready() {
            // Only slower without.
            let _ = self.0.set_quickack(true);
        }
        read
    }
}
impl AsyncWrite for Prompt {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }
    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}

/// An adb server that was there when asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    address: Address,
}

impl Server {
    /// The server at an address. Only the user's own one (this machine, port 5037) is started when nothing listens there, by the user's
    /// own `adb`, and none is ever ended: a server that runs may hold the devices of other programs.
    pub async fn reach(address: Address) -> Result<Self, AdbError> {
        let server = Self { address };
        let Err(error) = server.open().await else { return Ok(server) };
        if !server.address.is_the_users_own() {
            return Err(error);
        }
        server.start().await?;
        server.open().await.map(|_| server)
    }

    /// Its address.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// A new connection.
    pub(super) async fn open(&self) -> Result<Stream, AdbError> {
        let no_server = |why: String| AdbError::NoServer { address: self.address.to_string(), why };
        match timeout(CONNECT, self.connect()).await {
            Ok(Ok(stream)) => Ok(stream),
            Ok(Err(e)) => Err(no_server(format!("{e}; start one there or set ADB_SERVER_SOCKET"))),
            Err(_) => Err(no_server(format!("it does not answer within {} s", CONNECT.as_secs()))),
        }
    }

    async fn connect(&self) -> io::Result<Stream> {
        match &self.address {
            Address::Tcp(host, port) => {
                let stream = TcpStream::connect((host.as_str(), *port)).await?;
                stream.set_nodelay(true)?;
                Ok(Box::new(Prompt(stream)))
            }
            #[cfg(unix)]
            Address::Path(path) => Ok(Box::new(tokio::net::UnixStream::connect(path).await?)),
            #[cfg(not(unix))]
            Address::Path(_) => Err(io::Error::new(io::ErrorKind::Unsupported, "no socket files on this system")),
        }
    }

    async fn start(&self) -> Result<(), AdbError> {
        let no_server = |why: String| AdbError::NoServer { address: self.address.to_string(), why };
        let install = "install it (`apt-get install adb`, or the SDK's platform-tools) or set ADB_SERVER_SOCKET to a server elsewhere";
        let mut command = Command::new("adb");
        command.arg("start-server").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
        // What the address was found from would make `adb` look elsewhere.
        for name in ["ADB_SERVER_SOCKET", "ANDROID_ADB_SERVER_ADDRESS", "ANDROID_ADB_SERVER_PORT"] {
            command.env_remove(name);
        }
        let mut child =
            command.spawn().map_err(|e| no_server(format!("and `adb`, which could start one, can't be run ({e}): {install}")))?;
        let status =
            timeout(START, child.wait()).await.map_err(|_| no_server(format!("`adb start-server` hangs for {} s", START.as_secs())))?;
        let status = status.map_err(|e| no_server(e.to_string()))?;
        if !status.success() {
            return Err(no_server(format!("`adb start-server` ended with {status}: run it by hand to see why")));
        }
        // It has said so, but the port may need a moment.
        sleep(Duration::from_millis(50)).await;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tcp(host: &str, port: u16) -> Address {
        Address::Tcp(host.to_owned(), port)
    }

    #[test]
    fn addresses_are_read_as_adb_reads_them() {
        for (text, address) in [
            ("tcp:localhost:5037", tcp("localhost", 5037)),
            ("tcp:6037", tcp("127.0.0.1", 6037)),
            ("tcp:[::1]:5037", tcp("::1", 5037)),
            ("localfilesystem:/run/adb.sock", Address::Path("/run/adb.sock".to_owned())),
        ] {
            assert_eq!(text.parse::<Address>().unwrap(), address, "{text}");
        }
        for text in ["", "5037", "tcp:", "tcp::5037", "tcp:host:0", "tcp:host:99999", "localfilesystem:", "vsock:1:2"] {
            assert!(text.parse::<Address>().is_err(), "{text}");
        }
    }

    #[test]
    fn flags_come_before_the_environment() {
        let environment = |name: &str| match name {
            "ADB_SERVER_SOCKET" => Some("tcp:far:1".to_owned()),
            "ANDROID_ADB_SERVER_PORT" => Some("2".to_owned()),
            _ => None,
        };
        assert_eq!(Address::find(Some("h"), None, environment).unwrap(), tcp("h", 5037));
        assert_eq!(Address::find(None, Some(9), environment).unwrap(), tcp("127.0.0.1", 9));
        assert_eq!(Address::find(None, None, environment).unwrap(), tcp("far", 1));
        assert_eq!(Address::find(None, None, |n| (n == "ANDROID_ADB_SERVER_PORT").then(|| "2".to_owned())).unwrap(), tcp("127.0.0.1", 2));
        assert_eq!(Address::find(None, None, |_| None).unwrap(), Address::default());
    }

    #[tokio::test]
    async fn a_missing_server_elsewhere_is_an_error_and_never_started() {
        let error = Server::reach(tcp("127.0.0.1", 1)).await.unwrap_err();
        assert!(matches!(&error, AdbError::NoServer { why, .. } if why.contains("ADB_SERVER_SOCKET")), "{error}");
    }
}
