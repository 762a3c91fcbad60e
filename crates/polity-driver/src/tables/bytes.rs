//! Bytes in the form the Parquet library reads from.

use parquet::basic::Encoding;
use parquet::column::page::Page;
use parquet::file::reader::ChunkReader;

/// The library reads from its own kind of shared bytes, whose name is another crate's; a page makes them of ours.
pub(super) fn shared(bytes: Vec<u8>) -> impl ChunkReader + 'static {
    let page = Page::DictionaryPage { buf: bytes.into(), num_values: 0, encoding: Encoding::PLAIN, is_sorted: false };
    page.buffer().clone()
}
