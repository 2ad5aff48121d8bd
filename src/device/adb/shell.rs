//! Short commands in the device's shell. Shell v2 keeps stdout, stderr and the exit status apart; a daemon without it (before Android 7) gets
//! the service `exec:` and a trailer with a random marker, and its stderr comes in stdout.
//!
//! Whoever drops the future closes the connection; the daemon then hangs up the direct child and nothing else. What has to be ended with
//! all its descendants is run by the agent.

use std::{
    hash::{BuildHasher, RandomState},
    time::Duration,
};

use tokio::io::{AsyncReadExt, AsyncWriteExt, BufReader};

use super::{
    AdbError,
    protocol::{limited, lost, odd},
    remote::Remote,
    server::Stream,
};

/// What a command may use.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// From the request to the exit status.
    pub time: Duration,
    /// Bytes of both streams together.
    pub output: u64,
}
impl Default for Limits {
    fn default() -> Self {
        Self { time: Duration::from_secs(30), output: 16 << 20 }
    }
}

/// How a command ended. It did end, and the device said so: everything else is an error.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Output {
    /// The exit status; 128 + N after signal N.
    pub status: u8,
    /// Standard output.
    pub stdout: Vec<u8>,
    /// Standard error.
    pub stderr: Vec<u8>,
    /// The daemon can't keep the streams apart: `stdout` holds both.
    pub merged: bool,
}
impl Output {
    /// Standard output as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// The standard output of a command that must succeed.
    pub fn success(self, during: &str) -> Result<String, AdbError> {
        if self.status == 0 {
            return Ok(self.text());
        }
        let words = String::from_utf8_lossy(if self.stderr.is_empty() { &self.stdout } else { &self.stderr }).trim().to_owned();
        let said = if words.is_empty() { format!("exit status {}", self.status) } else { words };
        Err(AdbError::Refused { during: during.to_owned(), said })
    }
}

/// One word for a POSIX shell, whatever it holds. Every word that reaches a device's shell goes through here. (A NUL byte can't be sent at all.)
pub fn quote(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:@%,".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// A command line of words.
pub fn line<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    words.into_iter().map(quote).collect::<Vec<_>>().join(" ")
}

impl Remote {
    /// Runs a script in the device's shell, with an empty standard input.
    pub async fn exec(&self, script: &str, limits: Limits) -> Result<Output, AdbError> {
        let during = "a shell command";
        let v2 = self.has("shell_v2").await?;
        limited(self.serial(), during, limits.time, async {
            if v2 {
                let stream = self.open(during, &format!("shell,v2,raw:{script}")).await?;
                read_v2(stream, self.serial(), during, limits.output).await
            } else {
                let marker = format!("bench-{:016x}-", RandomState::new().hash_one(script));
                let wrapped = format!("sh -c {} </dev/null 2>&1; s=$?; echo; echo {marker}$s", quote(script));
                let stream = self.open(during, &format!("exec:{wrapped}")).await?;
                read_merged(stream, self.serial(), during, limits.output, &marker).await
            }
        })
        .await
    }

    /// A script that must succeed, with the usual limits; its standard output.
    pub async fn sh(&self, during: &str, script: &str) -> Result<String, AdbError> {
        self.exec(script, Limits::default()).await?.success(during)
    }
}

const OUT: u8 = 1;
const ERR: u8 = 2;
const EXIT: u8 = 3;
const CLOSE_STDIN: u8 = 4;

/// Packets of one byte of kind, four of length and the data. Source: shell_protocol.h.
async fn read_v2(mut stream: Stream, serial: &str, during: &str, limit: u64) -> Result<Output, AdbError> {
    stream.write_all(&[CLOSE_STDIN, 0, 0, 0, 0]).await.map_err(lost(serial, during))?;
    let mut reader = BufReader::with_capacity(1 << 16, stream);
    let mut output = Output::default();
    let mut total = 0;
    loop {
        // An end without an exit packet: the device, its daemon or the server went away.
        let kind = reader.read_u8().await.map_err(lost(serial, during))?;
        let length = reader.read_u32_le().await.map_err(lost(serial, during))?;
        let to = match kind {
            EXIT if length == 1 => {
                output.status = reader.read_u8().await.map_err(lost(serial, during))?;
                return Ok(output);
            }
            OUT => &mut output.stdout,
            ERR => &mut output.stderr,
            _ => return Err(odd(during, format_args!("packet {kind} of {length} bytes"))),
        };
        // Room grows with what comes, never with a length alone: a hostile one costs nothing.
        let left = limit.saturating_sub(total);
        let taken = (&mut reader).take(u64::from(length).min(left)).read_to_end(to).await.map_err(lost(serial, during))? as u64;
        total += taken;
        if taken < u64::from(length) {
            return Err(if taken == left {
                AdbError::TooMuch { what: during.to_owned(), limit }
            } else {
                lost(serial, during)(std::io::ErrorKind::UnexpectedEof.into())
            });
        }
    }
}

async fn read_merged(mut stream: Stream, serial: &str, during: &str, limit: u64, marker: &str) -> Result<Output, AdbError> {
    let room = limit + 64;
    let mut bytes = Vec::new();
    (&mut stream).take(room + 1).read_to_end(&mut bytes).await.map_err(lost(serial, during))?;
    if bytes.len() as u64 > room {
        return Err(AdbError::TooMuch { what: during.to_owned(), limit });
    }
    let (end, status) = trailer(&bytes, marker).ok_or_else(|| lost(serial, during)(std::io::ErrorKind::UnexpectedEof.into()))?;
    bytes.truncate(end);
    Ok(Output { status, stdout: bytes, stderr: Vec::new(), merged: true })
}

/// Where the command's own output ends, and its status.
fn trailer(bytes: &[u8], marker: &str) -> Option<(usize, u8)> {
    let tail_start = bytes.len().saturating_sub(marker.len() + 6);
    let tail = String::from_utf8_lossy(&bytes[tail_start..]);
    let at = tail.find(marker)?;
    let status = tail[at + marker.len()..].strip_suffix('\n')?.parse().ok()?;
    let length = tail.len() - at;
    let end = bytes.len() - length;
    // The line break that `echo` puts before the marker.
    (end > 0 && bytes[end - 1] == b'\n').then(|| (end - 1, status))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trailers() {
        assert_eq!(trailer(b"abc\nM-7\n", "M-"), Some((3, 7)));
        assert_eq!(trailer(b"\nM-0\n", "M-"), Some((0, 0)));
        assert_eq!(trailer(b"abc\n\nM-255\n", "M-"), Some((4, 255)));
        assert_eq!(trailer(b"\xff\xfe\x80\nM-3\n", "M-"), Some((3, 3)));
        for cut in [&b"abc\nM-7"[..], b"abc", b"", b"M-7\n", b"abc\nM-\n", b"abc\nM-999\n"] {
            assert_eq!(trailer(cut, "M-"), None, "{cut:?}");
        }
    }

    #[test]
    fn words_are_quoted() {
        assert_eq!(line(["a/b.bin", "", "it's", "$(x)", "a b"]), r"a/b.bin '' 'it'\''s' '$(x)' 'a b'");
    }

    #[cfg(unix)]
    #[test]
    fn a_shell_gives_back_every_word() {
        use proptest::prelude::*;
        proptest!(ProptestConfig::with_cases(200), |(words in proptest::collection::vec("[^\0]{0,20}", 1..4))| {
            let script = format!("printf '%s\\0' {}", line(words.iter().map(String::as_str)));
            let out = std::process::Command::new("sh").arg("-c").arg(script).output().unwrap();
            let expected = words.iter().fold(String::new(), |all, w| all + w + "\0");
            prop_assert_eq!(String::from_utf8(out.stdout).unwrap(), expected);
        });
    }
}
