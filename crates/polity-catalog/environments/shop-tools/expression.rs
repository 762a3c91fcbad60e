//! Arithmetic expressions, by recursive descent.

/// Maximum nesting of parentheses.
const DEEPEST: usize = 50;
/// Maximum length of an expression, in characters.
const LONGEST: usize = 1_000;

struct Parser<'a> {
    rest: &'a str,
    depth: usize,
}

/// Returns the value of an expression of numbers with `+ - * /` and parentheses.
///
/// # Errors
/// Unreadable text, and divisions by 0.
pub fn value(text: &str) -> Result<f64, String> {
    if text.len() > LONGEST {
        return Err(format!("an expression has at most {LONGEST} letters"));
    }
    let mut parser = Parser { rest: text.trim(), depth: 0 };
    let value = parser.sum()?;
    match parser.rest.chars().next() {
        None if value.is_finite() => Ok(value),
        None => Err("the result is not a finite number".into()),
        Some(c) => Err(format!("`{c}` is unexpected")),
    }
}

impl Parser<'_> {
    fn eat(&mut self, wanted: char) -> bool {
        let found = self.rest.strip_prefix(wanted);
        if let Some(rest) = found {
            self.rest = rest.trim_start();
        }
        found.is_some()
    }

    fn sum(&mut self) -> Result<f64, String> {
        let mut value = self.product()?;
        loop {
            match (self.eat('+'), self.eat('-')) {
                (true, _) => value += self.product()?,
                (_, true) => value -= self.product()?,
                _ => return Ok(value),
            }
        }
    }

    fn product(&mut self) -> Result<f64, String> {
        let mut value = self.factor()?;
        loop {
            if self.eat('*') {
                value *= self.factor()?;
            } else if self.eat('/') {
                let by = self.factor()?;
                if by == 0.0 {
                    return Err("a division by 0".into());
                }
                value /= by;
            } else {
                return Ok(value);
            }
        }
    }

    fn factor(&mut self) -> Result<f64, String> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(format!("it is deeper than {DEEPEST} levels"));
        }
        let value = if self.eat('-') {
            -self.factor()?
        } else if self.eat('(') {
            let value = self.sum()?;
            if !self.eat(')') {
                return Err("a `)` is missing".into());
            }
            value
        } else {
            let end = self.rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(self.rest.len());
            let (number, rest) = self.rest.split_at(end);
            self.rest = rest.trim_start();
            number.parse().map_err(|_| match self.rest.chars().next() {
                _ if !number.is_empty() => format!("`{number}` is no number"),
                Some(c) => format!("`{c}` is unexpected"),
                None => "something is missing at the end".to_owned(),
            })?
        };
        self.depth -= 1;
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use super::value;

    #[test]
    fn expressions_have_their_values() {
        for (text, expected) in [
            ("1 + 2 * 3", 7.0),
            ("(1 + 2) * 3", 9.0),
            ("-4 - -4", 0.0),
            ("10 / 4 / 5", 0.5),
            (" 2*(3.5-1)*2 ", 10.0),
            ("--2", 2.0),
        ] {
            assert_eq!(value(text), Ok(expected), "{text}");
        }
        for text in ["", "1 +", "1 2", "(1", "1)", "two", "1 / 0", "1..2", "9 % 2", &"(".repeat(60), &"1+".repeat(600)]
        {
            assert!(value(text).is_err(), "{text}");
        }
    }
}
