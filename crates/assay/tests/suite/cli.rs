//! The command line: help, exit status, and errors with location and remedy.

use std::path::Path;
use std::process::Command;

use crate::{assay, command, good, json, line, rejects, stderr, stdout};

/// Commands whose help is a snapshot.
const COMMANDS: &str = "run, crash, chain forge, chain scripts, chain ledger, chain serve, \
    electrum check, node, top, validate, verify-data, shard, shard plan, shard run, \
    block verify, bench, bench compare, bench signatures, bench blocks, bench sync, \
    bench peers, bench network, bench mempool, bench agreement, builds, builds make, \
    builds clean, pr, load electrum, load p2p, emit, logs, compare, publish, history, \
    machine";

#[test]
fn help_texts() {
    insta::assert_snapshot!("assay", stdout(&line("--help")));
    for command in COMMANDS.split(", ") {
        let output = line(&format!("{command} --help"));
        assert!(output.status.success());
        insta::assert_snapshot!(command, stdout(&output));
    }
}

#[test]
fn wrong_names_and_numbers_are_rejected() {
    rejects(&["run", "no-such-plan"], "bch-scaling");
    rejects(&["run", "bch-scaling", "--set", "seed"], "give KEY=VALUE");
    rejects(&["run", "bch-scaling", "--set", "feed.sene=1"], "no plan has a key feed.sene");
    rejects(&["run", "bch-scaling", "--by", "post"], "--by: unknown variant `post`");
    rejects(&["run", "bch-scaling", "--by", "peer", "--seen", "0"], "cannot stand in for rpc");
    rejects(&["run", "./no-such-plan.toml"], "cannot read plan ./no-such-plan.toml");
    rejects(&["run", "bch-scaling", "--target", "geth"], "unknown target");
    rejects(&["run", "bch-scaling", "--target", "bitcoind=/b+index"], "only our own node");
    rejects(&["crash", "--index", "--target", "bitcoind=/b"], "--index: only our own node");
    rejects(&["plan", "show", "none"], "assay plan list");
    rejects(&["chain", "recipe", "none"], "assay chain recipes");
    let dir = tempfile::tempdir().expect("a folder");
    let out = dir.path().join("chain").display().to_string();
    rejects(&["chain", "forge", "no-such-recipe", "--out", &out], "bch-scaling");
    for scale in ["0", "-1", "NaN", "1e9"] {
        let scale = format!("--scale={scale}");
        rejects(&["chain", "forge", "bch-scaling", &scale, "--out", &out], "scale");
    }
    assert!(!Path::new(&out).exists());
    rejects(&["chain", "scripts", &out], "ledger.jsonl");
    rejects(&["emit", &out, "--to", "p2p@127.0.0.1:1"], "ledger.jsonl");
    rejects(&["emit", &out, "--to", "127.0.0.1:1"], "p2p@HOST:PORT");
    rejects(&["emit", &out, "--to", "p2p@127.0.0.1:1", "--seen", "2"], "--seen 2");
    rejects(&["emit", &out, "--to", "p2p@127.0.0.1:1", "--pace", "5"], "poisson(600s)");
    rejects(&["electrum", "check", "127.0.0.1:1", "--chain-dir", &out], "ledger.jsonl");
    rejects(&["node", "--chain", "dogecoin", "--datadir", &out], "bch-regtest");
    rejects(&["node", "--chain", "regtest", "--datadir", &out, "--db-cache", "0"], "--db-cache 0");
    rejects(&["node", "--chain", "regtest", "--datadir", &out, "--rpc", "0.0.0.0:0"], "0.0.0.0");
    rejects(&["node", "--chain", "chipnet", "--datadir", &out], "from May 2023 on");
    rejects(&["validate", "--chain", "bch-main", "--blocks", &out], "from May 2023 on");
    rejects(&["bench", "agreement", "--target", "assay"], "not Bitcoin Cash Node");
    rejects(&["bench", "network", "--target", "assay"], "2 to 16 nodes");
    rejects(&["bench", "network", "--tx-rate", "1000"], "at most 60000 transactions");
    rejects(&["bench", "network", "--block-every", "0s"], "give more than nothing");
    rejects(&["report", &out], "results.json");
    rejects(&["validate", "--chain", "dogecoin", "--blocks", &out], "bch-regtest");
    rejects(&["validate", "--chain", "regtest", "--blocks", &out], &out);
    // Bitcoin Core names this chain `test`; other programs name it `testnet3`.
    rejects(&["validate", "--chain", "testnet3", "--blocks", &out], &out);
    rejects(&["validate", "--blocks", &out, "--db-cache", "0"], "--db-cache 0");
    rejects(&["validate", "--blocks", &out, "--assume-valid", "12"], "--assume-valid");
}

#[test]
fn benchmarks_reject_unusable_arguments() {
    rejects(&["bench", "signatures", "--backend", "gpu"], "no backend `gpu`");
    rejects(&["bench", "blocks", "--data", "/nonexistent"], "/nonexistent");
    // Without the peer program a comparison prints the command that builds it.
    let build = "cd peers/kernel && cargo build --release";
    rejects(&["bench", "blocks", "--against", "kernel", "--kernel", "/nonexistent/peer"], build);
    rejects(&["bench", "sync", "--against", "kernel", "--kernel", "/nonexistent/peer"], build);
    rejects(&["bench", "sync"], "--against");
}

/// Benchmarks on curves and compilers run in another program.
#[test]
fn suites_of_assay_curves_are_measured_and_reported() {
    const SERVES: &str = r#"#!/bin/sh
[ "$1 $3" = "compilers smoke" ] || exit 9
while read -r order; do
    case "$order" in
    *studies*) echo '{"studies":[{"id":"who","title":"Compilers of this machine","prose":[],"tables":[]}]}' ;;
    *list*) echo '{"benchmarks":[{"name":"add256/latency","series":"add256/latency","size":null,"unit":"","bytes_per_op":null,"baseline":null}]}' ;;
    *prepare*) echo '{"alternatives":["gcc","clang"]}' ;;
    *epoch*) echo '{"epoch":{"ops":1,"wall_ns":1000,"cpu_ns":1000,"counts":{}}}' ;;
    esac
done
"#;
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (program, out) = (folder.path().join("assay-curves"), folder.path().join("out"));
    let run = || {
        let mut command = command(&["run", "compilers", "--smoke", "--json", "--out"]);
        command.arg(&out).env("ASSAY_CURVES", &program).output().expect("the program starts")
    };
    let absent = run();
    assert_eq!(absent.status.code(), Some(2));
    let text = stderr(&absent);
    assert!(text.contains("cd curves && cargo build --release --locked"), "{text}");
    assert!(text.contains(&program.display().to_string()), "{text}");
    std::fs::write(&program, SERVES).expect("writable");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&program, mode).expect("our file");
    let output = run();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let results = stdout(&output);
    assert!(results.contains("\"add256/latency\"") && results.contains("\"clang\""), "{results}");
    let report = std::fs::read_to_string(out.join("report.html")).expect("a report");
    assert!(report.contains("Compilers of this machine"));
}

/// A misspelt feature must be an error, since it would not be hidden.
#[test]
fn unknown_cpu_features_are_rejected() {
    let mut command = command(&["plan", "list"]);
    let output = command.env("ASSAY_HIDE_CPU_FEATURES", "avx2,avx513").output();
    let output = output.expect("the program starts");
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("no feature is called \"avx513\""), "{}", stderr(&output));
}

#[test]
fn experiments_print_their_figures() {
    let signatures = ["bench", "signatures", "--batch", "64", "--rounds", "2", "--json"];
    let record = bench(&signatures);
    let wanted = [
        ("Schnorr", "libsecp256k1, plain / weighted batch", "ratio of times"),
        ("Schnorr", "libsecp256k1, plain / weighted batch", "ratio of times, coverage"),
        ("ECDSA", "batch / batch, sampled", "ratio of CPU times"),
        ("all kinds", "", "self-test of the backend"),
        ("all kinds", "", "invalid checks"),
    ];
    for (target, case, metric) in wanted {
        assert!(figure(&record, target, case, metric) > Some(0.0), "{target}, {case}: {metric}");
    }
    let mempool = ["--blocks", "2", "--txs", "20", "--clusters", "6", "--lead", "20ms", "--json"];
    let record = bench(&[&["bench", "mempool"][..], &mempool].concat());
    let case = "block, under attack / block, quiet";
    assert!(figure(&record, "assay", case, "ratio of medians") > Some(0.0), "{record}");
    let verdicts = figure(&record, "verdicts", "replacement-failed", "hostile transactions");
    assert!(verdicts > Some(0.0), "{record}");
    let dir = tempfile::tempdir().expect("a folder");
    // A folder with an invalid block makes the run fail; one real block would be enough.
    std::fs::write(dir.path().join("mainnet-1.blk"), [0; 10]).expect("a file");
    let data = dir.path().display().to_string();
    rejects(&["bench", "blocks", "--rounds", "1", "--txs", "1", "--data", &data], "mainnet-1");
}

/// Zero comparisons are no pass, hence no option counts them.
#[test]
fn experiments_of_nothing_are_rejected() {
    for (name, flag) in [
        ("signatures", "--batch"),
        ("signatures", "--rounds"),
        ("blocks", "--rounds"),
        ("blocks", "--txs"),
        ("blocks", "--connect-blocks"),
        ("mempool", "--blocks"),
        ("mempool", "--txs"),
        ("mempool", "--clusters"),
    ] {
        rejects(&["bench", name, flag, "0"], flag);
    }
    rejects(&["bench", "agreement", "--target", "bitcoind=/bin/true", "--cases", "0"], "--cases");
}

/// Runs an experiment that prints its record as JSON.
fn bench(arguments: &[&str]) -> serde_json::Value {
    let output = assay(arguments);
    let record = good(&output);
    assert!(!record["checks"].as_array().is_none_or(Vec::is_empty), "{record}");
    // A test build is not for measurements and prints a warning.
    let warnings = stderr(&output);
    assert!(!cfg!(debug_assertions) || warnings.contains("debug build"), "{warnings}");
    record
}

/// The first value of a metric.
fn figure(record: &serde_json::Value, target: &str, case: &str, metric: &str) -> Option<f64> {
    let is_it = |cell: &&serde_json::Value| {
        let case_of = cell["case"].as_str().unwrap_or_default();
        cell["target"] == target && case_of == case && cell["metric"] == metric
    };
    record["cells"].as_array()?.iter().find(is_it)?["value"].as_f64()
}

#[test]
fn a_plan_with_an_unknown_key_is_rejected_with_its_line() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("plan.toml");
    let text = stdout(&assay(&["plan", "show", "bch-scaling"]));
    std::fs::write(&path, format!("sede = 1\n{text}")).expect("a file");
    let path = path.display().to_string();
    rejects(&["run", &path], "sede");
}

#[test]
fn lists_print_text_and_json() {
    assert!(stdout(&assay(&["plan", "list"])).lines().any(|line| line.starts_with("bch-scaling ")));
    let names: Vec<String> =
        serde_json::from_slice(&assay(&["chain", "recipes", "--json"]).stdout).expect("JSON");
    assert_eq!(
        names,
        [
            "bch-scaling",
            "bitcoin-placement",
            "bitcoin-scaling",
            "history",
            "history-settled",
            "sighash-scaling",
            "wide-set"
        ]
    );
    // The output of `chain recipe` is accepted as input.
    let recipe = stdout(&assay(&["chain", "recipe", "bitcoin-scaling"]));
    assert!(recipe.contains("bitcoin-scaling"));
}

#[test]
fn the_forge_prints_a_summary() {
    let dir = tempfile::tempdir().expect("a folder");
    let out = dir.path().join("chain").display().to_string();
    let forge = ["chain", "forge", "bch-scaling", "--scale", "0.001", "--out", &out];
    let report = good(&assay(&[&forge[..], &["--stop-height", "101", "--json"]].concat()));
    assert_eq!(report["tip_height"], 101);
    // The folder exists now.
    let again = assay(&forge);
    assert_eq!(again.status.code(), Some(2));
}

/// The harness must detect 3 % more instructions by counting, under any load of the machine.
#[test]
fn three_percent_more_instructions_are_counted() {
    let under_valgrind = Command::new("valgrind").arg("--version").output().is_ok();
    let arguments =
        ["bench", "harness/three-percent", "--extent", "smoke", "--instructions", "--json"];
    let output = assay(&arguments);
    let results: serde_json::Value = match serde_json::from_slice(&output.stdout) {
        Ok(results) => results,
        Err(_) if !under_valgrind => {
            assert!(stderr(&output).contains("install it"), "{}", stderr(&output));
            return eprintln!("skipped: no counters and no valgrind");
        }
        Err(error) => panic!("{error}: {}", stderr(&output)),
    };
    let figures = &results["benchmarks"][0]["row"]["figures"];
    let count = |index: usize| {
        let count = figures[index]["instructions_per_op"].as_f64();
        count.unwrap_or_else(|| panic!("no count: {results}"))
    };
    let ratio = count(0) / count(1);
    assert!((ratio - 1.03).abs() < 0.002, "{ratio}");
    let by = results["counting"]["by"].as_str().unwrap_or_default();
    assert!(by == "valgrind" || by == "perf_event_open", "{by}");
}

#[test]
fn plans_of_benchmarks_are_run_and_compared() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (out, plan) = (folder.path().join("out"), folder.path().join("plan.toml"));
    let program = env!("CARGO_BIN_EXE_assay");
    let text = format!(
        "format = 1\nkind = \"bench\"\nname = \"mine\"\ntitle = \"Mine\"\nsummary = \"Two builds.\"\n[stack]\n\
         [[build]]\nname = \"one\"\ncommand = [{program:?}]\nbenchmarks = [\"nothing-*\"]\n\
         [[build]]\nname = \"two\"\ncommand = [{program:?}]\n"
    );
    std::fs::write(&plan, text).expect("writable");
    let (plan, out) = (plan.to_str().expect("text"), out.to_str().expect("text"));
    let output = assay(&["run", plan, "--smoke", "--out", out]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    for file in ["results.json", "results.csv", "report.md", "report.html", "journal.jsonl"] {
        assert!(Path::new(out).join(file).exists(), "{file}");
    }
    let again = assay(&["report", out]);
    assert_eq!(stdout(&again), stdout(&output));
    let compared = assay(&["bench", "compare", out, out]);
    assert_eq!(compared.status.code(), Some(0), "{}", stderr(&compared));
    assert!(stdout(&compared).contains("0 faster, 0 slower"), "{}", stdout(&compared));
    rejects(&["run", plan, "--scale", "1"], "chain.scale is a key of bch-scaling, ");
    rejects(
        &["run", "bch-scaling", "--quick"],
        "--quick means nothing for bch-scaling, a plan of kind chain",
    );
    rejects(&["run", "stack-element-size", "--part", "micro"], "has no parts");
    rejects(&["run", "ibd-tracking", "--part", "nano"], "there are micro and macro");
    rejects(&["run", "ibd-tracking", "--part", "macro"], "--target twice");
    rejects(&["run", "aa", "--series", "2", "--target", "assay"], "two targets");
    rejects(&["run", "ibd-tracking", "--series", "2"], "--series means nothing for");
    rejects(&["bench", "no-such-benchmark"], "assay bench list");
    rejects(&["bench", "compare", "/nonexistent", out], "/nonexistent");
}

#[test]
fn completions_and_man_pages() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let output = assay(&["completions", shell]);
        assert_eq!(output.status.code(), Some(0), "{shell}: {}", stderr(&output));
        let script = stdout(&output);
        assert!(script.contains("completions") && script.contains("db-cache"), "{shell}");
    }
    rejects(&["completions", "dos"], "bash");
    let dir = tempfile::tempdir().expect("a folder");
    let out = dir.path().join("man1");
    let output = assay(&["man", "--out", out.to_str().expect("text")]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    for (page, text) in [
        ("assay.1", "assay\\-node(1)"),
        ("assay-chain-forge.1", "recipe"),
        ("assay-node.1", "coins"),
    ] {
        let page = std::fs::read_to_string(out.join(page)).expect("a page");
        assert!(page.contains(text), "{page}");
    }
}

/// The files for services and containers match the program: flags of the service, compiler of the image.
#[test]
fn service_and_container() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let read = |name: &str| std::fs::read_to_string(root.join(name)).expect("a file of the tree");
    let service = read("contrib/assay.service");
    let command = service.lines().find_map(|line| line.strip_prefix("ExecStart=")).expect("one");
    let arguments: Vec<&str> = command.split(' ').skip(1).chain(["--help"]).collect();
    let output = assay(&arguments);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let flags = arguments.iter().filter(|word| word.starts_with("--"));
    for flag in flags {
        assert!(stdout(&output).contains(flag), "{flag} is no flag of the node");
    }
    let toolchain = read("rust-toolchain.toml");
    let version = toolchain.split('"').nth(1).expect("a channel");
    let container = read("contrib/Containerfile");
    assert!(container.contains(&format!("library/rust:{version}-")), "{version}: {container}");
    assert!(container.contains(&format!("RUSTUP_TOOLCHAIN={version}")), "{version}: {container}");
}

#[test]
fn logs_are_read() {
    let dir = tempfile::tempdir().expect("a folder");
    let file = |name: &str| dir.path().join(name).display().to_string();
    let (log, svg, html) = (file("debug.log"), file("curve.svg"), file("page.html"));
    let tip = |second: u32, height: u32| {
        format!(
            "2025-07-16T04:50:{second:02}Z UpdateTip: new best={height:064x} height={height} version=0x20000000 \
             log2_work=95.5 tx={} date='2025-03-29T17:29:01Z' progress=0.9 cache=1.0MiB(9txo)\n",
            2 * height
        )
    };
    let text = tip(10, 1) + &tip(20, 2) + &tip(30, 3).replace("height=3", "height=x");
    std::fs::write(&log, &text).expect("a file");
    let output = assay(&["logs", &log, "--csv", "--plot", &svg]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let csv = stdout(&output);
    assert_eq!(csv.lines().count(), 3, "{csv}");
    let row =
        format!("{log},2,1,\"Bitcoin Core 0.17 and later, Knots, BCHN\",per block,2,10.000000,");
    assert!(csv.lines().nth(2).is_some_and(|line| line.starts_with(&row)), "{csv}");
    let columns: Vec<usize> =
        csv.lines().map(|line| line.replace("later, Knots, BCHN", "").split(',').count()).collect();
    assert!(columns.iter().all(|count| *count == columns[0]), "{csv}");
    assert!(
        stderr(&output).contains(&format!("{log}:3: 1 line: UpdateTip: height is missing")),
        "{}",
        stderr(&output)
    );
    assert!(std::fs::read_to_string(&svg).is_ok_and(|svg| svg.ends_with("</svg>\n")));

    let output = assay(&["logs", &log, "--json", "--plot", &html]);
    let json = json(&output);
    assert_eq!(json["rows"][1]["txs_total"], 4, "{json}");
    assert_eq!((&json["files"][0]["faults"], &json["schema"]), (&1.into(), &2.into()), "{json}");
    let fault = &json["files"][0]["faults_by_reason"][0];
    assert_eq!((&fault["lines"], &fault["first_line"]), (&1.into(), &3.into()), "{json}");
    assert!(fault["example"].as_str().is_some_and(|line| line.contains("height=x")), "{json}");
    assert_eq!(json["read"]["bytes"], text.len(), "{json}");
    assert!(
        std::fs::read_to_string(&html)
            .is_ok_and(|html| html.contains("height against running time"))
    );

    let output = assay(&["logs", &log]);
    assert!(stdout(&output).contains("per block"), "{}", stdout(&output));
    std::fs::write(&log, "nothing\n").expect("a file");
    for form in [&[][..], &["--csv"], &["--json"]] {
        let arguments = [&["logs", log.as_str()], form].concat();
        rejects(&arguments, &format!("{log}: not one line recognised (1 lines)"));
        rejects(&arguments, "recognised are the logs of Bitcoin Core 0.7 and later");
    }
    std::fs::write(&log, "2025-07-16T04:50:00Z Bitcoin Core version v29.0.0 (release build)\n")
        .expect("a file");
    assert_eq!(assay(&["logs", &log]).status.code(), Some(1), "a start and no progress");
    rejects(&["logs", &file("absent.log")], "absent.log");
    rejects(&["logs", &log, "--plot", "curve.png"], ".svg or .html");
    rejects(&["logs"], "FILE");
}
