//! The pages of `docs/strategies` are made from the doc comments of the programs and the table of
//! parameters. `UPDATE_EXPECT=1 cargo test -p folkmoot --test docs` writes them.

use std::{fmt::Write, fs, path::Path};

use folkmoot_core::{
    check::{self, Input, Source},
    file::models::Catalog,
};

/// A page: the strategy, the source of its program, the type there, and an example of a task.
const PAGES: [(&str, &str, &str, &str); 7] = [
    (
        "broadcast",
        include_str!("../../folkmoot-core/src/programs/broadcast.rs"),
        "Broadcast",
        "Name five selling points of a paper notebook",
    ),
    (
        "sequential",
        include_str!("../../folkmoot-core/src/programs/sequential.rs"),
        "Sequential",
        "Write a function that parses durations, then review it",
    ),
    (
        "debate",
        include_str!("../../folkmoot-core/src/programs/debate.rs"),
        "Debate",
        "Should we move to microservices?",
    ),
    (
        "supervisor",
        include_str!("../../folkmoot-core/src/programs/supervise.rs"),
        "Supervise",
        "Plan the autumn campaign of a student club",
    ),
    (
        "consensus",
        include_str!("../../folkmoot-core/src/programs/consensus.rs"),
        "Consensus",
        "Which feature comes first in Q3?",
    ),
    (
        "relay",
        include_str!("../../folkmoot-core/src/programs/relay.rs"),
        "Relay",
        "Write the introduction of our product",
    ),
    (
        "auto",
        include_str!("../../folkmoot-core/src/programs/adaptive.rs"),
        "Adaptive",
        "Should we move to microservices?",
    ),
];

#[test]
fn each_strategy_has_a_page_made_from_its_doc_comment() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/strategies");
    for (strategy, source, name, task) in PAGES {
        let file = folder.join(format!("{strategy}.md"));
        let page = page(strategy, source, name, task);
        if std::env::var_os("UPDATE_EXPECT").is_some() {
            fs::create_dir_all(&folder).expect("the folder can be made");
            fs::write(&file, &page).expect("the page can be written");
        }
        let found = fs::read_to_string(&file).unwrap_or_default();
        assert_eq!(found, page, "{} is out of date", file.display());
    }
}

fn page(strategy: &str, source: &str, name: &str, task: &str) -> String {
    let mut page = format!("# {strategy}\n\n");
    page += &comment(source.lines().take_while(|line| line.starts_with("//!")), "//!");
    page += "\n";
    page += &comment(above(source, name), "///");
    if strategy == "auto" {
        page += AUTO;
    }
    page += "\n## Parameters\n\n| parameter | meaning | default | flag |\n|---|---|---|---|\n";
    for field in check::parameters(strategy) {
        let (default, flag) = (field.default.unwrap_or("–"), field.flag.unwrap_or("–"));
        let flag = if flag == "–" { flag.to_owned() } else { format!("`{flag}`") };
        writeln!(page, "| `{}` | {} | {default} | {flag} |", field.name, field.doc)
            .expect("a string takes any text");
    }
    write!(page, "\n## In a team file\n\n```yaml\n{}```\n", team(strategy))
        .expect("a string takes any text");
    let command = format!("folkmoot run --demo --strategy {strategy} \"{task}\"");
    write!(page, "\n## Try it\n\n```console\n$ {command}\n```\n").expect("a string takes any text");
    page
}

/// A team of the strategy, as short as it can be.
fn team(strategy: &str) -> String {
    let (names, parameters) = match strategy {
        "broadcast" => ("sales, design, press", "agents: [sales, design], rounds: 1"),
        "sequential" => ("coder, tester, reviewer", "order: [coder, tester, reviewer]"),
        "debate" => ("bold, careful, judge", "agents: [bold, careful], rounds: 2, judge: judge"),
        "supervisor" => ("lead, venue, press", "supervisor: lead, workers: [venue, press]"),
        "consensus" => {
            ("产品, 研发, 运营, 评委", "agents: [产品, 研发, 运营], judge: 评委, self_votes: false")
        }
        "relay" => {
            ("writer, editor", "order: [writer, editor], rounds: 2, convergence: normalized")
        }
        "auto" => ("bold, careful, judge", "auto: adaptive, agents: [bold, careful], judge: judge"),
        other => panic!("{other} is no strategy"),
    };
    // Whoever is to differ is best answered by another model.
    let agent = |(at, name): (usize, &str)| match at {
        _ if strategy == "supervisor" => {
            format!("  - {{ name: {name}, description: Knows about the {name} }}\n")
        }
        1 => format!("  - {{ name: {name}, model: dashscope/qwen-plus }}\n"),
        _ => format!("  - {{ name: {name} }}\n"),
    };
    let agents: String = names.split(", ").enumerate().map(agent).collect();
    format!(
        "model: deepseek/deepseek-chat\nagents:\n{agents}collaboration: {{ strategy: {strategy}, {parameters} }}\n"
    )
}

#[test]
fn the_teams_of_the_pages_are_sound() {
    for (strategy, ..) in PAGES {
        let team = team(strategy);
        let catalog = Catalog {
            providers: ["deepseek", "dashscope"].map(str::to_owned).into(),
            ..Catalog::default()
        };
        let checked = check::check(&Input {
            source: Source::File(team.as_bytes()),
            name: "team",
            path: None,
            overrides: &[],
            task: Some("Well?"),
            catalog: &catalog,
            list: &|_| Err("no such folder".into()),
            around: &[],
            variable: &|_| None,
            read: &|_| Err("there is none".to_owned()),
            beside: &|_, _| Ok(None),
        });
        assert!(checked.diagnostics.is_empty(), "{team}\n{:#?}", checked.diagnostics);
    }
}

const AUTO: &str = "
That is the rule `adaptive`. The default rule, `seed`, looks at the team alone, and the first that fits
counts: one participant, broadcast; an agent named `supervisor`, supervisor; else debate. What was
chosen and why stands in the result as `meta.auto`.
";

/// The doc comment above the type `name`.
fn above<'a>(source: &'a str, name: &str) -> impl Iterator<Item = &'a str> {
    let lines: Vec<&str> = source.lines().collect();
    let is_it = |line: &&str| {
        let rest = line.strip_prefix("pub struct ").or(line.strip_prefix("pub enum "));
        rest.is_some_and(|rest| rest.split_whitespace().next() == Some(name))
    };
    let at = lines.iter().position(is_it).expect("the source has the type");
    let from = lines[..at].iter().rposition(|line| line.is_empty()).map_or(0, |line| line + 1);
    lines.into_iter().take(at).skip(from).take_while(|line| line.starts_with("///"))
}

fn comment<'a>(lines: impl Iterator<Item = &'a str>, mark: &str) -> String {
    let text =
        lines.map(|line| line.trim_start_matches(mark).strip_prefix(' ').unwrap_or_default());
    text.fold(String::new(), |page, line| page + line + "\n")
}
