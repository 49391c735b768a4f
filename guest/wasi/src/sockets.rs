//! `wasi:sockets`: refused. The only way out of the VM is a host function of the embedder.
use wasmtime::component::{ComponentType, Lift, LinkerInstance, Lower, Resource, WasmStr};

use crate::{Context, Host, Wasi};

/// `wasi:sockets/network.error-code`; the names are WASI's.
#[derive(ComponentType, Lift, Lower, Clone, Copy)]
#[component(enum)]
#[repr(u8)]
#[rustfmt::skip]
#[expect(dead_code, reason = "the type has to be whole, one case of it is returned")]
enum ErrorCode {
    #[component(name = "unknown")] Unknown,
    #[component(name = "access-denied")] AccessDenied,
    #[component(name = "not-supported")] NotSupported,
    #[component(name = "invalid-argument")] InvalidArgument,
    #[component(name = "out-of-memory")] OutOfMemory,
    #[component(name = "timeout")] Timeout,
    #[component(name = "concurrency-conflict")] ConcurrencyConflict,
    #[component(name = "not-in-progress")] NotInProgress,
    #[component(name = "would-block")] WouldBlock,
    #[component(name = "invalid-state")] InvalidState,
    #[component(name = "new-socket-limit")] NewSocketLimit,
    #[component(name = "address-not-bindable")] AddressNotBindable,
    #[component(name = "address-in-use")] AddressInUse,
    #[component(name = "remote-unreachable")] RemoteUnreachable,
    #[component(name = "connection-refused")] ConnectionRefused,
    #[component(name = "connection-reset")] ConnectionReset,
    #[component(name = "connection-aborted")] ConnectionAborted,
    #[component(name = "datagram-too-large")] DatagramTooLarge,
    #[component(name = "name-unresolvable")] NameUnresolvable,
    #[component(name = "temporary-resolver-failure")] TemporaryResolverFailure,
    #[component(name = "permanent-resolver-failure")] PermanentResolverFailure,
}

#[derive(ComponentType, Lift, Lower, Clone, Copy)]
#[component(enum)]
#[repr(u8)]
#[expect(dead_code, reason = "made by the component only")]
enum AddressFamily {
    #[component(name = "ipv4")]
    Ipv4,
    #[component(name = "ipv6")]
    Ipv6,
}

/// The network that every socket function takes; it carries nothing.
pub(crate) struct Network;
/// Never made.
pub(crate) struct Socket;
/// Never made.
pub(crate) struct Addresses;

const REFUSED: ErrorCode = ErrorCode::AccessDenied;

pub(crate) fn define<H: Host>(instance: &mut LinkerInstance<'_, Wasi<H>>, name: &str) -> wasmtime::Result<()> {
    match name {
        "instance-network" => {
            instance.func_wrap("instance-network", |_: Context<H>, (): ()| Ok((Resource::<Network>::new_own(0),)))
        }
        "tcp-create-socket" => refuse(instance, "create-tcp-socket"),
        "udp-create-socket" => refuse(instance, "create-udp-socket"),
        "ip-name-lookup" => instance
            .func_wrap("resolve-addresses", |_: Context<H>, _: (Resource<Network>, WasmStr)| {
                Ok((Err::<Resource<Addresses>, _>(REFUSED),))
            }),
        _ => Ok(()),
    }
}

fn refuse<H: Host>(instance: &mut LinkerInstance<'_, Wasi<H>>, function: &str) -> wasmtime::Result<()> {
    instance.func_wrap(function, |_: Context<H>, _: (AddressFamily,)| Ok((Err::<Resource<Socket>, _>(REFUSED),)))
}
