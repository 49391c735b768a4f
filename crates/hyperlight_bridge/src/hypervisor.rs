//! Whether this machine has a usable hypervisor, and which.
use std::fmt;
use std::fs::{self, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::OnceLock;

use crate::error::BridgeError;

/// The device of KVM.
pub const KVM_DEVICE: &str = "/dev/kvm";

/// Module whose KVM runs guests without the processor's virtualisation: ring 0 of the guest is emulated.
const PVM_MODULE: &str = "/sys/module/kvm_pvm";

/// Whether KVM uses nested paging, on Intel and on AMD.
const NESTED_PAGING: [&str; 2] = ["/sys/module/kvm_intel/parameters/ept", "/sys/module/kvm_amd/parameters/npt"];

/// What answers behind the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hypervisor {
    /// KVM on the processor's virtualisation.
    Kvm,
    /// KVM without it.
    KvmPvm,
}

impl Hypervisor {
    /// Opens the device, as every sandbox will.
    ///
    /// # Errors
    /// [`BridgeError::NoHypervisor`], [`BridgeError::NoPermission`].
    pub fn detect() -> Result<Self, BridgeError> {
        Self::detect_at(Path::new(KVM_DEVICE), Path::new(PVM_MODULE))
    }

    /// Whether this machine's runs guests on shadow tables of its own, rather than on the processor's nested paging. Taken
    /// for granted where nothing tells.
    #[must_use]
    pub fn shadows_page_tables() -> bool {
        static SHADOWS: OnceLock<bool> = OnceLock::new();
        *SHADOWS.get_or_init(|| {
            let nested = |path| fs::read_to_string(path).is_ok_and(|value| value.starts_with(['Y', '1']));
            Path::new(PVM_MODULE).exists() || !NESTED_PAGING.iter().any(nested)
        })
    }

    fn detect_at(device: &Path, pvm_module: &Path) -> Result<Self, BridgeError> {
        match OpenOptions::new().read(true).write(true).open(device) {
            Ok(_) if pvm_module.exists() => Ok(Self::KvmPvm),
            Ok(_) => Ok(Self::Kvm),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                Err(BridgeError::NoHypervisor { device: device.to_owned() })
            }
            Err(source) => {
                let advice = way_in(device, &fs::read_to_string("/etc/group").unwrap_or_default());
                Err(BridgeError::NoPermission { device: device.to_owned(), source, advice })
            }
        }
    }
}

/// How a user gets to open the device, by who may: `groups` is the content of `/etc/group`.
fn way_in(device: &Path, groups: &str) -> String {
    let container = "in a container, hand the device to it";
    let Ok(metadata) = fs::metadata(device) else { return format!("Look at its folder's permissions; {container}") };
    let (mode, id) = (metadata.mode() & 0o777, metadata.gid().to_string());
    let group = groups.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)? == id).then_some(name)
    });
    match group {
        Some(group) if mode & 0o060 == 0o060 && id != "0" => {
            format!("Add the user to its group (sudo usermod -aG {group} $USER, then log in again); {container}")
        }
        _ => format!(
            "Only its owner may (mode {mode:04o}): sudo setfacl -m u:$USER:rw {} lets the user in until the next boot, a \
             udev rule for good; {container}",
            device.display()
        ),
    }
}

impl fmt::Display for Hypervisor {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Kvm => "kvm",
            Self::KvmPvm => "kvm_pvm",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Calls `with` with a path at which nothing is, in an empty folder made for it.
    fn with_an_absent_path(name: &str, with: impl FnOnce(&Path)) {
        let folder = std::env::temp_dir().join(format!("wcpod-hypervisor-{name}-{}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        with(&folder.join("absent"));
        fs::remove_dir(&folder).unwrap();
    }

    #[test]
    fn a_missing_device_is_told_apart_from_a_forbidden_one() {
        with_an_absent_path("device", |absent| {
            let missing = Hypervisor::detect_at(absent, absent);
            assert!(matches!(missing, Err(BridgeError::NoHypervisor { .. })));
            // A directory exists but cannot be opened for writing, whoever asks.
            let forbidden = Hypervisor::detect_at(Path::new("/"), absent);
            assert!(matches!(forbidden, Err(BridgeError::NoPermission { .. })));
        });
    }

    #[test]
    fn the_way_in_depends_on_who_may_open_the_device() {
        use std::os::unix::fs::PermissionsExt;

        let device = std::env::temp_dir().join(format!("wcpod-device-{}", std::process::id()));
        fs::write(&device, "").unwrap();
        let advice = |mode: u32, groups: &str| {
            fs::set_permissions(&device, fs::Permissions::from_mode(mode)).unwrap();
            way_in(&device, groups)
        };
        let id = fs::metadata(&device).unwrap().gid();
        let groups = format!("other:x:4999:\nvirt:x:{id}:someone\n");
        let owner_only =
            format!("Only its owner may (mode 0600): sudo setfacl -m u:$USER:rw {} lets", device.display());
        assert!(advice(0o600, &groups).starts_with(&owner_only));
        assert!(advice(0o600, "").starts_with(&owner_only));
        if id == 0 {
            assert!(advice(0o660, &groups).starts_with("Only its owner may (mode 0660)"));
        } else {
            assert!(advice(0o660, &groups).starts_with("Add the user to its group (sudo usermod -aG virt $USER,"));
        }
        fs::remove_file(&device).unwrap();
        assert!(way_in(&device, "").starts_with("Look at its folder's permissions"));
    }

    #[test]
    fn the_module_tells_which_kvm_it_is() {
        let device = Path::new("/dev/null");
        assert_eq!(Hypervisor::detect_at(device, Path::new("/")).unwrap(), Hypervisor::KvmPvm);
        with_an_absent_path("module", |absent| {
            assert_eq!(Hypervisor::detect_at(device, absent).unwrap(), Hypervisor::Kvm);
        });
    }
}
