#![allow(clippy::unwrap_used, clippy::panic)]
use super::hosts::{Allowed, Hosts, is_public};
use super::*;
use proptest::prelude::*;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{IpAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};

/// A server on this machine; `answer` gets each request's head with its body and writes the answer. Returns host and port, and what was
/// asked.
fn server(answer: impl Fn(&str, &mut TcpStream) + Send + 'static) -> (String, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let (tell, heard) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let mut asked = String::new();
            while reader.read_line(&mut asked).unwrap_or(0) > 2 {}
            let length = asked
                .to_lowercase()
                .split_once("content-length: ")
                .map_or(0, |(_, rest)| rest.split("\r\n").next().unwrap().parse().unwrap());
            let mut body = vec![0; length];
            reader.read_exact(&mut body).unwrap();
            asked.push_str(&String::from_utf8(body).unwrap());
            let _ = tell.send(asked.clone());
            answer(&asked, &mut stream);
        }
    });
    (address, heard)
}

/// A server that always gives these bytes.
fn fixed(answer: impl Into<Vec<u8>>) -> (String, Receiver<String>) {
    let answer = answer.into();
    server(move |_, stream| drop(stream.write_all(&answer)))
}

fn ok(body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {}\r\n\r\n{body}", body.len())
}

fn opened(hosts: &[&str], seconds: u64) -> Http {
    Http::open(&HttpParams { hosts: hosts.iter().map(ToString::to_string).collect(), bytes: 1_000, seconds }).unwrap()
}

/// Every name has this address.
fn with_names(http: Http, address: &str) -> Http {
    let address: IpAddr = address.parse().unwrap();
    let fetcher = http.fetcher.with_lookup(Arc::new(move |_| Box::pin(async move { Ok(vec![address]) })));
    Http { fetcher, ..http }
}

fn call(http: &Http, tool: &str, arguments: Value) -> ToolOutput {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(http.call(tool, arguments.as_object().unwrap(), "")).unwrap()
}

fn get(http: &Http, url: &str) -> ToolOutput {
    call(http, "http_get", json!({"url": url}))
}

fn refused(http: &Http, url: &str, why: &str) {
    let output = get(http, url);
    assert!(output.error && output.text.contains(why), "{url}: {}", output.text);
}

#[test]
fn a_text_comes_between_marks() {
    let (at, heard) = fixed(ok("hello\u{202e}\nyou"));
    let output = get(&opened(&[&at], 30), &format!("http://{at}/a?b=c#d"));
    assert!(!output.error && output.state.is_empty());
    let lines: Vec<&str> = output.text.lines().collect();
    assert_eq!(lines[0], format!("200 OK, text/plain, from http://{at}/a?b=c#d"));
    assert_eq!(lines[2..4], ["hello\\u{202e}", "you"]);
    let mark = lines[4].trim_start_matches("[body ").trim_end_matches(" ends]");
    assert!(mark.len() == 16 && lines[1].starts_with(&format!("[body {mark} begins")), "{}", output.text);
    let heard = heard.recv().unwrap();
    assert!(heard.starts_with("GET /a?b=c HTTP/1.1\r\n") && heard.contains(&format!("host: {at}")), "{heard}");
    let (at, _) = fixed("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
    let output = get(&opened(&[&at], 30), &format!("http://{at}"));
    assert!(output.error && output.text.starts_with("404 Not Found, no type given"), "{}", output.text);
}

#[test]
fn a_request_is_sent_as_the_call_says_and_only_once() {
    let (at, heard) = server(|_, stream| drop(stream.write_all(b"HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n")));
    let http = opened(&[&at], 30);
    let asked = json!({"method": "POST", "url": format!("http://{at}/x"), "body": "{}", "headers": {"X-Own": "1"}});
    let output = call(&http, "http_request", asked);
    assert!(!output.error && output.text.starts_with("201 Created"), "{}", output.text);
    let sent = heard.recv().unwrap().to_lowercase();
    assert!(sent.starts_with("post /x") && sent.contains("x-own: 1\r\n") && sent.ends_with("\r\n\r\n{}"), "{sent}");
    for (headers, why) in [
        (json!({"Host": "other"}), "sets it itself"),
        (json!({"Proxy-Authorization": "x"}), "sets it itself"),
        (json!({"a b": "x"}), "no name"),
        (json!({"X": "a\r\nHost: other"}), "line breaks"),
    ] {
        let output =
            call(&http, "http_request", json!({"method": "GET", "url": format!("http://{at}"), "headers": headers}));
        assert!(output.error && output.text.contains(why), "{}", output.text);
    }
    let output = call(&http, "http_request", json!({"method": "CONNECT", "url": format!("http://{at}")}));
    assert!(output.error && output.text.contains("must be one of"), "{}", output.text);
    assert!(heard.try_recv().is_err(), "what is refused is not sent");
    // The answer breaks off: it is not asked again.
    let (at, heard) = server(|_, _| ());
    let output = call(&opened(&[&at], 30), "http_request", json!({"method": "POST", "url": format!("http://{at}/x")}));
    assert!(output.error && output.text.contains("broke off"), "{}", output.text);
    assert!(heard.recv().is_ok() && heard.try_recv().is_err());
}

#[test]
fn hosts_are_those_on_the_list() {
    let hosts = |entries: &[&str]| Hosts::read(&entries.iter().map(ToString::to_string).collect::<Vec<_>>());
    let all = hosts(&["Example.org", "*.wide.org", "127.0.0.1:8080", "near:81", "[::1]:82", "std.org:80"]).unwrap();
    let check = |url: &str| all.check(&Url::parse(url).unwrap());
    for url in ["https://example.org/x", "http://EXAMPLE.org.", "http://example.org:80", "https://a.b.wide.org"] {
        assert_eq!(check(url), Ok(Allowed::Public), "{url}");
    }
    for url in ["http://127.0.0.1:8080", "http://0x7f.1:8080/", "https://near:81", "http://[::1]:82/", "http://std.org"]
    {
        assert_eq!(check(url), Ok(Allowed::Anywhere), "{url}");
    }
    for url in [
        "https://example.org:444",
        "http://example.org:443",
        "https://wide.org",
        "https://notwide.org",
        "http://127.0.0.1",
        "http://near",
        "https://example.org.evil.org",
        "http://x@example.org",
        "https://example.org@evil.org/",
        "file:///etc/passwd",
        "ftp://example.org",
        "data:text/plain,x",
        "https://std.org",
        "http://2130706433/",
    ] {
        assert!(check(url).is_err(), "{url}");
    }
    for entry in
        ["", "*", "*.", "https://example.org", "a/b", "a b", "*.1.2.3.4", "u@h", "a.*.b", "h:99999", "?", "[::1"]
    {
        let error = hosts(&[entry]).unwrap_err();
        assert!(error.contains(&format!("`{entry}`")) && error.contains("write `example.org`"), "{error}");
    }
}

#[test]
fn only_public_addresses_are_public() {
    for address in [
        "0.0.0.0",
        "10.1.2.3",
        "100.64.0.1",
        "127.9.9.9",
        "169.254.169.254",
        "172.16.0.1",
        "172.31.255.255",
        "192.0.0.8",
        "192.0.2.1",
        "192.168.1.1",
        "198.18.0.1",
        "198.51.100.1",
        "203.0.113.1",
        "224.0.0.1",
        "255.255.255.255",
        "168.63.129.16",
        "::",
        "::1",
        "::127.0.0.1",
        "::ffff:127.0.0.1",
        "::ffff:8.8.8.8",
        "64:ff9b::7f00:1",
        "64:ff9b::a9fe:a9fe",
        "64:ff9b:1::1",
        "2002:7f00:1::",
        "2002:a9fe:a9fe::1",
        "2001::1",
        "2001:db8::1",
        "fc00::1",
        "fd00:ec2::254",
        "fe80::1",
        "fec0::1",
        "ff02::1",
        "3fff::1",
    ] {
        assert!(!is_public(address.parse().unwrap()), "{address}");
    }
    for address in ["1.1.1.1", "172.32.0.1", "100.128.0.1", "198.20.0.1", "2606:4700::1111", "64:ff9b::101:101"] {
        assert!(is_public(address.parse().unwrap()), "{address}");
    }
}

#[test]
fn names_of_this_machine_are_refused_unless_listed_with_their_port() {
    let (at, heard) = fixed(ok("here"));
    let port = at.rsplit(':').next().unwrap();
    // By the system: the name `localhost`; by a name server that lies: any name.
    refused(&opened(&["localhost"], 30), "http://localhost/", "is not public");
    for address in ["127.0.0.1", "::1", "169.254.169.254", "10.0.0.1"] {
        let http = with_names(opened(&["page.test", "*.test"], 30), address);
        refused(&http, "http://page.test/", &format!("its IP address {address} is not public"));
        refused(&http, "https://sub.page.test/", "is not public");
    }
    refused(&opened(&["127.0.0.1"], 30), "http://127.0.0.1/", "is not public");
    // A domain with a port does not vouch for the hosts below it.
    let below = format!("*.test:{port}");
    refused(&with_names(opened(&[&below], 30), "127.0.0.1"), &format!("http://a.test:{port}/"), "is not public");
    assert!(heard.try_recv().is_err(), "nothing was connected");
    // The connection goes to the checked address: no name server knows this name.
    let listed = format!("page.test:{port}");
    let http = with_names(opened(&[&listed], 30), "127.0.0.1");
    assert!(get(&http, &format!("http://{listed}/")).text.contains("\nhere\n"));
    assert!(heard.recv().unwrap().contains(&format!("host: {listed}")));
    refused(&opened(&["nowhere.invalid"], 30), "https://nowhere.invalid/", "was not found");
    refused(&opened(&[&at], 30), "nothing", "no address");
}

#[test]
fn redirects_go_only_where_the_first_request_might() {
    let to = |target: &str| fixed(format!("HTTP/1.1 302 Found\r\nLocation: {target}\r\nContent-Length: 0\r\n\r\n")).0;
    for (target, why) in [
        ("http://169.254.169.254/latest/meta-data/", "not on the list"),
        ("file:///etc/passwd", "only http and https"),
        ("//user:word@127.0.0.1:1/", "user name"),
        ("http://localhost/", "not public"),
        ("http://127.0.0.1:1/", "not on the list"),
        ("http://[", "redirects to no address"),
    ] {
        let at = to(target);
        refused(&opened(&[&at, "localhost"], 30), &format!("http://{at}"), why);
    }
    let at = to("/again");
    refused(&opened(&[&at], 30), &format!("http://{at}"), "more than 5 redirects");
    let (end, heard) = fixed(ok("arrived"));
    let at = to(&format!("http://{end}/x"));
    let asked =
        json!({"method": "POST", "url": format!("http://{at}"), "body": "b", "headers": {"Authorization": "key"}});
    let output = call(&opened(&[&at, &end], 30), "http_request", asked.clone());
    assert!(
        output.text.contains(&format!("from http://{end}/x")) && output.text.contains("\narrived\n"),
        "{}",
        output.text
    );
    let heard_there = heard.recv().unwrap();
    assert!(
        heard_there.starts_with("GET /x") && !heard_there.to_lowercase().contains("authorization"),
        "{heard_there}"
    );
    let (at, _) = fixed(format!("HTTP/1.1 307 X\r\nLocation: http://{end}/x\r\nContent-Length: 0\r\n\r\n"));
    let asked = json!({"method": "POST", "url": format!("http://{at}"), "body": "b"});
    let output = call(&opened(&[&at, &end], 30), "http_request", asked);
    assert!(output.error && output.text.contains("another host"), "{}", output.text);
    assert!(heard.try_recv().is_err());
}

#[test]
fn answers_that_are_too_long_or_too_late_or_no_answers_have_clear_ends() {
    let get = |at: &str, seconds: u64| get(&opened(&[at], seconds), &format!("http://{at}"));
    // 100 MB.
    let (at, _) = server(|_, stream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n");
        (0..1_000).take_while(|_| stream.write_all(&[b'x'; 100_000]).is_ok()).count();
    });
    let output = get(&at, 30);
    assert!(
        !output.error && output.text.contains("cut: these are its first 1000 of 100000000 bytes"),
        "{}",
        output.text
    );
    assert!(output.text.len() < 2_000);
    // The same without a length, forever.
    let (at, _) = server(|_, stream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
        while stream.write_all(b"3\r\nabc\r\n").is_ok() {}
    });
    assert!(get(&at, 30).text.contains("cut: these are its first 1000 bytes"));
    // Never.
    let (at, _) = server(|_, _| std::thread::sleep(std::time::Duration::from_secs(3_600)));
    let output = get(&at, 1);
    assert!(output.error && output.text.contains("no whole answer from `127.0.0.1` within 1 s"), "{}", output.text);
    // A head that never ends.
    let (at, _) = server(|_, stream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n");
        let mut at = 0;
        while stream.write_all(format!("X-{at}: {}\r\n", "y".repeat(1_000)).as_bytes()).is_ok() {
            at += 1;
        }
    });
    let output = get(&at, 60);
    assert!(output.error && output.text.contains("broke off: message head is too large"), "{}", output.text);
    for (answer, why) in [
        ("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc", "broke off"),
        ("SSH-2.0-x\r\n\r\n", "broke off"),
        ("", "broke off"),
        ("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\n\u{1f}xx", "encoding `gzip`"),
    ] {
        let (at, _) = fixed(answer);
        let output = get(&at, 30);
        assert!(output.error && output.text.contains(why), "{answer}: {}", output.text);
    }
    let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let output = get(&gone, 30);
    assert!(output.error && output.text.contains("no connection to `127.0.0.1`"), "{}", output.text);
}

#[test]
fn bodies_that_are_no_plain_text_are_told() {
    let get = |kind: &str, body: &[u8]| {
        let mut answer =
            format!("HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\r\n", body.len()).into_bytes();
        answer.extend_from_slice(body);
        let (at, _) = fixed(answer);
        get(&opened(&[&at], 30), &format!("http://{at}")).text
    };
    assert!(
        get("text/plain", b"a\xffb").contains("\na\u{fffd}b\n") && get("text/plain", b"a\xffb").contains("no UTF-8")
    );
    assert!(get("text/plain; charset=ISO-8859-1", b"caf\xe9").contains("\ncafé\n"));
    assert!(get("image/png", b"abc").contains("no text") && get("text/plain", b"a\0b").contains("no text"));
    // Cut in the middle of a character: it is left out, and not called an error.
    let long = get("text/plain", "é".repeat(600).replacen('é', "a", 1).as_bytes());
    assert!(!long.contains('\u{fffd}') && long.contains("cut: these"), "{long}");
}

#[test]
fn wrong_parameters_are_named() {
    let key = |params: Value| Http::open(&serde_json::from_value(params).unwrap()).err().unwrap().key;
    assert_eq!(key(json!({"hosts": []})), "hosts");
    assert_eq!(key(json!({"hosts": ["*"]})), "hosts");
    assert_eq!(key(json!({"hosts": ["a"], "bytes": 1})), "bytes");
    assert_eq!(key(json!({"hosts": ["a"], "seconds": 0})), "seconds");
    assert!(serde_json::from_value::<HttpParams>(json!({"host": ["a"]})).is_err());
    let effects: Vec<EffectClass> = opened(&["a"], 1).tools().iter().map(|tool| tool.effect).collect();
    assert_eq!(effects, [EffectClass::Reads, EffectClass::Outside]);
}

proptest! {
    #[test]
    fn no_spelling_of_a_loopback_address_is_allowed(address in 0x7f00_0000_u32..0x8000_0000, form in 0..4) {
        let [a, b, c, d] = address.to_be_bytes();
        let host = match form {
            0 => format!("{address}"),
            1 => format!("0x{address:x}"),
            2 => format!("0{a:o}.{b}.{}", u32::from(c) << 8 | u32::from(d)),
            _ => format!("[::ffff:{a}.{b}.{c}.{d}]"),
        };
        let listed = opened(&[&host], 30);
        let output = get(&listed, &format!("http://{host}/"));
        prop_assert!(output.error && output.text.contains("not public"), "{host}: {}", output.text);
    }
}
