//! A drawing as a PDF file of one page: vector graphics, text in Helvetica, which every reader has. The same drawing gives the same bytes.
//!
//! The format is that of ISO 32000-1 (PDF 1.7), of which a chart needs a page, a stream of drawing operators, two fonts and opacities.

use super::drawing::{Colour, Drawing, Look, PAPER, Shape, Step, Words, number};
use super::svg::Anchor;
use super::text::lowered;
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// Points of the page for a pixel: 860 pixels are 9 inches.
const POINTS: f64 = 0.75;

/// Widths of Helvetica's characters from the space to the tilde, in thousandths of the font size (Adobe's font metrics).
const WIDTHS: [u16; 95] = [
    278, 278, 355, 556, 556, 889, 667, 191, 333, 333, 389, 584, 278, 333, 278, 278, 556, 556, 556, 556, 556, 556, 556,
    556, 556, 556, 278, 278, 584, 584, 584, 556, 1015, 667, 667, 722, 722, 667, 611, 778, 722, 278, 500, 667, 556, 833,
    722, 778, 667, 778, 722, 667, 611, 722, 667, 944, 667, 667, 611, 278, 278, 278, 469, 556, 333, 556, 556, 500, 556,
    556, 278, 556, 556, 222, 222, 500, 222, 833, 556, 556, 556, 556, 333, 500, 278, 556, 500, 722, 500, 500, 500, 334,
    260, 334, 584,
];

/// The width of any other character.
const OTHER: u16 = 556;

/// The file.
pub(super) fn file(drawing: &Drawing, title: &str) -> Vec<u8> {
    let opacities = opacities(drawing);
    let (width, height) = (number(drawing.width * POINTS), number(drawing.height * POINTS));
    let states: String = opacities
        .iter()
        .map(|percent| {
            let part = f64::from(*percent) / 100.0;
            format!("/G{percent} << /ca {part} /CA {part} >> ")
        })
        .collect();
    let content = content(drawing);
    let objects = [
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        "<< /Type /Pages /Kids [3 0 R] /Count 1 >>".to_owned(),
        format!(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 {width} {height}] /Contents 4 0 R /Resources << /Font << /F 5 0 R \
             /B 6 0 R >> /ExtGState << {states}>> >> >>"
        ),
        format!("<< /Length {} >>\nstream\n{content}endstream", content.len()),
        font("Helvetica"),
        font("Helvetica-Bold"),
        format!("<< /Title ({}) /Producer (Polity) >>", escaped(title)),
    ];
    let mut out = "%PDF-1.7\n".to_owned();
    let mut places = Vec::new();
    for (i, object) in objects.iter().enumerate() {
        places.push(out.len());
        let _ = write!(out, "{} 0 obj\n{object}\nendobj\n", i + 1);
    }
    let (table, entries) = (out.len(), objects.len() + 1);
    let _ = write!(out, "xref\n0 {entries}\n0000000000 65535 f \n");
    for place in places {
        let _ = writeln!(out, "{place:010} 00000 n ");
    }
    let _ = write!(out, "trailer\n<< /Size {entries} /Root 1 0 R /Info 7 0 R >>\nstartxref\n{table}\n%%EOF\n");
    out.into_bytes()
}

fn font(name: &str) -> String {
    format!("<< /Type /Font /Subtype /Type1 /BaseFont /{name} /Encoding /WinAnsiEncoding >>")
}

fn percent(opacity: f64) -> u8 {
    (opacity * 100.0).round().clamp(0.0, 100.0) as u8
}

/// All opacities, in per cent.
fn opacities(drawing: &Drawing) -> BTreeSet<u8> {
    let mut all = BTreeSet::from([100]);
    for shape in &drawing.shapes {
        if let Shape::Path { look, .. } = shape {
            all.extend(look.fill.iter().chain(&look.stroke).map(|paint| percent(paint.1)));
        }
    }
    all
}

fn content(drawing: &Drawing) -> String {
    // Pixels count from the top, points from the bottom.
    let mut out = format!("{POINTS} 0 0 -{POINTS} 0 {} cm\n", number(drawing.height * POINTS));
    for shape in &drawing.shapes {
        match shape {
            Shape::Path { steps, look } => path(&mut out, steps, look),
            Shape::Text(words) => text(&mut out, words),
        }
    }
    out
}

fn rgb((red, green, blue): Colour) -> String {
    let part = |value: u8| format!("{:.3}", f64::from(value) / 255.0);
    format!("{} {} {}", part(red), part(green), part(blue))
}

fn path(out: &mut String, steps: &[Step], look: &Look) {
    let Some((_, opacity)) = look.fill.or(look.stroke) else { return };
    let _ = write!(out, "q /G{} gs ", percent(opacity));
    if let Some((colour, _)) = look.fill {
        let _ = write!(out, "{} rg ", rgb(colour));
    }
    if let Some((colour, _)) = look.stroke {
        let _ = write!(out, "{} RG {} w ", rgb(colour), number(look.width));
    }
    if let Some((dash, gap)) = look.dash {
        let _ = write!(out, "[{dash} {gap}] 0 d ");
    }
    if look.round {
        out.push_str("1 J 1 j ");
    }
    let pair = |(x, y): (f64, f64)| format!("{} {}", number(x), number(y));
    for step in steps {
        let _ = match *step {
            Step::Move(x, y) => write!(out, "{} m ", pair((x, y))),
            Step::Line(x, y) => write!(out, "{} l ", pair((x, y))),
            Step::Curve([a, b, c]) => write!(out, "{} {} {} c ", pair(a), pair(b), pair(c)),
            Step::Close => write!(out, "h "),
        };
    }
    out.push_str(match (look.fill, look.stroke) {
        (Some(_), Some(_)) => "B Q\n",
        (Some(_), None) => "f Q\n",
        _ => "S Q\n",
    });
}

fn text(out: &mut String, words: &Words) {
    let bytes = encoded(&words.text);
    let room = width(&bytes) * words.size;
    let left = match words.anchor {
        Anchor::Start => words.at.0,
        Anchor::Middle => words.at.0 - room / 2.0,
        Anchor::End => words.at.0 - room,
    };
    let font = if words.bold { "B" } else { "F" };
    let (x, y, size, string) = (number(left), number(words.at.1), number(words.size), literal(&bytes));
    // The page is upside down, so letters are turned back.
    let show = |mode: u8| format!("/{font} {size} Tf {mode} Tr 1 0 0 -1 {x} {y} Tm ({string}) Tj");
    if words.halo {
        let _ = writeln!(out, "q {} RG 3 w 1 j BT {} ET Q", rgb(PAPER), show(1));
    }
    let _ = writeln!(out, "q {} rg BT {} ET Q", rgb(words.colour), show(0));
}

/// The width of encoded text, for a font size of 1.
fn width(bytes: &[u8]) -> f64 {
    let of = |byte: &u8| byte.checked_sub(32).and_then(|at| WIDTHS.get(usize::from(at))).unwrap_or(&OTHER);
    bytes.iter().map(|byte| f64::from(*of(byte)) / 1000.0).sum()
}

/// Text in the encoding WinAnsi. Raised digits become `^2`; a character that the fonts do not have becomes `?`.
fn encoded(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut raised = false;
    for c in text.chars() {
        if let Some(sign) = lowered(c) {
            if !raised {
                bytes.push(b'^');
            }
            raised = true;
            bytes.push(sign as u8);
            continue;
        }
        raised = false;
        bytes.push(match c {
            ' '..='~' => c as u8,
            // Latin-1, which WinAnsi agrees with from here on.
            '\u{a0}'..='\u{ff}' => c as u32 as u8,
            '\u{2212}' | '–' => 0x96,
            '—' => 0x97,
            '‘' => 0x91,
            '’' => 0x92,
            '“' => 0x93,
            '”' => 0x94,
            '…' => 0x85,
            '•' => 0x95,
            '€' => 0x80,
            '\u{2009}' | '\u{202f}' => b' ',
            _ => b'?',
        });
    }
    bytes
}

/// Bytes as the inside of a string of PDF.
fn literal(bytes: &[u8]) -> String {
    let mut out = String::new();
    for byte in bytes {
        match byte {
            b'(' | b')' | b'\\' => {
                out.push('\\');
                out.push(char::from(*byte));
            }
            b' '..=b'~' => out.push(char::from(*byte)),
            byte => {
                let _ = write!(out, "\\{byte:03o}");
            }
        }
    }
    out
}

fn escaped(text: &str) -> String {
    literal(&encoded(text))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::drawing::INK;
    use super::*;

    #[test]
    fn text_is_encoded_for_the_fonts_of_every_reader() {
        assert_eq!(escaped("a (b) \\"), "a \\(b\\) \\\\");
        assert_eq!(encoded("−1.5×10⁻⁴ é Ω"), [&b"\x961.5\xd710^-4 \xe9 ?"[..]].concat());
        assert!((width(b"Hi 10") - (0.722 + 0.222 + 0.278 + 1.112)).abs() < 1e-12);
    }

    #[test]
    fn every_object_is_where_the_table_says() {
        let mut drawing = Drawing { width: 200.0, height: 100.0, ..Drawing::default() };
        drawing.rect((0.0, 0.0), (200.0, 100.0), PAPER);
        drawing.line((0.0, 0.0), (10.0, 20.0), INK, 1.5, true);
        drawing.text((5.0, 50.0), 12.0, true, INK, "Größe (°C)");
        let file = String::from_utf8(file(&drawing, "A title")).unwrap();
        let table: usize = file.rsplit("startxref\n").next().unwrap().lines().next().unwrap().parse().unwrap();
        let rows: Vec<&str> = file[table..].lines().skip(3).take_while(|line| line.ends_with(" n ")).collect();
        assert_eq!(rows.len(), 7);
        for (i, row) in rows.iter().enumerate() {
            let at: usize = row[..10].parse().unwrap();
            assert!(file[at..].starts_with(&format!("{} 0 obj\n", i + 1)), "{row}");
        }
        let (before, after) = file.split_once("stream\n").unwrap();
        let length: usize = before.rsplit("/Length ").next().unwrap().split(' ').next().unwrap().parse().unwrap();
        assert!(after[length..].starts_with("endstream"));
        assert!(file.contains("/MediaBox [0 0 150 75]") && file.contains("[5 4] 0 d"));
        assert!(file.contains("(Gr\\366\\337e \\(\\260C\\)) Tj"), "{file}");
    }
}
