//! What the names and attributes of HTML elements mean to a reader of text.

/// The attributes of one start tag that matter here. The first of a name counts.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Attributes {
    pub(crate) href: Option<String>,
    pub(crate) name: Option<String>,
    pub(crate) property: Option<String>,
    pub(crate) content: Option<String>,
    pub(crate) alt: Option<String>,
    pub(crate) relation: Option<String>,
    pub(crate) id: Option<String>,
    pub(crate) class: Option<String>,
    pub(crate) test_id: Option<String>,
    pub(crate) component: Option<String>,
    pub(crate) role: Option<String>,
    pub(crate) item_property: Option<String>,
    charset: Option<String>,
    http_equiv: Option<String>,
    kind: Option<String>,
    encoding: Option<String>,
    style: Option<String>,
    hidden: Option<String>,
    aria_hidden: Option<String>,
    open: Option<String>,
    shadow_root: Option<String>,
}

/// How an element keeps its text from view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hidden {
    No,
    /// Only for now: `visibility:hidden` until scripts have run, a tab that is not chosen.
    Weakly,
    /// `aria-hidden`: mostly icons and what is said twice.
    FromSpeech,
    /// `display:none`, `hidden`.
    Fully,
}

impl Attributes {
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Notes an attribute; called with an empty value first, then with the real one if any.
    pub(crate) fn set(&mut self, name: &[u8], value: &str) {
        let slot = match name {
            b"href" => &mut self.href,
            b"name" => &mut self.name,
            b"property" => &mut self.property,
            b"content" => &mut self.content,
            b"alt" => &mut self.alt,
            b"rel" => &mut self.relation,
            b"charset" => &mut self.charset,
            b"http-equiv" => &mut self.http_equiv,
            b"type" => &mut self.kind,
            b"encoding" => &mut self.encoding,
            b"id" => &mut self.id,
            b"class" => &mut self.class,
            b"data-testid" => &mut self.test_id,
            b"data-component" => &mut self.component,
            b"itemprop" => &mut self.item_property,
            b"role" => &mut self.role,
            b"style" => &mut self.style,
            b"hidden" => &mut self.hidden,
            b"aria-hidden" => &mut self.aria_hidden,
            b"open" => &mut self.open,
            b"shadowrootmode" => &mut self.shadow_root,
            _ => return,
        };
        if slot.as_ref().is_none_or(String::is_empty) {
            *slot = Some(value.to_owned());
        }
    }

    pub(crate) fn is_json_ld(&self) -> bool {
        self.kind.as_ref().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/ld+json"))
    }

    /// The `type` of a script that holds data or the language of the web.
    pub(crate) fn may_hold_data(&self) -> bool {
        self.kind.as_ref().is_none_or(|kind| {
            let kind = kind.trim().to_ascii_lowercase();
            kind.is_empty() || kind.ends_with("javascript") || kind.ends_with("json")
        })
    }

    /// `<template shadowrootmode=open>`: a shadow tree that is shown.
    pub(crate) fn is_shown_template(&self) -> bool {
        self.shadow_root.is_some()
    }

    pub(crate) fn is_open(&self) -> bool {
        self.open.is_some()
    }

    pub(crate) fn is_html_annotation(&self) -> bool {
        self.encoding.as_ref().is_some_and(|encoding| {
            ["text/html", "application/xhtml+xml"].iter().any(|html| encoding.trim().eq_ignore_ascii_case(html))
        })
    }

    pub(crate) fn has_role(&self, roles: &[&str]) -> bool {
        self.role.as_ref().is_some_and(|role| roles.iter().any(|wanted| role.trim().eq_ignore_ascii_case(wanted)))
    }

    pub(crate) fn is_article_body(&self) -> bool {
        self.item_property
            .as_ref()
            .is_some_and(|names| names.split_ascii_whitespace().any(|name| name.eq_ignore_ascii_case("articleBody")))
    }

    /// The encoding that a `<meta>` with these attributes names.
    pub(crate) fn charset_label(&self) -> Option<String> {
        if let Some(label) = &self.charset {
            return Some(label.trim().to_owned());
        }
        let http_equiv = self.http_equiv.as_deref()?.trim();
        if !http_equiv.eq_ignore_ascii_case("content-type") {
            return None;
        }
        let content = self.content.as_deref()?;
        let at = content.to_ascii_lowercase().find("charset")?;
        let value = content.get(at + "charset".len()..)?.trim_start();
        let value = value.strip_prefix('=')?.trim_start();
        let label = value.trim_start_matches(['"', '\'']);
        let end = label.find(|end: char| end.is_whitespace() || matches!(end, ';' | '"' | '\'')).unwrap_or(label.len());
        Some(label[..end].to_owned())
    }

    /// Whether a browser keeps the text from view.
    pub(crate) fn hides(&self) -> Hidden {
        let is = |value: &Option<String>, text: &str| {
            value.as_ref().is_some_and(|value| value.trim().eq_ignore_ascii_case(text))
        };
        let (mut none, mut invisible) = (false, false);
        for (name, value) in
            self.style.iter().flat_map(|style| style.split(';')).filter_map(|rule| rule.split_once(':'))
        {
            let value = value.trim().to_ascii_lowercase();
            match name.trim().to_ascii_lowercase().as_str() {
                "display" => none = value.starts_with("none"),
                "visibility" => invisible = value.starts_with("hidden"),
                _ => {}
            }
        }
        let attribute = self.hidden.is_some() && !is(&self.hidden, "until-found");
        if attribute && self.id.as_ref().is_some_and(|id| id.starts_with("S:")) {
            Hidden::No // a piece of a stream, which a script moves into its place
        } else if attribute || none {
            Hidden::Fully
        } else if invisible || is(&self.aria_hidden, "true") && self.has_role(&["tabpanel"]) {
            Hidden::Weakly
        } else if is(&self.aria_hidden, "true") {
            Hidden::FromSpeech
        } else {
            Hidden::No
        }
    }

    /// Navigation and the like by its ARIA role.
    pub(crate) fn is_landmark(&self) -> bool {
        self.has_role(&["navigation", "banner", "contentinfo", "complementary", "search", "dialog", "alertdialog"])
    }

    /// A cookie or consent notice, by one of its names.
    pub(crate) fn is_consent_notice(&self) -> bool {
        [&self.id, &self.class, &self.test_id]
            .into_iter()
            .flatten()
            .flat_map(|names| names.split_ascii_whitespace())
            .any(is_consent_notice)
    }

    /// Text for a screen reader only.
    pub(crate) fn is_visually_hidden(&self) -> bool {
        self.class.as_ref().is_some_and(|names| {
            names.split_ascii_whitespace().any(|name| {
                matches!(
                    name,
                    "visually-hidden" | "visuallyhidden" | "visuallyHidden" | "sr-only" | "screen-reader-text"
                )
            })
        })
    }
}

/// A name is one of a notice when it ends in what it is about and what it is, `site-cookie-banner`.
/// A word behind that makes it the name of something else (`cookie-recipes-container`) or of a state
/// (`cookie-banner-open`), and so does a verb in front (`has-cookie-bar`).
fn is_consent_notice(name: &str) -> bool {
    const ABOUT: [&str; 5] = ["cookie", "cookies", "consent", "gdpr", "privacy"];
    const NOTICE: [&str; 14] = [
        "banner",
        "notice",
        "prompt",
        "popup",
        "modal",
        "dialog",
        "overlay",
        "container",
        "bar",
        "consent",
        "wrapper",
        "message",
        "sdk",
        "notification",
    ];
    const STATES: [&str; 6] = ["has", "with", "show", "no", "hide", "is"];
    let words = words_of(name);
    if words.first().is_some_and(|first| first.starts_with("onetrust")) || words == ["cookies"] {
        return true;
    }
    let Some(about) = words.iter().position(|word| ABOUT.contains(&word.as_str())) else {
        return false;
    };
    let rest = &words[about + 1..];
    !rest.is_empty()
        && rest.iter().all(|word| NOTICE.contains(&word.as_str()) || ABOUT.contains(&word.as_str()))
        && rest.iter().any(|word| NOTICE.contains(&word.as_str()))
        && !words[..about].iter().any(|word| STATES.contains(&word.as_str()))
}

/// The words of `cookie-banner`, `cookie_banner` and `cookieBanner`, in lower case; at most eight.
fn words_of(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut last = '-';
    for character in name.chars().take(80) {
        if character.is_alphanumeric() {
            if !last.is_alphanumeric() || last.is_lowercase() && character.is_uppercase() {
                words.push(String::new());
            }
            if let Some(word) = words.last_mut() {
                word.extend(character.to_lowercase());
            }
        }
        last = character;
    }
    words.truncate(8);
    words
}

/// What kind of element a tag makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Main,
    Article,
    Header,
    Footer,
    Nav,
    Aside,
    Dialog,
    /// Not shown as text at all.
    Invisible,
    /// Shown only where scripts do not run.
    NoScript,
    Template,
    Svg,
    Math,
    Pre,
    /// A block that must be closed.
    Container,
    /// A block whose end tag is often left out.
    Loose,
    Cell,
    Button,
    Link,
    /// Has no content.
    Void,
    /// Has no content, and ends the line.
    Break,
    /// The whole document: never skipped for its attributes.
    Root,
    /// A date or time, which is never a part of a word.
    Time,
    /// Changes how a piece of a word looks: `H<sub>2</sub>O`.
    Formatting,
    Inline,
}

/// What the edges of an element do to the text around them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Block,
    Cell,
    Inline,
}

impl Kind {
    pub(crate) fn of(tag: &[u8]) -> Self {
        match tag {
            b"main" => Self::Main,
            b"article" => Self::Article,
            b"header" => Self::Header,
            b"footer" => Self::Footer,
            b"nav" => Self::Nav,
            b"aside" => Self::Aside,
            b"dialog" => Self::Dialog,
            b"script" | b"style" | b"iframe" | b"object" | b"canvas" | b"audio" | b"video" | b"noembed"
            | b"noframes" | b"title" | b"textarea" | b"datalist" | b"select" | b"rt" | b"rp" | b"rtc"
            | b"annotation" | b"annotation-xml" => Self::Invisible,
            b"noscript" => Self::NoScript,
            b"template" => Self::Template,
            b"svg" => Self::Svg,
            b"math" => Self::Math,
            b"pre" | b"xmp" | b"listing" | b"plaintext" => Self::Pre,
            b"div" | b"section" | b"figure" | b"figcaption" | b"blockquote" | b"form" | b"fieldset" | b"ul" | b"ol"
            | b"dl" | b"table" | b"details" | b"summary" | b"address" | b"hgroup" | b"h1" | b"h2" | b"h3" | b"h4"
            | b"h5" | b"h6" | b"caption" | b"center" | b"menu" | b"legend" | b"search" => Self::Container,
            b"p" | b"li" | b"dt" | b"dd" | b"tr" | b"thead" | b"tbody" | b"tfoot" => Self::Loose,
            b"td" | b"th" => Self::Cell,
            b"button" => Self::Button,
            b"a" => Self::Link,
            b"br" | b"hr" => Self::Break,
            b"area" | b"base" | b"col" | b"embed" | b"img" | b"input" | b"link" | b"meta" | b"param" | b"source"
            | b"track" | b"wbr" => Self::Void,
            b"html" | b"head" | b"body" => Self::Root,
            b"time" => Self::Time,
            b"b" | b"big" | b"code" | b"em" | b"font" | b"i" | b"ins" | b"del" | b"kbd" | b"mark" | b"nobr" | b"q"
            | b"rb" | b"ruby" | b"s" | b"samp" | b"small" | b"strike" | b"strong" | b"sub" | b"sup" | b"tt" | b"u"
            | b"var" | b"abbr" | b"acronym" | b"bdi" | b"bdo" | b"dfn" | b"cite" => Self::Formatting,
            _ => Self::Inline,
        }
    }

    pub(crate) fn role(self) -> Role {
        match self {
            Self::Cell => Role::Cell,
            Self::Inline
            | Self::Void
            | Self::Invisible
            | Self::Svg
            | Self::Math
            | Self::NoScript
            | Self::Button
            | Self::Link
            | Self::Time
            | Self::Formatting => Role::Inline,
            _ => Role::Block,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attributes(list: &[(&str, &str)]) -> Attributes {
        let mut attributes = Attributes::default();
        for (name, value) in list {
            attributes.set(name.as_bytes(), "");
            attributes.set(name.as_bytes(), value);
        }
        attributes
    }

    #[test]
    fn the_first_attribute_of_a_name_counts() {
        let twice = attributes(&[("href", "a"), ("href", "b")]);
        assert_eq!(twice.href.as_deref(), Some("a"));
    }

    #[test]
    fn notices_are_told_from_articles_about_them() {
        for name in [
            "cookie-banner",
            "cookieBanner",
            "bbc-cookie-prompt",
            "consent-banner",
            "gdpr_notice",
            "onetrust-consent-sdk",
            "cookies",
            "privacy-modal",
            "cookie-consent",
            "cookie-consent-container",
        ] {
            assert!(attributes(&[("class", &format!("x {name}"))]).is_consent_notice(), "{name}");
        }
        for name in [
            "cookie-recipe",
            "cookie-recipes-container",
            "consent-decree-container",
            "gdpr-notice-explained",
            "cmp-container",
            "cmp-dialog",
            "has-cookie-bar",
            "cookie-banner-open",
            "article",
            "consent",
            "topic-cookies",
            "privacy",
            "container",
            "best-cookies-ever",
            "consenting-adults",
            "privacy-bar-chart",
        ] {
            assert!(!attributes(&[("class", name)]).is_consent_notice(), "{name}");
        }
    }

    #[test]
    fn hidden_in_every_way() {
        for (list, hidden) in [
            (&[("hidden", "")][..], Hidden::Fully),
            (&[("hidden", "hidden")], Hidden::Fully),
            (&[("style", "color:red; DISPLAY : none !important")], Hidden::Fully),
            (&[("hidden", ""), ("id", "S:0")], Hidden::No),
            (&[("style", "visibility:hidden; opacity:0")], Hidden::Weakly),
            (&[("aria-hidden", "true"), ("role", "tabpanel")], Hidden::Weakly),
            (&[("aria-hidden", "true")], Hidden::FromSpeech),
            (&[("hidden", "until-found")], Hidden::No),
            (&[("aria-hidden", "false")], Hidden::No),
            (&[("style", "display:block")], Hidden::No),
            (&[("style", "backface-visibility:hidden;-webkit-backface-visibility:hidden")], Hidden::No),
            (&[("style", "background:url(display:none.png)")], Hidden::No),
            (&[("class", "hidden")], Hidden::No),
        ] {
            assert_eq!(attributes(list).hides(), hidden, "{list:?}");
        }
    }

    #[test]
    fn charset_labels() {
        let meta = |list: &[(&str, &str)]| attributes(list).charset_label();
        assert_eq!(meta(&[("charset", " gbk ")]).as_deref(), Some("gbk"));
        for content in ["text/html; charset=gbk", "charset = 'gbk'", "x;CHARSET=\"gbk\";y"] {
            let label = meta(&[("http-equiv", "Content-Type"), ("content", content)]);
            assert_eq!(label.as_deref(), Some("gbk"), "{content}");
        }
        for content in ["text/html", "charset", "charset gbk"] {
            assert_eq!(meta(&[("http-equiv", "content-type"), ("content", content)]), None);
        }
        assert_eq!(meta(&[("name", "x"), ("content", "charset=gbk")]), None);
    }
}
