//! Clean states: what every run starts from, in memory and on disk.
//!
//! On disk a snapshot is an OCI layout, written by Hyperlight, with what this crate knows about it as metadata. A folder is
//! used only when nobody else can have written to it. Its content is checked against its digests when it is loaded for the
//! first time and whenever size, time or identity of a file has changed since; in between loading maps the files and reads
//! only what is needed.
use std::collections::BTreeMap;
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use hyperlight_host::sandbox::snapshot::{OciTag, Snapshot as Memory};
use serde::{Deserialize, Serialize};

use crate::error::BridgeError;
use crate::guest_image::INTERFACE_VERSION;
use crate::hypervisor::Hypervisor;
use crate::prepared::Prepared;

/// Namespace of our metadata.
const NAMESPACE: &str = "wcpod-v1";
/// Name of the one snapshot in a layout.
const TAG: &str = "clean";
/// What was seen of the files when their digests were last checked.
const CHECKED: &str = "checked.json";

/// What is known of a snapshot besides its memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Facts {
    /// [`INTERFACE_VERSION`] of the guest.
    pub interface: u32,
    /// Version of this crate that made it.
    pub made_by: String,
    /// SHA-256 of the guest image.
    pub image_sha256: String,
    /// The hypervisor that it was made on.
    pub hypervisor: String,
    /// 0 or 3: the ring that the guest's interpreter runs in.
    pub privilege_ring: u64,
    /// Most memory that a run may have, in bytes.
    pub memory_bytes: u64,
    /// Pages that are copied before a run.
    pub known_pages: u64,
    /// The guest's next free page right after a restore.
    pub first_page: u64,
}

/// A clean state. Cheap to clone; sandboxes made from one share its memory.
#[derive(Clone)]
pub struct Snapshot {
    pub(crate) memory: Arc<Memory>,
    /// Made when it is restored for the first time; the reason where the guest would not prepare it.
    prepared: Arc<OnceLock<Result<Prepared, String>>>,
    facts: Facts,
}

impl Snapshot {
    pub(crate) fn new(memory: Arc<Memory>, facts: Facts) -> Self {
        Self { memory, prepared: Arc::default(), facts }
    }

    /// With what the guest makes of it already known.
    pub(crate) fn with_prepared(self, prepared: Prepared) -> Self {
        self.prepared.get_or_init(|| Ok(prepared));
        self
    }

    /// What the guest makes of it before a run, if that is known already.
    pub(crate) fn known_prepared(&self) -> Option<&Prepared> {
        self.prepared.get()?.as_ref().ok()
    }

    /// What the guest makes of it before a run; found out by the first who asks.
    pub(crate) fn prepared(&self) -> Result<&Prepared, &str> {
        let find_out = || Prepared::of(&self.memory, self.facts.memory_bytes).map_err(|error| error.to_string());
        self.prepared.get_or_init(find_out).as_ref().map_err(String::as_str)
    }

    /// What is known of it.
    #[must_use]
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// Writes it to `folder`, which must not exist or be empty.
    ///
    /// # Errors
    /// [`BridgeError::SnapshotFailed`].
    pub fn save(&self, folder: &Path) -> Result<(), BridgeError> {
        let failed = |reason: String| BridgeError::SnapshotFailed { reason };
        if fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some()) {
            return Err(failed(format!("{} is not empty", folder.display())));
        }
        let described = self.memory.with_metadata(NAMESPACE, &self.facts).map_err(|error| failed(error.to_string()))?;
        described.save(folder, &tag()?).map_err(|error| failed(error.to_string()))?;
        let seen = look_at(folder).map_err(failed)?;
        remember(folder, &seen);
        Ok(())
    }

    /// Loads one from `folder`. The files must stay as they are while it or a sandbox made from it lives.
    ///
    /// # Errors
    /// [`BridgeError::SnapshotRefused`], with the reason.
    pub fn load(folder: &Path) -> Result<Self, BridgeError> {
        let refused = |reason: String| BridgeError::SnapshotRefused { path: folder.to_owned(), reason };
        let seen = look_at(folder).map_err(refused)?;
        let unchanged = remembered(folder).is_some_and(|checked| checked == seen);
        let memory = if unchanged { Memory::load(folder, tag()?) } else { Memory::checked_load(folder, tag()?) };
        let memory = memory.map_err(|error| refused(error.to_string()))?;
        let facts = memory
            .metadata::<Facts>(NAMESPACE)
            .map_err(|error| refused(error.to_string()))?
            .ok_or_else(|| refused("wcpod did not make it".into()))?;
        if facts.interface != INTERFACE_VERSION || facts.made_by != env!("CARGO_PKG_VERSION") {
            return Err(refused(format!(
                "it was made by wcpod {} with guest interface {}, this is {} with {INTERFACE_VERSION}",
                facts.made_by,
                facts.interface,
                env!("CARGO_PKG_VERSION")
            )));
        }
        let hypervisor = Hypervisor::detect()?.to_string();
        if facts.hypervisor != hypervisor {
            return Err(refused(format!("it was made on {}, this machine has {hypervisor}", facts.hypervisor)));
        }
        if !unchanged {
            remember(folder, &seen);
        }
        Ok(Self::new(Arc::new(memory), facts))
    }
}

fn tag() -> Result<OciTag, BridgeError> {
    OciTag::new(TAG).map_err(|error| BridgeError::SnapshotFailed { reason: error.to_string() })
}

/// Size, modification time in nanoseconds, and inode of each file.
type Seen = BTreeMap<PathBuf, (u64, i128, u64)>;

/// Every file of a layout, after making sure that only this user can have written to it.
fn look_at(folder: &Path) -> Result<Seen, String> {
    let mut seen = Seen::new();
    let mut pending = vec![folder.to_owned()];
    while let Some(current) = pending.pop() {
        only_ours(&current, &describe(&current)?)?;
        let entries = fs::read_dir(&current).map_err(|error| format!("{}: {error}", current.display()))?;
        for entry in entries {
            let path = entry.map_err(|error| error.to_string())?.path();
            let metadata = describe(&path)?;
            if metadata.is_dir() {
                pending.push(path);
            } else if path.file_name().is_none_or(|name| name != CHECKED) {
                only_ours(&path, &metadata)?;
                let time = i128::from(metadata.mtime()) * 1_000_000_000 + i128::from(metadata.mtime_nsec());
                let name = path.strip_prefix(folder).unwrap_or(&path).to_owned();
                seen.insert(name, (metadata.len(), time, metadata.ino()));
            }
        }
    }
    Ok(seen)
}

fn describe(path: &Path) -> Result<Metadata, String> {
    fs::symlink_metadata(path).map_err(|error| format!("{}: {error}", path.display()))
}

fn only_ours(path: &Path, metadata: &Metadata) -> Result<(), String> {
    let own = fs::metadata("/proc/self").map(|process| process.uid()).unwrap_or(u32::MAX);
    if metadata.uid() != own {
        return Err(format!("{} belongs to another user", path.display()));
    }
    if metadata.mode() & 0o022 != 0 {
        return Err(format!("others may write to {}", path.display()));
    }
    if !metadata.is_dir() && !metadata.is_file() {
        return Err(format!("{} is not a plain file", path.display()));
    }
    Ok(())
}

fn remember(folder: &Path, seen: &Seen) {
    // Not being able to is no fault: the next load checks again.
    if let Ok(text) = serde_json::to_vec(seen) {
        let _ = fs::write(folder.join(CHECKED), text);
    }
}

fn remembered(folder: &Path) -> Option<Seen> {
    serde_json::from_slice(&fs::read(folder.join(CHECKED)).ok()?).ok()
}
