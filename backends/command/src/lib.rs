//! A user's own program as a backend: `[backends.<id>]` of a scenario names a command that reads `job.json` and writes the runner
//! protocol into the file named by `BENCH_EVENTS`.

use bench_backend_api::{
    Availability, Axis, AxisFit, Backend, Captured, Cell, Check, Checks, Description, DeviceClass, DeviceFacts, Expected, Failure,
    Installed, Invocation, JOB_FILE, Launch, Need, ParseError, Parsed, Paths, Program, Quant, Recipe, Source, StagedFile, Step, Unit,
    check_bos, check_count, check_tokens, job, job_bytes, parsed_from_events,
};

/// A program that speaks the runner protocol.
#[derive(Debug, Clone)]
pub struct CommandBackend {
    id: String,
    command: Vec<String>,
    files: Vec<usize>,
    unit: Unit,
}

impl CommandBackend {
    /// `command` is the program and its first arguments; the job's path is added as the last one. `files` are the places of words that are
    /// files of the host.
    pub fn new(id: String, command: Vec<String>, files: Vec<usize>, unit: Unit) -> Self {
        Self { id, command, files, unit }
    }

    fn need(&self) -> Need {
        Need::Program { name: self.command.first().cloned().unwrap_or_default() }
    }

    /// The words that are files of the host, with their names in the work folder.
    fn staged(&self) -> impl Iterator<Item = (usize, &str, &str)> {
        self.files.iter().filter_map(|place| {
            let path = self.command.get(*place)?.as_str();
            Some((*place, path, path.rsplit(['/', '\\']).next().unwrap_or(path)))
        })
    }

    /// The command on a device that is another machine: files of the host by their names in the work folder, the rest is the device's own.
    fn remote(&self) -> (Program, Vec<String>) {
        let mut words = self.command.clone();
        for (place, _, name) in self.staged() {
            name.clone_into(&mut words[place]);
        }
        let first = if words.is_empty() { String::new() } else { words.remove(0) };
        let program = if self.files.contains(&0) { Program::Staged(first) } else { Program::Path(first) };
        (program, words)
    }
}

impl Backend for CommandBackend {
    fn id(&self) -> &str {
        &self.id
    }

    fn describe(&self) -> Description {
        Description { name: "a program of the scenario", default_unit: self.unit, makes: Quant::ALL, layers: false }
    }

    fn needs(&self, device: &DeviceFacts) -> Vec<Need> {
        if device.remote {
            return self.staged().map(|(_, path, _)| Need::Program { name: path.to_owned() }).collect();
        }
        vec![self.need()]
    }

    fn probe(&self, device: &DeviceFacts, installed: &Installed) -> Availability {
        // Whether a device has a program of its own shows when it is started.
        if device.remote && installed.missing(&self.needs(device)).is_none() {
            return Availability::Ready { version: "unknown".to_owned() };
        }
        match installed.get(&self.need()) {
            Some(_) => Availability::Ready { version: "unknown".to_owned() },
            None => Availability::Missing {
                what: format!("the program {}", self.command.first().map_or("(none)", String::as_str)),
                remedy: format!("install it, or write its path in backends.{}.command", self.id),
            },
        }
    }

    fn axis(&self, axis: Axis, _: &str) -> AxisFit {
        match axis {
            Axis::Threads | Axis::PerfProfile | Axis::Variant => AxisFit::Settable,
            _ => AxisFit::NotApplicable,
        }
    }

    fn device_class(&self, _: &Cell, device: &DeviceFacts) -> DeviceClass {
        device.class
    }

    /// The program brings its own model, so that there is nothing to make.
    fn recipe(&self, _: &Cell, _: &DeviceFacts) -> Option<Recipe> {
        Some(Recipe { kind: "none".to_owned(), args: std::collections::BTreeMap::new() })
    }

    fn mixes_lengths(&self, _: &Cell, _: &DeviceFacts) -> bool {
        true
    }

    fn stage(&self, launch: &Launch<'_>) -> Result<Vec<StagedFile>, Failure> {
        let mut job = job(launch)?;
        job.options.insert("quant".to_owned(), launch.cell.quant.to_string());
        if let Some(variant) = launch.cell.asked(Axis::Variant) {
            job.options.insert("variant".to_owned(), variant.to_owned());
        }
        let mut files = vec![StagedFile { name: JOB_FILE.to_owned(), source: Source::Bytes(job_bytes(&job)) }];
        if launch.device.remote {
            files.extend(self.staged().map(|(_, path, name)| StagedFile {
                name: name.to_owned(),
                source: Source::Need(Need::Program { name: path.to_owned() }),
            }));
        }
        files.extend(launch.artifact.files.iter().map(|f| StagedFile { name: f.clone(), source: Source::Artifact(f.clone()) }));
        Ok(files)
    }

    fn steps(&self, launch: &Launch<'_>, _: &Paths) -> Vec<Step> {
        let (program, mut args) =
            if launch.device.remote { self.remote() } else { (Program::Need(self.need()), self.command.iter().skip(1).cloned().collect()) };
        args.push(JOB_FILE.to_owned());
        let invocation = Invocation { program, args, env: std::collections::BTreeMap::new(), outputs: Vec::new() };
        vec![Step { name: "query".to_owned(), invocation }]
    }

    fn parse(&self, captured: &Captured) -> Result<Parsed, ParseError> {
        parsed_from_events(captured)
    }

    fn verify(&self, cell: &Cell, expected: &Expected, parsed: &Parsed, _: &Captured) -> Checks {
        let (count, mut reasons) = check_count(expected, parsed);
        let (tokens, token_agreement, why) = check_tokens(cell.quant, expected, parsed);
        reasons.extend(why);
        let bos = check_bos(expected, parsed, &mut reasons);
        let unit = match &parsed.unit_reported {
            Some(found) if found == cell.unit.as_str() => Check::Confirmed,
            Some(found) => {
                reasons.push(format!("{} asked, the program says it used {found}", cell.unit));
                Check::Contradicted
            }
            None => {
                reasons.push("the program does not say which unit it used".to_owned());
                Check::NotCheckable
            }
        };
        Checks { count, tokens, unit, bos, token_agreement, unit_found: parsed.unit_reported.clone(), reasons }
    }
}
