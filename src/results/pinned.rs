//! What was set on the device for the time of a run.

use serde::{Deserialize, Serialize};

/// One pin of the scenario, as it went.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pinned {
    /// Its name in the scenario.
    pub name: String,
    /// Which of several, for instance a policy of the CPU; empty when there is one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub instance: String,
    /// What was asked for, in the device's words.
    pub asked: String,
    /// What was there before; absent where the device does not tell.
    #[serde(default)]
    pub before: Option<String>,
    /// What was read back; absent where the device does not tell.
    #[serde(default)]
    pub found: Option<String>,
    /// Why it is not as asked, in words.
    #[serde(default)]
    pub refused: Option<String>,
}

/// All of them for a table: `name=value` was read back, `name=value?` can't be, `name!` was refused. Of several instances the worst counts.
pub fn words(pinned: &[Pinned]) -> String {
    let mut all: Vec<(&str, &str, u8)> = Vec::new();
    for pin in pinned {
        let rank = match (&pin.refused, &pin.found) {
            (Some(_), _) => 2,
            (None, None) => 1,
            (None, Some(_)) => 0,
        };
        match all.iter_mut().find(|(name, ..)| *name == pin.name) {
            Some(known) => known.2 = known.2.max(rank),
            None => all.push((&pin.name, &pin.asked, rank)),
        }
    }
    let one = |(name, value, rank): &(&str, &str, u8)| match rank {
        0 => format!("{name}={value}"),
        1 => format!("{name}={value}?"),
        _ => format!("{name}!"),
    };
    all.iter().map(one).collect::<Vec<_>>().join(";")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_for_a_table() {
        let pin = |name: &str, found: Option<&str>, refused: Option<&str>| Pinned {
            name: name.to_owned(),
            asked: "1".to_owned(),
            found: found.map(str::to_owned),
            refused: refused.map(str::to_owned),
            ..Pinned::default()
        };
        let all = [pin("a", Some("1"), None), pin("g", Some("1"), None), pin("g", Some("2"), Some("no")), pin("f", None, None)];
        assert_eq!((words(&all).as_str(), words(&[]).as_str()), ("a=1;g!;f=1?", ""));
    }
}
