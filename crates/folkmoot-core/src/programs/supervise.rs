//! Tasks that fall into parts.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::{Clocks, entry, language};
use crate::{
    call::{Fault, Prompt, Reply},
    event::{Ending, Text},
    key::Key,
    plan::{self, Format, Plan, Task},
    scope::{Node, Program, Scope, Step, complete},
    team::{Agent, AgentId},
    text,
    words::Language,
};

/// A supervisor plans tasks, workers do them as their inputs become known, the supervisor reports.
///
/// 1. The supervisor is asked for a plan; one with structural defects is asked for once more, and
///    whatever is left of defects is repaired and noted, never fatal (unless `strict`).
/// 2. A task starts as soon as all it depends on has succeeded; what depends on a failed one is
///    skipped.
/// 3. The supervisor reports; its reply is the answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Supervise {
    /// Who plans and reports.
    pub supervisor: AgentId,
    /// Who works, in registration order.
    pub workers: Vec<AgentId>,
    /// Whether a plan with structural defects is asked for once more.
    pub replan: bool,
    /// Whether a structural defect that is left ends the run.
    pub strict: bool,
    /// The most tasks that run.
    pub max_tasks: u32,
    /// Its clocks; `timeout` is per task while the tasks run.
    pub clocks: Clocks,
}

impl Program for Supervise {
    fn run(&self, cx: &Scope) -> Step<Ending> {
        match self.plan(cx)? {
            Planned::Agreed(planning) => self.carry_out(cx, &planning),
            Planned::Over(ending) => Ok(ending),
        }
    }
}

/// What came of planning.
pub(super) enum Planned {
    /// A plan to carry out.
    Agreed(Planning),
    /// There is none, and the run is over.
    Over(Ending),
}

/// A plan, and the conversation in which it came about.
pub(super) struct Planning {
    pub(super) plan: Plan,
    /// The reply that holds the plan.
    source: Reply,
    /// The supervisor's latest reply.
    latest: Reply,
    notes: Vec<String>,
    replanned: bool,
}

impl Planning {
    fn info(&self) -> Value {
        let format = self.plan.format.to_string();
        json!({ "format": format, "notes": self.notes, "replanned": self.replanned })
    }
}

/// What became of a task.
#[derive(Clone)]
struct Work {
    status: Status,
    reply: Option<Reply>,
    error: Option<String>,
    /// Whether the run was stopped before it was done.
    stopped: bool,
}

/// The status of a task, as records and reports show it.
#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "UPPERCASE")]
enum Status {
    Pending,
    Running,
    Success,
    Failed,
    Timeout,
    Skipped,
    Cancelled,
}

impl Status {
    fn name(self) -> &'static str {
        match self {
            Status::Pending => "PENDING",
            Status::Running => "RUNNING",
            Status::Success => "SUCCESS",
            Status::Failed => "FAILED",
            Status::Timeout => "TIMEOUT",
            Status::Skipped => "SKIPPED",
            Status::Cancelled => "CANCELLED",
        }
    }
}

impl Work {
    fn without_reply(status: Status, error: impl Into<String>) -> Work {
        Work { status, reply: None, error: Some(error.into()), stopped: false }
    }

    fn of(reply: Reply) -> Work {
        let (status, error) = match &reply.outcome {
            Ok(_) => (Status::Success, None),
            Err(Fault::TimedOut) => (Status::Timeout, Some(Fault::TimedOut)),
            Err(fault) if fault.stops_run() => (Status::Cancelled, Some(fault.clone())),
            Err(fault) => (Status::Failed, Some(fault.clone())),
        };
        let (stopped, error) = (reply.is_stopped(), error.map(|fault| fault.to_string()));
        Work { status, reply: Some(reply), error, stopped }
    }
}

impl Node for Task {
    fn id(&self) -> &str {
        &self.id
    }

    fn after(&self) -> &[std::sync::Arc<str>] {
        &self.depends_on
    }
}

impl Supervise {
    /// Asks for a plan, and once more if it has structural defects.
    pub(super) fn plan(&self, cx: &Scope) -> Step<Planned> {
        let prompt = Prompt::task().say(self.instruction(cx));
        let first = self.clocks.phase(cx).ask("plan", &self.supervisor, prompt)?;
        if first.is_stopped() {
            self.record_plan(cx, &first, None);
            return Ok(Planned::Over(Ending::failed("report_failed", Vec::new())));
        }
        let plan = self.read(cx, &first);
        let planning = self.better(cx, first, plan)?;
        let is_bad =
            planning.plan.structural_defects() > 0 || planning.plan.format == Format::Fallback;
        if self.strict && is_bad {
            self.record_plan(cx, &planning.source, Some(planning.info()));
            return Ok(Planned::Over(Ending::failed("bad_plan", Vec::new())));
        }
        self.record_plan(cx, &planning.source, None);
        Ok(Planned::Agreed(planning))
    }

    fn read(&self, cx: &Scope, reply: &Reply) -> Plan {
        let workers: Vec<&Agent> =
            self.workers.iter().map(|worker| cx.spec().team.agent(worker)).collect();
        plan::repair(&reply.outcome, &cx.spec().task, &workers, self.max_tasks)
    }

    /// The better of the first plan and, if that has structural defects, a second one.
    fn better(&self, cx: &Scope, first: Reply, plan: Plan) -> Step<Planning> {
        let notes: Vec<String> = plan.notes.iter().map(|note| note.text.clone()).collect();
        let planning =
            Planning { plan, source: first.clone(), latest: first, notes, replanned: false };
        if !self.replan || planning.plan.structural_defects() == 0 {
            return Ok(planning);
        }
        let needed = planning.plan.tasks.len() as u64 + 2;
        if cx.calls_left().is_some_and(|left| left < needed) {
            return Ok(noting(planning, "no re-plan: budget"));
        }
        let prompt = Prompt::after(&planning.latest).say(correction(cx, &planning.plan));
        let again = self.clocks.phase(cx).optional();
        let second = again.ask("replan", &self.supervisor, prompt)?;
        match &second.outcome {
            Err(Fault::OverBudget { .. }) => Ok(noting(planning, "no re-plan: budget")),
            Err(_) => Ok(noting(Planning { latest: second, ..planning }, "re-plan failed")),
            Ok(_) => Ok(self.compared(cx, planning, second)),
        }
    }

    fn compared(&self, cx: &Scope, first: Planning, second: Reply) -> Planning {
        let plan = self.read(cx, &second);
        if !plan.improves_on(&first.plan) {
            return noting(Planning { latest: second, ..first }, "re-plan did not help");
        }
        let before = first.notes.iter().map(|note| format!("first plan: {note}"));
        let notes = before.chain(plan.notes.iter().map(|note| note.text.clone())).collect();
        Planning { plan, source: second.clone(), latest: second, notes, replanned: true }
    }

    fn record_plan(&self, cx: &Scope, reply: &Reply, info: Option<Value>) {
        cx.record(|| {
            let name = cx.name(&self.supervisor);
            let mut record = json!({ "step": "plan", "agent": name, "response": entry(reply) });
            if let Some(info) = info {
                record["plan_info"] = info;
            }
            record
        });
    }

    /// The work and the report.
    pub(super) fn carry_out(&self, cx: &Scope, planning: &Planning) -> Step<Ending> {
        let tasks = &planning.plan.tasks;
        let works = self.work(cx, planning)?;
        let works: Vec<(&Task, &Work)> =
            tasks.iter().map(|task| (task, &works[&*task.id])).collect();
        let outputs: Vec<Key> = outputs(&works);
        if works.iter().any(|(_, work)| work.stopped) {
            return Ok(Ending::failed("report_failed", outputs));
        }
        let report = self.clocks.phase(cx).ask(
            "report",
            &self.supervisor,
            report_prompt(cx, planning, &works),
        )?;
        let name = cx.name(&self.supervisor);
        cx.record(|| json!({ "step": "report", "agent": name, "response": entry(&report) }));
        let has_succeeded = works.iter().any(|(_, work)| work.status == Status::Success);
        Ok(match report.contribution() {
            None => Ending::failed("report_failed", outputs),
            Some(_) if has_succeeded => Ending::done("reported", vec![report.key]),
            Some(_) => Ending {
                answer: Some(Text::Replies(vec![report.key])),
                ..Ending::failed("no_task_succeeded", Vec::new())
            },
        })
    }

    /// Does every task as soon as all it depends on is done.
    fn work<'p>(&self, cx: &Scope, planning: &'p Planning) -> Step<BTreeMap<&'p str, Work>> {
        let tasks = &planning.plan.tasks;
        let place = self.clocks.each(cx).at("work");
        let done = place.dag(tasks, |task, inputs: &[&Work]| {
            if task.over_max {
                return Ok(Work::without_reply(Status::Cancelled, "over max_tasks"));
            }
            if let Some(unmet) = unmet(task, inputs) {
                return Ok(unmet);
            }
            let prompt = task_prompt(cx, task, inputs);
            Ok(Work::of(place.ask(&task.id, &task.agent, prompt)?))
        });
        cx.record(|| self.record_work(cx, &place, planning, &done));
        complete(done, tasks)
    }

    fn record_work(
        &self,
        cx: &Scope,
        place: &Scope,
        planning: &Planning,
        done: &BTreeMap<&str, Work>,
    ) -> Value {
        let tasks = &planning.plan.tasks;
        let mut assigned = Map::new();
        let mut results = Map::new();
        for worker in &self.workers {
            let own: Vec<&Task> = tasks.iter().filter(|task| task.agent == *worker).collect();
            if own.is_empty() {
                continue;
            }
            let name = cx.name(worker);
            let descriptions: Vec<&str> = own.iter().map(|task| &*task.description).collect();
            assigned.insert(name.to_owned(), json!(descriptions));
            let works: Vec<&Work> = own.iter().filter_map(|task| done.get(&*task.id)).collect();
            if let Some(result) = result_of(&works) {
                results.insert(name.to_owned(), result);
            }
        }
        let descriptions: Vec<&str> = tasks.iter().map(|task| &*task.description).collect();
        let records: Vec<Value> =
            tasks.iter().map(|task| record_task(cx, place, task, done.get(&*task.id))).collect();
        json!({
            "step": "work",
            "subtasks": descriptions,
            "assigned": assigned,
            "results": results,
            "tasks": records,
            "plan_info": planning.info(),
        })
    }

    fn instruction(&self, cx: &Scope) -> String {
        let lines: Vec<String> =
            self.workers.iter().map(|worker| introduction(cx.spec().team.agent(worker))).collect();
        let (lines, most) = (lines.join("\n"), self.max_tasks);
        let shape = r#"{"tasks": [{"id": "t1", "description": "…", "agent": "<worker>", "depends_on": ["…"], "required_capabilities": ["…"]}]}"#;
        match language(cx) {
            Language::English => format!(
                "Plan this task for your workers:\n{lines}\n\
                 Answer with JSON of this shape; only `description` is required:\n{shape}\n\
                 At most {most} tasks; 2 to 6 usually suffice. Add a dependency only where a task \
                 needs the output of another: each worker sees the task, its own part and the \
                 outputs it depends on, nothing else."
            ),
            Language::Chinese => format!(
                "请为你的下属规划这项任务：\n{lines}\n\
                 请用如下结构的 JSON 回答，只有 `description` 是必填项：\n{shape}\n\
                 最多 {most} 个子任务，通常 2 到 6 个就够。只有当一个子任务需要另一个的产出时才写依赖：\
                 每个下属只能看到总任务、自己的部分和所依赖的产出。"
            ),
        }
    }
}

fn noting(mut planning: Planning, note: &str) -> Planning {
    planning.notes.push(note.to_owned());
    planning
}

/// A worker as the planner is told of it: its name, description and capabilities.
fn introduction(worker: &Agent) -> String {
    let mut line = format!("- {}", worker.name);
    if let Some(description) = &worker.description {
        line = format!("{line}: {description}");
    }
    if !worker.capabilities.is_empty() {
        line = format!("{line} [{}]", worker.capabilities.join(", "));
    }
    line
}

fn correction(cx: &Scope, plan: &Plan) -> String {
    let structural = plan.notes.iter().filter(|note| note.structural);
    let notes: Vec<&str> = structural.map(|note| &*note.text).collect();
    let notes = told(cx, &notes.join("\n"));
    match language(cx) {
        Language::English => {
            format!("The plan has defects:\n{notes}\nAnswer with the corrected JSON only.")
        }
        Language::Chinese => format!("计划有以下问题：\n{notes}\n请只回答修正后的 JSON。"),
    }
}

/// What becomes of a task when something it depends on did not succeed.
fn unmet(task: &Task, inputs: &[&Work]) -> Option<Work> {
    if let Some(stopped) = inputs.iter().find(|input| input.stopped) {
        return Some(Work { reply: None, ..(*stopped).clone() });
    }
    let at = inputs.iter().position(|input| input.status != Status::Success)?;
    let error = format!("dependency \"{}\" {}", task.depends_on[at], inputs[at].status.name());
    Some(Work::without_reply(Status::Skipped, error))
}

/// The goal, the part, and the outputs it depends on; nothing of the plan's other parts.
fn task_prompt(cx: &Scope, task: &Task, inputs: &[&Work]) -> Prompt {
    let (id, description) = (&task.id, &task.description);
    let part = match language(cx) {
        Language::English => format!("Your part, {id}:\n{description}"),
        Language::Chinese => format!("你负责的部分 {id}：\n{description}"),
    };
    let prompt = Prompt::task().say(part);
    prompt
        .quotes(inputs.iter().filter_map(|input| input.reply.as_ref()))
        .say(language(cx).pick("Do this part only, completely.", "只完成这一部分，并完整地完成。"))
}

fn report_prompt(cx: &Scope, planning: &Planning, works: &[(&Task, &Work)]) -> Prompt {
    let mut prompt = Prompt::after(&planning.latest);
    for (task, work) in works {
        prompt = prompt.say(report_line(cx, task, work));
        if let Some(reply) = &work.reply {
            prompt = prompt.quote(reply);
        }
    }
    if !planning.notes.is_empty() {
        let head = language(cx).pick("Notes on the plan:", "关于计划的说明：");
        prompt = prompt.say(format!("{head}\n{}", told(cx, &planning.notes.join("\n"))));
    }
    prompt.say(language(cx).pick(
        "All tasks have ended. Write the complete answer to the original task now.",
        "所有子任务都已结束。现在请写出原任务的完整答案。",
    ))
}

/// How much of the notes a prompt shows, in characters: a plan can have more defects than words.
pub(crate) const NOTES: usize = 4000;

fn told(cx: &Scope, notes: &str) -> String {
    text::shorten(notes, NOTES, language(cx)).into_owned()
}

/// How much of an error the report's prompt shows, in characters.
pub(crate) const ERROR: usize = 200;

fn report_line(cx: &Scope, task: &Task, work: &Work) -> String {
    let line = format!("{}: {} ({})", task.id, work.status.name(), cx.name(&task.agent));
    match &work.error {
        Some(error) => {
            let error = error.split_whitespace().collect::<Vec<_>>().join(" ");
            format!("{line}: {}", text::shorten(&error, ERROR, language(cx)))
        }
        None => line,
    }
}

fn outputs(works: &[(&Task, &Work)]) -> Vec<Key> {
    let replies = works.iter().filter_map(|(_, work)| work.reply.as_ref());
    super::contributed(replies)
}

/// A worker's outputs joined, or its first error.
fn result_of(works: &[&Work]) -> Option<Value> {
    let outputs = works.iter().filter(|work| work.status == Status::Success);
    let outputs: Vec<&str> = outputs
        .filter_map(|work| Some(&*work.reply.as_ref()?.outcome.as_ref().ok()?.text))
        .collect();
    if outputs.is_empty() {
        let error = works.iter().find_map(|work| work.error.clone())?;
        return Some(json!({ "error": error }));
    }
    Some(outputs.join("\n").into())
}

fn record_task(cx: &Scope, place: &Scope, task: &Task, work: Option<&Work>) -> Value {
    let status = match work {
        Some(work) => work.status,
        None if place.is_under_way(&task.id) => Status::Running,
        None => Status::Pending,
    };
    let mut record = json!({ "task_id": task.id, "status": status, "agent": cx.name(&task.agent) });
    let reply = work.and_then(|work| work.reply.as_ref());
    if let Some(reply) = reply.filter(|_| status == Status::Success) {
        record["output"] = entry(reply);
    }
    if let Some(error) = work.and_then(|work| work.error.clone()) {
        record["error"] = error.into();
    }
    let took = reply.map(|_| place.took(&task.id).as_millis_f64());
    record["duration_ms"] = took.unwrap_or_default().into();
    record["depends_on"] = json!(task.depends_on);
    record["routed_by"] = task.routed_by.to_string().into();
    record
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::{
        spec::{Collaboration, Spec},
        testing::{agent, check, ids, spec},
    };

    fn supervise(boss: &[&str], w1: &[&str], w2: &[&str]) -> Spec {
        let supervise = Supervise {
            supervisor: "boss".into(),
            workers: ids(&["w1", "w2"]),
            replan: true,
            strict: false,
            max_tasks: 32,
            clocks: Clocks::default(),
        };
        let agents = vec![agent("boss", boss), agent("w1", w1), agent("w2", w2)];
        spec(agents, Collaboration::Supervisor(supervise))
    }

    fn strict(spec: Spec) -> Spec {
        let Collaboration::Supervisor(supervise) = spec.collaboration else { unreachable!() };
        let supervise = Supervise { strict: true, replan: false, ..supervise };
        Spec { collaboration: Collaboration::Supervisor(supervise), ..spec }
    }

    const CHAIN: &str = r#"{"tasks": [
        {"id": "a", "description": "dig", "agent": "w1"},
        {"id": "b", "description": "fill", "agent": "w2", "depends_on": ["a"]},
        {"id": "c", "description": "water", "agent": "w2"}]}"#;

    #[test]
    fn a_task_starts_when_its_inputs_are_known_and_the_report_quotes_every_output() {
        check(
            supervise(&[CHAIN, "REPORT"], &["DUG"], &["WATERED", "FILLED"]),
            expect![[r#"
              1     0 started
              2     0 asked plan [task · say Plan this task for your …]
              3     0 answered plan: {"tasks":[{"id":"a","description":"dig","agent":"w1"},{"id":"b","description":"fill","agent":"w2","depends_on":["a"]},{"id":"c","description":"water","agent":"w2"}]}
              4     0 asked work/a [task · say Your part, a:
            dig… · say Do this part only, compl…]
              5     0 asked work/c [task · say Your part, c:
            water… · say Do this part only, compl…]
              6     0 answered work/c: WATERED
              7     0 answered work/a: DUG
              8     0 asked work/b [task · say Your part, b:
            fill… · quote work/a · say Do this part only, compl…]
              9     0 answered work/b: FILLED
             10     0 asked report [after plan · say a: SUCCESS (w1)… · quote work/a · say b: SUCCESS (w2)… · quote work/b · say c: SUCCESS (w2)… · quote work/c · say All tasks have ended. Wr…]
             11     0 answered report: REPORT
             12     0 ended reported
            = done reported: Some("REPORT")
              {"step":"plan","agent":"boss","response":{"tasks":[{"id":"a","description":"dig","agent":"w1"},{"id":"b","description":"fill","agent":"w2","depends_on":["a"]},{"id":"c","description":"water","agent":"w2"}]}}
              {"step":"work","subtasks":["dig","fill","water"],"assigned":{"w1":["dig"],"w2":["fill","water"]},"results":{"w1":"DUG","w2":"FILLED\nWATERED"},"tasks":[{"task_id":"a","status":"SUCCESS","agent":"w1","output":"DUG","duration_ms":0.0,"depends_on":[],"routed_by":"named"},{"task_id":"b","status":"SUCCESS","agent":"w2","output":"FILLED","duration_ms":0.0,"depends_on":["a"],"routed_by":"named"},{"task_id":"c","status":"SUCCESS","agent":"w2","output":"WATERED","duration_ms":0.0,"depends_on":[],"routed_by":"named"}],"plan_info":{"format":"json","notes":[],"replanned":false}}
              {"step":"report","agent":"boss","response":"REPORT"}
        "#]],
        );
    }

    #[test]
    fn what_depends_on_a_failed_task_is_skipped_and_the_report_is_written_all_the_same() {
        check(
            supervise(&[CHAIN, "REPORT"], &["!kaput"], &["WATERED"]),
            expect![[r#"
              1     0 started
              2     0 asked plan [task · say Plan this task for your …]
              3     0 answered plan: {"tasks":[{"id":"a","description":"dig","agent":"w1"},{"id":"b","description":"fill","agent":"w2","depends_on":["a"]},{"id":"c","description":"water","agent":"w2"}]}
              4     0 asked work/a [task · say Your part, a:
            dig… · say Do this part only, compl…]
              5     0 asked work/c [task · say Your part, c:
            water… · say Do this part only, compl…]
              6     0 answered work/c: WATERED
              7     0 answered work/a: (kaput)
              8     0 asked report [after plan · say a: FAILED (w1): kaput… · say b: SKIPPED (w2): depende… · say c: SUCCESS (w2)… · quote work/c · say All tasks have ended. Wr…]
              9     0 answered report: REPORT
             10     0 ended reported
            = done reported: Some("REPORT")
              {"step":"plan","agent":"boss","response":{"tasks":[{"id":"a","description":"dig","agent":"w1"},{"id":"b","description":"fill","agent":"w2","depends_on":["a"]},{"id":"c","description":"water","agent":"w2"}]}}
              {"step":"work","subtasks":["dig","fill","water"],"assigned":{"w1":["dig"],"w2":["fill","water"]},"results":{"w1":{"error":"kaput"},"w2":"WATERED"},"tasks":[{"task_id":"a","status":"FAILED","agent":"w1","error":"kaput","duration_ms":0.0,"depends_on":[],"routed_by":"named"},{"task_id":"b","status":"SKIPPED","agent":"w2","error":"dependency \"a\" FAILED","duration_ms":0.0,"depends_on":["a"],"routed_by":"named"},{"task_id":"c","status":"SUCCESS","agent":"w2","output":"WATERED","duration_ms":0.0,"depends_on":[],"routed_by":"named"}],"plan_info":{"format":"json","notes":[],"replanned":false}}
              {"step":"report","agent":"boss","response":"REPORT"}
        "#]],
        );
    }

    #[test]
    fn a_broken_plan_is_asked_for_once_more() {
        let ghost = r#"{"tasks": [{"id": "a", "description": "dig", "depends_on": ["ghost"]}]}"#;
        let sound = r#"{"tasks": [{"id": "a", "description": "dig"}]}"#;
        check(
            supervise(&[ghost, sound, "REPORT"], &["DUG"], &[]),
            expect![[r#"
              1     0 started
              2     0 asked plan [task · say Plan this task for your …]
              3     0 answered plan: {"tasks":[{"id":"a","description":"dig","depends_on":["ghost"]}]}
              4     0 asked replan [after plan · say The plan has defects:
            "a…]
              5     0 answered replan: {"tasks":[{"id":"a","description":"dig"}]}
              6     0 asked work/a [task · say Your part, a:
            dig… · say Do this part only, compl…]
              7     0 answered work/a: DUG
              8     0 asked report [after replan · say a: SUCCESS (w1)… · quote work/a · say Notes on the plan:
            first… · say All tasks have ended. Wr…]
              9     0 answered report: REPORT
             10     0 ended reported
            = done reported: Some("REPORT")
              {"step":"plan","agent":"boss","response":{"tasks":[{"id":"a","description":"dig"}]}}
              {"step":"work","subtasks":["dig"],"assigned":{"w1":["dig"]},"results":{"w1":"DUG"},"tasks":[{"task_id":"a","status":"SUCCESS","agent":"w1","output":"DUG","duration_ms":0.0,"depends_on":[],"routed_by":"load"}],"plan_info":{"format":"json","notes":["first plan: \"a\" depends on unknown \"ghost\": dropped"],"replanned":true}}
              {"step":"report","agent":"boss","response":"REPORT"}
        "#]],
        );
    }

    #[test]
    fn a_second_plan_is_not_worth_the_calls_that_the_work_needs() {
        let ghost = r#"{"tasks": [{"id": "a", "description": "dig", "depends_on": ["ghost"]}]}"#;
        let mut spec = supervise(&[ghost, "REPORT"], &["DUG"], &[]);
        spec.limits.calls = Some(3);
        check(
            spec,
            expect![[r#"
              1     0 started
              2     0 asked plan [task · say Plan this task for your …]
              3     0 answered plan: {"tasks":[{"id":"a","description":"dig","depends_on":["ghost"]}]}
              4     0 asked work/a [task · say Your part, a:
            dig… · say Do this part only, compl…]
              5     0 answered work/a: DUG
              6     0 asked report [after plan · say a: SUCCESS (w1)… · quote work/a · say Notes on the plan:
            "a" d… · say All tasks have ended. Wr…]
              7     0 answered report: REPORT
              8     0 ended reported
            = done reported: Some("REPORT")
              {"step":"plan","agent":"boss","response":{"tasks":[{"id":"a","description":"dig","depends_on":["ghost"]}]}}
              {"step":"work","subtasks":["dig"],"assigned":{"w1":["dig"]},"results":{"w1":"DUG"},"tasks":[{"task_id":"a","status":"SUCCESS","agent":"w1","output":"DUG","duration_ms":0.0,"depends_on":[],"routed_by":"load"}],"plan_info":{"format":"json","notes":["\"a\" depends on unknown \"ghost\": dropped","no re-plan: budget"],"replanned":false}}
              {"step":"report","agent":"boss","response":"REPORT"}
        "#]],
        );
    }

    #[test]
    fn a_strict_run_ends_before_any_task_of_a_broken_plan() {
        check(
            strict(supervise(&["{\"tasks\": [{\"id\": 1, \"descr"], &[], &[])),
            expect![[r#"
              1     0 started
              2     0 asked plan [task · say Plan this task for your …]
              3     0 answered plan: {"tasks": [{"id": 1, "descr
              4     0 ended bad_plan
            = failed bad_plan: None
              {"step":"plan","agent":"boss","response":"{\"tasks\": [{\"id\": 1, \"descr","plan_info":{"format":"fallback","notes":["plan is not readable JSON (line 1, column 27): the whole task is one task"],"replanned":false}}
        "#]],
        );
    }

    #[test]
    fn once_the_budget_is_spent_all_that_is_unfinished_is_cancelled() {
        let mut spec = supervise(&[CHAIN, "REPORT"], &["DUG"], &["WATERED", "FILLED"]);
        spec.limits.calls = Some(2);
        check(
            spec,
            expect![[r#"
              1     0 started
              2     0 asked plan [task · say Plan this task for your …]
              3     0 answered plan: {"tasks":[{"id":"a","description":"dig","agent":"w1"},{"id":"b","description":"fill","agent":"w2","depends_on":["a"]},{"id":"c","description":"water","agent":"w2"}]}
              4     0 asked work/a [task · say Your part, a:
            dig… · say Do this part only, compl…]
              5     0 refused work/c: budget exhausted
              6     0 answered work/a: DUG
              7     0 refused work/b: budget exhausted
              8     0 ended report_failed
            = budget_exhausted calls: None
              partial "DUG"
              {"step":"plan","agent":"boss","response":{"tasks":[{"id":"a","description":"dig","agent":"w1"},{"id":"b","description":"fill","agent":"w2","depends_on":["a"]},{"id":"c","description":"water","agent":"w2"}]}}
              {"step":"work","subtasks":["dig","fill","water"],"assigned":{"w1":["dig"],"w2":["fill","water"]},"results":{"w1":"DUG","w2":{"error":"budget exhausted"}},"tasks":[{"task_id":"a","status":"SUCCESS","agent":"w1","output":"DUG","duration_ms":0.0,"depends_on":[],"routed_by":"named"},{"task_id":"b","status":"CANCELLED","agent":"w2","error":"budget exhausted","duration_ms":0.0,"depends_on":["a"],"routed_by":"named"},{"task_id":"c","status":"CANCELLED","agent":"w2","error":"budget exhausted","duration_ms":0.0,"depends_on":[],"routed_by":"named"}],"plan_info":{"format":"json","notes":[],"replanned":false}}
        "#]],
        );
    }
}
