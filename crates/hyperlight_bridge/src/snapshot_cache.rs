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
use crate::snapshot::Snapshot;

/// Folders that are kept; the oldest go first.
const KEPT: usize = 4;

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

    /// The state for an image and size, if there is a good one.
    #[must_use]
    pub fn find(&self, image: &Path, size: VmSize) -> Option<Snapshot> {
        let place = self.folder.join(key(image, size)?);
        if !place.exists() {
            return None;
        }
        match Snapshot::load(&place) {
            Ok(snapshot) if snapshot.facts().memory_bytes == size.memory_bytes => Some(snapshot),
            _ => {
                let aside = self.folder.join(format!(".damaged-{}-{:x}", process::id(), rand::random::<u64>()));
                if fs::rename(&place, &aside).is_ok() {
                    let _ = fs::remove_dir_all(aside);
                }
                None
            }
        }
    }

    /// Keeps a state for the next process. A state that another process has kept meanwhile stays.
    ///
    /// # Errors
    /// [`BridgeError::SnapshotFailed`].
    pub fn keep(&self, image: &Path, snapshot: &Snapshot) -> Result<(), BridgeError> {
        let failed = |reason: String| BridgeError::SnapshotFailed { reason };
        let size = VmSize { memory_bytes: snapshot.facts().memory_bytes };
        let key = key(image, size).ok_or_else(|| failed(format!("{} cannot be looked at", image.display())))?;
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

    /// Removes the oldest states, and what processes left behind that died while writing. Files that are in use stay
    /// readable for whoever mapped them.
    fn prune(&self) {
        let Ok(entries) = fs::read_dir(&self.folder) else { return };
        let mut states = Vec::new();
        for entry in entries.flatten() {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if let Some(rest) = name.strip_prefix(".writing-").or_else(|| name.strip_prefix(".damaged-")) {
                let writer = rest.split('-').next().unwrap_or("");
                if !Path::new("/proc").join(writer).exists() {
                    let _ = fs::remove_dir_all(entry.path());
                }
            } else if let Ok(metadata) = entry.metadata() {
                states.push((metadata.mtime(), entry.path()));
            }
        }
        states.sort();
        let surplus = states.len().saturating_sub(KEPT);
        for (_, path) in states.into_iter().take(surplus) {
            let _ = fs::remove_dir_all(path);
        }
    }
}

/// Name of the folder for an image and size: whatever would make a state useless is in it.
fn key(image: &Path, size: VmSize) -> Option<String> {
    let metadata = fs::metadata(image).ok()?;
    let image = fs::canonicalize(image).ok()?;
    let processor = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let processor = processor.lines().find(|line| line.starts_with("model name")).unwrap_or("");
    let parts = format!(
        "{}\n{}\n{}.{}\n{}\n{}\n{INTERFACE_VERSION}\n{}\n{processor}\n{}\n{}",
        image.display(),
        metadata.len(),
        metadata.mtime(),
        metadata.mtime_nsec(),
        metadata.ino(),
        env!("CARGO_PKG_VERSION"),
        Hypervisor::detect().ok()?,
        size.memory_bytes,
        boot::recipe(),
    );
    Some(Sha256::digest(parts).iter().take(12).map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_tells_images_and_sizes_apart() {
        let folder = std::env::temp_dir().join(format!("wcpod-key-{}", process::id()));
        fs::create_dir_all(&folder).unwrap();
        let image = folder.join("image");
        fs::write(&image, "one").unwrap();
        let small = VmSize { memory_bytes: 1 };
        // Without a hypervisor there is no key, and nothing to tell apart.
        if let Some(first) = key(&image, small) {
            assert_eq!(key(&image, small), Some(first.clone()));
            assert_ne!(key(&image, VmSize { memory_bytes: 2 }), Some(first.clone()));
            fs::write(&image, "other").unwrap();
            assert_ne!(key(&image, small), Some(first));
        }
        assert_eq!(key(&folder.join("none"), small), None);
        fs::remove_dir_all(&folder).unwrap();
    }
}
