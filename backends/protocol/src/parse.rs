//! Reading an events file that a device sent: anything may be in it.

use serde::Deserialize;
use serde_json::Value;

use crate::{Event, VERSION};

/// The longest line that is read, in bytes. An event has a few hundred.
pub const MAX_LINE: usize = 64 * 1024;

/// The most warnings that are given in words: a file of garbage has millions.
pub const MAX_WARNINGS: usize = 20;

/// The events of the file, and what could not be understood, each with the number of its line (the first [`MAX_WARNINGS`], then how many
/// more there are).
///
/// An unknown event, a line that is no event and a line over [`MAX_LINE`] are skipped. A last line without its end (the process
/// died while writing it) is dropped. No input makes this panic.
pub fn parse_events(bytes: &[u8]) -> (Vec<Event>, Vec<String>) {
    let (mut events, mut warnings) = (Vec::new(), Vec::new());
    let mut unsaid = 0_usize;
    let mut warn = |warning: String| {
        if warnings.len() < MAX_WARNINGS {
            warnings.push(warning);
        } else {
            unsaid += 1;
        }
    };
    let mut rest = bytes;
    let mut number = 0;
    while !rest.is_empty() {
        number += 1;
        let Some(end) = rest.iter().position(|b| *b == b'\n') else {
            warn(format!("line {number}: unfinished, dropped ({} bytes)", rest.len()));
            break;
        };
        let (line, tail) = rest.split_at(end);
        rest = &tail[1..];
        if line.len() > MAX_LINE {
            warn(format!("line {number}: longer than {MAX_LINE} bytes, skipped"));
        } else if !line.trim_ascii().is_empty() {
            match parse_line(line) {
                Ok(all) => events.extend(all),
                Err(problem) => warn(format!("line {number}: {problem}")),
            }
        }
    }
    if unsaid > 0 {
        warnings.push(format!("{unsaid} more of this kind"));
    }
    (events, warnings)
}

fn parse_line(line: &[u8]) -> Result<Vec<Event>, String> {
    let value: Value = serde_json::from_slice(line).map_err(|e| format!("not JSON: {e}"))?;
    let Some(name) = value.get("event").and_then(Value::as_str) else {
        return Err("not an event".into());
    };
    if value.get("v").and_then(Value::as_u64) != Some(u64::from(VERSION)) {
        return Err(format!("version {} of the protocol, this program reads {VERSION}", value.get("v").unwrap_or(&Value::Null)));
    }
    if !Event::NAMES.contains(&name) {
        return Err(format!("unknown event {:?}", short(name)));
    }
    let event = Event::deserialize(&value).map_err(|e| format!("event {name}: {}", short(&e.to_string())))?;
    event.single().map_err(|e| format!("event {name}: {e}"))
}

/// A device's words, cut so that a warning stays readable.
fn short(text: &str) -> String {
    text.chars().take(200).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ErrorKind, Finish, Unit};

    const RUN: &str = r#"{"v":1,"event":"note","t_ns":10,"key":"runtime_version","value":"1.32.0 é"}
{"v":1,"event":"load_begin","t_ns":11}
{"v":1,"event":"load_end","t_ns":12,"unit":"npu","graphs":["prefill","decode"]}
{"v":1,"event":"phase_begin","t_ns":11,"phase":"library","query":null}
{"v":1,"event":"phase_end","t_ns":12,"phase":"library"}
{"v":1,"event":"idle_begin","t_ns":12}
{"v":1,"event":"idle_end","t_ns":13}
{"v":1,"event":"prompt","t_ns":13,"query":0,"tokens":5}
{"v":1,"event":"token","query":0,"i":0,"id":4,"t_ns":14}
{"v":1,"event":"token","query":0,"i":1,"t_ns":15,"surprise":[1]}
{"v":1,"event":"query_end","query":0,"t_ns":16,"prompt_tokens":null,"generated_tokens":2,"finish":"length","reported":{"ttft_us":1.5,"decode_us":null}}
{"v":1,"event":"memory","t_ns":17,"name":"rss","bytes":18446744073709551615}
{"v":1,"event":"layer","t_ns":18,"name":"/l/MatMul","unit":"npu","cycles":7}
{"v":1,"event":"error","t_ns":19,"kind":"model","message":"broken"}
{"v":1,"event":"end","t_ns":20}
"#;

    #[test]
    fn reads_every_event() {
        let (events, warnings) = parse_events(RUN.as_bytes());
        assert_eq!(warnings, [""; 0]);
        assert_eq!(events.len(), 15);
        assert_eq!(events[2], Event::LoadEnd { t_ns: 12, unit: Some(Unit::Npu), graphs: vec!["prefill".into(), "decode".into()] });
        assert_eq!(events[3], Event::PhaseBegin { t_ns: 11, phase: "library".into(), query: None, i: None });
        assert_eq!((&events[5], &events[6]), (&Event::IdleBegin { t_ns: 12 }, &Event::IdleEnd { t_ns: 13 }));
        assert_eq!(events[9], Event::Token { query: 0, i: 1, id: None, t_ns: 15 });
        let Event::QueryEnd { finish, reported, prompt_tokens, .. } = &events[10] else { panic!("{:?}", events[10]) };
        assert_eq!((*finish, prompt_tokens, reported.len(), reported["ttft_us"]), (Finish::Length, &None, 1, 1.5));
        assert!(matches!(events[13], Event::Error { kind: ErrorKind::Model, .. }));
    }

    #[test]
    fn every_event_is_known_by_its_name() {
        let (events, _) = parse_events(RUN.as_bytes());
        for event in events {
            let json = serde_json::to_value(&event).unwrap();
            assert!(Event::NAMES.contains(&json["event"].as_str().unwrap()), "{json}");
        }
    }

    #[test]
    fn truncated_anywhere_loses_only_the_last_line() {
        let all = parse_events(RUN.as_bytes()).0;
        for end in 0..=RUN.len() {
            let part = &RUN.as_bytes()[..end];
            let whole = part.split(|b| *b == b'\n').count() - 1;
            let (events, warnings) = parse_events(part);
            assert_eq!(events, all[..whole]);
            assert_eq!(warnings.len(), usize::from(!part.is_empty() && !part.ends_with(b"\n")), "at byte {end}: {warnings:?}");
        }
    }

    #[test]
    fn damaged_anywhere_never_panics() {
        for at in 0..RUN.len() {
            for byte in [0, b'"', b'{', b'\n', b'9', 0xff] {
                let mut bytes = RUN.as_bytes().to_vec();
                bytes[at] = byte;
                let (events, _) = parse_events(&bytes);
                assert!(events.len() >= 13 && events.len() <= 15);
            }
        }
    }

    #[test]
    fn says_what_it_skips_and_where() {
        let long = format!("{{\"v\":1,\"event\":\"note\",\"t_ns\":1,\"key\":\"k\",\"value\":\"{}\"}}", "x".repeat(MAX_LINE));
        let deep = "[".repeat(10_000);
        let text = format!(
            "{{\"v\":1,\"event\":\"teleport\",\"t_ns\":1}}\n# LIBNATIVE: hello\n\n{long}\n[1]\n{{\"v\":2,\"event\":\"end\",\"t_ns\":1}}\n{{\"v\":1,\"event\":\"end\",\"t_ns\":-1}}\n{deep}\n{{\"v\":1,\"event\":\"end\",\"t_ns\":5}}\n{{\"v\":1"
        );
        let (events, warnings) = parse_events(text.as_bytes());
        assert_eq!(events, [Event::End { t_ns: 5 }]);
        let starts = [
            "line 1: unknown event \"teleport\"",
            "line 2: not JSON",
            "line 4: longer than",
            "line 5: not an event",
            "line 6: version 2",
            "line 7: event end: ",
            "line 8: not JSON",
            "line 10: unfinished",
        ];
        assert_eq!(warnings.len(), starts.len(), "{warnings:#?}");
        for (warning, start) in warnings.iter().zip(starts) {
            assert!(warning.starts_with(start), "{warning}");
        }
    }

    #[test]
    fn a_file_of_garbage_is_told_in_a_few_words() {
        let (events, warnings) = parse_events(&b"x\n".repeat(1000));
        assert_eq!((events.len(), warnings.len()), (0, MAX_WARNINGS + 1));
        assert_eq!(warnings[MAX_WARNINGS], "980 more of this kind");
    }

    #[test]
    fn what_a_runner_does_not_have_may_be_null() {
        let (events, warnings) = parse_events(
            br#"{"v":1,"event":"load_end","t_ns":1,"unit":null,"graphs":null}
{"v":1,"event":"token","query":0,"i":0,"id":null,"t_ns":2}
{"v":1,"event":"query_end","query":0,"t_ns":3,"prompt_tokens":null,"generated_tokens":null,"finish":"length","reported":null}
"#,
        );
        assert_eq!((events.len(), warnings.len()), (3, 0), "{warnings:?}");
    }

    #[test]
    fn tokens_in_one_line_are_single_tokens() {
        let lines = br#"{"v":1,"event":"tokens","query":3,"i":2,"t_ns":100,"gaps_ns":[5,7],"ids":[9,8,7]}
{"v":1,"event":"tokens","query":4,"i":0,"t_ns":200,"gaps_ns":[]}
{"v":1,"event":"tokens","query":4,"i":1,"t_ns":200,"gaps_ns":[1],"ids":[1]}
{"v":1,"event":"tokens","query":4,"i":1,"t_ns":200,"gaps_ns":[18446744073709551615]}
{"v":1,"event":"tokens","query":4,"i":4294967295,"t_ns":200,"gaps_ns":[1]}
"#;
        let (events, warnings) = parse_events(lines);
        let token = |query, i, id, t_ns| Event::Token { query, i, id, t_ns };
        assert_eq!(events, [token(3, 2, Some(9), 100), token(3, 3, Some(8), 105), token(3, 4, Some(7), 112), token(4, 0, None, 200)]);
        assert_eq!(warnings.len(), 3, "{warnings:?}");
    }

    #[test]
    fn unknown_words_in_closed_lists_do_not_lose_the_event() {
        let (events, warnings) = parse_events(b"{\"v\":1,\"event\":\"query_end\",\"query\":3,\"t_ns\":1,\"finish\":\"stop-word\"}\n");
        assert!(
            warnings.is_empty() && matches!(events[0], Event::QueryEnd { finish: Finish::Other, query: 3, .. }),
            "{events:?} {warnings:?}"
        );
    }
}
