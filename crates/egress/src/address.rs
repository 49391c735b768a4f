//! Which IP addresses are public. Everything else is refused before a connection is made.
//!
//! The rule: if *any* address that a name resolves to is special, the whole hop is refused; a name
//! that points inside and outside at once is an attack or a mistake. IPv6 is an allow-list: only
//! global unicast (`2000::/3`) minus its special blocks. Every IPv6 form that carries an IPv4
//! address (mapped, compatible, 6to4, Teredo, NAT64) is refused, whatever it carries.
//!
//! Sources: the IANA IPv4 and IPv6 Special-Purpose Address Registries (RFC 6890 and updates), and
//! the cloud metadata addresses that lie in public ranges.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

struct Block4(Ipv4Addr, u32, &'static str);
struct Block6(Ipv6Addr, u32, &'static str);

const fn v4(a: u8, b: u8, c: u8, d: u8, bits: u32, what: &'static str) -> Block4 {
    Block4(Ipv4Addr::new(a, b, c, d), bits, what)
}

const fn v6(head: [u16; 4], bits: u32, what: &'static str) -> Block6 {
    let [a, b, c, d] = head;
    Block6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0), bits, what)
}

const SPECIAL_4: &[Block4] = &[
    v4(0, 0, 0, 0, 8, "\"this network\""),
    v4(10, 0, 0, 0, 8, "private"),
    v4(100, 64, 0, 0, 10, "carrier-grade NAT"),
    v4(127, 0, 0, 0, 8, "loopback"),
    v4(168, 63, 129, 16, 32, "cloud metadata"),
    v4(169, 254, 0, 0, 16, "link-local"),
    v4(172, 16, 0, 0, 12, "private"),
    v4(192, 0, 0, 0, 24, "IETF protocol assignment"),
    v4(192, 0, 2, 0, 24, "documentation"),
    v4(192, 31, 196, 0, 24, "AS112"),
    v4(192, 52, 193, 0, 24, "AMT"),
    v4(192, 88, 99, 0, 24, "6to4 relay"),
    v4(192, 168, 0, 0, 16, "private"),
    v4(192, 175, 48, 0, 24, "AS112"),
    v4(198, 18, 0, 0, 15, "benchmarking"),
    v4(198, 51, 100, 0, 24, "documentation"),
    v4(203, 0, 113, 0, 24, "documentation"),
    v4(224, 0, 0, 0, 4, "multicast"),
    v4(240, 0, 0, 0, 4, "reserved or broadcast"),
];

/// Named first, so that the reason says what it is; whatever is left outside `2000::/3` is
/// refused as "not global unicast".
const SPECIAL_6: &[Block6] = &[
    v6([0x64, 0xff9b, 0, 0], 96, "NAT64"),
    v6([0x64, 0xff9b, 1, 0], 48, "local NAT64"),
    v6([0x100, 0, 0, 0], 64, "discard-only"),
    v6([0x2001, 0, 0, 0], 32, "Teredo"),
    v6([0x2001, 2, 0, 0], 48, "benchmarking"),
    v6([0x2001, 0, 0, 0], 23, "IETF protocol assignment"),
    v6([0x2001, 0xdb8, 0, 0], 32, "documentation"),
    v6([0x2002, 0, 0, 0], 16, "6to4"),
    v6([0x2620, 0x4f, 0x8000, 0], 48, "AS112"),
    v6([0x3ffe, 0, 0, 0], 16, "6bone"),
    v6([0x3fff, 0, 0, 0], 20, "documentation"),
    v6([0x5f00, 0, 0, 0], 16, "segment routing"),
    v6([0xfc00, 0, 0, 0], 7, "unique local"),
    v6([0xfe80, 0, 0, 0], 10, "link-local"),
    v6([0xfec0, 0, 0, 0], 10, "site-local"),
    v6([0xff00, 0, 0, 0], 8, "multicast"),
];

/// What kind of special address this is, or `None` for a public one.
pub(crate) fn special(address: IpAddr) -> Option<&'static str> {
    match address {
        IpAddr::V4(address) => special_4(address),
        IpAddr::V6(address) => special_6(address),
    }
}

fn special_4(address: Ipv4Addr) -> Option<&'static str> {
    SPECIAL_4
        .iter()
        .find(|Block4(network, bits, _)| (address.to_bits() ^ network.to_bits()) >> (32 - bits) == 0)
        .map(|Block4(_, _, what)| *what)
}

fn special_6(address: Ipv6Addr) -> Option<&'static str> {
    if address.is_unspecified() {
        return Some("unspecified");
    }
    if address.is_loopback() {
        return Some("loopback");
    }
    if address.to_ipv4_mapped().is_some() {
        return Some("IPv4-mapped");
    }
    if address.to_bits() >> 32 == 0 {
        return Some("IPv4-compatible");
    }
    SPECIAL_6
        .iter()
        .find(|Block6(network, bits, _)| (address.to_bits() ^ network.to_bits()) >> (128 - bits) == 0)
        .map(|Block6(_, _, what)| *what)
        .or_else(|| (address.to_bits() >> 125 != 1).then_some("not global unicast"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(address: &str) -> Option<&'static str> {
        special(address.parse().expect(address))
    }

    #[test]
    fn every_special_block_is_named() {
        for (address, what) in [
            ("0.0.0.0", "\"this network\""),
            ("0.255.255.255", "\"this network\""),
            ("10.0.0.1", "private"),
            ("100.64.0.1", "carrier-grade NAT"),
            ("100.127.255.255", "carrier-grade NAT"),
            ("100.100.100.200", "carrier-grade NAT"),
            ("127.0.0.1", "loopback"),
            ("127.255.255.254", "loopback"),
            ("168.63.129.16", "cloud metadata"),
            ("169.254.169.254", "link-local"),
            ("172.16.0.1", "private"),
            ("172.31.255.255", "private"),
            ("192.0.0.192", "IETF protocol assignment"),
            ("192.0.2.1", "documentation"),
            ("192.88.99.1", "6to4 relay"),
            ("192.168.1.1", "private"),
            ("198.18.0.1", "benchmarking"),
            ("198.19.255.255", "benchmarking"),
            ("198.51.100.1", "documentation"),
            ("203.0.113.1", "documentation"),
            ("224.0.0.1", "multicast"),
            ("239.255.255.255", "multicast"),
            ("240.0.0.1", "reserved or broadcast"),
            ("255.255.255.255", "reserved or broadcast"),
            ("::", "unspecified"),
            ("::1", "loopback"),
            ("::ffff:10.0.0.1", "IPv4-mapped"),
            ("::ffff:151.101.0.81", "IPv4-mapped"),
            ("::127.0.0.1", "IPv4-compatible"),
            ("64:ff9b::7f00:1", "NAT64"),
            ("64:ff9b:1::1", "local NAT64"),
            ("100::1", "discard-only"),
            ("2001::1", "Teredo"),
            ("2001:2::1", "benchmarking"),
            ("2001:20::1", "IETF protocol assignment"),
            ("2001:db8::1", "documentation"),
            ("2002:7f00:1::", "6to4"),
            ("3fff::1", "documentation"),
            ("5f00::1", "segment routing"),
            ("fc00::1", "unique local"),
            ("fd00:ec2::254", "unique local"),
            ("fe80::1", "link-local"),
            ("fec0::1", "site-local"),
            ("ff02::1", "multicast"),
            ("4000::1", "not global unicast"),
            ("::ffff:0:10.0.0.1", "not global unicast"),
        ] {
            assert_eq!(kind(address), Some(what), "{address}");
        }
    }

    #[test]
    fn neighbours_of_special_blocks_are_public() {
        for address in [
            "1.1.1.1",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "126.255.255.255",
            "128.0.0.0",
            "151.101.0.81",
            "168.63.129.15",
            "172.15.255.255",
            "172.32.0.0",
            "192.0.1.0",
            "198.17.255.255",
            "198.20.0.0",
            "223.255.255.255",
            "2001:200::1",
            "2001:db7::1",
            "2001:db9::1",
            "2606:4700::1111",
            "2a04:4e42::81",
        ] {
            assert_eq!(kind(address), None, "{address}");
        }
    }
}
