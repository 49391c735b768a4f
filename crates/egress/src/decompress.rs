//! From the bytes on the wire to the bytes of the page, never more than a bound of either.
//!
//! Nothing is allocated for a length that a server announces; buffers grow with what arrived.

use std::io::{self, Read};

use flate2::read::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};
use serde::{Deserialize, Serialize};

use crate::stop::Stop;

/// Wire bytes allowed beyond the page bound: incompressible data grows a little when compressed.
const WIRE_SLACK: u64 = 64 * 1024;
/// How often gzip inside the content is undone.
const INNER: usize = 3;

/// The content of a response, decompressed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Content {
    pub(crate) bytes: Vec<u8>,
    /// Why there is less than the server has, or `None` for the whole page.
    pub(crate) cut: Option<Cut>,
}

/// Why a page is not whole; an archive keeps it by this name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Cut {
    /// It is longer than the bound.
    Bound,
    /// The connection ended first.
    Connection,
}

/// The end of a page that cannot be used, and how much of its content had arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unusable {
    pub(crate) stop: Stop,
    pub(crate) bytes: usize,
}

impl From<Stop> for Unusable {
    fn from(stop: Stop) -> Self {
        Self { stop, bytes: 0 }
    }
}

/// Reads at most `bound` bytes of content out of `wire`.
///
/// `encoding` is the `Content-Encoding` header: none, `identity`, `gzip`, `x-gzip`, several of these,
/// or `deflate` (zlib or raw). Anything else is an error. Gzip inside is undone too, whether the header
/// says so or not: nothing that is compressed is text.
pub(crate) fn decompress(wire: impl Read, encoding: Option<&str>, bound: usize) -> Result<Content, Unusable> {
    let wire = wire.take((bound as u64).saturating_add(WIRE_SLACK));
    let names = encoding.unwrap_or_default().split(',').map(|name| name.trim().to_ascii_lowercase());
    let names: Vec<String> = names.filter(|name| !matches!(name.as_str(), "" | "identity")).collect();
    let content = match names.as_slice() {
        [] => read_bounded(wire, bound),
        gzip if gzip.iter().all(|name| matches!(name.as_str(), "gzip" | "x-gzip")) => {
            read_bounded(MultiGzDecoder::new(wire), bound)
        }
        [deflate] if deflate == "deflate" => {
            let (head, wire) = peek(wire)?;
            let wire = head.as_slice().chain(wire);
            if is_zlib(&head) {
                read_bounded(ZlibDecoder::new(wire), bound)
            } else {
                read_bounded(DeflateDecoder::new(wire), bound)
            }
        }
        others => {
            let named = crate::authority::shown(&others.join(","));
            return Err(Stop::failed(format!("the content encoding {named:?} is not supported")).into());
        }
    }?;
    inner_gzip(content, bound)
}

/// Undoes gzip inside the content, a few times at most.
fn inner_gzip(mut content: Content, bound: usize) -> Result<Content, Unusable> {
    for _ in 0..INNER {
        if !is_gzip(&content.bytes) {
            return Ok(content);
        }
        let inner = read_bounded(MultiGzDecoder::new(content.bytes.as_slice()), bound)?;
        content = Content { cut: content.cut.or(inner.cut), bytes: inner.bytes };
    }
    let stop = Stop::failed(format!("the page is compressed more than {INNER} times"));
    if is_gzip(&content.bytes) { Err(Unusable { stop, bytes: content.bytes.len() }) } else { Ok(content) }
}

/// The text of a page that was handed over compressed; nothing when it cannot be read.
pub(crate) fn uncompressed(bytes: &[u8], bound: usize) -> Vec<u8> {
    decompress(bytes, None, bound).map(|content| content.bytes).unwrap_or_default()
}

/// The three bytes that start a gzip member with the only method there is (RFC 1952).
pub(crate) fn is_gzip(bytes: &[u8]) -> bool {
    bytes.starts_with(&[0x1f, 0x8b, 8])
}

fn read_bounded(mut content: impl Read, bound: usize) -> Result<Content, Unusable> {
    let mut bytes = Vec::new();
    let mut chunk = [0; 16 * 1024];
    loop {
        match content.read(&mut chunk) {
            Ok(0) => return Ok(Content { bytes, cut: None }),
            Ok(count) => {
                let room = bound - bytes.len();
                bytes.extend_from_slice(&chunk[..count.min(room)]);
                if count > room {
                    let cut = Some(Cut::Bound);
                    return Ok(Content { bytes, cut });
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof && !bytes.is_empty() => {
                let cut = Some(Cut::Connection);
                return Ok(Content { bytes, cut });
            }
            Err(error) => return Err(Unusable { stop: explain(&error), bytes: bytes.len() }),
        }
    }
}

fn explain(error: &io::Error) -> Stop {
    let timed_out = error
        .get_ref()
        .and_then(|inner| inner.downcast_ref())
        .is_some_and(|inner| matches!(inner, ureq::Error::Timeout(_)));
    if timed_out || error.kind() == io::ErrorKind::TimedOut {
        return Stop::deadline("reading the page");
    }
    Stop::failed(format!("the page could not be read: {error}"))
}

/// The first two bytes, or fewer when there are no more.
fn peek<R: Read>(mut wire: R) -> Result<(Vec<u8>, R), Stop> {
    let mut head = Vec::with_capacity(2);
    wire.by_ref().take(2).read_to_end(&mut head).map_err(|error| explain(&error))?;
    Ok((head, wire))
}

/// True for the two bytes that start a zlib stream (RFC 1950); raw deflate has no header.
fn is_zlib(head: &[u8]) -> bool {
    match head {
        [first, second] => first & 0x0f == 8 && (u16::from(*first) << 8 | u16::from(*second)).is_multiple_of(31),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};

    use super::*;

    fn gzip(content: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(content).expect("in memory");
        encoder.finish().expect("in memory")
    }

    fn whole(bytes: &[u8]) -> Result<Content, Unusable> {
        Ok(Content { bytes: bytes.to_vec(), cut: None })
    }

    #[test]
    fn every_supported_encoding_gives_the_content_back() {
        let content = b"a page, a page, a page";
        let mut zlib = ZlibEncoder::new(Vec::new(), Compression::best());
        zlib.write_all(content).expect("in memory");
        let mut raw = DeflateEncoder::new(Vec::new(), Compression::best());
        raw.write_all(content).expect("in memory");
        for (encoding, wire) in [
            (None, content.to_vec()),
            (Some(""), content.to_vec()),
            (Some("identity"), content.to_vec()),
            (Some("gzip"), gzip(content)),
            (Some(" X-GZip "), gzip(content)),
            (Some("deflate"), zlib.finish().expect("in memory")),
            (Some("deflate"), raw.finish().expect("in memory")),
        ] {
            assert_eq!(decompress(&wire[..], encoding, 100), whole(content), "{encoding:?}");
        }
    }

    #[test]
    fn gzip_inside_is_undone_whatever_the_header_says() {
        let (once, twice) = (gzip(b"a page"), gzip(&gzip(b"a page")));
        for (wire, encoding) in [
            (&once, None),
            (&twice, None),
            (&twice, Some("gzip")),
            (&twice, Some("gzip, gzip")),
            (&once, Some("gzip,x-gzip")),
        ] {
            assert_eq!(decompress(&wire[..], encoding, 100), whole(b"a page"), "{encoding:?}");
        }
        let deep = (0..6).fold(b"a page".to_vec(), |inner, _| gzip(&inner));
        let stop = decompress(&deep[..], Some("gzip"), 1000).map_err(|unusable| unusable.stop);
        assert_eq!(stop, Err(Stop::failed("the page is compressed more than 3 times")));
        let cut = decompress(&twice[..twice.len() - 9], None, 1000).expect("part");
        assert!(!is_gzip(&cut.bytes));
    }

    #[test]
    fn the_bound_counts_content_not_wire_bytes() {
        let wire = gzip(&[b'a'; 1000]);
        assert!(wire.len() < 100);
        assert_eq!(decompress(&wire[..], Some("gzip"), 1000), whole(&[b'a'; 1000]));
        let content = decompress(&wire[..], Some("gzip"), 999).expect("cut");
        assert_eq!(content.bytes, [b'a'; 999]);
        assert_eq!(content.cut, Some(Cut::Bound));
    }

    #[test]
    fn concatenated_members_share_the_bound() {
        let mut wire = gzip(b"one");
        wire.extend(gzip(b"two"));
        assert_eq!(decompress(&wire[..], Some("gzip"), 100), whole(b"onetwo"));
        assert_eq!(decompress(&wire[..], Some("gzip"), 4).expect("cut").bytes, b"onet");
    }

    #[test]
    fn wire_bytes_without_content_are_bounded_too() {
        let empty = gzip(b"");
        let endless = std::iter::repeat_n(empty, 100_000).flatten().collect::<Vec<u8>>();
        let mut rest = &endless[..];
        let content = decompress(&mut rest, Some("gzip"), 10);
        assert!(content.is_ok() || content.is_err());
        assert!(endless.len() - rest.len() <= 10 + 64 * 1024);
    }

    #[test]
    fn an_early_end_keeps_what_arrived() {
        let noise: Vec<u8> = (0..40_000u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
        let wire = gzip(&noise);
        let content = decompress(&wire[..wire.len() - 100], Some("gzip"), 100_000).expect("part");
        assert_eq!(content.cut, Some(Cut::Connection));
        assert!(noise.starts_with(&content.bytes));
        assert!(content.bytes.len() > 30_000);
    }

    #[test]
    fn a_broken_end_tells_how_much_had_arrived() {
        let mut wire = gzip(&[b'a'; 1000]);
        let checksum = wire.len() - 8;
        wire[checksum] ^= 1;
        assert_eq!(decompress(&wire[..], Some("gzip"), 2000).map_err(|unusable| unusable.bytes), Err(1000));
    }

    #[test]
    fn what_is_not_what_it_says_is_an_error() {
        assert_eq!(
            decompress(&b"x"[..], Some("br"), 10),
            Err(Stop::failed("the content encoding \"br\" is not supported").into())
        );
        assert_eq!(
            decompress(&b"x"[..], Some("br, gzip"), 10),
            Err(Stop::failed("the content encoding \"br,gzip\" is not supported").into())
        );
        for encoding in ["gzip", "deflate"] {
            assert!(decompress(&b"<html>not compressed"[..], Some(encoding), 10).is_err());
        }
    }
}
