//! Measures what a call costs through the client, beside the round trip of the same bytes without a protocol: `overhead [CALLS]`.
//! The server is the example `served`, which must be built in the same profile.

use polity_mcp::client::{Limits, McpServer, Params};
use polity_models::toolkits::Toolkit;
use serde_json::json;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let calls: u32 = std::env::args().nth(1).map_or(Ok(2000), |calls| calls.parse())?;
    let mut served = std::env::current_exe()?;
    served.set_file_name("served");
    let program = served.to_string_lossy().into_owned();
    let stdio = Params { command: Some(vec![program.clone(), "stdio".into()]), ..Params::default() };
    measured("stdio", stdio, calls).await?;
    let mut child = Command::new(&program).arg("http").stdout(Stdio::piped()).spawn()?;
    let mut url = String::new();
    BufReader::new(child.stdout.take().ok_or("no stdout")?).read_line(&mut url)?;
    let http = Params { url: Some(url.trim().into()), ..Params::default() };
    let done = measured("http", http, calls).await;
    child.kill()?;
    child.wait()?;
    done
}

async fn measured(kind: &str, params: Params, calls: u32) -> Result<(), Box<dyn std::error::Error>> {
    let server = McpServer::connect(params, Limits::default(), None).await?;
    let arguments = json!({"text": "hello"}).as_object().cloned().unwrap_or_default();
    let mut times = Vec::new();
    for _ in 0..calls {
        let begun = Instant::now();
        let output = server.call("echo", &arguments, "").await?;
        times.push(begun.elapsed());
        if output.error || output.text != "hello" {
            return Err(output.text.into());
        }
    }
    times.sort();
    let at = |share: f64| times.get((share * f64::from(calls)) as usize).copied().unwrap_or(Duration::ZERO);
    let revision = server.revision().await?;
    writeln!(
        std::io::stdout(),
        "{kind} ({revision}): {calls} calls one after the other, median {:?}, 90% {:?}, 99% {:?}",
        at(0.5),
        at(0.9),
        at(0.99)
    )?;
    Ok(())
}
