//! The resources of WASI. An interface exports those that it uses from another one again, so each is
//! defined wherever its name appears.
use wasmtime::component::types::ComponentItem;
use wasmtime::component::{Component, LinkerInstance, Resource, ResourceType};

use crate::cli::Terminal;
use crate::filesystem::{Descriptor, Listing};
use crate::poll::Pollable;
use crate::sockets::{Addresses, Network, Socket};
use crate::streams::{Failure, Input, Output};
use crate::{Context, Host, Wasi};

/// Defines the resources that one interface of the component names.
pub(crate) fn define<H: Host>(
    instance: &mut LinkerInstance<'_, Wasi<H>>,
    component: &Component,
    interface: &str,
) -> wasmtime::Result<()> {
    let engine = component.engine();
    let ty = component.component_type();
    let Some(ComponentItem::ComponentInstance(ty)) = ty.get_import(engine, interface).map(|import| import.ty) else {
        return Ok(());
    };
    for (name, export) in ty.exports(engine) {
        if matches!(export.ty, ComponentItem::Resource(_)) {
            define_one(instance, name)?;
        }
    }
    Ok(())
}

fn define_one<H: Host>(instance: &mut LinkerInstance<'_, Wasi<H>>, name: &str) -> wasmtime::Result<()> {
    match name {
        "descriptor" => instance.resource(name, ResourceType::host::<Descriptor>(), |mut cx: Context<H>, rep| {
            cx.data_mut().drop_descriptor(Resource::new_own(rep))
        }),
        "directory-entry-stream" => instance.resource(name, ResourceType::host::<Listing>(), delete::<H, Listing>),
        "error" => instance.resource(name, ResourceType::host::<Failure>(), delete::<H, Failure>),
        "input-stream" => instance.resource(name, ResourceType::host::<Input>(), |mut cx: Context<H>, rep| {
            cx.data_mut().drop_input(Resource::new_own(rep))
        }),
        "output-stream" => instance.resource(name, ResourceType::host::<Output>(), |mut cx: Context<H>, rep| {
            cx.data_mut().drop_output(Resource::new_own(rep))
        }),
        "pollable" => instance.resource(name, ResourceType::host::<Pollable>(), delete::<H, Pollable>),
        "network" => instance.resource(name, ResourceType::host::<Network>(), nothing),
        "resolve-address-stream" => instance.resource(name, ResourceType::host::<Addresses>(), nothing),
        "tcp-socket" | "udp-socket" => instance.resource(name, ResourceType::host::<Socket>(), nothing),
        "terminal-input" | "terminal-output" => instance.resource(name, ResourceType::host::<Terminal>(), nothing),
        _ => Ok(()),
    }
}

fn delete<H: Host, R: 'static>(mut cx: Context<H>, rep: u32) -> wasmtime::Result<()> {
    cx.data_mut().table.delete(Resource::<R>::new_own(rep))?;
    Ok(())
}

/// There is nothing behind the resource.
fn nothing<H: Host>(_: Context<H>, _: u32) -> wasmtime::Result<()> {
    Ok(())
}
