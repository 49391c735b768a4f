//! One HTTPS request to one checked address. Redirects, retries and pauses are decided above.
//!
//! `ureq` does TLS and HTTP/1.1; what it could do on its own is switched off or replaced here: no
//! proxy (its default reads the environment), no redirects, no cookies, no pool, no resolver, no
//! decompression. Its only connector dials the addresses that were checked for this hop.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use ureq::config::Config;
use ureq::http::{HeaderMap, HeaderName, Uri, header};
use ureq::tls::{Certificate, RootCerts, TlsConfig, TlsProvider};
use ureq::unversioned::resolver::{ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::time::Duration as UreqDuration;
use ureq::unversioned::transport::{
    ConnectionDetails, Connector, NextTimeout, RustlsConnector, TcpConnector, Transport,
};
use ureq::{Agent, Timeout};

use crate::answer::Answer;
use crate::limits::FetchLimits;
use crate::resolve::Network;
use crate::stop::Stop;
use crate::target::Target;

/// Addresses of one host that are tried before giving up.
const TRIED_ADDRESSES: usize = 4;

/// Sends requests for one session; keeps only the TLS configuration between them.
pub(crate) struct Client {
    network: Network,
    tls_config: TlsConfig,
    tls: Arc<RustlsConnector>,
    user_agent: String,
    header_bytes: usize,
}

impl Client {
    pub(crate) fn new(network: Network, limits: &FetchLimits) -> Self {
        let roots = match &network.roots {
            None => RootCerts::WebPki,
            Some(ders) => {
                let roots: Vec<_> = ders.iter().map(|der| Certificate::from_der(der).to_owned()).collect();
                RootCerts::new_with_certs(&roots)
            }
        };
        let tls_config = TlsConfig::builder()
            .provider(TlsProvider::Rustls)
            .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .root_certs(roots)
            .build();
        Self {
            network,
            tls_config,
            tls: Arc::new(RustlsConnector::default()),
            user_agent: limits.user_agent(),
            header_bytes: limits.header_bytes,
        }
    }

    pub(crate) fn network(&self) -> &Network {
        &self.network
    }

    /// Requests `target` from one of `addresses`, which were checked for its host; `dialed` becomes the last of them
    /// that was connected to, however it ends.
    pub(crate) fn send(
        &self,
        target: &Target,
        addresses: &[IpAddr],
        deadline: Instant,
        dialed: &mut Option<IpAddr>,
    ) -> Result<Answer, Stop> {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(Stop::deadline(&format!("connecting to {}", target.host())));
        }
        let uri = third_reading(target)?;
        let last = Arc::new(Mutex::new(None));
        let agent = Agent::with_parts(
            self.config(left),
            ().chain(CheckedConnector {
                addresses: addresses.to_vec(),
                network: self.network.clone(),
                dialed: Arc::clone(&last),
            })
            .chain(SharedTls(Arc::clone(&self.tls))),
            Dialed(()),
        );
        let answer = exchange(&agent, uri, target.host());
        *dialed = *last.lock().unwrap_or_else(PoisonError::into_inner);
        answer
    }

    pub(crate) fn config(&self, timeout: Duration) -> Config {
        Agent::config_builder()
            .https_only(true)
            .proxy(None)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .http_status_as_error(false)
            .user_agent(&self.user_agent)
            .accept("text/html, application/xhtml+xml, text/plain;q=0.9, application/json;q=0.9, */*;q=0.1")
            .accept_encoding("gzip, deflate")
            .max_response_header_size(self.header_bytes)
            .max_idle_connections(0)
            .timeout_global(Some(timeout))
            .tls_config(self.tls_config.clone())
            .build()
    }
}

/// One request over whatever connection `agent` makes.
pub(crate) fn exchange(agent: &Agent, uri: Uri, host: &str) -> Result<Answer, Stop> {
    let response = agent.get(uri).call().map_err(|error| explain(&error, host))?;
    let (parts, body) = response.into_parts();
    Ok(Answer {
        status: parts.status.as_u16(),
        content_type: all_text(&parts.headers, header::CONTENT_TYPE),
        content_encoding: all_text(&parts.headers, header::CONTENT_ENCODING),
        location: text(&parts.headers, header::LOCATION),
        retry_after: text(&parts.headers, header::RETRY_AFTER),
        cut: None,
        sha256: None,
        body: Box::new(body.into_reader()),
    })
}

/// The HTTP library's own type of a URL; a third reading that has to agree with the first two.
pub(crate) fn third_reading(target: &Target) -> Result<Uri, Stop> {
    let uri: Option<Uri> = target.url().as_str().parse().ok();
    uri.filter(|uri| {
        uri.scheme_str() == Some("https")
            && uri.host() == Some(target.host())
            && uri.port().is_none()
            && uri.authority().is_some_and(|all| all.as_str() == target.host())
    })
    .ok_or_else(|| {
        Stop::blocked(format!("the URL cannot be sent as it is (host {})", target.host()), Some(target.host()))
    })
}

/// The values of a header that was sent once or more often, as one list.
fn all_text(headers: &HeaderMap, name: HeaderName) -> Option<String> {
    let values: Vec<&str> =
        headers.get_all(name).iter().filter_map(|value| std::str::from_utf8(value.as_bytes()).ok()).collect();
    (!values.is_empty()).then(|| values.join(", "))
}

/// A header's value when it is there exactly as text; a header that is not UTF-8 counts as absent.
fn text(headers: &HeaderMap, name: HeaderName) -> Option<String> {
    let value = headers.get(name)?;
    String::from_utf8(value.as_bytes().to_vec()).ok()
}

/// Satisfies `ureq`, which resolves before it connects: the real list is the connector's.
#[derive(Debug)]
pub(crate) struct Dialed(pub(crate) ());

impl Resolver for Dialed {
    fn resolve(&self, _uri: &Uri, _config: &Config, _timeout: NextTimeout) -> Result<ResolvedSocketAddrs, ureq::Error> {
        Ok(self.empty())
    }
}

/// Opens TCP connections to the checked addresses only, whatever the URL says.
struct CheckedConnector {
    addresses: Vec<IpAddr>,
    network: Network,
    dialed: Arc<Mutex<Option<IpAddr>>>,
}

impl fmt::Debug for CheckedConnector {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "CheckedConnector({:?})", self.addresses)
    }
}

impl Connector<()> for CheckedConnector {
    type Out = <TcpConnector as Connector<()>>::Out;

    fn connect(&self, details: &ConnectionDetails, _chained: Option<()>) -> Result<Option<Self::Out>, ureq::Error> {
        let mut failure = ureq::Error::ConnectionFailed;
        let tried = self.addresses.len().min(TRIED_ADDRESSES);
        let started = Instant::now();
        for (index, address) in self.addresses.iter().take(TRIED_ADDRESSES).enumerate() {
            let checked = SocketAddr::new(*address, 443);
            let dial = match &self.network.dial_map {
                Some(map) => map(checked),
                None => checked,
            };
            *self.dialed.lock().unwrap_or_else(PoisonError::into_inner) = Some(*address);
            let left = (*details.timeout.after).saturating_sub(started.elapsed());
            let share = left / u32::try_from(tried - index).unwrap_or(1);
            match TcpConnector::default().connect(&to_one(details, dial, share), None) {
                Ok(transport) => return Ok(transport),
                Err(error) => failure = error,
            }
        }
        Err(failure)
    }
}

/// The same connection details for one address and a share of the time.
fn to_one<'a>(details: &ConnectionDetails<'a>, dial: SocketAddr, share: Duration) -> ConnectionDetails<'a> {
    let mut addrs = details.resolver.empty();
    addrs.push(dial);
    ConnectionDetails {
        uri: details.uri,
        addrs,
        resolver: details.resolver,
        config: details.config,
        request_level: details.request_level,
        now: (details.current_time)(),
        timeout: NextTimeout { after: UreqDuration::Exact(share), reason: Timeout::Connect, ..details.timeout },
        current_time: Arc::clone(&details.current_time),
        run_connector: Arc::clone(&details.run_connector),
        register_shutdown: Arc::clone(&details.register_shutdown),
    }
}

/// One TLS connector, and so one cached configuration, for all requests of a session.
#[derive(Debug)]
struct SharedTls(Arc<RustlsConnector>);

impl<In: Transport> Connector<In> for SharedTls {
    type Out = <RustlsConnector as Connector<In>>::Out;

    fn connect(&self, details: &ConnectionDetails, chained: Option<In>) -> Result<Option<Self::Out>, ureq::Error> {
        self.0.connect(details, chained)
    }
}

/// A sentence about a failed request.
fn explain(error: &ureq::Error, host: &str) -> Stop {
    match error {
        ureq::Error::Timeout(_) => Stop::deadline(&format!("talking to {host}")),
        ureq::Error::LargeResponseHeader(_, most) => {
            Stop::failed(format!("host {host} sent more than {most} bytes of headers"))
        }
        ureq::Error::Rustls(error) => tls(error, host),
        ureq::Error::Io(error) => match tls_inside(error) {
            Some(error) => tls(error, host),
            None => Stop::failed(format!("the connection to {host} failed: {error}")),
        },
        other => Stop::failed(format!("the request to {host} failed: {other}")),
    }
}

fn tls_inside(error: &io::Error) -> Option<&rustls::Error> {
    error.get_ref()?.downcast_ref()
}

fn tls(error: &rustls::Error, host: &str) -> Stop {
    match error {
        rustls::Error::InvalidCertificate(why) => {
            Stop::failed(format!("the certificate of host {host} is not valid for it: {why}"))
        }
        other => Stop::failed(format!("TLS with host {host} failed: {other}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::FetchPolicy;

    #[test]
    fn what_the_url_crate_leaves_unescaped_is_sent_or_refused_never_reread() {
        let policy = FetchPolicy::new(["bbc.com", "www.bbc.com"]).expect("hosts");
        for path in ["/a|b", "/a[b]", "/a'b", "/a^b", "/?a={b}", "/?a=|", "/世界", "/;a=b", "/a@b:c"] {
            let target = policy.admit(&format!("https://bbc.com{path}")).expect(path);
            if let Ok(uri) = third_reading(&target) {
                assert_eq!(uri.to_string(), target.url().as_str());
            }
        }
    }

    #[test]
    fn no_proxy_no_redirects_no_pool() {
        let client = Client::new(Network::system(), &FetchLimits::default());
        let config = client.config(Duration::from_secs(1));
        assert!(config.proxy().is_none());
        assert!(config.https_only());
        assert_eq!(config.max_redirects(), 0);
        assert_eq!(config.max_idle_connections(), 0);
        assert_eq!(config.max_response_header_size(), 64 * 1024);
    }
}
