//! The studies.

mod buffers;
mod digits;
mod filter;
mod gating;
mod processes;
mod steering;
mod stream;

use super::Memory;
use super::params::{Form, Kind};
use crate::trials::Experiment;
use polity_kernel::Invalid;
use polity_kernel::world::WorldSetup;
use polity_learn::incremental;

/// Opens the study of a scenario.
pub(super) fn open(kind: Kind, setup: &WorldSetup<'_>) -> Result<Box<dyn Experiment<Memory>>, Invalid> {
    Ok(match kind {
        Kind::GaussianStream(params) => {
            params.check()?;
            Box::new(params)
        }
        Kind::Digits(params) => Box::new(digits::Images::open(&params, setup)?),
        Kind::DecisionProcesses(params) => Box::new(processes::Labels::open(params)?),
        Kind::ParticleFilter(params) => Box::new(filter::Tracking::open(params)?),
        Kind::Steering(params) => Box::new(steering::Vehicles::open(params)?),
        Kind::SoftmaxGating(params) => Box::new(gating::Fits::open(params)?),
        Kind::ExpertBuffers(params) => Box::new(buffers::Queries::open(params)?),
    })
}

fn form(form: Form) -> incremental::Form {
    match form {
        Form::Precision => incremental::Form::Precision,
        Form::Covariance => incremental::Form::Covariance,
    }
}
