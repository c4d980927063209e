//! A headless Chromium, driven over the DevTools protocol on a pipe.
//!
//! With `--remote-debugging-pipe` Chromium reads requests from file descriptor 3 and writes
//! answers and events to 4, each a JSON text ended by a zero byte. A shell puts the two in
//! place, so neither a socket nor another crate is needed.

use std::collections::VecDeque;
use std::error::Error;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

pub(crate) type Driven<T = ()> = Result<T, Box<dyn Error>>;

pub(crate) struct Browser {
    child: Child,
    requests: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
    session: Option<String>,
    last: u64,
    /// Events not yet looked at.
    events: VecDeque<Value>,
}

impl Browser {
    /// Starts a browser with an empty page; `profile` is its own folder.
    pub(crate) fn start(program: &str, profile: &Path) -> Driven<Self> {
        let mut child = Command::new("sh")
            .arg("-c")
            .arg(r#"exec "$@" 3<&0 4>&1 0</dev/null 1>&2"#)
            .arg("sh")
            .arg(program)
            .args([
                "--headless=new",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
                "--no-first-run",
                "--hide-scrollbars",
                "--remote-debugging-pipe",
            ])
            .arg(format!("--user-data-dir={}", profile.display()))
            .arg("about:blank")
            // It leaves files there.
            .env("TMPDIR", profile)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let requests = child.stdin.take();
        let answers = BufReader::new(child.stdout.take().ok_or("the browser has no output")?);
        let mut browser = Self {
            child,
            requests,
            answers,
            session: None,
            last: 0,
            events: VecDeque::new(),
        };
        let page = browser.call("Target.createTarget", json!({"url": "about:blank"}))?;
        let attach = json!({"targetId": page["targetId"], "flatten": true});
        let session = browser.call("Target.attachToTarget", attach)?;
        browser.session = session["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page", "Runtime", "Log", "Network"] {
            browser.call(&format!("{domain}.enable"), json!({}))?;
        }
        Ok(browser)
    }

    fn read(&mut self) -> Driven<Value> {
        let mut text = Vec::new();
        self.answers.read_until(0, &mut text)?;
        if text.pop() != Some(0) {
            return Err("the browser ended".into());
        }
        Ok(serde_json::from_slice(&text)?)
    }

    /// One command and its result.
    pub(crate) fn call(&mut self, method: &str, params: Value) -> Driven<Value> {
        self.last += 1;
        let mut request = json!({"id": self.last, "method": method, "params": params});
        if let Some(session) = &self.session {
            request["sessionId"] = session.as_str().into();
        }
        let mut text = serde_json::to_vec(&request)?;
        text.push(0);
        let pipe = self.requests.as_mut().ok_or("the browser was closed")?;
        pipe.write_all(&text)?;
        pipe.flush()?;
        loop {
            let answer = self.read()?;
            if answer["id"] == self.last {
                return match answer.get("error") {
                    Some(error) => Err(format!("{method}: {error}").into()),
                    None => Ok(answer["result"].clone()),
                };
            }
            self.events.push_back(answer);
        }
    }

    /// Opens a file and waits until it is loaded.
    pub(crate) fn open(&mut self, path: &Path) -> Driven {
        let url = format!("file://{}", path.canonicalize()?.display());
        self.call("Page.navigate", json!({"url": url}))?;
        self.loaded()
    }

    /// Until the page is loaded and its scripts have the data.
    fn loaded(&mut self) -> Driven {
        loop {
            let event = self.read()?;
            let loaded = event["method"] == "Page.loadEventFired";
            self.events.push_back(event);
            if loaded {
                break;
            }
        }
        self.eval("typeof ready === 'undefined' ? null : ready")?;
        Ok(())
    }

    /// Loads the page once more, address and all.
    pub(crate) fn reload(&mut self) -> Driven {
        self.call("Page.reload", json!({}))?;
        self.loaded()
    }

    /// Presses a key on the focused element, and lets the page draw.
    pub(crate) fn press(&mut self, key: &str) -> Driven {
        let event = format!("new KeyboardEvent('keydown', {{key: '{key}', bubbles: true}})");
        self.eval(&format!("document.activeElement.dispatchEvent({event})"))?;
        self.drawn()
    }

    /// Waits until what was changed is drawn.
    pub(crate) fn drawn(&mut self) -> Driven {
        self.eval(
            "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done())))",
        )?;
        Ok(())
    }

    /// Waits until a condition holds, a minute at most.
    pub(crate) fn until(&mut self, condition: &str) -> Driven {
        let start = Instant::now();
        while self.eval(condition)? != true {
            if start.elapsed() > Duration::from_secs(60) {
                return Err(format!("never came true: {condition}").into());
            }
            self.drawn()?;
        }
        Ok(())
    }

    /// The value of a script.
    pub(crate) fn eval(&mut self, script: &str) -> Driven<Value> {
        let params = json!({"expression": script, "returnByValue": true, "awaitPromise": true});
        let mut tries = 0;
        let result = loop {
            match self.call("Runtime.evaluate", params.clone()) {
                // A slow machine may still be on its way from the page before.
                Err(error) if tries < 600 && error.to_string().contains("navigated or closed") => {
                    tries += 1;
                    std::thread::sleep(Duration::from_millis(100));
                }
                result => break result?,
            }
        };
        match result.get("exceptionDetails") {
            Some(exception) => Err(format!("{script}: {exception}").into()),
            None => Ok(result["result"]["value"].clone()),
        }
    }

    /// Size of the window, and whether it is dark.
    pub(crate) fn look(&mut self, width: u32, height: u32, dark: bool) -> Driven {
        self.call(
            "Emulation.setDeviceMetricsOverride",
            json!({"width": width, "height": height, "deviceScaleFactor": if width < 600 { 1.0 } else { 1.5 }, "mobile": width < 600}),
        )?;
        let scheme = if dark { "dark" } else { "light" };
        self.call(
            "Emulation.setEmulatedMedia",
            json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]}),
        )?;
        Ok(())
    }

    /// The whole page as PNG.
    pub(crate) fn screenshot(&mut self, path: &Path) -> Driven {
        let params = json!({"format": "png", "captureBeyondViewport": true});
        let shot = self.call("Page.captureScreenshot", params)?;
        let data = shot["data"].as_str().ok_or("no picture came")?;
        std::fs::write(path, STANDARD.decode(data)?)?;
        Ok(())
    }

    /// Errors on the console, thrown, or logged by the browser, since the start.
    pub(crate) fn errors(&self) -> Vec<String> {
        self.events
            .iter()
            .filter(|e| {
                let params = &e["params"];
                match e["method"].as_str() {
                    Some("Runtime.exceptionThrown") => true,
                    Some("Runtime.consoleAPICalled") => params["type"] == "error",
                    Some("Log.entryAdded") => params["entry"]["level"] == "error",
                    _ => false,
                }
            })
            .map(Value::to_string)
            .collect()
    }

    /// What was requested besides files named by [`open`](Self::open).
    pub(crate) fn fetched(&self) -> Vec<String> {
        self.events
            .iter()
            .filter(|e| e["method"] == "Network.requestWillBeSent")
            // Plots are files beside the page, for readers without scripts.
            .filter(|e| e["params"]["type"] != "Document" && e["params"]["type"] != "Image")
            .map(|e| e["params"]["request"]["url"].to_string())
            .collect()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // Errors here would only hide what a test found.
        self.session = None;
        let _ = self.call("Browser.close", json!({}));
        self.requests = None;
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
