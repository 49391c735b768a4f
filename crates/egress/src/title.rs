//! What a page is called and what it says about itself.

use crate::outline::{Mark, Tag};
use crate::scan::Scanned;
use crate::text::one_line;

const TITLE_BYTES: usize = 1024;
const DESCRIPTION_BYTES: usize = 4096;
/// What stands between a title and the name of the site.
const SEPARATORS: [&str; 9] = [" | ", " - ", " – ", " — ", " · ", " :: ", " » ", " • ", ": "];

/// `og:title` without the site's name; else the only `h1` when the `<title>` has it; else the `<title>`,
/// `twitter:title`, or the headline of JSON-LD. A page whose `og:title`s differ has none.
pub(crate) fn title(scanned: &Scanned) -> String {
    let site = first(named(scanned, "og:site_name"), TITLE_BYTES).unwrap_or_default();
    let heading = heading(scanned);
    let mut og = named(scanned, "og:title").map(|title| one_line(title, TITLE_BYTES)).filter(|title| !title.is_empty());
    let card = og.next().filter(|card| og.all(|other| other == *card));
    let document = first(scanned.titles.iter().map(String::as_str), TITLE_BYTES);
    if let Some(card) = card.filter(|card| document.is_none() || !same(card, &site)) {
        return without_site(&card, &site, &heading).to_owned();
    }
    if let Some(document) = document {
        return without_site(&document, &site, &heading).to_owned();
    }
    let others = named(scanned, "twitter:title").chain([scanned.linked_data.headline.as_str()]);
    first(others, TITLE_BYTES).unwrap_or_default()
}

/// The first of `description`, `og:description`, `twitter:description` and that of JSON-LD.
pub(crate) fn description(scanned: &Scanned) -> String {
    let descriptions = named(scanned, "description")
        .chain(named(scanned, "og:description"))
        .chain(named(scanned, "twitter:description"))
        .chain([scanned.linked_data.description.as_str()]);
    first(descriptions, DESCRIPTION_BYTES).unwrap_or_default()
}

fn named<'a>(scanned: &'a Scanned, name: &'a str) -> impl Iterator<Item = &'a str> {
    scanned.metas.iter().filter(move |(key, _)| key == name).map(|(_, content)| content.as_str())
}

fn first<'a>(mut candidates: impl Iterator<Item = &'a str>, limit: usize) -> Option<String> {
    candidates.find_map(|candidate| {
        let line = one_line(candidate, limit);
        (!line.is_empty()).then_some(line)
    })
}

/// The text of the only `h1` that is shown.
fn heading(scanned: &Scanned) -> String {
    let blocks = &scanned.blocks;
    let mut headings = blocks
        .blocks
        .iter()
        .filter(|block| block.tag == Tag::known("h1") && !block.around.is(Mark::HiddenFully))
        .map(|block| blocks.text(block));
    match (headings.next(), headings.next()) {
        (Some(heading), None) => one_line(heading, TITLE_BYTES),
        _ => String::new(),
    }
}

/// A title loses its last part when that is the site's name, or when the rest is the heading.
fn without_site<'a>(title: &'a str, site: &str, heading: &str) -> &'a str {
    for separator in SEPARATORS {
        let Some((rest, last)) = title.rsplit_once(separator) else {
            continue;
        };
        let named = !site.is_empty() && same(last, site);
        if !rest.is_empty() && (named || !heading.is_empty() && same(rest, heading)) {
            return rest;
        }
    }
    title
}

/// The same words, whatever their case and punctuation.
fn same(one: &str, other: &str) -> bool {
    let words =
        |text: &str| text.chars().filter(|one| one.is_alphanumeric()).flat_map(char::to_lowercase).collect::<String>();
    words(one) == words(other)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scan::scan;

    fn titled(html: &str) -> String {
        title(&scan(html, false))
    }

    #[test]
    fn the_site_is_not_a_part_of_the_title() {
        let site = "<meta property=og:site_name content='River News'>";
        for (html, expected) in [
            ("<meta property=og:title content='Otters return - River News'>", "Otters return"),
            ("<title>Otters return | River News</title>", "Otters return"),
            ("<title>Otters return - Weir Weekly</title><h1>Otters return</h1>", "Otters return"),
            ("<title>Otters return - Weir Weekly</title><h1>Other</h1>", "Otters return - Weir Weekly"),
            ("<title>Otters return</title><meta property=og:title content='River News'>", "Otters return"),
            ("<meta property=og:title content='River News'>", "River News"),
            ("<meta property=og:title content='A'><meta property=og:title content='B'><title>C</title>", "C"),
            ("<meta property=og:title content=''><meta property=og:title content='B'><title>C</title>", "B"),
        ] {
            assert_eq!(titled(&format!("{site}{html}")), expected, "{html}");
        }
    }

    #[test]
    fn titles_and_descriptions_have_an_order() {
        let all = "<meta property=og:title content=1><title>2</title><meta name=twitter:title content=3>\
                   <script type=application/ld+json>{\"headline\": \"4\"}</script>\
                   <meta name=description content=1><meta property=og:description content=2>\
                   <meta name=twitter:description content=3>\
                   <script type='application/ld+json'>[{\"@graph\": [{\"description\": \"4\"}]}]</script>";
        let mut html = all.to_owned();
        for (found, cut) in [
            ("1", ["og:title", "name=description"]),
            ("2", ["<title>2</title>", "og:description"]),
            ("3", ["twitter:title", "twitter:description"]),
            ("4", ["headline", "\"description\""]),
            ("", ["", ""]),
        ] {
            let scanned = scan(&html, false);
            assert_eq!((title(&scanned).as_str(), description(&scanned).as_str()), (found, found));
            for piece in cut.iter().filter(|piece| !piece.is_empty()) {
                html = html.replace(piece, "");
            }
        }
    }

    #[test]
    fn empty_candidates_are_passed_over() {
        assert_eq!(titled("<title>&nbsp;</title><meta property=og:title content=' x\ny '>"), "x y");
    }
}
