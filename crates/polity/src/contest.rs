//! Methods compared on the same items.

use crate::environment::Environment;
use crate::error::{Error, Result};
use crate::events::StopHandle;
use polity_arena::arena::{self, Allowance, Arena, ArenaRequest, Asked, Comparison, Halt, Unobserved};
use polity_driver::drive::Stop;
use polity_driver::run::{RunStatus, new_folder};
use polity_driver::source::Notes;
use polity_kernel::ask::Request;
use polity_kernel::registry::Registry;
use polity_kernel::scenario::Budget;
use polity_kernel::tree::{Node, Origin};
use polity_models::models::Reply;
use std::path::PathBuf;
use std::sync::Arc;

/// Methods to be compared on the items of a file, as `polity compare METHOD ... --task FILE` does.
///
/// ```
/// # let folder = tempfile::tempdir()?;
/// # let items = folder.path().join("items.csv");
/// # std::fs::write(&items, "question,answer,difficulty\nWhat is 1 + 1?,2,0\nWhat is 2 + 3?,5,0\n")?;
/// use polity::Contest;
/// let compared = Contest::new(["direct", "self-consistency@3"], &items, "sim/medium").out(folder.path().join("out")).run()?;
/// assert_eq!((compared.items, compared.methods.len(), compared.compared.len()), (2, 2, 1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "nothing is compared before it is run"]
pub struct Contest {
    request: ArenaRequest,
    out: Option<PathBuf>,
    environment: Environment,
    stop: Stop,
}

impl std::fmt::Debug for Contest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Contest").field("request", &self.request).finish_non_exhaustive()
    }
}

impl Contest {
    /// Names the methods (as [`arena::Entrant::read`] reads them), the file of items, and the model of all members.
    pub fn new<M: Into<String>>(
        methods: impl IntoIterator<Item = M>,
        task: impl Into<PathBuf>,
        model: impl Into<String>,
    ) -> Contest {
        let methods = methods.into_iter().map(Into::into).collect();
        Contest {
            request: ArenaRequest::of(Asked::Compare, methods, task.into(), model.into()),
            out: None,
            environment: Environment::default(),
            stop: Stop::default(),
        }
    }

    /// Adds a task: every method works on every task.
    pub fn task(mut self, task: impl Into<PathBuf>) -> Contest {
        self.request.tasks.push(task.into());
        self
    }

    /// Adds a model: every method is tried with every model.
    pub fn and_model(mut self, model: impl Into<String>) -> Contest {
        self.request.models.push(model.into());
        self
    }

    /// Uses only the first items (default: all).
    pub fn limit(mut self, items: u32) -> Contest {
        self.request.limit = Some(items);
        self
    }

    /// Sets the seed of the first repeat (default: 1); each further repeat adds one.
    pub fn seed(mut self, seed: u64) -> Contest {
        self.request.seed = seed;
        self
    }

    /// Sets the number of runs of each method (default: 1).
    pub fn repeats(mut self, repeats: u32) -> Contest {
        self.request.repeats = repeats.max(1);
        self
    }

    /// Gives the methods equal budgets in a [unit](arena::Unit), or a stated [allowance](Allowance) per item, measured on a pilot of so many
    /// items (`None`: a tenth of them).
    pub fn equal(mut self, allowance: impl Into<Allowance>, pilot: Option<u32>) -> Contest {
        self.request.equal = Some(allowance.into());
        self.request.pilot = pilot;
        self
    }

    /// Recomputes each run from its journal before it counts. The comparison fails if a replay differs.
    pub fn replayed(mut self) -> Contest {
        self.request.replay = true;
        self
    }

    /// Sets the budget of all runs together.
    pub fn budget(mut self, budget: Budget) -> Contest {
        self.request.budget = budget;
        self
    }

    /// Sets a key of the scenario in which each method works.
    pub fn set(mut self, path: &str, value: impl Into<serde_json::Value>) -> Contest {
        let json = value.into();
        let node = Node { origin: Origin::Edit(format!("{path}={json}").into()), ..Node::from_json(&json) };
        self.request.edits.push((path.into(), node));
        self
    }

    /// Sets its folder (default: `runs/compare-TASK-SEED`, with several tasks `runs/compare-TASK-and-others-SEED`). An unfinished comparison in it is continued.
    pub fn out(mut self, folder: impl Into<PathBuf>) -> Contest {
        self.out = Some(folder.into());
        self
    }

    /// Uses the leaves of this registry, as [`Simulation::registry`](crate::Simulation::registry) does.
    pub fn registry(mut self, registry: impl Into<Arc<Registry>>) -> Contest {
        self.environment.registry = registry.into();
        self
    }

    /// Adds a model that is a function of this program, as [`Simulation::model`](crate::Simulation::model) does.
    pub fn model<R: Into<Reply>>(
        mut self,
        name: &str,
        answer: impl Fn(&Request) -> R + Send + Sync + 'static,
    ) -> Contest {
        self.environment.add_model(name, answer);
        self
    }

    /// Returns a handle that stops it from elsewhere in the program.
    #[must_use]
    pub fn stop_handle(&self) -> StopHandle {
        StopHandle(self.stop.clone())
    }

    /// Runs the methods, and writes tables, figures and the report into the folder.
    ///
    /// # Errors
    /// [`Error::Run`] for an unknown method, a file that cannot be read, and what stops a run; [`Error::Halted`] if it was stopped or
    /// its budget is used up.
    pub fn run(self) -> Result<Comparison> {
        let engine = self.environment.engine(Budget::default(), self.stop.clone(), Notes::default());
        let out = match &self.out {
            Some(out) => out.clone(),
            None => new_folder(engine.disk.as_ref(), &self.request.folder_name(), self.request.seed)?,
        };
        let compared = Arena::open(&engine, &self.request, &out)?.compare(&mut Unobserved);
        let comparison = compared.map_err(|halt| match halt {
            Halt::Failed(error) => Error::Run(error),
            Halt::Short(short) => {
                let how = format!("the same comparison with the folder {} and a higher limit continues", out.display());
                let message = format!("the budget of the comparison is {short}; {how}");
                Error::Halted { status: RunStatus::Budget, message }
            }
            Halt::Stopped(summary) => {
                let reason = summary.reason.as_ref().map_or(String::new(), |reason| format!(": {reason}"));
                let status = summary.status;
                let more = if status == RunStatus::Budget { " and a higher limit" } else { "" };
                let how = format!("the same comparison with the folder {}{more} continues", out.display());
                Error::Halted { status, message: format!("{status}{reason}; {how}") }
            }
        })?;
        arena::write(&engine.disk, &out, &comparison, engine.registry, true)?;
        Ok(comparison)
    }
}
