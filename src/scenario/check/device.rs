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

impl Context<'_> {
    pub(super) fn device(&mut self, device: Option<&At<wire::Device>>) -> DeviceChoice {
        let chosen = device.and_then(|d| d.value.soc.as_ref());
        if let Some(device) = device {
            let local = device.value.local.as_ref();
            if let Some(local) = local.filter(|l| !l.value) {
                self.out.error(local.span(), "no device is chosen", "this version measures on this computer: `local = true`".to_owned());
            } else if local.is_none()
                && let Some(soc) = chosen
            {
                let help = "add `local = true` to measure on this computer, its NPU emulated".to_owned();
                self.out.error(
                    soc.span(),
                    "choosing phones by `soc` is not carried out by this version: phones come with a later version",
                    help,
                );
            } else if local.is_none() && !self.is_damaged("device") {
                self.out.error(device.span(), "no device is chosen", "this version measures on this computer: `local = true`".to_owned());
            }
        }
        let found = chosen.map_or_else(|| soc::find(DEFAULT_SOC), |s| soc::find(&s.value));
        if let (None, Some(soc)) = (found, chosen) {
            let known: Vec<&str> = soc::catalogue().iter().map(|s| s.soc.as_str()).collect();
            self.out.error(soc.span(), format!("unknown SoC {}", show(&soc.value)), suggest::help(&soc.value, &known));
        }
        DeviceChoice {
            local: true,
            soc: found.map(|s| s.soc.clone()).unwrap_or_default(),
            soc_model: found.map_or(0, |s| s.soc_model),
            htp_arch: found.map_or(0, |s| s.htp_arch),
        }
    }
}
