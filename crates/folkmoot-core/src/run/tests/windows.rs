//! How requests fit the windows of models: strategies.md §1.4, rules.md 4.2 and 4.3.

use super::hand::{Hand, model, panel, says, used};
use crate::{
    call::Call,
    key::Key,
    render::{self, Message, Role},
    spec::Spec,
    team::Target,
};

/// Three agents that hear each other for three rounds, in a window of so many tokens.
fn panel_within(context_window: Option<u64>) -> Spec {
    let mut spec = panel(&["a", "b", "c"], 3, 100);
    spec.task = "Which words are worth their room? ".repeat(40).into();
    spec.limits.tokens = Some(1_000_000);
    for agent in &mut spec.team.agents {
        *agent = model(&agent.name, 500);
        let Target::Model(model) = &mut agent.target else { unreachable!("it is a model") };
        model.context_window = context_window;
    }
    spec
}

/// Answers a round with much text, and usage that is little.
fn answer_at_length(hand: &mut Hand, round: u32) {
    for name in ["a", "b", "c"] {
        let text = format!("{name} begins. {} {name} ends.", "And so on. ".repeat(900));
        hand.settle(&format!("round-{round}/{name}"), says(&text), used(10, 10));
    }
}

fn request(hand: &Hand, key: &str) -> Vec<Message> {
    let Call::Agent { agent, prompt, .. } = &hand.call(key).call else {
        panic!("it asks an agent")
    };
    render::messages(hand.spec, hand.run.known(), hand.spec.team.agent(agent), prompt)
}

fn said(messages: &[Message], role: Role) -> String {
    let of_role = messages.iter().filter(|message| message.role == role);
    of_role.map(|message| &*message.content).collect::<Vec<_>>().join("\n")
}

#[test]
fn what_others_said_is_shortened_to_the_window_and_nothing_else_is() {
    let spec = panel_within(Some(8_000));
    let mut hand = Hand::start(&spec);
    answer_at_length(&mut hand, 1);
    let messages = request(&hand, "round-2/a");
    let user = said(&messages, Role::User);
    assert!(user.starts_with(&*spec.task));
    for other in ["b", "c"] {
        let frame = format!("<reply from=\"{other}\" key=\"round-1/{other}\">\n{other} begins. ");
        let (_, quote) = user.split_once(&frame).expect("it is quoted with its key");
        let (quote, _) = quote.split_once("\n</reply>").expect("the frame is closed");
        assert!(quote.contains(" characters left out …] "), "{quote}");
        assert!(quote.ends_with(&format!(" {other} ends.")), "{quote}");
    }
    let own = said(&messages, Role::Assistant);
    assert_eq!(own, &**hand.run.known().text(&Key::parse("round-1/a")).expect("it answered"));
}

#[test]
fn what_fits_the_window_is_sent_as_it_would_be_without_one() {
    let requests = [None, Some(100_000)].map(|window| {
        let spec = panel_within(window);
        let mut hand = Hand::start(&spec);
        answer_at_length(&mut hand, 1);
        answer_at_length(&mut hand, 2);
        ["round-2/b", "round-3/c"].map(|key| request(&hand, key))
    });
    assert_eq!(requests[0], requests[1]);
}

/// What the provider counted is another text's size.
#[test]
fn only_a_request_that_is_whole_counts_on_what_the_provider_counted_before() {
    for (window, is_whole) in [(100_000, true), (8_000, false)] {
        let spec = panel_within(Some(window));
        let mut hand = Hand::start(&spec);
        answer_at_length(&mut hand, 1);
        let aside = hand.call("round-2/a").reserved.expect("tokens are limited").tokens.input;
        let bytes: usize = request(&hand, "round-2/a").iter().map(|it| it.content.len()).sum();
        assert_eq!(aside < bytes as u64, is_whole, "{aside} {bytes}");
    }
}

#[test]
fn while_quotes_are_cut_alike_a_request_begins_with_the_one_it_continues() {
    let spec = panel_within(Some(10_000));
    let mut hand = Hand::start(&spec);
    answer_at_length(&mut hand, 1);
    for name in ["a", "b", "c"] {
        hand.answer(&format!("round-2/{name}"), "Agreed.");
    }
    let [second, third] = ["round-2/a", "round-3/a"].map(|key| request(&hand, key));
    assert!(said(&second, Role::User).contains("characters left out"));
    assert!(third.starts_with(&second));
    assert!(third.len() > second.len());
}

#[test]
fn a_window_in_which_not_even_the_task_fits_still_leaves_the_ends_of_quotes() {
    let spec = panel_within(Some(0));
    let mut hand = Hand::start(&spec);
    answer_at_length(&mut hand, 1);
    let user = said(&request(&hand, "round-2/a"), Role::User);
    assert!(user.starts_with(&*spec.task));
    assert!(user.contains("\nb begins. ") && user.contains(" b ends.\n"));
}
