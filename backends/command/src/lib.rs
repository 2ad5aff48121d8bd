//! A user's own program as a backend: `[backends.<id>]` of a scenario names a command that reads `job.json` and writes the runner
//! protocol into the file named by `BENCH_EVENTS`.

use bench_backend_api::{
    Availability, Axis, AxisFit, Backend, Captured, Cell, Check, Checks, Description, DeviceClass, DeviceFacts, Expected, Failure,
    Installed, Invocation, JOB_FILE, Launch, Need, ParseError, Parsed, Paths, Program, Quant, Recipe, Source, StagedFile, Step, Unit,
    check_count, check_tokens, job, job_bytes, parsed_from_events,
};

/// A program that speaks the runner protocol.
#[derive(Debug, Clone)]
pub struct CommandBackend {
    id: String,
    command: Vec<String>,
    unit: Unit,
}

impl CommandBackend {
    /// `command` is the program and its first arguments; the job's path is added as the last one.
    pub fn new(id: String, command: Vec<String>, unit: Unit) -> Self {
        Self { id, command, unit }
    }

    fn need(&self) -> Need {
        Need::Program { name: self.command.first().cloned().unwrap_or_default() }
    }
}

impl Backend for CommandBackend {
    fn id(&self) -> &str {
        &self.id
    }

    fn describe(&self) -> Description {
        Description { name: "a program of the scenario", default_unit: self.unit, makes: Quant::ALL, layers: false }
    }

    fn needs(&self, _: &DeviceFacts) -> Vec<Need> {
        vec![self.need()]
    }

    fn probe(&self, _: &DeviceFacts, installed: &Installed) -> Availability {
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

    fn stage(&self, launch: &Launch<'_>) -> Result<Vec<StagedFile>, Failure> {
        let mut job = job(launch)?;
        job.options.insert("quant".to_owned(), launch.cell.quant.to_string());
        if let Some(variant) = launch.cell.asked(Axis::Variant) {
            job.options.insert("variant".to_owned(), variant.to_owned());
        }
        let mut files = vec![StagedFile { name: JOB_FILE.to_owned(), source: Source::Bytes(job_bytes(&job)) }];
        files.extend(launch.artifact.files.iter().map(|f| StagedFile { name: f.clone(), source: Source::Artifact(f.clone()) }));
        Ok(files)
    }

    fn steps(&self, _: &Launch<'_>, _: &Paths) -> Vec<Step> {
        let mut args: Vec<String> = self.command.iter().skip(1).cloned().collect();
        args.push(JOB_FILE.to_owned());
        let invocation =
            Invocation { program: Program::Need(self.need()), args, env: std::collections::BTreeMap::new(), outputs: Vec::new() };
        vec![Step { name: "query".to_owned(), invocation }]
    }

    fn parse(&self, captured: &Captured) -> Result<Parsed, ParseError> {
        parsed_from_events(captured)
    }

    fn verify(&self, cell: &Cell, expected: &Expected, parsed: &Parsed, _: &Captured) -> Checks {
        let (count, mut reasons) = check_count(expected, parsed);
        let (tokens, token_agreement, why) = check_tokens(cell.quant, expected, parsed);
        reasons.extend(why);
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
        Checks { count, tokens, unit, token_agreement, unit_found: parsed.unit_reported.clone(), reasons }
    }
}
