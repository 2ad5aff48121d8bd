//! A soak that outlived the bench that began it.

use std::path::Path;

use bench_backend_api::{Failure, FailureKind, Paths};

use super::{LaunchError, Launched, Left, Problem, Ran, Request, fetched, record};
use crate::{
    device::{Adopted, Device},
    results::launches::{Staged, StepRecord},
    run::capture::{self, EVENTS},
};

/// Records a soak that an earlier bench began and that has ended meanwhile.
pub async fn adopt<D: Device>(device: &D, request: &Request<'_>, dir: &Path, adopted: Adopted) -> Result<Option<Launched>, LaunchError> {
    let Adopted { work, done } = adopted;
    let trips = device.round_trips();
    let paths = Paths { work: work.clone(), events: EVENTS.to_owned() };
    let step = request.backend.steps(&request.launch, &paths).into_iter().next();
    let argv = step.as_ref().map(|s| capture::argv(&s.invocation, request.launch.installed, &work)).unwrap_or_default();
    let (name, outputs) = step.map(|s| (s.name, s.invocation.outputs)).unwrap_or_default();
    let why = "bench was killed while it ran, and its agent left no evidence of how it ended";
    let broken = done.is_none().then(|| Failure::new(FailureKind::Infra, why));
    let mut left = Left { broken, ..Left::default() };
    let files: Vec<String> = std::iter::once(EVENTS.to_owned()).chain(outputs).collect();
    let result = match fetched(device, request, &work, dir, &files).await {
        Ok(()) => {
            left.captured = match &done {
                Some(done) => capture::captured(dir, &files, done),
                None => capture::unended(dir, &files),
            };
            Ok(Some(left))
        }
        Err(e) => Err(Problem::Device(e)),
    };
    let steps = vec![StepRecord { name, argv, done }];
    let (_, cancel) = tokio::sync::watch::channel(false);
    let recorded = record(device, request, dir, &cancel, Ran { result, log: Ok(None), steps, staged: Staged::default(), trips })?;
    device.remove(&work).await;
    Ok(recorded)
}
