//! What the names and attributes of HTML elements mean to a reader of text.

/// The attributes of one start tag that matter here. The first of a name counts.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Attributes {
    pub(crate) href: Option<String>,
    pub(crate) name: Option<String>,
    pub(crate) property: Option<String>,
    pub(crate) content: Option<String>,
    charset: Option<String>,
    http_equiv: Option<String>,
    kind: Option<String>,
    id: Option<String>,
    class: Option<String>,
    test_id: Option<String>,
    role: Option<String>,
    style: Option<String>,
    hidden: Option<String>,
    aria_hidden: Option<String>,
}

impl Attributes {
    /// Notes an attribute; called with an empty value first, then with the real one if any.
    pub(crate) fn set(&mut self, name: &[u8], value: &str) {
        let slot = match name {
            b"href" => &mut self.href,
            b"name" => &mut self.name,
            b"property" => &mut self.property,
            b"content" => &mut self.content,
            b"charset" => &mut self.charset,
            b"http-equiv" => &mut self.http_equiv,
            b"type" => &mut self.kind,
            b"id" => &mut self.id,
            b"class" => &mut self.class,
            b"data-testid" => &mut self.test_id,
            b"role" => &mut self.role,
            b"style" => &mut self.style,
            b"hidden" => &mut self.hidden,
            b"aria-hidden" => &mut self.aria_hidden,
            _ => return,
        };
        if slot.as_ref().is_none_or(String::is_empty) {
            *slot = Some(value.to_owned());
        }
    }

    pub(crate) fn is_json_ld(&self) -> bool {
        self.kind.as_ref().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/ld+json"))
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

    /// Not shown by a browser: text that a reader of the page would never see.
    pub(crate) fn hides(&self) -> bool {
        let is = |value: &Option<String>, text: &str| {
            value.as_ref().is_some_and(|value| value.trim().eq_ignore_ascii_case(text))
        };
        self.hidden.is_some() && !is(&self.hidden, "until-found")
            || is(&self.aria_hidden, "true")
            || self.style.as_ref().is_some_and(|style| {
                let style: String = style.split_whitespace().collect();
                let style = style.to_ascii_lowercase();
                style.contains("display:none") || style.contains("visibility:hidden")
            })
    }

    /// A cookie or consent notice, or navigation by its ARIA role.
    pub(crate) fn is_boilerplate(&self) -> bool {
        let role = self.role.as_deref().unwrap_or_default().trim();
        if ["navigation", "banner", "contentinfo", "complementary", "search"]
            .iter()
            .any(|boilerplate| role.eq_ignore_ascii_case(boilerplate))
        {
            return true;
        }
        [&self.id, &self.class, &self.test_id]
            .into_iter()
            .flatten()
            .flat_map(|names| names.split_ascii_whitespace())
            .any(is_consent_notice)
    }
}

fn is_consent_notice(name: &str) -> bool {
    const ABOUT: [&str; 5] = ["cookie", "consent", "gdpr", "privacy", "cmp"];
    const NOTICE: [&str; 10] =
        ["banner", "notice", "prompt", "popup", "modal", "dialog", "overlay", "container", "bar", "consent"];
    let name = name.to_ascii_lowercase();
    if name.starts_with("onetrust") || name == "cookies" {
        return true;
    }
    let words = || name.split(['-', '_', ':']).filter(|word| !word.is_empty());
    let about = words().find(|word| ABOUT.iter().any(|about| word.contains(about)));
    about.is_some_and(|about| {
        words().any(|word| NOTICE.iter().any(|notice| word.ends_with(notice) && (word != about || word != *notice)))
    })
}

/// What kind of element a tag makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Main,
    Article,
    /// Dropped unless it belongs to an article or to the main part.
    Header,
    /// Never part of the readable text.
    Boilerplate,
    /// Not shown as text at all.
    Invisible,
    Svg,
    Pre,
    /// A block without a meaning of its own; must be closed.
    Container,
    /// A block whose end tag is often left out.
    Loose,
    Cell,
    /// Has no content.
    Void,
    /// Has no content, and ends the line.
    Break,
    /// The whole document: never skipped for its attributes.
    Root,
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
            b"nav" | b"footer" | b"aside" | b"dialog" | b"button" | b"select" | b"menu" => Self::Boilerplate,
            b"script" | b"style" | b"template" | b"noscript" | b"iframe" | b"object" | b"canvas" | b"audio"
            | b"video" | b"math" | b"noembed" | b"noframe" | b"title" | b"textarea" | b"datalist" => Self::Invisible,
            b"svg" => Self::Svg,
            b"pre" => Self::Pre,
            b"div" | b"section" | b"figure" | b"figcaption" | b"blockquote" | b"form" | b"fieldset" | b"ul" | b"ol"
            | b"dl" | b"table" | b"details" | b"summary" | b"address" | b"hgroup" | b"h1" | b"h2" | b"h3" | b"h4"
            | b"h5" | b"h6" | b"caption" | b"center" => Self::Container,
            b"p" | b"li" | b"dt" | b"dd" | b"tr" | b"thead" | b"tbody" | b"tfoot" => Self::Loose,
            b"td" | b"th" => Self::Cell,
            b"br" | b"hr" => Self::Break,
            b"area" | b"base" | b"col" | b"embed" | b"img" | b"input" | b"link" | b"meta" | b"param" | b"source"
            | b"track" | b"wbr" => Self::Void,
            b"html" | b"head" | b"body" => Self::Root,
            _ => Self::Inline,
        }
    }

    pub(crate) fn role(self) -> Role {
        match self {
            Self::Inline | Self::Void | Self::Invisible | Self::Svg => Role::Inline,
            Self::Cell => Role::Cell,
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
            "cmp-container",
        ] {
            assert!(attributes(&[("class", &format!("x {name}"))]).is_boilerplate(), "{name}");
        }
        for name in [
            "cookie-recipe",
            "article",
            "consent",
            "topic-cookies",
            "privacy",
            "container",
            "best-cookies-ever",
            "consenting-adults",
        ] {
            assert!(!attributes(&[("class", name)]).is_boilerplate(), "{name}");
        }
    }

    #[test]
    fn hidden_in_every_way() {
        for list in [
            [("hidden", "")],
            [("hidden", "hidden")],
            [("aria-hidden", "true")],
            [("style", "color:red; DISPLAY : none")],
            [("style", "visibility:hidden")],
        ] {
            assert!(attributes(&list).hides(), "{list:?}");
        }
        for list in [
            [("hidden", "until-found")],
            [("aria-hidden", "false")],
            [("style", "display:block")],
            [("class", "hidden")],
        ] {
            assert!(!attributes(&list).hides(), "{list:?}");
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
