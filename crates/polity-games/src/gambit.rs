//! What Gambit's formats `.nfg` and `.efg` (McKelvey, McLennan and Turocy) have in common: words, numbers, names in quotes, lists in braces.

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Token {
    Open,
    Close,
    Quoted(String),
    Bare(String),
}

/// The tokens of a file, read one after the other.
pub(crate) struct Tokens {
    /// Each token, with its line.
    tokens: Vec<(Token, usize)>,
    next: usize,
}

fn split(text: &str) -> Result<Vec<(Token, usize)>, String> {
    let mut tokens = Vec::new();
    let mut chars = text.chars().peekable();
    let mut line = 1;
    while let Some(first) = chars.next() {
        let begun = line;
        let token = match first {
            '\n' => {
                line += 1;
                continue;
            }
            _ if first.is_whitespace() || first == ',' => continue,
            '{' => Token::Open,
            '}' => Token::Close,
            '"' => {
                let mut quoted = String::new();
                loop {
                    match chars.next() {
                        None => return Err(format!("line {begun}: a `\"` is not closed")),
                        Some('"') => break,
                        Some('\\') => quoted.push(chars.next_if(|c| "\\\"".contains(*c)).unwrap_or('\\')),
                        Some(c) => {
                            line += usize::from(c == '\n');
                            quoted.push(c);
                        }
                    }
                }
                Token::Quoted(quoted)
            }
            _ => {
                let mut bare = String::from(first);
                while let Some(c) = chars.next_if(|c| !c.is_whitespace() && !"{}\",".contains(*c)) {
                    bare.push(c);
                }
                Token::Bare(bare)
            }
        };
        tokens.push((token, begun));
    }
    Ok(tokens)
}

/// Reads a finite number, or a fraction such as `1/3`.
pub(crate) fn number(text: &str) -> Option<f64> {
    let x = match text.split_once('/') {
        Some((above, below)) => above.trim().parse::<f64>().ok()? / below.trim().parse::<f64>().ok()?,
        None => text.parse().ok()?,
    };
    x.is_finite().then_some(x)
}

impl Tokens {
    /// Splits a text.
    ///
    /// # Errors
    /// A quote that is not closed.
    pub(crate) fn new(text: &str) -> Result<Self, String> {
        Ok(Tokens { tokens: split(text)?, next: 0 })
    }

    fn line(&self) -> usize {
        let at = self.next.min(self.tokens.len().saturating_sub(1));
        self.tokens.get(at).map_or(1, |(_, line)| *line)
    }

    /// Reads the head of a file: its format, the version, the title and the players.
    pub(crate) fn head(&mut self, format: &str, version: &str) -> Result<(String, Vec<String>), String> {
        for fits in [&[format][..], &[version], &["R", "D"]] {
            if !matches!(self.peek(), Some(Token::Bare(bare)) if fits.contains(&bare.as_str())) {
                return self
                    .fail(format!("a game begins with `{format} {version} R`, its title in quotes, and its players"));
            }
            self.next += 1;
        }
        Ok((self.quoted("the title")?, self.names("the players", "a player")?))
    }

    /// Fails at the next token.
    pub(crate) fn fail<T>(&self, told: impl std::fmt::Display) -> Result<T, String> {
        Err(format!("line {}: {told}", self.line()))
    }

    pub(crate) fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.next).map(|(token, _)| token)
    }

    /// Steps back to the last token.
    pub(crate) fn back(&mut self) {
        self.next -= 1;
    }

    /// Reads this token, if it comes next.
    pub(crate) fn take(&mut self, token: &Token) -> bool {
        let found = self.peek() == Some(token);
        self.next += usize::from(found);
        found
    }

    /// Reads words in quotes, if they come next.
    pub(crate) fn quoted_next(&mut self) -> Option<String> {
        let Some(Token::Quoted(text)) = self.peek() else { return None };
        let text = text.clone();
        self.next += 1;
        Some(text)
    }

    pub(crate) fn quoted(&mut self, what: &str) -> Result<String, String> {
        self.quoted_next().map_or_else(|| self.fail(format!("expected {what} in quotes")), Ok)
    }

    pub(crate) fn bare(&mut self, what: &str) -> Result<String, String> {
        let Some(Token::Bare(text)) = self.peek() else { return self.fail(format!("expected {what}")) };
        let text = text.clone();
        self.next += 1;
        Ok(text)
    }

    pub(crate) fn whole(&mut self, what: &str) -> Result<usize, String> {
        let text = self.bare(what)?;
        if let Ok(n) = text.parse::<u32>() {
            return Ok(n as usize);
        }
        self.back();
        self.fail(format!("{what} must be a whole number, and is `{text}`"))
    }

    pub(crate) fn number(&mut self, what: &str) -> Result<f64, String> {
        let text = self.bare(what)?;
        if let Some(x) = number(&text) {
            return Ok(x);
        }
        self.back();
        self.fail(format!("{what} must be a number or a fraction, and is `{text}`"))
    }

    /// Reads the items of a list in braces, if one begins here.
    pub(crate) fn list<T>(
        &mut self,
        mut item: impl FnMut(&mut Self) -> Result<T, String>,
    ) -> Result<Option<Vec<T>>, String> {
        if !self.take(&Token::Open) {
            return Ok(None);
        }
        let mut items = Vec::new();
        while !self.take(&Token::Close) {
            if self.peek().is_none() {
                return self.fail("a `{` is not closed");
            }
            items.push(item(self)?);
        }
        Ok(Some(items))
    }

    /// Reads a list of names in braces and quotes.
    pub(crate) fn names(&mut self, what: &str, one: &str) -> Result<Vec<String>, String> {
        match self.list(|tokens| tokens.quoted(one))? {
            Some(names) => Ok(names),
            None => self.fail(format!("expected {what}, in `{{` and `}}`")),
        }
    }
}

/// Writes text in quotes.
pub(crate) fn quote(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}
