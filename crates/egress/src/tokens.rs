//! Tokens of a WHATWG tokenizer, handed to a reader that decides how it goes on.
//!
//! The tokenizer alone does not know foreign content: in `<svg><title/>` nothing switches to text,
//! and in XHTML `<script/>` has ended already. So the reader says after each tag what follows.

use std::convert::Infallible;

use html5gum::emitters::callback::{Callback, CallbackEmitter, CallbackEvent};
use html5gum::{Emitter, ForwardingEmitter, Span, State, Tokenizer};

use crate::element::Attributes;

/// What reads the tokens of a page.
pub(crate) trait Reader {
    /// A start tag; the answer is the tokenizer's next state when it is not `Data`.
    fn start(&mut self, tag: &[u8], attributes: &Attributes, self_closing: bool) -> Option<State>;
    /// An end tag.
    fn end(&mut self, tag: &[u8]);
    /// Text between tags.
    fn characters(&mut self, characters: &str);
    /// Whether `<![CDATA[` starts text here (in foreign content and XML) or a comment.
    fn has_cdata(&self) -> bool;
}

/// Reads `source` to its end.
pub(crate) fn read(source: &str, reader: &mut impl Reader) {
    let events =
        Events { reader, tag: Vec::new(), attribute: Vec::new(), attributes: Attributes::default(), next: None };
    let Ok(()) = Tokenizer::new_with_emitter(source, Switching(CallbackEmitter::new(events))).finish();
}

struct Events<'a, R> {
    reader: &'a mut R,
    /// The start tag being read.
    tag: Vec<u8>,
    attribute: Vec<u8>,
    attributes: Attributes,
    next: Option<State>,
}

impl<R: Reader> Callback<Infallible, ()> for Events<'_, R> {
    fn handle_event(&mut self, event: CallbackEvent<'_>, _span: Span<()>) -> Option<Infallible> {
        match event {
            CallbackEvent::OpenStartTag { name } => {
                self.tag.clear();
                self.tag.extend_from_slice(name);
                self.attribute.clear();
                self.attributes.clear();
            }
            CallbackEvent::AttributeName { name } => {
                self.attribute.clear();
                self.attribute.extend_from_slice(name);
                self.attributes.set(name, "");
            }
            CallbackEvent::AttributeValue { value } => {
                self.attributes.set(&self.attribute, &String::from_utf8_lossy(value));
            }
            CallbackEvent::CloseStartTag { self_closing } => {
                self.next = self.reader.start(&self.tag, &self.attributes, self_closing);
            }
            CallbackEvent::EndTag { name } => self.reader.end(name),
            CallbackEvent::String { value } => self.reader.characters(&String::from_utf8_lossy(value)),
            CallbackEvent::Comment { .. } | CallbackEvent::Doctype { .. } | CallbackEvent::Error(_) => {}
        }
        None
    }
}

/// An emitter whose next state is the reader's.
struct Switching<'a, R: Reader>(CallbackEmitter<Events<'a, R>>);

impl<R: Reader> ForwardingEmitter for Switching<'_, R> {
    type Token = Infallible;

    fn inner(&mut self) -> &mut impl Emitter<Token = Infallible> {
        &mut self.0
    }

    fn should_emit_errors(&mut self) -> bool {
        false
    }

    fn emit_current_tag(&mut self) -> Option<State> {
        let _none = self.0.emit_current_tag();
        let next = self.0.callback_mut().next.take();
        if next.is_some() {
            self.0.init_string();
        }
        next
    }

    fn adjusted_current_node_present_but_not_in_html_namespace(&mut self) -> bool {
        self.0.callback_mut().reader.has_cdata()
    }
}
