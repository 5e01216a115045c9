//! The MCP servers of a team: those of its file, and those that its workspace names (agents.md §6).

use std::{cell::RefCell, collections::BTreeMap, fmt, sync::Arc};

use crate::{
    check::{Input, is_secret},
    diagnostic::{Diagnostic, Place, Position, quoted},
    file::{
        document,
        item::{Content, Fields},
        node::{Entry, Node, Tree},
        reader::Reader,
        servers::{MCP_JSON, SERVER, SERVERS},
    },
    mcp, names,
    team::{Agent, Target, Team},
    time::Duration,
};

/// How long a call takes at most, goes on without a sign of progress, and how long a start takes, unless
/// the server says otherwise.
const TIMES: Times = Times {
    call: Some(Duration::from_secs(600)),
    idle: Some(Duration::from_secs(120)),
    start: Some(Duration::from_secs(30)),
};

/// The key of a team file under which its servers stand.
const TEAM_KEY: &str = "mcp_servers";

/// The longest name of a server, in characters.
const LONGEST_NAME: usize = 64;

/// An MCP server. Its texts may hold secrets, so they are neither shown nor kept with a run.
#[derive(Clone, PartialEq, Eq)]
pub struct Server {
    /// How it is reached.
    pub via: Via,
    /// How long it may take.
    pub times: Times,
}

/// How a server is reached.
#[derive(Clone, PartialEq, Eq)]
pub enum Via {
    /// A program that is started, and talked to in lines.
    Command {
        /// It and its arguments; no shell reads them.
        command: Vec<Arc<str>>,
        /// Variables that it gets beside the least.
        variables: BTreeMap<Arc<str>, Arc<str>>,
    },
    /// Streamable HTTP.
    Http {
        /// Its address.
        url: Arc<str>,
        /// Headers of each request.
        headers: BTreeMap<Arc<str>, Arc<str>>,
    },
}

/// How long a server may take; `None` is no end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// For a call in all.
    pub call: Option<Duration>,
    /// For the next sign of progress of a call.
    pub idle: Option<Duration>,
    /// To start and tell its tools.
    pub start: Option<Duration>,
}

impl Server {
    /// What is started or contacted, as far as it holds no secret: a program without its arguments, or the
    /// host and port of an address.
    pub fn reached(&self) -> String {
        match &self.via {
            Via::Command { command, .. } => {
                command.first().map(ToString::to_string).unwrap_or_default()
            }
            Via::Http { url, .. } => {
                let behind = url.split_once("://").map_or(&**url, |(_, behind)| behind);
                let host = behind.split(['/', '?', '#', '\\']).next().unwrap_or_default();
                host.rsplit_once('@').map_or(host, |(_, host)| host).to_owned()
            }
        }
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match &self.via {
            Via::Command { .. } => "command",
            Via::Http { .. } => "http",
        };
        f.debug_struct("Server").field("via", &kind).finish_non_exhaustive()
    }
}

/// Texts that must not be shown, not even by mistake.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Hidden(pub Vec<Arc<str>>);

impl fmt::Debug for Hidden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// The servers that there are, and what is wrong with them.
#[derive(Clone, Debug, Default)]
pub(super) struct Found {
    /// The sound ones.
    pub(super) servers: BTreeMap<Arc<str>, Server>,
    /// The names of the others.
    broken: Vec<Arc<str>>,
    /// What is wrong in `.mcp.json`, with the server that it is wrong with: that file is also there for
    /// other programs, so it counts only where an agent needs it.
    faults: Vec<(Option<Arc<str>>, Diagnostic)>,
    /// What must not be shown.
    pub(super) secrets: Hidden,
    /// Whether the team file itself holds values of variables or headers.
    pub(super) sets_values: bool,
}

/// The servers of the team file and of its workspace; of two with one name the first counts.
pub(super) fn find(
    root: &Node,
    file: &Fields,
    input: &Input<'_>,
    told: &mut Vec<Diagnostic>,
) -> Found {
    let mut found = Found { sets_values: sets_values(root), ..Found::default() };
    for (name, place, fields) in file.named("mcp_servers") {
        let mut wrong = Vec::new();
        let server = server(name, place, fields, &mut wrong);
        found.add(name, server.filter(|_| wrong.is_empty() && !fields.is_faulty()));
        told.append(&mut wrong);
    }
    if let Some(Content::Named(_)) | None = file.get("mcp_servers").map(|item| &item.content) {
        found.read_workspace(file, input);
    }
    found.secrets.0.extend(found.servers.values().flat_map(secrets_of));
    found
}

impl Found {
    fn add(&mut self, name: &Arc<str>, server: Option<Server>) {
        match server {
            Some(server) => drop(self.servers.insert(name.clone(), server)),
            None => self.broken.push(name.clone()),
        }
    }

    fn knows(&self, name: &str) -> bool {
        self.names().any(|known| known == name)
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        self.servers.keys().chain(&self.broken).map(|name| &**name)
    }

    /// Adds the servers that `.mcp.json` names and the team file does not.
    fn read_workspace(&mut self, file: &Fields, input: &Input<'_>) {
        let folder = file.text("workdir").map_or(".", |folder| folder);
        let text = match (input.beside)(folder, MCP_JSON) {
            Ok(Some(text)) => text,
            Ok(None) => return,
            Err(why) => {
                let message = format!("{MCP_JSON} cannot be read: {why}");
                return self.faults.push((None, Diagnostic::error("bad_file", message)));
            }
        };
        let document = document::read(text.trim_start_matches('\u{feff}'));
        let of_file = document.diagnostics.into_iter().map(|told| (None, elsewhere(told, &text)));
        self.faults.extend(of_file);
        let Tree::Map(entries) = &document.root.value else {
            let message = format!("{MCP_JSON} must be a map with the key {SERVERS}");
            return self.faults.push((None, Diagnostic::error("bad_value", message)));
        };
        let servers = entries.iter().find(|entry| &*entry.key == SERVERS);
        let Some(Entry { value: Node { value: Tree::Map(servers), .. }, .. }) = servers else {
            return;
        };
        for entry in servers.iter().filter(|entry| !entry.value.is_null()) {
            if !self.knows(&entry.key) {
                self.read_entry(entry, &text, input);
            }
        }
    }

    fn read_entry(
        &mut self,
        Entry { key: name, origin, value }: &Entry,
        text: &str,
        input: &Input<'_>,
    ) {
        let (asked, withheld) = (RefCell::new(Vec::new()), RefCell::new(Vec::new()));
        let variable = |name: &str| {
            // Whoever wrote the workspace may read what its servers are sent (agents.md §4).
            if input.catalog.keys.contains(name) {
                withheld.borrow_mut().push(name.to_owned());
                return Some("withheld".to_owned());
            }
            let value = (input.variable)(name);
            asked.borrow_mut().extend(value.iter().filter(|_| is_secret(name)).cloned());
            value
        };
        let mut reader = Reader::new(&SERVER, false, &variable);
        let fields = reader.read(value);
        let mut wrong = std::mem::take(&mut reader.diagnostics);
        // Other programs have keys of their own there.
        wrong.retain(|told| told.code != "unknown_key");
        let place = Place { span: origin.span(), path: name.clone() };
        let server = server(name, &place, &fields, &mut wrong);
        for key in withheld.into_inner() {
            let message = format!(
                "MCP server {name} asks for {key}, the key of a model: no workspace gets it"
            );
            let help = format!(
                "if it is to have it, set the server up in the team file, under {TEAM_KEY}"
            );
            wrong.push(Diagnostic::error("withheld_key", message).at(&place).help(help));
        }
        self.add(name, server.filter(|_| wrong.is_empty()));
        let wrong = wrong.into_iter().map(|told| (Some(name.clone()), elsewhere(told, text)));
        self.faults.extend(wrong);
        self.secrets.0.extend(asked.into_inner().into_iter().map(Arc::from));
    }

    /// Gives the agents of a team the names of those servers that they are granted tools of, where
    /// Folkmoot itself uses the tools that they ask for: what else uses tools starts servers of its own
    /// (rules.md 11.8).
    pub(super) fn hand_out(&self, team: &mut Team) {
        for agent in team.agents.iter_mut().chain(&mut team.staff) {
            let names = self.servers.keys().filter(|name| reaches(agent, name));
            agent.servers = if uses_tools(agent) { names.cloned().collect() } else { Vec::new() };
        }
    }

    /// What is wrong with the grants of a file, and with those servers that agents need. A member that is
    /// a team may also be granted the servers of its own; `all` has them too.
    pub(super) fn check(
        mut self,
        file: &Fields,
        team: &Team,
        all: &BTreeMap<Arc<str>, Server>,
        told: &mut Vec<Diagnostic>,
    ) {
        let agents = file.list("agents").iter().filter_map(|item| item.fields());
        for fields in agents.chain([file]) {
            let is_inside = |server: &str| {
                let mut inside = all.keys().filter_map(|name| name.rsplit_once('/'));
                fields.get("team").is_some() && inside.any(|(_, name)| name == server)
            };
            for item in fields.list("grants") {
                let grant = item.text().map_or("", |grant| grant);
                let server = mcp::granted_server(grant).filter(|server| is_name(server));
                if server.is_some_and(|server| !self.knows(server) && !is_inside(server)) {
                    told.push(self.unknown(grant).at(&item.place));
                }
            }
        }
        let needs = |of: &Option<Arc<str>>| {
            team.everyone().any(|agent| match of {
                Some(name) => reaches(agent, name),
                None => {
                    agent.grants.iter().any(|it| &**it == "*" || mcp::granted_server(it).is_some())
                }
            })
        };
        self.faults.retain(|(of, _)| needs(of));
        told.extend(self.faults.into_iter().map(|(_, fault)| fault));
    }

    fn unknown(&self, grant: &str) -> Diagnostic {
        let (of, tool) = grant.strip_prefix("mcp.").map_or(("", None), |rest| {
            rest.split_once('.').map_or((rest, None), |(of, tool)| (of, Some(tool)))
        });
        let near = names::nearest(of, self.names());
        let near = near.map(|near| match tool {
            Some(tool) => format!("did you mean \"mcp.{near}.{tool}\"?"),
            None => format!("did you mean \"mcp.{near}\"?"),
        });
        let known: Vec<&str> = self.names().collect();
        let help = near.unwrap_or_else(|| match &known[..] {
            [] => format!("no MCP server is set up; name it under mcp_servers, or in {MCP_JSON}"),
            known => format!("MCP servers: {}", known.join(", ")),
        });
        Diagnostic::error("unknown_tool", format!("unknown tool {}", quoted(grant))).help(help)
    }
}

/// Whether an agent is granted a tool of the server `name`.
fn reaches(agent: &Agent, name: &str) -> bool {
    agent.grants.iter().any(|it| &**it == "*" || mcp::granted_server(it) == Some(name))
}

/// Whether Folkmoot uses the tools that an agent asks for.
fn uses_tools(agent: &Agent) -> bool {
    let later = agent.fallbacks.iter().chain(&agent.economy).map(|later| &later.target);
    let mut targets = [&agent.target].into_iter().chain(later);
    targets.any(|target| match target {
        Target::Model(_) | Target::Script(_) => true,
        Target::Demo | Target::Cli(_) | Target::Acp(_) | Target::A2a(_) | Target::Team(_) => false,
    })
}

/// A server of which this is said.
fn server(
    name: &Arc<str>,
    place: &Place,
    fields: &Fields,
    told: &mut Vec<Diagnostic>,
) -> Option<Server> {
    if !is_name(name) {
        let message = format!("{} cannot name an MCP server", quoted(name));
        let help =
            format!("letters, digits, - and _, at most {LONGEST_NAME}, a letter or digit first");
        told.push(Diagnostic::error("bad_server_name", message).at(place).help(help));
    }
    let time = |key: &str, usual| fields.time(key).unwrap_or(usual);
    let times = Times {
        call: time("call_timeout", TIMES.call),
        idle: time("idle_timeout", TIMES.idle),
        start: time("start_timeout", TIMES.start),
    };
    Some(Server { via: via(name, place, fields, told)?, times })
}

fn via(name: &str, place: &Place, fields: &Fields, told: &mut Vec<Diagnostic>) -> Option<Via> {
    let (command, url) = (fields.text("command"), fields.text("url"));
    let is_http = match fields.text("type").map(|kind| &**kind) {
        Some("stdio") => false,
        Some("sse") => {
            let message = format!("MCP server {name}: the transport sse is not supported");
            let help = "servers of today speak type: http, often at an address that ends in /mcp";
            let wrong = Diagnostic::error("unsupported_transport", message);
            told.push(wrong.at(fields.place_of("type")).help(help.to_owned()));
            return None;
        }
        Some(_) => true,
        None => url.is_some() && command.is_none(),
    };
    let (needed, of_another) = if is_http {
        ("url", ["command", "args", "env"].as_slice())
    } else {
        ("command", ["url", "headers"].as_slice())
    };
    if fields.get(needed).is_none() && !fields.is_broken(needed) {
        let help = "give a command, or a url".to_owned();
        let missing =
            Diagnostic::error("missing_key", format!("MCP server {name} has no {needed}"));
        told.push(missing.at(place).help(help));
    }
    for key in of_another.iter().filter(|key| fields.get(key).is_some()) {
        let message = format!("MCP server {name} has a {needed}, to which {key} says nothing");
        told.push(Diagnostic::error("bad_value", message).at(fields.key(key)));
    }
    if is_http {
        let url = url?.clone();
        if !url.starts_with("http://") && !url.starts_with("https://") {
            let message =
                format!("the url of MCP server {name} must begin with http:// or https://");
            told.push(Diagnostic::error("bad_value", message).at(fields.place_of("url")));
        }
        return Some(Via::Http { url, headers: variables(fields, "headers") });
    }
    let command = [command?.clone()].into_iter().chain(fields.texts("args")).collect();
    Some(Via::Command { command, variables: variables(fields, "env") })
}

fn variables(fields: &Fields, key: &str) -> BTreeMap<Arc<str>, Arc<str>> {
    match fields.get(key).map(|item| &item.content) {
        Some(Content::Variables(variables)) => variables.clone(),
        _ => BTreeMap::new(),
    }
}

/// Whether a text can be the name of a server: it stands in grants, names of tools and keys.
pub(super) fn is_name(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    name.len() <= LONGEST_NAME
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.chars().all(is_plain)
}

/// A finding in `.mcp.json`, which is not the text that other findings are in.
fn elsewhere(mut told: Diagnostic, text: &str) -> Diagnostic {
    let at = told.at.take().map(|span| Position::of(text, span.start));
    let at = at.map(|at| format!(":{}:{}", at.line, at.column)).unwrap_or_default();
    told.message = format!("{MCP_JSON}{at}: {}", told.message);
    told.also.clear();
    told
}

/// Whether a value of a variable or a header stands in a team file, rather than where to find it.
fn sets_values(root: &Node) -> bool {
    let holds = |node: &Node, keys: &[&str]| -> Vec<Node> {
        let Tree::Map(entries) = &node.value else { return Vec::new() };
        let inside = entries.iter().filter(|it| keys.is_empty() || keys.contains(&&*it.key));
        inside.map(|it| it.value.clone()).collect()
    };
    let servers = holds(root, &["mcp_servers"]).into_iter().flat_map(|it| holds(&it, &[]));
    let maps = servers.flat_map(|it| holds(&it, &["env", "headers"]));
    let mut values = maps.flat_map(|it| holds(&it, &[]));
    values.any(|value| matches!(&value.value, Tree::Scalar(it) if !it.text.contains("${")))
}

/// The values that must not be shown, by what they are called.
fn secrets_of(server: &Server) -> Vec<Arc<str>> {
    let named = match &server.via {
        Via::Command { variables, .. } => variables,
        Via::Http { headers, .. } => headers,
    };
    let secret = named.iter().filter(|(name, _)| is_secret(name)).map(|(_, value)| value);
    // Behind the name of a scheme stands what is secret of it.
    let parts = |value: &Arc<str>| {
        let behind = value.split_once(' ').map(|(_, behind)| Arc::from(behind));
        [value.clone()].into_iter().chain(behind).collect::<Vec<_>>()
    };
    secret.flat_map(parts).collect()
}
