//! What every runner's `main` does.

use std::{
    env, fmt, fs, io,
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
    process::ExitCode,
};

use crate::{ErrorKind, Event, EventWriter, Job, JobError, monotonic_ns};

/// Why a runner stops: what goes into the event `error`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Whose fault it is.
    pub kind: ErrorKind,
    /// What happened.
    pub message: String,
}

impl Failure {
    /// The job asks for something impossible.
    pub fn usage(message: impl Into<String>) -> Self {
        Self { kind: ErrorKind::Usage, message: message.into() }
    }

    /// The model's files are at fault.
    pub fn model(message: impl Into<String>) -> Self {
        Self { kind: ErrorKind::Model, message: message.into() }
    }

    /// The framework or the device is at fault.
    pub fn runtime(message: impl Into<String>) -> Self {
        Self { kind: ErrorKind::Runtime, message: message.into() }
    }
}

/// An error with its causes, outermost first: `dlopen failed: /x/lib.so: cannot open shared object file`.
pub fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        // Many errors repeat their cause.
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = cause.source();
    }
    text
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

impl From<JobError> for Failure {
    fn from(e: JobError) -> Self {
        Self::usage(e.to_string())
    }
}

impl From<io::Error> for Failure {
    fn from(e: io::Error) -> Self {
        Self::runtime(e.to_string())
    }
}

/// Reads the job that the command line names, does the work, and says how it ended: by the last event and the exit status.
///
/// A panic counts as a runtime error, so that it leaves an event behind.
pub fn run(work: impl FnOnce(&Job, &mut EventWriter) -> Result<(), Failure>) -> ExitCode {
    let mut events = match EventWriter::from_env() {
        Ok(events) => events,
        Err(e) => {
            eprintln!("error: {e}");
            return ExitCode::from(2);
        }
    };
    let result = catch_unwind(AssertUnwindSafe(|| {
        let mut arguments = env::args_os().skip(1);
        let (Some(path), None) = (arguments.next(), arguments.next()) else {
            return Err(Failure::usage("one argument is expected: the job file"));
        };
        work(&Job::read(Path::new(&path))?, &mut events)
    }))
    .unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
        Err(Failure::runtime(format!("panic: {}", text.unwrap_or("no message"))))
    });
    let (last, code) = match result {
        Ok(()) => (Event::End { t_ns: monotonic_ns() }, ExitCode::SUCCESS),
        Err(failure) => {
            eprintln!("error: {failure}");
            (Event::error(failure.kind, failure.message), ExitCode::FAILURE)
        }
    };
    match events.now(&last) {
        Ok(()) => code,
        Err(e) => {
            eprintln!("error: the events file: {e}");
            ExitCode::FAILURE
        }
    }
}

/// Whether this process has a library of that file name mapped: evidence of what a framework has really loaded.
pub fn mapped_library(file_name: &str) -> bool {
    fs::read_to_string("/proc/self/maps")
        .is_ok_and(|maps| maps.lines().any(|line| line.rsplit('/').next() == Some(file_name) && line.contains('/')))
}

#[cfg(test)]
mod tests {
    use super::{Failure, mapped_library, with_causes};

    #[test]
    fn causes_are_told_once() {
        #[derive(Debug)]
        struct Outer(&'static str, Failure);
        impl std::fmt::Display for Outer {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.0)
            }
        }
        impl std::error::Error for Outer {
            fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
                Some(&self.1)
            }
        }
        assert_eq!(with_causes(&Outer("dlopen failed", Failure::runtime("no such file"))), "dlopen failed: no such file");
        assert_eq!(with_causes(&Outer("it said: no such file", Failure::runtime("no such file"))), "it said: no such file");
    }

    #[test]
    fn sees_the_mapped_libraries_only() {
        let own = std::env::current_exe().unwrap();
        assert!(mapped_library(own.file_name().unwrap().to_str().unwrap()));
        assert!(!mapped_library("libQnnHtp.so"));
    }
}
