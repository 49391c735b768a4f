//! Readable text, built piece by piece: white space collapses, blocks are lines.

/// Text of a page under construction. There is never white space at either end, never two spaces,
/// never an empty line.
#[derive(Debug, Default)]
pub(crate) struct Text {
    text: String,
    pending: Pending,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Pending {
    #[default]
    Nothing,
    Space,
    Line,
}

impl Text {
    /// Adds running text; `lines` keeps its line breaks, as in `<pre>`.
    pub(crate) fn push(&mut self, piece: &str, lines: bool) {
        let mut rest = piece;
        while let Some(character) = rest.chars().next() {
            let plain = rest.bytes().take_while(u8::is_ascii_graphic).count();
            let length = plain.max(character.len_utf8());
            if character == '\n' && lines {
                self.line();
            } else if is_space(character) {
                self.space();
            } else if !is_invisible(character) {
                self.settle();
                self.text.push_str(&rest[..length]);
            }
            rest = &rest[length..];
        }
    }

    /// Ends a word.
    pub(crate) fn space(&mut self) {
        self.pending = self.pending.max(Pending::Space);
    }

    /// Ends a line.
    pub(crate) fn line(&mut self) {
        self.pending = Pending::Line;
    }

    fn settle(&mut self) {
        if !self.text.is_empty() {
            match self.pending {
                Pending::Nothing => {}
                Pending::Space => self.text.push(' '),
                Pending::Line => self.text.push('\n'),
            }
        }
        self.pending = Pending::Nothing;
    }

    pub(crate) fn len(&self) -> usize {
        self.text.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    pub(crate) fn into_string(self) -> String {
        self.text
    }
}

/// `raw` on one line, with single spaces, cut at `limit` bytes on a whole character.
pub(crate) fn one_line(raw: &str, limit: usize) -> String {
    let mut text = Text::default();
    text.push(raw, false);
    let mut line = text.into_string();
    line.truncate(line.floor_char_boundary(limit));
    line
}

fn is_space(character: char) -> bool {
    character.is_whitespace() || character == '\u{200b}'
}

/// Characters that show nothing: controls, the byte order mark, soft hyphens.
fn is_invisible(character: char) -> bool {
    character.is_control() || matches!(character, '\u{feff}' | '\u{ad}' | '\u{2060}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn space_collapses_and_lines_win_over_spaces() {
        let mut text = Text::default();
        text.line();
        text.push(" \t a\u{a0} \n b", false);
        text.space();
        text.line();
        text.line();
        text.push("\u{feff}c\u{0}", false);
        text.line();
        assert_eq!(text.into_string(), "a b\nc");
    }

    #[test]
    fn preformatted_text_keeps_its_lines() {
        let mut text = Text::default();
        text.push("a  b\n\n c\n", true);
        assert_eq!(text.into_string(), "a b\nc");
    }

    #[test]
    fn one_line_is_cut_on_a_whole_character() {
        assert_eq!(one_line(" a\n\n世界 ", 5), "a 世");
        assert_eq!(one_line("\u{a0}\u{feff}", 5), "");
    }
}
