//! Bytes in the form read by the Parquet library.

use parquet::basic::Encoding;
use parquet::column::page::Page;
use parquet::file::reader::ChunkReader;

/// The library reads from its own shared bytes, a type of another crate; a page converts ours to it.
pub(crate) fn shared(bytes: Vec<u8>) -> impl ChunkReader + 'static {
    let page = Page::DictionaryPage { buf: bytes.into(), num_values: 0, encoding: Encoding::PLAIN, is_sorted: false };
    page.buffer().clone()
}
