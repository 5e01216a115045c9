//! What a workspace says to whoever works in it: its `AGENTS.md` (agents.md §11).

use std::sync::Arc;

use super::Input;
use crate::{
    diagnostic::Diagnostic,
    file::item::Fields,
    team::{Agent, Target, Team},
    text::shorten,
    words::Language,
};

/// The file of a workspace that says it.
const AGENTS_MD: &str = "AGENTS.md";

/// How much of it agents are told, in characters.
const LONGEST: usize = 32 << 10;

/// The instructions of a workspace, if it has any, as they stand in a prompt.
#[derive(Clone, Debug, Default)]
pub(super) struct Instructions(Option<Arc<str>>);

impl Instructions {
    /// Reads them.
    pub(super) fn find(
        file: &Fields,
        input: &Input<'_>,
        told: &mut Vec<Diagnostic>,
    ) -> Instructions {
        let folder = file.text("workdir").map_or(".", |folder| folder);
        let text = match (input.beside)(folder, AGENTS_MD) {
            Ok(text) => text.filter(|text| !text.trim().is_empty()),
            Err(why) => {
                let message =
                    format!("{AGENTS_MD} cannot be read, so no agent is told of it: {why}");
                told.push(Diagnostic::warning("bad_file", message));
                None
            }
        };
        let language = Language::of(input.task.unwrap_or_default());
        let heading = language.pick(
            "What this workspace asks of who works in it (AGENTS.md):",
            "工作区对工作者的要求（AGENTS.md）：",
        );
        let told = |text: String| {
            let text = text.trim_start_matches('\u{feff}').trim();
            format!("{heading}\n{}", shorten(text, LONGEST, language)).into()
        };
        Instructions(text.map(told))
    }

    /// Tells them to those who use tools by Folkmoot; coding agents read them by themselves.
    pub(super) fn hand_out(&self, team: &mut Team) {
        let Some(text) = &self.0 else { return };
        for agent in team.agents.iter_mut().chain(&mut team.staff).filter(|agent| works(agent)) {
            agent.prompt = Some(match agent.prompt.take() {
                // Teams are put together in steps, and some are handed out to twice.
                Some(prompt) if prompt.ends_with(&**text) => prompt,
                Some(prompt) => format!("{}\n\n{text}", prompt.trim_end()).into(),
                None => text.clone(),
            });
        }
    }
}

fn works(agent: &Agent) -> bool {
    let uses_tools = match agent.target {
        Target::Model(_) | Target::Script(_) | Target::Demo => true,
        Target::Cli(_) | Target::Acp(_) | Target::A2a(_) | Target::Team(_) => false,
    };
    uses_tools && !agent.grants.is_empty()
}
