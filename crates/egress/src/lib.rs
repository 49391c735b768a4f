//! The one way out of a wcpod sandbox: one URL in, one readable page back, everything in between
//! checked here.
//!
//! ```text
//! url ─► policy ─► cache ─► pause ─► resolve ─► address ─► client ─► decompress ─► charset ─► extract ─► page
//!          ▲                                                  │
//!          └────────────────── redirect ◄─────────────────────┘        every hop, the whole chain
//! ```
//!
//! What it promises, each with a test of its own:
//!
//! * the object that the policy checked is the one that connects; a blocked name is not resolved;
//! * a name is resolved once per hop, and only addresses that were checked are connected to;
//! * https with a certificate for that name; no proxy, cookie, credential or referrer;
//! * bounds on headers, content (after decompression), redirects, time, and on the run as a whole.
//!
//! Nothing here knows Python or the sandbox.

#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::expect_used, clippy::panic))]

mod address;
mod answer;
mod archive;
mod audit;
mod audit_log;
mod authority;
mod blocks;
mod charset;
mod client;
mod decompress;
mod element;
mod extract;
mod features;
mod feed;
mod fetch;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod json_ld;
mod layout;
mod ledger;
mod limits;
mod lines;
mod links;
mod matches;
mod media_type;
mod model;
mod names;
mod outline;
mod page;
mod plain_file;
mod policy;
mod readable;
mod redirect;
mod resolve;
mod scan;
mod session;
mod stop;
mod target;
mod text;
mod title;
mod tokens;
#[cfg(feature = "training")]
#[doc(hidden)]
pub mod training;

pub use archive::ArchiveError;
pub use audit::AuditRecord;
pub use audit_log::{AuditLog, AuditLogError};
pub use fetch::{FetchReply, FetchSession};
pub use limits::{FetchLimits, LimitsError};
pub use links::Link;
pub use page::{BODY_BYTES, FetchRequest, Format, Page, Status, UnknownFormat, extract_page, extract_page_at};
pub use policy::{Decision, FetchPolicy, MAX_URL_BYTES, PolicyError};
pub use resolve::{Network, Resolver, SystemResolver};
pub use session::{SessionBuilder, SessionError};
