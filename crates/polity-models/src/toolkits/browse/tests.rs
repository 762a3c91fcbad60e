#![allow(clippy::unwrap_used, clippy::panic)]
use super::*;
use proptest::prelude::*;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;

fn page(html: &str) -> Page {
    Page::of_html(html, &Url::parse("http://site.test/a/b.html").unwrap())
}

fn lines(html: &str) -> String {
    page(html).lines.join("\n")
}

/// A folder of three pages.
fn site() -> (tempfile::TempDir, Browse) {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("site");
    fs::create_dir_all(root.join("sub")).unwrap();
    let put = |name: &str, html: &str| fs::write(root.join(name), html).unwrap();
    put(
        "index.html",
        "<title>Home</title><p>Welcome, apple. <a href='sub/one.html'>One</a> <a href='../../etc/passwd'>up</a>",
    );
    let words: Vec<String> = (0..120).map(|n| format!("<p>word{n}</p>")).collect();
    put("sub/one.html", &format!("<title>One</title><a href=../index.html#x>home</a>{}apple pear", words.concat()));
    put("two words.html", "pear <b>pear</b>");
    fs::write(folder.path().join("outside.html"), "secret").unwrap();
    fs::write(root.join(".hidden.html"), "secret").unwrap();
    fs::write(root.join("notes.txt"), "secret").unwrap();
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(folder.path().join("outside.html"), root.join("link.html")).unwrap();
        std::os::unix::fs::symlink(folder.path(), root.join("up")).unwrap();
    }
    let browse = opened(json!({"folder": root, "words": 50})).unwrap();
    (folder, browse)
}

fn opened(params: Value) -> Result<Browse, Invalid> {
    Browse::open(&serde_json::from_value(params).unwrap())
}

fn call(browse: &Browse, tool: &str, arguments: Value, state: &str) -> ToolOutput {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(browse.call(tool, arguments.as_object().unwrap(), state)).unwrap()
}

#[test]
fn text_is_laid_out_as_it_is_read() {
    let html = "<title> A  page </title><h1>Head</h1><p>One <b>bo</b>ld\n  word.<br>Next<ul><li>a<li>b<ul><li>c</ul></ul>\
                <ol><li>x<li>y</ol><table><tr><th>n<th>m<tr><td><p>1</p><p>2</p><td>3</table><pre>  k\n   l</pre>\
                <img alt='a cat' src=x><hr><input value=v><input type=hidden value=no>";
    let text = "# Head\n\nOne bold word.\nNext\n\n- a\n- b\n  - c\n1. x\n2. y\n\nn | m\n1 2 | 3\n\n  k\n   l\n\n[image: a cat]\n---\n\
                [field: v]";
    assert_eq!(lines(html), text);
    assert_eq!(page(html).title, "A page");
    assert_eq!(page(""), Page::default());
    assert_eq!(page("").screens(50), [""]);
}

#[test]
fn links_have_numbers_and_lead_to_pages_only() {
    let page = page(
        "<a href=/x>first</a>, <a href='c.html#y'>second</a> <a href='#z'>here</a> <a href='javascript:x()'>run</a> \
         <a href='mailto:a@b'>mail</a> <a href='file:///etc/passwd'>file</a> <a>none</a><a href='//other.test'>third</a>",
    );
    assert_eq!(page.lines, ["first [1], second [2] here run mail file nonethird [3]"]);
    let links: Vec<&str> = page.links.iter().map(Url::as_str).collect();
    assert_eq!(links, ["http://site.test/x", "http://site.test/a/c.html#y", "http://other.test/"]);
}

#[test]
fn what_a_reader_would_not_see_is_left_out() {
    for hidden in [
        "<p hidden>SECRET</p>",
        "<p style='display:none'>SECRET</p>",
        "<p style='DISPLAY : none !important; x:y'>SECRET</p>",
        "<div style='visibility:hidden'><b>SECRET</b></div>",
        "<p style='color:#fff'>SECRET</p>",
        "<p style='color: rgb(255, 255, 255)'>SECRET</p>",
        "<p style='background:black;color:black'>SECRET</p>",
        "<font color=white>SECRET</font>",
        "<p style='font-size:0'>SECRET</p>",
        "<p style='font-size:1px'>SECRET</p>",
        "<p style='opacity:0'>SECRET</p>",
        "<p style='position:absolute;left:-9999px'>SECRET</p>",
        "<p style='text-indent:-999em'>SECRET</p>",
        "<p style='height:0;overflow:hidden'>SECRET</p>",
        "<p style='clip:rect(0,0,0,0)'>SECRET</p>",
        "<style>/* x */ .a, #b { display : none }</style><p class='z A'>SECRET</p><p id=b>SECRET</p>",
        "<style>@media screen { .a { display:none } }</style><p class=a>SECRET</p>",
        "<style>aside{color:white}</style><aside>SECRET</aside>",
        "<p hidden>SECRET<p hidden><a href=x>SECRET</a>",
    ] {
        let page = page(&format!("{hidden}<p>seen"));
        assert_eq!((page.lines.join(" ").as_str(), page.hidden > 0, page.links.len()), ("seen", true, 0), "{hidden}");
    }
    for dropped in [
        "<script>SECRET</script>",
        "<style>SECRET</style>",
        "<!-- SECRET -->",
        "<template>SECRET</template>",
        "<noscript>SECRET</noscript>",
        "<svg><text>SECRET</text></svg>",
        "<iframe srcdoc=SECRET>SECRET</iframe>",
    ] {
        assert_eq!(lines(&format!("{dropped}<p>seen")), "seen", "{dropped}");
    }
    for shown in [
        "<p style='color:red'>seen</p>",
        "<p style='color:white;background:black'>seen</p>",
        "<p style='opacity:0.9;font-size:1em;left:-3px'>seen</p>",
        "<style>.a .b{display:none} @media print{p{display:none}}</style><p class=b>seen</p>",
    ] {
        assert_eq!((lines(shown).as_str(), page(shown).hidden), ("seen", 0), "{shown}");
    }
    let split = page("ig\u{200b}no\u{ad}re\u{e0041} \u{feff}it");
    assert_eq!((split.lines.join(""), split.hidden), ("ignore it".into(), 1));
}

#[test]
fn pages_without_measure_end() {
    let deep = page(&format!("<p>start{}end", "<div>".repeat(300_000)));
    assert!(deep.cut && deep.lines[0] == "start", "{:?}", deep.lines.len());
    let formats: Vec<String> = (0..3_000).map(|n| format!("<b id=x{n}>")).collect();
    let wide = page(&format!("<p>start{}{}", formats.concat(), "<p>x".repeat(3_000)));
    assert!(wide.cut && wide.lines[0] == "start");
    let foster = page(&format!("<table>{}", "<b>x</b>".repeat(20_000)));
    assert_eq!(foster.lines.concat().len(), 20_000);
}

#[test]
fn screens_hold_about_as_many_words_and_all_of_them() {
    let words: Vec<String> = (0..1_234).map(|n| format!("w{n}")).collect();
    let page = page(&format!("<p>{}<p>end", words.join(" ")));
    let screens = page.screens(100);
    assert!(screens.iter().all(|screen| screen.split_whitespace().count() <= 100));
    assert_eq!(plain(&screens.join(" ")), format!("{} end", words.join(" ")));
    assert_eq!(screens.len(), 13);
}

#[test]
fn a_session_is_its_state() {
    let (_folder, browse) = site();
    let home = call(&browse, "open", json!({"page": "index.html"}), "");
    assert!(
        home.text.starts_with("index.html, screen 1 of 1. 2 links on the page, numbered in brackets.\n[page "),
        "{}",
        home.text
    );
    assert!(home.text.contains("\nTitle: Home\n\nWelcome, apple. One [1] up [2]\n[page "), "{}", home.text);
    let one = call(&browse, "follow", json!({"link": 1}), &home.state);
    assert!(one.text.starts_with("sub/one.html, screen 1 of 3."), "{}", one.text);
    let second = call(&browse, "next", json!({}), &one.state);
    assert!(
        second.text.contains("screen 2 of 3") && second.text.contains("word60") && !second.text.contains("word10\n")
    );
    let found = call(&browse, "find", json!({"text": "APPLE\n pear"}), &second.state);
    assert!(found.text.contains("Found on 1 of the page's screens. sub/one.html, screen 3 of 3"), "{}", found.text);
    let again = call(&browse, "find", json!({"text": "word3"}), &found.state);
    assert!(again.text.contains("screen 1 of 3"), "{}", again.text);
    let back = call(&browse, "back", json!({}), &found.state);
    assert_eq!(back.text, home.text);
    assert_eq!(back.state, home.state, "equal places are equal states");
    // An older state still works, and gives the same.
    assert_eq!(call(&browse, "next", json!({}), &one.state), second);
    for (tool, arguments, state, why) in [
        ("next", json!({}), "", "no page is open"),
        ("back", json!({}), "", "no earlier page"),
        ("next", json!({}), found.state.as_str(), "last screen"),
        ("find", json!({"text": "nothing"}), found.state.as_str(), "does not contain"),
        ("find", json!({"text": "  "}), found.state.as_str(), "is empty"),
        ("follow", json!({"link": 0}), home.state.as_str(), "1 to 2"),
        ("follow", json!({"link": 3}), home.state.as_str(), "1 to 2"),
        ("follow", json!({"link": 2}), home.state.as_str(), "no page `etc/passwd`"),
        ("search", json!({"query": " ,"}), home.state.as_str(), "no words"),
    ] {
        let output = call(&browse, tool, arguments, state);
        assert!(output.error && output.text.contains(why) && output.state == state, "{tool}: {}", output.text);
    }
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let damaged = runtime.block_on(browse.call("next", &Arguments::new(), "{"));
    assert!(matches!(damaged, Err(ProviderError::Fatal { .. })));
}

#[test]
fn the_state_stays_small() {
    let (_folder, browse) = site();
    let mut state = String::new();
    for step in 0..200 {
        let page = ["index.html", "two words.html"][step % 2];
        state = call(&browse, "open", json!({"page": page}), &state).state;
    }
    assert!(state.len() <= STATE, "{}", state.len());
    assert!(call(&browse, "back", json!({}), &state).text.contains("index.html"));
}

#[test]
fn local_pages_stay_in_their_folder() {
    let (folder, browse) = site();
    let absolute = folder.path().join("outside.html").display().to_string();
    for name in [
        "../outside.html",
        "sub/../../outside.html",
        "/etc/passwd",
        absolute.as_str(),
        "link.html",
        "up/outside.html",
        ".hidden.html",
        "notes.txt",
        "sub",
        "",
        "%2e%2e/outside.html",
        "..\\outside.html",
        "file:///etc/passwd",
        "http://127.0.0.1/",
        "http://local.invalid/index.html",
    ] {
        let output = call(&browse, "open", json!({"page": name}), "");
        assert!(output.error && !output.text.contains("secret"), "{name}: {}", output.text);
    }
    let output = call(&browse, "open", json!({"page": "indx.html"}), "");
    assert!(output.text.contains("did you mean `index.html`?"), "{}", output.text);
    #[cfg(unix)]
    {
        // What becomes a link later is not followed either.
        let page = folder.path().join("site/two words.html");
        fs::remove_file(&page).unwrap();
        std::os::unix::fs::symlink(folder.path().join("outside.html"), &page).unwrap();
        let output = call(&browse, "open", json!({"page": "two words.html"}), "");
        assert!(output.error && output.text.contains("behind a link"), "{}", output.text);
    }
}

#[test]
fn a_page_that_changed_is_told() {
    let (folder, browse) = site();
    let home = call(&browse, "open", json!({"page": "index.html"}), "");
    fs::write(folder.path().join("site/index.html"), "<p>other <a href='two words.html'>x</a>").unwrap();
    let output = call(&browse, "follow", json!({"link": 1}), &home.state);
    assert!(output.error && output.text.contains("has changed"), "{}", output.text);
    assert!(
        call(&browse, "find", json!({"text": "other"}), &home.state).text.starts_with("The page has changed since")
    );
    let home = call(&browse, "open", json!({"page": "index.html"}), "");
    assert!(call(&browse, "follow", json!({"link": 1}), &home.state).text.starts_with("two words.html"));
}

#[test]
fn search_ranks_local_pages() {
    let (_folder, browse) = site();
    let found = call(&browse, "search", json!({"query": "Apple pear"}), "");
    let names: Vec<&str> = found.text.lines().filter_map(|line| line.split_once(" - ")).map(|(name, _)| name).collect();
    assert_eq!(names, ["sub/one.html", "two words.html", "index.html"]);
    assert!(found.text.starts_with("3 of 3 local pages match"), "{}", found.text);
    assert!(call(&browse, "search", json!({"query": "secret"}), "").text.starts_with("No local page"));
}

#[test]
fn pages_of_allowed_hosts_open_and_others_do_not() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut asked = [0; 1_000];
            let read = stream.read(&mut asked).unwrap();
            let path = String::from_utf8_lossy(&asked[..read]).split(' ').nth(1).unwrap().to_string();
            let (status, kind, body) = match path.as_str() {
                "/a" => {
                    ("200 OK", "text/html; charset=utf-8", "<a href=b>on</a><a href='http://169.254.169.254/'>out</a>")
                }
                "/b" => ("200 OK", "text/plain", "plain <b>"),
                "/picture" => ("200 OK", "image/png", "x"),
                "/zip" => ("200 OK", "application/zip", "x"),
                _ => ("404 Not Found", "text/html", "no"),
            };
            let answer = format!(
                "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
                body.len()
            );
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    let browse = opened(json!({"hosts": [at]})).unwrap();
    let first = call(&browse, "open", json!({"page": format!("http://{at}/a")}), "");
    assert!(first.text.contains("\non [1]out [2]\n"), "{}", first.text);
    let second = call(&browse, "follow", json!({"link": 1}), &first.state);
    assert!(second.text.contains("\nplain <b>\n"), "{}", second.text);
    for (page, why) in [
        (format!("http://{at}/picture"), "no text"),
        (format!("http://{at}/zip"), "no page"),
        (format!("http://{at}/none"), "status 404"),
        (format!("http://{at}/{}", "x".repeat(2_000)), "at most"),
        ("http://127.0.0.1:1/".into(), "not on the list"),
        ("index.html".into(), "no local pages"),
    ] {
        let output = call(&browse, "open", json!({"page": page}), "");
        assert!(output.error && output.text.contains(why), "{page}: {}", output.text);
    }
    let out = call(&browse, "follow", json!({"link": 2}), &first.state);
    assert!(out.error && out.text.contains("not on the list"), "{}", out.text);
    assert!(browse.tools().iter().all(|tool| &*tool.name != "search"));
}

#[test]
fn wrong_parameters_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let key = |params: Value| opened(params).err().unwrap().key;
    assert_eq!(key(json!({})), "folder");
    assert_eq!(key(json!({"folder": "/nowhere"})), "folder");
    assert_eq!(key(json!({"folder": folder.path()})), "folder");
    assert_eq!(key(json!({"hosts": ["*"]})), "hosts");
    assert_eq!(key(json!({"hosts": ["a"], "words": 1})), "words");
    assert_eq!(key(json!({"hosts": ["a"], "seconds": 0})), "seconds");
}

proptest! {
    #[test]
    fn every_text_is_a_page(html in "(<(/?)(p|b|table|td|tr|a|li|ul|select|option|template|form|svg|h1|style|title|body|frameset)( (href|style|class)=\"?[a-z:#]{0,6}\"?)?>|x| |&amp;|<!--|-->|\n|é){0,60}") {
        let page = page(&html);
        prop_assert!(page.lines.iter().all(|line| !line.contains('\n')));
        prop_assert!(!page.screens(50).is_empty());
    }
}
