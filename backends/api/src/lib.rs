//! The contract between the orchestrator and the framework adapters.
//!
//! An adapter is a set of pure functions: what it needs ([`Backend::needs`]), what is put on the device
//! ([`Backend::stage`]), what is run ([`Backend::steps`]) and what the captured output says ([`Backend::parse`],
//! [`Backend::verify`]). It can reach neither files, nor ADB, nor a clock, so that every adapter is tested from
//! files and any recorded run can be parsed again by a newer adapter.

mod backend;
mod captured;
mod card;
mod cell;
mod checks;
mod events;
mod job;
pub mod knowledge;
mod measurement;
pub mod npu;
mod parts;
mod phases;
mod reader;
pub mod text;
pub mod timeline;
pub mod tool;

pub use backend::{
    Artifact, Availability, AxisFit, Backend, Description, DeviceFacts, Found, Installed, Invocation, Launch, Need, Paths, Program, Recipe,
    Source, StagedFile, Step,
};
pub use bench_runner_protocol::{EVENTS_ENV, Job};
pub use captured::{Captured, Ended, Evidence};
pub use card::{Card, Fact};
pub use cell::{Axis, Cell, DeviceClass, Geometry, Model, Pass, Quant, Setting, Unit, Workload};
pub use checks::{Check, Checks, Expected, check_bos, check_count, check_reported, check_tokens, contradiction};
pub use events::{NO_EVENTS, parsed_from_events, parsed_until_wrong};
pub use job::{JOB_FILE, idled, job, job_bytes, mixed, prolonged};
pub use measurement::{
    DramTraffic, Failure, FailureKind, Fallback, GraphTime, Hint, Layer, ParseError, Parsed, Query, TOKENS_PER_STEP, Token, ValueMeans,
    note,
};
pub use npu::NpuProfile;
pub use parts::{Nest, PhasePart};
pub use phases::PhaseSpan;
pub use reader::{ReadMeasurement, Reader, Reading, SourceFile, Unreadable};
