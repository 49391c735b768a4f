//! Readable text, built piece by piece: white space collapses, elements that touch do not glue.

/// Text under construction. White space is collapsed, but for preformatted pieces; there is never
/// any at the end.
#[derive(Debug, Default)]
pub(crate) struct Text {
    text: String,
    pending: Pending,
    /// Characters since the last edge or space.
    run: usize,
}

/// What stands between the text so far and what comes next.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Pending {
    #[default]
    Nothing,
    /// An element starts right behind text: `Jul<span>20:00`.
    Start,
    /// Two elements touch: `<span>Brazil</span><span>2</span>`.
    Edge,
    /// Two links touch.
    Link,
    Space,
}

impl Text {
    /// Adds running text.
    pub(crate) fn push(&mut self, piece: &str) {
        let mut rest = piece;
        while let Some(character) = rest.chars().next() {
            let plain = rest.bytes().take_while(u8::is_ascii_graphic).count();
            let length = plain.max(character.len_utf8());
            if is_space(character) {
                self.space();
            } else if !is_invisible(character) {
                self.settle(character, rest);
                self.text.push_str(&rest[..length]);
                self.run += length;
            }
            rest = &rest[length..];
        }
    }

    /// Adds preformatted text: its lines, indentation and columns are kept.
    pub(crate) fn push_preformatted(&mut self, piece: &str) {
        for character in piece.chars() {
            match character {
                '\n' => {
                    self.text.truncate(self.text.trim_end_matches([' ', '\t']).len());
                    if !self.text.is_empty() && !self.text.ends_with("\n\n") {
                        self.text.push('\n');
                    }
                    self.pending = Pending::Nothing;
                }
                '\t' => self.text.push('\t'),
                space if is_space(space) => self.text.push(' '),
                shown if !is_invisible(shown) => {
                    self.settle(shown, "");
                    self.text.push(shown);
                }
                _ => {}
            }
        }
    }

    /// Ends a word.
    pub(crate) fn space(&mut self) {
        self.pending = self.pending.max(Pending::Space);
    }

    /// An inline element starts behind text.
    pub(crate) fn element_starts(&mut self) {
        self.pending = self.pending.max(Pending::Start);
    }

    /// Two elements touch, or one without text stands in between.
    pub(crate) fn elements_touch(&mut self) {
        self.pending = self.pending.max(Pending::Edge);
    }

    /// Two links touch.
    pub(crate) fn links_touch(&mut self) {
        self.pending = self.pending.max(Pending::Link);
    }

    fn settle(&mut self, next: char, rest: &str) {
        let pending = std::mem::take(&mut self.pending);
        let Some(last) = self.text.chars().next_back() else {
            return;
        };
        let space = match pending {
            Pending::Nothing => return,
            Pending::Space => true,
            Pending::Start => last.is_lowercase() && next.is_ascii_digit(),
            Pending::Link => ends_word(last) && starts_word(next),
            Pending::Edge => {
                let letters = self.run == 1 && last.is_alphabetic() && next.is_alphabetic() && is_one_character(rest);
                ends_word(last) && starts_word(next) && !letters && !(is_wide(last) && is_wide(next))
            }
        };
        if space && !last.is_whitespace() {
            self.text.push(' ');
        }
        self.run = 0;
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.text.len()
    }

    /// Moves the text to the end of `into`.
    pub(crate) fn take(&mut self, into: &mut String) {
        into.push_str(self.text.trim_end());
        self.text.clear();
        self.pending = Pending::Nothing;
        self.run = 0;
    }

    pub(crate) fn into_string(mut self) -> String {
        self.text.truncate(self.text.trim_end().len());
        self.text
    }
}

/// `raw` on one line, with single spaces, cut at `limit` bytes on a whole character.
pub(crate) fn one_line(raw: &str, limit: usize) -> String {
    let mut text = Text::default();
    text.push(raw);
    let mut line = text.into_string();
    line.truncate(line.floor_char_boundary(limit));
    line.truncate(line.trim_end().len());
    line
}

/// The length of `text` in Latin letters: an ideograph says as much as two and a half of them.
pub(crate) fn weight(text: &str) -> usize {
    let wide = if text.is_ascii() { 0 } else { text.chars().filter(|character| is_wide(*character)).count() };
    text.chars().count() + wide * 3 / 2
}

/// Chinese, Japanese and Korean characters, which are written without spaces.
pub(crate) fn is_wide(character: char) -> bool {
    matches!(character, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{ac00}'..='\u{d7a3}' | '\u{20000}'..='\u{3ffff}')
}

fn ends_word(last: char) -> bool {
    last.is_alphanumeric() || matches!(last, '.' | ',' | ':' | ';' | ')' | '!' | '?' | '%' | '\'' | '”')
}

fn starts_word(next: char) -> bool {
    next.is_alphanumeric() || matches!(next, '(' | '“' | '£' | '$' | '€' | '#' | '@')
}

fn is_one_character(rest: &str) -> bool {
    let mut characters = rest.chars();
    characters.next();
    characters.all(char::is_whitespace)
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
    fn space_collapses_and_what_shows_nothing_is_left_out() {
        let mut text = Text::default();
        text.space();
        text.push(" \t a\u{a0} \n b");
        text.space();
        text.push("\u{feff}c\u{0}");
        text.space();
        assert_eq!(text.into_string(), "a b c");
    }

    #[test]
    fn preformatted_text_keeps_lines_indentation_and_columns() {
        let mut text = Text::default();
        text.push_preformatted("\n  a  b  \n\n\n\tc\u{0}\n \n");
        assert_eq!(text.into_string(), "  a  b\n\n\tc");
    }

    #[test]
    fn elements_that_touch_are_words_unless_they_are_letters_of_one() {
        for (pieces, expected) in [
            (&["Brazil", "2", "1", "Spain"][..], "Brazil 2 1 Spain"),
            (&["H", "e", "y"], "Hey"),
            (&["世", "界"], "世界"),
            (&["Goals:", "2", "(pen)"], "Goals: 2 (pen)"),
            (&["end", ", next"], "end, next"),
        ] {
            let mut text = Text::default();
            for piece in pieces {
                text.elements_touch();
                text.push(piece);
            }
            assert_eq!(text.into_string(), expected);
        }
    }

    #[test]
    fn one_line_is_cut_on_a_whole_character() {
        assert_eq!(one_line(" a\n\n世界 ", 5), "a 世");
        assert_eq!(one_line("\u{a0}\u{feff}", 5), "");
        assert_eq!(one_line("ab cd", 3), "ab");
    }

    #[test]
    fn an_ideograph_weighs_more_than_a_letter() {
        assert_eq!((weight("abcd"), weight("世界ab")), (4, 7));
    }
}
