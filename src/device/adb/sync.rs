//! Files: the service `sync:`. A request is four letters, four bytes of length (little endian) and a path. Source: SYNC.TXT and
//! file_sync_protocol.h of packages/modules/adb. Here are questions; content goes through `push` and `pull`.

use std::io;

use tokio::io::{AsyncReadExt, AsyncWriteExt, BufReader, ReadHalf, WriteHalf};

use super::{
    AdbError,
    protocol::{limited, lost, odd},
    remote::{Patience, Remote},
    server::Stream,
};

pub use super::pull::Over;

/// The largest block of file content; a daemon refuses longer ones.
pub(super) const BLOCK: usize = 64 << 10;
const ENOENT: u32 = 2;
const ENOTDIR: u32 = 20;

/// A file on the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stat {
    /// Kind and permissions as `st_mode`.
    pub mode: u32,
    /// Bytes. Modulo 2^32 if `narrow`.
    pub size: u64,
    /// Seconds since 1970.
    pub mtime: i64,
    /// The daemon knows only the old form of 32 bits: a size over 4 GiB is wrong.
    pub narrow: bool,
}
impl Stat {
    /// A regular file.
    pub fn is_file(&self) -> bool {
        self.mode & 0o170_000 == 0o100_000
    }

    pub(super) fn is_size(&self, bytes: u64) -> bool {
        self.size == if self.narrow { bytes & u64::from(u32::MAX) } else { bytes }
    }
}

/// Called with the bytes done and all bytes.
pub type Progress<'a> = &'a (dyn Fn(u64, u64) + Send + Sync);

pub(super) type Reader = BufReader<ReadHalf<Stream>>;

/// An open file service. Questions to it need no new connection and start no process on the device.
pub struct Files {
    pub(super) reader: Reader,
    pub(super) writer: WriteHalf<Stream>,
    pub(super) serial: String,
    pub(super) patience: Patience,
    wide: bool,
}

impl Remote {
    /// Opens the file service.
    pub async fn files(&self) -> Result<Files, AdbError> {
        let wide = self.has("stat_v2").await?;
        let stream = self.open("opening the file service", "sync:").await?;
        let (reader, writer) = tokio::io::split(stream);
        let reader = BufReader::with_capacity(4 * BLOCK, reader);
        Ok(Files { reader, writer, serial: self.serial().to_owned(), patience: self.patience, wide })
    }

    /// What stands at a path, links followed; `None` if nothing does.
    pub async fn stat(&self, path: &str) -> Result<Option<Stat>, AdbError> {
        self.files().await?.stat(path, true).await
    }
}

/// The four letters of an answer, and the four bytes behind them.
pub(super) type Head = ([u8; 4], u32);

pub(super) async fn head(reader: &mut Reader) -> io::Result<Head> {
    let mut bytes = [0; 8];
    reader.read_exact(&mut bytes).await?;
    let (name, number) = bytes.split_at(4);
    Ok((name.try_into().expect("four"), u32::from_le_bytes(number.try_into().expect("four"))))
}

/// The daemon's reason of a `FAIL`.
pub(super) async fn reason(reader: &mut Reader, length: u32) -> io::Result<String> {
    let mut bytes = Vec::new();
    reader.take(u64::from(length).min(4096)).read_to_end(&mut bytes).await?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

impl Files {
    pub(super) async fn ask(&mut self, name: &[u8; 4], path: &str, during: &str) -> Result<(), AdbError> {
        self.ask_with(name, path, &[], during).await
    }

    /// A request with something behind its path.
    pub(super) async fn ask_with(&mut self, name: &[u8; 4], path: &str, rest: &[u8], during: &str) -> Result<(), AdbError> {
        if path.contains('\0') {
            return Err(AdbError::Remote { path: path.to_owned(), said: "a NUL byte can't be in a path".to_owned() });
        }
        let request = [name, &(path.len() as u32).to_le_bytes()[..], path.as_bytes(), rest].concat();
        let Self { writer, serial, patience, .. } = self;
        limited(serial, during, patience.answer, async { writer.write_all(&request).await.map_err(lost(serial, during)) }).await
    }

    /// What stands at a path; `None` if nothing does. `follow` looks through a symbolic link (the old 32-bit form never does).
    pub async fn stat(&mut self, path: &str, follow: bool) -> Result<Option<Stat>, AdbError> {
        let during = "stat";
        let name = match (self.wide, follow) {
            (false, _) => b"STAT",
            (true, true) => b"STA2",
            (true, false) => b"LST2",
        };
        self.ask(name, path, during).await?;
        let Self { reader, serial, patience, wide, .. } = self;
        limited(serial, during, patience.answer, async {
            let mut bytes = [0; 72];
            let bytes = &mut bytes[..if *wide { 72 } else { 16 }];
            reader.read_exact(bytes).await.map_err(lost(serial, during))?;
            if &bytes[..4] != name {
                return Err(odd(during, String::from_utf8_lossy(&bytes[..4])));
            }
            if !*wide {
                let stat = narrow(bytes);
                return Ok((stat.mode != 0).then_some(stat));
            }
            match u32_at(bytes, 4) {
                0 => Ok(Some(wide_stat(bytes))),
                ENOENT | ENOTDIR => Ok(None),
                errno => Err(AdbError::Remote { path: path.to_owned(), said: errno_text(errno) }),
            }
        })
        .await
    }
}

/// name, mode, size, mtime, each of four bytes.
fn narrow(b: &[u8]) -> Stat {
    Stat { mode: u32_at(b, 4), size: u64::from(u32_at(b, 8)), mtime: i64::from(u32_at(b, 12)), narrow: true }
}

/// name, error, dev 8, ino 8, mode, nlink, uid, gid, size 8, atime 8, mtime 8, ctime 8.
fn wide_stat(b: &[u8]) -> Stat {
    Stat { mode: u32_at(b, 24), size: u64_at(b, 40), mtime: u64_at(b, 56).cast_signed(), narrow: false }
}

fn u32_at(b: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(b[at..at + 4].try_into().expect("four bytes"))
}
fn u64_at(b: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(b[at..at + 8].try_into().expect("eight bytes"))
}

/// The numbers that the daemon sends are Linux's on every host.
fn errno_text(errno: u32) -> String {
    let name = match errno {
        5 => "Input/output error",
        13 => "Permission denied",
        36 => "File name too long",
        40 => "Too many levels of symbolic links",
        _ => return format!("errno {errno}"),
    };
    name.to_owned()
}
