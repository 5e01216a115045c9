//! What `runs`, `agents` and `models` list.

use folkmoot_core::{
    money::Price,
    team::{Agent, Target, Team},
    time::Duration,
    view::Status,
};
use folkmoot_runtime::engine::Listed;

use super::{
    figures,
    screen::{Screen, Tone},
    table::{Cell, Table, numbers, texts},
};

/// How much of a text a cell has room for where lines have no bound.
const WORDS: usize = 100;

/// Runs, in the order given. `now` is the wall clock in microseconds since 1970.
pub(crate) fn runs(screen: &Screen, runs: &[Listed], now: u64) -> String {
    let mut columns = vec![
        texts("RUN"),
        texts("STATUS"),
        texts("STARTED"),
        numbers("TIME"),
        numbers("CALLS"),
        numbers("TOKENS"),
        numbers("COST"),
        texts("TEAM"),
        texts("STRATEGY"),
        texts("TASK"),
    ];
    // Few lists need it, and room is scarce.
    let origins: Vec<Option<String>> = runs.iter().map(|run| origin(screen, run)).collect();
    let has_origins = origins.iter().any(Option::is_some);
    let place = columns.len() - 1;
    if has_origins {
        columns.insert(place, texts("FROM"));
    }
    let mut table = Table::new(columns);
    for (run, origin) in runs.iter().zip(origins) {
        let mut row = Vec::from(row_of(screen, run, now));
        if has_origins {
            row.insert(place, origin.unwrap_or_default().into());
        }
        table.row(row);
    }
    table.render(screen)
}

/// The run that another one goes on from.
fn origin(screen: &Screen, run: &Listed) -> Option<String> {
    let origin = run.summary.as_ref()?.origin.as_ref()?;
    let how = if origin.retried { "retry of" } else { "fork of" };
    Some(format!("{how} {}", screen.line(&origin.run_id)))
}

fn row_of(screen: &Screen, run: &Listed, now: u64) -> [Cell; 10] {
    let id = Cell::from(screen.line(run.id.as_str()));
    let Some(summary) = &run.summary else {
        // The summary is only a cache; a newer program may have written it.
        let unknown = || Cell::from("");
        return [
            id,
            "unknown".into(),
            unknown(),
            unknown(),
            unknown(),
            unknown(),
            unknown(),
            unknown(),
            unknown(),
            unknown(),
        ];
    };
    let driven = if run.owner.is_some() { Status::Running } else { Status::Interrupted };
    let took = summary.ended_at.map(|ended| Duration(ended.saturating_sub(summary.started_at)));
    let spending = &summary.usage.total;
    [
        id,
        status(summary.status.unwrap_or(driven)),
        figures::ago(summary.started_at, now).into(),
        took.map(figures::elapsed).unwrap_or_default().into(),
        figures::count(summary.usage.calls).into(),
        figures::count(spending.total_tokens).into(),
        spending.cost_usd.map(figures::dollars).unwrap_or_default().into(),
        screen.words(&summary.team, WORDS).into(),
        screen.line(&summary.strategy).into(),
        screen.words(&summary.prompt, WORDS).into(),
    ]
}

/// A status as lists show it.
pub(super) fn status(status: Status) -> Cell {
    let tone = match status {
        Status::Done => Tone::Good,
        Status::Failed | Status::Cancelled => Tone::Bad,
        Status::BudgetExhausted
        | Status::BoundReached
        | Status::Deadline
        | Status::NeedsInput
        | Status::Interrupted => Tone::Doubtful,
        Status::Running => Tone::Strong,
    };
    Cell::from(status.as_str()).in_tone(tone)
}

/// The agents of a team.
pub(crate) fn agents(screen: &Screen, team: &Team) -> String {
    let mut table = Table::new([
        texts("AGENT"),
        texts("ID"),
        texts("MODEL"),
        texts("TOOLS"),
        numbers("STEPS"),
        texts("DESCRIPTION"),
    ]);
    for agent in &team.agents {
        let steps =
            if agent.grants.is_empty() { String::new() } else { agent.max_steps.to_string() };
        table.row([
            screen.line(&agent.name).into(),
            screen.line(agent.id.as_str()).into(),
            screen.line(&chain(agent)).into(),
            screen.words(&agent.grants.join(", "), WORDS).into(),
            steps.into(),
            screen.words(agent.description.as_deref().unwrap_or_default(), WORDS).into(),
        ]);
    }
    table.render(screen)
}

/// What answers for an agent, and what answers in its place.
pub(super) fn chain(agent: &Agent) -> String {
    let later = agent.fallbacks.iter().map(|fallback| &fallback.target);
    let targets = [&agent.target].into_iter().chain(later).map(target);
    targets.collect::<Vec<_>>().join(" → ")
}

fn target(target: &Target) -> String {
    match target {
        Target::Model(model) => model.to_string(),
        Target::Script(script) => match &script.label {
            Some(label) => format!("script for {label}"),
            None => "script".to_owned(),
        },
        Target::Demo => "demo".to_owned(),
        Target::Cli(cli) => cli.to_string(),
        Target::Acp(acp) => acp.to_string(),
        Target::A2a(a2a) => a2a.to_string(),
        Target::Team(nested) => format!("team {}", nested.file),
    }
}

/// A model as `models` lists it.
#[derive(Clone, Debug)]
pub(crate) struct ModelRow<'a> {
    /// What it is called in files and flags: an alias, or `provider/model`.
    pub(crate) name: &'a str,
    /// What the name stands for.
    pub(crate) target: &'a str,
    /// What it costs, where known.
    pub(crate) price: Option<&'a Price>,
    /// What is missing before it can be asked, such as a variable that is not set.
    pub(crate) lacks: Option<&'a str>,
}

/// The models that can be asked, or could be. Prices are US dollars per million tokens.
pub(crate) fn models(screen: &Screen, models: &[ModelRow]) -> String {
    let mut table = Table::new([
        texts("NAME"),
        texts("MODEL"),
        numbers("INPUT $/M"),
        numbers("OUTPUT $/M"),
        texts("READY"),
    ]);
    for model in models {
        let price =
            |of: fn(&Price) -> f64| model.price.map(|it| of(it).to_string()).unwrap_or_default();
        let ready = match model.lacks {
            None => Cell::from("yes").in_tone(Tone::Good),
            Some(lacks) => {
                Cell::from(format!("no: {}", screen.line(lacks))).in_tone(Tone::Doubtful)
            }
        };
        table.row([
            screen.line(model.name).into(),
            screen.line(model.target).into(),
            price(|it| it.input).into(),
            price(|it| it.output).into(),
            ready,
        ]);
    }
    table.render(screen)
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use folkmoot_agents::Secrets;
    use folkmoot_core::team::Model;
    use folkmoot_runtime::{engine::RunId, summary::Summary};

    use super::*;
    use crate::terminal::testing::{Stage, agent, broadcast, reply};

    const HOSTILE: &str = "x\u{1b}[2J\n\u{202e}y";

    fn listed(id: &str, summary: Option<Summary>) -> Listed {
        Listed { id: RunId::parse(id), number: 1, summary, owner: None }
    }

    #[test]
    fn runs_are_listed_with_what_became_of_them() {
        let mut stage = Stage::new(broadcast(1, vec![agent("a", [reply(75_000, "A", 12_345)])]));
        let open = Summary::of(&stage.sim.spec, &stage.sim.run);
        stage.play(|_, _, _| {});
        let mut done = Summary::of(&stage.sim.spec, &stage.sim.run);
        done.usage.total.cost_usd = Some(0.0123);
        done.prompt = "为校园社团设计一个招新方案\n\n请说明预算".to_owned();
        done.team = HOSTILE.to_owned();
        let runs = [listed("k3v9", Some(done)), listed("a1b2", Some(open)), listed("c0de", None)];
        let screen = Screen::page(Secrets::default());
        expect![[r#"
            RUN   STATUS       STARTED   TIME  CALLS  TOKENS     COST  TEAM   STRATEGY   TASK
            k3v9  done         2h ago   1m15s      1   12.3k  $0.0123  x␛ �y  broadcast  为校园社团设计一个招新方案 请说明预算
            a1b2  interrupted  2h ago              1       0           test   broadcast  TASK
            c0de  unknown
        "#]].assert_eq(&super::runs(&screen, &runs, 7_200_000_000));
    }

    #[test]
    fn agents_are_listed_with_what_answers_for_them_and_what_they_may_use() {
        let mut spec = broadcast(1, vec![agent("研究员", []), agent("b", []), agent("c", [])]);
        let agents = &mut spec.team.agents;
        agents[0].target = Target::Model(Model::new("openai", "gpt-5"));
        agents[0].grants = vec!["file.read".into(), "shell".into()];
        agents[1].description = Some(HOSTILE.into());
        agents[2].target = Target::Demo;
        expect![[r#"
            AGENT   ID      MODEL         TOOLS             STEPS  DESCRIPTION
            研究员  研究员  openai/gpt-5  file.read, shell     30
            b       b       script                                 x␛ �y
            c       c       demo
        "#]]
        .assert_eq(&super::agents(&Screen::page(Secrets::default()), &spec.team));
    }

    #[test]
    fn models_are_listed_with_prices_where_known_and_what_they_lack() {
        let price = Price::new(0.27, 1.1);
        let rows = [
            ModelRow {
                name: "fast",
                target: "deepseek/deepseek-chat",
                price: Some(&price),
                lacks: None,
            },
            ModelRow {
                name: "gpt",
                target: "openai/gpt-5",
                price: None,
                lacks: Some("OPENAI_API_KEY is not set"),
            },
        ];
        expect![[r#"
            NAME  MODEL                   INPUT $/M  OUTPUT $/M  READY
            fast  deepseek/deepseek-chat       0.27         1.1  yes
            gpt   openai/gpt-5                                   no: OPENAI_API_KEY is not set
        "#]]
        .assert_eq(&models(&Screen::page(Secrets::default()), &rows));
    }
}
