//! The blocks of pages and their features, for the scripts that train and judge the model.

use std::io::{self, Write};

use crate::charset::decode;
use crate::features::{Features, Hints};
use crate::layout::Layout;
use crate::media_type::MediaType;
use crate::readable::rules;
use crate::scan::scan;

/// The names of the features, in the order of the rows.
#[must_use]
pub fn names() -> Vec<String> {
    Features::names()
}

/// Judges by the weights of `file` from now on; only before the first page.
pub fn use_weights(file: String) {
    let _already_set = crate::model::OTHER_WEIGHTS.set(file);
}

/// Writes the rows of a page's blocks as little-endian `f32`, and returns the texts of the blocks.
///
/// # Errors
///
/// Those of `out`.
pub fn write_rows(html: &[u8], out: &mut impl Write) -> io::Result<Vec<String>> {
    let source = decode(html, &MediaType::parse("text/html"));
    let scanned = scan(&source, false);
    let layout = Layout::of(&scanned.blocks);
    let described = crate::extract::description(&scanned);
    let title = crate::extract::title(&scanned);
    let hints = Hints { title: &title, description: &described, body: &scanned.linked_data.body };
    let features = Features::of(&scanned.blocks, &layout, &hints, rules(&scanned.blocks, &layout));
    let mut result = Ok(());
    features.rows(|_, row| {
        let bytes: Vec<u8> = row.iter().flat_map(|number| number.to_le_bytes()).collect();
        if result.is_ok() {
            result = out.write_all(&bytes);
        }
    });
    result?;
    Ok(scanned.blocks.blocks.iter().map(|block| scanned.blocks.text(block).to_owned()).collect())
}

/// A page read as an article and as a list, and what the gate between the two looks at.
#[must_use]
pub fn readings(html: &[u8]) -> serde_json::Value {
    let source = decode(html, &MediaType::parse("text/html"));
    let scanned = scan(&source, false);
    let layout = Layout::of(&scanned.blocks);
    let (title, description) = (crate::extract::title(&scanned), crate::extract::description(&scanned));
    let hints = Hints { title: &title, description: &description, body: &scanned.linked_data.body };
    let gate = crate::readable::Gate::of(&scanned.blocks, &layout);
    let article = crate::readable::article(&scanned.blocks, &layout, &hints);
    let page = &scanned.blocks;
    let text: Vec<&str> = article.iter().map(|index| page.text(&page.blocks[*index])).collect();
    let other = crate::lines::lines(&scanned, &crate::readable::shown(page, &layout));
    serde_json::json!({"gate": gate.facts(), "article": text.join("\n"), "other": other.join("\n")})
}
