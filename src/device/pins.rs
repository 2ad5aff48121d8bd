//! What can be set on a device for the time of a run: `pins.toml`, built in. Data only; `run/pins.rs` carries it out.

use std::sync::LazyLock;

use serde::Deserialize;

/// One entry of the list.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct PinKind {
    /// Name in scenarios.
    pub name: String,
    /// What it does, and where it does not work.
    pub about: String,
    /// What a scenario may say.
    pub value: Values,
    /// The device's word for a switch that is on.
    #[serde(default)]
    pub on: String,
    /// The device's word for a switch that is off.
    #[serde(default)]
    pub off: String,
    /// Smallest integer.
    #[serde(default)]
    pub min: i64,
    /// Largest integer.
    #[serde(default)]
    pub max: i64,
    /// A shell pattern: the pin is set for every path that it gives.
    #[serde(default)]
    pub each: Option<String>,
    /// It belongs to the measured program, not to the device.
    #[serde(default)]
    pub launch: bool,
    /// It cuts a device that is reached over the network.
    #[serde(default)]
    pub cuts_network: bool,
    /// Prints the present value; absent where the device does not tell it.
    #[serde(default)]
    pub read: Option<String>,
    /// Sets it.
    pub set: String,
    /// Puts it back where no earlier value is known.
    #[serde(default)]
    pub reset: Option<String>,
    /// Where this is documented.
    pub source: String,
}

/// What a scenario may say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Values {
    /// `on` or `off`.
    Switch,
    /// A whole number.
    Integer,
    /// A duration.
    Milliseconds,
    /// A word of letters, digits, `_`, `-` and `.`.
    Word,
}

impl PinKind {
    /// The device's word for what a scenario says, or what may be said instead.
    ///
    /// # Errors
    /// What a scenario may say, in words.
    pub fn value_of(&self, said: &str) -> Result<String, String> {
        match self.value {
            Values::Switch => match said {
                "on" | "true" | "yes" => Ok(self.on.clone()),
                "off" | "false" | "no" => Ok(self.off.clone()),
                _ => Err("write \"on\" or \"off\"".to_owned()),
            },
            Values::Integer => {
                let number = said.parse::<i64>().ok().filter(|n| (self.min..=self.max).contains(n));
                number.map(|n| n.to_string()).ok_or_else(|| format!("write a number from {} to {} in quotes", self.min, self.max))
            }
            Values::Milliseconds => {
                let time = humantime::parse_duration(said).ok().map(|t| t.as_millis()).filter(|ms| (1000..=i32::MAX as u128).contains(ms));
                time.map(|ms| ms.to_string()).ok_or_else(|| "write a duration, for instance \"30m\"".to_owned())
            }
            Values::Word => {
                let good = !said.is_empty() && said.len() <= 64 && said.chars().all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c));
                good.then(|| said.to_owned()).ok_or_else(|| "write a word of letters, digits, `_`, `-` and `.`".to_owned())
            }
        }
    }
}

/// The list.
pub fn catalogue() -> &'static [PinKind] {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct File {
        pin: Vec<PinKind>,
    }
    static LIST: LazyLock<Vec<PinKind>> = LazyLock::new(|| {
        let file: File = toml::from_str(include_str!("pins.toml")).expect("pins.toml, tested");
        file.pin
    });
    &LIST
}

/// The entry of this name.
pub fn find(name: &str) -> Option<&'static PinKind> {
    catalogue().iter().find(|pin| pin.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pin_can_be_put_back() {
        for pin in catalogue() {
            assert!(pin.launch || pin.read.is_some() || pin.reset.is_some(), "{}", pin.name);
            assert!(pin.value != Values::Switch || (!pin.on.is_empty() && !pin.off.is_empty() && pin.on != pin.off), "{}", pin.name);
            assert!(pin.about.len() > 20 && pin.source.len() > 5 && catalogue().iter().filter(|p| p.name == pin.name).count() == 1);
        }
    }

    #[test]
    fn values_in_the_devices_words() {
        let value = |name: &str, said: &str| find(name).unwrap().value_of(said);
        assert_eq!(value("screen-timeout", "30m").as_deref(), Ok("1800000"));
        assert_eq!((value("stay-on", "on").as_deref(), value("airplane", "off").as_deref()), (Ok("15"), Ok("0")));
        assert_eq!((value("brightness", "10").as_deref(), value("governor", "performance").as_deref()), (Ok("10"), Ok("performance")));
        for (name, bad) in [
            ("screen-timeout", "soon"),
            ("screen-timeout", "0s"),
            ("screen-timeout", "60 days"),
            ("brightness", "0"),
            ("brightness", "1.5"),
            ("stay-on", "maybe"),
            ("governor", "a; reboot"),
            ("governor", ""),
        ] {
            assert!(value(name, bad).is_err(), "{name} {bad}");
        }
    }
}
