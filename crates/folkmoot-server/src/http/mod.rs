//! The server over HTTP: each route is one external event or one query, a few lines over what the
//! commands do (server.md).
//!
//! `guard` stands before every route, so none can be reached without a token by being forgotten; the
//! routes are listed once, and what `/openapi.json` tells is made of the same list. Deliberately absent:
//! cookies, CORS, logs of requests.

mod acts;
mod asking;
mod chat;
mod events;
mod feed;
mod guard;
mod machine;
mod metrics;
mod page;
mod problem;
mod reading;
mod runs;
mod serving;
mod teams;
mod tokens;

use std::{net::SocketAddr, sync::Arc, time::Duration};

use axum::{Json, Router, extract::State, middleware};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use utoipa::openapi::{InfoBuilder, OpenApi, OpenApiBuilder, OpenApiVersion};
use utoipa_axum::{router::OpenApiRouter, routes};

use self::{
    feed::Feeds,
    guard::{Guard, Names},
    metrics::Meters,
};
pub use self::{
    machine::{Machine, Masks, Rehearsal},
    tokens::{Role, TokenError, Tokens},
};
use crate::hall::Hall;

/// How long calls under way may still be answered when the server ends.
const PARTING: Duration = Duration::from_secs(10);

/// How a server is to be.
#[derive(Debug)]
pub struct Settings {
    /// Who may ask.
    pub tokens: Tokens,
    /// The names under which it is asked, beside those of its address.
    pub names: Vec<String>,
    /// How many runs are driven at once.
    pub max_runs: usize,
    /// Whether it goes on with the runs that the server before it has left.
    pub resumes: bool,
}

/// What the routes share.
#[derive(Clone)]
struct Server {
    hall: Hall,
    machine: Arc<dyn Machine>,
    masks: Arc<dyn Masks>,
    feeds: Feeds,
    meters: Arc<Meters>,
}

/// Serves until `ends`: then no run begins any more, calls under way have ten seconds to be answered, and
/// all runs are left so that the next server goes on with them.
pub async fn serve(
    listener: TcpListener,
    machine: Arc<dyn Machine>,
    settings: Settings,
    ends: CancellationToken,
) -> std::io::Result<()> {
    let address = listener.local_addr()?;
    let server = Server::new(machine, settings.max_runs);
    let router = router(&server, address, &settings);
    let closed = CancellationToken::new();
    let serving = tokio::spawn(serving::serve(listener, router, closed.clone()));
    if settings.resumes {
        server.hall.resume_owed().await.map_err(std::io::Error::other)?;
    }
    ends.cancelled().await;
    server.hall.close(PARTING).await;
    closed.cancel();
    serving.await.map_err(std::io::Error::other)
}

impl Server {
    fn new(machine: Arc<dyn Machine>, max_runs: usize) -> Server {
        let masks = machine.masks();
        let (feeds, meters) = (Feeds::new(masks.clone()), Arc::new(Meters::default()));
        let (fed, metered) = (feeds.clone(), meters.clone());
        let hall = Hall::new(machine.clone(), max_runs).owing();
        let hall = hall.followed(Arc::new(move |run| metered.counting(fed.observer(run))));
        Server { hall, machine, masks, feeds, meters }
    }
}

/// Every route there is, and before all of them the guard.
fn router(server: &Server, address: SocketAddr, settings: &Settings) -> Router {
    let (router, described) = OpenApiRouter::with_openapi(described())
        .routes(routes!(runs::list, runs::start))
        .routes(routes!(runs::show))
        .routes(routes!(runs::calls))
        .routes(routes!(runs::graph))
        .routes(routes!(runs::compare))
        .routes(routes!(runs::session))
        .routes(routes!(events::events))
        .routes(routes!(acts::answer))
        .routes(routes!(acts::cancel))
        .routes(routes!(acts::resume))
        .routes(routes!(acts::retry))
        .routes(routes!(acts::amend))
        .routes(routes!(acts::fork))
        .routes(routes!(teams::list))
        .routes(routes!(teams::check))
        .routes(routes!(teams::plan))
        .routes(routes!(teams::simulate))
        .routes(routes!(asking::collaborate))
        .routes(routes!(asking::dispatch))
        .routes(routes!(asking::broadcast))
        .routes(routes!(chat::models))
        .routes(routes!(chat::completions))
        .routes(routes!(metrics::metrics))
        .routes(routes!(openapi))
        .routes(routes!(healthz))
        .split_for_parts();
    let described = Arc::new(described);
    let guard = Guard {
        tokens: settings.tokens.clone(),
        names: Names::new(address, &settings.names),
        masks: server.masks.clone(),
        meters: server.meters.clone(),
    };
    router
        .with_state(server.clone())
        .layer(axum::Extension(described))
        .fallback(page::file)
        .method_not_allowed_fallback(problem::wrong_method)
        .layer(middleware::from_fn_with_state(Arc::new(guard), guard::admit))
}

fn described() -> OpenApi {
    let info = InfoBuilder::new().title("Folkmoot").version(env!("CARGO_PKG_VERSION"));
    let mut described = OpenApiBuilder::new().info(info.build()).build();
    described.openapi = OpenApiVersion::Version31;
    described
}

/// What there is to ask, as `OpenAPI` 3.1.
#[utoipa::path(get, path = "/openapi.json", tag = "server", responses((status = 200, description = "This document")))]
async fn openapi(axum::Extension(described): axum::Extension<Arc<OpenApi>>) -> Json<OpenApi> {
    Json(OpenApi::clone(&described))
}

/// Whether the server is there.
#[utoipa::path(get, path = "/healthz", tag = "server", security(()), responses((status = 200, body = str, description = "ok")))]
async fn healthz(State(_): State<Server>) -> &'static str {
    "ok\n"
}
