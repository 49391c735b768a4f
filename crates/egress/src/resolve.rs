//! From an allowed host name to addresses that may be connected to.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Instant;

use crate::address::special;
use crate::stop::Stop;

/// Looks up the addresses of a host name. Called exactly once per hop, on a thread of its own, and
/// only for hosts that the policy allows.
pub trait Resolver: Send + Sync + 'static {
    /// All addresses of `host`, in the order in which they should be tried.
    ///
    /// # Errors
    /// Any I/O error; the fetch then ends with `STATUS` `error`.
    fn resolve(&self, host: &str) -> io::Result<Vec<IpAddr>>;
}

/// The resolver of the operating system (`getaddrinfo`).
#[derive(Debug, Default, Clone, Copy)]
pub struct SystemResolver;

impl Resolver for SystemResolver {
    fn resolve(&self, host: &str) -> io::Result<Vec<IpAddr>> {
        (host, 443).to_socket_addrs().map(|addresses| addresses.map(|address| address.ip()).collect())
    }
}

/// Redirects the dial of a checked address, for tests that serve on loopback.
type DialMap = dyn Fn(SocketAddr) -> SocketAddr + Send + Sync;

/// The network below the policy. [`Network::system`] is the real one; the other parts exist so
/// that tests can put a local server and a fake resolver underneath *after* the checks. Nothing of
/// it is reachable from a sandbox or from Python.
#[derive(Clone)]
pub struct Network {
    pub(crate) resolver: Arc<dyn Resolver>,
    pub(crate) dial_map: Option<Arc<DialMap>>,
    pub(crate) roots: Option<Vec<Vec<u8>>>,
}

impl Network {
    /// The system's resolver, real connections, and the Mozilla root certificates.
    #[must_use]
    pub fn system() -> Self {
        Self { resolver: Arc::new(SystemResolver), dial_map: None, roots: None }
    }

    /// Uses another resolver. Its answers pass the same address check.
    #[must_use]
    pub fn with_resolver(mut self, resolver: impl Resolver) -> Self {
        self.resolver = Arc::new(resolver);
        self
    }

    /// Connects to `map(address)` where `address`, which passed the check, would be connected to.
    #[must_use]
    pub fn with_dial_map(mut self, map: impl Fn(SocketAddr) -> SocketAddr + Send + Sync + 'static) -> Self {
        self.dial_map = Some(Arc::new(map));
        self
    }

    /// Trusts these DER certificates as roots, and no others.
    #[must_use]
    pub fn with_only_roots(mut self, roots: Vec<Vec<u8>>) -> Self {
        self.roots = Some(roots);
        self
    }

    /// Resolves `host` once, within the deadline, and refuses the name if any address is special.
    pub(crate) fn resolve(&self, host: &str, deadline: Instant) -> Result<Vec<IpAddr>, Stop> {
        let addresses = self.look_up(host, deadline)?;
        if addresses.is_empty() {
            return Err(Stop::failed(format!("host {host} has no address")));
        }
        for address in &addresses {
            if let Some(what) = special(*address) {
                return Err(Stop::blocked(
                    format!("host {host} resolves to {address}, a {what} address, not a public one"),
                    Some(host),
                ));
            }
        }
        Ok(addresses)
    }

    /// `getaddrinfo` knows no deadline, so it runs on a thread that is abandoned when time is up.
    fn look_up(&self, host: &str, deadline: Instant) -> Result<Vec<IpAddr>, Stop> {
        let (answer, wait) = mpsc::sync_channel(1);
        let resolver = Arc::clone(&self.resolver);
        let name = host.to_owned();
        let not_resolved = |error: &dyn fmt::Display| Stop::failed(format!("host {host} was not resolved: {error}"));
        thread::Builder::new()
            .name("egress-resolve".into())
            .spawn(move || drop(answer.send(resolver.resolve(&name))))
            .map_err(|error| not_resolved(&error))?;
        match wait.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(Ok(addresses)) => Ok(addresses),
            Ok(Err(error)) => Err(not_resolved(&error)),
            Err(mpsc::RecvTimeoutError::Timeout) => Err(Stop::deadline(&format!("resolving {host}"))),
            Err(mpsc::RecvTimeoutError::Disconnected) => Err(not_resolved(&"the resolver crashed")),
        }
    }
}

impl Default for Network {
    fn default() -> Self {
        Self::system()
    }
}

impl fmt::Debug for Network {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Network")
            .field("dial_map", &self.dial_map.is_some())
            .field("roots", &self.roots.as_ref().map(Vec::len))
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    struct Fixed(Vec<&'static str>);

    impl Resolver for Fixed {
        fn resolve(&self, _host: &str) -> io::Result<Vec<IpAddr>> {
            Ok(self.0.iter().map(|a| a.parse().expect("address")).collect())
        }
    }

    struct Broken(&'static str);

    impl Resolver for Broken {
        fn resolve(&self, _host: &str) -> io::Result<Vec<IpAddr>> {
            match self.0 {
                "slow" => thread::sleep(Duration::from_secs(60)),
                "crash" => panic!("a resolver that panics"),
                _ => {}
            }
            Err(io::Error::other("no such host"))
        }
    }

    fn resolve(resolver: impl Resolver) -> Result<Vec<IpAddr>, Stop> {
        resolve_within(Duration::from_secs(5), resolver)
    }

    fn resolve_within(time: Duration, resolver: impl Resolver) -> Result<Vec<IpAddr>, Stop> {
        Network::system().with_resolver(resolver).resolve("www.bbc.com", Instant::now() + time)
    }

    #[test]
    fn public_addresses_pass_in_their_order() {
        let addresses = resolve(Fixed(vec!["2a04:4e42::81", "151.101.0.81"])).expect("public");
        assert_eq!(addresses[0].to_string(), "2a04:4e42::81");
        assert_eq!(addresses.len(), 2);
    }

    #[test]
    fn one_special_address_among_public_ones_blocks_the_name() {
        assert_eq!(
            resolve(Fixed(vec!["151.101.0.81", "10.0.0.1"])),
            Err(Stop::blocked(
                "host www.bbc.com resolves to 10.0.0.1, a private address, not a public one",
                Some("www.bbc.com")
            ))
        );
    }

    #[test]
    fn failures_are_errors_within_the_deadline() {
        for (resolver, reason) in [
            ("fails", "host www.bbc.com was not resolved: no such host"),
            ("crash", "host www.bbc.com was not resolved: the resolver crashed"),
        ] {
            assert_eq!(resolve(Broken(resolver)), Err(Stop::failed(reason)));
        }
        assert_eq!(
            resolve_within(Duration::from_millis(20), Broken("slow")),
            Err(Stop::failed("the deadline passed while resolving www.bbc.com"))
        );
        assert_eq!(resolve(Fixed(vec![])), Err(Stop::failed("host www.bbc.com has no address")));
    }
}
