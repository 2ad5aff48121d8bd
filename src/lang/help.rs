//! The command line's own help in Chinese.

use std::ffi::OsString;

use clap::{Arg, ArgAction, Command, builder::StyledStr};

use super::{chinese, table::ZH, text::Speaker};

/// How clap lays help out, with its own words in Chinese.
const TEMPLATE: &str = "{before-help}{about-with-newline}\n用法：{usage}\n\n{all-args}{after-help}";

const OPTIONS: &str = "选项";
const ARGUMENTS: &str = "参数";
const COMMANDS: &str = "命令";
/// The subcommand that clap makes itself, with English words, where it is not ours.
const HELP: &str = "help";

/// What clap itself says in the help that it made.
pub fn rendered(help: &str) -> String {
    help.split('\n').map(line).collect::<Vec<_>>().join("\n")
}

fn line(line: &str) -> String {
    let heading = [OPTIONS, ARGUMENTS, COMMANDS].into_iter().find(|heading| line.strip_suffix(':') == Some(heading));
    match (heading, line.split_once(':')) {
        (Some(heading), _) => format!("{heading}："),
        // `- json:  For programs`, one beneath the other.
        (_, Some((value, what))) if value.trim_start().starts_with("- ") => {
            format!("{value}：{}", chinese(what.strip_prefix(' ').unwrap_or(what)))
        }
        (_, Some((words, ""))) if words.trim() == "Possible values" => chinese(line),
        _ => usage(line).replace("[default: ", "[默认：").replace("[possible values: ", "[可选值：").replace("[env: ", "[环境变量："),
    }
}

/// What clap says of a command line that it can't read, and how it would be right.
pub fn error(text: &str) -> String {
    usage(&chinese(text))
}

fn usage(text: &str) -> String {
    text.replace("[OPTIONS]", "[选项]")
}

/// The command line with `--help` instead of the word: `bench help run` is `bench run --help`.
pub fn asked(command: &Command, mut args: Vec<OsString>) -> Vec<OsString> {
    let (mut here, mut value) = (command, false);
    for at in 1..args.len() {
        let word = args[at].to_string_lossy();
        if value || word.starts_with('-') {
            value = !value && word == "--lang";
        } else if word == HELP && here.has_subcommands() {
            args.remove(at);
            args.push("--help".into());
            break;
        } else if let Some(sub) = here.find_subcommand(&*word) {
            here = sub;
        } else {
            break;
        }
    }
    args
}

/// A command with what it says of itself and of its arguments in Chinese, and so its subcommands.
pub fn command(command: Command) -> Command {
    let about = command.get_about().map(said);
    let long = command.get_long_about().map(said);
    let after = command.get_after_help().map(said);
    let names: Vec<String> = command.get_subcommands().map(|sub| sub.get_name().to_owned()).collect();
    let mut command = command.help_template(TEMPLATE).subcommand_help_heading(COMMANDS).subcommand_value_name(COMMANDS);
    command = command.disable_help_subcommand(true).mut_args(argument);
    for (text, put) in
        [(about, Command::about as fn(Command, StyledStr) -> Command), (long, Command::long_about), (after, Command::after_help)]
    {
        if let Some(text) = text {
            command = put(command, text);
        }
    }
    let version = Arg::new("version").short('V').long("version").action(ArgAction::Version).help("显示版本").help_heading(OPTIONS);
    let command = if command.get_version().is_some() { command.disable_version_flag(true).arg(version) } else { command };
    let help = Arg::new(HELP).short('h').long(HELP).action(ArgAction::Help).help("显示帮助").help_heading(OPTIONS);
    let command = command.disable_help_flag(true).arg(help);
    let command = names.iter().fold(command, |command, name| command.mut_subcommand(name, self::command));
    if names.is_empty() {
        command
    } else {
        command.subcommand(self::command(Command::new(HELP).about("显示此帮助或某个命令的帮助")))
    }
}

fn argument(argument: Arg) -> Arg {
    let heading = if argument.is_positional() { ARGUMENTS } else { OPTIONS };
    let (short, long) = (argument.get_help().map(said), argument.get_long_help().map(said));
    let mut argument = argument.help_heading(heading);
    if let Some(help) = short {
        argument = argument.help(help);
    }
    if let Some(help) = long {
        argument = argument.long_help(help);
    }
    argument
}

fn said(text: &StyledStr) -> StyledStr {
    let text = text.to_string();
    Speaker::new(&ZH, std::collections::HashSet::new()).phrase(&text).unwrap_or_else(|| chinese(&text)).into()
}

#[cfg(test)]
mod tests {
    use super::{Command, asked};

    #[test]
    fn help_is_asked_for_by_a_word_too() {
        let command =
            Command::new("bench").subcommand(Command::new("run")).subcommand(Command::new("devices").subcommand(Command::new("clean")));
        let of = |line: &str| {
            let args = asked(&command, line.split(' ').map(Into::into).collect());
            args.iter().map(|arg| arg.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
        };
        for (line, read) in [
            ("bench help", "bench --help"),
            ("bench --lang zh help run", "bench --lang zh run --help"),
            ("bench help devices clean --lang=zh", "bench devices clean --lang=zh --help"),
            ("bench devices help clean", "bench devices clean --help"),
            // A file of that name.
            ("bench run help", "bench run help"),
            ("bench --lang help", "bench --lang help"),
            ("bench frobnicate help", "bench frobnicate help"),
        ] {
            assert_eq!(of(line), read, "{line}");
        }
    }
}
