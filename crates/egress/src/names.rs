//! Telling names: what the class, id and role of an element say about the text inside.

use std::collections::HashMap;
use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, MatchKind};

use crate::element::Attributes;

/// Most characters of names that are looked at, and most different ones that are remembered.
const NAME_BYTES: usize = 300;
const REMEMBERED: usize = 4096;

/// The classes of telling names. The first fifteen speak against text, the others for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Name {
    Comment,
    Share,
    Related,
    Navigation,
    Foot,
    Side,
    Newsletter,
    Author,
    Date,
    Tag,
    Caption,
    Advert,
    Notice,
    Hidden,
    Apparatus,
    Body,
    Article,
    Content,
    Forum,
}

impl Name {
    pub(crate) const ALL: [Self; 19] = [
        Self::Comment,
        Self::Share,
        Self::Related,
        Self::Navigation,
        Self::Foot,
        Self::Side,
        Self::Newsletter,
        Self::Author,
        Self::Date,
        Self::Tag,
        Self::Caption,
        Self::Advert,
        Self::Notice,
        Self::Hidden,
        Self::Apparatus,
        Self::Body,
        Self::Article,
        Self::Content,
        Self::Forum,
    ];

    /// Parts of names, in lower case and without hyphens; ` word ` stands for a whole word.
    fn parts(self) -> &'static [&'static str] {
        match self {
            Self::Comment => &["comment", "disqus", "reply", "replies", "respond", "livefyre"],
            Self::Share => &["share", "social", "sharing", "follow", "tweet", "facebook", "whatsapp"],
            Self::Related => &[
                "relat",
                "recommend",
                "popular",
                "trending",
                "mostread",
                "morefrom",
                "morenews",
                "morestories",
                "readmore",
                "readnext",
                "readalso",
                "alsoread",
                "alsolike",
                "seealso",
                "upnext",
                "outbrain",
                "taboola",
                "teaser",
                "promo",
                "card",
                "carousel",
                "slider",
            ],
            Self::Navigation => {
                &["nav", "menu", "breadcrumb", "pagination", "pager", "skip", "toolbar", "masthead", "topbar"]
            }
            Self::Foot => &["foot", "copyright", "legal", "disclaimer", "colophon"],
            Self::Side => &["sidebar", "aside", "widget", "rail", "columnright"],
            Self::Newsletter => {
                &["newsletter", "subscri", "signup", "register", "login", "paywall", "piano", "regwall"]
            }
            Self::Author => &["author", "byline", "credit", "bio", "contributor", "writer"],
            Self::Date => &["date", "time", "publish", "meta", "info"],
            Self::Tag => &[" tag ", " tags ", "keyword", "topic", "categor", "label"],
            Self::Caption => &["caption", "gallery", "photo", "image", "media", "video", "player", "lightbox", "thumb"],
            Self::Advert => {
                &[" ad ", " ads ", "advert", "sponsor", "banner", "promot", "commercial", "affiliate", "partner"]
            }
            Self::Notice => {
                &["cookie", "consent", "gdpr", "privacy", "modal", "popup", "overlay", "dialog", "onetrust"]
            }
            Self::Hidden => &[" hidden ", " hide ", "visuallyhidden", "sronly", "screenreader"],
            Self::Apparatus => {
                &["correction", "footnote", "reference", "editsection", " toc ", " poll ", "quiz", "rating", "print"]
            }
            Self::Body => &[
                "articlebody",
                "storybody",
                "postbody",
                "entrycontent",
                "postcontent",
                "articlecontent",
                "articletext",
                "storycontent",
                "storytext",
                "bodytext",
                "textbody",
                "contentbody",
                "singlecontent",
                "richtext",
                "paragraph",
                "pagecontent",
                "fieldnamebody",
                "maintext",
                "detailcontent",
                "newscontent",
                "textblock",
            ],
            Self::Article => &["article", "story", "post", "entry", "detail"],
            Self::Content => &["content", "main", "text", "body"],
            Self::Forum => &["forum", "thread", "viewtopic", "phpbb", "vbulletin", "xenforo", "discussion"],
        }
    }

    pub(crate) fn bit(self) -> u32 {
        1 << self as u8
    }
}

static WORDS: LazyLock<(AhoCorasick, Vec<u32>)> = LazyLock::new(|| {
    let all = || Name::ALL.iter().flat_map(|name| name.parts().iter().map(|part| (*part, name.bit())));
    let automaton = AhoCorasick::builder().match_kind(MatchKind::Standard).build(all().map(|(part, _)| part));
    (automaton.unwrap_or_else(|_| unreachable!("the parts are few")), all().map(|(_, bit)| bit).collect())
});

/// The telling names of elements, remembered by what they were read from.
#[derive(Debug, Default)]
pub(crate) struct Names {
    known: HashMap<String, u32>,
    key: String,
}

impl Names {
    /// The names of an element, a bit for each.
    pub(crate) fn of(&mut self, attributes: &Attributes) -> u32 {
        self.key.clear();
        let Attributes { class, id, role, test_id, component, item_property, .. } = attributes;
        for names in [class, id, role, test_id, component, item_property].into_iter().flatten() {
            self.key.push_str(names);
            self.key.push(' ');
        }
        self.key.truncate(self.key.floor_char_boundary(NAME_BYTES));
        if self.key.len() < 3 {
            return 0;
        }
        if let Some(names) = self.known.get(&self.key) {
            return *names;
        }
        let names = read(&self.key);
        if self.known.len() < REMEMBERED {
            self.known.insert(self.key.clone(), names);
        }
        names
    }
}

/// Reads names twice: word by word, and with the hyphens taken out.
fn read(names: &str) -> u32 {
    let mut separated = String::with_capacity(names.len() + 8);
    separated.push(' ');
    let mut joined = String::with_capacity(names.len());
    for character in names.chars() {
        let letter = character.to_ascii_lowercase();
        let hyphen = matches!(letter, '-' | '_');
        separated.push(if hyphen { ' ' } else { letter });
        if !hyphen {
            joined.push(letter);
        }
    }
    separated.push(' ');
    let (automaton, bits) = &*WORDS;
    [separated, joined]
        .iter()
        .flat_map(|text| automaton.find_overlapping_iter(text))
        .fold(0, |found, word| found | bits[word.pattern().as_usize()])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(class: &str) -> Vec<Name> {
        let mut attributes = Attributes::default();
        attributes.set(b"class", class);
        let found = Names::default().of(&attributes);
        Name::ALL.into_iter().filter(|name| found & name.bit() != 0).collect()
    }

    #[test]
    fn names_are_found_with_and_without_hyphens() {
        assert_eq!(names("Most-Read"), [Name::Related]);
        assert_eq!(names("article__body"), [Name::Body, Name::Article, Name::Content]);
        assert_eq!(names("box ad"), [Name::Advert]);
        assert_eq!(names("header shadow"), []);
        assert_eq!(names("tag-list"), [Name::Tag]);
        assert_eq!(names("stage"), []);
    }
}
