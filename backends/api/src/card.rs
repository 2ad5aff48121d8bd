//! What no measurement says of a framework: `card.toml` beside each adapter, every fact with its public source and the day on which it was seen.

use serde::{Deserialize, Serialize};

/// The card of a framework.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Card {
    /// What an application has to do to use it.
    pub effort: Fact,
    /// Under which terms it comes.
    pub licence: Fact,
    /// What can be changed without loading the model again, for instance adapters.
    pub hot_reload: Fact,
    /// Where it runs.
    pub reach: Fact,
    /// How settled it is.
    pub maturity: Fact,
}

/// One fact, or why there is none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fact {
    /// In a sentence.
    pub text: Option<String>,
    /// Public address at which it stands.
    pub source: Option<String>,
    /// The day on which it was seen there, `2026-11-30`.
    pub seen: Option<String>,
    /// Why there is none.
    pub absent: Option<String>,
}

impl Card {
    /// Reads a card.
    ///
    /// # Errors
    /// What TOML is wrong, or which fact has no source or no day.
    pub fn parse(text: &str) -> Result<Self, String> {
        let card: Self = toml::from_str(text).map_err(|error| error.to_string())?;
        for (name, fact) in card.facts() {
            fact.check().map_err(|why| format!("{name}: {why}"))?;
        }
        Ok(card)
    }

    /// Its facts by what they are about.
    pub fn facts(&self) -> [(&'static str, &Fact); 5] {
        [
            ("engineering effort", &self.effort),
            ("licence", &self.licence),
            ("hot reload", &self.hot_reload),
            ("platform reach", &self.reach),
            ("maturity", &self.maturity),
        ]
    }
}

impl Fact {
    fn check(&self) -> Result<(), String> {
        let day = |text: &String| {
            let parts: Vec<&str> = text.split('-').collect();
            parts.iter().map(|part| part.len()).eq([4, 2, 2]) && parts.iter().all(|part| part.bytes().all(|b| b.is_ascii_digit()))
        };
        match (&self.text, &self.source, &self.seen, &self.absent) {
            (None, None, None, Some(why)) if !why.is_empty() => Ok(()),
            (Some(text), Some(source), Some(seen), None) => match () {
                () if text.len() < 4 => Err("the text says nothing".to_owned()),
                () if !source.starts_with("https://") => Err(format!("{source} is no public address")),
                () if !day(seen) => Err(format!("{seen} is no day")),
                () => Ok(()),
            },
            _ => Err("either text, source and seen, or absent with the reason".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FACT: &str = "text = \"MIT.\"\nsource = \"https://example.org\"\nseen = \"2026-11-30\"\n";

    fn card(licence: &str) -> Result<Card, String> {
        let others = ["effort", "hot-reload", "reach", "maturity"].map(|name| format!("[{name}]\nabsent = \"not looked up\"\n"));
        Card::parse(&format!("{}[licence]\n{licence}", others.concat()))
    }

    #[test]
    fn a_fact_has_a_source_and_a_day_or_is_absent() {
        let good = card(FACT).expect("a card");
        let told = [&good.licence.text, &good.licence.source, &good.licence.seen].map(Option::as_deref);
        assert_eq!(told, [Some("MIT."), Some("https://example.org"), Some("2026-11-30")]);
        assert_eq!((good.effort.text, good.effort.absent.as_deref()), (None, Some("not looked up")));
        for (bad, why) in [
            (FACT.replace("https", "http"), "licence: http://example.org is no public address"),
            (FACT.replace("2026-11-30", "yesterday"), "licence: yesterday is no day"),
            (FACT.replace("seen", "absent"), "licence: either text, source and seen, or absent with the reason"),
            (FACT.replace("MIT.", ""), "licence: the text says nothing"),
            ("absent = \"\"".to_owned(), "licence: either text, source and seen, or absent with the reason"),
        ] {
            assert_eq!(card(&bad).expect_err("no card"), why);
        }
        assert!(Card::parse("[licence]\nabsent = \"x\"\n").expect_err("others are missing").contains("missing field"));
    }
}
