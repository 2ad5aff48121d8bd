//! Archives: fetching, unpacking, and knowing what was fetched.

use std::{
    fs::File,
    io::{self, Read},
    path::Path,
    process::{Command, Stdio},
};

use sha2::{Digest, Sha256};

use super::on_path;

/// Runs Python's standard library for what it does well: downloads with the system's certificates and zip files of any size.
pub fn python(script: &str, args: &[&Path]) -> Result<(), String> {
    let python = on_path("python3").or_else(|| on_path("python")).ok_or("no python3 on PATH: run `apt-get install python3`")?;
    let output = Command::new(python).args(["-I", "-c", script]).args(args).stdin(Stdio::null()).output().map_err(|e| e.to_string())?;
    if output.status.success() {
        return Ok(());
    }
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    Err(words.lines().rev().find(|l| !l.trim().is_empty()).unwrap_or("no reason given").to_owned())
}

/// Fetches a file.
pub fn fetch(url: &str, to: &Path) -> Result<(), String> {
    const SCRIPT: &str = "import sys,shutil,urllib.request\nwith urllib.request.urlopen(sys.argv[1],timeout=60) as r, open(sys.argv[2],'wb') as f: shutil.copyfileobj(r,f,1<<20)";
    python(SCRIPT, &[Path::new(url), to])
}

/// What an archive may unpack to: one from elsewhere could fill the disk.
#[derive(Debug, Clone, Copy)]
pub struct Most {
    /// Bytes of all files together.
    pub bytes: u64,
    /// Files and folders.
    pub files: u64,
}

/// Unpacks with file modes; a name that leads out of the folder is an error, and so is more than `most`, before anything is written. (Python
/// reads no more of a file than the archive's directory says.)
pub fn unpack(archive: &Path, to: &Path, most: Most) -> Result<(), String> {
    const SCRIPT: &str = r"
import os,sys,zipfile
to=os.path.realpath(sys.argv[2]); os.makedirs(to)
with zipfile.ZipFile(sys.argv[1]) as z:
    size,count=sum(i.file_size for i in z.infolist()),len(z.infolist())
    if size>int(sys.argv[3]): sys.exit('it would unpack to %d MB, more than the %d MB that are taken' % (size//1000000,int(sys.argv[3])//1000000))
    if count>int(sys.argv[4]): sys.exit('it has %d files, more than the %s that are taken' % (count,sys.argv[4]))
    for i in z.infolist():
        p=os.path.realpath(os.path.join(to,i.filename))
        if p!=to and not p.startswith(to+os.sep): sys.exit('a name leads out of the archive: '+i.filename)
        z.extract(i,to)
        m=i.external_attr>>16&0o777
        if m and not i.is_dir(): os.chmod(p,m|0o600)
";
    let (bytes, files) = (most.bytes.to_string(), most.files.to_string());
    python(SCRIPT, &[archive, to, Path::new(&bytes), Path::new(&files)])
}

/// SHA-256 of a file, in hexadecimal digits.
pub fn sha256(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 1 << 20];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(crate::hex(&hash.finalize())),
            n => hash.update(&buffer[..n]),
        }
    }
}

/// Whether a file is a 64-bit ELF file for the ARM processor (`e_machine` 183, EM_AARCH64 in the ELF for the Arm 64-bit architecture).
pub fn is_aarch64(path: &Path) -> bool {
    let mut head = [0; 20];
    let read = File::open(path).and_then(|mut f| f.read_exact(&mut head));
    read.is_ok() && head.starts_with(b"\x7fELF\x02") && head[18..20] == [183, 0]
}
