//! Orders to a run active in another process: `control/order.json` in its folder, and the result in `control/taken.json`. One order at a
//! time; the sender waits for the run's reply.
//!
//! Uses files rather than a socket, as with people: they work wherever the run folder does, and leftovers of a killed process are found
//! and removed. `docs/decisions/orders-are-files.md`.

mod letters;
mod order;

pub(crate) use letters::Control;
pub(crate) use letters::Wish;
pub use letters::{Recorded, Status};
pub use order::{Said, not_under_way, order, recorded, status, under_way};
