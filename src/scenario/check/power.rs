//! `[power]`.

use super::{
    super::{
        power::{MeterSource, Power, PowerMethod},
        suggest::show,
        value::{At, List},
        wire,
    },
    Context, models,
};
use std::time::Duration;

impl Context<'_> {
    /// `local`: this computer is measured. `sampled`: telemetry is on.
    pub(super) fn power(&mut self, section: Option<At<wire::Power>>, local: bool, sampled: bool) -> Option<Power> {
        let section = section?;
        let span = section.span();
        let wire = section.value;
        if !sampled {
            let help = "take `rate = \"0Hz\"` out of [telemetry]".to_owned();
            self.out.error(span, "[power] without telemetry has nothing to measure with", help);
        }
        self.conflicts(&wire, local);
        let method = match wire.method.as_ref().map(|m| m.value) {
            None | Some(wire::PowerMethod::Auto) => PowerMethod::Auto,
            Some(wire::PowerMethod::Battery) => PowerMethod::Battery,
            Some(wire::PowerMethod::Hwmon) => PowerMethod::Hwmon,
            Some(wire::PowerMethod::Meter) => PowerMethod::Meter,
        };
        let baseline = match &wire.baseline {
            None => Some(Duration::from_millis(Power::BASELINE_MS)),
            Some(at) if at.value == "off" => None,
            Some(at) => self.duration("baseline", at),
        };
        let least = Duration::from_millis(Power::BASELINE_MS);
        if let (Some(at), Some(short)) = (&wire.baseline, baseline.filter(|b| *b < least)) {
            let message = format!("an idle baseline of {} is too short for a battery's gauge", humantime::format_duration(short));
            self.out.error(at.span(), message, "at least \"60s\", or \"off\"".to_owned());
        }
        Some(Power {
            method,
            measured: wire.supply.is_some(),
            usb_off: self.host_command(wire.usb_off.as_ref()),
            usb_on: self.host_command(wire.usb_on.as_ref()),
            away_ms: wire.away.as_ref().and_then(|a| self.duration("away", a)).map(|d| d.as_millis() as u64),
            wait_ms: wire.wait.as_ref().and_then(|w| self.duration("wait", w)).map(|d| d.as_millis() as u64),
            on_battery: wire.on_battery.as_ref().is_some_and(|b| b.value),
            baseline_ms: baseline.map_or(0, |b| b.as_millis() as u64),
            rails: wire.rails.iter().flat_map(|r| &r.0).map(|r| r.value.clone()).collect(),
            meter: wire.meter.as_ref().and_then(|m| self.meter(m)),
        })
    }

    fn conflicts(&mut self, wire: &wire::Power, local: bool) {
        let first = |list: &Option<List<String>>| list.as_ref().and_then(|l| l.0.first()).map(At::span);
        let (off, on) = (first(&wire.usb_off), first(&wire.usb_on));
        match (&off, &on) {
            (Some(span), None) => {
                self.out.error(span.clone(), "`usb-off` without `usb-on` would leave the device without its cable", "name both".to_owned());
            }
            (None, Some(span)) => self.out.error(span.clone(), "`usb-on` without `usb-off` has nothing to undo", "name both".to_owned()),
            _ => {}
        }
        let by_hand = wire.on_battery.as_ref().filter(|b| b.value);
        if let (Some(at), Some(_)) = (by_hand, &off) {
            self.out.error(
                at.span(),
                "`on-battery` and `usb-off` exclude each other",
                "the cable is pulled by hand or cut by a hub".to_owned(),
            );
        }
        if let (Some(span), true) = (&off, local) {
            self.out.error(span.clone(), "`usb-off` cuts the cable of a phone or board, and this computer is measured", None);
        }
        if let (Some(at), true, None) = (&wire.away, by_hand.is_none(), &off) {
            self.out.warning(at.span(), "`away` does nothing without `usb-off` or `on-battery`", "take it out".to_owned());
        }
        if let (Some(at), Some(supply)) = (by_hand, &wire.supply) {
            let _ = at;
            let help = "with a measured supply nothing has to be unplugged".to_owned();
            self.out.warning(supply.span(), "`supply = \"measured\"` and `on-battery` say two things", help);
        }
        let method = wire.method.as_ref().map(|m| (m.value, m.span()));
        match (&method, &wire.meter) {
            (Some((wire::PowerMethod::Meter, span)), None) => {
                let help = "add for instance `meter = { file = \"meter.csv\" }`".to_owned();
                self.out.error(span.clone(), "`method = \"meter\"` without a `meter`", help);
            }
            (Some((wire::PowerMethod::Battery | wire::PowerMethod::Hwmon, _)), Some(meter)) => {
                self.out.warning(meter.span(), "a `meter` that the `method` does not use", "take one of them out".to_owned());
            }
            _ => {}
        }
        if let (Some((wire::PowerMethod::Battery | wire::PowerMethod::Meter, _)), Some(span)) = (&method, first(&wire.rails)) {
            self.out.warning(span, "`rails` that the `method` does not use", "take them out, or say `method = \"hwmon\"`".to_owned());
        }
    }

    fn meter(&mut self, at: &At<wire::Meter>) -> Option<MeterSource> {
        match (&at.value.file, &at.value.command) {
            (Some(file), None) if !file.value.is_empty() => {
                // It may be written while the run goes on.
                Some(MeterSource::File(models::normal(&self.dir.join(&file.value)).display().to_string()))
            }
            (None, command @ Some(_)) => Some(MeterSource::Command(self.host_command(command.as_ref()))),
            _ => {
                self.out.error(
                    at.span(),
                    "a `meter` has either a `file` or a `command`",
                    "write for instance { file = \"meter.csv\" }".to_owned(),
                );
                None
            }
        }
    }

    /// A command line of this computer: a list of words, or one text that is split at its spaces. No shell sees it.
    fn host_command(&mut self, list: Option<&List<String>>) -> Vec<String> {
        let Some(list) = list else { return Vec::new() };
        let mut words: Vec<String> = list.0.iter().map(|w| w.value.clone()).collect();
        let Some(first) = list.0.first() else { return words };
        if let [only] = list.0.as_slice() {
            if let Some(parts) = split(&only.value) {
                words = parts;
            } else {
                let message = format!("a quote of {} has no end", show(&only.value));
                self.out.error(only.span(), message, "or write the words as a list".to_owned());
            }
        }
        if words.first().is_none_or(String::is_empty) || words.iter().any(|w| w.contains('\0')) {
            self.out.error(first.span(), "not a command line", "write for instance \"uhubctl -l 1-1 -p 2 -a off\"".to_owned());
        } else if words[0].starts_with("./") || words[0].starts_with("../") {
            words[0] = self.existing(&first.with(words[0].clone())).map(|p| p.display().to_string()).unwrap_or_default();
        }
        words
    }
}

/// Words of a text, apart by spaces; `"..."` and `'...'` hold a word with spaces together. `None` when a quote has no end.
fn split(text: &str) -> Option<Vec<String>> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for c in text.chars() {
        match (quote, c) {
            (Some(q), c) if c == q => quote = None,
            (None, '"' | '\'') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            (_, c) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    quote.is_none().then_some(words)
}

#[cfg(test)]
mod tests {
    use super::split;

    #[test]
    fn a_text_is_split_without_a_shell() {
        let words = |text: &str| split(text).unwrap();
        assert_eq!(words("uhubctl -l 1-1  -p 2 -a off"), ["uhubctl", "-l", "1-1", "-p", "2", "-a", "off"]);
        assert_eq!(words(r#" "/opt/my hub/off" 'a "b"' "" $HOME;x "#), ["/opt/my hub/off", "a \"b\"", "", "$HOME;x"]);
        assert_eq!(split("a 'b"), None);
        assert!(words("  ").is_empty());
    }
}
