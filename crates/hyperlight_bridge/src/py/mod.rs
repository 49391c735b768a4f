//! The Python extension `wcpod._bridge`: thin wrappers, private to the package `wcpod`.
mod callbacks;
mod error;
mod fetch;
mod layout;
mod report;
mod sandbox;

use pyo3::prelude::*;

use crate::clock;
use crate::hypervisor::Hypervisor;

/// Name of the hypervisor that answers behind /dev/kvm.
#[pyfunction]
fn detect_hypervisor() -> PyResult<String> {
    Ok(Hypervisor::detect().map_err(error::to_python)?.to_string())
}

/// The host core of wcpod. Private: use the package `wcpod`.
#[pymodule]
fn _bridge(module: &Bound<'_, PyModule>) -> PyResult<()> {
    // Found out once, before any thread or child of this process could be in the middle of it.
    clock::begin();
    let _ = Hypervisor::shadows_page_tables();
    module.add("DEBUG_BUILD", cfg!(debug_assertions))?;
    module.add("VERSION", env!("CARGO_PKG_VERSION"))?;
    module.add("INTERFACE_VERSION", crate::guest_image::INTERFACE_VERSION)?;
    module.add("LAYOUT", layout::layout(module.py())?)?;
    module.add_function(wrap_pyfunction!(detect_hypervisor, module)?)?;
    module.add_function(wrap_pyfunction!(fetch::extract_page, module)?)?;
    module.add_function(wrap_pyfunction!(sandbox::image_digest, module)?)?;
    module.add_class::<callbacks::Events>()?;
    module.add_class::<callbacks::ToolCall>()?;
    module.add_class::<callbacks::ToolCalls>()?;
    module.add_class::<fetch::AuditLog>()?;
    module.add_class::<fetch::FetchPolicy>()?;
    module.add_class::<fetch::FetchSession>()?;
    module.add_class::<sandbox::Answer>()?;
    module.add_class::<sandbox::RunOrder>()?;
    module.add_class::<sandbox::SandboxCore>()?;
    module.add_class::<sandbox::Snapshot>()?;
    Ok(())
}
