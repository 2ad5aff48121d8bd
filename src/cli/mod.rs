//! The command line: one file a verb. Only this module and the report print.

mod adb;
mod check;
mod compare;
mod completions;
mod console;
mod devices;
mod doctor;
mod estimate;
mod exit;
mod gate;
mod history;
mod import;
mod language;
mod metric;
mod parse;
mod plan;
mod report;
mod run;
mod runtimes;
mod schema;
mod trace;

use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};

use crate::lang::{self, Lang};
use exit::Code;
use language::note_problems;

/// Measures the same language model on the same Snapdragon device through every inference framework it can find.
#[derive(Debug, Parser)]
#[command(name = "bench", version, about, after_help = exit::HELP)]
struct Args {
    #[command(subcommand)]
    verb: Verb,
    /// Language of what people read: pages, tables and messages, not files for programs
    #[arg(long, global = true, value_enum, env = language::VARIABLE, hide_env_values = true, default_value_t = Lang::En)]
    lang: Lang,
}

impl Args {
    /// Reads the command line. Help and errors of it are already in the language that it asks for.
    fn read() -> Result<Self, clap::Error> {
        let variable = std::env::var(language::VARIABLE).ok();
        let args = std::env::args_os().map(|arg| arg.to_string_lossy().into_owned());
        lang::speak(language::asked(args, variable.clone()));
        let mut command = lang::say_command(Self::command());
        if variable.as_deref() == Some("") {
            // Set to nothing is not set, as with LANG (POSIX, 8.2).
            command = command.mut_arg("lang", |lang| lang.env(None::<&str>));
        }
        let args = lang::say_args(&command, std::env::args_os().collect());
        let mut matches = command.try_get_matches_from(args)?;
        Self::from_arg_matches_mut(&mut matches)
    }
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Measures the cells of a scenario
    Run(run::Args),
    /// Prints the cells and the time that a scenario will take, without running anything
    Plan(plan::Args),
    /// Checks scenario files, without a device
    Check(check::Args),
    /// Lists the devices on every adb server; `clean` gives back what is staged on them
    Devices(devices::Args),
    /// Checks everything that a run will need, on this computer and on the devices
    Doctor(doctor::Args),
    /// Says what a model needs and how fast a SoC can decode it at best, without a device
    Estimate(estimate::Args),
    /// Writes a scenario for a model that you have
    Import(import::Args),
    /// Lists and installs what the backends need
    Runtimes(runtimes::Args),
    /// Makes the page of one or more runs
    Report(report::Args),
    /// Writes a run as a timeline for ui.perfetto.dev and chrome://tracing
    Trace(trace::Args),
    /// Judges a run: against a baseline, the nights before it, and what its scenario requires
    Gate(gate::Args),
    /// Shows how each cell developed over many runs, where it stepped, and what changed that night
    History(history::Args),
    /// Sets one run against another
    Compare(compare::Args),
    /// Reads the output of a framework's own tool
    Parse(parse::Args),
    /// Prints the JSON schema of scenario files
    Schema,
    /// Prints completions for a shell
    Completions(completions::Args),
}

/// How data is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people.
    Human,
    /// For programs.
    Json,
}

/// Parses the command line, carries the verb out and says how it went.
pub fn main() -> ExitCode {
    // A broken pipe (`bench plan x | head`) ends the program quietly instead of as a panic.
    let args = match Args::read() {
        Ok(args) => args,
        // Help and version.
        Err(error) if !error.use_stderr() => return shown(&error),
        Err(error) => {
            // It quotes the command line, and with it names of files. Its text is without colour, whose codes are what a name must not have.
            write_note(lang::say_usage(&crate::safe::printable_lines(&error.render().to_string())).trim_end());
            return Code::Usage.into();
        }
    };
    let result = match args.verb {
        Verb::Run(args) => run::main(&args),
        Verb::Plan(args) => plan::main(&args),
        Verb::Check(args) => check::main(&args),
        Verb::Devices(args) => devices::main(&args),
        Verb::Doctor(args) => doctor::main(&args),
        Verb::Estimate(args) => estimate::main(&args),
        Verb::Import(args) => import::main(&args),
        Verb::Runtimes(args) => runtimes::main(args),
        Verb::Report(args) => report::main(&args),
        Verb::Trace(args) => trace::main(&args),
        Verb::Gate(args) => gate::main(&args),
        Verb::History(args) => history::main(&args),
        Verb::Compare(args) => compare::main(&args),
        Verb::Parse(args) => parse::main(&args),
        Verb::Schema => schema::main(),
        Verb::Completions(args) => completions::main(&args),
    };
    match result {
        Ok(code) => code.into(),
        Err(error) => {
            let code = exit::of(&error);
            tell(&error);
            code.into()
        }
    }
}

/// Help and version. A terminal sees help in its styles where nothing has to be said in another language.
fn shown(error: &clap::Error) -> ExitCode {
    if lang::spoken() == Lang::En {
        error.exit();
    }
    print(&lang::say_help(&error.render().to_string())).map_or_else(|_| Code::Unavailable.into(), |()| ExitCode::SUCCESS)
}

/// Says an error. It may quote a device or a file: nothing in it steers the terminal, its line breaks are its own.
fn tell(error: &anyhow::Error) {
    note(&format!("error: {}", crate::safe::printable_lines(&words(error))));
}

/// An error and its causes, without those that it already tells in its own words.
fn words(error: &anyhow::Error) -> String {
    error
        .chain()
        .skip(1)
        .map(ToString::to_string)
        .fold(error.to_string(), |all, cause| if all.contains(&cause) { all } else { format!("{all}: {cause}") })
}

/// Writes a text for people to standard output, in their language.
fn say(text: &str) -> anyhow::Result<()> {
    print(&lang::say(text))
}

/// Writes a text to standard output; a reader that has gone away is not an error.
fn print(text: &str) -> anyhow::Result<()> {
    use std::io::Write;
    match std::io::stdout().write_all(text.as_bytes()).and_then(|()| std::io::stdout().flush()) {
        Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(exit::Failed { code: Code::Unavailable, message: format!("standard output: {e}") }.into())
        }
        _ => Ok(()),
    }
}

/// Writes a text for people to standard error, in their language.
fn note(text: &str) {
    write_note(&lang::say(text));
}

/// Writes a text to standard error; a reader that has gone away is not an error.
fn write_note(text: &str) {
    use std::io::Write;
    if !text.is_empty() {
        let _ = writeln!(std::io::stderr(), "{text}");
    }
}

/// Loads a scenario with the built-in backends and its own programs.
fn load(path: &std::path::Path) -> Result<crate::scenario::Scenario, crate::scenario::Problems> {
    let scenario = crate::scenario::load(path, crate::registry::BACKENDS, &crate::registry::reader_ids())?;
    language::keep_scenario(&scenario);
    Ok(scenario)
}

/// Verdict of a command line that names nothing to do.
fn usage(message: impl Into<String>) -> anyhow::Error {
    exit::Failed { code: Code::Usage, message: message.into() }.into()
}
