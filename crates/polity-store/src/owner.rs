//! File ownership.

use std::fs::Metadata;

/// Why a file cannot be trusted as this user's own, if so: somebody else owns it or can write it.
#[cfg(unix)]
#[must_use]
pub fn why_not_own(about: &Metadata) -> Option<String> {
    use std::os::unix::fs::MetadataExt;
    of_another(about.uid(), about.gid(), about.mode(), rustix::process::geteuid().as_raw())
}

/// Systems without owners report nothing.
#[cfg(not(unix))]
#[must_use]
pub fn why_not_own(_: &Metadata) -> Option<String> {
    None
}

/// The same by owner, group and mode, for the user `me`. Files owned by root belong to the system.
#[cfg(unix)]
fn of_another(owner: u32, group: u32, mode: u32, me: u32) -> Option<String> {
    // Many systems give every user a private group of the same number, with write permission.
    let others = if group == me && me != 0 { 0o002 } else { 0o022 };
    match (owner == me || owner == 0, mode & others) {
        (false, _) => Some(format!("it belongs to another user (id {owner})")),
        (true, 0) => None,
        (true, _) => {
            Some(format!("others can write to it (mode {:03o}); `chmod go-w` removes that permission", mode & 0o777))
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_ones_own_where_nobody_else_can_write_it() {
        for (owner, group, mode, me, own) in [
            (7, 7, 0o600, 7, true),
            (7, 7, 0o664, 7, true),
            (7, 9, 0o644, 7, true),
            (7, 9, 0o664, 7, false),
            (7, 7, 0o666, 7, false),
            (0, 0, 0o644, 7, true),
            (0, 0, 0o600, 0, true),
            (0, 0, 0o664, 0, false),
            (7, 7, 0o600, 0, false),
            (8, 7, 0o660, 7, false),
        ] {
            assert_eq!(of_another(owner, group, mode, me).is_none(), own, "{owner} {group} {mode:o} {me}");
        }
    }
}
