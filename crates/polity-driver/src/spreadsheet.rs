//! Texts in CSV files that people open with a spreadsheet.

use std::borrow::Cow;

/// A text as a spreadsheet shows it and does not evaluate it: one that it could take for a formula gets an apostrophe in front. Numbers
/// stay as they are, with their sign.
#[must_use]
pub fn inert(text: &str) -> Cow<'_, str> {
    let formula = text.starts_with(['=', '+', '-', '@', '\t', '\r', '\n', '＝', '＋', '－', '＠']);
    match formula && !is_number(text) {
        true => Cow::Owned(format!("'{text}")),
        false => Cow::Borrowed(text),
    }
}

/// `-1.5e3`; `-inf` is none to a spreadsheet.
fn is_number(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_digit() || b"+-.eE".contains(&b)) && text.parse::<f64>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::inert;

    #[test]
    fn what_a_spreadsheet_would_evaluate_is_marked_and_numbers_stay() {
        for formula in [
            "=1+1",
            "=HYPERLINK(\"x\")",
            "+cmd",
            "-2+3",
            "@SUM(A1)",
            "\t=1",
            "\r=1",
            "\n=1",
            "-",
            "- item",
            "-inf",
            "＝1",
        ] {
            assert_eq!(inert(formula), format!("'{formula}"));
        }
        for plain in ["", "a=b", "-1", "+1.5", "-1.5e-3", "1e5", " =1", "'=1", "x\n=1"] {
            assert_eq!(inert(plain), plain);
        }
    }
}
