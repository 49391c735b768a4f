//! The Python extension `wcpod._bridge`: thin wrappers, private to the package `wcpod`.
mod error;
mod fetch;
mod services;
mod vm;

use pyo3::prelude::*;

use crate::hypervisor::Hypervisor;

/// Name of the hypervisor that answers behind /dev/kvm.
#[pyfunction]
fn detect_hypervisor() -> PyResult<String> {
    Ok(Hypervisor::detect().map_err(error::to_python)?.to_string())
}

/// The host core of wcpod. Private: use the package `wcpod`.
#[pymodule]
fn _bridge(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("DEBUG_BUILD", cfg!(debug_assertions))?;
    module.add("VERSION", env!("CARGO_PKG_VERSION"))?;
    module.add("INTERFACE_VERSION", crate::guest_image::INTERFACE_VERSION)?;
    module.add_function(wrap_pyfunction!(detect_hypervisor, module)?)?;
    module.add_function(wrap_pyfunction!(fetch::extract_page, module)?)?;
    module.add_function(wrap_pyfunction!(vm::image_digest, module)?)?;
    module.add_class::<fetch::FetchPolicy>()?;
    module.add_class::<fetch::FetchSession>()?;
    module.add_class::<services::CallRecord>()?;
    module.add_class::<vm::MicroVm>()?;
    module.add_class::<vm::RunReport>()?;
    module.add_class::<vm::Snapshot>()?;
    module.add_class::<vm::Stop>()?;
    Ok(())
}
