//! What the whole page says about each of its blocks: sums over containers, where the long text is,
//! which landmarks and names tell nothing here.

use crate::blocks::{Block, Blocks};
use crate::names::Name;
use crate::outline::{Mark, Tag};

/// A block this long, in Latin letters, with few links in it, is running text.
const LONG: u32 = 80;
/// The shares of the long text whose smallest containers are looked for.
const CORES: [f32; 3] = [0.85, 0.6, 0.4];

/// Sums over the blocks of a container.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Sums {
    pub(crate) weight: f32,
    pub(crate) linked: f32,
    pub(crate) paragraphs: f32,
    pub(crate) blocks: f32,
    pub(crate) long: f32,
    /// Of the text that counts for the page.
    pub(crate) core: f32,
}

impl Sums {
    fn add(&mut self, other: Self) {
        self.weight += other.weight;
        self.linked += other.linked;
        self.paragraphs += other.paragraphs;
        self.blocks += other.blocks;
        self.long += other.long;
        self.core += other.core;
    }
}

/// What a page says about its blocks.
#[derive(Debug)]
pub(crate) struct Layout {
    /// For each container.
    pub(crate) sums: Vec<Sums>,
    /// For each container: in a landmark or a consent notice that is one here.
    skipped: Vec<bool>,
    reveals: Reveals,
    /// For each of [`Name::ALL`]: it covers most of the text, and so tells nothing.
    silent: [bool; Name::ALL.len()],
    /// The smallest containers with 85, 60 and 40 per cent of the long text.
    pub(crate) cores: [Option<u32>; CORES.len()],
    /// Visible text of the page, and the long text that counts.
    pub(crate) visible: f32,
    pub(crate) long: f32,
}

impl Layout {
    pub(crate) fn of(page: &Blocks) -> Self {
        let mut layout = Self {
            sums: vec![Sums::default(); page.containers.len()],
            skipped: vec![false; page.containers.len()],
            reveals: Reveals::of(page),
            silent: [false; Name::ALL.len()],
            cores: [None; CORES.len()],
            visible: 0.0,
            long: 0.0,
        };
        layout.sum_blocks(page);
        layout.find_landmarks(page);
        layout.find_silent_names(page);
        layout.find_cores(page);
        layout
    }

    fn sum_blocks(&mut self, page: &Blocks) {
        for block in page.blocks.iter().filter(|block| self.reveals.shows(block)) {
            let weight = block.weight as f32;
            self.sums[block.container as usize].add(Sums {
                weight,
                linked: weight * link_share(page, block),
                paragraphs: if block.tag == Tag::known("p") { weight } else { 0.0 },
                blocks: 1.0,
                long: if is_long(page, block) { weight } else { 0.0 },
                core: 0.0,
            });
        }
        for index in (1..page.containers.len()).rev() {
            let sums = self.sums[index];
            self.sums[page.containers[index].parent as usize].add(sums);
        }
        self.visible = self.sums[0].weight;
    }

    /// A landmark with more than half of the long text, or with nearly all text, is none; a notice
    /// with two fifths of the text is none either.
    fn find_landmarks(&mut self, page: &Blocks) {
        let all = self.sums[0];
        for (index, container) in page.containers.iter().enumerate().skip(1) {
            let sums = self.sums[index];
            let most = all.long > 0.0 && sums.long > 0.5 * all.long || sums.weight > 0.9 * all.weight;
            let landmark = container.landmark && !most;
            let notice = container.notice && !most && sums.weight < 0.4 * all.weight;
            self.skipped[index] = self.skipped[container.parent as usize] || landmark || notice;
        }
    }

    fn find_silent_names(&mut self, page: &Blocks) {
        let mut under = [0.0; Name::ALL.len()];
        let mut all = 0.0;
        for block in page.blocks.iter().filter(|block| self.shows(block) && is_long(page, block) && !self.skips(block))
        {
            all += block.weight as f32;
            for name in Name::ALL {
                if block.around.name(name) > 0 {
                    under[name as usize] += block.weight as f32;
                }
            }
        }
        for name in Name::ALL.into_iter().take(Name::Body as usize) {
            self.silent[name as usize] = all > 0.0 && under[name as usize] >= 0.5 * all;
        }
    }

    fn find_cores(&mut self, page: &Blocks) {
        for block in &page.blocks {
            if self.shows(block) && is_long(page, block) && !self.skips(block) && self.name(block, Name::Comment) == 0 {
                self.sums[block.container as usize].core += block.weight as f32;
                self.long += block.weight as f32;
            }
        }
        for index in (1..page.containers.len()).rev() {
            let core = self.sums[index].core;
            self.sums[page.containers[index].parent as usize].core += core;
        }
        if self.long > 0.0 {
            self.cores = CORES.map(|share| self.smallest_with(page, share * self.long));
        }
    }

    /// The deepest container that holds `core` of the text: at most one on each level can, so it is
    /// the last that does on the way down.
    fn smallest_with(&self, page: &Blocks, core: f32) -> Option<u32> {
        let mut best = 0;
        for (index, container) in page.containers.iter().enumerate().skip(1) {
            if self.sums[index].core >= core && container.parent == best {
                best = u32::try_from(index).ok()?;
            }
        }
        Some(best)
    }

    /// Whether a person who looks at the page sees the block.
    pub(crate) fn shows(&self, block: &Block) -> bool {
        self.reveals.shows(block)
    }

    /// Whether the block stands in a landmark or a notice.
    pub(crate) fn skips(&self, block: &Block) -> bool {
        self.skipped[block.container as usize]
    }

    pub(crate) fn skips_container(&self, container: u32) -> bool {
        self.skipped[container as usize]
    }

    /// How many open elements around the block have a telling name, unless it tells nothing here.
    pub(crate) fn name(&self, block: &Block, name: Name) -> u8 {
        if self.silent[name as usize] { 0 } else { block.around.name(name) }
    }

    /// Whether a core holds the block.
    pub(crate) fn in_core(&self, page: &Blocks, core: usize, block: &Block) -> bool {
        self.cores[core].is_some_and(|core| (core..=page.containers[core as usize].last).contains(&block.container))
    }
}

/// Which hidden text is shown after all, because there is hardly any other.
#[derive(Debug, Clone, Copy, Default)]
struct Reveals {
    weakly: bool,
    fully: bool,
    no_script: bool,
}

impl Reveals {
    fn of(page: &Blocks) -> Self {
        let sum = |wanted: fn(&Block) -> bool| -> (u32, u32) {
            let blocks = || page.blocks.iter().filter(|block| wanted(block));
            let long = blocks().filter(|block| is_long(page, block)).map(|block| block.weight).sum();
            (blocks().map(|block| block.weight).sum(), long)
        };
        let (visible, visible_long) = sum(|block| Self::default().shows(block));
        let (weakly, weakly_long) =
            sum(|block| block.around.is(Mark::HiddenWeakly) && !block.around.is(Mark::HiddenFully));
        let (no_script, no_script_long) =
            sum(|block| block.around.is(Mark::NoScript) && !block.around.is(Mark::HiddenFully));
        let (fully, _) = sum(|block| block.around.is(Mark::HiddenFully));
        let weakly = weakly > visible || weakly_long > visible_long;
        let no_script =
            visible < 250 && no_script > visible || no_script_long > 500 && no_script_long > 3 * visible_long;
        Self { weakly, no_script, fully: !weakly && !no_script && visible < 100 && fully >= 500 }
    }

    fn shows(self, block: &Block) -> bool {
        let around = &block.around;
        (self.fully || !around.is(Mark::HiddenFully))
            && (self.weakly || !around.is(Mark::HiddenWeakly))
            && (self.no_script || !around.is(Mark::NoScript))
            && (!around.is(Mark::HiddenFromSpeech) || block.weight >= LONG)
    }
}

pub(crate) fn is_long(page: &Blocks, block: &Block) -> bool {
    block.weight > LONG && link_share(page, block) < 0.3
}

/// The part of a block that is inside links.
pub(crate) fn link_share(page: &Blocks, block: &Block) -> f32 {
    (block.linked as f32 / page.text(block).len().max(1) as f32).min(1.0)
}
