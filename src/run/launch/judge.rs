//! How a launch went.

use std::time::Duration;

use bench_backend_api::{Captured, Checks, Failure, FailureKind, ParseError, Parsed, contradiction, parsed_until_wrong};

use super::{Request, shared};
use crate::run::soak;

/// How a launch went: by the end of the process first, then by what its output says, then by the checks.
pub(super) fn judge(request: &Request<'_>, captured: &Captured) -> (Parsed, Option<Checks>, Option<Failure>) {
    let parsed = request.backend.parse(captured);
    let mut failure = ended_badly(captured, request.timeout);
    if let (Some(f), Ok(p)) = (&mut failure, &parsed)
        && let Some(own) = &p.failure
        && captured.ended.reason == "exited"
        && captured.ended.signal.is_none()
    {
        // A non-zero exit with a reason given by the runner itself: the runner knows better.
        *f = own.clone();
    }
    let parsed = match parsed {
        Ok(parsed) => parsed,
        Err(e) => {
            let words = failure.get_or_insert_with(|| unreadable(&e)).clone();
            // The hours of a soak before an event that is wrong count.
            let before = request.soak.and_then(|_| parsed_until_wrong(captured).ok()).filter(|(parsed, _)| !parsed.queries.is_empty());
            let Some((parsed, _)) = before else { return (Parsed::default(), None, Some(words)) };
            parsed
        }
    };
    if failure.is_none() {
        failure.clone_from(&parsed.failure);
    }
    if let Some(asked) = request.soak {
        // The tokens of a soak are checked also where it ended early.
        failure = failure.or_else(|| soak::too_short(asked, &parsed));
        let checks = soak::verify(request.backend, request.launch.cell, request.expected, &parsed, captured, failure.is_some());
        let failure = failure.or_else(|| contradiction(&checks).map(|why| Failure::new(FailureKind::Verify, why)));
        return (parsed, Some(checks), failure);
    }
    if failure.is_some() || !request.others.is_empty() {
        // Each of the cells that share a launch has checks of its own.
        let failure = failure.or_else(|| shared::disordered(&parsed).filter(|_| !request.others.is_empty()));
        return (parsed, None, failure);
    }
    let checks = request.backend.verify(request.launch.cell, request.expected, &parsed, captured);
    let failure = contradiction(&checks).map(|why| Failure::new(FailureKind::Verify, why));
    (parsed, Some(checks), failure)
}

fn unreadable(e: &ParseError) -> Failure {
    Failure::new(FailureKind::Runtime, e.to_string())
}

fn ended_badly(captured: &Captured, timeout: Duration) -> Option<Failure> {
    let ended = &captured.ended;
    let words = captured.last_words(2);
    let said = if words.is_empty() { String::new() } else { format!("; last output: {words}") };
    let message = ended.message.clone().unwrap_or_default();
    let failure = match ended.reason.as_str() {
        "timeout" => Failure::new(FailureKind::Runtime, format!("did not end within {}{said}", humantime::format_duration(timeout))),
        "output-limit" => Failure::new(FailureKind::Runtime, format!("wrote too much: {message}")),
        "cancelled" => Failure::new(FailureKind::Infra, "stopped by the user"),
        "thermal-trip" => Failure {
            kind: FailureKind::Thermal,
            message: format!("ended by the thermal trip: {message}"),
            hint: Some("let the device cool down, or cool it, before it is tried again".to_owned()),
        },
        "spawn-failed" => Failure::new(FailureKind::Infra, format!("could not be started: {message}")),
        _ => match (ended.signal, ended.code) {
            (Some(signal), _) => Failure::new(FailureKind::Runtime, format!("ended by signal {signal} ({}){said}", signal_name(signal))),
            (None, Some(0)) => return None,
            (None, Some(code)) => Failure::new(FailureKind::Runtime, format!("exit status {code}{said}")),
            (None, None) => Failure::new(FailureKind::Infra, "nobody saw how it ended"),
        },
    };
    Some(failure)
}

/// Name of a signal, for people.
fn signal_name(signal: i32) -> &'static str {
    match signal {
        4 => "SIGILL",
        6 => "SIGABRT",
        7 => "SIGBUS",
        8 => "SIGFPE",
        9 => "SIGKILL: the kernel's out-of-memory killer uses it too",
        11 => "SIGSEGV",
        15 => "SIGTERM",
        _ => "a signal",
    }
}
