//! Connections: how they are taken, what a client may cost, and how the server ends.

use std::{convert::Infallible, sync::Arc, time::Duration};

use axum::{Router, body::Body};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tower::ServiceExt;

use super::guard::{LARGEST_HEAD, PATIENCE};

/// How many connections there may be at once; more wait to be taken.
const MOST_CONNECTIONS: usize = 1_024;

/// How long answers may take to be sent when the server ends.
const PARTING: Duration = Duration::from_secs(1);

/// Serves until `ends`; then nobody new is let in, and what is being answered has a moment.
pub(super) async fn serve(listener: TcpListener, router: Router, ends: CancellationToken) {
    let (room, connections) = (Arc::new(Semaphore::new(MOST_CONNECTIONS)), TaskTracker::new());
    loop {
        let accepted = async {
            let room = room.clone().acquire_owned().await;
            (room, listener.accept().await)
        };
        let (room, accepted) = tokio::select! {
            () = ends.cancelled() => break,
            accepted = accepted => accepted,
        };
        match accepted {
            Ok((stream, _)) => {
                let (router, ends) = (router.clone(), ends.clone());
                connections.spawn(async move {
                    let _room = room;
                    connection(stream, router, ends).await;
                });
            }
            // Such as too many open files: it passes, and must not turn into a busy loop.
            Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    }
    drop(listener);
    connections.close();
    connections.wait().await;
}

async fn connection(stream: TcpStream, router: Router, ends: CancellationToken) {
    let answer = |request: hyper::Request<Incoming>| {
        let answering = router.clone().oneshot(request.map(Body::new));
        async move { answering.await.map_err(|never: Infallible| match never {}) }
    };
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(PATIENCE).max_buf_size(LARGEST_HEAD);
    let serving = builder.serve_connection(TokioIo::new(stream), service_fn(answer));
    tokio::pin!(serving);
    // How a connection breaks off is the client's business.
    tokio::select! {
        _ = serving.as_mut() => return,
        () = ends.cancelled() => serving.as_mut().graceful_shutdown(),
    }
    let _ = tokio::time::timeout(PARTING, serving).await;
}
