//! Which elements are open, as far as that decides what is readable text.
//!
//! The stack holds containers, and everything inside a skipped one. It is at most 512 deep, as in
//! browsers; what is nested deeper is counted, not kept, so that a hostile page costs nothing.

use std::collections::HashMap;

use crate::element::{Attributes, Kind};

const DEEPEST: usize = 512;

#[derive(Debug)]
struct Open {
    tag: Vec<u8>,
    kind: Kind,
    /// Its text is not part of the readable text.
    skipped: bool,
    /// Its text is not shown at all.
    invisible: bool,
}

/// The open elements, and how many of each meaning there are.
#[derive(Debug, Default)]
pub(crate) struct Outline {
    open: Vec<Open>,
    /// How many open elements have a name, so that a stray end tag costs no search.
    names: HashMap<Vec<u8>, usize>,
    too_deep: usize,
    skipped: usize,
    invisible: usize,
    articles: usize,
    mains: usize,
    svgs: usize,
    pres: usize,
}

impl Outline {
    pub(crate) fn skipping(&self) -> bool {
        self.skipped > 0
    }

    pub(crate) fn invisible(&self) -> bool {
        self.invisible > 0
    }

    pub(crate) fn in_article(&self) -> bool {
        self.articles > 0
    }

    pub(crate) fn in_main(&self) -> bool {
        self.mains > 0
    }

    pub(crate) fn in_svg(&self) -> bool {
        self.svgs > 0
    }

    pub(crate) fn in_pre(&self) -> bool {
        self.pres > 0
    }

    pub(crate) fn in_content(&self) -> bool {
        !self.skipping() && (self.in_article() || self.in_main())
    }

    /// Notes a start tag.
    pub(crate) fn open(&mut self, tag: &[u8], kind: Kind, attributes: &Attributes, self_closing: bool) {
        if matches!(kind, Kind::Void | Kind::Break | Kind::Root) || self_closing && self.in_svg() {
            return;
        }
        self.leave_implied(tag, kind);
        let invisible = matches!(kind, Kind::Invisible | Kind::Svg) || attributes.hides();
        let skipped = invisible || self.is_boilerplate(kind, attributes);
        let structural = !matches!(kind, Kind::Loose | Kind::Cell | Kind::Inline);
        if structural || skipped || self.skipping() {
            self.push(Open { tag: tag.to_vec(), kind, skipped, invisible });
        }
    }

    /// Notes an end tag: closes the innermost open element of that name, and all inside it.
    pub(crate) fn close(&mut self, tag: &[u8]) {
        if self.too_deep > 0 {
            self.too_deep -= 1;
            return;
        }
        if self.names.contains_key(tag)
            && let Some(at) = self.open.iter().rposition(|open| open.tag == tag)
        {
            self.truncate(at);
        }
    }

    fn is_boilerplate(&self, kind: Kind, attributes: &Attributes) -> bool {
        match kind {
            Kind::Boilerplate => true,
            Kind::Header => !self.in_content(),
            Kind::Main | Kind::Article => false,
            _ => attributes.is_boilerplate(),
        }
    }

    /// Closes what a start tag ends without saying so: a skipped paragraph or item before the next
    /// one, and navigation that was left open before the main part.
    fn leave_implied(&mut self, tag: &[u8], kind: Kind) {
        let inner_ends = self.open.last().is_some_and(|inner| {
            inner.kind == Kind::Loose && inner.tag == tag
                || inner.tag == b"p" && !matches!(kind, Kind::Inline | Kind::Invisible | Kind::Svg)
        });
        if inner_ends {
            self.truncate(self.open.len() - 1);
        }
        if kind == Kind::Main || kind == Kind::Article && !self.in_main() {
            let left_open =
                self.open.iter().position(|open| open.skipped && matches!(open.tag.as_slice(), b"nav" | b"header"));
            if let Some(at) = left_open {
                self.truncate(at);
            }
        }
    }

    fn push(&mut self, open: Open) {
        if self.open.len() >= DEEPEST {
            self.too_deep += 1;
            return;
        }
        self.count(&open, true);
        *self.names.entry(open.tag.clone()).or_default() += 1;
        self.open.push(open);
    }

    fn truncate(&mut self, length: usize) {
        while self.open.len() > length
            && let Some(open) = self.open.pop()
        {
            self.count(&open, false);
            self.forget(&open.tag);
        }
    }

    fn forget(&mut self, tag: &[u8]) {
        match self.names.get_mut(tag) {
            Some(count) if *count > 1 => *count -= 1,
            _ => drop(self.names.remove(tag)),
        }
    }

    fn count(&mut self, open: &Open, entering: bool) {
        let count = |counter: &mut usize, counts: bool| {
            if counts && entering {
                *counter += 1;
            } else if counts {
                *counter -= 1;
            }
        };
        count(&mut self.skipped, open.skipped);
        count(&mut self.invisible, open.invisible);
        count(&mut self.articles, open.kind == Kind::Article);
        count(&mut self.mains, open.kind == Kind::Main);
        count(&mut self.svgs, open.kind == Kind::Svg);
        count(&mut self.pres, open.kind == Kind::Pre);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(tags: &str) -> Outline {
        let mut outline = Outline::default();
        for tag in tags.split_whitespace() {
            match tag.strip_prefix('/') {
                Some(tag) => outline.close(tag.as_bytes()),
                None => {
                    let mut attributes = Attributes::default();
                    let (tag, hidden) = tag.split_once('!').unwrap_or((tag, "no"));
                    if hidden.is_empty() {
                        attributes.set(b"hidden", "");
                    }
                    outline.open(tag.as_bytes(), Kind::of(tag.as_bytes()), &attributes, false);
                }
            }
        }
        outline
    }

    #[test]
    fn boilerplate_is_skipped_until_its_end() {
        for (tags, skipping) in [
            ("nav", true),
            ("nav /nav", false),
            ("nav ul li a /nav", false),
            ("nav div /p /span", true),
            ("div aside /div", false),
            ("header h1", true),
            ("main header h1", false),
            ("article header h1", false),
            ("main footer", true),
            ("span! span /span", true),
            ("span! span /span /span", false),
            ("p! p", false),
            ("li! li", false),
            ("p! div", false),
            ("p! b", true),
            ("nav ul li main", false),
            ("nav article", false),
            ("aside article", true),
        ] {
            assert_eq!(after(tags).skipping(), skipping, "{tags}");
        }
    }

    #[test]
    fn stray_end_tags_change_nothing() {
        assert!(after("main /p /b /section").in_main());
        assert!(!after("main /main /main").in_main());
    }

    #[test]
    fn depth_is_counted_beyond_the_stack() {
        let mut outline = after("main");
        for _ in 0..200_000 {
            outline.open(b"div", Kind::Container, &Attributes::default(), false);
        }
        assert_eq!(outline.open.len(), DEEPEST);
        for _ in 0..200_000 {
            outline.close(b"div");
        }
        assert!(outline.in_main());
        outline.close(b"main");
        assert!(!outline.in_main());
    }
}
