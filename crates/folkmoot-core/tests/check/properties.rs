//! Whatever a file holds, it is read to the end or refused, and every finding points into it.

use folkmoot_core::{
    check::Source,
    team::{Agent, Target},
};
use proptest::prelude::*;

use crate::Case;

const TEAM: &str = "\
name: team
agents:
  - &a { name: a, description: \"x: y\", script: { replies: [x, { error: no, kind: auth }, { delay_ms: 3, reply: { json: { k: [1] } } }] } }
  - name: b
    demo: true
    env: { A: \"${HOST:-d}\" }
    prompt: |
      Some text
        with lines
  - { <<: *a, name: é }
collaboration: { strategy: debate, rounds: 2, judge: b, timeout: 30m }
limits: { calls: 30, time: none }
";

fn survives(bytes: &[u8]) {
    let checked = Case::of(Source::File(bytes)).check();
    for told in &checked.diagnostics {
        let spans = told.at.into_iter().chain(told.also.iter().map(|(span, _)| *span));
        for span in spans {
            assert!(
                checked.text.get(span.start..span.end).is_some(),
                "{told:?} in {:?}",
                checked.text
            );
        }
    }
}

/// What files are made of.
fn piece() -> impl Strategy<Value = String> {
    let pieces: Vec<&str> = TEAM.split_inclusive([' ', '\n', '[', '{', ',', ':']).collect();
    prop_oneof![
        4 => prop::sample::select(pieces).prop_map(str::to_owned),
        1 => "[\\-\\[\\]{}:,&*!|>'\"%@`#?~\\t\\r\\n ]{1,3}",
        1 => any::<char>().prop_map(String::from),
        1 => "-?[0-9]{1,25}(\\.[0-9]{1,3})?(e[0-9]{1,4})?",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn random_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        survives(&bytes);
    }

    #[test]
    fn random_pieces_of_files_are_survived(pieces in prop::collection::vec(piece(), 0..60)) {
        survives(pieces.concat().as_bytes());
    }

    #[test]
    fn a_team_file_with_a_part_replaced_is_survived(
        at in 0..TEAM.len(),
        length in 0..40_usize,
        piece in prop::collection::vec(piece(), 0..4),
    ) {
        let mut bytes = TEAM.as_bytes().to_vec();
        let end = (at + length).min(bytes.len());
        bytes.splice(at..end, piece.concat().into_bytes());
        survives(&bytes);
    }

    #[test]
    fn a_cut_off_team_file_is_survived(end in 0..TEAM.len()) {
        survives(&TEAM.as_bytes()[..end]);
    }
}

#[test]
fn the_team_file_that_is_mutated_is_sound() {
    assert_eq!(Case::new(TEAM).told(), "");
}

/// The tools of agent files, and what they are called here.
const TOOLS: [(&str, &str); 8] = [
    ("Read", "file.read"),
    ("Glob", "file.list"),
    ("Grep", "search"),
    ("Write", "file.write"),
    ("Edit", "file.write"),
    ("Bash", "shell"),
    ("WebFetch", "fetch"),
    ("Telepathy", "no.tool"),
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// An agent that is imported may do no more than its file lists, and nothing of what that denies.
    #[test]
    fn an_import_widens_no_grant(
        listed in prop::option::of(prop::collection::vec(0..TOOLS.len(), 0..5)),
        denied in prop::collection::vec(0..TOOLS.len(), 0..4),
        is_narrow: bool,
    ) {
        let names = |tools: &[usize]| {
            tools.iter().map(|at| TOOLS[*at].0).collect::<Vec<_>>().join(", ")
        };
        let tools = listed.as_ref().map(|it| format!("tools: [{}]\n", names(it)));
        let part = if is_narrow && !denied.is_empty() { "(rm:*)" } else { "" };
        let front = format!(
            "---\nname: a\n{}disallowedTools: \"{}{part}\"\n---\nWork.\n",
            tools.unwrap_or_default(),
            names(&denied)
        );
        let team = "agents: [{ file: agent.md, demo: true }]\n";
        let spec = Case { imported: Some(&front), ..Case::new(team) }.spec();
        let agent = &spec.team.agents[0];
        let may = |tool: usize, name: &str| {
            let grants = vec![TOOLS[tool].1.into()];
            Agent { grants, ..Agent::new("b", Target::Demo) }.is_granted(name)
        };
        for name in ["file.read", "file.list", "file.write", "search", "shell", "fetch"] {
            let is_listed = listed.as_ref().is_none_or(|it| it.iter().any(|at| may(*at, name)));
            let is_denied = denied.iter().any(|at| may(*at, name));
            prop_assert!(
                !agent.is_granted(name) || is_listed && !is_denied,
                "{name} of {front}: {:?}",
                agent.grants
            );
        }
    }
}
