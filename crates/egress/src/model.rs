//! A linear model that judges the blocks of an article twice: first each for itself, then again with
//! what the first time said about the blocks around it. The weights are a file that
//! `training/train.py` writes, which also says on which folds they were judged.

use std::sync::LazyLock;

use crate::blocks::Blocks;
use crate::features::Features;

static WEIGHTS: LazyLock<Weights> = LazyLock::new(|| {
    #[cfg(feature = "training")]
    if let Some(file) = OTHER_WEIGHTS.get() {
        return Weights::read(file);
    }
    Weights::read(include_str!("../training/weights.txt"))
});

/// The weights of a fold, which judge the pages that they were not trained on.
#[cfg(feature = "training")]
pub(crate) static OTHER_WEIGHTS: std::sync::OnceLock<String> = std::sync::OnceLock::new();

/// Odds beyond this say no more than this.
const CLIP: f32 = 6.0;
/// Blocks whose odds count for a block, and how far around it the part of article text is taken.
const NEIGHBOURS: [isize; 6] = [-3, -2, -1, 1, 2, 3];
const WINDOWS: [usize; 3] = [2, 5, 10];

struct Weights {
    first: Vec<f32>,
    second: Vec<f32>,
    around: Vec<f32>,
}

impl Weights {
    /// Reads lines of a name and two numbers; a feature without a line does not count.
    fn read(file: &str) -> Self {
        let lines: std::collections::HashMap<&str, (f32, f32)> = file
            .lines()
            .filter(|line| !line.starts_with('#'))
            .filter_map(|line| {
                let mut parts = line.split(' ');
                let name = parts.next()?;
                Some((name, (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?)))
            })
            .collect();
        let of = |name: &str| lines.get(name).copied().unwrap_or_default();
        let names = std::iter::once("bias".to_owned()).chain(Features::names());
        let (first, second) = names.map(|name| of(&name)).unzip();
        Self { first, second, around: around_names().iter().map(|name| of(name).1).collect() }
    }
}

/// The names of what the second judgement knows about the first.
pub(crate) fn around_names() -> Vec<String> {
    let mut names: Vec<String> = NEIGHBOURS.iter().map(|at| format!("around_{at}")).collect();
    names.extend(["around_before", "around_behind", "around_inside"].map(str::to_owned));
    names.extend(WINDOWS.iter().map(|window| format!("around_within_{window}")));
    names.extend(["around_all", "around_own", "around_own_inside"].map(str::to_owned));
    names
}

/// For each block the logarithm of the odds that it belongs to the article.
pub(crate) fn judge(page: &Blocks, features: &Features<'_>) -> Vec<f32> {
    let Weights { first, second, around } = &*WEIGHTS;
    let product =
        |row: &[f32], weights: &[f32]| weights[0] + row.iter().zip(&weights[1..]).map(|(x, w)| x * w).sum::<f32>();
    let (mut odds, mut again) = (Vec::new(), Vec::new());
    features.rows(|_, row| {
        odds.push(product(row, first));
        again.push(product(row, second));
    });
    let lengths: Vec<f32> = page.blocks.iter().map(|block| block.weight as f32).collect();
    for (index, row) in surroundings(&odds, &lengths).enumerate() {
        again[index] += row.iter().zip(around).map(|(number, weight)| number * weight).sum::<f32>();
    }
    again
}

/// What the odds of all blocks say about each, a row a block.
pub(crate) fn surroundings<'a>(odds: &'a [f32], lengths: &'a [f32]) -> impl Iterator<Item = Vec<f32>> + 'a {
    let clipped = |index: usize| odds[index].clamp(-CLIP, CLIP);
    let sums = |of: &dyn Fn(usize) -> f32| {
        let mut sum = 0.0;
        std::iter::once(0.0)
            .chain((0..odds.len()).map(|index| {
                sum += of(index);
                sum
            }))
            .collect::<Vec<f32>>()
    };
    let text = move |index: usize| lengths[index] / (1.0 + (-clipped(index)).exp());
    let texts = sums(&text);
    let all_lengths = sums(&|index| lengths[index]);
    let total = texts.last().copied().unwrap_or_default().max(1.0);
    (0..odds.len()).map(move |index| {
        let mut row: Vec<f32> = NEIGHBOURS
            .iter()
            .map(|at| index.checked_add_signed(*at).filter(|at| *at < odds.len()).map_or(-CLIP, clipped))
            .collect();
        let before = texts[index] / total;
        let behind = (total - texts[index + 1]) / total;
        let inside = before.min(behind);
        row.extend([before, behind, inside]);
        row.extend(WINDOWS.map(|window| {
            let (from, to) = (index.saturating_sub(window), (index + window + 1).min(odds.len()));
            let found = texts[to] - texts[from] - text(index);
            found / (all_lengths[to] - all_lengths[from] - lengths[index]).max(1.0)
        }));
        row.extend([total.ln_1p(), clipped(index), clipped(index) * inside * 2.0]);
        row
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_weights_are_those_of_the_features() {
        let file = include_str!("../training/weights.txt");
        let lines: Vec<&str> =
            file.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.split(' ').next()).collect();
        let names: Vec<String> =
            std::iter::once("bias".to_owned()).chain(Features::names()).chain(around_names()).collect();
        assert_eq!(lines, names);
        let Weights { first, second, around } = &*WEIGHTS;
        assert!(first.iter().chain(second).chain(around).all(|weight| weight.is_finite()));
        assert!(second.iter().chain(around).any(|weight| *weight != 0.0));
    }

    #[test]
    fn a_block_between_article_text_knows_it() {
        let rows: Vec<Vec<f32>> = surroundings(&[5.0, -1.0, 5.0, -5.0], &[100.0, 10.0, 100.0, 10.0]).collect();
        let names = around_names();
        let of = |row: usize, name: &str| rows[row][names.iter().position(|one| one == name).expect(name)];
        assert!(of(1, "around_inside") > 0.4 && of(3, "around_inside") < 0.01);
        assert_eq!((of(0, "around_-1"), of(0, "around_1"), of(0, "around_own")), (-6.0, -1.0, 5.0));
        assert!(of(1, "around_within_2") > 0.9);
    }
}
