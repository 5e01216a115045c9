//! Who does which task (strategies.md §5.3).

use std::collections::{BTreeMap, BTreeSet};

use unicode_normalization::UnicodeNormalization;

use super::RoutedBy;
use crate::{
    team::{Agent, AgentId},
    text::{is_cjk, is_word_letter},
};

/// Who of `workers` does a piece of work that names nobody, and by which rule. Panics without workers:
/// specs are checked.
pub fn route(description: &str, workers: &[&Agent]) -> (AgentId, RoutedBy) {
    let (worker, rule) = Router::new(workers).choose(description, &[]);
    (workers[worker].id.clone(), rule)
}

/// Chooses workers, by their places, for one task after the other.
pub(super) struct Router {
    names: BTreeMap<String, usize>,
    ids: BTreeMap<String, usize>,
    /// Who has which capability.
    holders: BTreeMap<String, Holders>,
    /// The capabilities whose words are looked for in descriptions, by their first word.
    phrases: BTreeMap<String, Vec<Phrase>>,
    /// The ones that are looked for as they stand.
    substrings: Vec<(String, Holders)>,
    /// How many tasks each worker has.
    load: Vec<usize>,
}

/// The workers that have a capability.
type Holders = BTreeSet<usize>;

/// The words of a capability, and who has it.
struct Phrase {
    words: Vec<String>,
    holders: Holders,
}

impl Router {
    pub(super) fn new(workers: &[&Agent]) -> Router {
        assert!(!workers.is_empty(), "a checked spec has at least one worker");
        let places = |name: fn(&Agent) -> &str| {
            // Backwards, so that the first of equal names stays.
            let named = workers.iter().enumerate().rev();
            named.map(|(place, worker)| (name(worker).nfc().collect(), place)).collect()
        };
        let mut router = Router {
            names: places(|worker| &worker.name),
            ids: places(|worker| worker.id.as_str()),
            holders: BTreeMap::new(),
            phrases: BTreeMap::new(),
            substrings: Vec::new(),
            load: vec![0; workers.len()],
        };
        for (place, worker) in workers.iter().enumerate() {
            for capability in &worker.capabilities {
                router.holders.entry(lowered(capability)).or_default().insert(place);
            }
        }
        router.index_capabilities();
        router
    }

    fn index_capabilities(&mut self) {
        let mut phrases: BTreeMap<Vec<String>, Holders> = BTreeMap::new();
        for (capability, holders) in &self.holders {
            if capability.contains(is_cjk) {
                self.substrings.push((capability.clone(), holders.clone()));
            } else {
                let words = words(capability).into_iter().map(str::to_owned).collect();
                phrases.entry(words).or_default().extend(holders);
            }
        }
        for (words, holders) in phrases {
            if let Some(first) = words.first().cloned() {
                self.phrases.entry(first).or_default().push(Phrase { words, holders });
            }
        }
    }

    /// The worker with this name, else id.
    pub(super) fn named(&self, name: &str) -> Option<usize> {
        let name: String = name.nfc().collect();
        self.names.get(&name).or_else(|| self.ids.get(&name)).copied()
    }

    /// Whether some worker has `capability`.
    pub(super) fn is_capability(&self, capability: &str) -> bool {
        self.holders.contains_key(&lowered(capability))
    }

    /// Counts a task of `worker`.
    pub(super) fn assign(&mut self, worker: usize) {
        self.load[worker] += 1;
    }

    /// The worker for a task that names none, and the rule that settled it.
    pub(super) fn choose(&self, description: &str, required: &[String]) -> (usize, RoutedBy) {
        let required: BTreeSet<String> = required.iter().map(|tag| lowered(tag)).collect();
        let required: Vec<&Holders> =
            required.iter().filter_map(|tag| self.holders.get(tag)).collect();
        let everybody: Vec<usize> = (0..self.load.len()).collect();
        let able = best(everybody, &self.counts(&required));
        if let ([worker], false) = (&*able, required.is_empty()) {
            return (*worker, RoutedBy::Capability);
        }
        let scores = self.counts(&self.found(description));
        let apt = best(able, &scores);
        match *apt {
            [worker] if scores[worker] > 0 => (worker, RoutedBy::Description),
            _ => {
                let least = apt.into_iter().min_by_key(|&worker| self.load[worker]);
                (least.expect("the best of some are some"), RoutedBy::Load)
            }
        }
    }

    /// In how many of `sets` each worker is.
    fn counts(&self, sets: &[&Holders]) -> Vec<usize> {
        let mut counts = vec![0; self.load.len()];
        for &worker in sets.iter().copied().flatten() {
            counts[worker] += 1;
        }
        counts
    }

    /// Who has the capabilities that are found in `description`, one set for each.
    fn found(&self, description: &str) -> Vec<&Holders> {
        let text = lowered(description);
        let words = words(&text);
        let mut phrases: BTreeMap<&[String], &Holders> = BTreeMap::new();
        for (place, word) in words.iter().enumerate() {
            for phrase in self.phrases.get(*word).into_iter().flatten() {
                if phrase.begins(&words[place..]) {
                    phrases.insert(&phrase.words, &phrase.holders);
                }
            }
        }
        let substrings = self.substrings.iter().filter(|(tag, _)| text.contains(&**tag));
        phrases.into_values().chain(substrings.map(|(_, holders)| holders)).collect()
    }
}

impl Phrase {
    /// Whether `words` begin with it.
    fn begins(&self, words: &[&str]) -> bool {
        words.get(..self.words.len()).is_some_and(|words| *words == *self.words)
    }
}

/// Those of `candidates` whose score is highest.
fn best(mut candidates: Vec<usize>, scores: &[usize]) -> Vec<usize> {
    let most = candidates.iter().map(|&worker| scores[worker]).max();
    candidates.retain(|&worker| Some(scores[worker]) == most);
    candidates
}

/// The form in which capabilities and descriptions are compared.
fn lowered(text: &str) -> String {
    text.trim().to_lowercase().nfc().collect()
}

/// The words of a text: runs of letters and digits.
fn words(text: &str) -> Vec<&str> {
    text.split(|c| !is_word_letter(c)).filter(|word| !word.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::{super::tests::worker, *};

    #[track_caller]
    fn goes_to(task: (&str, &[&str]), workers: &[(&str, &str)], wanted: (&str, RoutedBy)) {
        let workers: Vec<Agent> = workers.iter().map(|(name, tags)| worker(name, tags)).collect();
        let required: Vec<String> = task.1.iter().map(|&tag| tag.to_owned()).collect();
        let (place, rule) =
            Router::new(&workers.iter().collect::<Vec<_>>()).choose(task.0, &required);
        assert_eq!((&*workers[place].name, rule), wanted);
    }

    #[test]
    fn a_worker_with_all_required_capabilities_is_taken() {
        let team = [("a", "rust"), ("b", "Rust,SQL"), ("c", "sql,docs")];
        goes_to(("x", &["SQL", "rust"]), &team, ("b", RoutedBy::Capability));
        goes_to(("x", &["sql", "rust", "quantum"]), &team, ("b", RoutedBy::Capability));
    }

    #[test]
    fn if_nobody_has_all_those_with_most_are_left() {
        let team = [("a", "rust"), ("b", "rust,sql"), ("c", "sql,docs")];
        goes_to(("x", &["rust", "sql", "docs"]), &team, ("b", RoutedBy::Load));
        goes_to(("docs", &["rust", "sql", "docs"]), &team, ("c", RoutedBy::Description));
        goes_to(("docs", &["rust"]), &team, ("a", RoutedBy::Load));
        goes_to(("docs", &["quantum"]), &team, ("c", RoutedBy::Description));
    }

    #[test]
    fn most_distinct_tags_in_the_description_win() {
        let team = [("a", "unit tests,art"), ("b", "server,rust,Rust"), ("c", "数据,C++")];
        for (description, wanted) in [
            ("Write UNIT-tests for the server of unit_tests", ("a", RoutedBy::Load)),
            ("unit tests of art in the server", ("a", RoutedBy::Description)),
            ("Start the SERVER", ("b", RoutedBy::Description)),
            ("rust, rust and rust; unit tests", ("a", RoutedBy::Load)),
            ("收集数据并分析", ("c", RoutedBy::Description)),
            ("用rust写", ("b", RoutedBy::Description)),
            ("unit and tests", ("a", RoutedBy::Load)),
            ("untrusty servers", ("a", RoutedBy::Load)),
            ("", ("a", RoutedBy::Load)),
        ] {
            goes_to((description, &[]), &team, wanted);
        }
    }

    #[test]
    fn ties_go_to_the_least_loaded_and_then_in_order() {
        let workers = [worker("a", "x"), worker("b", "x"), worker("c", "y")];
        let mut router = Router::new(&workers.iter().collect::<Vec<_>>());
        let mut chosen = Vec::new();
        for description in ["x", "x", "none", "none", "x"] {
            let (place, rule) = router.choose(description, &[]);
            assert_eq!(rule, RoutedBy::Load);
            router.assign(place);
            chosen.push(place);
        }
        assert_eq!(chosen, [0, 1, 2, 0, 1]);
    }

    #[test]
    fn a_worker_is_named_by_its_name_else_its_id() {
        let workers =
            [worker("Code Reviewer", ""), worker("code-reviewer-2", ""), worker("Zoe\u{308}", "")];
        let router = Router::new(&workers.iter().collect::<Vec<_>>());
        assert_eq!(router.named("Code Reviewer"), Some(0));
        assert_eq!(router.named("code-reviewer"), Some(0));
        assert_eq!(router.named("Zo\u{EB}"), Some(2));
        assert_eq!(router.named("CODE REVIEWER"), None);
    }

    #[test]
    fn a_whole_task_is_routed_by_its_text() {
        let workers = [worker("a", ""), worker("b", "parsers")];
        let workers: Vec<&Agent> = workers.iter().collect();
        let b = AgentId("b".into());
        assert_eq!(route("Compare parsers", &workers), (b, RoutedBy::Description));
        assert_eq!(route("Compare", &workers), (AgentId("a".into()), RoutedBy::Load));
    }
}
