//! The numbers that the model judges a block by. Their names are the rows of the weights' file, and
//! the training reads them from here, so that there is one definition.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, RandomState};

use crate::blocks::{Block, Blocks};
use crate::layout::{Layout, Sums, is_long, link_share};
use crate::names::Name;
use crate::outline::{Mark, Tag};
use crate::text::is_wide;

/// Text of linked data that blocks are compared with, in bytes.
const COMPARED_BYTES: usize = 256 * 1024;

const TAGS: [&str; 24] = [
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
    "tr",
    "summary",
    "caption",
];
/// Containers around a block that are looked at, from the inside.
const LEVELS: usize = 5;
/// Blocks around a block that are looked at.
const NEIGHBOURS: [isize; 5] = [-2, -1, 1, 2, 3];
const NEAR: usize = 6;
/// How many blocks to each side the density of text is averaged over.
const WINDOW: usize = 4;

/// What the page says about its article besides the blocks.
#[derive(Debug, Default)]
pub(crate) struct Hints<'a> {
    pub(crate) title: &'a str,
    pub(crate) description: &'a str,
    pub(crate) body: &'a str,
}

/// The features of the blocks of a page, a row a block.
#[derive(Debug)]
pub(crate) struct Features<'a> {
    page: &'a Blocks,
    layout: &'a Layout,
    near: Vec<[f32; NEAR]>,
    density: Vec<f32>,
    whole: Whole,
    title: HashSet<u64>,
    description: HashSet<u64>,
    body: Option<HashSet<u64>>,
    repeated: HashMap<u64, u32>,
    hash: RandomState,
    rules: Vec<bool>,
}

/// Facts of the page that every row has.
#[derive(Debug, Default)]
struct Whole {
    blocks: f32,
    total: f32,
    first_heading: Option<usize>,
    has_item: bool,
    has_article: bool,
    has_main: bool,
    body_named: f32,
    /// The first and the last long block of the core.
    span: Option<(usize, usize)>,
}

impl<'a> Features<'a> {
    pub(crate) fn of(page: &'a Blocks, layout: &'a Layout, hints: &Hints<'_>, rules: Vec<bool>) -> Self {
        let hash = RandomState::new();
        let near: Vec<_> = page.blocks.iter().map(|block| near(page, block)).collect();
        let grams = |text: &str, length| grams(&hash, text, length).collect();
        let body = &hints.body[..hints.body.floor_char_boundary(COMPARED_BYTES)];
        let mut repeated = HashMap::new();
        for block in &page.blocks {
            *repeated.entry(hash.hash_one(page.text(block))).or_default() += 1;
        }
        Self {
            page,
            layout,
            density: smooth(&near),
            near,
            whole: Whole::of(page, layout),
            title: grams(hints.title, 1),
            description: grams(hints.description, 2),
            body: (body.len() > 250).then(|| grams(body, 3)),
            repeated,
            rules,
            hash,
        }
    }

    /// The names of a row's numbers.
    pub(crate) fn names() -> Vec<String> {
        let mut names: Vec<String> = [
            "length",
            "words",
            "linked",
            "ends_sentence",
            "commas",
            "sentences",
            "digits",
            "capitals",
            "copyright",
            "bar",
            "depth",
            "repeated",
            "rules",
            "hidden",
            "article_body",
            "all_link",
            "button",
            "spoken",
        ]
        .map(str::to_owned)
        .to_vec();
        names.extend(TAGS.iter().map(|tag| format!("tag_{tag}")));
        names.extend((0..Mark::ELEMENTS).map(|mark| format!("in_{mark}")));
        names.extend(Name::ALL.iter().map(|name| format!("name_{name:?}").to_lowercase()));
        names.extend(
            ["position", "seen", "after_heading", "below_heading", "page_blocks", "page_length"].map(str::to_owned),
        );
        for level in 1..=LEVELS {
            names.extend(
                ["length", "share", "linked", "paragraphs", "blocks", "long"]
                    .map(|sum| format!("container_{level}_{sum}")),
            );
        }
        names.extend(
            [
                "like_body",
                "has_body",
                "like_title",
                "like_description",
                "has_item",
                "not_item",
                "has_article",
                "not_article",
                "has_main",
                "not_main",
                "body_named",
                "not_body_named",
                "is_body_named",
                "skipped",
            ]
            .map(str::to_owned),
        );
        for core in [85, 60, 40] {
            names.extend([format!("core_{core}"), format!("core_{core}_distance")]);
        }
        names.extend(
            ["before", "between", "behind", "far_before", "far_behind", "page_long", "container_core", "parent_core"]
                .map(str::to_owned),
        );
        for at in NEIGHBOURS {
            names.extend(
                ["length", "linked", "ends_sentence", "sentences", "p", "li"].map(|fact| format!("near_{at}_{fact}")),
            );
        }
        names.push("density".to_owned());
        names
    }

    /// Writes the rows of all blocks, one after the other, through `row`.
    pub(crate) fn rows(&self, mut row: impl FnMut(usize, &[f32])) {
        let mut numbers = Vec::new();
        let mut seen = 0.0;
        for (index, block) in self.page.blocks.iter().enumerate() {
            numbers.clear();
            self.own(index, block, &mut numbers);
            self.around(block, &mut numbers);
            self.position(index, seen, &mut numbers);
            self.containers(block, &mut numbers);
            self.likeness(block, &mut numbers);
            self.regions(index, block, &mut numbers);
            self.neighbours(index, &mut numbers);
            row(index, &numbers);
            seen += block.weight as f32;
        }
    }

    fn own(&self, index: usize, block: &Block, row: &mut Vec<f32>) {
        let text = self.page.text(block);
        let bytes = text.len().max(1) as f32;
        let count = |wanted: fn(char) -> bool| text.chars().filter(|one| wanted(*one)).count() as f32;
        let characters = text.chars().count().max(1) as f32;
        let [length, linked, ends, sentences, ..] = self.near[index];
        let repeated = self.repeated.get(&self.hash.hash_one(text)).copied().unwrap_or_default();
        row.extend([
            length,
            (words(text) as f32).ln_1p(),
            linked,
            ends,
            count(|one| matches!(one, ',' | '，' | '、')).min(10.0),
            sentences,
            count(|one| one.is_numeric()) / characters,
            count(char::is_uppercase) / characters,
            flag(text.contains('©')),
            flag(text.contains('|')),
            f32::from(block.depth.min(50)) / 10.0,
            flag(repeated > 1),
            flag(self.rules[index]),
            flag(block.around.is(Mark::HiddenFully) || block.around.is(Mark::HiddenWeakly)),
            flag(block.around.is(Mark::ArticleBody)),
            flag(linked > 0.95),
            block.control as f32 / bytes,
            (block.spoken as f32 / bytes).min(1.0),
        ]);
    }

    fn around(&self, block: &Block, row: &mut Vec<f32>) {
        row.extend(TAGS.iter().map(|tag| flag(block.tag == Tag::known(tag))));
        row.extend((0..Mark::ELEMENTS).map(|mark| f32::from(block.around.mark(mark))));
        row.extend(Name::ALL.iter().map(|name| f32::from(self.layout.name(block, *name))));
    }

    fn position(&self, index: usize, seen: f32, row: &mut Vec<f32>) {
        let Whole { blocks, total, first_heading, .. } = self.whole;
        row.extend([
            index as f32 / blocks,
            seen / total,
            first_heading.map_or(0.0, |heading| (index as f32 - heading as f32) / blocks),
            flag(first_heading.is_some_and(|heading| index > heading)),
            blocks.ln_1p(),
            total.ln_1p(),
        ]);
    }

    fn containers(&self, block: &Block, row: &mut Vec<f32>) {
        let mut container = block.container;
        for _ in 0..LEVELS {
            if container == 0 {
                row.extend([0.0; 6]);
                continue;
            }
            let Sums { weight, linked, paragraphs, blocks, long, .. } = self.layout.sums[container as usize];
            let whole = weight.max(1.0);
            row.extend([
                weight.ln_1p(),
                weight / self.whole.total,
                linked / whole,
                paragraphs / whole,
                blocks.ln_1p(),
                long / whole,
            ]);
            container = self.page.containers[container as usize].parent;
        }
    }

    fn likeness(&self, block: &Block, row: &mut Vec<f32>) {
        let text = self.page.text(block);
        row.extend([
            self.body.as_ref().map_or(-1.0, |body| share(body, grams(&self.hash, text, 3)).unwrap_or(-0.5)),
            flag(self.body.is_some()),
            share(&self.title, grams(&self.hash, text, 1)).unwrap_or_default(),
            share(&self.description, grams(&self.hash, text, 2)).unwrap_or_default(),
        ]);
    }

    fn regions(&self, index: usize, block: &Block, row: &mut Vec<f32>) {
        let around = &block.around;
        let Whole { has_item, has_article, has_main, body_named, span, .. } = self.whole;
        let named = self.layout.name(block, Name::Body) > 0;
        row.extend([
            flag(has_item),
            flag(has_item && !around.is(Mark::ArticleBody)),
            flag(has_article),
            flag(has_article && !around.is(Mark::Article)),
            flag(has_main),
            flag(has_main && !around.is(Mark::Main)),
            body_named,
            flag(body_named > 0.3 && !named),
            flag(body_named > 0.3 && named),
            flag(self.layout.skips(block)),
        ]);
        for core in 0..self.layout.cores.len() {
            let inside = self.layout.in_core(self.page, core, block);
            row.extend([flag(inside), if inside { self.distance(core, block) } else { 5.0 }]);
        }
        let (first, last) = span.unwrap_or_default();
        let behind = |from: usize, to: usize| if to > from { ((to - from) as f32).ln_1p() } else { 0.0 };
        let core = |container: u32| self.layout.sums[container as usize].core / self.layout.long.max(1.0);
        row.extend([
            flag(index < first),
            flag((first..=last).contains(&index)),
            flag(index > last),
            behind(index, first),
            behind(last, index),
            self.layout.long / self.whole.total,
            core(block.container),
            core(self.page.containers[block.container as usize].parent),
        ]);
    }

    /// How many containers lie between a core and a block in it.
    fn distance(&self, core: usize, block: &Block) -> f32 {
        let root = self.layout.cores[core].unwrap_or_default();
        let mut container = block.container;
        let mut steps: f32 = 1.0;
        while container != root && container != 0 && steps < 60.0 {
            container = self.page.containers[container as usize].parent;
            steps += 1.0;
        }
        steps.ln_1p()
    }

    fn neighbours(&self, index: usize, row: &mut Vec<f32>) {
        for at in NEIGHBOURS {
            let neighbour = index.checked_add_signed(at).and_then(|index| self.near.get(index));
            row.extend(neighbour.copied().unwrap_or_default());
        }
        row.push(self.density[index]);
    }
}

impl Whole {
    fn of(page: &Blocks, layout: &Layout) -> Self {
        let any = |mark| page.blocks.iter().any(|block| block.around.is(mark));
        let long = |block: &&Block| is_long(page, block) && layout.shows(block) && !layout.skips(block);
        let named: u32 = page
            .blocks
            .iter()
            .filter(long)
            .filter(|block| block.around.name(Name::Body) > 0)
            .map(|block| block.weight)
            .sum();
        let core = |block: &Block| layout.in_core(page, 1, block) && is_long(page, block) && layout.shows(block);
        let first = page.blocks.iter().position(core);
        let last = page.blocks.iter().rposition(core);
        Self {
            blocks: page.blocks.len().max(1) as f32,
            total: page.blocks.iter().map(|block| block.weight as f32).sum::<f32>().max(1.0),
            first_heading: page.blocks.iter().position(|block| block.tag == Tag::known("h1")),
            has_item: any(Mark::ArticleBody),
            has_article: any(Mark::Article),
            has_main: any(Mark::Main),
            body_named: named as f32 / layout.long.max(1.0),
            span: first.zip(last),
        }
    }
}

fn near(page: &Blocks, block: &Block) -> [f32; NEAR] {
    let text = page.text(block);
    let ends = text.ends_with(['.', '!', '?', '。', '！', '？', '…', '”', '"', '»', '」']);
    let mut sentences = 0.0;
    let mut previous = ' ';
    for character in text.chars() {
        let ended = matches!(previous, '.' | '!' | '?') && character.is_whitespace();
        sentences += flag(ended || matches!(character, '。' | '！' | '？'));
        previous = character;
    }
    sentences += flag(matches!(previous, '.' | '!' | '?'));
    [
        (block.weight as f32).ln_1p(),
        link_share(page, block),
        flag(ends),
        f32::min(sentences, 10.0),
        flag(block.tag == Tag::known("p")),
        flag(block.tag == Tag::known("li")),
    ]
}

/// The mean length of what is not linked, over each block and those around it.
fn smooth(near: &[[f32; NEAR]]) -> Vec<f32> {
    let density = |at: usize| near[at][0] * (1.0 - near[at][1]);
    (0..near.len())
        .map(|at| {
            let window = at.saturating_sub(WINDOW)..(at + WINDOW + 1).min(near.len());
            window.map(density).sum::<f32>() / (2 * WINDOW + 1) as f32
        })
        .collect()
}

fn flag(is: bool) -> f32 {
    f32::from(u8::from(is))
}

/// Words, and ideographs one by one.
fn tokens(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        rest = rest.trim_start_matches(|one: char| !one.is_alphanumeric() && one != '_');
        let first = rest.chars().next()?;
        let end = if is_wide(first) {
            first.len_utf8()
        } else {
            rest.find(|one: char| !(one.is_alphanumeric() || one == '_') || is_wide(one)).unwrap_or(rest.len())
        };
        let (token, after) = rest.split_at(end);
        rest = after;
        Some(token)
    })
}

fn words(text: &str) -> usize {
    tokens(text).count()
}

/// A number for each run of `length` tokens.
fn grams<'t>(hash: &'t RandomState, text: &'t str, length: usize) -> impl Iterator<Item = u64> + 't {
    let mut last = [0; 3];
    tokens(text).enumerate().filter_map(move |(at, token)| {
        last.rotate_left(1);
        last[2] = hash.hash_one(token);
        (at + 1 >= length).then(|| hash.hash_one(&last[3 - length..]))
    })
}

/// The part of `grams` that `known` holds.
fn share(known: &HashSet<u64>, grams: impl Iterator<Item = u64>) -> Option<f32> {
    let (mut all, mut found) = (0.0, 0.0);
    for gram in grams {
        all += 1.0;
        found += flag(known.contains(&gram));
    }
    (all > 0.0).then(|| found / all)
}
