//! `[pin]`.

use std::collections::BTreeMap;

use super::{
    super::{
        state::Pin,
        suggest::{self, show},
        value::At,
    },
    Context,
};
use crate::device::pins;

impl Context<'_> {
    /// `local`: the device is this computer, whose state is its owner's.
    pub(super) fn pins(&mut self, wire: BTreeMap<At<String>, At<String>>, local: bool) -> Vec<Pin> {
        let names: Vec<&str> = pins::catalogue().iter().map(|p| p.name.as_str()).collect();
        // In the order of the list: what comes first there is set first.
        let place = |pin: &Pin| names.iter().position(|n| *n == pin.name);
        let mut all = Vec::new();
        for (name, value) in wire {
            let Some(kind) = pins::find(&name.value) else {
                self.out.error(name.span(), format!("unknown pin {}", show(&name.value)), suggest::help(&name.value, &names));
                continue;
            };
            if local {
                let help = "pins are for phones and boards over ADB; set it yourself, `bench` records governor and caps".to_owned();
                self.out.error(name.span(), format!("`{}` can't be pinned on this computer", kind.name), help);
                continue;
            }
            match kind.value_of(value.value.trim()) {
                Ok(word) => all.push(Pin { name: kind.name.clone(), value: word }),
                Err(help) => self.out.error(value.span(), format!("{} is no value of `{}`", show(&value.value), kind.name), help),
            }
        }
        all.sort_by_key(place);
        all
    }
}
