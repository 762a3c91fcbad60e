//! Convolutions over the cells of a grid.

use crate::learning::Start;
use polity_kernel::Invalid;
use polity_nn::{Activation, Convolution, Mlp, Tape, Var};
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};

/// Convolutions over the cells of a grid. Numbers with names `CHANNEL-X-Y` are the pixels of a picture. The layers after the convolutions see
/// the values of the filters, and all other numbers.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ConvolutionSource {
    /// How many filters each convolution has: 1 to 256, for each of 1 to 4 convolutions.
    pub filters: Vec<usize>,
    /// The side of the square patches, 1 to 15.
    #[serde(default = "three")]
    pub side: usize,
}

fn three() -> usize {
    3
}

/// A network with convolutions before its dense layers.
#[derive(Clone, Debug)]
pub struct Pictures {
    /// For each view that is seen together, the columns of its picture: cell by cell, row by row, with all channels of a cell side by side.
    pictures: Vec<Vec<u32>>,
    /// All other columns.
    rest: Vec<u32>,
    layers: Vec<Convolution>,
    activation: Activation,
    net: Mlp,
}

/// Finds the numbers about cells. Returns the height, the width and the number of channels of their picture, and the columns that hold it.
pub fn picture<'n>(numbers: &'n [String]) -> Result<([usize; 3], Vec<u32>), Invalid> {
    let wrong = |message: String| Invalid { key: "convolution".into(), message };
    let cell = |name: &'n String| -> Option<(&'n str, u16, u16)> {
        let (rest, y) = name.rsplit_once('-')?;
        let (channel, x) = rest.rsplit_once('-')?;
        Some((channel, x.parse().ok()?, y.parse().ok()?))
    };
    let cells: BTreeMap<_, u32> =
        numbers.iter().zip(0..).filter_map(|(name, column)| Some((cell(name)?, column))).collect();
    let mut channels: Vec<&str> = numbers.iter().filter_map(cell).map(|(channel, ..)| channel).collect();
    let mut known = BTreeSet::new();
    channels.retain(|channel| known.insert(*channel));
    let last = cells.keys().map(|(_, x, y)| (*x, *y)).reduce(|(x, y), (a, b)| (x.max(a), y.max(b)));
    let message = "needs numbers about cells, with names `CHANNEL-X-Y`; none of those that are seen is one";
    let (right, bottom) = last.ok_or_else(|| wrong(message.into()))?;
    let (width, height) = (usize::from(right) + 1, usize::from(bottom) + 1);
    let mut columns = Vec::new();
    for (y, x) in (0..=bottom).flat_map(|y| (0..=right).map(move |x| (y, x))) {
        for channel in &channels {
            let missing =
                || wrong(format!("needs all cells of a rectangle of each channel; `{channel}-{x}-{y}` is not seen"));
            columns.push(*cells.get(&(*channel, x, y)).ok_or_else(missing)?);
        }
    }
    Ok(([height, width, channels.len()], columns))
}

impl Pictures {
    /// Makes a network from inputs, which begin with so many views of agents, to outputs. `gain`: that of its last layer.
    ///
    /// # Errors
    /// Sizes out of range, or numbers that make up no picture.
    pub fn open(
        source: &ConvolutionSource,
        start: &mut Start,
        name: &str,
        views: usize,
        [inputs, outputs]: [usize; 2],
        gain: f64,
    ) -> Result<Self, Invalid> {
        Invalid::within(1..=4, "convolution.filters", source.filters.len())?;
        source.filters.iter().try_for_each(|filters| Invalid::within(1..=256, "convolution.filters", *filters))?;
        Invalid::within(1..=15, "convolution.side", source.side)?;
        let numbers = start.senses.numbers();
        let (size, columns) = picture(&numbers)?;
        let [height, width, _] = size;
        let taken = (source.side - 1) * source.filters.len();
        let message =
            format!("{} convolutions of this side need more than {width} by {height} cells", source.filters.len());
        Invalid::unless(height.min(width) > taken, "convolution.side", message)?;
        let mut layers: Vec<Convolution> = Vec::with_capacity(source.filters.len());
        for (i, filters) in source.filters.iter().enumerate() {
            let size = layers.last().map_or(size, Convolution::size);
            layers.push(start.convolution(&format!("{name}-convolution-{i}"), size, [source.side, *filters]));
        }
        let of_view = |view: usize| columns.iter().map(|column| column + (view * numbers.len()) as u32).collect();
        let pictures: Vec<Vec<u32>> = (0..views).map(of_view).collect();
        let rest: Vec<u32> =
            (0..inputs as u32).filter(|column| !pictures.iter().any(|picture| picture.contains(column))).collect();
        let made: usize = layers.last().map_or(size, Convolution::size).iter().product();
        let net = start.net(name, [views * made + rest.len(), outputs], gain);
        let activation = start.about.as_ref().map_or(Activation::Relu, |about| about.activation);
        Ok(Pictures { pictures, rest, layers, activation, net })
    }

    /// Returns what the network makes of a batch.
    pub fn on(&self, tape: &mut Tape<'_>, x: Var) -> Var {
        let mut parts = Vec::with_capacity(self.pictures.len() + 1);
        for picture in &self.pictures {
            let picture = tape.select(x, picture.clone());
            parts.push(self.layers.iter().fold(picture, |picture, layer| {
                let made = layer.on(tape, picture);
                self.activation.on(tape, made)
            }));
        }
        parts.push(tape.select(x, self.rest.clone()));
        let all = tape.join(&parts);
        self.net.on(tape, all)
    }
}
