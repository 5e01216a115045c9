//! What a call to a later target of a chain is: agents.md §3, rules.md 4.6 and 10.7.

use serde_json::json;

use super::hand::{Hand, panel, says, used};
use crate::{
    call::{Answer, Call, FailureKind, Fault, Outcome, ToolCall},
    event::Event,
    money::{Money, Price},
    render::{self, Message},
    replay::replay,
    spec::Spec,
    team::{Fallback, Model, Target},
    view,
};

/// An agent for `rounds` rounds whose chain is a model of `p` at one price, one of `q` at another.
fn chained(rounds: u32) -> Spec {
    let mut spec = panel(&["a"], rounds, 1000);
    let target = |provider: &str, output| {
        let price = Some(Price::new(1.0, output));
        let max_output_tokens = Some(100);
        Target::Model(Model { max_output_tokens, price, ..Model::new(provider, "m") })
    };
    let a = &mut spec.team.agents[0];
    a.target = target("p", 4.0);
    a.fallbacks = vec![Fallback { number: 2, target: target("q", 8.0) }];
    spec.limits.tokens = Some(100_000);
    spec
}

fn down() -> Outcome {
    Err(Fault::failed(FailureKind::Transport, "503"))
}

fn request(hand: &Hand, key: &str) -> Vec<Message> {
    let call = &hand.call(key).call;
    let Call::Agent { prompt, .. } = call else { panic!("it asks an agent") };
    render::messages(hand.spec, hand.run.known(), &hand.spec.team.asked(call), prompt)
}

#[test]
fn what_is_set_aside_and_what_is_taken_to_be_used_goes_by_the_target_that_is_asked() {
    let spec = chained(1);
    let mut hand = Hand::start(&spec);
    let aside = |hand: &Hand, key| hand.call(key).reserved.expect("tokens are limited");
    let first = aside(&hand, "round-1/a");
    hand.settle("round-1/a", down(), used(0, 0));
    assert_eq!(hand.open(), "round-1/a/target-2");
    let second = aside(&hand, "round-1/a/target-2");
    assert_eq!(first.tokens, second.tokens);
    let dearer = Money(100 * 4_000_000);
    assert_eq!(first.cost.expect("it is known") + dearer, second.cost.expect("it is known"));
    hand.at(1000).tick();
    let [usage] = hand.call("round-1/a/target-2").usages[..] else { panic!("one attempt") };
    assert_eq!(usage.cost, Some(Money(usage.tokens.input * 1_000_000)));
}

#[test]
fn a_later_target_is_asked_the_same_and_the_conversation_goes_on_from_its_answer() {
    let spec = chained(2);
    let mut hand = Hand::start(&spec);
    let first = request(&hand, "round-1/a");
    hand.settle("round-1/a", down(), used(0, 0));
    assert_eq!(request(&hand, "round-1/a/target-2"), first);
    hand.settle("round-1/a/target-2", says("saved"), used(10, 10));
    let second = request(&hand, "round-2/a");
    assert!(second.starts_with(&first));
    assert_eq!(&*second[first.len()].content, "saved");
}

/// Another model counts other tokens, and reads texts in other pieces.
#[test]
fn what_one_target_counted_says_nothing_about_the_request_to_another() {
    let mut spec = chained(3);
    spec.task = "long ".repeat(400).into();
    let mut hand = Hand::start(&spec);
    let input = |hand: &Hand, key| hand.call(key).reserved.expect("it is limited").tokens.input;
    hand.settle("round-1/a", down(), used(0, 0));
    hand.settle("round-1/a/target-2", says("saved"), used(10, 10));
    assert!(input(&hand, "round-2/a") > 2000);
    hand.settle("round-2/a", says("back"), used(10, 10));
    assert!(input(&hand, "round-3/a") < 1000);
}

#[test]
fn what_a_provider_wants_back_returns_to_it_and_to_no_other() {
    let mut spec = chained(1);
    spec.team.agents[0].grants = vec!["file".into()];
    let mut hand = Hand::start(&spec);
    let tool = ToolCall { id: "1".into(), name: "file.read".into(), arguments: json!({}) };
    let asks = |fields| {
        let (tool_calls, provider) = (vec![tool.clone()], Some(json!(fields)));
        Ok(Answer { tool_calls, provider, ..Answer::default() }.into())
    };
    hand.settle("round-1/a/model-1", asks("of p"), used(10, 10));
    hand.settle("round-1/a/tool-1", says("text"), used(0, 0));
    let fields = |hand: &Hand, key| {
        request(hand, key).into_iter().filter_map(|it| it.provider).collect::<Vec<_>>()
    };
    assert_eq!(fields(&hand, "round-1/a/model-2"), [json!("of p")]);
    hand.settle("round-1/a/model-2", down(), used(0, 0));
    assert_eq!(fields(&hand, "round-1/a/model-2/target-2"), [json!(null); 0]);
    hand.settle("round-1/a/model-2/target-2", asks("of q"), used(10, 10));
    hand.settle("round-1/a/tool-2", says("text"), used(0, 0));
    assert_eq!(fields(&hand, "round-1/a/model-3"), [json!("of q")]);
    let shown = &view::calls(&spec, &hand.run)[4];
    assert_eq!(shown.key.as_str(), "round-1/a/tool-2");
}

#[test]
fn an_amended_failure_needs_no_other_target() {
    let spec = chained(1);
    let mut hand = Hand::start(&spec);
    hand.settle("round-1/a", down(), used(0, 0));
    let key = hand.call("round-1/a").call.clone();
    assert!(matches!(key, Call::Agent { target: 1, .. }));
    hand.feed(Event::Amended { key: crate::key::Key::parse("round-1/a"), text: "mine".into() });
    assert_eq!(hand.fault("round-1/a/target-2"), "withdrawn");
    assert_eq!(hand.reason(), "answered");
    assert!(replay(&hand.log).is_ok());
}
