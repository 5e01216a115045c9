//! The code cites the reference in `docs/spec` by section or rule number. Every citation there is, in
//! comments, in the reference itself and in the conformance cases, must lead somewhere.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt, fs,
    path::{Path, PathBuf},
};

const CASES: &str = include_str!("cases/strategies.yaml");

#[test]
fn every_citation_in_the_code_leads_to_a_rule() {
    let reference = Reference::read();
    let (mut cited, mut lost) = (0, Vec::new());
    for file in files(&root().join("crates"), "rs") {
        let found = citations(&comments(&text_of(&file)), None);
        cited += found.iter().filter(|it| it.number.is_some()).count();
        lost.extend(reference.lost(&found, &file));
    }
    assert!(lost.is_empty(), "citations lead nowhere:\n{}", lost.join("\n"));
    assert!(cited > 80, "only {cited} citations were found");
}

#[test]
fn the_pages_of_the_reference_cite_each_other_rightly() {
    let reference = Reference::read();
    for file in files(&root().join("docs/spec"), "md") {
        let found = citations(&text_of(&file), Some(&stem(&file)));
        assert_eq!(reference.lost(&found, &file), Vec::<String>::new());
    }
}

#[test]
fn every_case_names_a_section_of_the_strategies() {
    let reference = Reference::read();
    let sections: BTreeSet<&str> = CASES.lines().filter_map(section_of_case).collect();
    assert!(sections.len() > 10, "only {sections:?} were found");
    for section in sections {
        assert!(reference.has("strategies", section), "there is no §{section}");
    }
}

fn section_of_case(line: &str) -> Option<&str> {
    line.trim().strip_prefix("spec: '")?.strip_suffix('\'')
}

#[test]
fn citations_are_found_in_every_form() {
    for (text, wanted) in [
        ("The rule (rules.md 1.3).", "rules 1.3"),
        ("(strategies.md §5.1.3). Then 4", "strategies 5.1.3"),
        ("agents.md §3, rules.md 10.8, 10.9", "agents 3; rules 10.8; rules 10.9"),
        ("strategies.md §§1.1, 1.2 and 3", "strategies 1.1; strategies 1.2; strategies 3"),
        ("strategies.md §5.3, §6.1; 7", "strategies 5.3; strategies 6.1"),
        ("rules.md 4 and 6.", "rules 4; rules 6"),
        ("rules.md 4.6 to 4.12.", "rules 4.6; rules 4.12"),
        ("[rules.md](rules.md) 1.3), 2", "rules 1.3"),
        ("interface.md, script agents, and 3 more", "interface"),
        ("§1.5 and `§8` of another text, README.md 7", ""),
    ] {
        assert_eq!(shown(&citations(text, None)), wanted, "{text}");
    }
    assert_eq!(shown(&citations("see §1.5, `§8` and 9", Some("own"))), "own 1.5; own 8");
}

/// Citations in a row; of a page with numbers the numbers alone.
fn shown(citations: &[Citation]) -> String {
    let has_number = |page: &str| citations.iter().any(|it| it.page == page && it.number.is_some());
    let shown = citations.iter().filter(|it| it.number.is_some() || !has_number(&it.page));
    shown.map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

#[test]
fn headings_rules_and_items_can_be_cited_and_nothing_else() {
    let page =
        "# Page 7\n## 1. One\n### 1.2 Two\n1. first\n2. second\n- **3.4** a rule\n- 9.9 none";
    let numbers: Vec<String> = numbers(page).into_iter().collect();
    assert_eq!(numbers, ["1", "1.2", "1.2.1", "1.2.2", "3.4"]);
}

/// What can be cited: the numbers of each page.
struct Reference(BTreeMap<String, BTreeSet<String>>);

impl Reference {
    fn read() -> Reference {
        let pages = files(&root().join("docs/spec"), "md");
        Reference(pages.iter().map(|file| (stem(file), numbers(&text_of(file)))).collect())
    }

    fn has(&self, page: &str, number: &str) -> bool {
        self.0.get(page).is_some_and(|numbers| numbers.contains(number))
    }

    /// The citations of `file` that lead nowhere.
    fn lost(&self, found: &[Citation], file: &Path) -> Vec<String> {
        let lost = found.iter().filter(|it| self.lacks(it));
        lost.map(|it| format!("{}: {it}", file.display())).collect()
    }

    fn lacks(&self, Citation { page, number }: &Citation) -> bool {
        match number {
            Some(number) => !self.has(page, number),
            None => !self.0.contains_key(page),
        }
    }
}

/// The numbers of headings and of rules; items of a list count below the heading they stand under.
fn numbers(page: &str) -> BTreeSet<String> {
    let mut numbers = BTreeSet::new();
    let mut heading = String::new();
    for line in page.lines() {
        if let Some(number) = line.strip_prefix('#').and_then(numbered) {
            heading.clone_from(&number);
            numbers.insert(number);
        } else if let Some(rule) = line.strip_prefix("- **") {
            numbers.extend(rule.split_once("**").map(|(number, _)| number.to_owned()));
        } else if let Some((item, _)) = line.split_once(". ").filter(|(item, _)| is_number(item)) {
            numbers.insert(format!("{heading}.{item}"));
        }
    }
    numbers.retain(|number| is_number(number));
    numbers
}

/// The number at the start of a heading.
fn numbered(heading: &str) -> Option<String> {
    let first = heading.trim_start_matches('#').split_whitespace().next()?;
    let number = first.trim_end_matches('.');
    is_number(number).then(|| number.to_owned())
}

fn is_number(text: &str) -> bool {
    text.split('.').all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()))
}

/// A page that is named, and a number that is named with it.
struct Citation {
    page: String,
    number: Option<String>,
}

impl fmt::Display for Citation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.number {
            Some(number) => write!(f, "{} {number}", self.page),
            None => f.write_str(&self.page),
        }
    }
}

/// The citations in `text`: a page with numbers behind it, `§` or not; in the page `own` also `§` alone.
fn citations(text: &str, own: Option<&str>) -> Vec<Citation> {
    let mut found = Vec::new();
    let mut page: Option<&str> = None;
    for word in text.split_whitespace() {
        if let Some(named) = page_in(word) {
            found.push(Citation { page: named.to_owned(), number: None });
            page = Some(named);
            continue;
        }
        let here = if word.contains('§') { page.or(own) } else { page };
        let (number, goes_on) = number_in(word);
        if let (Some(number), Some(page)) = (&number, here) {
            found.push(Citation { page: page.to_owned(), number: Some(number.clone()) });
        }
        let joins =
            matches!(word, "and" | "to") && found.last().is_some_and(|it| it.number.is_some());
        page = page.filter(|_| joins || goes_on);
    }
    found
}

/// The page that a word names, `rules` in `([rules.md](rules.md)`.
fn page_in(word: &str) -> Option<&str> {
    let (before, _) = word.split_once(".md")?;
    let start = before.rfind(|c: char| !c.is_ascii_lowercase()).map_or(0, |at| at + 1);
    Some(&before[start..]).filter(|page| !page.is_empty())
}

/// The number in a word such as `(§§1.1,`, and whether more may follow.
fn number_in(word: &str) -> (Option<String>, bool) {
    let rest = word.trim_start_matches(|c: char| !c.is_alphanumeric());
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
    let number = rest[..end].trim_end_matches('.');
    let more = matches!(&rest[number.len()..], "" | ",");
    (is_number(number).then(|| number.to_owned()), is_number(number) && more)
}

/// The comments of a source, without their marks and line ends.
fn comments(source: &str) -> String {
    let texts = source.lines().filter_map(|line| line.split_once("//"));
    texts.map(|(_, text)| text.trim_start_matches(['/', '!']).to_owned() + "\n").collect()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The files with this ending in a folder and all below it, in order.
fn files(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("the folder can be read");
    let mut paths: Vec<PathBuf> =
        entries.map(|entry| entry.expect("its entries too").path()).collect();
    paths.sort();
    let (folders, files): (Vec<_>, Vec<_>) = paths.into_iter().partition(|path| path.is_dir());
    let files = files.into_iter().filter(|file| file.extension().is_some_and(|it| it == ending));
    files.chain(folders.iter().flat_map(|folder| self::files(folder, ending))).collect()
}

fn stem(file: &Path) -> String {
    file.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default()
}

fn text_of(file: &Path) -> String {
    fs::read_to_string(file).expect("sources are UTF-8")
}
