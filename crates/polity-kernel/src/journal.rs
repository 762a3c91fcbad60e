//! The journal's format: conversion between bytes and records, without any file access.
//!
//! A journal is a sequence of segment files numbered from 1. All numbers are little-endian.
//!
//! | segment header, 24 bytes | | record header, 16 bytes | |
//! |---|---|---|---|
//! | 0..8 | magic `PLTYJRNL` | 0..4 | length of the payload |
//! | 8..12 | format version | 4 | kind |
//! | 12..16 | number of the segment | 5..8 | zero |
//! | 16..20 | chain of the segment before (0 for the first) | 8..12 | CRC-32 of the payload |
//! | 20..24 | CRC-32 of bytes 0..20 | 12..16 | CRC-32 of bytes 0..12 |
//!
//! The payload follows its header. A segment's *chain* is a CRC-32 over its header's and its records' headers' first bytes
//! (each without the checksum at its end: data followed by its own CRC leaves a CRC in a state that no longer depends on
//! the data). It shows what no checksum of a record can: an earlier segment that lost whole records, or another run's.
//!
//! Only the end of the last segment can be torn by a kill or a power loss, since a segment is synced before the next one is
//! created. A torn end is cut off; any other damage is refused.

use thiserror::Error;

/// The version this build writes, and the newest it reads.
pub const VERSION: u32 = 1;
/// The longest payload of a record, in bytes.
pub const MAX_PAYLOAD: usize = 256 << 20;
/// Bytes of a segment's header.
pub const SEGMENT_HEADER: usize = 24;
/// Bytes of a record's header.
pub const RECORD_HEADER: usize = 16;
/// The number of a journal's first segment.
pub const FIRST_SEGMENT: u32 = 1;

const MAGIC: &[u8; 8] = b"PLTYJRNL";
/// Disks and file systems write in blocks of this size, so a block that was never written begins at a multiple of it.
const BLOCK: usize = 4096;

/// One record of a journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// The kind of payload; the writer defines its meaning.
    pub kind: u8,
    /// The bytes as they were appended.
    pub payload: &'a [u8],
}

/// The position of a segment in its journal, known before its content is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The segment's number, from its file's name.
    pub segment: u32,
    /// The chain of the segment before it; 0 for the first.
    pub previous: u32,
    /// Whether no segment follows: only then may its end be torn.
    pub last: bool,
}

/// The content of a verified segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scan {
    /// Whole records.
    pub records: u64,
    /// Bytes up to the end of the last whole record; 0 if even the segment's header is incomplete.
    pub valid_len: usize,
    /// Whether bytes after `valid_len` (or missing from the header) are to be cut.
    pub torn: bool,
    /// The segment's chain, which the next segment's header repeats.
    pub chain: u32,
}

/// Why a journal is refused. Offsets are bytes from the beginning of the segment's file.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum FormatError {
    /// Not a journal segment.
    #[error(
        "journal segment {} is damaged: it does not begin with `PLTYJRNL`. Restore the file from a copy, or run the \
         scenario again; no part of a damaged journal is used", segment_name(*.segment)
    )]
    WrongMagic {
        /// Number of the segment.
        segment: u32,
    },
    /// Written by a later build. Checked before the header's checksum, whose place a later version may change.
    #[error(
        "journal segment {} has format version {found}, but this build reads versions up to {VERSION}. Use the build \
         that made the run, or a newer one", segment_name(*.segment)
    )]
    Newer {
        /// Number of the segment.
        segment: u32,
        /// The version it says it has.
        found: u32,
    },
    /// Bytes are not as they were written.
    #[error(
        "journal segment {} is damaged at byte {offset}: {what}. Restore the file from a copy, or run the scenario \
         again; no part of a damaged journal is used", segment_name(*.segment)
    )]
    Damaged {
        /// Number of the segment.
        segment: u32,
        /// Where the damaged header or payload begins.
        offset: usize,
        /// What is wrong there.
        what: &'static str,
    },
    /// The end is missing from a segment that was complete when the next one was created.
    #[error(
        "journal segment {} ends in the middle of a record at byte {offset}, though later segments follow. Restore the \
         file from a copy, or run the scenario again; no part of a damaged journal is used", segment_name(*.segment)
    )]
    Torn {
        /// Number of the segment.
        segment: u32,
        /// Where the last whole record ends.
        offset: usize,
    },
    /// A segment does not follow from the one before it.
    #[error(
        "journal segment {} does not follow from {} as it is now: one of the two was truncated or replaced. Restore \
         them from a copy, or run the scenario again; no part of a damaged journal is used",
        segment_name(*.segment), segment_name(.segment.saturating_sub(1))
    )]
    Detached {
        /// Number of the later segment.
        segment: u32,
    },
    /// Not even the first segment's header was written.
    #[error("the run never started: its journal is empty. Remove the run's folder and run the scenario again")]
    NeverStarted,
    /// A record that cannot be appended; nothing of it is written.
    #[error(
        "a journal record of {bytes} bytes is above the limit of {MAX_PAYLOAD} bytes. Put less into one record, for \
         instance fewer agents into one snapshot part"
    )]
    TooLarge {
        /// Length of the payload.
        bytes: usize,
    },
}

/// Returns the file name of a segment.
#[must_use]
pub fn segment_name(segment: u32) -> String {
    format!("{segment:08}.journal")
}

/// Returns the number of the segment with this file name; `None` if the name is not that of a segment.
#[must_use]
pub fn segment_number(name: &str) -> Option<u32> {
    let number = name.strip_suffix(".journal")?.parse().ok()?;
    (number >= FIRST_SEGMENT && segment_name(number) == name).then_some(number)
}

/// Appends a segment's header to `out`; returns the segment's chain so far. `previous` is the chain of the segment before.
#[must_use]
pub fn begin_segment(segment: u32, previous: u32, out: &mut Vec<u8>) -> u32 {
    let start = out.len();
    out.extend_from_slice(MAGIC);
    for field in [VERSION, segment, previous] {
        out.extend_from_slice(&field.to_le_bytes());
    }
    let chain = crc32fast::hash(&out[start..]);
    out.extend_from_slice(&chain.to_le_bytes());
    chain
}

/// Appends a record to `out` and continues the segment's chain with it.
///
/// # Errors
/// [`FormatError::TooLarge`] if the payload is longer than [`MAX_PAYLOAD`]; nothing is appended then.
pub fn push_record(kind: u8, payload: &[u8], chain: &mut u32, out: &mut Vec<u8>) -> Result<(), FormatError> {
    check_payload(payload)?;
    let mut header = [0; 12];
    header[..4].copy_from_slice(&(payload.len() as u32).to_le_bytes());
    header[4] = kind;
    header[8..].copy_from_slice(&crc32fast::hash(payload).to_le_bytes());
    *chain = continued(*chain, &header);
    out.reserve(RECORD_HEADER + payload.len());
    out.extend_from_slice(&header);
    out.extend_from_slice(&crc32fast::hash(&header).to_le_bytes());
    out.extend_from_slice(payload);
    Ok(())
}

/// Checks whether a payload can be a record.
///
/// # Errors
/// [`FormatError::TooLarge`] if it is longer than [`MAX_PAYLOAD`].
pub fn check_payload(payload: &[u8]) -> Result<(), FormatError> {
    if payload.len() > MAX_PAYLOAD {
        return Err(FormatError::TooLarge { bytes: payload.len() });
    }
    Ok(())
}

/// Verifies every byte of a segment. Allocates nothing.
///
/// # Errors
/// [`FormatError`] for anything but a whole segment, or a last segment with a torn end.
pub fn scan(place: Place, bytes: &[u8]) -> Result<Scan, FormatError> {
    let Place { segment, previous, last } = place;
    let tear = |records, valid_len, chain| match (last, segment, valid_len) {
        (false, ..) => Err(FormatError::Torn { segment, offset: valid_len }),
        (true, FIRST_SEGMENT, 0) => Err(FormatError::NeverStarted),
        (true, ..) => Ok(Scan { records, valid_len, torn: true, chain }),
    };
    let damaged = |offset, what| Err(FormatError::Damaged { segment, offset, what });

    if bytes.iter().all(|b| *b == 0) {
        return tear(0, 0, 0);
    }
    let known = bytes.len().min(MAGIC.len());
    if bytes[..known] != MAGIC[..known] {
        return Err(FormatError::WrongMagic { segment });
    }
    let Some(header) = bytes.first_chunk::<SEGMENT_HEADER>() else {
        return tear(0, 0, 0);
    };
    let found = word(header, 8);
    if found > VERSION {
        return Err(FormatError::Newer { segment, found });
    }
    let mut chain = crc32fast::hash(&header[..20]);
    if word(header, 20) != chain || found != VERSION {
        return damaged(0, "the checksum of the segment's header is wrong");
    }
    if word(header, 12) != segment {
        return damaged(12, "its header has the number of another segment");
    }
    if word(header, 16) != previous {
        return Err(FormatError::Detached { segment });
    }

    let mut records = 0;
    let mut at = SEGMENT_HEADER;
    while at < bytes.len() {
        let body = at + RECORD_HEADER;
        let Some(header) = bytes[at..].first_chunk::<RECORD_HEADER>() else {
            return tear(records, at, chain);
        };
        if word(header, 12) != crc32fast::hash(&header[..12]) {
            if never_written(bytes, at, body) {
                return tear(records, at, chain);
            }
            return damaged(at, "the checksum of a record's header is wrong");
        }
        let len = word(header, 0) as usize;
        if len > MAX_PAYLOAD || header[5..8] != [0; 3] {
            return damaged(at, "a record's header holds values that this version never writes");
        }
        let Some(payload) = bytes[body..].get(..len) else {
            return tear(records, at, chain);
        };
        if word(header, 8) != crc32fast::hash(payload) {
            if never_written(bytes, at, body + len) {
                return tear(records, at, chain);
            }
            return damaged(at, "the checksum of a record's payload is wrong");
        }
        chain = continued(chain, &header[..12]);
        records += 1;
        at = body + len;
    }
    Ok(Scan { records, valid_len: at, torn: false, chain })
}

/// Iterates over the records of a segment that [`scan`] has verified: its first `valid_len` bytes.
pub fn records(verified: &[u8]) -> impl Iterator<Item = Record<'_>> {
    let mut rest = verified.get(SEGMENT_HEADER..).unwrap_or_default();
    std::iter::from_fn(move || {
        let (header, after) = rest.split_first_chunk::<RECORD_HEADER>()?;
        let (payload, after) = after.split_at_checked(word(header, 0) as usize)?;
        rest = after;
        Some(Record { kind: header[4], payload })
    })
}

/// Returns whether the record in `at..end` was never completely written: the file is zero up to its own end, either from the start
/// of the record or from the start of a block inside the record. (A file's new length can reach the disk before its data.)
fn never_written(bytes: &[u8], at: usize, end: usize) -> bool {
    let written = bytes.iter().rposition(|b| *b != 0).map_or(0, |i| i + 1);
    written <= at || written.next_multiple_of(BLOCK) < end
}

fn continued(chain: u32, header: &[u8]) -> u32 {
    let mut crc = crc32fast::Hasher::new_with_initial(chain);
    crc.update(header);
    crc.finalize()
}

/// Returns the number at `at`; every caller's `at` is a constant inside its header.
fn word<const N: usize>(header: &[u8; N], at: usize) -> u32 {
    u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const FIRST: Place = Place { segment: 1, previous: 0, last: true };

    fn segment(place: Place, payloads: &[&[u8]]) -> Vec<u8> {
        let mut out = Vec::new();
        let mut chain = begin_segment(place.segment, place.previous, &mut out);
        for (i, payload) in payloads.iter().enumerate() {
            push_record(i as u8, payload, &mut chain, &mut out).unwrap();
        }
        assert_eq!(scan(place, &out).unwrap().chain, chain);
        out
    }

    fn with_header_crc(mut bytes: Vec<u8>, at: usize, covered: usize) -> Vec<u8> {
        let crc = crc32fast::hash(&bytes[at..at + covered]);
        bytes[at + covered..at + covered + 4].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// The format is a promise to runs already on disk: these bytes may never change for version 1.
    #[test]
    fn version_1_bytes() {
        let bytes = segment(Place { segment: 2, previous: 7, last: true }, &[b"abc"]);
        assert_eq!(&bytes[..20], b"PLTYJRNL\x01\0\0\0\x02\0\0\0\x07\0\0\0");
        assert_eq!(&bytes[24..36], b"\x03\0\0\0\0\0\0\0\xc2\x41\x24\x35", "CRC-32 of `abc` is 0x352441c2");
        assert_eq!(&bytes[40..], b"abc");
    }

    #[test]
    fn names() {
        assert_eq!(segment_name(12), "00000012.journal");
        assert_eq!(segment_number("00000012.journal"), Some(12));
        assert_eq!(segment_number(&segment_name(u32::MAX)), Some(u32::MAX));
        for other in
            ["00000000.journal", "12.journal", "00000012.journal.tmp", "+0000012.journal", "99999999999.journal"]
        {
            assert_eq!(segment_number(other), None, "{other}");
        }
    }

    #[test]
    fn every_flip_of_every_bit_is_refused() {
        let bytes = segment(FIRST, &[b"one", b"", &[0; 40], b"the last"]);
        for at in 0..bytes.len() {
            for mask in 1..=255 {
                let mut flipped = bytes.clone();
                flipped[at] ^= mask;
                let refused = scan(FIRST, &flipped);
                assert!(refused.is_err(), "byte {at} ^ {mask}: {refused:?}");
            }
        }
    }

    #[test]
    fn every_cut_reads_exactly_the_whole_records() {
        let payloads: [&[u8]; 4] = [b"one", b"", &[0; 40], b"the last"];
        let place = Place { segment: 3, previous: 9, last: true };
        let whole = segment(place, &payloads);
        let ends: Vec<usize> = (0..=4).map(|n| segment(place, &payloads[..n]).len()).collect();
        for cut in 0..=whole.len() {
            let scan = scan(place, &whole[..cut]).unwrap();
            let kept = ends.iter().filter(|end| **end <= cut).count();
            assert_eq!(scan.valid_len, if kept == 0 { 0 } else { ends[kept - 1] }, "cut at {cut}");
            assert_eq!(scan.torn, scan.valid_len != cut || cut == 0, "cut at {cut}");
            let read: Vec<&[u8]> = records(&whole[..scan.valid_len]).map(|r| r.payload).collect();
            assert_eq!(read, payloads[..kept.saturating_sub(1)], "cut at {cut}");
            assert_eq!(scan.records, read.len() as u64);
        }
    }

    #[test]
    fn a_cut_in_an_earlier_segment_is_refused_here_or_by_the_next() {
        let place = Place { last: false, ..FIRST };
        let first = segment(place, &[b"one", b"two"]);
        let next = Place { segment: 2, previous: scan(place, &first).unwrap().chain, last: true };
        let second = segment(next, &[b"three"]);
        for cut in 0..first.len() {
            match scan(place, &first[..cut]) {
                Err(FormatError::Torn { segment: 1, .. }) => {}
                Err(other) => panic!("{other}"),
                Ok(shorter) => {
                    let next = Place { previous: shorter.chain, ..next };
                    assert_eq!(scan(next, &second), Err(FormatError::Detached { segment: 2 }), "cut at {cut}");
                }
            }
        }
    }

    /// A chain over whole headers would be the same for all payloads: each header ends in its own CRC.
    #[test]
    fn chains_depend_on_what_the_records_hold() {
        let chain = |payload| scan(FIRST, &segment(FIRST, &[payload, b"same"])).unwrap().chain;
        assert_ne!(chain(b"one"), chain(b"two"));
    }

    #[test]
    fn a_first_segment_without_header_never_started() {
        let header = segment(FIRST, &[]);
        for cut in 0..header.len() {
            assert_eq!(scan(FIRST, &header[..cut]), Err(FormatError::NeverStarted));
        }
        assert_eq!(scan(FIRST, &[0; 5000]), Err(FormatError::NeverStarted));
        assert!(scan(Place { segment: 2, ..FIRST }, &[0; 5000]).unwrap().torn);
        assert_eq!(scan(FIRST, b"PLTX"), Err(FormatError::WrongMagic { segment: 1 }));
    }

    #[test]
    fn newer_versions_and_strange_headers_are_refused() {
        let whole = segment(FIRST, &[b"one"]);
        let mut newer = whole.clone();
        newer[8] = 2;
        let error = scan(FIRST, &with_header_crc(newer, 0, 20)).unwrap_err();
        assert_eq!(error, FormatError::Newer { segment: 1, found: 2 });
        let text = error.to_string();
        assert!(text.contains("version 2") && text.contains("up to 1") && text.contains("00000001.journal"), "{text}");

        let mut older = whole.clone();
        older[8] = 0;
        assert!(scan(FIRST, &with_header_crc(older, 0, 20)).is_err());
        for (at, value) in [(5, 1), (3, 0x20)] {
            let mut strange = whole.clone();
            strange[SEGMENT_HEADER + at] = value;
            let refused = scan(FIRST, &with_header_crc(strange, SEGMENT_HEADER, 12));
            assert!(matches!(refused, Err(FormatError::Damaged { offset: SEGMENT_HEADER, .. })), "{refused:?}");
        }
        let other = scan(Place { segment: 2, ..FIRST }, &whole);
        assert!(matches!(other, Err(FormatError::Damaged { segment: 2, offset: 12, .. })), "{other:?}");
    }

    #[test]
    fn blocks_never_written_are_a_tear_only_at_the_end() {
        let long = vec![7; 3 * BLOCK];
        let place = Place { segment: 2, previous: 1, last: true };
        let whole = segment(place, &[b"kept", &long]);
        let kept = segment(place, &[b"kept"]).len();
        for from in [kept, BLOCK, 2 * BLOCK, 3 * BLOCK] {
            let mut hole = whole.clone();
            hole[from..].fill(0);
            let torn = scan(place, &hole).unwrap();
            assert_eq!((torn.valid_len, torn.torn), (kept, true), "zero from {from}");
            hole.resize(5 * BLOCK, 0);
            assert_eq!(scan(place, &hole).unwrap().valid_len, kept, "zero from {from}, and longer");
            assert!(scan(Place { last: false, ..place }, &hole).is_err());
        }
        for hole in [kept + 2..whole.len(), BLOCK + 1..2 * BLOCK, 2 * BLOCK..3 * BLOCK] {
            let mut inside = whole.clone();
            inside[hole.clone()].fill(0);
            assert!(scan(place, &inside).is_err(), "zero in {hole:?}");
        }
        let mut inside = segment(place, &[b"kept", &long, b"more"]);
        inside[BLOCK..3 * BLOCK].fill(0);
        assert!(scan(place, &inside).is_err(), "a record follows the hole");
    }

    #[test]
    fn too_long_a_payload_is_not_written() {
        let (mut out, mut chain) = (Vec::new(), 5);
        let long = vec![0; MAX_PAYLOAD + 1];
        let refused = push_record(0, &long, &mut chain, &mut out);
        assert_eq!(refused, Err(FormatError::TooLarge { bytes: MAX_PAYLOAD + 1 }));
        assert_eq!((out.len(), chain), (0, 5));
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_are_read_without_panic(
            body in proptest::collection::vec(any::<u8>(), 0..300), framed: bool, segment in 1u32..4, last: bool,
        ) {
            let place = Place { segment, previous: 0, last };
            let mut bytes = Vec::new();
            if framed {
                let _ = begin_segment(segment, 0, &mut bytes);
            }
            bytes.extend_from_slice(&body);
            if let Ok(scan) = scan(place, &bytes) {
                prop_assert!(scan.valid_len <= bytes.len());
                prop_assert_eq!(records(&bytes[..scan.valid_len]).count() as u64, scan.records);
            }
            // Unverified bytes give nonsense, but no panic.
            let _ = records(&bytes).count();
        }

        #[test]
        fn records_come_back(payloads in proptest::collection::vec(
            proptest::collection::vec(prop_oneof![Just(0u8), any::<u8>()], 0..60), 0..20,
        )) {
            let payloads: Vec<&[u8]> = payloads.iter().map(Vec::as_slice).collect();
            let bytes = segment(FIRST, &payloads);
            let read: Vec<&[u8]> = records(&bytes).map(|r| r.payload).collect();
            prop_assert_eq!(read, payloads);
        }
    }
}
