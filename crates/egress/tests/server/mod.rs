//! A TLS server on loopback and a resolver that never asks anyone, put below the public API.

// Each test binary uses its part of this.
#![allow(dead_code)]

use std::collections::HashMap;
use std::io::{self, BufRead, BufReader, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use egress::{FetchLimits, FetchPolicy, FetchReply, FetchRequest, FetchSession, Network, Resolver};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

/// Public addresses that stand for the two names of the default policy.
pub const WWW: &str = "151.101.0.81";
pub const APEX: &str = "151.101.64.81";

type Tls = StreamOwned<ServerConnection, TcpStream>;

/// A server whose handler writes raw bytes for each request head.
pub struct Server {
    pub address: SocketAddr,
    pub root: Vec<u8>,
    connections: Arc<AtomicUsize>,
    requests: Arc<Mutex<Vec<String>>>,
}

/// One request as it arrived.
pub struct Request {
    pub host: String,
    pub path: String,
    /// How many requests came before it.
    pub number: usize,
}

impl Server {
    /// Serves with a certificate for the two names of the default policy.
    pub fn start(handler: impl Fn(&Request, &mut Tls) -> io::Result<()> + Send + Sync + 'static) -> Self {
        Self::start_as(&["www.bbc.com", "bbc.com"], handler)
    }

    /// Serves with a self-signed certificate for `names`.
    pub fn start_as(
        names: &[&str],
        handler: impl Fn(&Request, &mut Tls) -> io::Result<()> + Send + Sync + 'static,
    ) -> Self {
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        let certified = rcgen::generate_simple_self_signed(names).expect("certificate");
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(certified.signing_key.serialize_der()));
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_no_client_auth()
            .with_single_cert(vec![certified.cert.der().clone()], key)
            .expect("config");
        let listener = TcpListener::bind("127.0.0.1:0").expect("listener");
        let server = Self {
            address: listener.local_addr().expect("address"),
            root: certified.cert.der().to_vec(),
            connections: Arc::default(),
            requests: Arc::default(),
        };
        let connections = Arc::clone(&server.connections);
        let requests = Arc::clone(&server.requests);
        let config = Arc::new(config);
        let handler = Arc::new(handler);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                connections.fetch_add(1, Ordering::SeqCst);
                let (config, requests, handler) = (Arc::clone(&config), Arc::clone(&requests), Arc::clone(&handler));
                thread::spawn(move || serve(stream, config, &requests, &*handler));
            }
        });
        server
    }

    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    /// The heads of all requests, as they arrived.
    pub fn requests(&self) -> Vec<String> {
        self.requests.lock().expect("lock").clone()
    }

    /// This server below the policy, with a resolver that knows the two names.
    pub fn network(&self) -> (Network, Names) {
        self.network_with(&[("www.bbc.com", &[WWW]), ("bbc.com", &[APEX])])
    }

    /// This server below the policy, with a resolver that knows these names.
    pub fn network_with(&self, names: &[(&str, &[&str])]) -> (Network, Names) {
        let names = Names::new(names);
        let address = self.address;
        let network = Network::system()
            .with_resolver(names.clone())
            .with_dial_map(move |_checked| address)
            .with_only_roots(vec![self.root.clone()]);
        (network, names)
    }

    /// A session of the default policy on this server, without pauses, and its resolver.
    pub fn session(&self) -> (FetchSession, Names) {
        self.session_with(quick())
    }

    pub fn session_with(&self, limits: FetchLimits) -> (FetchSession, Names) {
        let (network, names) = self.network();
        let session = FetchSession::builder(FetchPolicy::new(["bbc.com", "www.bbc.com"]).expect("hosts"))
            .limits(limits)
            .network(network)
            .build()
            .expect("session");
        (session, names)
    }
}

/// The default limits without pauses.
pub fn quick() -> FetchLimits {
    FetchLimits { pause: Duration::ZERO, ..FetchLimits::default() }
}

/// Fetches with a deadline that no test reaches by accident.
pub fn fetch(session: &FetchSession, url: &str) -> FetchReply {
    session.fetch(&FetchRequest::new(url), Instant::now() + Duration::from_secs(60))
}

/// A resolver that counts its questions.
#[derive(Clone, Default)]
pub struct Names {
    known: Arc<HashMap<String, Vec<IpAddr>>>,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Names {
    pub fn new(names: &[(&str, &[&str])]) -> Self {
        let known = names.iter().map(|(name, addresses)| {
            let addresses = addresses.iter().map(|address| address.parse().expect("address"));
            ((*name).to_owned(), addresses.collect())
        });
        Self { known: Arc::new(known.collect()), asked: Arc::default() }
    }

    pub fn asked(&self) -> Vec<String> {
        self.asked.lock().expect("lock").clone()
    }
}

impl Resolver for Names {
    fn resolve(&self, host: &str) -> io::Result<Vec<IpAddr>> {
        self.asked.lock().expect("lock").push(host.to_owned());
        self.known.get(host).cloned().ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "no such host"))
    }
}

fn serve(
    stream: TcpStream,
    config: Arc<ServerConfig>,
    requests: &Mutex<Vec<String>>,
    handler: &dyn Fn(&Request, &mut Tls) -> io::Result<()>,
) {
    let connection = ServerConnection::new(config).expect("connection");
    let mut reader = BufReader::new(StreamOwned::new(connection, stream));
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        match reader.read_line(&mut head) {
            Ok(count) if count > 0 => {}
            _ => return,
        }
    }
    let number = {
        let mut requests = requests.lock().expect("lock");
        requests.push(head.clone());
        requests.len() - 1
    };
    let request =
        Request { host: header(&head, "host"), path: head.split(' ').nth(1).unwrap_or_default().to_owned(), number };
    let mut tls = reader.into_inner();
    if handler(&request, &mut tls).is_ok() {
        tls.conn.send_close_notify();
        let _ = tls.flush();
    }
}

/// A header of a request head, or the empty string.
pub fn header(head: &str, name: &str) -> String {
    head.lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(key, _)| key.eq_ignore_ascii_case(name))
        .map(|(_, value)| value.trim().to_owned())
        .unwrap_or_default()
}

/// Writes a whole response with a true length.
pub fn respond(out: &mut impl Write, status: &str, headers: &[&str], body: &[u8]) -> io::Result<()> {
    write!(out, "HTTP/1.1 {status}\r\ncontent-length: {}\r\n", body.len())?;
    for header in headers {
        write!(out, "{header}\r\n")?;
    }
    out.write_all(b"\r\n")?;
    out.write_all(body)?;
    out.flush()
}

/// Writes a 200 with an HTML body.
pub fn html(out: &mut impl Write, body: impl AsRef<[u8]>) -> io::Result<()> {
    respond(out, "200 OK", &["content-type: text/html"], body.as_ref())
}

/// Writes a redirect.
pub fn redirect(out: &mut impl Write, location: &str) -> io::Result<()> {
    let location = format!("location: {location}");
    respond(out, "301 Moved Permanently", &[&location], b"<p>moved")
}

/// Reads one of the files in `tests/cases`.
pub fn cases(json: &str) -> Vec<serde_json::Value> {
    serde_json::from_str(json).expect("cases")
}
