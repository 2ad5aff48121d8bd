//! Phones and boards over ADB: the only place of `bench` that speaks it.
//!
//! `adb_client` 3.2.3 is used where it is right ([`connect`]). Everything that a measurement hangs on goes through a small client of the
//! adb server's socket protocol of our own ([`protocol`], [`shell`], [`sync`]), because of what was measured with the real server 29.0.6 and
//! the real adbd 34.0.5:
//!
//! | | `adb_client` 3.2.3 | here |
//! |---|---|---|
//! | exit status | always lost: `exit 7`, `true` and `kill -9 $$` all give `Ok(None)` | the device's |
//! | device dies in a command | the same `Ok(None)`, with what came until then | [`AdbError::Lost`] |
//! | time-out, cancel | none; the stream is private, a hung call keeps its thread for ever | own limits for everything |
//! | stat over 4 GiB | 5,000,000,000 bytes are reported as 705,032,704 (32 bits) | `STA2`, 64 bits |
//! | push | every file 0777; cut off, the partial file keeps its final name | mode, progress, LZ4, renamed when checked, continued |
//! | pull | a short stream or a full disk is no error | size checked, partial file removed |
//! | features | all but `shell_v2` and `cmd` are dropped | the daemon's list |
//! | listing | one device in `no permissions (...)` makes all of it an error | a state with the server's words and a remedy |
//! | a local server | runs `adb start-server` at every call, which KILLS a running server of another version | never kills one |
//!
//! The `adb` program is no way out: when the device dies in `adb shell`, it exits with 0. It is only run to start a missing server.

mod answer;
mod awake;
pub mod connect;
mod device;
mod digests;
mod error;
pub mod facts;
mod lock;
mod packets;
pub mod protocol;
mod pull;
mod push;
pub mod remote;
mod resume;
mod run;
pub mod select;
pub mod server;
pub mod shell;
pub mod stage;
pub mod sync;

pub use device::{Adb, Options};
pub use error::AdbError;
pub use facts::{Facts, Known};
pub use protocol::{DeviceState, Listed};
pub use server::{Address, Server};
