//! A model behind an API hands out work with the tools of a lead (graph.md §14).

use folkmoot_stub::{Completion, Received, Reply, Stub, Wire};
use serde_json::{Value, json};

use crate::bench::Bench;

const TEAM: &str = "
prompt: You lead.
model: PROVIDER/lead
agents: [{ name: coder, script: { replies: [It works.] } }]
COLLABORATION
";

const ROUTED: &str = "collaboration: { routing: lead, topology: pipeline, agents: [coder] }";

/// Providers with the variables of their addresses and keys.
pub(crate) const PROTOCOLS: [(&str, [&str; 2], Wire); 3] = [
    ("openai", ["OPENAI_BASE_URL", "OPENAI_API_KEY"], Wire::Chat),
    ("anthropic", ["ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY"], Wire::Messages),
    ("gemini", ["GEMINI_BASE_URL", "GEMINI_API_KEY"], Wire::Gemini),
];

/// The names of the tools that a request offers.
pub(crate) fn offered(wire: Wire, request: &Received) -> Vec<Value> {
    let (tools, name) = match wire {
        Wire::Chat => (&request.body["tools"], "/function/name"),
        Wire::Messages => (&request.body["tools"], "/name"),
        Wire::Gemini => (&request.body["tools"][0]["functionDeclarations"], "/name"),
    };
    let tools = tools.as_array().expect("some are offered").iter();
    tools.map(|tool| tool.pointer(name).cloned().unwrap_or_default()).collect()
}

pub(crate) fn wants(wire: Wire, tool: &str, arguments: Value) -> Reply {
    let finish = match wire {
        Wire::Chat => "tool_calls",
        Wire::Messages => "tool_use",
        Wire::Gemini => "STOP",
    };
    Reply::stream(&Completion {
        tool_calls: vec![(format!("call-{tool}"), tool.to_owned(), arguments)],
        finish: finish.to_owned(),
        ..Completion::text([]).over(wire)
    })
}

#[test]
fn a_model_leads_with_its_tools_whatever_its_protocol() {
    for (provider, [address, key], wire) in PROTOCOLS {
        for collaboration in [ROUTED, ""] {
            let stub = Stub::start([
                wants(wire, "dispatch", json!({ "agent": "coder", "prompt": "Write it." })),
                wants(wire, "finish", json!({ "answer": "It is done." })),
            ]);
            let team = TEAM.replace("PROVIDER", provider).replace("COLLABORATION", collaboration);
            let bench = Bench::with_team(&team).with(address, stub.base_url()).with(key, "sk-1");
            let called = bench.call(["run", "team.yaml", "Build it", "--json"]);
            let result = called.must_be(0).json();
            assert_eq!(result["final"], "It is done.", "{provider} {result}");
            let requests = stub.seen().requests;
            for request in &requests {
                let tools = ["dispatch", "dispatch_checkpoint", "task_retry", "finish"];
                assert_eq!(offered(wire, request), tools, "{provider}");
            }
            let told = requests[1].body.to_string();
            assert!(told.contains("It works."), "the coder's reply comes back: {told}");
        }
    }
}

#[test]
fn nobody_but_a_lead_that_hands_out_work_is_offered_tools() {
    let stub = Stub::start([Reply::text("It works."), Reply::text("It is done.")]);
    let team = "prompt: You lead.\nmodel: openai/m\nagents: [{ name: coder }]\n\
                collaboration: { topology: pipeline, agents: [coder] }\n";
    let bench = Bench::with_models(team, &stub);
    bench.call(["run", "team.yaml", "Build it", "--json"]).must_be(0);
    let requests = stub.seen().requests;
    assert_eq!(requests.len(), 2);
    assert!(requests.iter().all(|request| request.body.get("tools").is_none()));
}
