//! `[device]`.

use super::{
    super::{
        checked::DeviceChoice,
        soc::{self, DEFAULT_SOC},
        suggest::{self, show},
        value::At,
        wire,
    },
    Context,
};

/// What a device can be chosen by.
const CHOICES: &str = "this computer: `local = true`; phones and boards over ADB: `soc = \"SM8650\"`, `serial = [\"...\"]` or `all = true`";

impl Context<'_> {
    pub(super) fn device(&mut self, device: Option<&At<wire::Device>>) -> DeviceChoice {
        let Some(device) = device else { return DeviceChoice::default() };
        let wire = &device.value;
        let local = wire.local.as_ref().is_some_and(|l| l.value);
        let all = wire.all.as_ref().is_some_and(|a| a.value);
        let serial: Vec<String> = wire.serial.iter().flat_map(|list| &list.0).map(|s| s.value.clone()).collect();
        if !local && !all && serial.is_empty() && wire.soc.is_none() && !self.is_damaged("device") {
            let place = wire.local.as_ref().map_or(device.span(), At::span);
            self.out.error(place, "no device is chosen", CHOICES.to_owned());
        }
        for (name, given) in
            [("serial", wire.serial.as_ref().and_then(|l| l.0.first()).map(At::span)), ("all", wire.all.as_ref().map(At::span))]
        {
            if let (true, Some(span)) = (local, given) {
                self.out.error(span, format!("`local` and `{name}` exclude each other"), CHOICES.to_owned());
            }
        }
        if let (true, Some(serial)) = (all, wire.serial.as_ref().and_then(|l| l.0.first())) {
            self.out.error(serial.span(), "`serial` and `all` exclude each other", "every device, or those that are named".to_owned());
        }
        let (soc, soc_model, htp_arch) = self.chip(wire, local);
        DeviceChoice { local, serial, all, soc, soc_model, htp_arch, vtcm_mb: wire.vtcm_mb.as_ref().map(|v| v.value) }
    }

    /// Part number, QNN's number and Hexagon architecture: from the catalogue, else as stated, else left to the device.
    fn chip(&mut self, wire: &wire::Device, local: bool) -> (String, u32, u32) {
        let stated = wire.soc_model.as_ref().map(|m| m.value);
        let hexagon = wire.hexagon.as_ref().and_then(|h| h.value.trim_start_matches('v').parse::<u32>().ok());
        let part = wire.soc.as_ref().map_or(if local { DEFAULT_SOC } else { "" }, |s| s.value.as_str());
        if let Some(known) = soc::find(part) {
            for (span, differs, says) in [
                (
                    wire.soc_model.as_ref().map(At::span),
                    stated.is_some_and(|m| m != known.soc_model),
                    format!("soc-model {}", known.soc_model),
                ),
                (wire.hexagon.as_ref().map(At::span), hexagon.is_some_and(|h| h != known.htp_arch), format!("hexagon v{}", known.htp_arch)),
            ] {
                if let (true, Some(span)) = (differs, span) {
                    self.out.error(span, format!("the catalogue has {} with {says}", known.soc), "leave it out".to_owned());
                }
            }
            return (known.soc.clone(), known.soc_model, known.htp_arch);
        }
        if let (Some(soc), true) = (&wire.soc, stated.is_none() || hexagon.is_none()) {
            let known: Vec<&str> = soc::catalogue().iter().map(|s| s.soc.as_str()).collect();
            let help =
                format!("{}; for a SoC that is not in the catalogue state `soc-model` and `hexagon`", suggest::help(&soc.value, &known));
            self.out.error(soc.span(), format!("unknown SoC {}", show(&soc.value)), help);
        }
        (part.to_owned(), stated.unwrap_or(0), hexagon.unwrap_or(0))
    }
}
