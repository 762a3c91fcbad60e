//! A disk in memory that fills up, fails, and loses power at a chosen operation.
//!
//! A power loss keeps exactly what POSIX promises. Of a file: the synced bytes, and any prefix of later writes. Of names: each creation,
//! rename and removal that is not yet durable may survive or not, independently of the others, except that changes to one name keep their
//! order. As on ext4, syncing a file makes its own creation durable (unless [`SimDisk::with_strict_names`]); a folder's own name becomes
//! durable only by [`Disk::sync_dir`] of its parent.

use super::{Disk, DiskFile, EntryKind, parent};
use polity_kernel::rng::{Draws, Stream};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, ErrorKind, Write};
use std::path::{Component, Path};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A disk in memory. Clones share the same disk. Absolute and relative paths have the same root; `..` is not supported.
///
/// Operations that change something are numbered from 0; simulated failures refer to these numbers.
#[derive(Clone, Default)]
pub struct SimDisk {
    state: Arc<Mutex<State>>,
}

/// A possible state of the disk after a power loss; see [`SimDisk::cuts`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut(Vec<u64>);

type Inode = u64;
const ROOT: Inode = 0;

#[derive(Clone)]
struct State {
    nodes: BTreeMap<Inode, Node>,
    next: Inode,
    /// Name changes that are not durable yet, oldest first.
    pending: Vec<Change>,
    /// Whether syncing a file leaves its name unsynced, as POSIX permits.
    strict_names: bool,
    capacity: u64,
    operations: u64,
    crash_at: Option<u64>,
    crashed: bool,
    fail_at: BTreeMap<u64, ErrorKind>,
    locked: BTreeSet<Inode>,
}

#[derive(Clone)]
enum Node {
    File(Content),
    Dir(Names),
}

#[derive(Clone, Default)]
struct Content {
    bytes: Vec<u8>,
    /// Number of durable bytes.
    synced: usize,
    /// The durable content, if the file was truncated and not synced since.
    before: Option<Vec<u8>>,
}

#[derive(Clone, Default)]
struct Names {
    now: BTreeMap<String, Inode>,
    durable: BTreeMap<String, Inode>,
}

/// A name in a folder.
type Name = (Inode, String);

#[derive(Clone)]
struct Change {
    unset: Option<Name>,
    set: Option<(Name, Inode)>,
    /// Whether it created the file it sets, so that syncing the file makes it durable.
    creates: bool,
}

impl Change {
    fn names(&self) -> impl Iterator<Item = &Name> {
        self.unset.iter().chain(self.set.iter().map(|(name, _)| name))
    }
}

impl Default for State {
    fn default() -> Self {
        State {
            nodes: BTreeMap::from([(ROOT, Node::Dir(Names::default()))]),
            next: ROOT + 1,
            pending: Vec::new(),
            strict_names: false,
            capacity: u64::MAX,
            operations: 0,
            crash_at: None,
            crashed: false,
            fail_at: BTreeMap::new(),
            locked: BTreeSet::new(),
        }
    }
}

impl Content {
    /// Number of states in which the file may survive a power loss. The first has no unsynced bytes, the last has all.
    fn states(&self) -> u64 {
        let unsynced = (self.bytes.len() - self.synced) as u64;
        unsynced + 1 + u64::from(self.before.is_some())
    }

    fn survive(&mut self, state: u64) {
        let kept = match self.before.take() {
            Some(before) if state == 0 => {
                self.bytes = before;
                self.bytes.len()
            }
            Some(_) => state as usize - 1,
            None => self.synced + state as usize,
        };
        self.bytes.truncate(kept);
        self.sync();
    }

    fn empty(&mut self) {
        self.bytes.truncate(self.synced);
        let durable = std::mem::take(&mut self.bytes);
        self.before.get_or_insert(durable);
        self.synced = 0;
    }

    fn sync(&mut self) {
        self.before = None;
        self.synced = self.bytes.len();
    }
}

impl SimDisk {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Creates a disk on which syncing a file does not make its creation durable; only [`Disk::sync_dir`] does.
    #[must_use]
    pub fn with_strict_names() -> SimDisk {
        SimDisk { state: Arc::new(Mutex::new(State { strict_names: true, ..State::default() })) }
    }

    /// Number of operations that changed something or tried to.
    #[must_use]
    pub fn operations(&self) -> u64 {
        self.state().operations
    }

    /// Stops the machine at operation `number`: it and every later call, including reads, fails and does nothing.
    pub fn crash_at(&self, number: u64) {
        self.state().crash_at = Some(number);
    }

    /// Makes operation `number` fail once with this error and do nothing.
    pub fn fail_at(&self, number: u64, kind: ErrorKind) {
        self.state().fail_at.insert(number, kind);
    }

    /// Sets the total capacity of all files in bytes. A write beyond it is cut there; the next one fails with [`ErrorKind::StorageFull`].
    /// Unlimited by default.
    pub fn set_capacity(&self, bytes: u64) {
        self.state().capacity = bytes;
    }

    /// Makes everything durable, as on a machine left alone for a while.
    pub fn settle(&self) {
        let mut state = self.state();
        let all = vec![true; state.pending.len()];
        state.make_durable(all);
        for node in state.nodes.values_mut() {
            if let Node::File(content) = node {
                content.sync();
            }
        }
    }

    /// The disk as another process finds it after this one was killed: all writes are visible, and durability is unchanged.
    #[must_use]
    pub fn after_kill(&self) -> SimDisk {
        let mut state = self.state().clone();
        state.forget_process();
        SimDisk { state: Arc::new(Mutex::new(state)) }
    }

    /// States that a power loss now may leave: all of them if there are at most `limit`, otherwise a deterministic selection of `limit`
    /// (at least 2). The first loses most, the last loses nothing.
    #[must_use]
    pub fn cuts(&self, limit: usize) -> Vec<Cut> {
        let state = self.state();
        let ways = state.ways();
        let total = ways.iter().try_fold(1u64, |total, n| total.checked_mul(*n));
        if let Some(total) = total.filter(|total| *total <= limit as u64) {
            let digits = |mut number: u64| {
                let mut digit = |n: &u64| {
                    let digit = number % n;
                    number /= n;
                    digit
                };
                ways.iter().map(&mut digit).collect()
            };
            return (0..total).map(|number| Cut(digits(number))).collect();
        }
        let mut draws = Draws::new(state.operations, Stream::Driver, 0, 0);
        let mut draw = |n: u64| match draws.below(4) {
            // Errors tend to be at the ends; a uniform draw would rarely hit them.
            0 => 0,
            1 => n - 1,
            _ => draws.below(n),
        };
        let mut cuts = vec![Cut(vec![0; ways.len()])];
        cuts.extend((2..limit).map(|_| Cut(ways.iter().map(|n| draw(*n)).collect())));
        cuts.push(Cut(ways.iter().map(|n| n - 1).collect()));
        cuts
    }

    /// The disk after the power returns, for one of its present [`SimDisk::cuts`].
    #[must_use]
    pub fn after_power_loss(&self, cut: &Cut) -> SimDisk {
        let mut state = self.state().clone();
        let mut choices = cut.0.iter().copied();
        for inode in state.reachable() {
            if let Some(Node::File(content)) = state.nodes.get_mut(&inode) {
                content.survive(choices.next().unwrap_or(0));
            }
        }
        let kept = state.pending.iter().map(|_| choices.next() == Some(1)).collect();
        state.make_durable(kept);
        state.pending.clear();
        for node in state.nodes.values_mut() {
            if let Node::Dir(names) = node {
                names.now = names.durable.clone();
            }
        }
        let reachable = state.reachable();
        state.nodes.retain(|inode, _| reachable.contains(inode));
        state.forget_process();
        SimDisk { state: Arc::new(Mutex::new(state)) }
    }
}

impl State {
    fn forget_process(&mut self) {
        self.locked.clear();
        self.fail_at.clear();
        self.crash_at = None;
        self.crashed = false;
        self.operations = 0;
    }

    fn running(&self) -> io::Result<()> {
        if self.crashed { Err(io::Error::other("simulated crash")) } else { Ok(()) }
    }

    /// Must be called before every operation that changes something.
    fn operation(&mut self, path: &Path) -> io::Result<()> {
        self.crashed |= self.crash_at == Some(self.operations);
        self.running()?;
        let number = self.operations;
        self.operations += 1;
        match self.fail_at.remove(&number) {
            Some(kind) => Err(error(kind, path)),
            None => Ok(()),
        }
    }

    fn find(&self, path: &Path) -> io::Result<Inode> {
        let mut at = ROOT;
        for part in path.components() {
            match part {
                Component::Normal(name) => {
                    let names = self.names(at, path)?;
                    at = *names.now.get(&*name.to_string_lossy()).ok_or_else(|| error(ErrorKind::NotFound, path))?;
                }
                Component::ParentDir => return Err(error(ErrorKind::Unsupported, path)),
                _ => {}
            }
        }
        Ok(at)
    }

    /// The folder that holds (or would hold) `path`, and the name in it.
    fn place(&self, path: &Path) -> io::Result<Name> {
        let name = path.file_name().ok_or_else(|| error(ErrorKind::InvalidInput, path))?;
        let dir = self.find(parent(path))?;
        self.names(dir, path)?;
        Ok((dir, name.to_string_lossy().into_owned()))
    }

    fn names(&self, inode: Inode, path: &Path) -> io::Result<&Names> {
        match self.nodes.get(&inode) {
            Some(Node::Dir(names)) => Ok(names),
            _ => Err(error(ErrorKind::NotADirectory, path)),
        }
    }

    fn content(&mut self, inode: Inode, path: &Path) -> io::Result<&mut Content> {
        match self.nodes.get_mut(&inode) {
            Some(Node::File(content)) => Ok(content),
            _ => Err(error(ErrorKind::IsADirectory, path)),
        }
    }

    fn change(&mut self, change: Change) {
        change.apply(&mut self.nodes, |names| &mut names.now);
        self.pending.push(change);
    }

    fn add(&mut self, at: Name, node: Node) -> Inode {
        let inode = self.next;
        self.next += 1;
        let creates = matches!(node, Node::File(_));
        self.nodes.insert(inode, node);
        self.change(Change { unset: None, set: Some((at, inode)), creates });
        inode
    }

    /// Finds a file, or creates an empty one.
    fn open(&mut self, path: &Path) -> io::Result<Inode> {
        let at = self.place(path)?;
        match self.find(path) {
            Ok(inode) => self.content(inode, path).map(|_| inode),
            Err(_) => {
                self.operation(path)?;
                Ok(self.add(at, Node::File(Content::default())))
            }
        }
    }

    fn remove(&mut self, path: &Path) -> io::Result<()> {
        let at = self.place(path)?;
        self.operation(path)?;
        self.change(Change { unset: Some(at), set: None, creates: false });
        Ok(())
    }

    fn remove_all(&mut self, path: &Path) -> io::Result<()> {
        let names: Vec<String> = match self.names(self.find(path)?, path) {
            Ok(names) => names.now.keys().cloned().collect(),
            Err(_) => Vec::new(),
        };
        names.iter().try_for_each(|name| self.remove_all(&path.join(name)))?;
        self.remove(path)
    }

    /// Makes the chosen pending changes durable, and the earlier ones of the same names.
    fn make_durable(&mut self, mut chosen: Vec<bool>) {
        let mut names = BTreeSet::new();
        for (change, chosen) in self.pending.iter().zip(&mut chosen).rev() {
            *chosen |= change.names().any(|name| names.contains(name));
            if *chosen {
                names.extend(change.names());
            }
        }
        let mut chosen = chosen.into_iter();
        let (durable, pending) =
            std::mem::take(&mut self.pending).into_iter().partition::<Vec<_>, _>(|_| chosen.next() == Some(true));
        for change in durable {
            change.apply(&mut self.nodes, |names| &mut names.durable);
        }
        self.pending = pending;
    }

    /// Number of ways in which each thing may survive a power loss: files first, then pending changes.
    fn ways(&self) -> Vec<u64> {
        let files = self.reachable().into_iter().filter_map(|inode| match self.nodes.get(&inode) {
            Some(Node::File(content)) => Some(content.states()),
            _ => None,
        });
        files.chain(self.pending.iter().map(|_| 2)).collect()
    }

    /// Every inode that has a name now or may have one after a power loss.
    fn reachable(&self) -> BTreeSet<Inode> {
        let mut found = BTreeSet::from([ROOT]);
        let mut open = vec![ROOT];
        while let Some(inode) = open.pop() {
            let Some(Node::Dir(names)) = self.nodes.get(&inode) else {
                continue;
            };
            let pending = self.pending.iter().filter_map(|change| change.set.as_ref());
            let pending = pending.filter(|((dir, _), _)| *dir == inode).map(|(_, inode)| inode);
            open.extend(names.now.values().chain(names.durable.values()).chain(pending).filter(|i| found.insert(**i)));
        }
        found
    }

    fn room(&self) -> u64 {
        if self.capacity == u64::MAX {
            return u64::MAX;
        }
        let mut used = 0;
        let mut open = vec![ROOT];
        while let Some(inode) = open.pop() {
            match self.nodes.get(&inode) {
                Some(Node::Dir(names)) => open.extend(names.now.values()),
                Some(Node::File(content)) => used += content.bytes.len() as u64,
                None => {}
            }
        }
        self.capacity.saturating_sub(used)
    }
}

impl Change {
    fn apply(&self, nodes: &mut BTreeMap<Inode, Node>, which: impl Fn(&mut Names) -> &mut BTreeMap<String, Inode>) {
        if let Some((dir, name)) = &self.unset
            && let Some(Node::Dir(names)) = nodes.get_mut(dir)
        {
            which(names).remove(name);
        }
        if let Some(((dir, name), inode)) = &self.set
            && let Some(Node::Dir(names)) = nodes.get_mut(dir)
        {
            which(names).insert(name.clone(), *inode);
        }
    }
}

fn error(kind: ErrorKind, path: &Path) -> io::Error {
    io::Error::new(kind, format!("{}: {kind}", path.display()))
}

struct SimFile {
    disk: SimDisk,
    inode: Inode,
    path: std::path::PathBuf,
}

impl Write for SimFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut state = self.disk.state();
        if bytes.is_empty() {
            return state.running().map(|()| 0);
        }
        state.operation(&self.path)?;
        let room = state.room();
        if room == 0 {
            return Err(error(ErrorKind::StorageFull, &self.path));
        }
        let written = bytes.len().min(usize::try_from(room).unwrap_or(usize::MAX));
        state.content(self.inode, &self.path)?.bytes.extend_from_slice(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.disk.state().running()
    }
}

impl DiskFile for SimFile {
    fn sync(&mut self) -> io::Result<()> {
        let mut state = self.disk.state();
        state.operation(&self.path)?;
        state.content(self.inode, &self.path)?.sync();
        let strict = state.strict_names;
        let creation =
            |change: &Change| !strict && change.creates && change.set.as_ref().is_some_and(|set| set.1 == self.inode);
        let chosen = state.pending.iter().map(creation).collect();
        state.make_durable(chosen);
        Ok(())
    }
}

struct SimLock {
    disk: SimDisk,
    inode: Inode,
}

impl Drop for SimLock {
    fn drop(&mut self) {
        self.disk.state().locked.remove(&self.inode);
    }
}

impl SimDisk {
    fn file(&self, inode: Inode, path: &Path) -> Box<dyn DiskFile> {
        Box::new(SimFile { disk: self.clone(), inode, path: path.to_owned() })
    }
}

impl Disk for SimDisk {
    fn free(&self, _: &Path) -> io::Result<Option<u64>> {
        Ok(Some(self.state().room()))
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        let mut state = self.state();
        state.running()?;
        let inode = state.open(path)?;
        if !state.content(inode, path)?.bytes.is_empty() {
            state.operation(path)?;
            state.content(inode, path)?.empty();
        }
        Ok(self.file(inode, path))
    }

    fn append(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        let mut state = self.state();
        state.running()?;
        let inode = state.open(path)?;
        Ok(self.file(inode, path))
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let mut state = self.state();
        state.running()?;
        let inode = state.find(path)?;
        Ok(state.content(inode, path)?.bytes.clone())
    }

    fn kind(&self, path: &Path) -> io::Result<EntryKind> {
        let state = self.state();
        state.running()?;
        let inode = state.find(path)?;
        Ok(match state.nodes.get(&inode) {
            Some(Node::Dir(_)) => EntryKind::Folder,
            _ => EntryKind::File,
        })
    }

    fn len(&self, path: &Path) -> io::Result<u64> {
        let mut state = self.state();
        state.running()?;
        let inode = state.find(path)?;
        Ok(state.content(inode, path)?.bytes.len() as u64)
    }

    fn truncate(&self, path: &Path, len: u64) -> io::Result<()> {
        let mut state = self.state();
        state.running()?;
        let inode = state.find(path)?;
        state.content(inode, path)?;
        state.operation(path)?;
        let content = state.content(inode, path)?;
        content.bytes.resize(len as usize, 0);
        content.sync();
        Ok(())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.running()?;
        let inode = state.find(from)?;
        let (unset, set) = (state.place(from)?, state.place(to)?);
        let is_dir = matches!(state.nodes.get(&inode), Some(Node::Dir(_)));
        if is_dir && to != from && to.starts_with(from) {
            return Err(error(ErrorKind::InvalidInput, to));
        }
        match state.find(to).ok().and_then(|old| state.nodes.get(&old)) {
            Some(Node::Dir(_)) if !is_dir => return Err(error(ErrorKind::IsADirectory, to)),
            Some(Node::Dir(old)) if !old.now.is_empty() => return Err(error(ErrorKind::DirectoryNotEmpty, to)),
            Some(Node::File(_)) if is_dir => return Err(error(ErrorKind::NotADirectory, to)),
            _ => {}
        }
        state.operation(from)?;
        state.change(Change { unset: Some(unset), set: Some((set, inode)), creates: false });
        Ok(())
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.running()?;
        let inode = state.find(path)?;
        state.content(inode, path)?;
        state.remove(path)
    }

    fn remove_dir_all(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.running()?;
        state.names(state.find(path)?, path)?;
        state.remove_all(path)
    }

    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.running()?;
        let folders: Vec<&Path> = path.ancestors().filter(|folder| folder.file_name().is_some()).collect();
        for folder in folders.into_iter().rev() {
            match state.find(folder) {
                Ok(inode) => {
                    state.names(inode, folder)?;
                }
                Err(_) => {
                    let at = state.place(folder)?;
                    state.operation(folder)?;
                    state.add(at, Node::Dir(Names::default()));
                }
            }
        }
        Ok(())
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        let state = self.state();
        state.running()?;
        Ok(state.find(path).is_ok())
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        let state = self.state();
        state.running()?;
        Ok(state.names(state.find(dir)?, dir)?.now.keys().cloned().collect())
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.running()?;
        let inode = state.find(dir)?;
        state.names(inode, dir)?;
        state.operation(dir)?;
        let chosen = state.pending.iter().map(|change| change.names().any(|(dir, _)| *dir == inode)).collect();
        state.make_durable(chosen);
        Ok(())
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn Send>> {
        let mut state = self.state();
        state.running()?;
        let inode = state.open(path)?;
        if !state.locked.insert(inode) {
            return Err(error(ErrorKind::WouldBlock, path));
        }
        Ok(Box::new(SimLock { disk: self.clone(), inode }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::{create_dir_durably, write_atomically};

    fn write(disk: &SimDisk, path: &str, bytes: &[u8], sync: bool) {
        let mut file = disk.append(Path::new(path)).unwrap();
        file.write_all(bytes).unwrap();
        if sync {
            file.sync().unwrap();
        }
    }

    /// The content of `path` in every state after a power loss, `None` where it is missing; sorted, without duplicates.
    fn survivors(disk: &SimDisk, path: &str) -> Vec<Option<String>> {
        let read = |cut: &Cut| disk.after_power_loss(cut).read(Path::new(path)).ok();
        let all: BTreeSet<_> = disk.cuts(10_000).iter().map(read).collect();
        all.into_iter().map(|bytes| bytes.map(|b| String::from_utf8(b).unwrap())).collect()
    }

    fn some(texts: &[&str]) -> Vec<Option<String>> {
        texts.iter().map(|text| Some((*text).to_owned())).collect()
    }

    #[test]
    fn any_prefix_of_unsynced_bytes_survives() {
        let disk = SimDisk::default();
        write(&disk, "f", b"ab", true);
        write(&disk, "f", b"cd", false);
        assert_eq!(survivors(&disk, "f"), some(&["ab", "abc", "abcd"]));
        write(&disk, "f", b"e", true);
        assert_eq!(survivors(&disk, "f"), some(&["abcde"]));
    }

    #[test]
    fn an_emptied_file_may_come_back() {
        let disk = SimDisk::default();
        write(&disk, "f", b"old", true);
        write(&disk, "f", b"er", false);
        disk.create(Path::new("f")).unwrap().write_all(b"n").unwrap();
        disk.create(Path::new("f")).unwrap().write_all(b"xy").unwrap();
        assert_eq!(survivors(&disk, "f"), some(&["", "old", "x", "xy"]));
        disk.truncate(Path::new("f"), 1).unwrap();
        assert_eq!(survivors(&disk, "f"), some(&["x"]));
    }

    #[test]
    fn a_creation_is_durable_after_a_sync_of_the_file_or_of_its_folder() {
        let disk = SimDisk::default();
        write(&disk, "f", b"a", false);
        assert_eq!(survivors(&disk, "f"), [vec![None], some(&["", "a"])].concat());
        disk.sync_dir(Path::new("/")).unwrap();
        assert_eq!(survivors(&disk, "f"), some(&["", "a"]));
        write(&disk, "g", b"a", true);
        assert_eq!(survivors(&disk, "g"), some(&["a"]));

        let strict = SimDisk::with_strict_names();
        write(&strict, "g", b"a", true);
        assert_eq!(survivors(&strict, "g"), [vec![None], some(&["a"])].concat());
        strict.sync_dir(Path::new("/")).unwrap();
        assert_eq!(survivors(&strict, "g"), some(&["a"]));
    }

    #[test]
    fn a_file_in_a_folder_that_is_not_durable_is_lost_with_it() {
        let disk = SimDisk::default();
        disk.create_dir_all(Path::new("a/b")).unwrap();
        write(&disk, "a/b/f", b"x", true);
        disk.sync_dir(Path::new("a")).unwrap();
        assert_eq!(survivors(&disk, "a/b/f"), [vec![None], some(&["x"])].concat());
        disk.sync_dir(Path::new("")).unwrap();
        assert_eq!(survivors(&disk, "a/b/f"), some(&["x"]));

        create_dir_durably(&disk, Path::new("/a/c/d")).unwrap();
        write(&disk, "a/c/d/f", b"x", true);
        assert_eq!(survivors(&disk, "a/c/d/f"), some(&["x"]));
    }

    #[test]
    fn renames_and_removals_survive_or_not_until_the_folder_is_synced() {
        let disk = SimDisk::default();
        write(&disk, "old", b"1", true);
        write(&disk, "new", b"2", true);
        disk.rename(Path::new("new"), Path::new("old")).unwrap();
        assert_eq!(survivors(&disk, "old"), some(&["1", "2"]));
        assert_eq!(survivors(&disk, "new"), [vec![None], some(&["2"])].concat());
        // Its creation was durable, the rename is not, even though the file is synced again under its new name.
        write(&disk, "old", b"3", true);
        assert_eq!(survivors(&disk, "old"), some(&["1", "23"]));
        disk.sync_dir(Path::new(".")).unwrap();
        assert_eq!(survivors(&disk, "old"), some(&["23"]));
        assert_eq!(survivors(&disk, "new"), [None]);

        disk.remove_file(Path::new("old")).unwrap();
        assert_eq!(survivors(&disk, "old"), [vec![None], some(&["23"])].concat());
        disk.sync_dir(Path::new(".")).unwrap();
        assert_eq!(survivors(&disk, "old"), [None]);
    }

    #[test]
    fn changes_of_one_name_keep_their_order() {
        let disk = SimDisk::default();
        write(&disk, "a", b"1", true);
        disk.rename(Path::new("a"), Path::new("b")).unwrap();
        write(&disk, "a", b"2", true);
        // The second `a` is durable, so the rename that made room for it is.
        assert_eq!(survivors(&disk, "b"), some(&["1"]));
        assert_eq!(survivors(&disk, "a"), some(&["2"]));
    }

    #[test]
    fn a_move_between_folders_is_one_step() {
        let disk = SimDisk::default();
        create_dir_durably(&disk, Path::new("a")).unwrap();
        create_dir_durably(&disk, Path::new("b")).unwrap();
        write(&disk, "a/f", b"x", true);
        disk.rename(Path::new("a/f"), Path::new("b/f")).unwrap();
        for cut in disk.cuts(100) {
            let disk = disk.after_power_loss(&cut);
            let places = ["a/f", "b/f"].iter().filter(|path| disk.exists(Path::new(path)).unwrap()).count();
            assert_eq!(places, 1);
        }
    }

    #[test]
    fn cuts_are_all_states_or_a_repeatable_sample_with_both_ends() {
        let disk = SimDisk::default();
        write(&disk, "f", &[b'x'; 20], true);
        write(&disk, "f", &[b'y'; 1000], false);
        disk.rename(Path::new("f"), Path::new("g")).unwrap();
        let all = disk.cuts(2002);
        assert_eq!(all.len(), 2002);
        assert!(all.iter().enumerate().all(|(i, cut)| !all[..i].contains(cut)), "each once");
        let sample = disk.cuts(50);
        assert_eq!((sample.len(), &sample), (50, &disk.cuts(50)));
        assert!(sample.iter().all(|cut| all.contains(cut)));
        let (first, last) = (disk.after_power_loss(&sample[0]), disk.after_power_loss(&sample[49]));
        assert_eq!(first.len(Path::new("f")).unwrap(), 20);
        assert_eq!(last.len(Path::new("g")).unwrap(), 1020);
    }

    #[test]
    fn a_crash_stops_everything_and_a_kill_loses_nothing() {
        let disk = SimDisk::default();
        write(&disk, "f", b"ab", false);
        let held = disk.lock(Path::new("lock")).unwrap();
        assert_eq!(disk.operations(), 3);
        disk.crash_at(4);
        let mut file = disk.append(Path::new("f")).unwrap();
        file.write_all(b"c").unwrap();
        let crash = file.write_all(b"d").unwrap_err();
        assert_eq!((crash.kind(), crash.to_string().as_str()), (ErrorKind::Other, "simulated crash"));
        assert!(file.sync().is_err() && disk.read(Path::new("f")).is_err() && disk.lock(Path::new("l")).is_err());

        let next = disk.after_kill();
        assert_eq!(next.read(Path::new("f")).unwrap(), b"abc");
        assert!(next.lock(Path::new("lock")).is_ok());
        assert_eq!(survivors(&next, "f"), [vec![None], some(&["", "a", "ab", "abc"])].concat());
        next.settle();
        assert_eq!(survivors(&next, "f"), some(&["abc"]));
        drop(held);
    }

    #[test]
    fn one_operation_can_fail() {
        let disk = SimDisk::default();
        disk.fail_at(1, ErrorKind::PermissionDenied);
        let mut file = disk.create(Path::new("f")).unwrap();
        assert_eq!(file.write_all(b"a").unwrap_err().kind(), ErrorKind::PermissionDenied);
        file.write_all(b"b").unwrap();
        assert_eq!(disk.read(Path::new("f")).unwrap(), b"b");
    }

    #[test]
    fn a_full_disk_takes_what_fits_until_there_is_room() {
        let disk = SimDisk::default();
        write(&disk, "f", b"12345", true);
        disk.set_capacity(7);
        let mut file = disk.create(Path::new("g")).unwrap();
        assert_eq!(file.write_all(b"abc").unwrap_err().kind(), ErrorKind::StorageFull);
        assert_eq!(disk.read(Path::new("g")).unwrap(), b"ab");
        disk.remove_file(Path::new("f")).unwrap();
        file.write_all(b"c").unwrap();
        disk.set_capacity(4);
        assert_eq!(file.write_all(b"de").unwrap_err().kind(), ErrorKind::StorageFull);
        assert_eq!(disk.read(Path::new("g")).unwrap(), b"abcd");
    }

    #[test]
    fn an_atomic_write_is_old_or_new_wherever_it_is_cut() {
        let path = Path::new("run/manifest.json");
        let start = || {
            let disk = SimDisk::default();
            create_dir_durably(&disk, Path::new("run")).unwrap();
            write_atomically(&disk, path, b"old").unwrap();
            disk
        };
        let whole = start();
        let from = whole.operations();
        write_atomically(&whole, path, b"newer").unwrap();
        assert_eq!(survivors(&whole, "run/manifest.json"), some(&["newer"]), "durable once it returns");
        let mut seen = BTreeSet::new();
        for at in from..whole.operations() {
            let disk = start();
            disk.crash_at(at);
            write_atomically(&disk, path, b"newer").unwrap_err();
            seen.extend(survivors(&disk, "run/manifest.json"));
        }
        assert_eq!(seen.into_iter().collect::<Vec<_>>(), some(&["newer", "old"]));

        let full = start();
        full.set_capacity(5);
        assert_eq!(write_atomically(&full, path, b"newer").unwrap_err().kind(), ErrorKind::StorageFull);
        assert_eq!(full.list(Path::new("run")).unwrap(), ["manifest.json"], "the half-written file is gone");
    }
}
