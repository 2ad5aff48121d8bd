//! The runner protocol, version 1.
//!
//! A runner is a program that runs on the device in a supervised process: `runner JOB.json`, with the environment variable
//! [`EVENTS_ENV`] naming the events file that it creates. It loads a model once, answers the job's queries in order and exits 0
//! only if every query succeeded. Its working folder holds the model's files; stdout and stderr belong to the vendor's
//! libraries, which print there, so that results go into the events file and nowhere else.
//!
//! The events file is JSON lines, one `write(2)` a line, times in absolute nanoseconds of `CLOCK_MONOTONIC` ([`monotonic_ns`]).

mod chip;
mod clock;
mod event;
mod job;
mod parse;
mod phases;
mod runner;
mod writer;

pub use chip::{Chip, check_chip, chip_of};
pub use clock::monotonic_ns;
pub use event::{ErrorKind, Event, Finish, Reported};
pub use job::{Job, JobError, Model, Profile, Query, Unit};
pub use parse::{MAX_LINE, MAX_WARNINGS, parse_events};
pub use phases::{Laps, LoadLaps, Phase};
pub use runner::{Failure, mapped_library, run, with_causes};
pub use writer::EventWriter;

/// The version of the protocol: the field `v` of the job and of every event.
pub const VERSION: u32 = 1;

/// The environment variable that names the events file.
pub const EVENTS_ENV: &str = "BENCH_EVENTS";
