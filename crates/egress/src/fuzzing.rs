//! Single steps of the chain, opened to the fuzz targets and checked for what they promise.

use std::io::{self, Cursor, Read};
use std::sync::LazyLock;
use std::time::{Duration, SystemTime};

use ureq::unversioned::transport::{Buffers, ConnectionDetails, Connector, LazyBuffers, NextTimeout, Transport};
use ureq::{Agent, Error};

use crate::charset::decode;
use crate::client::{Client, Dialed, exchange, third_reading};
use crate::decompress::decompress as decompress_bounded;
use crate::extract::Document;
use crate::links::Link;
use crate::media_type::MediaType;
use crate::redirect::follow;
use crate::stop::Stop;
use crate::target::Refused;
use crate::{FetchLimits, FetchPolicy, Format, Network, Page};

/// Where the pages of the fuzz targets come from.
const PAGE_URL: &str = "https://www.example.org/sport/";

/// The host that the default policy would connect to for `url`, if any.
#[must_use]
pub fn admitted_host(url: &str) -> Option<String> {
    let target = FetchPolicy::new(["example.org", "www.example.org"]).expect("hosts").admit(url).ok()?;
    Some(target.host().to_owned())
}

/// Whether a policy of the paths below `/sport`, without queries, admits `url`.
#[must_use]
pub fn admitted_below_sport(url: &str) -> bool {
    let narrow =
        FetchPolicy::new(["example.org", "www.example.org"]).expect("hosts").with_query(false).with_paths(["/sport"]);
    narrow.is_ok_and(|policy| policy.admit(url).is_ok())
}

/// Sends a request to a server that answers with `response`, and goes on with what it says.
pub fn headers(response: &[u8]) {
    let policy = FetchPolicy::new(["example.org", "www.example.org"]).expect("hosts");
    static CLIENT: LazyLock<Client> = LazyLock::new(|| Client::new(Network::system(), &FetchLimits::default()));
    let Ok(target) = policy.admit("https://www.example.org/") else {
        return;
    };
    let Ok(uri) = third_reading(&target) else {
        return;
    };
    let agent = Agent::with_parts(CLIENT.config(Duration::from_secs(5)), Canned(response.to_vec()), Dialed(()));
    let answer = match exchange(&agent, uri, target.host()) {
        Ok(answer) => answer,
        Err(stop) => return check_reason(&stop),
    };
    let _ = answer.asks_to_wait(SystemTime::now());
    if answer.is_redirect() {
        match follow(&policy, &target, answer.location.as_deref()) {
            Ok(next) => assert!(policy.hosts().any(|host| host == next.host())),
            Err((stop, _)) => check_reason(&stop),
        }
    }
    let _ = MediaType::parse(answer.content_type.as_deref().unwrap_or_default()).is_text();
    match decompress_bounded(answer.body, answer.content_encoding.as_deref(), 4096) {
        Ok(content) => assert!(content.bytes.len() <= 4096),
        Err(unusable) => {
            assert!(unusable.bytes <= 4096);
            check_reason(&unusable.stop);
        }
    }
}

/// A reason is one bounded line, whatever a server made it of.
fn check_reason(stop: &Stop) {
    let (Stop::Blocked(Refused { reason, .. }) | Stop::Failed(reason)) = stop;
    assert!(!reason.is_empty() && reason.len() < 1000 && !reason.chars().any(char::is_control), "{reason:?}");
}

/// Decompresses `wire` within `bound` bytes of content.
pub fn decompress(wire: &[u8], encoding: &str, bound: usize) {
    let mut rest = wire;
    if let Ok(content) = decompress_bounded(&mut rest, Some(encoding), bound) {
        assert!(content.bytes.len() <= bound);
    }
    assert!(wire.len() - rest.len() <= bound + 64 * 1024);
}

/// Decodes `bytes` with a `Content-Type` header.
pub fn charset(bytes: &[u8], content_type: &str) {
    let text = decode(bytes, &MediaType::parse(content_type));
    assert!(text.len() <= bytes.len().saturating_mul(3) + 3);
    if let Ok(valid) = std::str::from_utf8(bytes)
        && !valid.is_ascii()
    {
        assert_eq!(text, valid.strip_prefix('\u{feff}').unwrap_or(valid));
    }
}

/// Extracts a page from its source, checks every bound, and reads it to its end in both formats.
///
/// A byte order mark is put in front, so that no time goes into guessing the charset.
pub fn html(source: &str) {
    const LIMIT: usize = 256;
    let marked = format!("\u{feff}{source}");
    let document = Document::read(marked.as_bytes(), "text/html", PAGE_URL);
    assert_eq!(document.source, source);
    assert!(document.title.len() <= 1024 && !document.title.contains('\n'));
    assert!(document.description.len() <= 4096 && !document.description.contains('\n'));
    check_links(&document.links);
    for piece in [&document.title, &document.description] {
        assert!(piece.chars().all(|c| !c.is_control() && (c == ' ' || !c.is_whitespace())), "{piece:?}");
        assert!(!piece.contains("  ") && piece.trim() == piece, "{piece:?}");
    }
    check_text(&document.text);
    for (format, whole) in [(Format::Text, &document.text), (Format::Html, &document.source)] {
        let mut read = String::new();
        let mut next = Some(0);
        while let Some(offset) = next {
            let page = Page::of(&document, PAGE_URL, offset, format, LIMIT);
            assert!(page.body.len() <= LIMIT && (page.next_offset.is_none() || page.body.len() > LIMIT - 4));
            read.push_str(&page.body);
            next = page.next_offset;
        }
        assert_eq!(&read, whole);
    }
}

/// Columns and indentation may stay, from preformatted text; ends of lines, and more than one empty line
/// together, never.
fn check_text(text: &str) {
    let tidy = |c: char| !c.is_control() && (c == ' ' || !c.is_whitespace()) || matches!(c, '\n' | '\t');
    assert!(text.chars().all(tidy), "{text:?}");
    assert!(!text.contains("\n\n\n") && !text.contains(" \n") && !text.starts_with('\n'), "{text:?}");
    assert_eq!(text.trim_end(), text);
}

fn check_links(links: &[Link]) {
    assert!(links.len() <= 200 && links.iter().map(|link| link.address.len()).sum::<usize>() <= 64 * 1024);
    for (index, Link { address, text }) in links.iter().enumerate() {
        assert!(address.starts_with("https://") || address.starts_with("http://"));
        assert!(address.len() <= 2048 && !address.contains('#'));
        assert!(text.len() <= 200 && !text.contains('\n'));
        assert!(!links[..index].iter().any(|other| other.address == *address));
    }
}

/// A connection that was answered before anything was asked.
#[derive(Debug)]
struct Canned(Vec<u8>);

#[derive(Debug)]
struct CannedTransport {
    response: Cursor<Vec<u8>>,
    buffers: LazyBuffers,
}

impl Connector<()> for Canned {
    type Out = CannedTransport;

    fn connect(&self, _details: &ConnectionDetails, _chained: Option<()>) -> Result<Option<Self::Out>, Error> {
        Ok(Some(CannedTransport {
            response: Cursor::new(self.0.clone()),
            buffers: LazyBuffers::new(16 * 1024, 4 * 1024),
        }))
    }
}

impl Transport for CannedTransport {
    fn buffers(&mut self) -> &mut dyn Buffers {
        &mut self.buffers
    }

    fn transmit_output(&mut self, _amount: usize, _timeout: NextTimeout) -> Result<(), Error> {
        Ok(())
    }

    fn await_input(&mut self, _timeout: NextTimeout) -> Result<bool, Error> {
        let space = self.buffers.input_append_buf();
        if space.is_empty() {
            return Err(Error::Io(io::ErrorKind::OutOfMemory.into()));
        }
        let count = self.response.read(space)?;
        self.buffers.input_appended(count);
        Ok(count > 0)
    }

    fn is_open(&mut self) -> bool {
        true
    }

    fn is_tls(&self) -> bool {
        true
    }
}
