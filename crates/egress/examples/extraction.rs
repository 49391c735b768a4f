//! Reads paths of HTML files from standard input, one a line. `extraction features OUT` writes the
//! features of their blocks into OUT and the blocks' texts, a JSON array a page, to standard output;
//! `extraction names` prints the features' names; `extraction pages [WEIGHTS]`
//! prints each page as JSON.

use std::error::Error;
use std::fs::{self, File};
use std::io::{self, BufRead, BufWriter, Write};
use std::time::Instant;

use egress::{extract_page, training};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let mut out = BufWriter::new(io::stdout().lock());
    match arguments.as_slice() {
        ["names"] => writeln!(out, "{}", training::names().join("\n"))?,
        ["features", rows] => {
            let mut rows = BufWriter::new(File::create(rows)?);
            for path in io::stdin().lock().lines() {
                let texts = training::write_rows(&fs::read(path?)?, &mut rows)?;
                writeln!(out, "{}", serde_json::to_string(&texts)?)?;
            }
            rows.flush()?;
        }
        ["pages", weights @ ..] => {
            if let Some(weights) = weights.first() {
                training::use_weights(fs::read_to_string(weights)?);
            }
            for path in io::stdin().lock().lines() {
                let html = fs::read(path?)?;
                let started = Instant::now();
                let page = extract_page(&html, "text/html", "https://page.test/", usize::MAX);
                let ms = started.elapsed().as_secs_f64() * 1000.0;
                writeln!(out, "{}", serde_json::json!({"page": page, "ms": ms}))?;
            }
        }
        ["readings", weights @ ..] => {
            if let Some(weights) = weights.first() {
                training::use_weights(fs::read_to_string(weights)?);
            }
            for path in io::stdin().lock().lines() {
                writeln!(out, "{}", training::readings(&fs::read(path?)?))?;
            }
        }
        _ => return Err("usage: extraction names | features OUT | pages [WEIGHTS] | readings [WEIGHTS]".into()),
    }
    out.flush()?;
    Ok(())
}
