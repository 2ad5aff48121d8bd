//! `bench-agent run SPEC.json`, `bench-agent probe`, `bench-agent sample`, `bench-agent clock`, `bench-agent --version`.

use std::process::ExitCode;

const USAGE: &str = "usage: bench-agent run SPEC.json | probe | sample | clock | --version";

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    let words: Vec<_> = arguments.iter().map(|a| a.to_str().unwrap_or("")).collect();
    match words.as_slice() {
        ["--version" | "-V"] => say(&format!("bench-agent {}", env!("CARGO_PKG_VERSION"))),
        ["--help" | "-h"] => say(USAGE),
        ["probe"] => probe(),
        ["sample"] => sample(),
        ["clock"] => clock(),
        // How the agent starts its watcher; not for people.
        ["watch-thermalservice"] => watch(false),
        ["watch-thermalservice", "detach"] => watch(true),
        ["run", _] => run(arguments[1].as_ref()),
        _ => {
            eprintln!("{USAGE}");
            ExitCode::from(2)
        }
    }
}

/// Prints for a human or the orchestrator; `run` never does.
fn say(text: &str) -> ExitCode {
    use std::io::Write;
    match writeln!(std::io::stdout(), "{text}") {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

#[cfg(target_os = "linux")]
fn probe() -> ExitCode {
    match serde_json::to_string_pretty(&bench_agent::probe()) {
        Ok(text) => say(&text),
        Err(e) => {
            eprintln!("bench-agent: {e}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(target_os = "linux")]
fn sample() -> ExitCode {
    use std::io::Write;
    match std::io::stdout().write_all(&bench_agent::sample()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

/// What time it is, for whoever compares clocks: `CLOCK_MONOTONIC` in ns.
#[cfg(target_os = "linux")]
fn clock() -> ExitCode {
    say(&bench_agent::now_ns().to_string())
}

#[cfg(target_os = "linux")]
fn watch(detach: bool) -> ExitCode {
    use bench_agent::watcher;
    let result = if detach { watcher::detach() } else { watcher::watch() };
    if result.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

#[cfg(target_os = "linux")]
fn run(spec: &std::path::Path) -> ExitCode {
    use bench_agent::AgentError;
    match bench_agent::run(spec) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Whoever started us may be long gone: a closed stderr is no reason to panic.
            use std::io::Write;
            let _ = writeln!(std::io::stderr(), "bench-agent: {error}");
            ExitCode::from(if matches!(error, AgentError::Spec(..)) { 2 } else { 3 })
        }
    }
}

#[cfg(not(target_os = "linux"))]
fn probe() -> ExitCode {
    eprintln!("bench-agent: needs a Linux kernel");
    ExitCode::FAILURE
}

#[cfg(not(target_os = "linux"))]
fn sample() -> ExitCode {
    probe()
}

#[cfg(not(target_os = "linux"))]
fn clock() -> ExitCode {
    probe()
}

#[cfg(not(target_os = "linux"))]
fn watch(_: bool) -> ExitCode {
    probe()
}

#[cfg(not(target_os = "linux"))]
fn run(_: &std::path::Path) -> ExitCode {
    probe()
}
