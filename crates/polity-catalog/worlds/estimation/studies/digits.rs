//! Digits, learned in one pass by a Gaussian mixture of pixels and labels together.

use super::super::Memory;
use super::super::params::Digits;
use super::form;
use crate::trials::{Experiment, Measure};
use polity_kernel::Invalid;
use polity_kernel::rng::Draws;
use polity_kernel::world::WorldSetup;
use polity_learn::incremental::{Drift, Mixture, Settings};

/// Labels.
const LABELS: usize = 10;
/// Minimum and maximum number of pixels of an image.
const PIXELS: std::ops::RangeInclusive<usize> = 1..=256;

pub(super) struct Images {
    images: Vec<(usize, Vec<f64>)>,
    learned: usize,
    shuffled: bool,
    settings: Settings,
}

impl Images {
    pub(super) fn open(params: &Digits, setup: &WorldSetup<'_>) -> Result<Images, Invalid> {
        params.check()?;
        let (text, file) = setup.words(&params.images)?;
        let images = read(text).map_err(|(line, why)| Invalid {
            key: "study.digits.images".into(),
            message: format!("line {line}{}: {why}", file.map(|file| format!(" of {file}")).unwrap_or_default()),
        })?;
        let learned = (params.learned * images.len() as f64) as usize;
        let message = format!("{} images are too few for a part to learn and a part to tell apart", images.len());
        Invalid::unless(learned >= 1 && learned < images.len(), "study.digits.images", message)?;
        let pixels = images.first().map_or(0, |image| image.1.len());
        let mut variances = vec![params.pixel * params.pixel; pixels];
        variances.resize(pixels + LABELS, params.label * params.label);
        let settings = Settings {
            form: form(params.form),
            variances,
            novelty: params.novelty,
            most: params.components as usize,
            age: 0,
            weight: 0.0,
            drift: Drift::default(),
        };
        Ok(Images { images, learned, shuffled: params.shuffled, settings })
    }
}

/// An image: its label and its pixels, each from 0 to 1.
type Image = (usize, Vec<f64>);

/// Reads a line for each image: a label, then pixels in base 17. An error has the number of its line.
fn read(text: &str) -> Result<Vec<Image>, (usize, String)> {
    let mut images: Vec<Image> = Vec::new();
    for (i, line) in text.lines().enumerate().filter(|(_, line)| !line.is_empty() && !line.starts_with('#')) {
        let mut values = line.chars().map(|c| c.to_digit(17));
        let label = values.next().flatten().filter(|label| *label < 10);
        let label = label.ok_or_else(|| (i + 1, "it does not begin with a label from 0 to 9".to_owned()))?;
        let pixels: Option<Vec<f64>> = values.map(|value| value.map(|value| f64::from(value) / 16.0)).collect();
        let pixels = pixels.ok_or_else(|| (i + 1, "a pixel is none of 0 to 9 and a to g".to_owned()))?;
        if !PIXELS.contains(&pixels.len()) || images.first().is_some_and(|first| first.1.len() != pixels.len()) {
            return Err((
                i + 1,
                format!("{} pixels; 1 to 256 are allowed, and as many as in the first image", pixels.len()),
            ));
        }
        images.push((label as usize, pixels));
    }
    Ok(images)
}

impl Experiment<Memory> for Images {
    fn measures(&self) -> &'static [Measure] {
        &[
            ("accuracy", "share of the images that were not learned whose label is named"),
            ("components", "components of the mixture"),
            ("operations", "multiplications and additions of matrix entries in learning, as counted"),
            ("learned", "images that were learned, each once"),
        ]
    }

    fn rounds(&self) -> Option<u32> {
        Some(1)
    }

    fn trial(&self, _: &mut Memory, _: u32, draws: &mut Draws) -> Result<Vec<f64>, String> {
        let mut order: Vec<usize> = (0..self.images.len()).collect();
        draws.shuffle(&mut order);
        let (learned, others) = order.split_at(self.learned);
        let mut labels: Vec<usize> = learned.iter().map(|i| self.images[*i].0).collect();
        if self.shuffled {
            draws.shuffle(&mut labels);
        }
        let mut mixture = Mixture::default();
        for (i, label) in learned.iter().zip(labels) {
            let mut point = self.images[*i].1.clone();
            point.extend((0..LABELS).map(|k| f64::from(u8::from(k == label))));
            mixture.learn(&self.settings, &point);
        }
        let named = |pixels: &[f64]| {
            let expected = mixture.expect(&self.settings, pixels)?;
            Some((1..LABELS).fold(0, |best, k| if expected[k] > expected[best] { k } else { best }))
        };
        let right = others.iter().filter(|i| named(&self.images[**i].1) == Some(self.images[**i].0)).count();
        Ok(vec![
            right as f64 / others.len() as f64,
            mixture.components.len() as f64,
            mixture.operations as f64,
            learned.len() as f64,
        ])
    }
}
