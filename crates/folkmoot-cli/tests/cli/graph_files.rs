//! Whole files of graphs, and parts of files, as people write them: `tests/cases/graphs`.
//!
//! Each is checked as it stands, with the offline demo for a model, and goes as it should once its
//! agents have scripts.

use serde_json::{Value, json};

use crate::{
    bench::{Bench, Called},
    graphs::steps_of,
};

macro_rules! file {
    ($name:literal) => {
        include_str!(concat!("../cases/graphs/", $name, ".yaml"))
    };
}

/// A part of a file under the agents that it names.
fn with_agents(names: &[&str], part: &str) -> String {
    let agents = names.iter().map(|name| format!("  - name: {name}\n"));
    format!("subagents:\n{}{part}", agents.collect::<String>())
}

/// A part of a collaboration, `termination` or `flow`, with the rest of a file around it.
fn with_rest(names: &[&str], rest: &str, part: &str) -> String {
    let part: String = part.lines().flat_map(|line| ["  ", line, "\n"]).collect();
    with_agents(names, &format!("collaboration:\n{rest}{part}"))
}

/// A `termination` of a review loop of five rounds.
fn ended_by(part: &str) -> String {
    let rest = "  topology: review-loop\n  agents: [coder, reviewer]\n  max_iterations: 5\n";
    with_rest(&["coder", "reviewer"], rest, part)
}

/// One of the five conditions of `conditions.yaml`, alone.
fn one_condition(nth: usize) -> String {
    let starts: Vec<usize> = CONDITIONS.match_indices("\n- ").map(|(at, _)| at + 1).collect();
    let starts: Vec<usize> = [0].into_iter().chain(starts).chain([CONDITIONS.len()]).collect();
    let own = &CONDITIONS[starts[nth]..starts[nth + 1]];
    let own: String = own.lines().flat_map(|line| ["    ", line, "\n"]).collect();
    ended_by(&format!("termination:\n  any_of:\n{own}"))
}

const CONDITIONS: &str = file!("conditions");

// ---- what `check` says

fn checked(file: &str) -> Value {
    let bench = Bench::with_team(file);
    bench.write("folkmoot.toml", "default_model = \"demo/any\"\n");
    bench.call(["check", "team.yaml", "--json"]).json()
}

fn messages(report: &Value, kind: &str) -> Vec<String> {
    let found = report[kind].as_array().into_iter().flatten();
    found.map(|it| it["message"].as_str().expect("it has a message").to_owned()).collect()
}

/// Checks that a file is sound, and that there is nothing to say about it but these warnings.
#[track_caller]
fn sound(file: &str, warnings: &[&str]) -> Value {
    let report = checked(file);
    assert_eq!(report["valid"], true, "{report:#}");
    assert_eq!(messages(&report, "warnings"), warnings);
    assert_eq!(messages(&report, "hints"), [""; 0]);
    report
}

#[track_caller]
fn unsound(file: &str, errors: &[&str]) {
    let report = checked(file);
    assert_eq!(report["valid"], false, "{report:#}");
    assert_eq!(messages(&report, "errors"), errors);
}

fn edges(report: &Value) -> Vec<String> {
    let edge = |it: &Value| {
        let exit = if it["exit"] == true { " (X)" } else { "" };
        let label = it["label"].as_str().map(|label| format!(": {label}")).unwrap_or_default();
        let end = |key: &str| it[key].as_str().expect("it has ends").to_owned();
        format!("{} -> {}{label}{exit}", end("from"), end("to"))
    };
    report["graph"]["edges"].as_array().expect("there are edges").iter().map(edge).collect()
}

// ---- how a run goes

/// A file whose agents have scripts: those given, else one of a single reply.
fn scripted(file: &str, scripts: &Value) -> Value {
    let options = serde_saphyr::options! { strict_booleans: true };
    let mut team: Value =
        serde_saphyr::from_str_with_options(file, options).expect("the file is YAML");
    let script = |name: &str, usual: &str| {
        let given = scripts.get(name).cloned();
        json!({ "replies": given.unwrap_or_else(|| json!([usual])) })
    };
    let agents = team["subagents"].as_array_mut().expect("the file has agents");
    for agent in agents.iter_mut() {
        let name = agent["name"].as_str().expect("agents have names").to_owned();
        agent["script"] = script(&name, &format!("from {name}"));
    }
    if scripts.get("judge").is_some() {
        agents.push(json!({ "name": "judge", "script": script("judge", "") }));
    }
    if team.get("prompt").is_some() {
        team["script"] = script("parent", "The closing answer.");
    }
    team
}

fn simulated(team: &Value) -> (Called, Value) {
    let called = Bench::with_team(&team.to_string()).call(["simulate", "team.yaml", "T", "--json"]);
    let result = called.json();
    (called, result)
}

/// Checks who works in which order, and how it ends.
#[track_caller]
fn goes(file: &str, scripts: &Value, order: &str, reason: &str, exit: i32) -> Value {
    let (called, result) = simulated(&scripted(file, scripts));
    let steps = steps_of(&result);
    let agents = steps.iter().map(|step| step["agent"].as_str().expect("a step has an agent"));
    assert_eq!(agents.collect::<Vec<_>>().join(" "), order, "{}", called.shown());
    assert_eq!((&result["reason"], called.exit), (&json!(reason), exit), "{}", called.shown());
    result
}

#[test]
fn a_review_loop_goes_round_until_the_reviewer_is_content_or_for_three_rounds() {
    let file = file!("quick-start");
    let report = sound(file, &[]);
    let wanted = [
        "parent -> coder",
        "coder -> reviewer",
        "reviewer -> coder: loop",
        "reviewer -> parent: exit (X)",
    ];
    assert_eq!(edges(&report), wanted);
    assert_eq!(report["graph"]["max_iterations"], 3);
    let content = json!({ "Reviewer": ["Not yet.\nNEXT: Coder", "Well done.\nNEXT: parent"] });
    let ended = goes(file, &content, "coder reviewer coder reviewer", "completed", 0);
    assert_eq!(ended["final"], "The closing answer.");
    let never = json!({ "Reviewer": ["Not yet.\nNEXT: coder"] });
    let order = "coder reviewer coder reviewer coder reviewer";
    goes(file, &never, order, "max_iterations", 5);
}

#[test]
fn a_pipeline_hands_work_on_from_one_to_the_next() {
    let file = with_agents(&["researcher", "writer", "editor"], file!("pipeline"));
    let wanted = [
        "parent -> researcher",
        "researcher -> writer",
        "writer -> editor",
        "editor -> parent (X)",
    ];
    assert_eq!(edges(&sound(&file, &[])), wanted);
    let ended = goes(&file, &json!({}), "researcher writer editor", "completed", 0);
    assert_eq!(ended["final"], "from editor");
}

#[test]
fn a_review_loop_of_five_rounds_has_no_more_of_them() {
    let file = with_agents(&["writer", "editor"], file!("review-loop"));
    let report = sound(&file, &[]);
    assert_eq!(report["graph"]["loops"], json!([{ "agents": ["writer", "editor"], "cap": 5 }]));
    let never = json!({ "editor": ["NEXT: writer"] });
    let order = ["writer editor"; 5].join(" ");
    goes(&file, &never, &order, "max_iterations", 5);
}

#[test]
fn the_agents_of_a_star_work_side_by_side_and_each_reports() {
    let file = with_agents(&["frontend", "backend", "devops"], file!("star"));
    let report = sound(&file, &[]);
    assert_eq!(report["graph"]["entry"], json!(["frontend", "backend", "devops"]));
    assert_eq!(report["bounds"]["critical_path"], 1);
    let slow = |ms: u64, text: &str| json!([{ "delay_ms": ms, "reply": text }]);
    let scripts = json!({
        "frontend": slow(300, "F"), "backend": slow(100, "B"), "devops": slow(200, "D"),
    });
    let ended = goes(&file, &scripts, "backend devops frontend", "completed", 0);
    assert_eq!(ended["final"], "F\n\nB\n\nD");
    assert_eq!(ended["meta"]["elapsed_seconds"], 0.3);
}

#[test]
fn a_word_of_the_validator_ends_the_loop_before_its_two_rounds_are_over() {
    let file = file!("emperor");
    let report = sound(file, &["contains \"PASS\" is also true of \"NOT PASS\""]);
    assert_eq!(report["graph"]["back_edges"], json!([["validator", "chancellor"]]));
    let once = "chancellor jinyiwei validator";
    let ended = goes(file, &json!({ "validator": ["PASS"] }), once, "result_match", 0);
    let by = json!({ "result_matches": { "agent": "validator", "contains": "PASS" } });
    assert_eq!(ended["graph"]["stopped_by"], by);
    let twice = format!("{once} {once}");
    let later = json!({ "validator": ["Revise.\nNEXT: chancellor", "PASS"] });
    goes(file, &later, &twice, "result_match", 0);
    let never = json!({ "validator": ["Revise.\nNEXT: chancellor"] });
    goes(file, &never, &twice, "max_iterations", 5);
}

#[test]
fn research_runs_side_by_side_and_who_is_in_no_edge_is_an_orphan() {
    let file = file!("research");
    sound(file, &["Orphan agent \"implementer\" is not referenced in any edge"]);
    let order = "domain-researcher user-researcher tech-researcher";
    let (called, result) = simulated(&scripted(file, &json!({})));
    let mut agents: Vec<String> = steps_of(&result)
        .iter()
        .map(|it| it["agent"].as_str().unwrap_or_default().into())
        .collect();
    let mut wanted: Vec<&str> = order.split(' ').collect();
    agents.sort();
    wanted.sort_unstable();
    assert_eq!((agents, called.exit), (wanted.iter().map(ToString::to_string).collect(), 0));
    // The implementer follows in a stage of its own.
    let mut team = scripted(file, &json!({}));
    let first = team["collaboration"].take();
    let mut stages = json!([first, { "topology": "pipeline", "agents": ["implementer"] }]);
    (stages[0]["name"], stages[1]["name"]) = ("research".into(), "build".into());
    team["collaboration"] = json!({ "stages": stages });
    let (_, result) = simulated(&team);
    let report = checked(&team.to_string());
    let bounds = |at: usize| report["stages"][at]["bounds"]["turns"]["max"].as_u64();
    assert_eq!((bounds(0), bounds(1)), (Some(3), Some(1)), "{report:#}");
    let last = steps_of(&result).pop().expect("there are steps");
    assert_eq!((&last["agent"], &last["stage"]), (&json!("implementer"), &json!("build")));
}

#[test]
fn a_document_goes_back_for_revision_and_is_published_at_the_end() {
    let file = file!("documents");
    let report = sound(file, &[]);
    assert_eq!(report["graph"]["decisions"][0]["options"], json!(["finalizer", "drafter"]));
    assert_eq!(report["graph"]["decisions"][0]["default"], "drafter");
    let bounds = &report["bounds"];
    assert_eq!(bounds["turns"], json!({ "min": 3, "max": 7 }));
    assert_eq!(bounds["calls"], json!({ "min": 4, "max": 11 }));
    assert_eq!(bounds["critical_path"], 7);
    let once = json!({
        "reviewer": ["Vague.\nNEXT: needs revision", "Good.\nNEXT: finalizer"],
        "finalizer": ["PUBLISHED"],
    });
    let order = "drafter reviewer drafter reviewer finalizer";
    goes(file, &once, order, "result_match", 0);
    let silent = json!({ "reviewer": ["NEXT: finalizer"], "finalizer": ["Done."] });
    goes(file, &silent, "drafter reviewer finalizer", "completed", 0);
    let never = json!({ "reviewer": ["NEXT: drafter"] });
    let order = ["drafter reviewer"; 3].join(" ");
    goes(file, &never, &order, "max_iterations", 5);
}

#[test]
fn edges_of_ones_own_are_texts_or_maps_and_a_label_chooses() {
    let file = with_agents(&["researcher", "writer", "editor"], file!("custom-flow"));
    let wanted = [
        "parent -> researcher",
        "researcher -> writer: research findings",
        "writer -> editor: draft content",
        "editor -> writer: revision requests",
        "editor -> parent: approved (X)",
    ];
    let report = sound(&file, &[]);
    assert_eq!(edges(&report), wanted);
    assert_eq!(report["graph"]["loops"], json!([{ "agents": ["writer", "editor"], "cap": 2 }]));
    let scripts = json!({ "editor": ["NEXT: revision requests", "NEXT: approved"] });
    goes(&file, &scripts, "researcher writer editor writer editor", "completed", 0);
    let never = json!({ "editor": ["NEXT: writer"] });
    goes(&file, &never, "researcher writer editor writer editor", "max_iterations", 5);
}

#[test]
fn an_edge_beside_a_topology_is_added_or_takes_the_place_of_its_own() {
    let file = with_agents(&["coder", "reviewer"], file!("hybrid"));
    let wanted = [
        "parent -> coder",
        "coder -> reviewer",
        "reviewer -> parent (X)",
        "reviewer -> coder: needs revision",
    ];
    assert_eq!(edges(&sound(&file, &[])), wanted);
    let scripts = json!({ "reviewer": ["NEXT: needs revision", "NEXT: parent"] });
    goes(&file, &scripts, "coder reviewer coder reviewer", "completed", 0);
    let again =
        file.replace("    - \"reviewer", "    - \"coder -> reviewer: draft\"\n    - \"reviewer");
    assert_eq!(edges(&sound(&again, &[]))[1], "coder -> reviewer: draft");
}

#[test]
fn a_judge_ends_the_loop_when_the_criterion_holds() {
    let file = with_agents(&["coder", "reviewer"], file!("judged"));
    let report = sound(&file, &[]);
    let written = json!({ "any_of": [
        { "max_iterations": 5 },
        { "converged": "reviewer confirms code quality is satisfactory" },
    ] });
    assert_eq!(report["termination"], written);
    let scripts = json!({ "reviewer": ["NEXT: coder"], "judge": ["not converged", "converged"] });
    goes(&file, &scripts, "coder reviewer coder reviewer", "converged", 0);
    let never = json!({ "reviewer": ["NEXT: coder"], "judge": ["not converged"] });
    goes(&file, &never, &["coder reviewer"; 5].join(" "), "max_iterations", 5);
    let bench = Bench::with_team(&file);
    let alone = bench.call(["check", "team.yaml", "--json"]).must_be(2).json();
    let wanted = "converged needs a judge: name one or give a model";
    assert_eq!(messages(&alone, "errors"), [wanted]);
}

#[test]
fn each_kind_of_condition_ends_a_loop() {
    let round = "coder reviewer";
    let rounds = |number: usize| [round].repeat(number).join(" ");
    let back = "Not yet.\nNEXT: coder";
    let all: String = CONDITIONS.lines().flat_map(|line| ["    ", line, "\n"]).collect();
    let literal = "contains \"APPROVED\" is also true of \"NOT APPROVED\"";
    sound(&ended_by(&format!("termination:\n  any_of:\n{all}")), &[literal]);
    let never = json!({ "reviewer": [back] });
    goes(&one_condition(0), &never, &rounds(5), "max_iterations", 5);
    // The clock starts with the first reply that sends work back, and cuts nothing off.
    let slow = json!({ "reviewer": [{ "delay_ms": 70_000, "reply": back }] });
    let ended = goes(&one_condition(1), &slow, &rounds(3), "timeout", 5);
    assert_eq!(ended["meta"]["elapsed_seconds"], 210.0);
    let judged = json!({ "reviewer": [back], "judge": ["converged"] });
    goes(&one_condition(2), &judged, &rounds(1), "converged", 0);
    let said = |word: &str| json!({ "reviewer": [back, word] });
    let matching = one_condition(3);
    goes(&matching, &said("APPROVED"), &rounds(2), "result_match", 0);
    for (line, word) in [
        ("regex: \"LGTM|APPROVED\"", "It LGTM"),
        ("score_gte: 8", "Score: 8.5"),
        ("no_changes: true", back),
    ] {
        assert!(matching.contains(&format!("# {line}")), "{matching}");
        let file = matching.replace("contains: \"APPROVED\"", line);
        goes(&file, &said(word), &rounds(2), "result_match", 0);
    }
    goes(&one_condition(4), &never, "coder reviewer coder", "stuck", 5);
    let sooner = one_condition(0).replace("{ max_iterations: 5 }", "{ max_iterations: 2 }");
    let ended = goes(&sooner, &never, &rounds(2), "max_iterations", 5);
    let agents = ["coder", "reviewer"];
    assert_eq!(ended["graph"]["loops"], json!([{ "agents": agents, "rounds": 2, "cap": 2 }]));
}

#[test]
fn conditions_are_joined_by_any_of_and_by_all_of() {
    let back = "Not yet.\nNEXT: coder";
    let round = |number: usize| ["coder reviewer"].repeat(number).join(" ");
    let stuck = ended_by(file!("any-of")).replace("iterations: 5", "iterations: 10");
    sound(&stuck, &[]);
    goes(
        &stuck,
        &json!({ "reviewer": ["1\nNEXT: coder", "2\nNEXT: coder"], "coder": ["x"] }),
        "coder reviewer coder",
        "stuck",
        5,
    );
    let both = ended_by(file!("all-of"));
    sound(&both, &["contains \"APPROVED\" is also true of \"NOT APPROVED\""]);
    let early = json!({ "reviewer": ["APPROVED\nNEXT: coder", "APPROVED\nNEXT: coder"] });
    let ended = goes(&both, &early, &round(2), "result_match", 0);
    assert_eq!(ended["graph"]["also"], json!(["max_iterations"]));
    // Two rounds alone end nothing; the cap does, in the end.
    goes(&both, &json!({ "reviewer": [back] }), &round(5), "max_iterations", 5);
}

#[test]
fn a_name_that_no_agent_has_is_an_error_and_the_slug_of_a_name_is_none() {
    const NO_EXIT: &str = "No exit edge found: graph has no termination path";
    // Both spellings mean the agent; neither of the parts has an exit.
    for file in [file!("unknown-wrong"), file!("unknown-right")] {
        unsound(file, &[NO_EXIT]);
        let whole = format!("{file}    - \"code-reviewer -> parent\"\n");
        sound(&whole, &[]);
    }
    let other = file!("unknown-right").replace("-> code-reviewer", "-> Code-Reviewer");
    let message = "Edge references unknown agent \"Code-Reviewer\" in \"to\" field";
    unsound(
        &format!("{other}    - \"Code-Reviewer -> parent\"\n"),
        &[message, &message.replace("\"to\"", "\"from\"")],
    );
}

#[test]
fn a_flow_without_an_exit_is_an_error() {
    let file = |part| with_rest(&["researcher", "writer"], "", part);
    unsound(&file(file!("exit-wrong")), &["No exit edge found: graph has no termination path"]);
    sound(&file(file!("exit-right")), &[]);
    goes(&file(file!("exit-right")), &json!({}), "researcher writer", "completed", 0);
}

#[test]
fn a_condition_names_an_agent_as_its_file_does() {
    let rest = "  topology: review-loop\n  agents: [reviewer]\n";
    let file = |part: &str| {
        let part = part.split_once("termination").expect("it has one").1;
        with_rest(&["reviewer"], rest, &format!("termination{part}"))
    };
    let needs =
        "result_matches needs at least one of contains, regex, score_gte, no_changes, verdict";
    let unknown = "termination result_matches references unknown agent \"Reviewer\"";
    unsound(&file(file!("condition-wrong")), &[needs, unknown]);
    unsound(&file(file!("condition-right")), &[needs]);
    let whole = |part: &str| file(&format!("{part}        no_changes: true\n"));
    unsound(&whole(file!("condition-wrong")), &[unknown]);
    assert_eq!(checked(&whole(file!("condition-right")))["valid"], true);
    let text = file(file!("condition-right"));
    let (head, _) = text.split_once("    - result").expect("it has a condition");
    let converged = format!("{head}    - converged: \"rewiever\"\n");
    let warning = "termination converged references unknown agent \"rewiever\"";
    assert!(messages(&checked(&converged), "warnings").contains(&warning.to_owned()));
}

#[test]
fn a_lead_decides_what_becomes_of_a_step_that_failed() {
    let file = format!(
        "{}{}  topology: pipeline\n  agents: [researcher, writer]\n",
        file!("failing"),
        with_agents(&["researcher", "writer"], "collaboration:\n")
    );
    sound(&file, &[]);
    let boom = json!({ "error": "boom" });
    let lead = |word: &str| json!({ "researcher": [boom, "Facts."], "parent": [word, "Bye."] });
    let again = goes(&file, &lead("retry"), "researcher researcher writer", "completed", 0);
    assert_eq!(steps_of(&again)[1]["attempt"], 2);
    let skipped = goes(&file, &lead("skip"), "researcher writer", "completed", 0);
    assert_eq!(skipped["graph"]["skipped"][0]["agent"], "researcher");
    assert_eq!(steps_of(&skipped)[0]["response"]["error"], "boom");
    goes(&file, &lead("stop"), "researcher", "error", 1);
}

#[test]
fn a_budget_ends_a_loop_before_its_rounds_are_over() {
    let file = with_agents(&["coder", "reviewer"], file!("budget"));
    let never = json!({ "reviewer": ["NEXT: coder"] });
    goes(&file, &never, &["coder reviewer"; 3].join(" "), "max_iterations", 5);
    let short = format!("{file}limits: {{ calls: 3 }}\n");
    let ended = goes(&short, &never, "coder reviewer coder", "calls", 4);
    assert_eq!(ended["status"], "budget_exhausted");
    assert_eq!(ended["graph"]["unfinished"], json!(["reviewer"]));
}
