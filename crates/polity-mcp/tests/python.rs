//! Both ends against the packages of Python that most others use: the official one, and FastMCP.

use polity_kernel::tool::{EffectClass, ToolOutput};
use polity_mcp::client::{Limits, McpServer, Params};
use polity_models::toolkits::Toolkit;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// A process that ends with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn here() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The Python that has the packages, if they can be installed.
fn python() -> Option<PathBuf> {
    let root = here().join("../..");
    let script = Command::new("bash").args(["scripts/python-clients.sh", "mcp"]).current_dir(&root).output().unwrap();
    if script.status.code() == Some(75) {
        eprintln!("SKIPPED: {}", String::from_utf8_lossy(&script.stderr).trim());
        return None;
    }
    assert!(script.status.success(), "{}", String::from_utf8_lossy(&script.stderr));
    Some(root.join("target/venv-mcp/bin/python"))
}

fn served() -> PathBuf {
    let mut path = std::env::current_exe().unwrap();
    path.pop();
    path.pop();
    path.join("examples/served")
}

#[test]
fn the_official_client_calls_tools_that_are_served() {
    let Some(python) = python() else { return };
    let mut running = Running(Command::new(served()).arg("http").stdout(Stdio::piped()).spawn().unwrap());
    let mut url = String::new();
    BufReader::new(running.0.stdout.take().unwrap()).read_line(&mut url).unwrap();
    let mut client = Command::new(python);
    client.arg(here().join("tests/client.py")).arg(served()).arg(url.trim()).env("NO_PROXY", "127.0.0.1");
    let said = client.output().unwrap();
    let printed = String::from_utf8_lossy(&said.stdout);
    assert!(said.status.success(), "{printed}\n{}", String::from_utf8_lossy(&said.stderr));
    for line in ["stdio 2026-07-28", "stdio legacy 2025-11-25", "http 2026-07-28", "http legacy 2025-11-25"] {
        assert!(printed.contains(&format!("{line} ok")), "{line}: {printed}");
    }
}

#[tokio::test]
async fn servers_of_python_are_used() {
    let Some(python) = python() else { return };
    for maker in ["fastmcp", "official"] {
        let mut command = vec![python.to_string_lossy().into_owned()];
        command.push(here().join("tests/server.py").to_string_lossy().into_owned());
        let with = |transport: &str, port: &str| {
            command.iter().cloned().chain([maker.into(), transport.into(), port.into()]).collect::<Vec<String>>()
        };
        let stdio = Params { command: Some(with("stdio", "0")), ..Params::default() };
        used(maker, &McpServer::connect(stdio, Limits::default(), None).await.unwrap()).await;
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string();
        let [program, arguments @ ..] = &with("http", &port)[..] else { panic!("no program") };
        let silent = (Stdio::null(), Stdio::null());
        let _running =
            Running(Command::new(program).args(arguments).stdout(silent.0).stderr(silent.1).spawn().unwrap());
        let http = Params { url: Some(format!("http://127.0.0.1:{port}/mcp")), ..Params::default() };
        used(maker, &reached(http).await).await;
    }
}

/// Connects to a server that is just starting.
async fn reached(params: Params) -> McpServer {
    for _ in 0..600 {
        match McpServer::connect(params.clone(), Limits::default(), None).await {
            Err(why) if why.contains("no connection") => tokio::time::sleep(Duration::from_millis(100)).await,
            connected => return connected.unwrap(),
        }
    }
    panic!("the server does not start");
}

async fn used(maker: &str, server: &McpServer) {
    let call =
        async |tool: &str, arguments: Value| server.call(tool, arguments.as_object().unwrap(), "").await.unwrap();
    let names: Vec<String> = server.tools().iter().map(|spec| spec.name.to_string()).collect();
    assert_eq!(names, ["add", "broken", "mcp_list_resources", "mcp_read_resource"]);
    let reads = server.tools()[0].effect == EffectClass::Reads;
    assert_eq!(reads, maker == "fastmcp");
    // The result is text, and structured content that fits the schema: `{"result": 42}`.
    let sum = call("add", json!({"a": 2, "b": 40})).await;
    assert_eq!(sum, ToolOutput::text("42\n{\"result\":42}"));
    let broken = call("broken", json!({"reason": "no reason"})).await;
    assert!(broken.error && broken.text.contains("broken"), "{}", broken.text);
    let wrong = call("add", json!({"a": "x", "b": 1})).await;
    assert!(wrong.error, "{}", wrong.text);
    let listed = call("mcp_list_resources", json!({})).await;
    assert!(listed.text.starts_with("note://today: today"), "{}", listed.text);
    let read = call("mcp_read_resource", json!({"uri": "note://today"})).await;
    assert_eq!(read, ToolOutput::text("[resource note://today]\nNothing."));
    assert_eq!(server.prompts().await.unwrap()[0].arguments[0].name, "whom");
    let said = server.prompt("greet", &[("whom".into(), "Ada".into())].into()).await.unwrap();
    assert_eq!(said[0].text, "Say hello to Ada.");
    println!("{maker}: revision {}", server.revision().await.unwrap());
}
