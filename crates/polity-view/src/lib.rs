//! The viewer: an HTTP server that shows runs, finished or active, in a browser, and steers active ones.
//!
//! It only reads run folders, and sends orders to active runs as `polity ctl` does. The page is in `web/`; its built files are part of
//! the program. The routes are declared in one list (`routes.rs`), from which the OpenAPI description is made.
//!
//! The same server can offer a team to clients of the OpenAI API ([`chat`]).

mod agents;
mod answers;
mod arrow;
mod catalog;
pub mod chat;
mod diff;
mod guard;
mod live;
mod openapi;
mod overview;
mod people;
mod platform;
mod problem;
mod reports;
mod routes;
mod rows;
mod systems;
mod ties;

use polity_driver::drive::Stop;
use polity_kernel::registry::Registry;
use polity_store::disk::{Disk, RealDisk};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::oneshot;
use tokio::{task, time};

/// What is shown, and where.
#[derive(Clone, Debug)]
pub struct Options {
    /// The folder of a run, or a folder that holds runs at any depth up to six.
    pub folder: PathBuf,
    /// The address; port 0 chooses a free port.
    pub address: SocketAddr,
    /// The token that requests must carry; required if the address is not local.
    pub token: Option<String>,
    /// A team that clients of the OpenAI API can ask.
    pub team: Option<chat::Team>,
}

/// A server that runs until dropped.
pub struct Viewer {
    url: String,
    address: SocketAddr,
    app: Arc<App>,
    runtime: Runtime,
    /// The server, and what tells it to end.
    serving: Option<(oneshot::Sender<()>, task::JoinHandle<()>)>,
}

/// What all requests share.
pub(crate) struct App {
    pub disk: Arc<dyn Disk>,
    pub catalog: catalog::Catalog,
    pub guard: guard::Guard,
    pub registry: Arc<Registry>,
    /// Runs that are continued in this process.
    pub resumed: Mutex<Vec<(Stop, JoinHandle<()>)>>,
}

impl Viewer {
    /// Starts to serve.
    ///
    /// # Errors
    /// A folder without runs, a port in use, an address that other machines can reach without a token.
    pub fn start(options: Options, registry: Arc<Registry>) -> Result<Self, String> {
        let Options { folder, address, token, team } = options;
        let disk: Arc<dyn Disk> = Arc::new(RealDisk);
        let catalog = catalog::Catalog::open(&folder)?;
        let refused =
            |error: std::io::Error| format!("cannot listen on {address}: {error}; port 0 chooses a free port");
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().map_err(refused)?;
        let listener = runtime.block_on(TcpListener::bind(address)).map_err(refused)?;
        let address = listener.local_addr().map_err(refused)?;
        let guard = guard::Guard::new(address, token)?;
        let url = guard.url();
        let app = Arc::new(App { disk, catalog, guard, registry, resumed: Mutex::default() });
        let router = routes::router(app.clone(), team);
        let (end, ended) = oneshot::channel();
        let serving = runtime.spawn(async move {
            let ended = async move { drop(ended.await) };
            // It has no errors: where a connection cannot be accepted, it waits.
            let _ = axum::serve(listener, router).with_graceful_shutdown(ended).await;
        });
        Ok(Viewer { url, address, app, runtime, serving: Some((end, serving)) })
    }

    /// Returns its URL, which a browser can open. With a token, it is in the fragment, which browsers send nowhere.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns the address at which clients of the OpenAI API ask its team (`OPENAI_BASE_URL`).
    #[must_use]
    pub fn base_url(&self) -> String {
        format!("http://{}{}", self.address, chat::PREFIX.trim_end_matches('/'))
    }
}

/// How long a server that ends waits for responses under way.
const FAREWELL: Duration = Duration::from_millis(500);

impl Drop for Viewer {
    fn drop(&mut self) {
        if let Some((end, serving)) = self.serving.take() {
            // Nobody listens if it has ended already. Streams of events do not end by themselves.
            let _ = end.send(());
            let _ = self.runtime.block_on(async { time::timeout(FAREWELL, serving).await });
        }
        let mut resumed = self.app.resumed.lock().unwrap_or_else(PoisonError::into_inner);
        for (stop, _) in resumed.iter() {
            stop.ask();
        }
        // A run that panicked has nothing to save.
        resumed.drain(..).for_each(|(_, work)| drop(work.join()));
    }
}

/// Whether a folder holds a run.
#[must_use]
pub fn is_run(folder: &Path) -> bool {
    folder.join("manifest.json").is_file() && folder.join("journal").is_dir()
}
