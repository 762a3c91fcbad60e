//! Colours of values: a colour for each of few whole numbers, else steps from the lowest to the highest value.

use super::{scale, text};

/// Up to this many different whole numbers have a colour each.
const NAMED: usize = 7;

/// Steps of a colour scale, as in the style sheet.
const STEPS: usize = 7;

/// How values are coloured.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Shades {
    /// No value.
    None,
    /// These whole numbers.
    Named(Vec<f64>),
    /// From the lowest to the highest value; around zero if there are values on both sides of it.
    Steps { low: f64, high: f64, around_zero: bool },
}

impl Shades {
    pub fn of(values: impl Iterator<Item = f64> + Clone) -> Self {
        let values = values.filter(|value| scale::drawable(*value));
        let mut whole: Vec<f64> = Vec::new();
        for value in values.clone() {
            if value.fract() != 0.0 || whole.len() > NAMED {
                whole = vec![0.0; NAMED + 1];
                break;
            }
            if !whole.contains(&value) {
                whole.push(value);
            }
        }
        if (1..=NAMED).contains(&whole.len()) {
            whole.sort_by(f64::total_cmp);
            return Self::Named(whole);
        }
        match scale::extent(values) {
            None => Self::None,
            Some((low, high)) if low < 0.0 && high > 0.0 => {
                let reach = high.max(-low);
                Self::Steps { low: -reach, high: reach, around_zero: true }
            }
            Some((low, high)) => Self::Steps { low, high, around_zero: false },
        }
    }

    /// Classes of the style sheet, in the order of the values.
    pub fn classes(&self) -> Vec<String> {
        match self {
            Self::None => vec!["c0".to_owned()],
            Self::Named(values) => (0..values.len()).map(|i| format!("c{i}")).collect(),
            Self::Steps { around_zero, .. } => {
                let name = if *around_zero { 'd' } else { 's' };
                (0..STEPS).map(|i| format!("{name}{i}")).collect()
            }
        }
    }

    /// The position of a value's class; `None` for a value that has no colour.
    pub fn class(&self, value: f64) -> Option<usize> {
        match self {
            Self::None => Some(0),
            Self::Named(values) => values.iter().position(|other| *other == value),
            Self::Steps { low, high, .. } => {
                let part = if high > low { (value - low) / (high - low) } else { 0.5 };
                scale::drawable(value).then(|| ((part * STEPS as f64) as usize).min(STEPS - 1))
            }
        }
    }

    /// The key to the colours of `what`, as HTML.
    pub fn key(&self, what: &str) -> String {
        let swatches = |from: usize, to: usize| -> String {
            let classes = self.classes();
            classes[from..to].iter().map(|class| format!("<span class=\"swatch {class}\"></span>")).collect()
        };
        let items: Vec<String> = match self {
            Self::None => return String::new(),
            Self::Named(values) => {
                let item = |(i, value): (usize, &f64)| format!("{}{}", swatches(i, i + 1), text::short(*value));
                values.iter().enumerate().map(item).collect()
            }
            Self::Steps { low, high, .. } => {
                vec![format!("{} {} {}", text::short(*low), swatches(0, STEPS), text::short(*high))]
            }
        };
        let items: String = items.iter().map(|item| format!("<li>{item}</li>\n")).collect();
        format!("<ul class=\"legend shades\">\n<li>{}</li>\n{items}</ul>\n", text::escape(what))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_whole_numbers_have_names_and_others_steps() {
        let of = |values: &[f64]| Shades::of(values.iter().copied());
        assert_eq!(of(&[1.0, 0.0, 1.0, f64::NAN]), Shades::Named(vec![0.0, 1.0]));
        assert_eq!(of(&[1.5, 4.0]), Shades::Steps { low: 1.5, high: 4.0, around_zero: false });
        assert_eq!(of(&[-0.5, 0.25]), Shades::Steps { low: -0.5, high: 0.5, around_zero: true });
        let many: Vec<f64> = (0..8).map(f64::from).collect();
        assert_eq!(of(&many), Shades::Steps { low: 0.0, high: 7.0, around_zero: false });
        assert_eq!(of(&[f64::NAN]), Shades::None);
        let steps = of(&many);
        assert_eq!([0.0, 3.5, 7.0, f64::NAN].map(|v| steps.class(v)), [Some(0), Some(3), Some(6), None]);
    }
}
