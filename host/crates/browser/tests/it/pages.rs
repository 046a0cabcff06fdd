//! An agent's use of pages, in a real browser on a real server. Chromium has to be installed.

use crate::lab::Lab;
use crate::site::{Page, Site};
use serde_json::json;

const HTML: &str = "content-type: text/html; charset=utf-8\r\n";

fn page(path: &'static str, body: &str) -> Page {
    (path, HTML, format!("<!doctype html><title>t{path}</title><body>{body}</body>"))
}

fn shop() -> Vec<Page> {
    vec![
        page(
            "/",
            "<h1>Shop</h1><p>Für alle</p><a href='/more'>More of it</a>\
             <form action='/found'><input name=q placeholder='Search'><select name=size aria-label=Size>\
             <option>small<option>large</select><input type=checkbox name=gift aria-label=Gift>\
             <input type=password name=pw aria-label=Word><button>Go</button></form>\
             <div style='position:relative'><button onclick='document.title=`pressed`'>Under</button>\
             <div style='position:absolute;inset:0;background:red'>Over</div></div>\
             <button disabled>Off</button>",
        ),
        page("/more", &format!("<p>{}</p><p>the end</p>", "word ".repeat(2_000))),
        page("/wide", &format!("<p>x{}</p><p>the end</p>", "😀".repeat(2_000))),
        page(
            "/torn",
            "<p id=torn></p><button id=go>Go</button>\
             <script>torn.textContent = go.ariaLabel = document.title = `a\\ud83d`</script>",
        ),
        page("/found", "<p id=where></p><script>where.textContent = location.search</script>"),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_reads_clicks_types_and_looks() {
    let site = Site::serve(shop());
    let lab = Lab::new(&site, &[], &json!({ "text_bytes_max": 4_096 }), None);
    let opened = lab.open(&site.url("/")).await.unwrap();
    assert_eq!((&opened["title"], &opened["status"], &opened["loaded"]), (&json!("t/"), &json!(200), &json!(true)));
    assert!(lab.text().await.starts_with("Shop\n\nFür alle"), "{}", lab.text().await);

    let listed = lab.call("elements", json!({})).await.unwrap();
    let labels: Vec<&str> =
        listed["elements"].as_array().unwrap().iter().map(|one| one["label"].as_str().unwrap()).collect();
    assert_eq!(labels, ["More of it", "Search", "Size", "Gift", "Word", "Go", "Under", "Off"]);
    let [search, size, word] = [lab.element("Search").await, lab.element("Size").await, lab.element("Word").await];

    let covered = lab.click("Under").await.unwrap_err();
    assert!(covered.contains("is covered by another one: div Over"), "{covered}");
    assert!(lab.click("Off").await.unwrap_err().contains("is disabled"));
    lab.click("Gift").await.unwrap();
    lab.call("type", json!({ "ref": word, "text": "s3cret" })).await.unwrap();
    let listed = lab.call("elements", json!({})).await.unwrap();
    assert_eq!(listed["elements"][3]["checked"], true);
    assert_eq!((&listed["elements"][4]["filled"], listed.to_string().contains("s3cret")), (&json!(true), false));
    let wrong = lab.call("type", json!({ "ref": size, "text": "huge" })).await.unwrap_err();
    assert!(wrong.contains("has no option huge"), "{wrong}");
    lab.call("type", json!({ "ref": size, "text": "large" })).await.unwrap();
    lab.call("type", json!({ "ref": search, "text": "first" })).await.unwrap();
    let found = lab.call("type", json!({ "ref": search, "text": "ä \"x\"", "submit": true })).await.unwrap();
    assert_eq!(found["title"], "t/found", "{found}");
    assert_eq!(lab.text().await, "?q=%C3%A4+%22x%22&size=large&gift=on&pw=s3cret");
    let gone = lab.call("click", json!({ "ref": search })).await.unwrap_err();
    assert!(gone.contains("there is no element"), "{gone}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_page_is_read_in_parts_and_a_picture_is_one() {
    let site = Site::serve(shop());
    let lab = Lab::new(&site, &[], &json!({ "text_bytes_max": 4_096 }), None);
    lab.open(&site.url("/more")).await.unwrap();
    let mut whole = String::new();
    let mut offset = json!(0);
    while !offset.is_null() {
        let read = lab.call("read", json!({ "offset": offset })).await.unwrap();
        whole += read["text"].as_str().unwrap();
        offset = read["read_on_at_offset"].clone();
    }
    assert!(whole.starts_with("word word") && whole.ends_with("the end"), "{} bytes", whole.len());
    assert_eq!(whole.matches("word").count(), 2_000);
    let shot = lab.call("screenshot", json!({})).await.unwrap();
    assert!(
        shot["data_url"].as_str().unwrap().starts_with("data:image/png;base64,iVBORw0KGgo"),
        "{}",
        shot["media_type"]
    );
}

/// Such a click used to be answered after the longest time for a page to load, as one that did not.
#[tokio::test(flavor = "multi_thread")]
async fn what_leads_to_another_place_of_the_page_has_loaded() {
    let site = Site::serve(vec![page("/", "<a href='#there'>There</a><p id=there>there</p>")]);
    let lab = Lab::new(&site, &[], &json!({}), None);
    lab.open(&site.url("/")).await.unwrap();
    let clicked = lab.click("There").await.unwrap();
    assert_eq!((&clicked["url"], &clicked["loaded"]), (&json!(site.url("/#there")), &json!(true)));
    let opened = lab.open(&site.url("/#here")).await.unwrap();
    assert_eq!((&opened["url"], &opened["loaded"]), (&json!(site.url("/#here")), &json!(true)));
    let asked = site.asked().iter().filter(|line| line.starts_with("GET / ")).count();
    assert_eq!(asked, 1, "the page was there: {:?}", site.asked());
}

/// Pages count in units of UTF-16, of which one character may have two, and answers in bytes: parts used to lose some
/// characters, and half of one used to close the pipe.
#[tokio::test(flavor = "multi_thread")]
async fn no_character_of_a_page_is_lost_between_two_parts_and_half_of_one_ends_no_browser() {
    let site = Site::serve(shop());
    let lab = Lab::new(&site, &[], &json!({ "text_bytes_max": 1_024 }), None);
    lab.open(&site.url("/wide")).await.unwrap();
    let (mut whole, mut offset) = (String::new(), json!(0));
    while !offset.is_null() {
        let read = lab.call("read", json!({ "offset": offset })).await.unwrap();
        whole += read["text"].as_str().unwrap();
        offset = read["read_on_at_offset"].clone();
    }
    assert_eq!(whole, format!("x{}\n\nthe end", "😀".repeat(2_000)));
    let within = lab.call("read", json!({ "offset": 2 })).await.unwrap();
    assert!(within["text"].as_str().unwrap().starts_with("\u{fffd}😀"), "{within}");

    let opened = lab.open(&site.url("/torn")).await.unwrap();
    assert_eq!(opened["title"], "a\u{fffd}");
    assert!(lab.text().await.starts_with("a\u{fffd}"), "{}", lab.text().await);
    assert_eq!(lab.call("elements", json!({})).await.unwrap()["elements"][0]["label"], "a\u{fffd}");
}

#[tokio::test(flavor = "multi_thread")]
async fn each_task_has_a_browser_of_its_own_and_a_gone_one_says_what_to_do() {
    let site = Site::serve(vec![
        ("/set", "content-type: text/html\r\nset-cookie: who=me\r\n", "set".into()),
        page("/", "<script>document.write(`cookies: ${document.cookie}`)</script>"),
    ]);
    let lab = Lab::new(&site, &[], &json!({ "browsers_max": 1 }), None);
    let not_open = lab.call("read", json!({})).await.unwrap_err();
    assert!(not_open.contains("no page is open") && not_open.contains("call `open` again"), "{not_open}");
    lab.open(&site.url("/set")).await.unwrap();
    lab.open(&site.url("/")).await.unwrap();
    assert_eq!(lab.text().await, "cookies: who=me");
    // The second task takes the only permit, and sees nothing of the first.
    let other = "r-000000000001/f-two/1/generate";
    lab.call_as(other, "open", json!({ "url": site.url("/") })).await.unwrap();
    assert_eq!(lab.call_as(other, "read", json!({})).await.unwrap()["text"], "cookies:");
    let gone = lab.call("read", json!({})).await.unwrap_err();
    assert!(gone.contains(&format!("the last page was {}", site.url("/"))), "{gone}");
    lab.open(&site.url("/")).await.unwrap();
    assert_eq!(lab.text().await, "cookies:");
}
