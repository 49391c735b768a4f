//! The text of a page as blocks in page order, each with what was open around it.
//!
//! A block knows its innermost container, and a container its parent; there is no tree of elements.
//! Both are bounded: what comes after the last block is added to it, and what is nested in a
//! container that was not kept belongs to the one around it.

use crate::outline::{Around, Tag};
use crate::text::{Text, weight};

const BLOCKS: usize = 50_000;
const CONTAINERS: usize = 50_000;

/// A piece of text between two edges of block elements.
#[derive(Debug)]
pub(crate) struct Block {
    start: u32,
    end: u32,
    /// Its length in Latin letters.
    pub(crate) weight: u32,
    /// Bytes of it inside links, inside buttons, and for screen readers only.
    pub(crate) linked: u32,
    pub(crate) control: u32,
    pub(crate) spoken: u32,
    /// The last link that it is in.
    pub(crate) link: Option<u32>,
    pub(crate) container: u32,
    pub(crate) depth: u16,
    pub(crate) tag: Tag,
    pub(crate) around: Around,
}

/// An element that holds blocks.
#[derive(Debug)]
pub(crate) struct Container {
    pub(crate) parent: u32,
    /// The last container inside it, or itself: those inside are a range.
    pub(crate) last: u32,
    pub(crate) tag: Tag,
    /// Navigation, a footer and the like.
    pub(crate) landmark: bool,
    /// A cookie or consent notice.
    pub(crate) notice: bool,
}

/// The blocks of a page, and the one that is being read.
#[derive(Debug)]
pub(crate) struct Blocks {
    text: String,
    pub(crate) blocks: Vec<Block>,
    pub(crate) containers: Vec<Container>,
    open: Vec<u32>,
    pub(crate) current: Text,
    linked: usize,
    control: usize,
    spoken: usize,
    link: Option<u32>,
}

impl Default for Blocks {
    fn default() -> Self {
        let root = Container { parent: 0, last: 0, tag: Tag::default(), landmark: false, notice: false };
        Self {
            text: String::new(),
            blocks: Vec::new(),
            containers: vec![root],
            open: vec![0],
            current: Text::default(),
            linked: 0,
            control: 0,
            spoken: 0,
            link: None,
        }
    }
}

impl Blocks {
    pub(crate) fn text(&self, block: &Block) -> &str {
        &self.text[block.start as usize..block.end as usize]
    }

    /// The innermost open container.
    pub(crate) fn container(&self) -> u32 {
        self.open.last().copied().unwrap_or_default()
    }

    /// Bytes of the block that is being read.
    pub(crate) fn current_bytes(&self) -> usize {
        self.current.len()
    }

    /// Notes how much of the text is read in a link, in a button, or by a screen reader only.
    pub(crate) fn note(&mut self, bytes: usize, link: Option<usize>, control: bool, spoken: bool) {
        if let Some(link) = link {
            self.linked += bytes;
            self.link = u32::try_from(link).ok();
        }
        self.control += if control { bytes } else { 0 };
        self.spoken += if spoken { bytes } else { 0 };
    }

    /// Ends the block that is being read.
    pub(crate) fn flush(&mut self, tag: Tag, around: &Around) {
        let narrow = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        if !self.current.is_empty() {
            if self.blocks.len() >= BLOCKS {
                self.text.push('\n');
            }
            let start = self.text.len();
            self.current.take(&mut self.text);
            if self.blocks.len() >= BLOCKS
                && let Some(last) = self.blocks.last_mut()
            {
                last.end = narrow(self.text.len());
            } else if self.text.len() > start {
                self.blocks.push(Block {
                    start: narrow(start),
                    end: narrow(self.text.len()),
                    weight: narrow(weight(&self.text[start..])),
                    linked: narrow(self.linked),
                    control: narrow(self.control),
                    spoken: narrow(self.spoken),
                    link: self.link,
                    container: self.container(),
                    depth: u16::try_from(self.open.len()).unwrap_or(u16::MAX),
                    tag,
                    around: around.clone(),
                });
            }
        }
        (self.linked, self.control, self.spoken, self.link) = (0, 0, 0, None);
    }

    /// Starts a container; false when there are too many to keep one more.
    pub(crate) fn open(&mut self, tag: Tag, landmark: bool, notice: bool) -> bool {
        if self.containers.len() >= CONTAINERS {
            return false;
        }
        let index = u32::try_from(self.containers.len()).unwrap_or(u32::MAX);
        self.containers.push(Container { parent: self.container(), last: index, tag, landmark, notice });
        self.open.push(index);
        true
    }

    /// Ends the innermost container.
    pub(crate) fn close(&mut self) {
        if self.open.len() > 1
            && let Some(index) = self.open.pop()
        {
            self.containers[index as usize].last = u32::try_from(self.containers.len() - 1).unwrap_or(u32::MAX);
        }
    }

    /// Ends everything that is still open.
    pub(crate) fn finish(&mut self) {
        while self.open.len() > 1 {
            self.close();
        }
        self.containers[0].last = u32::try_from(self.containers.len() - 1).unwrap_or(u32::MAX);
    }
}
