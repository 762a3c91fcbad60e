//! A column of words known in advance, as one Parquet column chunk: a page of the words that occur, and a page of codes.

use parquet::basic::{Compression, Encoding, PageType};
use parquet::column::page::{CompressedPage, Page, PageWriter};
use parquet::column::writer::ColumnCloseResult;
use parquet::data_type::ByteArray;
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::{ColumnChunkMetaData, PageEncodingStats};
use parquet::file::statistics::Statistics;
use parquet::file::writer::{SerializedPageWriter, TrackedWrite};
use parquet::schema::types::ColumnDescPtr;

use super::batch::{Column, Piece, Value};
use super::hybrid;

/// Longest word stored in full in the statistics; a column with a longer word has none.
const LONGEST_STATISTIC: usize = 64;

pub(super) fn encode(
    descr: ColumnDescPtr,
    words: &[String],
    pieces: &[Piece<'_>],
    sink: &mut TrackedWrite<Vec<u8>>,
) -> Result<ColumnCloseResult> {
    let rows: usize = pieces.iter().map(|piece| piece.rows.len()).sum();
    let nullable = descr.max_def_level() > 0;
    let mut used = vec![false; words.len()];
    for piece in pieces {
        each_code(piece, |code| used[usize::from(code)] = true)?;
    }
    let mut new_code = vec![0u16; words.len()];
    let mut dictionary: Vec<&String> = Vec::new();
    for (code, word) in words.iter().enumerate().filter(|(code, _)| used[*code]) {
        new_code[code] = dictionary.len() as u16;
        dictionary.push(word);
    }

    let mut codes = Vec::with_capacity(rows);
    for piece in pieces {
        each_code(piece, |code| codes.push(new_code[usize::from(code)]))?;
    }
    let mut data = Vec::with_capacity(rows / 2);
    if nullable {
        // The length of the levels in bytes precedes them; it is known only afterwards.
        data.extend_from_slice(&[0; 4]);
        hybrid::encode(&levels(pieces, rows), 1, &mut data);
        let length = (data.len() - 4) as u32;
        data[..4].copy_from_slice(&length.to_le_bytes());
    }
    let width = hybrid::width(dictionary.len().saturating_sub(1) as u16);
    data.push(width as u8);
    hybrid::encode(&codes, width, &mut data);

    let start = sink.bytes_written() as u64;
    let mut pages = SerializedPageWriter::new(sink);
    let dictionary_page = pages.write_page(page(dictionary_page(&dictionary)))?;
    let data_page = pages.write_page(page(Page::DataPage {
        buf: data.into(),
        num_values: rows as u32,
        encoding: Encoding::RLE_DICTIONARY,
        def_level_encoding: Encoding::RLE,
        rep_level_encoding: Encoding::RLE,
        statistics: None,
    }))?;
    pages.close()?;

    let bytes = data_page.offset + data_page.bytes_written - start;
    let metadata = ColumnChunkMetaData::builder(descr)
        .set_compression(Compression::UNCOMPRESSED)
        .set_encodings(vec![Encoding::PLAIN, Encoding::RLE, Encoding::RLE_DICTIONARY])
        .set_page_encoding_stats(vec![
            PageEncodingStats { page_type: PageType::DICTIONARY_PAGE, encoding: Encoding::PLAIN, count: 1 },
            PageEncodingStats { page_type: PageType::DATA_PAGE, encoding: Encoding::RLE_DICTIONARY, count: 1 },
        ])
        .set_num_values(rows as i64)
        .set_total_compressed_size(bytes as i64)
        .set_total_uncompressed_size(bytes as i64)
        .set_dictionary_page_offset(Some(dictionary_page.offset as i64))
        .set_data_page_offset(data_page.offset as i64)
        .set_statistics(statistics(&dictionary, rows - codes.len()))
        .build()?;
    Ok(ColumnCloseResult {
        bytes_written: bytes,
        rows_written: rows as u64,
        metadata,
        bloom_filter: None,
        column_index: None,
        offset_index: None,
    })
}

fn page(page: Page) -> CompressedPage {
    let size = page.buffer().len();
    CompressedPage::new(page, size)
}

fn dictionary_page(words: &[&String]) -> Page {
    let mut bytes = Vec::new();
    for word in words {
        bytes.extend_from_slice(&(word.len() as u32).to_le_bytes());
        bytes.extend_from_slice(word.as_bytes());
    }
    Page::DictionaryPage {
        buf: bytes.into(),
        num_values: words.len() as u32,
        encoding: Encoding::PLAIN,
        is_sorted: false,
    }
}

fn statistics(words: &[&String], nulls: usize) -> Statistics {
    let short = words.iter().all(|word| word.len() <= LONGEST_STATISTIC);
    let value = |word: Option<&&String>| word.filter(|_| short).map(|word| ByteArray::from(word.as_str()));
    Statistics::byte_array(value(words.iter().min()), value(words.iter().max()), None, Some(nulls as u64), false)
}

/// Calls `put` with the present codes, in order.
fn each_code(piece: &Piece<'_>, mut put: impl FnMut(u16)) -> Result<()> {
    let rows = piece.rows.clone();
    match &*piece.column {
        Column::Code(codes) => codes[rows].iter().for_each(|code| put(*code)),
        Column::MaybeCode(codes) => codes[rows].iter().flatten().for_each(|code| put(*code)),
        Column::Same(Value::Code(code)) => rows.for_each(|_| put(*code)),
        Column::Same(Value::Missing) => {}
        _ => {
            return Err(ParquetError::General("a category column was given something other than codes".into()));
        }
    }
    Ok(())
}

/// One for every present value, zero for every missing one.
fn levels(pieces: &[Piece<'_>], rows: usize) -> Vec<u16> {
    let mut levels = Vec::with_capacity(rows);
    for piece in pieces {
        match &*piece.column {
            Column::MaybeCode(codes) => {
                levels.extend(codes[piece.rows.clone()].iter().map(|code| u16::from(code.is_some())))
            }
            Column::Same(Value::Missing) => levels.extend(piece.rows.clone().map(|_| 0)),
            _ => levels.extend(piece.rows.clone().map(|_| 1)),
        }
    }
    levels
}
