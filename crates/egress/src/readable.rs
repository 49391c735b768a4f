//! Which blocks of a page are its text: on an article those of the article, on any other page all
//! that is shown but navigation and the like.

use std::collections::{BTreeSet, HashMap};

use crate::blocks::{Block, Blocks};
use crate::features::{Features, Hints};
use crate::layout::{Layout, is_long, link_share};
use crate::model;
use crate::names::Name;
use crate::outline::{Mark, Tag};

/// The part of the shown text that long paragraphs have on an article.
const ARTICLE_SHARE: f32 = 0.1;
/// A page with less text than this, in Latin letters, is its own content.
const SMALL_PAGE: f32 = 700.0;
/// The odds above which a block belongs to the article, and what the page's own marks add.
const THRESHOLD: f32 = 0.2;
const SMALL_PAGE_ODDS: f32 = 4.0;
const ARTICLE_BODY_ODDS: f32 = 1.0;
const TABLE_ODDS: f32 = 2.0;
/// What a telling name costs a block that is not long text.
const NAMED_ODDS: f32 = 3.0;

/// The kind of text that was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Article,
    Other,
}

/// The blocks that are the page's text, in page order.
pub(crate) fn readable(page: &Blocks, layout: &Layout, hints: &Hints<'_>) -> (Kind, Vec<usize>) {
    if Gate::of(page, layout).is_article() {
        let kept = article(page, layout, hints);
        if !kept.is_empty() {
            return (Kind::Article, kept);
        }
    }
    (Kind::Other, shown(page, layout))
}

/// What tells an article from other pages.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    /// All shown text, and the part of it in long paragraphs outside landmarks.
    shown: f32,
    long: f32,
    /// Text in links outside landmarks.
    linked: f32,
    /// Long text of posts of a forum.
    posts: f32,
    /// The part of the core's text that is linked, and that is long.
    core_linked: f32,
    core_long: f32,
}

impl Gate {
    pub(crate) fn of(page: &Blocks, layout: &Layout) -> Self {
        let mut gate = Self { long: layout.long, ..Self::default() };
        for (_, block) in blocks(page).filter(|(_, block)| layout.shows(block)) {
            let weight = block.weight as f32;
            gate.shown += weight;
            gate.linked += if layout.skips(block) { 0.0 } else { weight * link_share(page, block) };
            if is_long(page, block) {
                gate.posts += if block.around.name(Name::Forum) > 0 { weight } else { 0.0 };
            }
        }
        if let Some(core) = layout.cores[1] {
            let sums = layout.sums[core as usize];
            gate.core_linked = sums.linked / sums.weight.max(1.0);
            gate.core_long = sums.core / sums.weight.max(1.0);
        }
        gate
    }

    /// At least a tenth of the text is in long paragraphs; they are not the posts of a forum; and they
    /// are not the teasers of a list, which stand far apart, with links in between,
    /// or a note above one.
    fn is_article(&self) -> bool {
        let long = self.long > 0.0 && self.long >= ARTICLE_SHARE * self.shown;
        let forum = self.posts > 0.9 * self.long;
        let list = self.core_long < 0.2 || self.core_linked > 0.4 && self.long < 0.25 * self.shown;
        let note = self.long < 400.0 && self.linked > self.long;
        long && !forum && !list && !note
    }

    #[cfg(feature = "training")]
    pub(crate) fn facts(&self) -> serde_json::Value {
        let Self { shown, long, linked, posts, core_linked, core_long } = self;
        serde_json::json!({"shown": shown, "long": long, "posts": posts, "linked": linked,
            "core_linked": core_linked, "core_long": core_long, "is_article": self.is_article()})
    }
}

fn blocks(page: &Blocks) -> impl Iterator<Item = (usize, &Block)> {
    page.blocks.iter().enumerate()
}

/// The blocks of the article by the model, the rules among its features.
pub(crate) fn article(page: &Blocks, layout: &Layout, hints: &Hints<'_>) -> Vec<usize> {
    let features = Features::of(page, layout, hints, rules(page, layout));
    let mut odds = model::judge(page, &features);
    weigh_the_page(page, layout, &mut odds);
    let keeps = |odds: f32, threshold: f32| odds > threshold;
    let readable = |index: usize| page.text(&page.blocks[index]).chars().any(char::is_alphanumeric);
    let kept: Vec<usize> = (0..odds.len()).filter(|index| keeps(odds[*index], THRESHOLD) && readable(*index)).collect();
    if !kept.is_empty() {
        return with_whole_lists(page, layout, kept);
    }
    let best = odds.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    (0..odds.len()).filter(|index| keeps(odds[*index], best - 1.5) && readable(*index)).collect()
}

/// The list that an item without links stands in.
fn list_of(page: &Blocks, layout: &Layout, block: &Block) -> Option<u32> {
    let item = &page.containers[block.container as usize];
    let plain = block.linked == 0 && block.control == 0 && layout.shows(block) && !layout.skips(block);
    (plain && item.tag == Tag::known("li") && !is_named_otherwise(page, layout, block)).then_some(item.parent)
}

/// Adds the other items of lists most of whose items were kept: short facts (`Group: K`) say little to the model.
fn with_whole_lists(page: &Blocks, layout: &Layout, kept: Vec<usize>) -> Vec<usize> {
    let mut lists: HashMap<u32, (usize, usize)> = HashMap::new();
    let kept: BTreeSet<usize> = kept.into_iter().collect();
    for (index, block) in blocks(page) {
        if let Some(list) = list_of(page, layout, block) {
            let (items, kept_items) = lists.entry(list).or_default();
            *items += 1;
            *kept_items += usize::from(kept.contains(&index));
        }
    }
    let is_whole = |block: &Block| {
        let list = list_of(page, layout, block).and_then(|list| lists.get(&list));
        list.is_some_and(|(items, kept_items)| 2 * kept_items > *items)
    };
    blocks(page).filter(|(index, block)| kept.contains(index) || is_whole(block)).map(|(index, _)| index).collect()
}

/// What the model cannot see in one block: a small page is its own content, `itemprop=articleBody` with
/// enough text is the article, and a page whose core is a table is read with its cells.
fn weigh_the_page(page: &Blocks, layout: &Layout, odds: &mut [f32]) {
    let sum = |wanted: &dyn Fn(&Block) -> bool| -> f32 {
        blocks(page).filter(|(_, block)| wanted(block)).map(|(_, block)| block.weight as f32).sum()
    };
    let base = |block: &Block| layout.shows(block) && !layout.skips(block) && block.control == 0;
    let small = sum(&base) < SMALL_PAGE;
    let body = |block: &Block| block.around.is(Mark::ArticleBody);
    let has_body = sum(&|block| body(block) && link_share(page, block) < 0.5) >= 140.0;
    let core = |block: &Block| layout.in_core(page, 1, block);
    let cell = |block: &Block| matches!(block.tag, tag if tag == Tag::known("td") || tag == Tag::known("th") || tag == Tag::known("tr"));
    let table = sum(&|block| core(block) && cell(block)) > 0.5 * sum(&core);
    for (index, block) in blocks(page) {
        let odds = &mut odds[index];
        if !layout.shows(block) {
            *odds = f32::NEG_INFINITY;
            continue;
        }
        *odds += if small && base(block) { SMALL_PAGE_ODDS } else { 0.0 };
        *odds += match (has_body, body(block)) {
            (true, true) => 0.6 * ARTICLE_BODY_ODDS,
            (true, false) => -ARTICLE_BODY_ODDS,
            _ => 0.0,
        };
        *odds += if table && core(block) && cell(block) { TABLE_ODDS } else { 0.0 };
        *odds -= if is_named_otherwise(page, layout, block) { NAMED_ODDS } else { 0.0 };
    }
}

/// A block that names around it call something else, and that is no long text.
fn is_named_otherwise(page: &Blocks, layout: &Layout, block: &Block) -> bool {
    const OTHERWISE: [Name; 4] = [Name::Related, Name::Newsletter, Name::Share, Name::Comment];
    !is_long(page, block) && OTHERWISE.iter().any(|name| layout.name(block, *name) > 0)
}

/// The blocks that rules alone take for the article: inside the smallest container with most of the
/// long text, or in `articleBody`, without what telling names and tags call something else.
pub(crate) fn rules(page: &Blocks, layout: &Layout) -> Vec<bool> {
    const AGAINST: [Name; 13] = [
        Name::Comment,
        Name::Related,
        Name::Share,
        Name::Newsletter,
        Name::Advert,
        Name::Notice,
        Name::Navigation,
        Name::Foot,
        Name::Caption,
        Name::Author,
        Name::Date,
        Name::Tag,
        Name::Side,
    ];
    let base = |block: &Block| layout.shows(block) && !layout.skips(block);
    let long = |block: &Block| block.weight > 80;
    let body: f32 = blocks(page)
        .filter(|(_, block)| base(block) && long(block) && block.around.is(Mark::ArticleBody))
        .map(|(_, block)| block.weight as f32)
        .sum();
    let by_body = body > 0.4 * layout.long && body > 0.0;
    page.blocks
        .iter()
        .map(|block| {
            let region = if by_body { block.around.is(Mark::ArticleBody) } else { layout.in_core(page, 1, block) };
            base(block)
                && region
                && !AGAINST.iter().any(|name| layout.name(block, *name) > 0)
                && !(link_share(page, block) > 0.5 && block.weight < 200)
                && !block.around.is(Mark::Figcaption)
        })
        .collect()
}

/// The blocks of a page that is not an article: the main part when it has enough of the text, without
/// landmarks, notices and buttons.
pub(crate) fn shown(page: &Blocks, layout: &Layout) -> Vec<usize> {
    let base = |block: &Block| layout.shows(block) && !layout.skips(block) && !is_button(page, block);
    let weight = |wanted: &dyn Fn(&Block) -> bool| -> f32 {
        blocks(page).filter(|(_, block)| base(block) && wanted(block)).map(|(_, block)| block.weight as f32).sum()
    };
    let main = |block: &Block| block.around.is(Mark::Main);
    let in_main = weight(&main) >= 0.3 * weight(&|_| true);
    let kept: Vec<usize> =
        blocks(page).filter(|(_, block)| base(block) && (!in_main || main(block))).map(|(index, _)| index).collect();
    if !kept.is_empty() {
        return kept;
    }
    blocks(page).filter(|(_, block)| layout.shows(block)).map(|(index, _)| index).collect()
}

/// A block that is nothing but a button.
fn is_button(page: &Blocks, block: &Block) -> bool {
    block.control as usize >= page.text(block).trim().len()
}
