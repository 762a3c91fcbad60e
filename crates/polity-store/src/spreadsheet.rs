//! Texts in CSV files that are opened in a spreadsheet.

use std::borrow::Cow;

/// Escapes a text so that a spreadsheet shows it instead of evaluating it: possible formulas get a leading apostrophe. Signed numbers
/// stay unchanged.
#[must_use]
pub fn inert(text: &str) -> Cow<'_, str> {
    let formula = text.starts_with(['=', '+', '-', '@', '\t', '\r', '\n', '＝', '＋', '－', '＠']);
    match formula && !is_number(text) {
        true => Cow::Owned(format!("'{text}")),
        false => Cow::Borrowed(text),
    }
}

/// `-1.5e3`; a spreadsheet does not take `-inf` for a number.
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
