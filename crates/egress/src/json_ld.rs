//! What `application/ld+json` scripts say about a page: headline, description, text.
//!
//! The script is read as a stream: what is not asked for is skipped without being kept, so that a
//! script of two megabytes costs no more memory than itself.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// Bytes kept of a text.
const TEXT_BYTES: usize = 512 * 1024;

/// The first headline and description, and the longest text.
#[derive(Debug, Default)]
pub(crate) struct LinkedData {
    pub(crate) headline: String,
    pub(crate) description: String,
    pub(crate) body: String,
}

impl LinkedData {
    /// Reads a script; one that is not JSON to its end says what it said before that.
    pub(crate) fn read(&mut self, script: &str) {
        let mut json = serde_json::Deserializer::from_str(script);
        let _as_far_as_it_goes = Node { data: self, depth: 0 }.deserialize(&mut json);
    }
}

/// An object or array of the script; those that may hold the article are looked into.
struct Node<'a> {
    data: &'a mut LinkedData,
    depth: usize,
}

impl<'de> DeserializeSeed<'de> for Node<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

/// Values of these keys are looked into.
fn is_inner(key: &str) -> bool {
    matches!(
        key,
        "@graph" | "mainEntity" | "mainEntityOfPage" | "liveBlogUpdate" | "hasPart" | "itemListElement" | "item"
    )
}

impl<'de> Visitor<'de> for Node<'_> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("JSON-LD")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<std::borrow::Cow<'_, str>>()? {
            match key.as_ref() {
                "headline" if self.depth < 2 => keep_first(&mut self.data.headline, map.next_value_seed(Line)?),
                "description" if self.depth < 2 => keep_first(&mut self.data.description, map.next_value_seed(Line)?),
                "articleBody" => {
                    let body = map.next_value_seed(Line)?;
                    if body.len() > self.data.body.len() {
                        self.data.body = body;
                    }
                }
                key if is_inner(key) && self.depth < 8 => {
                    map.next_value_seed(Node { data: self.data, depth: self.depth + 1 })?;
                }
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        while items.next_element_seed(Node { data: self.data, depth: self.depth })?.is_some() {}
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}

fn keep_first(kept: &mut String, found: String) {
    if kept.trim().is_empty() {
        *kept = found;
    }
}

/// A string, cut at the bound, or the strings of an array; anything else is empty.
struct Line;

impl<'de> DeserializeSeed<'de> for Line {
    type Value = String;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<String, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Line {
    type Value = String;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("text")
    }

    fn visit_str<E>(self, text: &str) -> Result<String, E> {
        Ok(text[..text.floor_char_boundary(TEXT_BYTES)].to_owned())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<String, A::Error> {
        let mut text = String::new();
        while let Some(piece) = items.next_element_seed(Line)? {
            if text.len() + piece.len() < TEXT_BYTES {
                text.push_str(&piece);
                text.push('\n');
            }
        }
        Ok(text)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<String, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(String::new())
    }

    fn visit_bool<E>(self, _: bool) -> Result<String, E> {
        Ok(String::new())
    }

    fn visit_i64<E>(self, _: i64) -> Result<String, E> {
        Ok(String::new())
    }

    fn visit_u64<E>(self, _: u64) -> Result<String, E> {
        Ok(String::new())
    }

    fn visit_f64<E>(self, _: f64) -> Result<String, E> {
        Ok(String::new())
    }

    fn visit_unit<E>(self) -> Result<String, E> {
        Ok(String::new())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(script: &str) -> LinkedData {
        let mut data = LinkedData::default();
        data.read(script);
        data
    }

    #[test]
    fn the_article_is_found_wherever_it_stands() {
        for script in [
            r#"{"headline": "H", "description": "D", "articleBody": "B"}"#,
            r#"[{"a": [1, {"headline": 3}]}, {"headline": "H", "description": "D", "articleBody": ["B"]}]"#,
            r#"{"@graph": [{"headline": "H"}, {"description": "D", "mainEntity": {"articleBody": "B"}}]}"#,
        ] {
            let data = read(script);
            assert_eq!(
                (data.headline.as_str(), data.description.as_str(), data.body.trim()),
                ("H", "D", "B"),
                "{script}"
            );
        }
    }

    #[test]
    fn other_values_and_broken_scripts_are_passed_over() {
        assert_eq!(read(r#"{"headline": {"a": 1}, "articleBody": null}"#).headline, "");
        assert_eq!(read(r#"{"headline": "H", "articleBody": "B", "x": "#).body, "B");
        assert_eq!(read("var x").headline, "");
        assert_eq!(read(&"[".repeat(100_000)).headline, "");
    }
}
