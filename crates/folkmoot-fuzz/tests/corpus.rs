//! What fuzzing has found worth keeping, tried again with every test run.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use folkmoot_fuzz::{TARGETS, Target};

/// How long one input may take where nothing is optimised and other tests run beside it; the fuzzer
/// itself is stricter.
const PATIENCE: Duration = Duration::from_secs(10);

fn fuzz() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz")
}

/// The names in a folder, without endings.
fn names(folder: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(folder).unwrap_or_else(|why| panic!("{}: {why}", folder.display()));
    let stem = |path: PathBuf| path.file_stem().map(|it| it.to_string_lossy().into_owned());
    entries.filter_map(|entry| stem(entry.expect("a folder can be listed").path())).collect()
}

#[test]
fn every_target_has_a_program_and_a_corpus() {
    let targets: BTreeSet<String> = TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(names(&fuzz().join("fuzz_targets")), targets);
    assert_eq!(names(&fuzz().join("corpus")), targets);
}

#[test]
fn every_input_of_the_corpus_is_survived_in_time() {
    for (name, target) in TARGETS {
        let folder = fuzz().join("corpus").join(name);
        let inputs = names(&folder);
        assert!(!inputs.is_empty(), "{name} has no inputs");
        for input in inputs {
            let bytes = fs::read(folder.join(&input)).expect("a corpus can be read");
            survive(*target, &bytes, &format!("{name}/{input}"));
        }
    }
}

fn survive(target: Target, bytes: &[u8], input: &str) {
    let start = Instant::now();
    let survived = std::panic::catch_unwind(|| target(bytes));
    assert!(survived.is_ok(), "{input} is not survived");
    assert!(start.elapsed() < PATIENCE, "{input} took {:?}", start.elapsed());
}
