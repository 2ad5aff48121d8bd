//! The user's own QAIRT SDK: where it is, and installing Qualcomm's public archive.

use std::{
    env, fs, io,
    path::{Path, PathBuf},
};

use bench_backend_api::Found;
use serde::Deserialize;
use thiserror::Error;

use super::{
    Cache,
    archive::{Most, fetch, unpack},
};

#[derive(Debug, Deserialize)]
struct Data {
    latest: String,
    archive: Archive,
}
#[derive(Debug, Deserialize)]
struct Archive {
    host: String,
    path: String,
    page: String,
}

fn data() -> Data {
    toml::from_str(include_str!("qairt.toml")).expect("qairt.toml is checked by a test")
}

/// An SDK has some 5 GB in 10,000 files.
const MOST: Most = Most { bytes: 40 << 30, files: 200_000 };

/// Why the SDK can't be installed.
#[derive(Debug, Error)]
pub enum QairtError {
    /// The licence was not accepted.
    #[error("the QAIRT SDK is under Qualcomm's own licence: read it on {page}, then run the same command with --accept-licence")]
    Licence {
        /// Where the licence is.
        page: String,
    },
    /// The archive could not be fetched.
    #[error(
        "could not fetch {url}: {words}\nfetch it by hand from {page}, then run `bench runtimes install qairt --accept-licence --from FILE.zip`"
    )]
    Fetch {
        /// Address.
        url: String,
        /// What went wrong.
        words: String,
        /// Where to fetch it by hand.
        page: String,
    },
    /// The archive can't be unpacked or is not the SDK.
    #[error("{archive}: {words}")]
    Archive {
        /// The file.
        archive: PathBuf,
        /// What is wrong.
        words: String,
    },
    /// The file system refused.
    #[error("{path}: {source}")]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// An SDK on this machine.
#[derive(Debug, Clone)]
pub struct Sdk {
    /// Its root: the folder that holds `bin` and `lib`.
    pub root: PathBuf,
    /// Its version, when the folder tells it.
    pub version: Option<String>,
}

impl Sdk {
    /// `QAIRT_SDK_ROOT`, `QNN_SDK_ROOT`, or the one installed by bench.
    pub fn find(cache: &Cache) -> Option<Self> {
        let named = ["QAIRT_SDK_ROOT", "QNN_SDK_ROOT"].into_iter().filter_map(env::var_os).map(PathBuf::from);
        let installed = cache.runtimes().join("qairt");
        named.chain([installed]).find_map(|root| Self::open(&root))
    }

    pub(super) fn open(root: &Path) -> Option<Self> {
        if !root.join("bin").is_dir() && !root.join("lib").is_dir() {
            return None;
        }
        // sdk.yaml of the SDK holds `version: 2.xx.y.date`; else the folder's own name is the version.
        let yaml = fs::read_to_string(root.join("sdk.yaml")).unwrap_or_default();
        let stated = yaml.lines().find_map(|l| l.trim().strip_prefix("version:")).map(|v| v.trim().trim_matches('"').to_owned());
        let name = root.file_name().map(|n| n.to_string_lossy().into_owned());
        let version = stated.or_else(|| name.filter(|n| n.starts_with(|c: char| c.is_ascii_digit()) && n.contains('.')));
        Some(Self { root: root.to_path_buf(), version })
    }

    /// A file of the SDK.
    pub fn file(&self, path: &str) -> Option<Found> {
        let file = self.root.join(path);
        file.is_file().then(|| Found { path: file.to_string_lossy().into_owned(), version: self.version.clone() })
    }

    /// Installs the public archive, or one that the user has, into the cache.
    pub fn install(
        cache: &Cache,
        accepted: bool,
        from: Option<&Path>,
        version: Option<&str>,
        say: &dyn Fn(&str),
    ) -> Result<Self, QairtError> {
        let data = data();
        if !accepted {
            return Err(QairtError::Licence { page: data.archive.page });
        }
        let parent = cache.runtimes();
        let io_error = |path: &Path| {
            let path = path.to_path_buf();
            move |source| QairtError::Io { path, source }
        };
        fs::create_dir_all(&parent).map_err(io_error(&parent))?;
        // Two at once wait for each other.
        let lock_path = parent.join("qairt.lock");
        let lock = fs::File::create(&lock_path).map_err(io_error(&lock_path))?;
        lock.lock().map_err(io_error(&lock_path))?;
        let archive = if let Some(file) = from {
            file.to_path_buf()
        } else {
            let version = version.unwrap_or(&data.latest);
            let url = format!("{}/{}", data.archive.host, data.archive.path.replace("{version}", version));
            let to = parent.join(format!("qairt-{version}.zip.part"));
            say(&format!("fetching {url} (over 1 GB)"));
            if let Err(words) = fetch(&url, &to) {
                let _ = fs::remove_file(&to);
                return Err(QairtError::Fetch { url, words, page: data.archive.page });
            }
            to
        };
        say("unpacking");
        let unpacked = parent.join("qairt.part");
        let _ = fs::remove_dir_all(&unpacked);
        let installed = Self::unpack(&archive, &unpacked, &parent.join("qairt"));
        let _ = fs::remove_dir_all(&unpacked);
        if from.is_none() {
            let _ = fs::remove_file(&archive);
        }
        installed
    }

    /// Unpacks an archive and puts its SDK in the place of the one that is there, if it holds one.
    fn unpack(archive: &Path, unpacked: &Path, home: &Path) -> Result<Self, QairtError> {
        let bad = |words: String| QairtError::Archive { archive: archive.to_path_buf(), words };
        unpack(archive, unpacked, MOST).map_err(bad)?;
        // The archive holds qairt/<version>/{bin,lib,...}; a repacked one may hold {bin,lib} directly.
        let root = [unpacked.to_path_buf()]
            .into_iter()
            .chain(subfolders(unpacked))
            .chain(subfolders(unpacked).into_iter().flat_map(|d| subfolders(&d)))
            .find(|d| Self::open(d).is_some())
            .ok_or_else(|| bad("holds no QAIRT SDK (no folder with bin or lib)".to_owned()))?;
        let _ = fs::remove_dir_all(home);
        fs::rename(&root, home).map_err(|source| QairtError::Io { path: home.to_path_buf(), source })?;
        Self::open(home).ok_or_else(|| bad("holds no QAIRT SDK".to_owned()))
    }
}

fn subfolders(path: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> =
        fs::read_dir(path).into_iter().flatten().filter_map(Result::ok).map(|e| e.path()).filter(|p| p.is_dir()).collect();
    found.sort();
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtimes::archive::python;

    #[test]
    fn the_data_names_a_version_and_an_address() {
        let data = data();
        assert!(data.latest.split('.').count() >= 4, "{}", data.latest);
        assert!(data.archive.path.contains("{version}/v{version}.zip"));
    }

    #[test]
    fn an_archive_of_the_user_is_taken_and_a_hostile_one_refused() {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache(dir.path().join("cache"));
        let make = |name: &str, member: &str| {
            let file = dir.path().join(name);
            let script = format!("import zipfile,sys\nwith zipfile.ZipFile(sys.argv[1],'w') as z: z.writestr({member:?},'x')");
            python(&script, &[&file]).unwrap();
            file
        };
        let good = make("good.zip", "qairt/2.99.0.1/bin/x86_64-linux-clang/qnn-net-run");
        let refused = Sdk::install(&cache, false, Some(&good), None, &|_| ()).unwrap_err();
        assert!(refused.to_string().contains("--accept-licence"), "{refused}");
        let sdk = Sdk::install(&cache, true, Some(&good), None, &|_| ()).unwrap();
        assert!(sdk.file("bin/x86_64-linux-clang/qnn-net-run").is_some());
        let hostile = make("hostile.zip", "../../evil");
        let error = Sdk::install(&cache, true, Some(&hostile), None, &|_| ()).unwrap_err().to_string();
        assert!(error.contains("leads out of the archive"), "{error}");
        assert!(!dir.path().join("evil").exists());
        let other = make("other.zip", "readme.txt");
        let error = Sdk::install(&cache, true, Some(&other), None, &|_| ()).unwrap_err().to_string();
        assert!(error.contains("no QAIRT SDK"), "{error}");
    }
}
