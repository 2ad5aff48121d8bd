//! `bench runtimes list`: for this computer, or for phones.

use std::collections::BTreeMap;

use bench_backend_api::{Availability, DeviceFacts, Need};
use serde_json::json;

use crate::{
    cli::{Format, exit::Code},
    device, registry,
    runtimes::{self, Cache, agent_for, android::Trio, qairt::Sdk},
    scenario::find_soc,
};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// For which devices: this computer, or Android phones
    #[arg(long, value_parser = ["local", "aarch64-android"], default_value = "local")]
    target: String,
    /// The phones' chip
    #[arg(long, default_value = "SM8650")]
    soc: String,
    /// How the list is printed
    #[arg(long, value_enum, default_value_t = Format::Human)]
    format: Format,
}

/// An Android phone with a chip of the catalogue, before there is one: what is needed for it can be looked for all the same.
pub fn phone(soc: &str) -> anyhow::Result<DeviceFacts> {
    let chip = find_soc(soc).ok_or_else(|| crate::cli::usage(format!("no chip `{soc}` in the catalogue")))?;
    Ok(DeviceFacts { name: format!("an Android phone with {soc}"), ..device::phone_facts(chip.soc_model, chip.htp_arch) })
}

/// One line of the list.
struct Line {
    what: String,
    /// Its version or place.
    found: Option<String>,
    /// How to get it.
    remedy: String,
}

pub fn main(cache: &Cache, args: &Args) -> anyhow::Result<Code> {
    let phone = phone(&args.soc)?;
    let remote = args.target != "local";
    let device = if remote { phone } else { device::local_facts(phone.soc_model, phone.htp_arch) };
    let needs: Vec<Need> = registry::BACKENDS.iter().flat_map(|b| b.needs(&device)).collect();
    let installed = runtimes::find(cache, &device, needs);
    let states: BTreeMap<&str, Availability> = registry::BACKENDS.iter().map(|b| (b.id(), b.probe(&device, &installed))).collect();
    let parts = if remote { for_phones(cache, &device) } else { Vec::new() };
    if args.format == Format::Json {
        let needs: Vec<_> = installed.0.iter().map(|(need, found)| json!({"need": need, "found": found})).collect();
        let parts: Vec<_> = parts.iter().map(|p| json!({"what": p.what, "found": p.found, "remedy": p.remedy})).collect();
        let text =
            serde_json::to_string_pretty(&json!({"cache": cache.0, "device": device, "backends": states, "found": needs, "parts": parts}))?;
        crate::cli::print(&format!("{text}\n"))?;
        return Ok(Code::Done);
    }
    let mut lines: Vec<String> = states
        .into_iter()
        .map(|(id, state)| match state {
            Availability::Ready { version } => format!("{id:<10} ready     {version}"),
            Availability::Missing { what, remedy } => format!("{id:<10} missing   {what}\n{:<10} to do     {remedy}", ""),
            Availability::Refused { reason } => format!("{id:<10} not here  {reason}"),
        })
        .collect();
    lines.extend(parts.into_iter().map(|part| match part.found {
        Some(found) => format!("{:<10} there     {found}", part.what),
        None => format!("{:<10} missing\n{:<10} to do     {}", part.what, "", part.remedy),
    }));
    if remote {
        let folder = format!("SET/{}", device.qairt_target());
        let (here, there) = (cache.sets().join(&folder), format!("$BENCH_LIBEXEC/{folder}"));
        lines.push(format!("what you have built yourself goes into {} or {there}, its version into version.txt there", here.display()));
    }
    lines.push(format!("cache: {}\n", cache.0.display()));
    if remote {
        let device = DeviceFacts { soc: Some(args.soc.clone()), ..device };
        let guides = registry::BUILD_GUIDES.iter().filter_map(|(id, _)| Some((id, registry::build_guide(id, &device)?)));
        lines.extend(guides.map(|(id, guide)| format!("{id}: how its programs and models are made\n\n{guide}")));
    }
    crate::cli::say(&lines.join("\n"))?;
    Ok(Code::Done)
}

/// What phones need, whatever the backend.
fn for_phones(cache: &Cache, device: &DeviceFacts) -> Vec<Line> {
    let line = |what: &str, found, remedy: &str| Line { what: what.to_owned(), found, remedy: remedy.to_owned() };
    let agent = agent_for(cache, device).ok().map(|p| p.display().to_string());
    let runners = super::runners(device).into_iter().map(|name| {
        let need = Need::Runner { name: name.clone() };
        let found = runtimes::find(cache, device, [need.clone()]).get(&need).map(|f| f.path.clone());
        line(&name, found, "bench runtimes build --ndk DIR")
    });
    let sdk = Sdk::find(cache).map(|s| format!("{} {}", s.version.unwrap_or_default(), s.root.display()));
    let trio = Trio::open(cache).map(|t| {
        let parts = t.parts.iter().map(|p| {
            format!("{} {}{}", p.artifact, p.version.as_deref().unwrap_or("?"), if p.checked { "" } else { " (not of the checked trio)" })
        });
        parts.collect::<Vec<_>>().join(", ")
    });
    let mut lines = vec![line("bench-agent", agent, "bench runtimes build")];
    lines.extend(runners);
    lines.push(line("QAIRT SDK", sdk, "set QAIRT_SDK_ROOT, or run `bench runtimes install qairt`"));
    lines.push(line("ONNX Runtime for Android", trio, "bench runtimes install android"));
    lines
}
