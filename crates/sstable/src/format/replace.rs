//! Components that are written again.

use futures_util::future::LocalBoxFuture;
use halcyon_io::{Disk, Purpose};

use crate::{Component, Descriptor, Result};

/// Replaces a component as a whole: a crash leaves the old one or the new one.
pub fn replace<'a>(
    disk: &'a Disk,
    descriptor: &'a Descriptor,
    component: Component,
    bytes: &'a [u8],
    purpose: Purpose,
) -> LocalBoxFuture<'a, Result<()>> {
    Box::pin(async move {
        let temporary = descriptor.path_of(&format!("{component}.tmp"));
        // An attempt that failed may have left it.
        match disk.remove(&temporary).await {
            Err(e) if e.is_not_found() => {}
            removed => removed?,
        }
        disk.write_new(&temporary, bytes, purpose).await?;
        disk.rename(&temporary, &descriptor.component_path(component)).await?;
        Ok(disk.sync_dir(&descriptor.directory).await?)
    })
}
