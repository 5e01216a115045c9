//! Choosing among proposals.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::{
    Clocks, contributed, entry, everyone, is_stopped, language, others, own, quoted, responses,
};
use crate::{
    call::{Prompt, Reply},
    event::Ending,
    scope::{Program, Scope, Step},
    team::AgentId,
    verdict::ballot,
    words::Language,
};

/// All participants propose and vote; a judge settles what the votes leave open.
///
/// 1. Everybody is asked for a proposal at once; who contributed is a candidate.
/// 2. Everybody is asked for a vote at once: `vote:<agent_name>` on a line of its own.
/// 3. The candidate with more valid votes than any other wins, and its proposal is the answer.
///    A tie, or no valid vote, goes to the judge, and its reply is the answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Consensus {
    /// The participants in registration order.
    pub agents: Vec<AgentId>,
    /// Who decides when the votes do not.
    pub judge: AgentId,
    /// Whether a vote for oneself is valid.
    pub self_votes: bool,
    /// Its clocks.
    pub clocks: Clocks,
}

impl Program for Consensus {
    fn run(&self, cx: &Scope) -> Step<Ending> {
        let proposals = self.proposals(cx)?;
        let candidates = contributed(&proposals);
        if candidates.is_empty() {
            return Ok(Ending::failed("all_failed", candidates));
        }
        if is_stopped(&proposals) {
            return Ok(Ending::failed("judge_failed", candidates));
        }
        let election = self.election(cx, &proposals)?;
        let is_stopped = is_stopped(&election.ballots);
        match election.winner() {
            Some(winner) => {
                if !is_stopped {
                    let (name, votes) = (cx.name(&winner.agent), election.votes(cx));
                    cx.record(|| json!({ "step": "final", "winner": name, "votes": votes }));
                }
                Ok(Ending::done("majority", vec![winner.key.clone()]))
            }
            None if is_stopped => Ok(Ending::failed("judge_failed", contributed(election.tied()))),
            None => self.judgement(cx, &election),
        }
    }
}

/// How a vote came out.
struct Election<'a> {
    /// The proposals of all participants, failed ones included.
    proposals: &'a [Reply],
    ballots: Vec<Reply>,
    readings: Vec<Reading>,
}

/// What a ballot says.
#[derive(Clone, Copy, PartialEq)]
enum Reading {
    /// A vote for this participant, by position.
    Valid(usize),
    NoVote,
    /// It names a participant without a proposal.
    NoProposal,
    SelfVote,
    /// The voter failed: no ballot at all.
    Absent,
}

impl Election<'_> {
    /// How many valid votes each candidate has, in registration order.
    fn tally(&self) -> impl Iterator<Item = (&Reply, usize)> {
        let count = |at| self.readings.iter().filter(|it| **it == Reading::Valid(at)).count();
        let candidates = self.proposals.iter().enumerate();
        let candidates = candidates.filter(|(_, proposal)| proposal.contribution().is_some());
        candidates.map(move |(at, proposal)| (proposal, count(at)))
    }

    fn most(&self) -> usize {
        self.tally().map(|(_, votes)| votes).max().unwrap_or(0)
    }

    /// The candidate with more valid votes than any other.
    fn winner(&self) -> Option<&Reply> {
        match self.tied()[..] {
            [winner] if self.most() > 0 => Some(winner),
            _ => None,
        }
    }

    /// The candidates with most votes: all of them if there is no valid vote.
    fn tied(&self) -> Vec<&Reply> {
        let most = self.most();
        self.tally().filter(|(_, votes)| *votes == most).map(|(candidate, _)| candidate).collect()
    }

    fn votes(&self, cx: &Scope) -> Value {
        let elected = self.tally().filter(|(_, votes)| *votes > 0);
        let named = elected.map(|(it, votes)| (cx.name(&it.agent).to_owned(), votes.into()));
        Value::Object(named.collect())
    }
}

impl Consensus {
    fn proposals(&self, cx: &Scope) -> Step<Vec<Reply>> {
        let propose = self.clocks.phase(cx).at("propose");
        let proposals = everyone(&propose, &self.agents, |_| {
            Prompt::task().say(language(cx).pick(
                "Propose your own complete solution. A vote among all proposals follows.",
                "请提出你自己的完整方案。之后将对所有方案进行投票。",
            ))
        })?;
        cx.record(|| json!({ "step": "propose", "responses": responses(cx, &proposals) }));
        Ok(proposals)
    }

    fn election<'a>(&self, cx: &Scope, proposals: &'a [Reply]) -> Step<Election<'a>> {
        let vote = self.clocks.phase(cx).at("vote");
        let ballots = everyone(&vote, &self.agents, |agent| {
            let own = own(proposals, agent).expect("every participant was asked for a proposal");
            let ballot = self.ballot(cx, proposals, agent);
            quoted(cx, Prompt::after(own), others(proposals, agent)).say(ballot)
        })?;
        let readings = (0..).zip(&ballots).map(|(at, it)| self.read(cx, proposals, at, it));
        let election = Election { proposals, readings: readings.collect(), ballots };
        cx.record(|| self.record(cx, &election));
        Ok(election)
    }

    fn ballot(&self, cx: &Scope, proposals: &[Reply], voter: &AgentId) -> String {
        let candidates = proposals.iter().filter(|it| it.contribution().is_some());
        let candidates: Vec<&str> = candidates.map(|it| cx.name(&it.agent)).collect();
        let (candidates, own) = (candidates.join(", "), cx.name(voter));
        let language = language(cx);
        let no_self = language.pick(" A vote for yourself does not count.", "投给自己的票无效。");
        let no_self = if self.self_votes { "" } else { no_self };
        match language {
            Language::English => format!(
                "Vote for the best proposal. Candidates: {candidates}. You are {own}.{no_self}\n\
                 Put your vote on a line of its own, in exactly this form:\nvote:<agent_name>"
            ),
            Language::Chinese => format!(
                "请投票选出最好的方案。候选人：{candidates}。你是{own}。{no_self}\n\
                 请将你的投票单独写成一行，格式严格如下：\nvote:<agent_name>"
            ),
        }
    }

    fn read(&self, cx: &Scope, proposals: &[Reply], voter: usize, ballot: &Reply) -> Reading {
        let Ok(answer) = &ballot.outcome else { return Reading::Absent };
        let names: Vec<&str> = self.agents.iter().map(|agent| cx.name(agent)).collect();
        match ballot::read(answer, &names) {
            None => Reading::NoVote,
            Some(at) if proposals[at].contribution().is_none() => Reading::NoProposal,
            Some(at) if at == voter && !self.self_votes => Reading::SelfVote,
            Some(at) => Reading::Valid(at),
        }
    }

    fn record(&self, cx: &Scope, election: &Election) -> Value {
        let valid = election.readings.iter().filter(|it| matches!(it, Reading::Valid(_))).count();
        let ballots = (0..).zip(&election.ballots).zip(&election.readings);
        let ballots: Map<String, Value> = ballots
            .map(|((voter, it), reading)| {
                (cx.name(&it.agent).to_owned(), self.ballot_record(cx, voter, it, *reading))
            })
            .collect();
        json!({
            "step": "vote",
            "votes": election.votes(cx),
            "turnout": { "asked": self.agents.len(), "valid": valid },
            "ballots": ballots,
        })
    }

    fn ballot_record(&self, cx: &Scope, voter: usize, ballot: &Reply, reading: Reading) -> Value {
        let text = ballot.outcome.as_ref().map_or("", |answer| &answer.text);
        match reading {
            Reading::Absent => entry(ballot),
            Reading::Valid(at) if at == voter => {
                json!({ "text": text, "vote": cx.name(&self.agents[at]), "self": true })
            }
            Reading::Valid(at) => json!({ "text": text, "vote": cx.name(&self.agents[at]) }),
            Reading::NoVote => json!({ "text": text, "vote": null, "invalid": "no_vote" }),
            Reading::NoProposal => json!({ "text": text, "vote": null, "invalid": "no_proposal" }),
            Reading::SelfVote => {
                json!({ "text": text, "vote": null, "self": true, "invalid": "self_vote" })
            }
        }
    }

    fn judgement(&self, cx: &Scope, election: &Election) -> Step<Ending> {
        let tied = election.tied();
        let prompt = quoted(cx, Prompt::task(), election.proposals);
        let prompt = quoted(cx, prompt, &election.ballots).say(count(cx, election, &tied)).say(
            language(cx).pick(
                "The vote decided nothing. You are the judge: \
                 give the final answer to the task itself.",
                "投票未能分出胜负。你是裁判：请直接给出这项任务的最终答案。",
            ),
        );
        let verdict = self.clocks.phase(cx).ask("judge", &self.judge, prompt)?;
        let (name, votes) = (cx.name(&self.judge), || election.votes(cx));
        cx.record(|| {
            json!({ "step": "final", "judge": name, "votes": votes(), "response": entry(&verdict) })
        });
        Ok(match verdict.contribution() {
            Some(_) => Ending::done("judged", vec![verdict.key]),
            None => Ending::failed("judge_failed", contributed(tied)),
        })
    }
}

/// The tally for the judge: a line for each candidate, and what is tied.
fn count(cx: &Scope, election: &Election, tied: &[&Reply]) -> String {
    let name = |reply: &Reply| cx.name(&reply.agent);
    let lines: Vec<String> =
        election.tally().map(|(it, votes)| format!("{}: {votes}", name(it))).collect();
    let tied: Vec<&str> = tied.iter().map(|it| name(it)).collect();
    let (tied, lines) = (tied.join(", "), lines.join("\n"));
    match language(cx) {
        Language::English => format!("Votes:\n{lines}\nTied: {tied}"),
        Language::Chinese => format!("票数：\n{lines}\n平票：{tied}"),
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::{
        spec::{Collaboration, Spec},
        testing::{agent, check, ids, spec},
    };

    fn consensus(self_votes: bool, a: &[&str], b: &[&str], c: &[&str]) -> Spec {
        let agents = ids(&["a", "b", "c"]);
        let clocks = Clocks::default();
        let consensus = Consensus { agents, judge: "a".into(), self_votes, clocks };
        let agents = vec![agent("a", a), agent("b", b), agent("c", c)];
        spec(agents, Collaboration::Consensus(consensus))
    }

    #[test]
    fn the_proposal_with_most_votes_is_the_answer() {
        check(
            consensus(true, &["PA", "vote:b"], &["PB", "vote:b"], &["PC", "vote:a"]),
            expect![[r#"
                  1     0 started
                  2     0 asked propose/a [task · say Propose your own complet…]
                  3     0 asked propose/b [task · say Propose your own complet…]
                  4     0 asked propose/c [task · say Propose your own complet…]
                  5     0 answered propose/b: PB
                  6     0 answered propose/a: PA
                  7     0 answered propose/c: PC
                  8     0 asked vote/a [after propose/a · quote propose/b · quote propose/c · say Vote for the best propos…]
                  9     0 asked vote/b [after propose/b · quote propose/a · quote propose/c · say Vote for the best propos…]
                 10     0 asked vote/c [after propose/c · quote propose/a · quote propose/b · say Vote for the best propos…]
                 11     0 answered vote/c: vote:a
                 12     0 answered vote/a: vote:b
                 13     0 answered vote/b: vote:b
                 14     0 ended majority
                = done majority: Some("PB")
                  {"step":"propose","responses":{"a":"PA","b":"PB","c":"PC"}}
                  {"step":"vote","votes":{"a":1,"b":2},"turnout":{"asked":3,"valid":3},"ballots":{"a":{"text":"vote:b","vote":"b"},"b":{"text":"vote:b","vote":"b","self":true},"c":{"text":"vote:a","vote":"a"}}}
                  {"step":"final","winner":"b","votes":{"a":1,"b":2}}
            "#]],
        );
    }

    #[test]
    fn a_tie_goes_to_the_judge_with_the_tally() {
        check(
            consensus(true, &["PA", "vote:a", "VERDICT"], &["PB", "vote:b"], &["PC", "hm"]),
            expect![[r#"
                  1     0 started
                  2     0 asked propose/a [task · say Propose your own complet…]
                  3     0 asked propose/b [task · say Propose your own complet…]
                  4     0 asked propose/c [task · say Propose your own complet…]
                  5     0 answered propose/b: PB
                  6     0 answered propose/a: PA
                  7     0 answered propose/c: PC
                  8     0 asked vote/a [after propose/a · quote propose/b · quote propose/c · say Vote for the best propos…]
                  9     0 asked vote/b [after propose/b · quote propose/a · quote propose/c · say Vote for the best propos…]
                 10     0 asked vote/c [after propose/c · quote propose/a · quote propose/b · say Vote for the best propos…]
                 11     0 answered vote/c: hm
                 12     0 answered vote/a: vote:a
                 13     0 answered vote/b: vote:b
                 14     0 asked judge [task · quote propose/a · quote propose/b · quote propose/c · quote vote/a · quote vote/b · quote vote/c · say Votes:
                a: 1
                b: 1
                c: 0
                Ti… · say The vote decided nothing…]
                 15     0 answered judge: VERDICT
                 16     0 ended judged
                = done judged: Some("VERDICT")
                  {"step":"propose","responses":{"a":"PA","b":"PB","c":"PC"}}
                  {"step":"vote","votes":{"a":1,"b":1},"turnout":{"asked":3,"valid":2},"ballots":{"a":{"text":"vote:a","vote":"a","self":true},"b":{"text":"vote:b","vote":"b","self":true},"c":{"text":"hm","vote":null,"invalid":"no_vote"}}}
                  {"step":"final","judge":"a","votes":{"a":1,"b":1},"response":"VERDICT"}
            "#]],
        );
    }

    #[test]
    fn votes_for_oneself_and_for_those_without_a_proposal_can_be_invalid() {
        check(
            consensus(false, &["PA", "vote:a"], &["!x", "vote:b"], &["PC", "vote:b"]),
            expect![[r#"
                  1     0 started
                  2     0 asked propose/a [task · say Propose your own complet…]
                  3     0 asked propose/b [task · say Propose your own complet…]
                  4     0 asked propose/c [task · say Propose your own complet…]
                  5     0 answered propose/b: (x)
                  6     0 answered propose/a: PA
                  7     0 answered propose/c: PC
                  8     0 asked vote/a [after propose/a · quote propose/c · say Without a contribution: … · say Vote for the best propos…]
                  9     0 asked vote/b [after propose/b · quote propose/a · quote propose/c · say Vote for the best propos…]
                 10     0 asked vote/c [after propose/c · quote propose/a · say Without a contribution: … · say Vote for the best propos…]
                 11     0 answered vote/c: vote:b
                 12     0 answered vote/a: vote:a
                 13     0 answered vote/b: vote:b
                 14     0 asked judge [task · quote propose/a · quote propose/c · say Without a contribution: … · quote vote/a · quote vote/b · quote vote/c · say Votes:
                a: 0
                c: 0
                Tied: a… · say The vote decided nothing…]
                 15     0 answered judge: vote:a
                 16     0 ended judged
                = done judged: Some("vote:a")
                  {"step":"propose","responses":{"a":"PA","b":{"error":"x"},"c":"PC"}}
                  {"step":"vote","votes":{},"turnout":{"asked":3,"valid":0},"ballots":{"a":{"text":"vote:a","vote":null,"self":true,"invalid":"self_vote"},"b":{"text":"vote:b","vote":null,"invalid":"no_proposal"},"c":{"text":"vote:b","vote":null,"invalid":"no_proposal"}}}
                  {"step":"final","judge":"a","votes":{},"response":"vote:a"}
            "#]],
        );
    }

    #[test]
    fn a_lone_candidate_without_a_vote_has_not_won() {
        check(
            consensus(true, &["!x", "no", "!z"], &["!y", "no"], &["PC", "no"]),
            expect![[r#"
                  1     0 started
                  2     0 asked propose/a [task · say Propose your own complet…]
                  3     0 asked propose/b [task · say Propose your own complet…]
                  4     0 asked propose/c [task · say Propose your own complet…]
                  5     0 answered propose/b: (y)
                  6     0 answered propose/a: (x)
                  7     0 answered propose/c: PC
                  8     0 asked vote/a [after propose/a · quote propose/c · say Without a contribution: … · say Vote for the best propos…]
                  9     0 asked vote/b [after propose/b · quote propose/c · say Without a contribution: … · say Vote for the best propos…]
                 10     0 asked vote/c [after propose/c · say Without a contribution: … · say Vote for the best propos…]
                 11     0 answered vote/c: no
                 12     0 answered vote/a: no
                 13     0 answered vote/b: no
                 14     0 asked judge [task · quote propose/c · say Without a contribution: … · quote vote/a · quote vote/b · quote vote/c · say Votes:
                c: 0
                Tied: c… · say The vote decided nothing…]
                 15     0 answered judge: (z)
                 16     0 ended judge_failed
                = failed judge_failed: None
                  partial "PC"
                  {"step":"propose","responses":{"a":{"error":"x"},"b":{"error":"y"},"c":"PC"}}
                  {"step":"vote","votes":{},"turnout":{"asked":3,"valid":0},"ballots":{"a":{"text":"no","vote":null,"invalid":"no_vote"},"b":{"text":"no","vote":null,"invalid":"no_vote"},"c":{"text":"no","vote":null,"invalid":"no_vote"}}}
                  {"step":"final","judge":"a","votes":{},"response":{"error":"z"}}
            "#]],
        );
    }

    #[test]
    fn without_proposals_nobody_votes() {
        check(
            consensus(true, &["!x"], &["!y"], &["!z"]),
            expect![[r#"
                  1     0 started
                  2     0 asked propose/a [task · say Propose your own complet…]
                  3     0 asked propose/b [task · say Propose your own complet…]
                  4     0 asked propose/c [task · say Propose your own complet…]
                  5     0 answered propose/b: (y)
                  6     0 answered propose/a: (x)
                  7     0 answered propose/c: (z)
                  8     0 ended all_failed
                = failed all_failed: None
                  {"step":"propose","responses":{"a":{"error":"x"},"b":{"error":"y"},"c":{"error":"z"}}}
            "#]],
        );
    }
}
