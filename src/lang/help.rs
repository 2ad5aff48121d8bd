//! The command line's own help in Chinese.

use clap::{Arg, ArgAction, Command, builder::StyledStr};

use super::{say, table::ZH, text::Speaker};

/// How clap lays help out, with its own words in Chinese.
const TEMPLATE: &str = "{before-help}{about-with-newline}\n用法：{usage}\n\n{all-args}{after-help}";

const OPTIONS: &str = "选项";

/// What clap itself says in the help that it made.
pub fn rendered(help: &str) -> String {
    let line = |line: &str| match line.trim_start() {
        words if words.starts_with("- ") || words == "Possible values:" => say(line).into_owned(),
        _ => line.replace("[default: ", "[默认：").replace("[possible values: ", "[可选值：").replace("[env: ", "[环境变量："),
    };
    help.split('\n').map(line).collect::<Vec<_>>().join("\n")
}

/// A command with what it says of itself and of its arguments in Chinese, and so its subcommands.
pub fn command(command: Command) -> Command {
    let about = command.get_about().map(said);
    let long = command.get_long_about().map(said);
    let after = command.get_after_help().map(said);
    let mut command = command.help_template(TEMPLATE).subcommand_help_heading("命令").disable_help_subcommand(true).mut_args(argument);
    for (text, put) in
        [(about, Command::about as fn(Command, StyledStr) -> Command), (long, Command::long_about), (after, Command::after_help)]
    {
        if let Some(text) = text {
            command = put(command, text);
        }
    }
    let version = Arg::new("version").short('V').long("version").action(ArgAction::Version).help("显示版本").help_heading(OPTIONS);
    let command = if command.get_version().is_some() { command.disable_version_flag(true).arg(version) } else { command };
    let names: Vec<String> = command.get_subcommands().map(|sub| sub.get_name().to_owned()).collect();
    let help = Arg::new("help").short('h').long("help").action(ArgAction::Help).help("显示帮助").help_heading(OPTIONS);
    let command = command.disable_help_flag(true).arg(help);
    names.into_iter().fold(command, |command, name| command.mut_subcommand(name, self::command))
}

fn argument(argument: Arg) -> Arg {
    let heading = if argument.is_positional() { "参数" } else { OPTIONS };
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
    Speaker::new(&ZH, std::collections::HashSet::new()).phrase(&text).unwrap_or_else(|| say(&text).into_owned()).into()
}
