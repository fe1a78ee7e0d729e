//! HTTP behaviour: status codes, limits and JSON-RPC versions, against a test double of the methods.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use assay_node::http::{Authenticator, Limits, Server};
use assay_node::jsonrpc::{CallContext, Code, Handler, Json, Params, RpcError};
use tokio::sync::watch;

use crate::support::{Answer, Client, connect_from};

const USER: &str = "user:pass:word";

/// Test double of the methods.
#[derive(Debug, Default)]
struct Double {
    blocked: AtomicBool,
    running: AtomicUsize,
    groups: AtomicUsize,
    seen: AtomicUsize,
}

#[derive(Debug)]
enum Job {
    Echo(String),
    Large(usize),
    Fail(Code),
    Block,
    Wait,
    Panic,
    Grouped(usize),
}

impl Handler for Double {
    type Job = Job;

    fn prepare(&self, method: &str, params: Params<'_>) -> Result<Job, RpcError> {
        self.seen.fetch_add(1, Ordering::SeqCst);
        let first = match &params {
            Params::Positional(values) => values.first().map_or("null", |value| value.json()),
            _ => "null",
        };
        Ok(match method {
            "echo" => Job::Echo(first.to_owned()),
            "large" => Job::Large(first.parse().unwrap_or(0)),
            "misc" => Job::Fail(Code::Misc),
            "invalid" => Job::Fail(Code::InvalidRequest),
            "block" => Job::Block,
            "wait" => Job::Wait,
            "panic" => Job::Panic,
            "grouped" => Job::Grouped(first.parse().unwrap_or(0)),
            _ => return Err(RpcError::new(Code::MethodNotFound, "Method not found")),
        })
    }

    fn waits(&self, job: &Job) -> bool {
        matches!(job, Job::Wait)
    }

    fn groups(&self, job: &Job) -> bool {
        matches!(job, Job::Grouped(_))
    }

    fn execute(&self, job: Job, context: &CallContext, out: &mut Vec<u8>) -> Result<(), RpcError> {
        self.running.fetch_add(1, Ordering::SeqCst);
        match job {
            Job::Echo(json) => Json::new(out).raw(&json),
            Job::Large(bytes) => Json::new(out).string(&"x".repeat(bytes)),
            Job::Fail(code) => {
                out.extend_from_slice(b"half a result");
                return Err(RpcError::new(code, "it \"failed\""));
            }
            Job::Block => {
                while self.blocked.load(Ordering::SeqCst) {
                    thread::yield_now();
                }
                Json::new(out).null();
            }
            Job::Wait => {
                while !context.interrupted() && self.blocked.load(Ordering::SeqCst) {
                    thread::yield_now();
                }
                Json::new(out).bool(context.interrupted());
            }
            Job::Panic => panic!("a call that panics, as the test wants"),
            Job::Grouped(number) => Json::new(out).count(number),
        }
        self.running.fetch_sub(1, Ordering::SeqCst);
        Ok(())
    }

    fn execute_group(&self, jobs: Vec<Job>, _: &CallContext) -> Vec<Result<Vec<u8>, RpcError>> {
        self.groups.fetch_add(1, Ordering::SeqCst);
        let answer = |job| match job {
            Job::Grouped(0) => Err(RpcError::new(Code::VerifyRejected, "zero")),
            Job::Grouped(number) => Ok(number.to_string().into_bytes()),
            _ => panic!("only jobs of one kind are grouped"),
        };
        jobs.into_iter().map(answer).collect()
    }
}

struct Running {
    address: SocketAddr,
    double: Arc<Double>,
    stop: watch::Sender<bool>,
    thread: Option<JoinHandle<()>>,
}

impl Running {
    fn start(limits: Limits) -> Self {
        let double = Arc::new(Double::default());
        let (stop, stopping) = watch::channel(false);
        let (tell, told) = std::sync::mpsc::channel();
        let handler = Arc::clone(&double);
        let thread = thread::spawn(move || {
            let runtime =
                tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
            runtime.unwrap().block_on(async {
                let server = Server::bind(&["127.0.0.1:0".parse().unwrap()]).await.unwrap();
                tell.send(server.addresses()[0]).unwrap();
                let mut authenticator = Authenticator::new();
                authenticator.add_password("user", "pass:word").unwrap();
                server.serve(handler, authenticator, Vec::new(), limits, stopping).await;
            });
        });
        Self { address: told.recv().unwrap(), double, stop, thread: Some(thread) }
    }

    fn client(&self) -> Client {
        Client::connect(self.address, USER)
    }

    fn until(&self, what: &str, reached: impl Fn(&Double) -> bool) {
        let deadline = Instant::now() + Duration::from_secs(30);
        while !reached(&self.double) {
            assert!(Instant::now() < deadline, "waited too long for {what}");
            thread::yield_now();
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.double.blocked.store(false, Ordering::SeqCst);
        self.stop.send_replace(true);
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            assert!(ended.is_ok() || thread::panicking());
        }
    }
}

fn check(answer: &Answer, status: u16, body: &str) {
    assert_eq!((answer.status, answer.text().as_str()), (status, body));
}

#[test]
fn unread_responses_time_out() {
    let idle = Duration::from_millis(200);
    let server = Running::start(Limits { idle, ..Limits::default() });
    let mut client = server.client();
    let bytes = 64 << 20;
    let request = format!(r#"{{"method":"large","params":[{bytes}],"id":1}}"#);
    let authorization = client.authorization().to_owned();
    let head = format!(
        "POST / HTTP/1.1\r\nhost: test\r\nauthorization: {authorization}\r\ncontent-length: {}\r\n\r\n",
        request.len()
    );
    client.send(head.as_bytes()).unwrap();
    client.send(request.as_bytes()).unwrap();
    // Keep sending without reading until the server closes the connection.
    let deadline = Instant::now() + Duration::from_secs(30);
    while client.send(b" ").is_ok() {
        assert!(Instant::now() < deadline, "the connection is still there");
        thread::yield_now();
    }
    // A client that reads gets the response.
    let server = Running::start(Limits::default());
    assert!(server.client().post(&request).body.len() > bytes);
}

#[test]
fn legacy_requests_get_http_errors() {
    let server = Running::start(Limits::default());
    let mut client = server.client();
    for (request, status, reply) in [
        (r#"{"method":"echo","params":[5],"id":1}"#, 200, r#"{"result":5,"error":null,"id":1}"#),
        (
            r#"{"jsonrpc":"1.0","method":"echo","id":"a"}"#,
            200,
            r#"{"result":null,"error":null,"id":"a"}"#,
        ),
        (
            r#"{"method":"echo","params":[{"a": "b"}]}"#,
            200,
            r#"{"result":{"a": "b"},"error":null}"#,
        ),
        (
            r#"{"method":"misc","id":2}"#,
            500,
            r#"{"result":null,"error":{"code":-1,"message":"it \"failed\""},"id":2}"#,
        ),
        (
            r#"{"method":"nope","id":3}"#,
            404,
            r#"{"result":null,"error":{"code":-32601,"message":"Method not found"},"id":3}"#,
        ),
        (
            r#"{"method":"invalid","id":3}"#,
            400,
            r#"{"result":null,"error":{"code":-32600,"message":"it \"failed\""},"id":3}"#,
        ),
        (
            r#"{"id":4}"#,
            400,
            r#"{"result":null,"error":{"code":-32600,"message":"Missing method"},"id":4}"#,
        ),
        (
            r#"{"method":"echo","params":7,"id":5}"#,
            400,
            r#"{"result":null,"error":{"code":-32600,"message":"Params must be an array or object"},"id":5}"#,
        ),
        (
            r#"{"jsonrpc":"3.0","method":"echo","id":6}"#,
            400,
            r#"{"result":null,"error":{"code":-32600,"message":"JSON-RPC version not supported"},"id":6}"#,
        ),
        ("{", 500, r#"{"result":null,"error":{"code":-32700,"message":"Parse error"},"id":null}"#),
        ("", 500, r#"{"result":null,"error":{"code":-32700,"message":"Parse error"},"id":null}"#),
        (
            "17",
            500,
            r#"{"result":null,"error":{"code":-32700,"message":"Top-level object parse error"},"id":null}"#,
        ),
    ] {
        let answer = client.post(request);
        check(&answer, status, &format!("{reply}\n"));
        assert_eq!(answer.header("content-type"), Some("application/json"));
    }
}

#[test]
fn version_2_requests_get_errors_in_the_body() {
    let server = Running::start(Limits::default());
    let mut client = server.client();
    for (request, status, reply) in [
        (
            r#"{"jsonrpc":"2.0","method":"echo","params":[5],"id":1}"#,
            200,
            r#"{"jsonrpc":"2.0","result":5,"id":1}"#,
        ),
        (
            r#"{"jsonrpc":"2.0","method":"misc","id":2}"#,
            200,
            r#"{"jsonrpc":"2.0","error":{"code":-1,"message":"it \"failed\""},"id":2}"#,
        ),
        (
            r#"{"jsonrpc":"2.0","method":"nope","id":3}"#,
            200,
            r#"{"jsonrpc":"2.0","error":{"code":-32601,"message":"Method not found"},"id":3}"#,
        ),
        (
            r#"{"jsonrpc":"2.0","method":"echo","id":null}"#,
            200,
            r#"{"jsonrpc":"2.0","result":null,"id":null}"#,
        ),
        (
            r#"{"jsonrpc":"2.0","id":4}"#,
            400,
            r#"{"jsonrpc":"2.0","error":{"code":-32600,"message":"Missing method"},"id":4}"#,
        ),
    ] {
        check(&client.post(request), status, &format!("{reply}\n"));
    }
    for notification in ["echo", "misc", "nope"] {
        let answer = client.post(&format!(r#"{{"jsonrpc":"2.0","method":"{notification}"}}"#));
        check(&answer, 204, "");
        assert_eq!(answer.header("content-type"), None);
    }
    assert_eq!(server.double.seen.load(Ordering::SeqCst), 7);
}

#[test]
fn batches_answer_element_by_element() {
    let server = Running::start(Limits::default());
    let mut client = server.client();
    let bad =
        r#"{"result":null,"error":{"code":-32600,"message":"Invalid Request object"},"id":null}"#;
    for (request, status, reply) in [
        ("[]", 200, "[]\n".to_owned()),
        ("[1]", 200, format!("[{bad}]\n")),
        (
            r#"[{"method":"echo","id":1},{"jsonrpc":"2.0","method":"misc","id":2},{"jsonrpc":"2.0","method":"echo"},null,{"method":"nope","id":3}]"#,
            200,
            format!(
                "[{},{},{bad},{}]\n",
                r#"{"result":null,"error":null,"id":1}"#,
                r#"{"jsonrpc":"2.0","error":{"code":-1,"message":"it \"failed\""},"id":2}"#,
                r#"{"result":null,"error":{"code":-32601,"message":"Method not found"},"id":3}"#
            ),
        ),
        (
            r#"[{"jsonrpc":"2.0","method":"echo"},{"jsonrpc":"2.0","method":"misc"}]"#,
            204,
            String::new(),
        ),
    ] {
        check(&client.post(request), status, &reply);
    }
}

#[test]
fn batch_neighbours_run_as_a_group() {
    let server = Running::start(Limits::default());
    let call = |number: u32| {
        format!(r#"{{"jsonrpc":"2.0","method":"grouped","params":[{number}],"id":{number}}}"#)
    };
    let result = |number: u32| format!(r#"{{"jsonrpc":"2.0","result":{number},"id":{number}}}"#);
    let batch = [
        call(1),
        call(0),
        call(2),
        r#"{"jsonrpc":"2.0","method":"grouped","params":[9]}"#.to_owned(),
        r#"{"method":"echo"}"#.to_owned(),
        call(3),
    ];
    let answer = server.client().post(&format!("[{}]", batch.join(",")));
    let zero = r#"{"jsonrpc":"2.0","error":{"code":-26,"message":"zero"},"id":0}"#;
    let echo = r#"{"result":null,"error":null}"#;
    check(&answer, 200, &format!("[{},{zero},{},{echo},{}]\n", result(1), result(2), result(3)));
    assert_eq!(server.double.groups.load(Ordering::SeqCst), 2);
}

#[test]
fn only_authorised_posts_to_the_root_are_served() {
    let server = Running::start(Limits::default());
    let mut client = server.client();
    let body = br#"{"method":"echo"}"#;
    for (method, path, status, text) in [
        ("GET", "/", 405, "JSONRPC server handles only POST requests"),
        ("PUT", "/", 405, "JSONRPC server handles only POST requests"),
        ("DELETE", "/", 405, ""),
        ("POST", "/wallet/", 404, ""),
        ("POST", "/?x=1", 404, ""),
        ("GET", "/rest/tx", 404, ""),
    ] {
        check(&client.request(method, path, body), status, text);
    }
    // The connection has survived all of this.
    assert_eq!(client.request("POST", "/", body).status, 200);
    let start = Instant::now();
    for credentials in ["user:wrong", "nobody:pass:word", ""] {
        let answer = Client::connect(server.address, credentials).post(r#"{"method":"echo"}"#);
        check(&answer, 401, "");
        assert_eq!(answer.header("www-authenticate"), Some("Basic realm=\"jsonrpc\""));
    }
    assert!(start.elapsed() >= Duration::from_millis(750), "wrong passwords cost time");
    let mut client = server.client();
    client.send(b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n{}").unwrap();
    let answer = client.answer().unwrap();
    check(&answer, 401, "");
    assert_eq!(answer.header("www-authenticate"), Some("Basic realm=\"jsonrpc\""));
    assert_eq!(server.double.seen.load(Ordering::SeqCst), 1);
}

/// Some clients match these spellings, which are Core's.
#[test]
fn header_names_match_core() {
    let server = Running::start(Limits { body_bytes_max: 1000, ..Limits::default() });
    let names = |answer: &Answer| {
        let mut names: Vec<_> = answer.headers.iter().map(|(name, _)| name.clone()).collect();
        names.sort();
        names
    };
    let answer = server.client().post(r#"{"method":"echo"}"#);
    assert_eq!(names(&answer), ["Content-Length", "Content-Type", "Date"]);
    let mut client = server.client();
    client.send(b"POST / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").unwrap();
    let answer = client.answer().unwrap();
    let mut expected = vec!["Connection", "Content-Length", "Content-Type", "Date"];
    expected.push("Www-Authenticate");
    assert_eq!(
        (answer.status, names(&answer)),
        (401, expected.iter().map(ToString::to_string).collect())
    );
    let answer = server.client().request("POST", "/", &[b' '; 1001]);
    assert_eq!((answer.status, answer.reason.as_str()), (413, "Content too large"));
    let full = Running::start(Limits { connections_max: 0, ..Limits::default() });
    let answer = full.client().answer().unwrap();
    assert_eq!(
        (answer.status, names(&answer).as_slice()),
        (503, ["Connection", "Content-Length"].map(String::from).as_slice())
    );
}

/// Idle connections of one address leave slots to others, and a forbidden address gets none.
#[test]
#[cfg(target_os = "linux")]
fn idle_connections_leave_slots_to_others() {
    let server = Running::start(Limits::default());
    let idle: Vec<_> = (0..256).map(|_| connect_from([127, 0, 0, 5], server.address)).collect();
    let from = |source| Client::over(connect_from(source, server.address), USER);
    // Connections are accepted in order: the last one has been handled once this one is answered.
    assert_eq!(from([127, 0, 0, 5]).answer().map(|answer| answer.status), Some(503));
    for _ in 0..20 {
        assert_eq!(from([127, 0, 0, 1]).post(r#"{"method":"echo"}"#).status, 200);
    }
    drop(idle);
}

/// Wrong passwords cost other clients neither time nor connections.
#[test]
#[cfg(target_os = "linux")]
fn wrong_passwords_affect_only_their_address() {
    let server = Running::start(Limits::default());
    let from =
        |source, credentials| Client::over(connect_from(source, server.address), credentials);
    let body = r#"{"method":"echo"}"#;
    let mut known = from([127, 0, 0, 9], USER);
    assert_eq!(known.post(body).status, 200);
    let guess = |number: usize| {
        let mut client = from([127, 0, 0, 9], "user:wrong");
        thread::Builder::new()
            .name(format!("guess-{number}"))
            .spawn(move || client.post(r#"{"method":"echo"}"#).status)
    };
    let guesses: Vec<_> = (0..100).map(|number| guess(number).unwrap()).collect();
    for _ in 0..20 {
        assert_eq!(from([127, 0, 0, 1], USER).post(body).status, 200);
        assert_eq!(known.post(body).status, 200, "it had the right one before");
    }
    // Others at the same address wait, and succeed.
    assert_eq!(from([127, 0, 0, 9], USER).post(body).status, 200);
    assert!(guesses.into_iter().all(|guess| guess.join().unwrap() == 401));
}

#[test]
fn rejects_oversized_bodies() {
    let limits = Limits { body_bytes_max: 1 << 20, ..Limits::default() };
    let server = Running::start(limits);
    let message = "request body is larger than the limit of 1048576 bytes\n";
    // With `Content-Length`, from a client that writes everything before it reads.
    let body = vec![b' '; 20 << 20];
    let mut client = server.client();
    let answer = client.request("POST", "/", &body);
    check(&answer, 413, message);
    assert_eq!(answer.header("connection"), Some("close"));
    assert!(client.is_closed());
    // Announced only: rejected without the body, and without `100 Continue`.
    let mut client = server.client();
    let head = format!(
        "POST / HTTP/1.1\r\nhost: x\r\nauthorization: {}\r\ncontent-length: 9999999999\r\nexpect: 100-continue\r\n\r\n",
        client.authorization()
    );
    client.send(head.as_bytes()).unwrap();
    check(&client.answer().unwrap(), 413, message);
    // Without `Content-Length`.
    let mut client = server.client();
    let head = format!(
        "POST / HTTP/1.1\r\nhost: x\r\nauthorization: {}\r\ntransfer-encoding: chunked\r\n\r\n",
        client.authorization()
    );
    client.send(head.as_bytes()).unwrap();
    let chunk = [b"80000\r\n".as_slice(), &vec![b' '; 0x80000], b"\r\n"].concat();
    for _ in 0..3 {
        client.send(&chunk).unwrap();
    }
    check(&client.answer().unwrap(), 413, message);
    // Exactly the limit.
    let mut text = br#"{"method":"echo","id":1}"#.to_vec();
    text.resize(1 << 20, b' ');
    assert_eq!(server.client().request("POST", "/", &text).status, 200);
}

#[test]
fn chunked_bodies_and_pipelined_requests_work() {
    let server = Running::start(Limits::default());
    let mut client = server.client();
    let head = format!(
        "POST / HTTP/1.1\r\nhost: x\r\nauthorization: {}\r\ntransfer-encoding: chunked\r\n\r\n",
        client.authorization()
    );
    let chunks = "8\r\n{\"method\r\n10\r\n\":\"echo\",\"id\":1}\r\n0\r\n\r\n";
    client.send(format!("{head}{chunks}{head}{chunks}").as_bytes()).unwrap();
    for _ in 0..2 {
        check(&client.answer().unwrap(), 200, "{\"result\":null,\"error\":null,\"id\":1}\n");
    }
    client.send(b"nonsense\r\n\r\n").unwrap();
    assert_eq!(client.answer().map(|answer| answer.status), Some(400));
}

#[test]
fn silent_clients_time_out() {
    let limits = Limits { idle: Duration::from_millis(200), ..Limits::default() };
    let server = Running::start(limits);
    let mut idle = server.client();
    let mut stalled = server.client();
    let head = format!(
        "POST / HTTP/1.1\r\nhost: x\r\nauthorization: {}\r\ncontent-length: 10\r\n\r\n{{",
        stalled.authorization()
    );
    stalled.send(head.as_bytes()).unwrap();
    assert_eq!(stalled.answer().unwrap().status, 408);
    assert!(idle.is_closed() && stalled.is_closed());
}

#[test]
fn full_queue_rejects_calls() {
    let limits = Limits { threads: 2, queue_max: 1, waiters_max: 2, ..Limits::default() };
    let server = Running::start(limits);
    server.double.blocked.store(true, Ordering::SeqCst);
    let post = |method: &'static str| {
        let mut client = server.client();
        thread::spawn(move || client.post(&format!(r#"{{"method":"{method}","id":1}}"#)))
    };
    // Waiting calls have a separate lane...
    let waiting = [post("wait"), post("wait")];
    server.until("waiting calls", |double| double.running.load(Ordering::SeqCst) == 2);
    assert_eq!(server.client().post(r#"{"method":"echo"}"#).status, 200);
    // ...with a limit as well.
    let mut client = server.client();
    check(&client.post(r#"{"method":"wait"}"#), 503, "Work queue depth exceeded");
    let blocked = [post("block"), post("block")];
    server.until("working calls", |double| double.running.load(Ordering::SeqCst) == 4);
    // One may queue; it does not matter which.
    let (first, second) = (post("echo"), post("echo"));
    server.until("a full queue", |_| first.is_finished() || second.is_finished());
    let (refused, queued) = if first.is_finished() { (first, second) } else { (second, first) };
    check(&refused.join().unwrap(), 503, "Work queue depth exceeded");
    server.double.blocked.store(false, Ordering::SeqCst);
    for call in waiting.into_iter().chain(blocked).chain([queued]) {
        assert_eq!(call.join().unwrap().status, 200);
    }
}

#[test]
fn waiting_calls_end_on_disconnect_or_stop() {
    let server = Running::start(Limits { waiters_max: 1, ..Limits::default() });
    server.double.blocked.store(true, Ordering::SeqCst);
    let mut client = server.client();
    let body = r#"{"method":"wait","id":1}"#;
    let head = format!(
        "POST / HTTP/1.1\r\nhost: x\r\nauthorization: {}\r\ncontent-length: {}\r\n\r\n{body}",
        client.authorization(),
        body.len()
    );
    client.send(head.as_bytes()).unwrap();
    server.until("the call", |double| double.running.load(Ordering::SeqCst) == 1);
    drop(client);
    server.until("its end", |double| double.running.load(Ordering::SeqCst) == 0);
    let mut client = server.client();
    let call = thread::spawn(move || (client.post(body), client.is_closed()));
    server.until("the call", |double| double.running.load(Ordering::SeqCst) == 1);
    server.stop.send_replace(true);
    let (answer, closed) = call.join().unwrap();
    check(&answer, 200, "{\"result\":true,\"error\":null,\"id\":1}\n");
    assert!(closed);
}

#[test]
fn connection_limit_is_enforced() {
    let server = Running::start(Limits { connections_max: 2, ..Limits::default() });
    let mut first = server.client();
    let mut second = server.client();
    assert_eq!(first.post(r#"{"method":"echo"}"#).status, 200);
    assert_eq!(second.post(r#"{"method":"echo"}"#).status, 200);
    let mut third = server.client();
    assert_eq!(third.answer().map(|answer| answer.status), Some(503));
    drop(first);
    // The slot is free once the server has noticed the disconnection.
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        let mut client = server.client();
        let sent = client.send(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n");
        if sent.is_ok() && client.answer().map(|answer| answer.status) == Some(405) {
            break;
        }
        assert!(Instant::now() < deadline, "the place of a closed connection was not given back");
    }
}

#[test]
fn panics_fail_only_their_call() {
    let server = Running::start(Limits { threads: 1, ..Limits::default() });
    for _ in 0..3 {
        let answer = server.client().post(r#"{"method":"panic","id":1}"#);
        assert_eq!(answer.status, 500);
        assert_eq!(answer.header("connection"), Some("close"));
    }
    assert_eq!(server.client().post(r#"{"method":"echo","id":1}"#).status, 200);
}
