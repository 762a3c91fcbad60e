//! Paths that folders record, from themselves: they stay right if everything moves.

use std::path::{Component, Path, PathBuf};

/// Returns the same folder without needless steps (`runs/four/../..` is the current one, empty), unless links make it another folder.
#[must_use]
pub fn plainly(path: PathBuf) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        let in_a_folder = matches!(plain.components().next_back(), Some(Component::Normal(_)));
        match part {
            Component::CurDir => {}
            Component::ParentDir if in_a_folder => drop(plain.pop()),
            Component::ParentDir if plain.has_root() => {}
            part => plain.push(part),
        }
    }
    let real = |path: &Path| Path::new(".").join(path).canonicalize();
    match (real(&path), real(&plain)) {
        (Ok(there), Ok(here)) if there != here => path,
        _ => plain,
    }
}

/// Returns the path from one folder to another, with `..` for each step up; an absolute one if they have nothing in common. Links are not followed.
#[must_use]
pub fn from_there(there: &Path, here: &Path) -> PathBuf {
    let whole = |path: &Path| {
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
        let mut plain = PathBuf::new();
        for part in path.components() {
            match part {
                Component::ParentDir => drop(plain.pop()),
                part => plain.push(part),
            }
        }
        plain
    };
    let (there, here) = (whole(there), whole(here));
    let same = there.components().zip(here.components()).take_while(|(a, b)| a == b).count();
    if same == 0 {
        return here;
    }
    let up = there.components().skip(same).map(|_| Component::ParentDir);
    up.chain(here.components().skip(same)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_leads_from_one_folder_to_another() {
        for (there, here, path) in [
            ("/a/b/c", "/a", "../.."),
            ("/a/b", "/a/b", ""),
            ("/a/b", "/a/c/d", "../c/d"),
            ("/a/./b/../c", "/a/c/d", "d"),
        ] {
            assert_eq!(from_there(Path::new(there), Path::new(here)), Path::new(path), "{there} {here}");
        }
    }

    #[test]
    fn a_folder_is_named_plainly() {
        for (path, plain) in [
            ("no/../data", "data"),
            ("no/..", ""),
            ("./no/../../x", "../x"),
            ("../no", "../no"),
            ("/no/../../x", "/x"),
            ("", ""),
        ] {
            assert_eq!(plainly(path.into()), Path::new(plain), "{path}");
        }
    }
}
