//! `polity serve --method METHOD`: a team that clients of the OpenAI API ask as they ask a model.

use super::args::{Answering, Common, Edits, Keys, Served, Serving, Spending};
use super::engine::with_engine;
use super::failure::{Exit, Failure};
use super::flags::{check_model, edits as read_edits, no_model};
use super::output::{self, note, print_line};
use polity_arena::arena::Entrant;
use polity_arena::team::{self, Query, Reply, TeamRequest};
use polity_driver::drive::Stop;
use polity_driver::run::{Engine, new_folder};
use polity_kernel::registry::Registry;
use polity_store::DriveError;
use polity_view::chat::{Answered, Question, Team, Unanswered};
use polity_view::{Options, Viewer};
use serde_json::json;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// Questions that may wait for a thread; more are refused.
const WAITING: usize = 256;
/// How often a thread without a question looks whether the server is to end.
const TICK: Duration = Duration::from_millis(100);

/// What the command line says of the team.
pub(crate) struct Wished<'a> {
    pub method: &'a str,
    pub served: &'a Served,
    pub edits: &'a Edits,
    pub spending: Spending,
    pub answering: &'a Answering,
    pub common: &'a Common,
}

impl Wished<'_> {
    fn request(&self) -> Result<TeamRequest, Failure> {
        let Edits { keys: Keys { seed, set, .. }, model } = self.edits;
        let model = model.clone().ok_or_else(no_model)?;
        check_model(&model)?;
        let mut edits = read_edits(set)?;
        edits.extend(self.answering.flags()?);
        Ok(TeamRequest { model, seed: seed.unwrap_or(1), edits, budget: self.spending.budget() })
    }
}

/// Refuses flags of a team where there is none.
pub(crate) fn no_flags_of_teams(edits: &Edits, answering: &Answering) -> Result<(), Failure> {
    if edits.keys.set.is_empty() && answering.price.is_empty() {
        return Ok(());
    }
    let message =
        "-P and --price are for a team, and `polity serve FOLDER` only shows runs; name a method with --method";
    Err(Failure::new(Exit::Input, message))
}

/// Serves a team until Ctrl-C. The first line of standard output is the base URL for clients.
pub(crate) fn serve(wished: &Wished<'_>, serving: &Serving, registry: &Arc<Registry>) -> Result<Exit, Failure> {
    with_engine(wished.common, wished.answering, registry, |engine, stop| {
        let Keys { agents, rounds, .. } = &wished.edits.keys;
        let entrant = Entrant::read(wished.method, *agents, *rounds, registry)?;
        let request = wished.request()?;
        let jobs = wished.served.jobs.get();
        // Runs at the same time share the limit on calls in flight.
        let connections = (engine.connections / jobs).max(1);
        let engine = &Engine { connections, ..engine.clone() };
        let folder = match &wished.served.out {
            Some(out) => out.clone(),
            None => new_folder(engine.disk.as_ref(), &format!("serve-{}", entrant.method), request.seed)?,
        };
        let (questions, asked) = sync_channel(WAITING);
        let offered = Team { name: format!("polity/{}", entrant.label), questions };
        let team = team::Team::open(engine, entrant, request, &folder)?;
        let name = offered.name.clone();
        let viewer = offer(offered, &folder, serving, registry)?;
        print_line(&viewer.base_url());
        note(&format!(
            "the model `{name}` answers at this address, as OPENAI_BASE_URL; its runs go to {} and are shown at {}; \
             Ctrl-C stops the server",
            folder.display(),
            viewer.url()
        ));
        let asked = Mutex::new(asked);
        thread::scope(|scope| {
            for _ in 0..jobs {
                scope.spawn(|| answer_all(&team, &asked, &stop));
            }
        });
        // Clients whose questions wait are told that the server ends, before it does.
        drop(asked);
        drop(viewer);
        if wished.common.json {
            print_line(&output::json(&json!({ "status": "stopped", "folder": folder.display().to_string() })));
        }
        Ok(Exit::Done)
    })
}

fn offer(team: Team, folder: &Path, serving: &Serving, registry: &Arc<Registry>) -> Result<Viewer, Failure> {
    let options = Options {
        folder: folder.to_path_buf(),
        address: SocketAddr::new(serving.host, serving.port),
        token: serving.token.clone(),
        team: Some(team),
    };
    Viewer::start(options, registry.clone()).map_err(|why| Failure::new(Exit::Input, why))
}

/// Answers questions, one after the other, until the server is to end.
fn answer_all(team: &team::Team<'_>, asked: &Mutex<Receiver<Question>>, stop: &Stop) {
    while !stop.asked() {
        let next = asked.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(TICK);
        match next {
            // The client is gone, and the question has cost nothing yet.
            Ok(question) if question.is_abandoned() => {}
            Ok(question) => {
                let query = Query { text: question.text.clone(), seed: question.seed, settings: question.settings };
                question.settle(team.ask(&query).map(answered).map_err(unanswered));
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

fn answered(reply: Reply) -> Answered {
    let Reply { id, text, digest, spent, .. } = reply;
    Answered {
        id,
        text,
        digest,
        calls: spent.calls,
        tokens_in: spent.tokens_in,
        tokens_out: spent.tokens_out,
        cost_usd: spent.cost_usd,
    }
}

fn unanswered(why: team::Unanswered) -> Unanswered {
    match why {
        team::Unanswered::Budget(why) => Unanswered::Budget(format!(
            "the budget of this server is used up: {why}; start the server again with a larger one (--max-calls, \
             --max-tokens, --max-cost, --max-requests or --max-time)"
        )),
        team::Unanswered::Stopped(run) => {
            Unanswered::Ending(format!("the run was stopped; `polity resume {}` continues it", run.display()))
        }
        team::Unanswered::Silent(run) => Unanswered::Silent(format!(
            "the members of the team came to no answer; `polity calls {}` shows what they were asked and what they answered",
            run.display()
        )),
        team::Unanswered::Failed(error @ DriveError::Lost(_)) => Unanswered::Unreachable(error.to_string()),
        team::Unanswered::Failed(error) => Unanswered::Failed(error.to_string()),
    }
}
