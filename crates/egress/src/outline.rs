//! Which elements are open, as far as that decides what their text is.
//!
//! The stack holds blocks, links, and what hides or marks its text. It is at most 512 deep, as in
//! browsers; what is nested deeper is counted, not kept, so that a hostile page costs nothing.

use std::collections::HashMap;

use crate::blocks::Blocks;
use crate::element::{Attributes, Hidden, Kind, Role};
use crate::names::Name;

const DEEPEST: usize = 512;
/// Most names of elements that are told from each other.
const TAGS: usize = 1000;
/// A cell longer than this is a part of a layout, not of a table.
pub(crate) const CELL_BYTES: usize = 120;

/// What an open element means to the text inside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Mark {
    Main,
    Article,
    Aside,
    Nav,
    Footer,
    Header,
    Figure,
    Table,
    Form,
    Ul,
    Ol,
    Blockquote,
    Section,
    Dl,
    Figcaption,
    Pre,
    Details,
    /// The text is that of `itemprop=articleBody`.
    ArticleBody,
    HiddenFully,
    HiddenWeakly,
    HiddenFromSpeech,
    NoScript,
    /// The text is thrown away at once.
    Discarded,
    Button,
    Link,
    Heading,
    Spoken,
}

impl Mark {
    pub(crate) const COUNT: usize = Self::Spoken as usize + 1;
    /// Those that only say which element is open.
    pub(crate) const ELEMENTS: usize = Self::Details as usize + 1;

    fn bit(self) -> u64 {
        1 << self as u8
    }

    fn of(tag: &[u8]) -> u64 {
        let mark = match tag {
            b"main" => Self::Main,
            b"article" => Self::Article,
            b"aside" => Self::Aside,
            b"nav" => Self::Nav,
            b"footer" => Self::Footer,
            b"header" => Self::Header,
            b"figure" => Self::Figure,
            b"table" => Self::Table,
            b"form" => Self::Form,
            b"ul" => Self::Ul,
            b"ol" => Self::Ol,
            b"blockquote" => Self::Blockquote,
            b"section" => Self::Section,
            b"dl" => Self::Dl,
            b"figcaption" => Self::Figcaption,
            b"pre" => Self::Pre,
            b"details" => Self::Details,
            b"button" => Self::Button,
            b"h1" | b"h2" | b"h3" | b"h4" | b"h5" | b"h6" => Self::Heading,
            _ => return 0,
        };
        mark.bit()
    }
}

const NAMES: usize = Name::ALL.len();
const COUNTERS: usize = Mark::COUNT + NAMES;

/// How many of each mark and of each telling name are open, at most 3 each.
#[derive(Debug, Clone)]
pub(crate) struct Around([u8; COUNTERS]);

impl Around {
    pub(crate) fn mark(&self, mark: usize) -> u8 {
        self.0[mark]
    }

    pub(crate) fn is(&self, mark: Mark) -> bool {
        self.0[mark as usize] > 0
    }

    pub(crate) fn name(&self, name: Name) -> u8 {
        self.0[Mark::COUNT + name as usize]
    }
}

/// The name of an element, as a number.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(crate) struct Tag(u16);

/// The elements with a number of their own; every other one gets the next.
const KNOWN: [&str; 48] = [
    "",
    "p",
    "li",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "td",
    "th",
    "div",
    "span",
    "figcaption",
    "blockquote",
    "pre",
    "dd",
    "dt",
    "section",
    "article",
    "a",
    "header",
    "time",
    "summary",
    "caption",
    "main",
    "aside",
    "nav",
    "footer",
    "figure",
    "table",
    "tr",
    "thead",
    "tbody",
    "tfoot",
    "form",
    "ul",
    "ol",
    "dl",
    "details",
    "button",
    "address",
    "menu",
    "center",
    "fieldset",
    "svg",
    "math",
    "noscript",
];

impl Tag {
    /// The number of a name that is in the list of the known ones.
    pub(crate) const fn known(name: &str) -> Self {
        let mut index = 0;
        while !same(KNOWN[index].as_bytes(), name.as_bytes()) {
            index += 1;
            assert!(index < KNOWN.len(), "a tag that is not in the list");
        }
        Self(index as u16)
    }
}

const fn same(one: &[u8], other: &[u8]) -> bool {
    if one.len() != other.len() {
        return false;
    }
    let mut index = 0;
    while index < one.len() {
        if one[index] != other[index] {
            return false;
        }
        index += 1;
    }
    true
}

const P: Tag = Tag::known("p");
const LI: Tag = Tag::known("li");
const DT: Tag = Tag::known("dt");
const DD: Tag = Tag::known("dd");
const TD: Tag = Tag::known("td");
const TH: Tag = Tag::known("th");
const TR: Tag = Tag::known("tr");
const TABLE: Tag = Tag::known("table");

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Space {
    #[default]
    Html,
    Svg,
    Math,
}

#[derive(Debug)]
struct Open {
    tag: Tag,
    kind: Kind,
    /// The language of what is inside.
    space: Space,
    marks: u64,
    names: u32,
    container: bool,
}

/// The open elements, and how many of each mark there are.
#[derive(Debug)]
pub(crate) struct Outline {
    open: Vec<Open>,
    tags: HashMap<Vec<u8>, Tag>,
    /// How many open elements have a tag, so that a stray end tag costs no search.
    counts: Vec<u32>,
    too_deep: usize,
    counters: [u16; COUNTERS],
    around: Around,
}

impl Default for Outline {
    fn default() -> Self {
        let tags: HashMap<_, _> =
            (0..).zip(KNOWN).map(|(index, name)| (name.as_bytes().to_vec(), Tag(index))).collect();
        Self {
            open: Vec::new(),
            counts: vec![0; tags.len()],
            tags,
            too_deep: 0,
            counters: [0; COUNTERS],
            around: Around([0; COUNTERS]),
        }
    }
}

impl Outline {
    pub(crate) fn around(&self) -> &Around {
        &self.around
    }

    pub(crate) fn is(&self, mark: Mark) -> bool {
        self.around.is(mark)
    }

    pub(crate) fn in_content(&self) -> bool {
        self.is(Mark::Article) || self.is(Mark::Main)
    }

    /// Inside `<svg>` or `<math>`, where the rules of XML hold.
    pub(crate) fn in_foreign(&self) -> bool {
        self.space() != Space::Html
    }

    fn space(&self) -> Space {
        self.open.last().map_or(Space::Html, |open| open.space)
    }

    /// The tag of the innermost open block.
    pub(crate) fn block(&self) -> Tag {
        self.open.iter().rev().find(|open| open.kind.role() != Role::Inline).map_or(Tag::default(), |open| open.tag)
    }

    pub(crate) fn tag(&mut self, name: &[u8]) -> Tag {
        if let Some(tag) = self.tags.get(name) {
            return *tag;
        }
        if self.tags.len() >= TAGS {
            return Tag::default();
        }
        let tag = Tag(u16::try_from(self.tags.len()).unwrap_or_default());
        self.tags.insert(name.to_vec(), tag);
        self.counts.push(0);
        tag
    }

    /// Leaves foreign content where an HTML element cannot be inside (HTML standard, 13.2.6.5).
    pub(crate) fn leave_foreign(&mut self, name: &[u8], blocks: &mut Blocks) {
        if self.in_foreign() && breaks_out(name) {
            let keep = self.open.iter().rposition(|open| open.space == Space::Html).map_or(0, |at| at + 1);
            self.truncate(keep, blocks);
            self.too_deep = 0;
        }
    }

    /// Notes a start tag inside foreign content.
    pub(crate) fn open_foreign(
        &mut self,
        name: &[u8],
        attributes: &Attributes,
        self_closing: bool,
        blocks: &mut Blocks,
    ) {
        if self_closing {
            return;
        }
        let space = match (self.space(), name) {
            (Space::Svg, b"foreignobject" | b"desc" | b"title") => Space::Html,
            (Space::Math, b"mi" | b"mo" | b"mn" | b"ms" | b"mtext") => Space::Html,
            (Space::Math, b"annotation-xml") if attributes.is_html_annotation() => Space::Html,
            (space, _) => space,
        };
        let discarded = matches!(name, b"annotation" | b"annotation-xml" | b"style" | b"script" | b"title" | b"desc");
        let marks = if discarded { Mark::Discarded.bit() } else { 0 };
        let tag = self.tag(name);
        self.push(Open { tag, kind: Kind::Inline, space, marks, names: 0, container: false }, blocks, None);
    }

    /// Notes a start tag of HTML.
    pub(crate) fn open(&mut self, name: &[u8], kind: Kind, attributes: &Attributes, names: u32, blocks: &mut Blocks) {
        if matches!(kind, Kind::Void | Kind::Break | Kind::Root) {
            return;
        }
        let tag = self.tag(name);
        self.leave_implied(tag, kind, blocks);
        let marks = self.marks(name, kind, attributes);
        let block = kind.role() != Role::Inline;
        let discards = marks & Mark::Discarded.bit() != 0;
        if !block && marks == 0 && kind != Kind::Math && self.counts[tag.0 as usize] == 0 {
            return;
        }
        let space = match kind {
            Kind::Svg => Space::Svg,
            Kind::Math => Space::Math,
            _ => Space::Html,
        };
        let container =
            (block && !discards).then(|| (self.is_landmark(kind, attributes), attributes.is_consent_notice()));
        let names = if block { names } else { 0 };
        self.push(Open { tag, kind, space, marks, names, container: false }, blocks, container);
    }

    /// Notes an end tag: closes the innermost open element of that name, and all inside it.
    pub(crate) fn close(&mut self, name: &[u8], blocks: &mut Blocks) {
        if self.too_deep > 0 {
            self.too_deep -= 1;
            return;
        }
        let Some(tag) = self.tags.get(name).copied().filter(|tag| self.counts[tag.0 as usize] > 0) else {
            return;
        };
        let in_table = matches!(name, b"td" | b"th" | b"tr" | b"thead" | b"tbody" | b"tfoot" | b"table" | b"caption");
        for (at, open) in self.open.iter().enumerate().rev() {
            if open.tag == tag {
                return self.truncate(at, blocks);
            }
            if !in_table && matches!(open.tag, TD | TH) && !matches!(name, b"article" | b"main") {
                return; // an end tag does not reach out of a cell
            }
        }
    }

    /// Ends what is still open at the end of the page.
    pub(crate) fn finish(&mut self, blocks: &mut Blocks) {
        self.truncate(0, blocks);
    }

    fn marks(&self, name: &[u8], kind: Kind, attributes: &Attributes) -> u64 {
        let mut marks = Mark::of(name);
        match kind {
            Kind::Invisible | Kind::Svg => marks |= Mark::Discarded.bit(),
            Kind::Template if !attributes.is_shown_template() => marks |= Mark::Discarded.bit(),
            Kind::Pre => marks |= Mark::Pre.bit(),
            Kind::NoScript => marks |= Mark::NoScript.bit(),
            Kind::Dialog if !attributes.is_open() => marks |= Mark::HiddenFully.bit(),
            Kind::Link if attributes.href.is_some() => marks |= Mark::Link.bit(),
            _ => {}
        }
        let block = kind.role() != Role::Inline;
        match attributes.hides() {
            Hidden::No => {}
            Hidden::Fully | Hidden::FromSpeech | Hidden::Weakly if !block => marks |= Mark::Discarded.bit(),
            Hidden::Fully => marks |= Mark::HiddenFully.bit(),
            Hidden::Weakly => marks |= Mark::HiddenWeakly.bit(),
            Hidden::FromSpeech => marks |= Mark::HiddenFromSpeech.bit(),
        }
        if attributes.has_role(&["main"]) {
            marks |= Mark::Main.bit();
        }
        if attributes.has_role(&["article"]) {
            marks |= Mark::Article.bit();
        }
        if attributes.has_role(&["navigation", "banner", "contentinfo", "complementary", "search", "dialog"]) {
            marks |= Mark::Nav.bit();
        }
        if attributes.is_article_body() {
            marks |= Mark::ArticleBody.bit();
        }
        if attributes.is_visually_hidden() {
            marks |= Mark::Spoken.bit();
        }
        marks
    }

    fn is_landmark(&self, kind: Kind, attributes: &Attributes) -> bool {
        match kind {
            Kind::Nav => true,
            Kind::Dialog => true,
            Kind::Aside => !self.is(Mark::Article),
            Kind::Footer => !self.is(Mark::Article) && !self.is(Mark::Blockquote),
            Kind::Header => !self.in_content(),
            Kind::Main | Kind::Article => false,
            _ => attributes.is_landmark(),
        }
    }

    /// Closes what a start tag ends without saying so.
    fn leave_implied(&mut self, tag: Tag, kind: Kind, blocks: &mut Blocks) {
        if kind.role() == Role::Inline {
            if kind == Kind::Link
                && self.counts[tag.0 as usize] > 0
                && self.open.last().is_some_and(|open| open.tag == tag)
            {
                self.truncate(self.open.len() - 1, blocks);
            }
            return;
        }
        if let Some(at) = self.open.iter().rposition(|open| open.kind.role() != Role::Inline)
            && self.open[at].tag == P
        {
            self.truncate(at, blocks);
        }
        match tag {
            LI => self.leave(&[LI], blocks),
            DT | DD => self.leave(&[DT, DD], blocks),
            TD | TH => self.leave(&[TD, TH], blocks),
            TR => self.leave(&[TR], blocks),
            _ => {}
        }
        if kind == Kind::Main || kind == Kind::Article && !self.is(Mark::Main) {
            let left_open = self.open.iter().position(|open| matches!(open.kind, Kind::Nav | Kind::Header));
            if let Some(at) = left_open {
                self.truncate(at, blocks);
            }
        }
    }

    /// Closes an open item, row or cell of the innermost list or table.
    fn leave(&mut self, tags: &[Tag], blocks: &mut Blocks) {
        if tags.iter().all(|tag| self.counts[tag.0 as usize] == 0) {
            return;
        }
        let cell = tags[0] == TD || tags[0] == TR;
        for at in (0..self.open.len()).rev() {
            let open = &self.open[at];
            if tags.contains(&open.tag) {
                return self.truncate(at, blocks);
            }
            let passes = if cell {
                open.tag != TABLE
            } else {
                open.kind.role() == Role::Inline || open.tag == P || open.tag == Tag::known("div")
            };
            if !passes {
                return;
            }
        }
    }

    fn push(&mut self, mut open: Open, blocks: &mut Blocks, container: Option<(bool, bool)>) {
        if self.open.len() >= DEEPEST {
            self.too_deep += 1;
            return;
        }
        if let Some((landmark, notice)) = container {
            open.container = blocks.open(open.tag, landmark, notice);
        }
        self.counts[open.tag.0 as usize] += 1;
        self.count(open.marks, open.names, true);
        self.open.push(open);
    }

    fn truncate(&mut self, length: usize, blocks: &mut Blocks) {
        while self.open.len() > length {
            if let Some(open) = self.open.last().filter(|open| open.container) {
                // A short cell is a part of its row.
                if open.kind != Kind::Cell || blocks.current_bytes() > CELL_BYTES {
                    blocks.flush(self.block(), &self.around);
                }
                blocks.close();
            }
            let Some(open) = self.open.pop() else { return };
            self.counts[open.tag.0 as usize] -= 1;
            self.count(open.marks, open.names, false);
        }
    }

    fn count(&mut self, marks: u64, names: u32, entering: bool) {
        let mut bits = marks | u64::from(names) << Mark::COUNT;
        while bits != 0 {
            let index = bits.trailing_zeros() as usize;
            bits &= bits - 1;
            if entering {
                self.counters[index] += 1;
            } else {
                self.counters[index] -= 1;
            }
            self.around.0[index] = self.counters[index].min(3) as u8;
        }
    }
}

/// HTML elements whose start tag ends foreign content.
fn breaks_out(name: &[u8]) -> bool {
    matches!(
        name,
        b"b" | b"big"
            | b"blockquote"
            | b"body"
            | b"br"
            | b"center"
            | b"code"
            | b"dd"
            | b"div"
            | b"dl"
            | b"dt"
            | b"em"
            | b"embed"
            | b"h1"
            | b"h2"
            | b"h3"
            | b"h4"
            | b"h5"
            | b"h6"
            | b"head"
            | b"hr"
            | b"i"
            | b"img"
            | b"li"
            | b"listing"
            | b"menu"
            | b"meta"
            | b"nobr"
            | b"ol"
            | b"p"
            | b"pre"
            | b"ruby"
            | b"s"
            | b"small"
            | b"span"
            | b"strong"
            | b"strike"
            | b"sub"
            | b"sup"
            | b"table"
            | b"tt"
            | b"u"
            | b"ul"
            | b"var"
    )
}
