//! What a launch has in its work folder.

use std::{collections::BTreeMap, fs, path::Path};

use bench_backend_api::{Failure, FailureKind, Program, Source, StagedFile, Step};

use super::{Problem, Request, shared};
use crate::{
    device::{Content, Device, DeviceError, Placed},
    results::launches::Staged,
    run::{capture, idle, soak},
};

/// What a tool was told is kept beside what it answered, up to this many bytes: larger inputs are filler made by the adapter.
const KEPT_INPUT: usize = 1 << 20;

/// Puts everything that the launch needs into its work folder. Names the files of the model there.
pub(super) async fn stage<D: Device>(
    device: &D,
    request: &Request<'_>,
    dir: &Path,
    work: &str,
    steps: &[Step],
    staged: &mut Staged,
) -> Result<Vec<String>, Problem> {
    let mut files = request.backend.stage(&request.launch).map_err(Problem::Launch)?;
    if let Some(asked) = request.soak {
        let usage = |why| Problem::Launch(Failure::new(FailureKind::Usage, why));
        soak::prolong(&mut files, asked.soak.duration_ms).map_err(usage)?;
    }
    if !request.idle.is_zero() {
        idle::ask(&mut files, request.idle);
    }
    if !request.others.is_empty() {
        shared::ask(&mut files, request).map_err(Problem::Launch)?;
    }
    if let Some(name) = clash(&files) {
        let hint = Some("give one of them another name".to_owned());
        let message = format!("two different files would be {name} in the work folder");
        return Err(Problem::Launch(Failure { kind: FailureKind::Usage, message, hint }));
    }
    let mut placed = Vec::new();
    for file in &files {
        let content = match &file.source {
            Source::Artifact(name) => {
                let missing = || Problem::Launch(Failure::new(FailureKind::Model, format!("the artifact has no file {name}")));
                Content::Host(request.artifact_paths.get(name).ok_or_else(missing)?)
            }
            Source::Need(need) => Content::Host(Path::new(request.launch.installed.path(need))),
            Source::Bytes(bytes) => {
                if bytes.len() <= KEPT_INPUT {
                    fs::write(dir.join(capture::kept(&file.name)), bytes).map_err(DeviceError::io(dir))?;
                }
                Content::Bytes(bytes)
            }
        };
        if let Content::Host(path) = content {
            staged.count(&file.source, fs::metadata(path).map_err(DeviceError::io(path))?.len());
        }
        let executable = steps.iter().any(|s| matches!(&s.invocation.program, Program::Staged(name) if *name == file.name));
        placed.push(Placed { name: &file.name, content, executable });
    }
    device.place(work, &placed).await?;
    Ok(files.iter().filter(|f| matches!(f.source, Source::Artifact(_))).map(|f| f.name.clone()).collect())
}

/// A name that two files with different contents have: one would silently stand for both.
fn clash(files: &[StagedFile]) -> Option<&str> {
    let mut known = BTreeMap::new();
    files
        .iter()
        .find(|file| known.insert(&file.name, &file.source).is_some_and(|before| *before != file.source))
        .map(|file| file.name.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_files_of_one_name_are_told() {
        let file = |name: &str, bytes: &[u8]| StagedFile { name: name.to_owned(), source: Source::Bytes(bytes.to_vec()) };
        assert_eq!(clash(&[file("a", b"1"), file("b", b"2"), file("a", b"1")]), None);
        assert_eq!(clash(&[file("a", b"1"), file("b", b"2"), file("b", b"3")]), Some("b"));
    }
}
