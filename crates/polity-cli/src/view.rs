//! `polity view` and `polity serve FOLDER`: runs in the browser.

use super::args::Serving;
use super::failure::{Exit, Failure};
use super::output::{note, print_line};
use polity_kernel::registry::Registry;
use polity_view::{Options, Viewer};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, mpsc};

/// Serves a folder until Ctrl-C. The first line of standard output is the URL.
pub(crate) fn serve(folder: &Path, serving: &Serving, registry: Arc<Registry>) -> Result<Exit, Failure> {
    let options = Options {
        folder: folder.to_path_buf(),
        address: SocketAddr::new(serving.host, serving.port),
        token: serving.token.clone(),
        team: None,
    };
    let viewer = Viewer::start(options, registry).map_err(|why| Failure::new(Exit::Input, why))?;
    print_line(viewer.url());
    let (stop, stopped) = mpsc::channel();
    // Without a handler Ctrl-C stops the process all the same.
    let _ = ctrlc::set_handler(move || {
        // The receiver is gone only when the program ends.
        let _ = stop.send(());
    });
    note("serving until Ctrl-C; runs go on without the viewer");
    if !serving.no_open {
        browse(viewer.url());
    }
    // An error means that there is no handler; then nothing ends it but a signal.
    if stopped.recv().is_err() {
        loop {
            std::thread::park();
        }
    }
    Ok(Exit::Done)
}

/// Opens a URL in the user's browser, if there is one; the URL is printed in any case.
fn browse(url: &str) {
    let program = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let _ = Command::new(program).arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
}

/// Serves one run, as [`serve`] does. Refuses a folder without a run.
pub(crate) fn view(run: &Path, serving: &Serving, registry: Arc<Registry>) -> Result<Exit, Failure> {
    match run.join("manifest.json").is_file() {
        true => serve(run, serving, registry),
        false => Err(Failure::new(
            Exit::Input,
            format!("{} holds no run; `polity serve {0}` shows all runs below a folder", run.display()),
        )),
    }
}
