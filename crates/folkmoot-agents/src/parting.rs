//! What calls that nobody waits for any longer still have to say or to end, which takes them a moment.

use std::sync::{Mutex, PoisonError};

use tokio::{runtime::Handle, task::JoinHandle};

static PARTING: Mutex<Vec<JoinHandle<()>>> = Mutex::new(Vec::new());

/// Lets `last` be done by and by; it must end by itself.
pub(crate) fn follow(last: impl Future<Output = ()> + Send + 'static) {
    let Ok(runtime) = Handle::try_current() else { return };
    let mut parting = PARTING.lock().unwrap_or_else(PoisonError::into_inner);
    parting.retain(|last| !last.is_finished());
    parting.push(runtime.spawn(last));
}

/// Waits until the agents whose calls were cancelled are gone, or know of it.
pub async fn parted() {
    let parting = std::mem::take(&mut *PARTING.lock().unwrap_or_else(PoisonError::into_inner));
    for last in parting {
        let _ = last.await;
    }
}
