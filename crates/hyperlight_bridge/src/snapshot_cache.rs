//! Clean states kept between processes, so that a sandbox is ready in milliseconds.
//!
//! One folder per guest image (path, size, time, identity), version, hypervisor, processor and memory size, below the
//! user's cache. A folder appears whole: it is written under another name and renamed, so two processes that race both get a
//! good one. What is damaged or made by anybody else is put aside and made anew.
use std::fs::{self, DirBuilder};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process;

use sha2::{Digest, Sha256};

use crate::boot;
use crate::error::BridgeError;
use crate::guest_image::INTERFACE_VERSION;
use crate::hypervisor::Hypervisor;
use crate::run::VmSize;
use crate::snapshot::{Snapshot, TAG};
use crate::state_folder;

/// Folders that are kept; the oldest go first.
const KEPT: usize = 4;
/// Bytes of a hash that name a folder, in hexadecimal.
const KEY_BYTES: usize = 12;

/// A folder with clean states.
#[derive(Debug, Clone)]
pub struct SnapshotCache {
    folder: PathBuf,
}

impl SnapshotCache {
    /// A cache in `folder`, which is made when it is first written to.
    #[must_use]
    pub fn at(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// The state for an image and size, if there is one. One that is no good is put aside.
    ///
    /// # Errors
    /// [`BridgeError::SnapshotFailed`], [`BridgeError::SnapshotRefused`]: why it is no good.
    pub fn find(&self, image: &Path, size: VmSize) -> Result<Option<Snapshot>, BridgeError> {
        let Some(place) = key(image, size).map(|key| self.folder.join(key)).filter(|place| place.exists()) else {
            return Ok(None);
        };
        // Of a folder that others may change, `keep` says so.
        if state_folder::nobody_else_decides(&place).is_err() {
            return Ok(None);
        }
        let failed = match Snapshot::load(&place) {
            Ok(snapshot) if snapshot.facts().memory_bytes == size.memory_bytes => return Ok(Some(snapshot)),
            Ok(_) => BridgeError::SnapshotFailed { reason: format!("{} is of another size", place.display()) },
            Err(error) => error,
        };
        let aside = self.folder.join(format!(".damaged-{}-{:x}", process::id(), rand::random::<u64>()));
        if state_folder::holds_only_a_state(&place) && fs::rename(&place, &aside).is_ok() {
            let _ = fs::remove_dir_all(aside);
        }
        Err(failed)
    }

    /// Keeps a state for the next process. A state that another process has kept meanwhile stays.
    ///
    /// # Errors
    /// [`BridgeError::SnapshotFailed`].
    pub fn keep(&self, image: &Path, snapshot: &Snapshot) -> Result<(), BridgeError> {
        let failed = |reason: String| BridgeError::SnapshotFailed { reason };
        let size = VmSize { memory_bytes: snapshot.facts().memory_bytes };
        let key = key(image, size).ok_or_else(|| failed(format!("{} cannot be looked at", image.display())))?;
        state_folder::nobody_else_decides(&self.folder.join(&key)).map_err(failed)?;
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.folder)
            .map_err(|error| failed(format!("{}: {error}", self.folder.display())))?;
        let writing = self.folder.join(format!(".writing-{}-{:x}", process::id(), rand::random::<u64>()));
        let saved = DirBuilder::new()
            .mode(0o700)
            .create(&writing)
            .map_err(|error| failed(format!("{}: {error}", writing.display())))
            .and_then(|()| snapshot.save(&writing));
        if saved.is_ok() && fs::rename(&writing, self.folder.join(key)).is_ok() {
            self.prune();
            return Ok(());
        }
        let _ = fs::remove_dir_all(&writing);
        saved
    }

    /// Removes the oldest states, and what processes left behind that died while writing; nothing else that the folder
    /// may hold. Files that are in use stay readable for whoever mapped them.
    fn prune(&self) {
        let Ok(entries) = fs::read_dir(&self.folder) else { return };
        let mut states = Vec::new();
        for entry in entries.flatten() {
            let (name, path) = (entry.file_name(), entry.path());
            let name = name.to_string_lossy();
            if let Some(process) = unfinished_by(&name) {
                if !Path::new("/proc").join(process).exists() && state_folder::holds_only_a_state(&path) {
                    let _ = fs::remove_dir_all(path);
                }
            } else if is_key(&name)
                && state_folder::is_state(&path, TAG)
                && let Ok(metadata) = entry.metadata()
            {
                states.push((metadata.mtime(), path));
            }
        }
        states.sort();
        let surplus = states.len().saturating_sub(KEPT);
        for (_, path) in states.into_iter().take(surplus) {
            let _ = fs::remove_dir_all(path);
        }
    }
}

/// The process that wrote `.writing-<process>-<number>` or put `.damaged-<process>-<number>` aside.
fn unfinished_by(name: &str) -> Option<&str> {
    let rest = name.strip_prefix(".writing-").or_else(|| name.strip_prefix(".damaged-"))?;
    let (process, number) = rest.split_once('-')?;
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let hexadecimal = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_hexdigit());
    (digits(process) && hexadecimal).then_some(process)
}

fn is_key(name: &str) -> bool {
    name.len() == 2 * KEY_BYTES && name.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Name of the folder for an image and size: whatever would make a state useless is in it.
fn key(image: &Path, size: VmSize) -> Option<String> {
    key_on(&Hypervisor::detect().ok()?.to_string(), image, size)
}

fn key_on(hypervisor: &str, image: &Path, size: VmSize) -> Option<String> {
    let metadata = fs::metadata(image).ok()?;
    let image = fs::canonicalize(image).ok()?;
    let processor = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let processor = processor.lines().find(|line| line.starts_with("model name")).unwrap_or("");
    let parts = format!(
        "{}\n{}\n{}.{}\n{}\n{}\n{INTERFACE_VERSION}\n{hypervisor}\n{processor}\n{}\n{}",
        image.display(),
        metadata.len(),
        metadata.mtime(),
        metadata.mtime_nsec(),
        metadata.ino(),
        env!("CARGO_PKG_VERSION"),
        size.memory_bytes,
        boot::recipe(),
    );
    Some(Sha256::digest(parts).iter().take(KEY_BYTES).map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_tells_images_sizes_and_hypervisors_apart() {
        let folder = std::env::temp_dir().join(format!("wcpod-key-{}", process::id()));
        fs::create_dir_all(&folder).unwrap();
        let image = folder.join("image");
        fs::write(&image, "one").unwrap();
        let small = VmSize { memory_bytes: 1 };
        let first = key_on("kvm", &image, small);
        assert!(first.as_deref().is_some_and(is_key));
        assert_eq!(key_on("kvm", &image, small), first);
        assert_ne!(key_on("kvm_pvm", &image, small), first);
        assert_ne!(key_on("kvm", &image, VmSize { memory_bytes: 2 }), first);
        fs::write(&image, "other").unwrap();
        assert_ne!(key_on("kvm", &image, small), first);
        assert_eq!(key_on("kvm", &folder.join("none"), small), None);
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn only_states_and_dead_writers_are_pruned() {
        let folder = std::env::temp_dir().join(format!("wcpod-prune-{}", process::id()));
        let _ = fs::remove_dir_all(&folder);
        let make = |name: &str, files: &[&str]| {
            fs::create_dir_all(folder.join(name)).unwrap();
            for file in files {
                fs::write(folder.join(name).join(file), r#""clean""#).unwrap();
            }
        };
        let state = ["oci-layout", "index.json", "checked.json"];
        for number in 0..6 {
            make(&format!("{number:024x}"), &state);
            make(&format!("project-{number}"), &["thesis.txt"]);
            make(&format!("{number:023x}f"), &["thesis.txt"]);
            make(&format!("{number:024X}F"), &state);
        }
        make("a0000000000000000000000a", &["oci-layout", "index.json", "thesis.txt"]);
        make(".writing-4194999-a", &state);
        make(".writing-4194999-b", &["thesis.txt"]);
        make(".writing-notes", &["thesis.txt"]);
        make(".damaged-x-1", &state);
        make(&format!(".writing-{}-c", process::id()), &state);
        std::os::unix::fs::symlink("/etc", folder.join("b0000000000000000000000b")).unwrap();
        let names = || -> std::collections::BTreeSet<String> {
            fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
        };
        let before = names();
        SnapshotCache::at(folder.clone()).prune();
        let gone: Vec<String> = before.difference(&names()).cloned().collect();
        assert_eq!(gone.len(), 3, "{gone:?}");
        assert_eq!(gone[0], ".writing-4194999-a");
        assert!(gone[1..].iter().all(|name| is_key(name) && name.starts_with("0000")), "{gone:?}");
        fs::remove_dir_all(&folder).unwrap();
    }
}
