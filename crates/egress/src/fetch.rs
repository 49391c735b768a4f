//! The chain: policy → cache → pause → resolve → connect → read → decode → extract, once per hop.

use std::collections::HashMap;
use std::fmt;
use std::net::IpAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Instant, SystemTime};

use crate::answer::Answer;
use crate::archive::{Archive, Entry, Recorder};
use crate::audit::{AuditRecord, hex_sha256, loggable};
use crate::authority::shown;
use crate::client::Client;
use crate::decompress::{Content, Cut, decompress};
use crate::extract::Document;
use crate::ledger::Ledger;
use crate::limits::FetchLimits;
use crate::media_type::MediaType;
use crate::page::{BODY_BYTES, FetchRequest, Page, Status};
use crate::policy::FetchPolicy;
use crate::redirect::follow;
use crate::stop::Stop;
use crate::target::Target;

/// The answer to one [`FetchRequest`].
#[derive(Debug, Clone, PartialEq)]
pub struct FetchReply {
    /// What the sandbox gets.
    pub page: Page,
    /// What the operator gets.
    pub audit: AuditRecord,
}

/// Where pages come from.
pub(crate) enum Source {
    Network(Client),
    Archive(Archive),
}

/// The fetches of one run: one policy, one set of limits, one cache. Usable from any thread.
pub struct FetchSession {
    policy: FetchPolicy,
    limits: FetchLimits,
    source: Source,
    recorder: Option<Recorder>,
    ledger: Ledger,
    cache: Mutex<HashMap<String, Arc<Kept>>>,
}

/// A page that was fetched whole, kept for the run.
struct Kept {
    document: Document,
    final_url: String,
    host: String,
    http_status: u16,
    bytes: u64,
    sha256: String,
    redirects: u32,
    note: Option<String>,
}

impl FetchSession {
    /// A session with nothing used up and an empty cache.
    pub(crate) fn over(source: Source, policy: FetchPolicy, limits: FetchLimits, recorder: Option<Recorder>) -> Self {
        Self { policy, limits, source, recorder, ledger: Ledger::default(), cache: Mutex::default() }
    }

    /// The policy of every fetch and every redirect.
    #[must_use]
    pub fn policy(&self) -> &FetchPolicy {
        &self.policy
    }

    /// Fetches one page. Blocks until it is there, refused, failed, or the earlier of `deadline`
    /// and [`FetchLimits::deadline`] has passed. Never panics on anything the network sends.
    #[must_use]
    pub fn fetch(&self, request: &FetchRequest, deadline: Instant) -> FetchReply {
        let started = Instant::now();
        let deadline = match started.checked_add(self.limits.deadline) {
            Some(own) => own.min(deadline),
            None => deadline,
        };
        let mut audit = AuditRecord::started(&request.url);
        let outcome = catch_unwind(AssertUnwindSafe(|| self.run(request, deadline, &mut audit)))
            .unwrap_or_else(|_| Err(Stop::failed("the page could not be processed")));
        let page = match outcome {
            Ok(kept) => self.page(&kept, request),
            Err(Stop::Blocked(refused)) => {
                audit.decision = "block";
                audit.host = refused.host.or(audit.host);
                Page::without(Status::Blocked, &audit.final_url, refused.reason)
            }
            Err(Stop::Failed(reason)) => Page::without(Status::Error, &audit.final_url, reason),
        };
        audit.status = page.status;
        audit.reason.clone_from(&page.reason);
        audit.duration = started.elapsed().as_secs_f64();
        FetchReply { page, audit }
    }

    fn page(&self, kept: &Kept, request: &FetchRequest) -> Page {
        let mut page = Page::of(&kept.document, &kept.final_url, request.offset, request.format, BODY_BYTES);
        page.reason.clone_from(&kept.note);
        page
    }

    fn run(&self, request: &FetchRequest, deadline: Instant, audit: &mut AuditRecord) -> Result<Arc<Kept>, Stop> {
        self.ledger.count(&self.limits)?;
        let target = self.policy.admit(&request.url)?;
        note_target(audit, &target);
        if let Some(kept) = self.cached(target.url().as_str()) {
            audit.from_cache = true;
            note_page(audit, &kept);
            return Ok(kept);
        }
        let _slot = self.ledger.slot(&self.limits, deadline)?;
        let asked = target.url().to_string();
        let kept = Arc::new(self.load(target, deadline, audit)?);
        note_page(audit, &kept);
        self.keep(asked, &kept);
        Ok(kept)
    }

    /// Follows redirects to a page and reads it.
    fn load(&self, mut target: Target, deadline: Instant, audit: &mut AuditRecord) -> Result<Kept, Stop> {
        loop {
            let answer = self.ask(&target, deadline, audit)?;
            if !answer.is_redirect() {
                return self.read(&target, answer, audit);
            }
            self.record(entry(&target, &answer), None, audit);
            if audit.redirects >= self.limits.redirects {
                return Err(Stop::failed(format!("there are more than {} redirects", self.limits.redirects)));
            }
            target = follow(&self.policy, &target, answer.location.as_deref()).map_err(|(stop, url)| {
                audit.final_url = loggable(&url);
                stop
            })?;
            audit.redirects += 1;
            note_target(audit, &target);
        }
    }

    /// One response for one hop: asked again once if the server says when.
    fn ask(&self, target: &Target, deadline: Instant, audit: &mut AuditRecord) -> Result<Answer, Stop> {
        let client = match &self.source {
            Source::Network(client) => client,
            Source::Archive(archive) => {
                let answer = archive.answer(target)?;
                audit.http_status = Some(answer.status);
                return Ok(answer);
            }
        };
        let addresses = client.network().resolve(target.host(), deadline)?;
        let first = self.send(client, target, &addresses, deadline, audit)?;
        let Some(wait) = first.asks_to_wait(SystemTime::now()) else {
            return Ok(first);
        };
        drop(first);
        // The whole host is left alone, also by other fetches of the run, but never for longer than a fetch may take.
        self.ledger.hold(target.host(), wait.min(self.limits.deadline));
        if wait >= deadline.saturating_duration_since(Instant::now()) && !wait.is_zero() {
            return Err(Stop::failed(format!(
                "host {} asks to wait {} s, which is longer than this fetch may take",
                target.host(),
                wait.as_secs()
            )));
        }
        self.send(client, target, &addresses, deadline, audit)
    }

    fn send(
        &self,
        client: &Client,
        target: &Target,
        addresses: &[IpAddr],
        deadline: Instant,
        audit: &mut AuditRecord,
    ) -> Result<Answer, Stop> {
        let pause = self.ledger.pause_before(target.host(), self.limits.pause, deadline);
        thread::sleep(pause.ok_or_else(|| Stop::deadline(&format!("waiting to ask {} again", target.host())))?);
        let mut dialed = None;
        let answer = client.send(target, addresses, deadline, &mut dialed);
        audit.address = dialed.map(|address| address.to_string());
        audit.http_status = answer.as_ref().ok().map(|answer| answer.status);
        answer
    }

    /// Reads the body of the last response and makes a page of it.
    fn read(&self, target: &Target, answer: Answer, audit: &mut AuditRecord) -> Result<Kept, Stop> {
        let mut entry = entry(target, &answer);
        let status = answer.status;
        if !(200..300).contains(&status) {
            self.record(entry, None, audit);
            return Err(Stop::failed(format!("host {} answered {status}", target.host())));
        }
        let content_type = answer.content_type.clone().unwrap_or_default();
        let media_type = MediaType::parse(&content_type);
        if media_type.is_named() && !media_type.is_text() {
            self.record(entry, None, audit);
            return Err(not_text(target, &media_type));
        }
        let mut allowance = self.ledger.allowance(&self.limits)?;
        let mut content =
            decompress(answer.body, answer.content_encoding.as_deref(), allowance.bytes()).map_err(|unusable| {
                allowance.spend(unusable.bytes);
                audit.bytes = unusable.bytes as u64;
                unusable.stop
            })?;
        allowance.spend(content.bytes.len());
        if media_type.clone().or_sniffed(&content.bytes).is_none() {
            self.record(entry, None, audit);
            return Err(not_text(target, &media_type));
        }
        let sha256 = hex_sha256(&content.bytes);
        let whole = content.cut.is_none();
        if whole && answer.sha256.is_some_and(|recorded| recorded != sha256) {
            return Err(Stop::failed("the archived page is not the one that was recorded"));
        }
        content.cut = content.cut.or(answer.cut);
        entry.cut = content.cut;
        self.record(entry, Some(&content.bytes), audit);
        Ok(Kept {
            document: Document::read(&content.bytes, &content_type, target.url().as_str()),
            final_url: target.url().to_string(),
            host: target.host().to_owned(),
            http_status: status,
            bytes: content.bytes.len() as u64,
            sha256,
            redirects: audit.redirects,
            note: truncation(&content),
        })
    }

    fn cached(&self, url: &str) -> Option<Arc<Kept>> {
        let cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        cache.get(url).cloned()
    }

    fn keep(&self, asked: String, kept: &Arc<Kept>) {
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        cache.insert(kept.final_url.clone(), Arc::clone(kept));
        cache.insert(asked, Arc::clone(kept));
    }

    /// A page that cannot be recorded is still a page; the audit says what happened.
    fn record(&self, entry: Entry, body: Option<&[u8]>, audit: &mut AuditRecord) {
        if let Some(recorder) = &self.recorder
            && let Err(error) = recorder.record(entry, body)
        {
            audit.record_error = Some(error.to_string());
        }
    }
}

impl fmt::Debug for FetchSession {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("FetchSession")
            .field("policy", &self.policy)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

fn note_target(audit: &mut AuditRecord, target: &Target) {
    audit.final_url = target.url().to_string();
    audit.host = Some(target.host().to_owned());
}

fn note_page(audit: &mut AuditRecord, kept: &Kept) {
    audit.final_url.clone_from(&kept.final_url);
    audit.host = Some(kept.host.clone());
    audit.http_status = Some(kept.http_status);
    audit.bytes = kept.bytes;
    audit.sha256 = Some(kept.sha256.clone());
    audit.title = Some(kept.document.title.clone());
    audit.redirects = kept.redirects;
    audit.truncated = kept.note.is_some();
}

fn entry(target: &Target, answer: &Answer) -> Entry {
    Entry {
        url: target.url().to_string(),
        status: answer.status,
        content_type: answer.content_type.clone(),
        location: answer.location.clone(),
        file: None,
        sha256: None,
        cut: None,
    }
}

fn not_text(target: &Target, media_type: &MediaType) -> Stop {
    let what = match media_type.essence() {
        "" => "content of an unnamed type".to_owned(),
        essence => shown(essence),
    };
    let host = target.host();
    Stop::blocked(format!("host {host} sent {what}, and only text may come in"), Some(host))
}

fn truncation(content: &Content) -> Option<String> {
    let bytes = content.bytes.len();
    match content.cut? {
        Cut::Bound => Some(format!("truncated: only the first {bytes} bytes of the page were read")),
        Cut::Connection => Some(format!("truncated: the connection ended after {bytes} bytes of the page")),
    }
}
