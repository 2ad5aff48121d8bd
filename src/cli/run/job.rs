//! The run of one device: its plans, what they need, and their folders. An A/B run has two of each.

use std::path::Path;

use bench_backend_api::{Availability, Backend, DeviceFacts, Installed, Need};

use super::{Args, Wanted};
use crate::{
    cli::{
        console::{Console, printable},
        exit::{Code, Failed},
        note,
        runtimes::{consent, unavailable},
    },
    device::{Cancel, Device},
    registry,
    results::{
        folder::{Folder, write_whole},
        manifest::Manifest,
    },
    run::{self, Outcome, RunError, Setup},
    runtimes::{Cache, find_in, python},
    scenario::{Ab, Plan, Side},
};

/// The run of one device.
pub struct Job<D> {
    /// One; of an A/B run two, in order.
    sides: Vec<Planned>,
    pub device: D,
}

struct Planned {
    plan: Plan,
    installed: Installed,
    folder: Folder,
}

impl<D: Device> Job<D> {
    /// `old` are the folders of a run that goes on.
    pub fn new(args: &Args, cache: &Cache, wanted: &Wanted, plans: Vec<Plan>, device: D, old: Vec<Folder>) -> anyhow::Result<Self> {
        let installed = plans.iter().zip(wanted.origins()).map(|(plan, origin)| {
            let own = registry::commands(&plan.commands);
            let backends = registry::with(&own);
            let installed = install(cache, plan, &backends, device.facts(), args)?;
            for words in origin.map(|then| other_runtimes(then, plan, &backends, &installed, device.facts())).unwrap_or_default() {
                note(&printable(&format!("warning: {}: {words}: this is measured now", plan.name)));
            }
            anyhow::Ok(installed)
        });
        let installed = installed.collect::<anyhow::Result<Vec<_>>>()?;
        // Not before everything is there: a run folder in which nothing was tried helps nobody.
        let begun = if old.is_empty() { begin(plans, args)? } else { plans.into_iter().zip(old).collect() };
        let sides = begun.into_iter().zip(installed).map(|((plan, folder), installed)| Planned { plan, installed, folder });
        Ok(Self { sides: sides.collect(), device })
    }

    /// The same with another view of its device.
    pub fn map_device(self, map: impl FnOnce(D) -> D) -> Self {
        Self { device: map(self.device), ..self }
    }

    pub fn folders(&self) -> impl Iterator<Item = &Folder> {
        self.sides.iter().map(|side| &side.folder)
    }

    /// Its folder, or the first of two.
    pub fn path(&self) -> &Path {
        self.folders().next().map_or(Path::new(""), |folder| &folder.path)
    }

    /// The command that goes on with it.
    pub fn resume(&self) -> String {
        format!("bench run --resume {}", self.path().display())
    }

    /// The user stopped it while the device was another's.
    pub fn not_begun(&self) -> anyhow::Error {
        let message = format!("interrupted while another bench measured on {}; begin with: {}", self.device.facts().name, self.resume());
        Failed { code: Code::Interrupted, message }.into()
    }

    pub async fn run(&self, cache: &Cache, console: &Console, cancel: &Cancel, args: &Args) -> Result<Outcome, RunError> {
        let own: Vec<_> = self.sides.iter().map(|side| registry::commands(&side.plan.commands)).collect();
        let backends: Vec<_> = own.iter().map(|own| registry::with(own)).collect();
        let consoles: Vec<_> = self.sides.iter().map(|side| console.of_side(side.plan.ab.as_ref().map(|ab| ab.side))).collect();
        let setups = self.sides.iter().zip(&backends).zip(&consoles).map(|((side, backends), console)| Setup {
            plan: &side.plan,
            backends,
            installed: &side.installed,
            device: &self.device,
            cache,
            folder: &side.folder,
            console,
            cancel: cancel.clone(),
            retry_failed: args.retry_failed,
        });
        let outcomes = run::run(&setups.collect::<Vec<_>>()).await?;
        Ok(outcomes.into_iter().reduce(Outcome::and).unwrap_or_default())
    }
}

/// What the cells of an earlier run were made with and is not here any more. Of other backends nothing is installed, so nothing is known.
fn other_runtimes(then: &Manifest, plan: &Plan, backends: &[&dyn Backend], installed: &Installed, device: &DeviceFacts) -> Vec<String> {
    let words = |availability: &Availability| match availability {
        Availability::Ready { version } => version.clone(),
        Availability::Missing { what, .. } => format!("nothing, {what} is missing"),
        Availability::Refused { reason } => reason.clone(),
    };
    let now = |id: &str| Some(backends.iter().find(|b| b.id() == id)?.probe(device, installed));
    let measured = |id: &str| plan.cells.iter().any(|planned| planned.cell.backend == id);
    let changed = then
        .runtimes
        .iter()
        .filter(|(id, _)| measured(id))
        .filter_map(|(id, then)| Some((id, then, now(id)?)))
        .filter(|(_, then, now)| *then != now);
    changed.map(|(id, then, now)| format!("its run had {id} {}, here is {}", words(then), words(&now))).collect()
}

/// New run folders, each with its plan.
fn begin(mut plans: Vec<Plan>, args: &Args) -> anyhow::Result<Vec<(Plan, Folder)>> {
    let now = jiff::Timestamp::now();
    let stamp = now.strftime("%Y%m%dT%H%M%SZ").to_string();
    let salt = python::short_hash(&[stamp.as_bytes(), &std::process::id().to_le_bytes(), &now.as_nanosecond().to_le_bytes()]);
    let id = |plan: &Plan, side: &str| format!("{stamp}-{}{side}-{}", plan.name, &salt[..6]);
    let ids = if let [a, b] = &mut plans[..] {
        let ids = [id(a, ".a"), id(b, ".b")];
        let names = |of: &Plan| of.cells.iter().map(|c| c.id.clone()).collect::<Vec<_>>();
        let (of_a, of_b) = (names(a), names(b));
        let ab = |side, partner: &String, here: &[String], there: &[String]| {
            Some(Ab { side, partner: partner.clone(), cells: here.iter().cloned().zip(there.iter().cloned()).collect() })
        };
        a.ab = ab(Side::A, &ids[1], &of_a, &of_b);
        b.ab = ab(Side::B, &ids[0], &of_b, &of_a);
        ids.to_vec()
    } else {
        plans.iter().map(|plan| id(plan, "")).collect()
    };
    let make = |(plan, id): (Plan, String)| {
        let folder = Folder::create(args.out.join(id))?;
        write_whole(&folder.path.join("plan.toml"), plan.to_toml()?.as_bytes())?;
        Ok((plan, folder))
    };
    plans.into_iter().zip(ids).map(make).collect()
}

/// Finds what the plan's backends need, and installs the Python environment when it is needed and allowed.
fn install(cache: &Cache, plan: &Plan, backends: &[&dyn Backend], device: &DeviceFacts, args: &Args) -> anyhow::Result<Installed> {
    let used = |b: &&&dyn Backend| plan.cells.iter().any(|c| c.skipped.is_none() && c.cell.backend == b.id());
    let mut needs: Vec<Need> = backends.iter().filter(used).flat_map(|b| b.needs(device)).collect();
    if run::needs_recipes(plan) {
        needs.push(Need::Python);
    }
    let found = find_in(&plan.runtimes, cache, device, needs.clone());
    let wanted = needs.iter().any(|n| matches!(n, Need::Python | Need::PythonPackage { .. }) && found.get(n).is_none());
    if !wanted || args.offline {
        return Ok(found);
    }
    if !consent(args.yes)? {
        return Ok(found);
    }
    let say = |text: &str| note(text);
    python::Environment::install(cache, &say).map_err(unavailable)?;
    Ok(find_in(&plan.runtimes, cache, device, needs))
}
