//! Whatever a file holds, it is read to the end or refused, and every finding points into it.

use folkmoot_core::check::Source;
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
