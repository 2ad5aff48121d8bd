//! The adb server's socket protocol: a request is four hexadecimal digits of length and the text; the answer `OKAY` or `FAIL` with a text of
//! the same form. After `host:transport:SERIAL` the connection belongs to that device and the next request is a service of its daemon.
//! Source: docs/dev/services.md and overview.md of packages/modules/adb.

use std::{collections::BTreeSet, fmt, io, time::Duration};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    time::timeout,
};

use super::{AdbError, Server, awake, server::Stream};

/// How long the server, or a daemon behind it, may take to accept a request. A stopped daemon keeps the state `device` and would take for ever.
pub const ANSWER: Duration = Duration::from_secs(10);
/// A request has four hexadecimal digits for its length.
const LONGEST_REQUEST: usize = 0xffff;

/// A line of `adb devices -l`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// The serial, or `HOST:PORT`. Two devices can have the same one.
    pub serial: String,
    /// Whether it can be used.
    pub state: DeviceState,
    /// What the long form adds (`usb`, `product`, `model`, `device`, `transport_id`), unread.
    pub details: String,
}

/// What the server says about a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeviceState {
    /// It can be used. A daemon that hangs keeps this state.
    Device,
    /// Known, but it does not answer.
    Offline,
    /// The user has not yet allowed this computer on its screen.
    Unauthorized,
    /// Keys are being exchanged.
    Authorizing,
    /// The connection is being made.
    Connecting,
    /// USB device that this user may not open, with the server's words.
    NoPermissions(String),
    /// Any other state, such as `recovery`, `sideload`, `bootloader`.
    Other(String),
}

impl DeviceState {
    fn parse(text: &str) -> Self {
        match text {
            "device" => Self::Device,
            "offline" => Self::Offline,
            "unauthorized" => Self::Unauthorized,
            "authorizing" => Self::Authorizing,
            "connecting" => Self::Connecting,
            _ if text.starts_with("no permissions") => Self::NoPermissions(text.to_owned()),
            _ => Self::Other(text.to_owned()),
        }
    }

    /// What the user can do about it; `None` for a usable device.
    pub fn remedy(&self) -> Option<&'static str> {
        Some(match self {
            Self::Device => return None,
            Self::Offline => "unplug it and plug it in again; over Wi-Fi: `adb disconnect`, then `adb connect`",
            Self::Unauthorized => {
                "unlock the screen and allow this computer in the dialog; none shows up: revoke USB debugging authorisations, plug in again"
            }
            Self::Authorizing | Self::Connecting => "wait a few seconds",
            Self::NoPermissions(_) => {
                "udev rules: `apt-get install android-sdk-platform-tools-common`, add yourself to the group plugdev, log in again, `adb kill-server`"
            }
            Self::Other(_) => "boot it into Android (`adb reboot`)",
        })
    }
}

impl fmt::Display for DeviceState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Device => "device",
            Self::Offline => "offline",
            Self::Unauthorized => "unauthorized",
            Self::Authorizing => "authorizing",
            Self::Connecting => "connecting",
            Self::NoPermissions(text) | Self::Other(text) => text,
        })
    }
}

impl Server {
    /// Every device that this server knows, in its order.
    pub async fn devices(&self) -> Result<Vec<Listed>, AdbError> {
        // The short form alone separates serial and state by a tab, so that a serial may hold spaces; the long form has the rest.
        let short = self.ask("host:devices").await?;
        let long = self.ask("host:devices-l").await.unwrap_or_default();
        Ok(listing(&short, &long))
    }

    /// What both the server and the device's daemon can do (`shell_v2`, `stat_v2`, ...).
    pub async fn features(&self, serial: &str) -> Result<BTreeSet<String>, AdbError> {
        let during = "asking for features";
        let text = self.host(serial, during, &format!("host-serial:{serial}:features")).await?;
        Ok(text.split(',').filter(|f| !f.is_empty()).map(str::to_owned).collect())
    }

    /// A question to the server itself that is answered with a text.
    pub async fn ask(&self, request: &str) -> Result<String, AdbError> {
        self.host(&self.address().to_string(), request, request).await
    }

    async fn host(&self, serial: &str, during: &str, request: &str) -> Result<String, AdbError> {
        limited(serial, during, ANSWER, async {
            let mut stream = self.open().await?;
            send(&mut stream, serial, during, request).await?;
            text(&mut stream).await.map_err(lost(serial, during))
        })
        .await
    }

    /// A connection to a service of the device's daemon.
    pub(super) async fn service(&self, serial: &str, during: &str, service: &str, answer: Duration) -> Result<Stream, AdbError> {
        limited(serial, during, answer, async {
            let mut stream = self.open().await?;
            send(&mut stream, serial, during, &format!("host:transport:{serial}")).await?;
            send(&mut stream, serial, during, service).await?;
            Ok(stream)
        })
        .await
    }
}

/// Our own limit over something that the far end may never do.
pub(super) async fn limited<T>(
    serial: &str,
    during: &str,
    after: Duration,
    work: impl Future<Output = Result<T, AdbError>>,
) -> Result<T, AdbError> {
    tokio::pin!(work);
    let since = awake::Since::now();
    let mut left = after;
    // A time-out that comes early, awake time counted, came because this process was stopped: the far end gets the rest.
    while !left.is_zero() {
        if let Ok(result) = timeout(left, &mut work).await {
            return result;
        }
        left = after.saturating_sub(since.elapsed());
    }
    Err(AdbError::TimedOut { serial: serial.to_owned(), during: during.to_owned(), after })
}

/// A broken connection: whoever broke it, the device is out of reach.
pub(super) fn lost(serial: &str, during: &str) -> impl FnOnce(io::Error) -> AdbError {
    let (serial, during) = (serial.to_owned(), during.to_owned());
    move |e| {
        let why = if e.kind() == io::ErrorKind::UnexpectedEof { "the connection was closed".to_owned() } else { e.to_string() };
        AdbError::Lost { serial, during, why }
    }
}

/// An answer that can't be right.
pub(super) fn odd(during: &str, what: impl fmt::Display) -> AdbError {
    AdbError::Protocol { during: during.to_owned(), what: what.to_string() }
}

async fn send(stream: &mut Stream, serial: &str, during: &str, request: &str) -> Result<(), AdbError> {
    let refused = |said: String| AdbError::Refused { during: during.to_owned(), said };
    if request.len() > LONGEST_REQUEST {
        return Err(refused(format!("a command of {} bytes is longer than adb takes ({LONGEST_REQUEST})", request.len())));
    }
    if request.contains('\0') {
        // It would end the text on the device, whatever stands around it.
        return Err(refused("a NUL byte can't be sent to a device".to_owned()));
    }
    stream.write_all(format!("{:04x}{request}", request.len()).as_bytes()).await.map_err(lost(serial, during))?;
    let mut status = [0; 4];
    stream.read_exact(&mut status).await.map_err(lost(serial, during))?;
    match &status {
        b"OKAY" => Ok(()),
        b"FAIL" => {
            let said = text(stream).await.map_err(lost(serial, during))?;
            Err(if is_unreachable(&said) {
                AdbError::Lost {
                    serial: serial.to_owned(),
                    during: during.to_owned(),
                    why: said.lines().next().unwrap_or_default().to_owned(),
                }
            } else {
                refused(said)
            })
        }
        other => Err(odd(during, String::from_utf8_lossy(other))),
    }
}

/// Whether the server's words mean that the device is not in the state `device`. Source: transport.cpp (acquire_one_transport) and
/// adb.cpp; `closed` is what a daemon that dies while it opens the service leaves.
fn is_unreachable(said: &str) -> bool {
    said == "closed"
        || (said.starts_with("device ") && said.contains("not found"))
        || ["device offline", "device unauthorized", "device still", "no devices", "insufficient permissions", "device is "]
            .iter()
            .any(|s| said.starts_with(s))
        || said.contains("no permissions")
}

async fn text(stream: &mut Stream) -> io::Result<String> {
    let mut length = [0; 4];
    stream.read_exact(&mut length).await?;
    let invalid = |_| io::Error::new(io::ErrorKind::InvalidData, format!("{length:?} is no length"));
    let digits = std::str::from_utf8(&length).map_err(|e| invalid(e.to_string()))?;
    let mut bytes = vec![0; usize::from_str_radix(digits, 16).map_err(|e| invalid(e.to_string()))?];
    stream.read_exact(&mut bytes).await?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn listing(short: &str, long: &str) -> Vec<Listed> {
    let mut details: Vec<_> = long.lines().map(Some).collect();
    let mut all = Vec::new();
    for line in short.lines() {
        let Some((serial, state)) = line.split_once('\t') else { continue };
        // Each long line is used once: two devices can have one serial.
        let rest = details.iter_mut().find_map(|slot| {
            let rest = slot.and_then(|l| l.strip_prefix(serial)).filter(|r| r.starts_with(' '))?.trim_start().strip_prefix(state)?;
            *slot = None;
            Some(rest.trim().to_owned())
        });
        all.push(Listed { serial: serial.to_owned(), state: DeviceState::parse(state.trim()), details: rest.unwrap_or_default() });
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_device_without_permission_does_not_hide_the_others() {
        let no = "no permissions (missing udev rules? user is in the plugdev group); see [http://developer.android.com/tools/device.html]";
        let short = format!("my board 1\tdevice\n192.168.7.2:5555\toffline\n????????????\t{no}\nX1\tunauthorized\nX1\trecovery\n");
        let long = format!(
            "my board 1             device usb:1-2 product:p model:M device:d transport_id:4\n192.168.7.2:5555       offline transport_id:2\n\
             ????????????           {no} usb:1-3 transport_id:3\nX1                     unauthorized usb:1-1 transport_id:5\n\
             X1                     recovery usb:1-5 transport_id:6\n"
        );
        let all = listing(&short, &long);
        let states: Vec<_> = all.iter().map(|l| (l.serial.as_str(), l.state.to_string(), l.details.as_str())).collect();
        assert_eq!(
            states,
            [
                ("my board 1", "device".to_owned(), "usb:1-2 product:p model:M device:d transport_id:4"),
                ("192.168.7.2:5555", "offline".to_owned(), "transport_id:2"),
                ("????????????", no.to_owned(), "usb:1-3 transport_id:3"),
                ("X1", "unauthorized".to_owned(), "usb:1-1 transport_id:5"),
                ("X1", "recovery".to_owned(), "usb:1-5 transport_id:6"),
            ]
        );
        assert!(all.iter().all(|l| l.state.remedy().is_none() == (l.state == DeviceState::Device)));
    }

    #[test]
    fn a_listing_of_garbage_is_empty() {
        assert!(listing("\0\u{fffd}garbage\nno tab here", "x\n\t\n").is_empty());
    }

    #[test]
    fn states_in_which_nothing_can_be_asked() {
        for said in
            ["device '169.254.77.2:5555' not found", "device offline", "closed", "no devices/emulators found", "device still connecting"]
        {
            assert!(is_unreachable(said), "{said}");
        }
        assert!(!is_unreachable("unknown host service"));
    }
}
