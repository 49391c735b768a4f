//! The lines of a page that is a list: each thing once.
//!
//! Pages for people say things twice, once for the eye and once for the ear; name the same label in
//! front of every item; and begin with a calendar. A reader of text needs each once.

use std::collections::{HashMap, HashSet};

use crate::blocks::{Block, Blocks};
use crate::links::is_day;
use crate::matches::Match;
use crate::outline::Tag;
use crate::scan::Scanned;

/// A label is this short in words, and stands on the page at least this often.
const LABEL_WORDS: usize = 2;
const LABEL_TIMES: usize = 5;
/// A calendar has at least this many days.
const DAYS: usize = 7;
/// A longer block is never a day of a calendar, a repetition, or the rest of a line.
const SHORT: u32 = 60;
const REST: u32 = 30;
/// How far up an item's list element is looked for, and how many lines get the scorers of a match.
const LEVELS: usize = 12;
const LINES: usize = 1000;

/// The lines of the blocks `kept`.
pub(crate) fn lines(scanned: &Scanned, kept: &[usize]) -> Vec<String> {
    let page = &scanned.blocks;
    let blocks: Vec<&Block> = kept.iter().map(|index| &page.blocks[*index]).collect();
    let labels = labels(page, &blocks);
    let calendar = blocks.iter().filter(|block| is_calendar(scanned, block)).count() >= DAYS;
    let mut lines: Vec<String> = Vec::new();
    let mut item = Item::default();
    for block in blocks {
        let text = page.text(block);
        if labels.contains(text) || calendar && is_calendar(scanned, block) {
            continue;
        }
        let container = list_item(page, block);
        if container.is_none() || item.container != container {
            item = Item { container, ..Item::default() };
        }
        if item.repeats(block, text) {
            continue;
        }
        match lines.last_mut() {
            Some(line) if item.goes_on(block) => {
                for part in text.split(',').filter(|part| !item.has_said(part)) {
                    line.push_str(", ");
                    line.push_str(part.trim());
                }
            }
            _ => lines.push(if is_spoken(block) { text.replace(" ,", ",") } else { text.to_owned() }),
        }
        item.add(block, text);
    }
    name_scorers(scanned, &mut lines);
    lines
}

/// The item of a list whose blocks are being read.
#[derive(Default)]
struct Item {
    container: Option<u32>,
    /// The words of its summary for a screen reader, if it began with one.
    words: HashSet<String>,
    started: bool,
}

impl Item {
    fn add(&mut self, block: &Block, text: &str) {
        if !self.started && is_spoken(block) && words(text).count() > LABEL_WORDS {
            self.words = words(text).collect();
        }
        self.started = true;
    }

    /// Whether the summary has said it already.
    fn repeats(&self, block: &Block, text: &str) -> bool {
        !self.words.is_empty() && block.weight <= SHORT && self.has_said(text)
    }

    /// Whether all words stand in the summary, or there is only one and it is a word in between ("plays").
    fn has_said(&self, text: &str) -> bool {
        let filler = text.trim().chars().all(|one| one.is_lowercase());
        filler || words(text).all(|word| self.words.contains(&word))
    }

    /// Whether a block is the rest of the summary's line.
    fn goes_on(&self, block: &Block) -> bool {
        !self.words.is_empty() && block.weight <= REST
    }
}

fn words(text: &str) -> impl Iterator<Item = String> + '_ {
    text.split(|one: char| !one.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_lowercase)
}

fn is_spoken(block: &Block) -> bool {
    block.spoken > 0
}

/// The innermost list item around a block.
fn list_item(page: &Blocks, block: &Block) -> Option<u32> {
    let mut container = block.container;
    for _ in 0..LEVELS {
        if container == 0 {
            return None;
        }
        let open = page.containers.get(container as usize)?;
        if open.tag == Tag::known("li") {
            return Some(container);
        }
        container = open.parent;
    }
    None
}

/// Short texts for screen readers that stand on the page again and again: "Posted", "Comments".
fn labels<'a>(page: &'a Blocks, blocks: &[&Block]) -> HashSet<&'a str> {
    let mut times: HashMap<&str, usize> = HashMap::new();
    for block in blocks.iter().filter(|block| is_spoken(block) && block.weight <= REST) {
        let text = page.text(block);
        if block.spoken as usize >= text.len()
            && words(text).count() <= LABEL_WORDS
            && !text.chars().any(char::is_numeric)
        {
            *times.entry(text).or_default() += 1;
        }
    }
    times.into_iter().filter(|(_, times)| *times >= LABEL_TIMES).map(|(text, _)| text).collect()
}

/// A block that is nothing but a link to a day.
fn is_calendar(scanned: &Scanned, block: &Block) -> bool {
    block.weight <= SHORT
        && block.linked as usize + 2 >= scanned.blocks.text(block).len()
        && block.link.and_then(|link| scanned.links.get(link as usize)).is_some_and(|link| is_day(&link.href))
}

/// Adds to the line of a match who scored, when the page's data knows. A page that shows nothing of its
/// data gets the matches themselves.
fn name_scorers(scanned: &Scanned, lines: &mut Vec<String>) {
    join_matches(scanned, lines);
    for found in &scanned.matches {
        let Some(events) = found.events() else {
            continue;
        };
        let line = lines.iter_mut().take(LINES).find(|line| line.len() < 200 && found.is_in(line));
        if let Some(line) = line.filter(|line| !line.contains(&events)) {
            line.push(' ');
            line.push_str(&events);
        }
    }
    if lines.iter().map(String::len).sum::<usize>() < 250 {
        let shown: HashSet<String> = lines.iter().cloned().collect();
        lines.extend(scanned.matches.iter().map(|found| found.line()).filter(|line| !shown.contains(line)));
    }
}

/// A match whose teams stand on lines of their own becomes one line, with what the page's data says.
fn join_matches(scanned: &Scanned, lines: &mut Vec<String>) {
    let named: HashMap<&str, &Match> = scanned
        .matches
        .iter()
        .flat_map(|found| found.home.names.iter().map(move |name| (name.as_str(), found)))
        .collect();
    let mut joined: Vec<String> = Vec::with_capacity(lines.len());
    let mut rest = lines.as_slice();
    while let Some((line, after)) = rest.split_first() {
        let found =
            named.get(line.as_str()).filter(|found| after.iter().take(3).any(|next| found.away.names.contains(next)));
        let Some(found) = found else {
            joined.push(line.clone());
            rest = after;
            continue;
        };
        joined.push(found.line());
        let said = after.iter().take_while(|next| {
            found.away.names.contains(next)
                || found.state.eq_ignore_ascii_case(next)
                || found.home.score == **next
                || found.away.score == **next
        });
        rest = &after[said.count()..];
    }
    *lines = joined;
}
