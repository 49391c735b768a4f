//! One pass over the tokens of an HTML page: head, links and readable text.
//!
//! There is no tree. Tree construction is quadratic or worse on hostile input (deep nesting,
//! unclosed formatting elements, tens of thousands of attributes); a pass over the tokens of a
//! WHATWG tokenizer needs time and memory linear in the page, whatever it holds.

use html5gum::Tokenizer;
use html5gum::emitters::callback::{CallbackEmitter, CallbackEvent};

use crate::element::{Attributes, Kind, Role};
use crate::outline::Outline;
use crate::text::Text;

/// Links kept before they are resolved and de-duplicated, and the longest of them in bytes.
const RAW_LINKS: usize = 5000;
const LINK_BYTES: usize = 2048;

/// A link as written, and where it stood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RawLink {
    pub(crate) href: String,
    /// Inside `<article>` or `<main>`, outside navigation.
    pub(crate) in_content: bool,
}

/// What a page holds, as written.
#[derive(Debug, Default)]
pub(crate) struct Scanned {
    /// Non-empty `<title>`s outside `<svg>`, in page order.
    pub(crate) titles: Vec<String>,
    /// `<meta>` name or property, in lower case, and its content, in page order.
    pub(crate) metas: Vec<(String, String)>,
    /// The first `<base href>`.
    pub(crate) base: Option<String>,
    pub(crate) links: Vec<RawLink>,
    /// Text inside `<article>`, inside `<main>`, of the page without boilerplate, and all of it.
    pub(crate) article: Text,
    pub(crate) main: Text,
    pub(crate) page: Text,
    pub(crate) everything: Text,
    /// `application/ld+json` scripts, at most 16 of them.
    pub(crate) json_ld: Vec<String>,
    charset: Option<String>,
}

/// Scans a decoded page.
pub(crate) fn scan(source: &str) -> Scanned {
    let mut scanner = Scanner::default();
    let mut emitter = CallbackEmitter::new(|event: CallbackEvent<'_>, _span: html5gum::Span<()>| {
        scanner.event(&event);
        None::<std::convert::Infallible>
    });
    emitter.naively_switch_states(true);
    let Ok(()) = Tokenizer::new_with_emitter(source, emitter).finish();
    scanner.finish()
}

/// The encoding label of a page's `<meta>` elements.
pub(crate) fn charset_label(page: &str) -> Option<String> {
    scan(page).charset
}

/// Where the characters of the current element go.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Capture {
    #[default]
    Text,
    Title,
    JsonLd,
    Nothing,
}

#[derive(Debug, Default)]
struct Scanner {
    scanned: Scanned,
    outline: Outline,
    /// The start tag being read.
    tag: Vec<u8>,
    attribute: Vec<u8>,
    attributes: Attributes,
    capture: Capture,
    captured: String,
}

impl Scanner {
    fn event(&mut self, event: &CallbackEvent<'_>) {
        match event {
            CallbackEvent::OpenStartTag { name } => {
                self.tag = name.to_vec();
                self.attribute.clear();
                self.attributes = Attributes::default();
            }
            CallbackEvent::AttributeName { name } => {
                self.attribute = name.to_vec();
                self.attributes.set(name, "");
            }
            CallbackEvent::AttributeValue { value } => {
                self.attributes.set(&self.attribute, &String::from_utf8_lossy(value));
            }
            CallbackEvent::CloseStartTag { self_closing } => self.start(*self_closing),
            CallbackEvent::EndTag { name } => self.end(name),
            CallbackEvent::String { value } => self.characters(&String::from_utf8_lossy(value)),
            CallbackEvent::Comment { .. } | CallbackEvent::Doctype { .. } | CallbackEvent::Error(_) => {}
        }
    }

    fn start(&mut self, self_closing: bool) {
        let tag = std::mem::take(&mut self.tag);
        let attributes = std::mem::take(&mut self.attributes);
        let kind = Kind::of(&tag);
        self.separate(kind);
        match tag.as_slice() {
            b"title" if !self.outline.in_svg() => self.capture = Capture::Title,
            b"script" if attributes.is_json_ld() && self.scanned.json_ld.len() < 16 => {
                self.capture = Capture::JsonLd;
            }
            b"title" | b"script" | b"style" | b"noscript" | b"iframe" | b"xmp" | b"noembed" | b"noframe"
            | b"plaintext" => self.capture = Capture::Nothing,
            b"meta" => self.meta(&attributes),
            b"base" => self.base(&attributes),
            b"a" | b"area" => self.link(&attributes),
            _ => {}
        }
        self.outline.open(&tag, kind, &attributes, self_closing);
    }

    fn end(&mut self, tag: &[u8]) {
        if self.capture != Capture::Text {
            self.captured_ended();
        }
        self.outline.close(tag);
        self.separate(Kind::of(tag));
    }

    /// Puts the white space that an element's edge means.
    fn separate(&mut self, kind: Kind) {
        let texts =
            [&mut self.scanned.article, &mut self.scanned.main, &mut self.scanned.page, &mut self.scanned.everything];
        for text in texts {
            match kind.role() {
                Role::Block => text.line(),
                Role::Cell => text.space(),
                Role::Inline => {}
            }
        }
    }

    fn characters(&mut self, characters: &str) {
        match self.capture {
            Capture::Text => self.text(characters),
            Capture::Title | Capture::JsonLd => self.captured.push_str(characters),
            Capture::Nothing => {}
        }
    }

    fn text(&mut self, characters: &str) {
        let lines = self.outline.in_pre();
        if !self.outline.invisible() {
            self.scanned.everything.push(characters, lines);
        }
        if self.outline.skipping() {
            return;
        }
        self.scanned.page.push(characters, lines);
        if self.outline.in_main() {
            self.scanned.main.push(characters, lines);
        }
        if self.outline.in_article() {
            self.scanned.article.push(characters, lines);
        }
    }

    fn captured_ended(&mut self) {
        let captured = std::mem::take(&mut self.captured);
        match self.capture {
            Capture::Title if !captured.trim().is_empty() && self.scanned.titles.len() < 16 => {
                self.scanned.titles.push(captured);
            }
            Capture::JsonLd => self.scanned.json_ld.push(captured),
            _ => {}
        }
        self.capture = Capture::Text;
    }

    fn meta(&mut self, attributes: &Attributes) {
        if self.scanned.charset.is_none() {
            self.scanned.charset = attributes.charset_label();
        }
        let Some(content) = &attributes.content else {
            return;
        };
        if content.trim().is_empty() || self.scanned.metas.len() >= 1000 {
            return;
        }
        for name in [&attributes.name, &attributes.property].into_iter().flatten() {
            self.scanned.metas.push((name.trim().to_ascii_lowercase(), content.clone()));
        }
    }

    fn base(&mut self, attributes: &Attributes) {
        if self.scanned.base.is_none() {
            self.scanned.base.clone_from(&attributes.href);
        }
    }

    fn link(&mut self, attributes: &Attributes) {
        if let Some(href) = &attributes.href
            && href.len() <= LINK_BYTES
            && self.scanned.links.len() < RAW_LINKS
        {
            self.scanned.links.push(RawLink { href: href.clone(), in_content: self.outline.in_content() });
        }
    }

    fn finish(mut self) -> Scanned {
        self.captured_ended();
        self.scanned
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn collects_the_head_as_written() {
        let scanned = scan(
            "<base href=/a/><base href=/b/><title> A </title><title></title>\
             <meta name=Description content=d><meta property='OG:Title' content='&eacute;'>\
             <svg><title>icon</title></svg><meta name=empty content=''>",
        );
        assert_eq!(scanned.base.as_deref(), Some("/a/"));
        assert_eq!(scanned.titles, [" A "]);
        assert_eq!(
            scanned.metas,
            [("description".to_owned(), "d".to_owned()), ("og:title".to_owned(), "é".to_owned())]
        );
    }

    #[test]
    fn text_goes_where_it_stands() {
        let scanned = scan("<nav>menu</nav><p>intro<main>m<article>a</article></main><script>s</script><!-- c -->");
        assert_eq!(scanned.article.into_string(), "a");
        assert_eq!(scanned.main.into_string(), "m\na");
        assert_eq!(scanned.page.into_string(), "intro\nm\na");
        assert_eq!(scanned.everything.into_string(), "menu\nintro\nm\na");
    }

    #[test]
    fn links_know_whether_they_are_content() {
        let scanned = scan("<nav><a href=n>n</a></nav><main><a href=c>c</a></main><a>none</a>");
        assert_eq!(
            scanned.links,
            [("n", false), ("c", true)].map(|(href, in_content)| RawLink { href: href.into(), in_content })
        );
    }

    #[test]
    fn the_first_charset_label_counts() {
        assert_eq!(charset_label("<meta charset=a><meta charset=b>").as_deref(), Some("a"));
        assert_eq!(charset_label("<p>"), None);
    }
}
