//! Matches in the data that a page carries for its scripts: teams, score, state and scorers.
//!
//! `window.X = {...}`, `window.X = "{...}"` and whole JSON scripts are read as a stream. A match is an
//! object with a `home` and an `away` that have names; nothing here knows a site.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

/// Most matches of a page, longest piece of one in bytes, and most events of a side.
const MATCHES: usize = 500;
const PIECE_BYTES: usize = 64 * 1024;
const EVENTS: usize = 30;

/// A match as the page's data tells it.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Match {
    pub(crate) home: Side,
    pub(crate) away: Side,
    /// `Full time`, `In play`.
    pub(crate) state: String,
}

/// One team of a match.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Side {
    /// The full name, then others.
    pub(crate) names: Vec<String>,
    pub(crate) score: String,
    /// `A. Player 21', 80'`.
    pub(crate) events: Vec<String>,
}

impl Match {
    /// Who scored, for the end of a line: `(A. Player 21'; B. Keeper 90' own goal)`.
    pub(crate) fn events(&self) -> Option<String> {
        let events: Vec<&str> = self.home.events.iter().chain(&self.away.events).map(String::as_str).collect();
        (!events.is_empty()).then(|| format!("({})", events.join("; ")))
    }

    /// The whole match on a line.
    pub(crate) fn line(&self) -> String {
        let name = |side: &Side| side.names.first().cloned().unwrap_or_default();
        let mut line = if self.home.score.is_empty() || self.away.score.is_empty() {
            format!("{} v {}", name(&self.home), name(&self.away))
        } else {
            format!("{} {}, {} {}", name(&self.home), self.home.score, name(&self.away), self.away.score)
        };
        if !self.state.is_empty() {
            line.push_str(", ");
            line.push_str(&self.state);
        }
        if let Some(events) = self.events() {
            line.push(' ');
            line.push_str(&events);
        }
        line
    }

    /// Whether `line` names both teams.
    pub(crate) fn is_in(&self, line: &str) -> bool {
        let named = |side: &Side| side.names.iter().any(|name| has_words(line, name));
        named(&self.home) && named(&self.away)
    }
}

/// Whether `words` stands in `line` between other words, not inside one.
fn has_words(line: &str, words: &str) -> bool {
    let outside = |next: Option<char>| next.is_none_or(|next| !next.is_alphanumeric());
    line.match_indices(words)
        .any(|(at, _)| outside(line[..at].chars().next_back()) && outside(line[at + words.len()..].chars().next()))
}

/// The matches that a script holds.
pub(crate) fn matches_in(script: &str) -> Vec<Match> {
    let mut found = Vec::new();
    let has = |word: &str| script.contains(word);
    if !(has("home") && has("away") && has("core")) {
        return found;
    }
    let script = script.trim_start();
    let data = match script.as_bytes().first() {
        Some(b'{' | b'[') => script,
        _ => script.split_once('=').map_or("", |(_, data)| data.trim_start()),
    };
    let mut json = serde_json::Deserializer::from_str(data);
    if data.starts_with('"') {
        if let Ok(inner) = <String as serde::Deserialize>::deserialize(&mut json) {
            walk(&inner, &mut found);
        }
    } else if data.starts_with(['{', '[']) {
        walk(data, &mut found);
    }
    found
}

fn walk(data: &str, found: &mut Vec<Match>) {
    let mut json = serde_json::Deserializer::from_str(data);
    let _as_far_as_it_goes = Walk(found).deserialize(&mut json);
}

/// Looks for matches in a value.
struct Walk<'a>(&'a mut Vec<Match>);

impl<'de> DeserializeSeed<'de> for Walk<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Walk<'_> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut one = Match::default();
        while let Some(key) = map.next_key::<std::borrow::Cow<'_, str>>()? {
            match key.as_ref() {
                "home" => one.home = side(map.next_value()?),
                "away" => one.away = side(map.next_value()?),
                "statusComment" => one.state = label(map.next_value()?),
                "periodLabel" if one.state.is_empty() => one.state = label(map.next_value()?),
                _ if self.0.len() >= MATCHES => drop(map.next_value::<IgnoredAny>()?),
                _ => map.next_value_seed(Walk(self.0))?,
            }
        }
        if !one.home.names.is_empty() && !one.away.names.is_empty() && self.0.len() < MATCHES {
            self.0.push(one);
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        while items.next_element_seed(Walk(self.0))?.is_some() {}
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

/// A small piece of the data as a value; a long one is nothing.
fn value(raw: &RawValue) -> Value {
    let small = raw.get().len() <= PIECE_BYTES;
    small.then(|| serde_json::from_str(raw.get()).ok()).flatten().unwrap_or_default()
}

fn side(raw: &RawValue) -> Side {
    let value = value(raw);
    let name = match &value["name"] {
        Value::Object(name) => ["fullName", "shortName"].iter().filter_map(|key| name.get(*key)).collect(),
        other => vec![other, &value["fullName"], &value["shortName"]],
    };
    let mut names: Vec<String> = name.into_iter().filter_map(Value::as_str).map(str::to_owned).collect();
    names.retain(|name| (2..100).contains(&name.len()));
    names.dedup();
    let actions = value["actions"].as_array().map(Vec::as_slice).unwrap_or_default();
    Side { names, score: short(&value["score"]), events: actions.iter().take(EVENTS).filter_map(event).collect() }
}

/// `A. Player 21', 80'`, with what it was unless it was a goal.
fn event(action: &Value) -> Option<String> {
    let player = action["playerName"].as_str().filter(|player| player.len() < 100)?;
    let times = action["actions"].as_array()?.iter().take(EVENTS).map(|one| {
        let time = short(&one["timeLabel"]["value"]);
        match one["type"].as_str().unwrap_or("Goal") {
            "Goal" => time,
            kind => format!("{time} {}", kind.to_lowercase().chars().take(30).collect::<String>()),
        }
    });
    Some(format!("{player} {}", times.collect::<Vec<_>>().join(", ")))
}

/// `{"value": "FT", "accessible": "Full time"}`, or a string.
fn label(raw: &RawValue) -> String {
    let value = value(raw);
    [&value["accessible"], &value["value"], &value]
        .into_iter()
        .map(short)
        .find(|text| !text.is_empty())
        .unwrap_or_default()
}

/// A short string or a number as text.
fn short(value: &Value) -> String {
    match value {
        Value::String(text) if text.len() < 100 => text.clone(),
        Value::Number(number) => number.to_string(),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DATA: &str = r#"{"a": [{"events": [{"home": {"fullName": "Northbrook", "shortName": "Northbrook", "score": "2",
        "actions": [{"playerName": "A. Quill", "actions": [
            {"type": "Goal", "timeLabel": {"value": "21'"}}, {"type": "Penalty", "timeLabel": {"value": "80'"}}]}]},
        "away": {"name": {"fullName": "Eastmere", "shortName": "East"}, "score": 1},
        "statusComment": {"value": "FT", "accessible": "Full time"}}]}]}"#;

    #[test]
    fn matches_are_read_from_every_kind_of_script() {
        let quoted = serde_json::to_string(DATA).expect("json");
        for script in [DATA.to_owned(), format!("window.X = {DATA};"), format!("window.__X__={quoted}; more()")] {
            let matches = matches_in(&script);
            assert_eq!(matches.len(), 1, "{script}");
            assert_eq!(matches[0].line(), "Northbrook 2, Eastmere 1, Full time (A. Quill 21', 80' penalty)");
        }
    }

    #[test]
    fn a_match_belongs_to_the_line_that_names_both_teams() {
        let found = &matches_in(DATA)[0];
        assert!(found.is_in("Northbrook 2 , East 1"));
        assert!(!found.is_in("Northbrook 2 , Easton 1"));
        assert!(!found.is_in("Northbrook won"));
    }

    #[test]
    fn other_data_holds_no_match() {
        for script in
            ["", "home away score", "x = {\"home\": \"a\", \"away\": 3, \"score\": []}", "= home away score ="]
        {
            assert_eq!(matches_in(script), [], "{script}");
        }
    }
}
