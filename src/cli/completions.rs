//! `bench completions SHELL`.

use clap::CommandFactory;
use clap_complete::Shell;

use super::exit::Code;

/// Prints completions for a shell
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The shell
    shell: Shell,
}

pub fn main(args: &Args) -> anyhow::Result<Code> {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut super::Args::command(), "bench", &mut text);
    super::print(&String::from_utf8_lossy(&text))?;
    Ok(Code::Done)
}
