//! Parquet's hybrid of run-length encoding and bit packing, used for dictionary codes and missing values.
//!
//! The library's own encoder is reachable only value by value through a hash table of the words. For codes known in advance that would be
//! the slowest part of a table, so they are packed here.

/// Values packed together; fixed by the format.
const GROUP: usize = 8;

/// Minimum number of equal values for which a run is shorter than packing, at any width.
const SHORTEST_RUN: usize = 4 * GROUP;

/// Bits needed for numbers up to `highest`; at least one, since some readers fail on zero.
pub(super) fn width(highest: u16) -> u32 {
    (u16::BITS - highest.leading_zeros()).max(1)
}

/// Appends `values`, each below 2^`width`, to `out`.
pub(super) fn encode(values: &[u16], width: u32, out: &mut Vec<u8>) {
    let (mut packed_from, mut at) = (0, 0);
    while at < values.len() {
        let run = run(&values[at..]);
        if run < SHORTEST_RUN {
            at += run.max(GROUP);
            continue;
        }
        pack(&values[packed_from..at], width, out);
        varint(run << 1, out);
        out.extend_from_slice(&values[at].to_le_bytes()[..width.div_ceil(8) as usize]);
        at += run;
        packed_from = at;
    }
    pack(&values[packed_from..], width, out);
}

/// Length of the run of values equal to the first: whole groups, and the rest too if it reaches the end.
fn run(values: &[u16]) -> usize {
    let first = values[0];
    let (groups, rest) = values.as_chunks::<GROUP>();
    let equal = groups.iter().take_while(|group| **group == [first; GROUP]).count();
    let tail = if equal == groups.len() && rest.iter().all(|value| *value == first) { rest.len() } else { 0 };
    equal * GROUP + tail
}

fn pack(values: &[u16], width: u32, out: &mut Vec<u8>) {
    if values.is_empty() {
        return;
    }
    varint(values.len().div_ceil(GROUP) << 1 | 1, out);
    let (groups, rest) = values.as_chunks::<GROUP>();
    for group in groups {
        pack_group(group, width, out);
    }
    if !rest.is_empty() {
        let mut last = [0; GROUP];
        last[..rest.len()].copy_from_slice(rest);
        pack_group(&last, width, out);
    }
}

fn pack_group(group: &[u16; GROUP], width: u32, out: &mut Vec<u8>) {
    // Four values of 16 bits fill 64: one wide shift per half instead of one per value.
    let half =
        |values: &[u16]| (0..).zip(values).fold(0u64, |bits, (i, value)| bits | u64::from(*value) << (i * width));
    let bits = u128::from(half(&group[..4])) | u128::from(half(&group[4..])) << (4 * width);
    out.extend_from_slice(&bits.to_le_bytes()[..width as usize]);
}

fn varint(mut value: usize, out: &mut Vec<u8>) {
    while value > 0x7f {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The simplest decoder of the format.
    fn decode(bytes: &[u8], width: u32, len: usize) -> Vec<u16> {
        let (mut at, mut values) = (0, Vec::new());
        while values.len() < len {
            let (mut header, mut shift) = (0usize, 0);
            loop {
                let byte = bytes[at];
                at += 1;
                header |= usize::from(byte & 0x7f) << shift;
                shift += 7;
                if byte < 0x80 {
                    break;
                }
            }
            if header & 1 == 0 {
                let size = width.div_ceil(8) as usize;
                let value = bytes[at..at + size].iter().rev().fold(0, |v, byte| v << 8 | u16::from(*byte));
                values.extend(std::iter::repeat_n(value, header >> 1));
                at += size;
            } else {
                let count = (header >> 1) * GROUP;
                let bit = |i: usize| bytes[at + i / 8] >> (i % 8) & 1;
                for value in 0..count {
                    values
                        .push((0..width as usize).fold(0, |v, b| v | u16::from(bit(value * width as usize + b)) << b));
                }
                at += count * width as usize / 8;
            }
        }
        assert_eq!(at, bytes.len(), "every byte belongs to a value");
        values.truncate(len);
        values
    }

    proptest::proptest! {
        #[test]
        fn what_is_encoded_is_decoded(runs in proptest::collection::vec((0u16.., 1usize..90), 0..40), highest in 0u16..) {
            let values: Vec<u16> =
                runs.iter().flat_map(|(value, n)| std::iter::repeat_n((u32::from(*value) % (u32::from(highest) + 1)) as u16, *n)).collect();
            let width = width(highest);
            let mut bytes = Vec::new();
            encode(&values, width, &mut bytes);
            proptest::prop_assert_eq!(decode(&bytes, width, values.len()), values);
        }
    }

    #[test]
    fn a_constant_column_takes_no_room() {
        let mut bytes = Vec::new();
        encode(&vec![1; 1_000_003], width(1), &mut bytes);
        assert!(bytes.len() <= 4, "{} bytes", bytes.len());
    }

    #[test]
    fn bits_are_not_wasted() {
        let values: Vec<u16> = (0..80_000u32).map(|i| (i * 7 % 5) as u16).collect();
        let mut bytes = Vec::new();
        encode(&values, width(4), &mut bytes);
        assert!(bytes.len() <= 80_000 * 3 / 8 + 4, "{} bytes", bytes.len());
    }
}
