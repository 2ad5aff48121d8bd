//! What the system, the parsers and the command line's own parser say, as they say it.

use std::{collections::HashSet, io};

use super::{
    super::{help, table::ZH, text::Speaker},
    coverage::english,
};

fn said(text: &str) -> String {
    Speaker::new(&ZH, HashSet::new()).phrase(text).unwrap_or_else(|| text.to_owned())
}

/// Nothing of these is left in English.
#[track_caller]
fn all_chinese(texts: &[String], least: usize) {
    let wrong: Vec<String> = texts
        .iter()
        .map(|text| (text, said(text)))
        .filter(|(_, said)| !english(said).is_empty())
        .map(|(text, said)| format!("{text}: {said}"))
        .collect();
    assert!(wrong.is_empty() && texts.len() >= least, "{} texts:\n{}", texts.len(), wrong.join("\n"));
}

#[test]
fn errors_of_the_system_are_chinese() {
    // errno.h: those that files, programs and connections give.
    let numbers = [
        1, 2, 5, 6, 7, 8, 9, 11, 12, 13, 14, 16, 17, 18, 19, 20, 21, 22, 24, 26, 27, 28, 30, 32, 36, 39, 40, 98, 101, 104, 110, 111, 113,
        116, 122,
    ];
    let mut texts: Vec<String> =
        numbers.iter().map(|number| format!("x.csv can't be read: {}", io::Error::from_raw_os_error(*number))).collect();
    texts.extend(
        [io::Error::from(io::ErrorKind::UnexpectedEof), io::ErrorKind::NotFound.into(), io::ErrorKind::TimedOut.into()]
            .map(|e| format!("x.csv: {e}")),
    );
    texts.extend([b"a\xff".as_slice(), b"\xe5"].map(|bytes| format!("x.csv can't be read: {}", std::str::from_utf8(bytes).unwrap_err())));
    all_chinese(&texts, 40);
    assert_eq!(said(&texts[1]), "无法读取 x.csv：没有这个文件或目录（os error 2）");
}

#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[expect(dead_code, reason = "only what is wrong with it is looked at")]
struct Wire {
    zq: u32,
    #[serde(default)]
    xy: Option<Kind>,
    #[serde(default)]
    list: Vec<String>,
}

#[derive(Debug, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Kind {
    Yx,
    Xq,
}

#[test]
fn errors_of_parsers_are_chinese() {
    let json = [
        "",
        "{",
        "[1",
        "\"a",
        "{\"zq\" 1}",
        "{\"zq\": 1,}",
        "{\"zq\": 1 2}",
        "{1: 2}",
        "{\"zq\": 1} 2",
        "{\"zq\": tru}",
        "{\"zq\": -}",
        "{\"zq\": \"\\q\"}",
        "{\"zq\": \"\u{1}\"}",
        "{}",
        "{\"zq\": 1, \"zq\": 2}",
        "{\"zr\": 1}",
        "{\"zq\": \"a b\"}",
        "{\"zq\": 1.5}",
        "{\"zq\": -1}",
        "{\"zq\": null}",
        "{\"zq\": [1]}",
        "{\"zq\": {}}",
        "{\"zq\": true}",
        "{\"zq\": 1, \"xy\": \"zz\"}",
        "{\"zq\": 1, \"list\": 1}",
        "3",
        "[]",
        "1e999",
    ];
    let mut texts: Vec<String> =
        json.iter().map(|text| format!("x.json: not JSON: {}", serde_json::from_str::<Wire>(text).unwrap_err())).collect();
    texts.extend(
        [
            "[a",
            "[[a]",
            "a = [1",
            "a = {b = 1",
            "a",
            "a =",
            "= 1",
            "a = b",
            "a = \"x",
            "a = 'x",
            "a = 01",
            "a = 1_",
            "a = +0x1",
            "a = 0X1",
            "a = 1\na = 2",
            "a b = 1",
            "a = [1 2]",
            "a = [,]",
            "a = {b = 1 c = 2}",
            "a = \"\\q\"",
            "a = \"\\u12\"",
            "a = 1 2",
            "a == 1",
            "\"\"\"a\"\"\" = 1",
            "a = 99999999999999999999",
            "[a]\n[a]",
            "a = tru",
            "a = 2024-13-01",
            "a = 1.e",
            "é = 1",
            "a = \"\u{1}\"",
        ]
        .iter()
        .flat_map(|text| toml::de::DeTable::parse_recoverable(text).1)
        .map(|error| format!("not TOML: {}", error.message().replace('\n', ", "))),
    );
    texts.extend(["", "zq = \"a\"", "zq = 1.5", "zq = 1\nzr = 2", "zq = 1\nxy = \"zz\"", "zq = 1\nlist = 2", "zq = []"].iter().map(
        |text| {
            format!("is damaged (line 3: {}): put the file back, or start a new run", toml::from_str::<Wire>(text).unwrap_err().message())
        },
    ));
    let csv = |bytes: &[u8]| csv::Reader::from_reader(bytes).into_records().find_map(Result::err).unwrap();
    texts.extend(
        [b"a,b\n1\n".as_slice(), b"a\n\xff\n"]
            .map(|bytes| format!("x.csv can't be read as a table: {}; put the file back", csv(bytes)).replace("; put the file back", "")),
    );
    texts.extend(
        ["", "x", "1", "1x", "99999999999999999999s"]
            .iter()
            .map(|text| format!("write for instance \"90s\", \"10m\" or \"1h 30m\" ({})", humantime::parse_duration(text).unwrap_err())),
    );
    texts.extend(["", "x", "999"].iter().map(|text| format!("invalid value 'x' for '--zq <ZQ>': {}", text.parse::<u8>().unwrap_err())));
    texts.extend(["", "x"].iter().map(|text| format!("invalid value 'x' for '--zq <ZQ>': {}", text.parse::<f64>().unwrap_err())));
    all_chinese(&texts, 70);
    assert_eq!(said(&texts[0]), "x.json：不是 JSON：此处应有一个值，文件却结束了（第 1 行第 0 列）");
}

#[test]
fn errors_of_the_command_line_are_chinese() {
    use clap::{Arg, ArgAction, Command, value_parser};
    let command = || {
        Command::new("zq")
            .disable_help_subcommand(true)
            .arg(Arg::new("a").long("aa").value_parser(value_parser!(u16).range(1..9)).conflicts_with("b"))
            .arg(Arg::new("b").long("bb").action(ArgAction::SetTrue))
            .arg(Arg::new("c").long("cc").value_parser(["zq", "xy"]))
            .arg(Arg::new("tw").long("tw").num_args(2))
            .arg(Arg::new("mu").required(true))
            .subcommand(Command::new("run").disable_help_subcommand(true).subcommand_required(true).subcommand(Command::new("xy")))
            .subcommand_negates_reqs(true)
    };
    let lines = [
        "",
        "--bb",
        "x --aa",
        "x --aa x",
        "x --aa 12",
        "x --aa 99999",
        "x --aa 1 --bb",
        "x --bb --bb",
        "x --cc zp",
        "x --tw 1",
        "x y",
        "run",
        "run xz",
        "x --a",
        "x --bb=1",
        "x --aa=1 --aa=2",
    ];
    let errors =
        lines.map(|line| command().try_get_matches_from(["zq"].into_iter().chain(line.split_whitespace())).unwrap_err().to_string());
    let wrong: Vec<String> =
        errors.iter().map(|error| help::error(error)).filter(|said| !english(said).is_empty() || said.contains("[OPTIONS]")).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_nobody_knows_stays_english_in_quotes() {
    for (english, chinese) in [
        ("x.csv can't be read: the moon is full", "无法读取 x.csv：“the moon is full”"),
        ("x.csv can't be read: the moon is full (os error 999)", "无法读取 x.csv：“the moon is full (os error 999)”"),
        ("x.csv can't be read: EMOON", "无法读取 x.csv：EMOON"),
        ("not JSON: the moon is full at line 3 column 4", "不是 JSON：“the moon is full”（第 3 行第 4 列）"),
    ] {
        assert_eq!(said(english), chinese);
    }
}

#[test]
fn help_lays_values_out() {
    let english = "命令:\n  - json:   For programs\n用法：bench [OPTIONS] <RUN> [default: x]";
    // Each begins where the others of its column do.
    assert_eq!(help::rendered(english), "命令：\n  - json：  供程序读取\n用法：bench [选项] <RUN> [默认：x]");
}
