//! The server, asked by hand.

#![allow(clippy::unwrap_used)]

use super::*;
use crate::client::{Limits, McpServer, Params};
use polity_models::toolkits::Toolkit;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};

/// A tool that ends only when it is given up, and counts how often it was.
struct Patient(Arc<AtomicUsize>);

struct Left(Arc<AtomicUsize>);

impl Drop for Left {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl Served for Patient {
    fn tools(&self) -> Vec<ServedTool> {
        let none = json!({"type": "object", "properties": {}, "additionalProperties": false});
        let spec = ToolSpec::new("wait", "Waits", &none, EffectClass::Reads);
        vec![ServedTool { spec, title: "Wait".into() }]
    }

    async fn call(&self, _tool: &str, _arguments: &Arguments, progress: &Progress) -> ToolOutput {
        let _left = Left(self.0.clone());
        progress.report(1.0, Some(2.0), "begun").await;
        std::future::pending().await
    }
}

fn patient() -> Handler<Patient> {
    Handler::new(Patient(Arc::default())).unwrap()
}

/// Sends an HTTP request; returns the status and the rest of the answer.
async fn asked(serving: &Serving, headers: &str, body: &str) -> (u16, String) {
    let address = serving.url().replace("http://", "").replace("/mcp", "");
    let mut tcp = tokio::net::TcpStream::connect(address).await.unwrap();
    let length = body.len();
    let request = format!(
        "POST /mcp HTTP/1.1\r\n{headers}Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
         Connection: close\r\nContent-Length: {length}\r\n\r\n{body}"
    );
    // A server that refuses may close before it has read everything.
    let _ = tcp.write_all(request.as_bytes()).await;
    let mut answer = Vec::new();
    let _ = tcp.read_to_end(&mut answer).await;
    let answer = String::from_utf8_lossy(&answer).into_owned();
    (answer.split(' ').nth(1).unwrap().parse().unwrap(), answer)
}

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"hand","version":"1"}}}"#;

#[tokio::test]
async fn pages_of_other_origins_and_other_names_are_refused() {
    let http = Http { origins: vec!["https://app.example:443".into()], ..Http::default() };
    let serving = serve_handler(patient(), http).await.unwrap();
    let own = serving.url().replace("http://", "").replace("/mcp", "");
    let status = async |headers: &str| asked(&serving, headers, INITIALIZE).await.0;
    let host = format!("Host: {own}\r\n");
    assert_eq!(status(&host).await, 200);
    // The origin alone is enough to refuse.
    assert_eq!(status(&format!("{host}Origin: http://evil.example\r\n")).await, 403);
    assert_eq!(status(&format!("{host}Origin: null\r\n")).await, 403);
    assert_eq!(status(&format!("{host}Origin: https://app.example\r\n")).await, 200);
    assert_eq!(status(&format!("{host}Origin: http://{own}\r\n")).await, 200);
    assert_eq!(status(&format!("{host}Origin: http://localhost:1\r\n")).await, 403);
    assert_eq!(status("Host: evil.example\r\n").await, 403);
    let closed = serve_handler(patient(), Http::default()).await.unwrap();
    let own = closed.url().replace("http://", "").replace("/mcp", "");
    let headers = format!("Host: {own}\r\nOrigin: http://evil.example\r\n");
    assert_eq!(asked(&closed, &headers, INITIALIZE).await.0, 403);
}

#[tokio::test]
async fn large_requests_are_refused() {
    let serving = serve_handler(patient(), Http::default()).await.unwrap();
    let large = INITIALIZE.replace("hand", &"x".repeat(REQUEST));
    assert_eq!(asked(&serving, "Host: localhost\r\n", &large).await.0, 413);
    let (near, far) = tokio::io::duplex(1 << 16);
    let (from, to) = tokio::io::split(far);
    let serving = tokio::spawn(serve_pipes(patient(), from, to));
    let (keep, mut near) = tokio::io::split(near);
    let _ = near.write_all(large.as_bytes()).await;
    drop((keep, near));
    let why = serving.await.unwrap().unwrap_err();
    assert!(why.contains("a message of more than 4194304 bytes"), "{why}");
}

#[tokio::test]
async fn other_machines_need_a_token() {
    let open = Http { bind: "0.0.0.0:0".parse().unwrap(), ..Http::default() };
    assert!(serve_handler(patient(), open.clone()).await.unwrap_err().contains("give a token"));
    let short = Http { token: Some("short".into()), ..open };
    assert!(serve_handler(patient(), short).await.unwrap_err().contains("16 ASCII"));
    let http = Http { token: Some("a-long-enough-token".into()), ..Http::default() };
    let serving = serve_handler(patient(), http).await.unwrap();
    let status = async |token: &str| asked(&serving, &format!("Host: localhost\r\n{token}"), INITIALIZE).await.0;
    assert_eq!(status("").await, 401);
    assert_eq!(status("Authorization: Bearer a-long-enough-tokem\r\n").await, 401);
    assert_eq!(status("Authorization: Bearer a-long-enough-token\r\n").await, 200);
}

#[tokio::test]
async fn lines_are_answered_and_a_call_can_be_given_up() {
    let left = Arc::new(AtomicUsize::new(0));
    let handler = Handler::new(Patient(left.clone())).unwrap();
    let (near, far) = tokio::io::duplex(1 << 16);
    let (from, to) = tokio::io::split(far);
    let serving = tokio::spawn(serve_pipes(handler, from, to));
    let (from, mut to) = tokio::io::split(near);
    let mut lines = BufReader::new(from).lines();
    let mut send = async |line: &str| to.write_all(format!("{line}\n").as_bytes()).await.unwrap();
    let mut next = async || serde_json::from_str::<Value>(&lines.next_line().await.unwrap().unwrap()).unwrap();
    send(INITIALIZE).await;
    assert_eq!(next().await["result"]["protocolVersion"], "2025-11-25");
    send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await;
    send(r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#).await;
    let tool = &next().await["result"]["tools"][0];
    assert_eq!((&tool["name"], &tool["title"]), (&json!("wait"), &json!("Wait")));
    assert_eq!(tool["annotations"], json!({"readOnlyHint": true, "openWorldHint": true}));
    send(r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"none"}}"#).await;
    assert_eq!(next().await["error"]["code"], -32602);
    send(r#"{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"wait","arguments":{"a":1}}}"#).await;
    assert_eq!(next().await["result"]["isError"], true);
    send(r#"{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"wait","_meta":{"progressToken":"t"}}}"#)
        .await;
    let progress = next().await;
    assert_eq!(progress["params"], json!({"progressToken": "t", "progress": 1.0, "total": 2.0, "message": "begun"}));
    send(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5}}"#).await;
    while left.load(Ordering::SeqCst) == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    drop((to, lines));
    serving.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_call_is_given_up_when_its_stream_closes() {
    let left = Arc::new(AtomicUsize::new(0));
    let serving = serve_http(Patient(left.clone()), Http::default()).await.unwrap();
    let limits = Limits { call: Duration::from_millis(100), ..Limits::default() };
    let params = Params { url: Some(serving.url()), ..Params::default() };
    let server = McpServer::connect(params, limits, None).await.unwrap();
    let output = server.call("wait", &Arguments::new(), "").await.unwrap();
    assert!(output.error && output.text.contains("no answer within 0.1 s"), "{}", output.text);
    while left.load(Ordering::SeqCst) == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[test]
fn a_tool_with_a_bad_schema_is_not_served() {
    struct Bad(&'static str);
    impl Served for Bad {
        fn tools(&self) -> Vec<ServedTool> {
            let schema = serde_json::from_str(self.0).unwrap();
            vec![ServedTool { spec: ToolSpec::new("bad", "", &schema, EffectClass::Pure), title: String::new() }; 2]
        }

        async fn call(&self, _tool: &str, _arguments: &Arguments, _progress: &Progress) -> ToolOutput {
            ToolOutput::default()
        }
    }
    let why = |schema| Handler::new(Bad(schema)).err().unwrap();
    assert!(why(r#"{"type": "nothing"}"#).contains("not valid"));
    assert!(why("true").contains("no object"));
    assert!(why("{}").contains("another one has its name"));
}
