//! What a policy or a world in Python may read of its society: attributes of agents, and ties.

use crate::bytes::{doubles, long_wholes, wholes};
use polity::kernel::population::{Column, Table};
use polity::kernel::topology::Topology;
use pyo3::exceptions::{PyKeyError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};
use std::sync::Arc;

/// The attributes and ties of a society.
#[pyclass(frozen, module = "polity._polity")]
pub struct Setup {
    table: Arc<Table>,
    topology: Topology,
}

impl Setup {
    pub fn new(table: Arc<Table>, topology: Topology) -> Setup {
        Setup { table, topology }
    }
}

#[pymethods]
impl Setup {
    /// The names of the attributes.
    fn names(&self) -> Vec<String> {
        self.table.columns().map(|(name, _)| name.to_owned()).collect()
    }

    /// An attribute of every row of the population: bytes of doubles, or a list of texts.
    fn attribute<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        let column = self.table.columns().find(|(known, _)| *known == name).map(|(_, column)| column);
        match column {
            Some(Column::Number(values)) => Ok(doubles(py, values)?.into_any()),
            Some(Column::Text { codes, words }) => {
                let texts = codes.iter().map(|code| words.get(*code as usize).map_or("", String::as_str));
                Ok(PyList::new(py, texts.collect::<Vec<_>>())?.into_any())
            }
            None => Err(PyKeyError::new_err(format!("the population has no attribute `{name}`"))),
        }
    }

    /// Who hears whom: for agent i, the agents `targets[offsets[i]..offsets[i + 1]]`, as bytes of 64-bit and 32-bit numbers.
    fn ties<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyBytes>, Bound<'py, PyBytes>)> {
        /// More than that is no list that anybody wants.
        const MOST: u64 = 1 << 31;
        if self.topology.arcs() > MOST {
            let message = "the topology has more than two thousand million ties, so their list is not made; everybody \
                           hears everybody in a society without a topology: use means over all agents instead";
            return Err(PyValueError::new_err(message));
        }
        let (offsets, targets) = py.detach(|| {
            let (mut offsets, mut targets) = (vec![0u64], Vec::with_capacity(self.topology.arcs() as usize));
            for agent in 0..self.topology.n() {
                targets.extend(self.topology.neighbours(agent));
                offsets.push(targets.len() as u64);
            }
            (offsets, targets)
        });
        Ok((long_wholes(py, &offsets)?, wholes(py, &targets)?))
    }
}
