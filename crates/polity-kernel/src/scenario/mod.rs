//! Scenarios: plain data that, with a seed and a build, fully determines a run.

mod assemble;
mod assembled;
mod budget;
mod data;
mod design;
mod draft;
mod expectation;
mod files;
mod keys;
mod kinds;
mod leave_one_out;
mod memory_budget;
pub mod migrate;
mod people;
mod schema;
mod span;
mod text;
mod toolbox;
mod validation;
mod validation_source;

pub use assemble::{assemble, assemble_within, outline_within};
pub use assembled::Assembled;
pub use budget::{Budget, Limits, Price};
pub use data::{Missing, MissingSource};
pub use design::{
    Arm, By, Design, DesignSource, Factor, Fraction, Intervals, NAMED, Range, Reading, Sample, Scale, Search,
    SearchSource, Target, Until,
};
pub use draft::{Draft, SocietyDraft};
pub use expectation::Expectation;
pub use files::{FileKind, FileWish, Inputs};
pub use keys::{
    Answers, Change, CohortSource, Count, ItemSource, MemberSource, MessageSource, MetricKeys, People, Record,
    Scenario, SnapshotPlan, ToolkitKeys,
};
pub use leave_one_out::LeaveOneOut;
pub use memory_budget::{MemoryBudget, PROCESS_BYTES, bytes_in_words};
pub use migrate::VERSION;
pub use people::{MarginalSource, PopulationSource};
pub use schema::schema;
pub use span::Span;
pub use text::{StepsSource, TextSource, WEIGHTS, WeightsSource};
pub use toolbox::ToolkitEntry;
pub use validation::{Check, checks};
pub use validation_source::{At, Distance};
