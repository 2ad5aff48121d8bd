//! What a device must do, asked of this machine and of the real adbd behind the real adb server (tests/device). `both` runs for both
//! through `trait Device`; the rest is about ADB alone: its protocol, and what happens when a device or a server goes away.

#![cfg(target_os = "linux")]

mod both;
mod common;
mod files;
#[path = "../device/harness.rs"]
mod harness;
mod liars;
mod lost;
mod resume;
mod runs;
mod shell;
mod staging;
