//! The machine's own disk.

use super::{Disk, DiskFile, EntryKind, SyncBeside, parent};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// The machine's own disk.
#[derive(Clone, Copy, Debug, Default)]
pub struct RealDisk;

struct RealFile {
    file: File,
    path: PathBuf,
}

/// The standard library's errors do not name the file.
fn about(path: &Path) -> impl Fn(io::Error) -> io::Error {
    move |error| {
        let hint = match error.kind() {
            io::ErrorKind::FileTooLarge => "; files cannot be that large here (ulimit -f): raise that limit",
            _ => "",
        };
        io::Error::new(error.kind(), format!("{}: {error}{hint}", path.display()))
    }
}

impl Write for RealFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes).map_err(about(&self.path))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush().map_err(about(&self.path))
    }
}

impl DiskFile for RealFile {
    fn sync(&mut self) -> io::Result<()> {
        self.file.sync_all().map_err(about(&self.path))
    }

    fn sync_beside(&self) -> Option<SyncBeside> {
        let (file, path) = (self.file.try_clone().ok()?, self.path.clone());
        Some(Box::new(move || file.sync_all().map_err(about(&path))))
    }
}

fn open(path: &Path, options: &mut OpenOptions) -> io::Result<Box<dyn DiskFile>> {
    let file = plain(options).open(path).map_err(about(path))?;
    Ok(Box::new(RealFile { file, path: path.to_owned() }))
}

/// Makes open refuse links, and never wait for the other end of a FIFO.
#[cfg(unix)]
fn plain(options: &mut OpenOptions) -> &mut OpenOptions {
    use rustix::fs::OFlags;
    use std::os::unix::fs::OpenOptionsExt;
    options.custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed())
}

#[cfg(not(unix))]
fn plain(options: &mut OpenOptions) -> &mut OpenOptions {
    options
}

fn kind_of(kind: fs::FileType) -> EntryKind {
    #[cfg(unix)]
    {
        use std::os::unix::fs::FileTypeExt;
        if kind.is_fifo() {
            return EntryKind::Other("a FIFO");
        }
        if kind.is_socket() {
            return EntryKind::Other("a socket");
        }
    }
    match () {
        () if kind.is_file() => EntryKind::File,
        () if kind.is_dir() => EntryKind::Folder,
        () if kind.is_symlink() => EntryKind::Other("a link"),
        () => EntryKind::Other("a device"),
    }
}

impl Disk for RealDisk {
    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        open(path, OpenOptions::new().write(true).create(true).truncate(true))
    }

    fn append(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        open(path, OpenOptions::new().append(true).create(true))
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let read = || {
            if let EntryKind::Other(what) = kind_of(fs::symlink_metadata(path)?.file_type()) {
                return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("it is {what}, not a regular file")));
            }
            let file = plain(OpenOptions::new().read(true)).open(path)?;
            // Check again on the file that was actually opened.
            let metadata = file.metadata()?;
            match kind_of(metadata.file_type()) {
                EntryKind::File => {}
                EntryKind::Folder => return Err(io::ErrorKind::IsADirectory.into()),
                EntryKind::Other(_) => return Err(io::ErrorKind::InvalidInput.into()),
            }
            let mut bytes = Vec::new();
            bytes.try_reserve_exact(usize::try_from(metadata.len()).unwrap_or(usize::MAX))?;
            file.take(metadata.len()).read_to_end(&mut bytes)?;
            Ok(bytes)
        };
        read().map_err(about(path))
    }

    fn kind(&self, path: &Path) -> io::Result<EntryKind> {
        fs::symlink_metadata(path).map(|metadata| kind_of(metadata.file_type())).map_err(about(path))
    }

    fn len(&self, path: &Path) -> io::Result<u64> {
        Ok(fs::metadata(path).map_err(about(path))?.len())
    }

    fn truncate(&self, path: &Path, len: u64) -> io::Result<()> {
        let cut = || {
            let file = plain(OpenOptions::new().write(true)).open(path)?;
            file.set_len(len)?;
            file.sync_all()
        };
        cut().map_err(about(path))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to).map_err(about(from))
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path).map_err(about(path))
    }

    fn remove_dir_all(&self, path: &Path) -> io::Result<()> {
        fs::remove_dir_all(path).map_err(about(path))
    }

    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        fs::create_dir_all(path).map_err(about(path))
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        path.try_exists().map_err(about(path))
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        let name = |entry: io::Result<fs::DirEntry>| Ok(entry?.file_name().to_string_lossy().into_owned());
        let names: io::Result<Vec<String>> = fs::read_dir(dir).and_then(|entries| entries.map(name).collect());
        let mut names = names.map_err(about(dir))?;
        names.sort_unstable();
        Ok(names)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        // Elsewhere a folder cannot be opened as a file, and its names need no sync.
        if cfg!(unix) {
            File::open(dir).and_then(|dir| dir.sync_all()).map_err(about(dir))?;
        }
        Ok(())
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn Send>> {
        let mut options = OpenOptions::new();
        let options = options.write(true).create(true).truncate(false);
        let file = plain(options).open(path).map_err(about(path))?;
        match file.try_lock() {
            Ok(()) => Ok(Box::new(file)),
            Err(TryLockError::WouldBlock) => Err(io::Error::new(
                io::ErrorKind::WouldBlock,
                format!("another process is working in {} (it holds {})", parent(path).display(), path.display()),
            )),
            Err(TryLockError::Error(error)) => Err(about(path)(error)),
        }
    }

    #[cfg(unix)]
    fn free(&self, dir: &Path) -> io::Result<Option<u64>> {
        let space = rustix::fs::statvfs(dir).map_err(|error| about(dir)(error.into()))?;
        Ok(Some(space.f_bavail.saturating_mul(space.f_frsize)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::{SimDisk, create_dir_durably, write_atomically};

    /// Both disks must give the same results for the same steps; otherwise tests on the simulated disk prove nothing about the real one.
    fn tour(disk: &dyn Disk, base: &Path) -> Vec<String> {
        let mut log = Vec::new();
        let mut note = |what: &str, result: io::Result<String>| {
            log.push(format!("{what}: {}", result.unwrap_or_else(|e| format!("{:?}", e.kind()))));
        };
        let text = |path: &Path| Ok(String::from_utf8_lossy(&disk.read(path)?).into_owned());
        let done = |result: io::Result<()>| result.map(|()| "done".to_owned());
        let (dir, file, other) = (base.join("a/b"), base.join("a/b/file"), base.join("a/other"));

        note("create without folder", disk.create(&file).map(|_| String::new()));
        note("durable folder", done(create_dir_durably(disk, &dir)));
        note("again", done(create_dir_durably(disk, &dir)));
        note(
            "create",
            disk.create(&file).and_then(|mut f| f.write_all(b"one").and_then(|()| f.sync())).map(|()| String::new()),
        );
        note("append", disk.append(&file).and_then(|mut f| f.write_all(b" two")).map(|()| String::new()));
        note("append to none", disk.append(&other).and_then(|mut f| f.write_all(b"x")).map(|()| String::new()));
        note("read", text(&file));
        note("length", disk.len(&file).map(|n| n.to_string()));
        note("cut", done(disk.truncate(&file, 2)));
        note("read", text(&file));
        note("extend", done(disk.truncate(&file, 4)));
        note("read", text(&file));
        note("cut none", done(disk.truncate(&base.join("none"), 2)));
        note("read none", text(&base.join("none")));
        for name in ["a/b", "a/b/file", "none"] {
            note("kind", disk.kind(&base.join(name)).map(|kind| format!("{kind:?}")));
        }
        note("read folder", text(&dir));
        note("list", disk.list(&base.join("a")).map(|names| names.join(",")));
        note("list none", disk.list(&base.join("none")).map(|names| names.join(",")));
        note("list file", disk.list(&file).map(|names| names.join(",")));
        note("rename over", done(disk.rename(&other, &file)));
        note("read", text(&file));
        note("rename none", done(disk.rename(&other, &file)));
        note("rename folder", done(disk.rename(&dir, &base.join("c"))));
        note("rename into itself", done(disk.rename(&base.join("c"), &base.join("c/d"))));
        note("read moved", text(&base.join("c/file")));
        note("folder over full folder", done(disk.rename(&base.join("a"), &base.join("c"))));
        note("write atomically", done(write_atomically(disk, &base.join("c/file"), b"new")));
        note("read", text(&base.join("c/file")));
        note("list", disk.list(&base.join("c")).map(|names| names.join(",")));
        note("create empties", disk.create(&base.join("c/file")).map(|_| String::new()));
        note("read", text(&base.join("c/file")));
        note("sync folder", done(disk.sync_dir(&base.join("c"))));
        note("sync none", done(disk.sync_dir(&base.join("none"))));
        note("exists", disk.exists(&base.join("c/file")).map(|yes| yes.to_string()));
        note("remove", done(disk.remove_file(&base.join("c/file"))));
        note("remove none", done(disk.remove_file(&base.join("c/file"))));
        note("exists", disk.exists(&base.join("c/file")).map(|yes| yes.to_string()));
        let held = disk.lock(&base.join("lock"));
        note("lock", held.as_ref().map(|_| String::new()).map_err(|e| e.kind().into()));
        note("lock again", disk.lock(&base.join("lock")).map(|_| String::new()));
        drop(held);
        note("lock after release", disk.lock(&base.join("lock")).map(|_| String::new()));
        note("remove all", done(disk.remove_dir_all(&base.join("a"))));
        note("remove all of none", done(disk.remove_dir_all(&base.join("a"))));
        note("list", disk.list(base).map(|names| names.join(",")));
        log
    }

    #[test]
    fn the_simulated_disk_does_as_the_real_one() {
        let folder = tempfile::tempdir().unwrap();
        let real = tour(&RealDisk, folder.path());
        let sim = SimDisk::default();
        sim.create_dir_all(folder.path()).unwrap();
        assert_eq!(tour(&sim, folder.path()), real);
        assert!(real.contains(&"lock again: WouldBlock".to_owned()), "{real:#?}");
        assert!(real.contains(&"lock after release: ".to_owned()), "{real:#?}");
    }

    #[test]
    #[cfg(unix)]
    fn what_is_no_regular_file_is_neither_read_nor_written() {
        let folder = tempfile::tempdir().unwrap();
        let (outside, link, fifo) =
            (folder.path().join("outside"), folder.path().join("link"), folder.path().join("fifo"));
        fs::write(&outside, "kept").unwrap();
        std::os::unix::fs::symlink(&outside, &link).unwrap();
        let made = std::process::Command::new("mkfifo").arg(&fifo).status().unwrap();
        assert!(made.success());
        let zero = folder.path().join("zero");
        std::os::unix::fs::symlink("/dev/zero", &zero).unwrap();
        for (path, what) in [(&link, "a link"), (&zero, "a link"), (&fifo, "a FIFO")] {
            assert_eq!(RealDisk.kind(path).unwrap(), EntryKind::Other(what));
            let error = RealDisk.read(path).unwrap_err().to_string();
            assert!(error.contains(what) && error.contains(&path.display().to_string()), "{error}");
            assert!(RealDisk.create(path).is_err(), "{}", path.display());
            assert!(RealDisk.truncate(path, 0).is_err(), "{}", path.display());
        }
        assert!(RealDisk.append(&link).is_err() && RealDisk.lock(&link).is_err());
        assert!(RealDisk.read(Path::new("/dev/zero")).is_err(), "a device is not read without end");
        assert_eq!(fs::read(&outside).unwrap(), b"kept");
    }

    #[test]
    fn errors_name_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let error = RealDisk.read(&folder.path().join("none")).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        assert!(error.to_string().contains("none"), "{error}");
    }

    const HELD: &str = "POLITY_TEST_HELD_FILE";

    /// Not a test of its own: the second process of the test below.
    #[test]
    fn second_process() {
        if let Some(path) = std::env::var_os(HELD) {
            let refused = RealDisk.lock(Path::new(&path)).err().map(|e| e.kind());
            assert_eq!(refused, Some(io::ErrorKind::WouldBlock));
        }
    }

    #[test]
    fn a_second_process_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let second = || {
            std::process::Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "disk::real::tests::second_process"])
                .env(HELD, &path)
                .output()
                .unwrap()
        };
        let held = RealDisk.lock(&path).unwrap();
        let refused = second();
        assert!(refused.status.success(), "{}", String::from_utf8_lossy(&refused.stdout));
        assert!(String::from_utf8_lossy(&refused.stdout).contains("1 passed"), "the second process ran its test");
        drop(held);
        assert!(!second().status.success(), "a released lock is free for others");
    }
}
