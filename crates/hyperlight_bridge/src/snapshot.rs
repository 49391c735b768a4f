//! Clean states: what every run starts from, in memory and on disk.
//!
//! On disk a snapshot is an OCI layout, written by Hyperlight, with what this crate knows about it as metadata. A folder is
//! used only when nobody else can have written to it. Its content is checked against its digests when it is loaded for the
//! first time and whenever size, time or identity of a file has changed since; in between loading maps the files and reads
//! only what is needed.
use std::fs;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use hyperlight_host::sandbox::snapshot::{OciTag, Snapshot as Memory};
use serde::{Deserialize, Serialize};

use crate::error::BridgeError;
use crate::guest_image::INTERFACE_VERSION;
use crate::hypervisor::Hypervisor;
use crate::prepared::Prepared;
use crate::state_folder::StateFolder;

/// Namespace of our metadata.
const NAMESPACE: &str = "wcpod-v1";
/// Name of the one snapshot in a layout.
pub(crate) const TAG: &str = "clean";

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
        let written = StateFolder::open(folder).map_err(failed)?;
        let seen = written.look().map_err(failed)?;
        written.remember(&seen);
        Ok(())
    }

    /// Loads one from `folder`. The files must stay as they are while it or a sandbox made from it lives.
    ///
    /// # Errors
    /// [`BridgeError::SnapshotRefused`], with the reason.
    pub fn load(folder: &Path) -> Result<Self, BridgeError> {
        let refused = |reason: String| BridgeError::SnapshotRefused { path: folder.to_owned(), reason };
        let kept = StateFolder::open(folder).map_err(refused)?;
        let seen = kept.look().map_err(refused)?;
        let unchanged = kept.remembered().is_some_and(|checked| checked == seen);
        let load = if unchanged { Memory::load } else { Memory::checked_load };
        let memory = load(kept.path(), tag()?);
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
            kept.remember(&seen);
        }
        Ok(Self::new(Arc::new(memory), facts))
    }
}

fn tag() -> Result<OciTag, BridgeError> {
    OciTag::new(TAG).map_err(|error| BridgeError::SnapshotFailed { reason: error.to_string() })
}
