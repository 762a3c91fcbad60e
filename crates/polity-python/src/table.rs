//! Tables as Arrow streams.

use crate::error::exception;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{ArrayRef, BooleanArray, Float64Array, LargeStringArray, RecordBatch, RecordBatchIterator};
use arrow_array::{UInt32Array, UInt64Array};
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use polity::Call;
use polity::tables::{Kind, TableSpec};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use serde_json::Value as Json;
use std::sync::Arc;

/// A table in memory: record batches, and what its columns mean.
#[pyclass(frozen, module = "polity._polity")]
pub struct Table {
    name: String,
    doc: String,
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
    /// Name, kind, meaning.
    columns: Vec<(String, String, String)>,
}

fn kind(kind: &Kind) -> (&'static str, DataType) {
    match kind {
        Kind::U32 => ("u32", DataType::UInt32),
        Kind::U64 => ("u64", DataType::UInt64),
        Kind::F64 => ("f64", DataType::Float64),
        Kind::Bool => ("bool", DataType::Boolean),
        Kind::Text => ("text", DataType::LargeUtf8),
        Kind::Category(_) => ("category", DataType::LargeUtf8),
    }
}

impl Table {
    /// A table of a run.
    pub fn of(spec: TableSpec, batches: Vec<RecordBatch>) -> Table {
        let field =
            |column: &polity::tables::ColumnSpec| Field::new(&column.name, kind(&column.kind).1, column.nullable);
        let schema = match batches.first() {
            Some(batch) => batch.schema(),
            None => Arc::new(Schema::new(spec.columns.iter().map(field).collect::<Vec<_>>())),
        };
        let columns = spec.columns.iter();
        let columns = columns.map(|column| (column.name.clone(), kind(&column.kind).0.into(), column.doc.clone()));
        Table { name: spec.name, doc: spec.doc, schema, batches, columns: columns.collect() }
    }

    /// The calls of a run, from its journal.
    pub fn of_calls(calls: &[Call]) -> Result<Table, ArrowError> {
        let text = |of: &dyn Fn(&Call) -> String| -> ArrayRef {
            Arc::new(LargeStringArray::from_iter_values(calls.iter().map(of)))
        };
        let whole =
            |of: &dyn Fn(&Call) -> u32| -> ArrayRef { Arc::new(UInt32Array::from_iter_values(calls.iter().map(of))) };
        let long =
            |of: &dyn Fn(&Call) -> u64| -> ArrayRef { Arc::new(UInt64Array::from_iter_values(calls.iter().map(of))) };
        let real =
            |of: &dyn Fn(&Call) -> f64| -> ArrayRef { Arc::new(Float64Array::from_iter_values(calls.iter().map(of))) };
        let truth = |of: &dyn Fn(&Call) -> bool| -> ArrayRef {
            Arc::new(BooleanArray::from_iter(calls.iter().map(|call| Some(of(call)))))
        };
        let costs: ArrayRef = Arc::new(Float64Array::from_iter(calls.iter().map(|call| call.cost_usd)));
        let items: ArrayRef = Arc::new(UInt32Array::from_iter(calls.iter().map(|call| call.item)));
        let columns: [(&str, &str, &str, ArrayRef); 23] = [
            ("item", "u32", "row of the data set; none in a society", items),
            ("round", "u32", "the round in which the turn began", whole(&|c| c.round)),
            ("agent", "u32", "the agent, or the member of the team", whole(&|c| c.agent)),
            ("asker", "text", "who asked", text(&|c| c.asker.name().into())),
            ("n", "u32", "number of the asker's request for the agent in the round", whole(&|c| c.n)),
            ("purpose", "text", "the purpose in a word; may be empty", text(&|c| c.purpose.clone())),
            ("model", "text", "`provider/model`", text(&|c| c.model.clone())),
            ("outcome", "text", "how it ended", text(&|c| c.outcome.into())),
            ("resolution", "text", "what the outcome led to", text(&|c| c.resolution.into())),
            ("attempt", "u32", "number of earlier tries", whole(&|c| c.attempt)),
            ("tokens_in", "u64", "tokens of the request", long(&|c| c.tokens_in)),
            ("tokens_out", "u64", "tokens of the reply", long(&|c| c.tokens_out)),
            ("tokens_cached", "u64", "cached tokens of the request", long(&|c| c.tokens_cached)),
            ("tokens_thinking", "u64", "hidden thinking tokens of the reply", long(&|c| c.tokens_thinking)),
            ("cost_usd", "f64", "cost in US dollars; missing if the price is not known", costs),
            ("latency_ms", "f64", "milliseconds it took", real(&|c| c.latency_ms)),
            ("waited_ms", "f64", "milliseconds before it was sent", real(&|c| c.waited_ms)),
            ("retries", "u32", "failed tries before", whole(&|c| c.retries)),
            (
                "shared",
                "bool",
                "whether the answer was shared from another request of the same words",
                truth(&|c| c.shared),
            ),
            ("estimated", "bool", "whether its tokens are counted at their maximum", truth(&|c| c.estimated)),
            ("prompt", "text", "the request: all messages, each under its role", text(&|c| c.prompt.clone())),
            ("answer", "text", "the original reply; without one, the error message", text(&|c| c.answer.clone())),
            ("reasoning", "text", "what the model thought; empty if it is not shown", text(&|c| c.reasoning.clone())),
        ];
        let field = |(name, _, _, array): &(&str, &str, &str, ArrayRef)| {
            Field::new(*name, array.data_type().clone(), matches!(*name, "item" | "cost_usd"))
        };
        let schema = Arc::new(Schema::new(columns.iter().map(field).collect::<Vec<_>>()));
        let docs = columns.iter().map(|(name, kind, doc, _)| ((*name).into(), (*kind).into(), (*doc).into())).collect();
        let batch = RecordBatch::try_new(schema.clone(), columns.into_iter().map(|column| column.3).collect())?;
        let doc = "One row per question to a model, a tool or a person, with its answer.";
        Ok(Table { name: "calls".into(), doc: doc.into(), schema, batches: vec![batch], columns: docs })
    }
}

#[pymethods]
impl Table {
    /// Makes a table of rows, a JSON list of objects. `columns`: name, kind (`u64`, `f64`, `bool` or `text`), meaning. What a row lacks is
    /// missing.
    #[staticmethod]
    fn of_rows(
        py: Python<'_>,
        name: String,
        doc: String,
        columns: Vec<(String, String, String)>,
        rows: &str,
    ) -> PyResult<Table> {
        let wrong = |error: String| exception(py, "RunError", &format!("the table `{name}`: {error}"), None);
        let rows: Vec<Json> = serde_json::from_str(rows).map_err(|error| wrong(error.to_string()))?;
        let array = |(column, kind, _): &(String, String, String)| -> ArrayRef {
            let cells = rows.iter().map(|row| &row[column.as_str()]);
            let text = |cell: &Json| match cell {
                Json::Null => None,
                Json::String(text) => Some(text.clone()),
                other => Some(other.to_string()),
            };
            match kind.as_str() {
                "u64" => Arc::new(cells.map(Json::as_u64).collect::<UInt64Array>()),
                "f64" => Arc::new(cells.map(Json::as_f64).collect::<Float64Array>()),
                "bool" => Arc::new(cells.map(Json::as_bool).collect::<BooleanArray>()),
                _ => Arc::new(cells.map(text).collect::<LargeStringArray>()),
            }
        };
        let arrays: Vec<ArrayRef> = columns.iter().map(array).collect();
        let field = |((column, _, _), array): (&(String, String, String), &ArrayRef)| {
            Field::new(column, array.data_type().clone(), true)
        };
        let schema = Arc::new(Schema::new(columns.iter().zip(&arrays).map(field).collect::<Vec<_>>()));
        let batch = RecordBatch::try_new(schema.clone(), arrays).map_err(|error| wrong(error.to_string()))?;
        Ok(Table { name, doc, schema, batches: vec![batch], columns })
    }

    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    #[getter]
    fn doc(&self) -> &str {
        &self.doc
    }

    #[getter]
    fn columns(&self) -> Vec<(String, String, String)> {
        self.columns.clone()
    }

    fn __len__(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    /// The schema, by Arrow's PyCapsule interface.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(self.schema.as_ref()).map_err(|error| {
            exception(py, "RunError", &format!("the table's schema cannot be passed on: {error}"), None)
        })?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }

    /// The rows, by Arrow's PyCapsule interface. Nothing is copied. The types of the stream are always the table's own.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // The interface lets a producer ignore a request that it cannot fulfil; the consumer then casts.
        drop(requested_schema);
        let batches = self.batches.clone().into_iter().map(Ok);
        let reader = RecordBatchIterator::new(batches, self.schema.clone());
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(reader)), c"arrow_array_stream")
    }
}
