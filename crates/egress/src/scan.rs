//! One pass over the tokens of an HTML page: head, links and blocks of text.
//!
//! There is no tree. Tree construction is quadratic or worse on hostile input (deep nesting,
//! unclosed formatting elements, tens of thousands of attributes); a pass over the tokens of a
//! WHATWG tokenizer needs time and memory linear in the page, whatever it holds.

use html5gum::State;

use crate::blocks::Blocks;
use crate::element::{Attributes, Hidden, Kind, Role};
use crate::json_ld::LinkedData;
use crate::matches::{Match, matches_in};
use crate::names::Names;
use crate::outline::{CELL_BYTES, Mark, Outline};
use crate::text::Text;
use crate::tokens::{Reader, read};

/// Links kept before they are resolved and de-duplicated, the longest of them in bytes, and how much
/// of the text of each.
const RAW_LINKS: usize = 5000;
const LINK_BYTES: usize = 2048;
const LINK_TEXT_BYTES: usize = 300;

/// A link as written, what it says, and where it stood.
#[derive(Debug, Default)]
pub(crate) struct RawLink {
    pub(crate) href: String,
    pub(crate) text: String,
    /// The text of its picture, for when it has none of its own.
    pub(crate) alt: String,
    /// The innermost container around it.
    pub(crate) container: u32,
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
    pub(crate) blocks: Blocks,
    pub(crate) linked_data: LinkedData,
    /// Matches of a data script: teams, score, scorers.
    pub(crate) matches: Vec<Match>,
    charset: Option<String>,
}

/// Scans a decoded page; in XHTML an element may be empty by its start tag alone.
pub(crate) fn scan(source: &str, xhtml: bool) -> Scanned {
    let mut scanner = Scanner { xhtml, ..Scanner::default() };
    read(source, &mut scanner);
    scanner.finish()
}

/// The encoding label of a page's `<meta>` elements.
pub(crate) fn charset_label(page: &str) -> Option<String> {
    scan(page, false).charset
}

/// Where the characters of the current element go.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Capture {
    #[default]
    Text,
    Title,
    JsonLd,
    Data,
    Nothing,
}

#[derive(Debug, Default)]
struct Scanner {
    scanned: Scanned,
    outline: Outline,
    names: Names,
    xhtml: bool,
    capture: Capture,
    captured: String,
    /// The link that is open, and its text so far.
    link: Option<usize>,
    link_text: Text,
    link_bytes: usize,
    /// An inline element has just ended.
    touching: bool,
    link_ended: bool,
}

impl Reader for Scanner {
    fn start(&mut self, tag: &[u8], attributes: &Attributes, self_closing: bool) -> Option<State> {
        self.outline.leave_foreign(tag, &mut self.scanned.blocks);
        if self.outline.in_foreign() {
            let blocks = &mut self.scanned.blocks;
            self.outline.open_foreign(tag, attributes, self_closing, blocks);
            return None;
        }
        let mut kind = Kind::of(tag);
        if kind == Kind::Inline && tag.contains(&b'-') && attributes.hides() != Hidden::No {
            kind = Kind::Container; // an element of the page's own that hides itself is no part of a line
        }
        self.separate(kind, true);
        match tag {
            b"meta" => self.meta(attributes),
            b"base" => self.base(attributes),
            b"a" | b"area" => self.link(tag, attributes),
            b"img" => self.picture(attributes),
            _ => {}
        }
        let names = if kind.role() == Role::Inline { 0 } else { self.names.of(attributes) };
        self.outline.open(tag, kind, attributes, names, &mut self.scanned.blocks);
        if self_closing && (self.xhtml || matches!(kind, Kind::Svg | Kind::Math)) {
            self.end(tag);
            return None;
        }
        self.capture(tag, attributes)
    }

    fn end(&mut self, tag: &[u8]) {
        if self.capture != Capture::Text {
            self.captured_ended();
        }
        if tag == b"a" {
            self.link_ends();
        }
        let kind = Kind::of(tag);
        if kind.role() != Role::Inline {
            self.separate(kind, false);
        }
        self.outline.close(tag, &mut self.scanned.blocks);
        if kind.role() == Role::Inline {
            self.separate(kind, false);
        }
    }

    fn characters(&mut self, characters: &str) {
        match self.capture {
            Capture::Text => self.text(characters),
            Capture::Title | Capture::JsonLd | Capture::Data => self.captured.push_str(characters),
            Capture::Nothing => {}
        }
    }

    fn has_cdata(&self) -> bool {
        self.xhtml || self.outline.in_foreign()
    }
}

impl Scanner {
    /// What the tokenizer does after a start tag, and where its text goes.
    fn capture(&mut self, tag: &[u8], attributes: &Attributes) -> Option<State> {
        let (capture, state) = match tag {
            b"title" => (Capture::Title, State::RcData),
            b"script" if attributes.is_json_ld() => (Capture::JsonLd, State::ScriptData),
            b"script" if attributes.may_hold_data() => (Capture::Data, State::ScriptData),
            b"script" => (Capture::Nothing, State::ScriptData),
            b"textarea" => (Capture::Nothing, State::RcData),
            b"style" | b"iframe" | b"noembed" | b"noframes" => (Capture::Nothing, State::RawText),
            b"xmp" => (Capture::Text, State::RawText),
            b"plaintext" => (Capture::Text, State::PlainText),
            _ => return None,
        };
        self.capture = capture;
        Some(state)
    }

    /// Puts the white space, or the end of a block, that an element's edge means.
    fn separate(&mut self, kind: Kind, starts: bool) {
        match kind.role() {
            Role::Block if kind == Kind::Break && self.outline.is(Mark::Pre) => {
                self.scanned.blocks.current.push_preformatted("\n");
            }
            Role::Block => self.flush(),
            Role::Cell if starts && self.scanned.blocks.current_bytes() > CELL_BYTES => self.flush(),
            Role::Cell => self.scanned.blocks.current.space(),
            Role::Inline => self.touch(kind, starts),
        }
    }

    fn touch(&mut self, kind: Kind, starts: bool) {
        let text = &mut self.scanned.blocks.current;
        match kind {
            Kind::Void | Kind::Svg | Kind::Time if !self.outline.is(Mark::Discarded) => {
                text.elements_touch();
                self.link_text.elements_touch();
            }
            Kind::Inline | Kind::Link | Kind::Button | Kind::Math if starts => {
                let links = kind == Kind::Link && self.link_ended;
                match (self.touching, links) {
                    (true, true) => text.links_touch(),
                    (true, false) => {
                        text.elements_touch();
                        self.link_text.elements_touch();
                    }
                    (false, _) => text.element_starts(),
                }
            }
            _ => {}
        }
        if !starts && !matches!(kind, Kind::Formatting | Kind::Void) {
            self.touching = true;
            self.link_ended = kind == Kind::Link;
        }
    }

    fn flush(&mut self) {
        self.touching = false;
        self.link_text.space();
        let tag = self.outline.block();
        self.scanned.blocks.flush(tag, self.outline.around());
    }

    fn text(&mut self, characters: &str) {
        if self.outline.is(Mark::Discarded) {
            return;
        }
        let preformatted = self.outline.is(Mark::Pre);
        let blocks = &mut self.scanned.blocks;
        if preformatted {
            blocks.current.push_preformatted(characters);
        } else {
            blocks.current.push(characters);
        }
        self.touching = false;
        let control = self.outline.is(Mark::Button) && !self.outline.is(Mark::Heading);
        let link = self.outline.is(Mark::Link).then(|| self.link.unwrap_or(usize::MAX));
        blocks.note(characters.trim().len(), link, control, self.outline.is(Mark::Spoken));
        let shown = !self.outline.is(Mark::HiddenFromSpeech) && !self.outline.is(Mark::HiddenFully);
        if self.link.is_some() && shown && self.link_bytes < LINK_TEXT_BYTES {
            self.link_text.push(characters);
            self.link_bytes += characters.trim().len();
        }
    }

    fn captured_ended(&mut self) {
        let captured = std::mem::take(&mut self.captured);
        match self.capture {
            Capture::Title if !captured.trim().is_empty() && self.scanned.titles.len() < 16 => {
                self.scanned.titles.push(captured);
            }
            Capture::JsonLd => self.scanned.linked_data.read(&captured),
            Capture::Data if self.scanned.matches.is_empty() => self.scanned.matches = matches_in(&captured),
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

    fn link(&mut self, tag: &[u8], attributes: &Attributes) {
        if tag == b"a" {
            self.link_ends();
        }
        let Some(href) = attributes.href.as_ref().filter(|href| href.len() <= LINK_BYTES) else {
            return;
        };
        if self.scanned.links.len() >= RAW_LINKS {
            return;
        }
        let index = self.scanned.links.len();
        self.scanned.links.push(RawLink {
            href: href.clone(),
            text: String::new(),
            alt: attributes.alt.clone().unwrap_or_default(),
            container: self.scanned.blocks.container(),
        });
        if tag == b"a" {
            self.link = Some(index);
        }
    }

    fn picture(&mut self, attributes: &Attributes) {
        if let Some(link) = self.link.and_then(|link| self.scanned.links.get_mut(link))
            && link.alt.is_empty()
            && let Some(alt) = &attributes.alt
        {
            link.alt = alt[..alt.floor_char_boundary(LINK_TEXT_BYTES)].to_owned();
        }
    }

    fn link_ends(&mut self) {
        if let Some(link) = self.link.take().and_then(|link| self.scanned.links.get_mut(link)) {
            self.link_text.take(&mut link.text);
        }
        self.link_text = Text::default();
        self.link_bytes = 0;
    }

    fn finish(mut self) -> Scanned {
        self.captured_ended();
        self.link_ends();
        self.flush();
        self.outline.finish(&mut self.scanned.blocks);
        self.scanned.blocks.finish();
        self.scanned
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(html: &str) -> String {
        let blocks = scan(html, false).blocks;
        blocks.blocks.iter().map(|block| blocks.text(block)).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn collects_the_head_as_written() {
        let scanned = scan(
            "<base href=/a/><base href=/b/><title> A </title><title></title>\
             <meta name=Description content=d><meta property='OG:Title' content='&eacute;'>\
             <svg><title>icon</title></svg><meta name=empty content=''>",
            false,
        );
        assert_eq!(scanned.base.as_deref(), Some("/a/"));
        assert_eq!(scanned.titles, [" A "]);
        assert_eq!(
            scanned.metas,
            [("description".to_owned(), "d".to_owned()), ("og:title".to_owned(), "é".to_owned())]
        );
    }

    #[test]
    fn foreign_content_has_the_rules_of_xml() {
        for (html, expected) in [
            ("<svg><title/><path/></svg><p>Story", "Story"),
            ("<svg><style/><p>Story", "Story"),
            ("<svg><script/></svg><p>Story", "Story"),
            ("<svg><textarea/></svg><p>Story", "Story"),
            ("<svg/><p>Story", "Story"),
            ("<svg><g><path></g><div>Story</div>", "Story"),
            ("<svg><![CDATA[<p>no]]></svg>Story", "Story"),
            ("<math><mi>a</mi><mo>=</mo><mn>42</mn><annotation>x</annotation></math> holds", "a=42 holds"),
            ("<math><title/></math><p>Story", "Story"),
        ] {
            assert_eq!(text(html), expected, "{html}");
        }
    }

    #[test]
    fn in_xhtml_every_element_may_be_empty() {
        let blocks = scan("<script src='x'/><title/><iframe/><p>Story</p><![CDATA[ & more]]>", true).blocks;
        let text: Vec<_> = blocks.blocks.iter().map(|block| blocks.text(block)).collect();
        assert_eq!(text, ["Story", "& more"]);
    }

    #[test]
    fn elements_that_touch_do_not_glue() {
        for (html, expected) in [
            ("<span>Brazil</span><span>2</span><span>1</span><span>Spain</span>", "Brazil 2 1 Spain"),
            ("<span>Sat 11 Jul</span><span>20:00</span><span>Azteca</span>", "Sat 11 Jul 20:00 Azteca"),
            ("<a href=1>Messi</a><a href=2>Neymar</a>", "Messi Neymar"),
            ("Brazil<img src=x>2", "Brazil 2"),
            ("Brazil<svg><path/></svg>2", "Brazil 2"),
            (
                "Posted<time>11 June</time><span>2026</span><span>by</span><a href=x>Ana</a>",
                "Posted 11 June 2026 by Ana",
            ),
            ("fo<b>o</b> <span>T</span>he <a href=x>bus</a>es H<sub>2</sub>O", "foo The buses H2O"),
            ("<span>W</span><span>o</span><span>w</span>", "Wow"),
            ("<ruby>表<rp>(</rp><rt>ひょう</rt><rp>)</rp>示<rt>じ</rt></ruby>された", "表示された"),
        ] {
            assert_eq!(text(html), expected, "{html}");
        }
    }

    #[test]
    fn links_say_what_they_are_called() {
        let links = scan(
            "<a href=1><span>Ana</span><span>scores</span></a><a href=2><img alt='The final'></a><a href=3>open <a href=4>next",
            false,
        )
        .links;
        let said: Vec<_> = links.iter().map(|link| (link.text.as_str(), link.alt.as_str())).collect();
        assert_eq!(said, [("Ana scores", ""), ("", "The final"), ("open", ""), ("next", "")]);
    }

    #[test]
    fn the_first_charset_label_counts() {
        assert_eq!(charset_label("<meta charset=a><meta charset=b>").as_deref(), Some("a"));
        assert_eq!(charset_label("<p>"), None);
    }
}
