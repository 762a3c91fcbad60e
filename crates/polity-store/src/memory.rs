//! Available memory, as reported by the system. Linux reports it in files; elsewhere it is unknown, and nothing is refused.

use std::fs::read_to_string;
use std::path::{Path, PathBuf};

/// Bytes that this process may still allocate: free memory, within the limits of its control groups and its address space.
#[must_use]
pub fn available() -> Option<u64> {
    let free = entry_mb("/proc/meminfo", "MemAvailable:").map(|mb| (mb * 1e6) as u64);
    let space = address_space().map(|most| {
        let taken = entry_mb("/proc/self/status", "VmSize:").map_or(0, |mb| (mb * 1e6) as u64);
        most.saturating_sub(taken)
    });
    [free, space, of_groups(Path::new("/sys/fs/cgroup"))].into_iter().flatten().min()
}

/// An entry of a Linux memory file, in MB (10^6 bytes), such as `VmHWM:` of `/proc/self/status`. `None` if the file or entry is missing.
#[must_use]
pub fn entry_mb(file: &str, entry: &str) -> Option<f64> {
    let text = read_to_string(file).ok()?;
    let rest = text.lines().find_map(|line| line.strip_prefix(entry))?;
    let kib: f64 = rest.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some((kib * 1.024 / 10.0).round() / 100.0)
}

/// The limit of the address space in bytes (`ulimit -v`), if any.
fn address_space() -> Option<u64> {
    let text = read_to_string("/proc/self/limits").ok()?;
    let rest = text.lines().find_map(|line| line.strip_prefix("Max address space"))?;
    rest.split_whitespace().next()?.parse().ok()
}

/// The least memory left by the control groups of this process.
fn of_groups(root: &Path) -> Option<u64> {
    let own = read_to_string("/proc/self/cgroup").ok()?;
    own.lines().filter_map(|line| of_group(root, line)).min()
}

/// The same for a line of `/proc/self/cgroup`: `0::/a/b` in version 2, `7:memory:/a/b` in version 1. Parent groups also limit a group.
fn of_group(root: &Path, line: &str) -> Option<u64> {
    let mut parts = line.splitn(3, ':');
    let (_, kinds, path) = (parts.next()?, parts.next()?, parts.next()?);
    let (mount, most, taken, idle) = match kinds {
        "" => (root.to_path_buf(), "memory.max", "memory.current", "inactive_file"),
        kinds if kinds.split(',').any(|kind| kind == "memory") => {
            (root.join("memory"), "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
        }
        _ => return None,
    };
    let number = |path: PathBuf| read_to_string(path).ok()?.trim().parse::<u64>().ok();
    let own = mount.join(path.trim_start_matches('/'));
    let groups = own.ancestors().take_while(|group| group.starts_with(&mount)).map(Path::to_path_buf);
    let left = |group: PathBuf| {
        let most = number(group.join(most))?;
        // Unused file caches are reclaimed first.
        let stat = read_to_string(group.join("memory.stat")).unwrap_or_default();
        let of = |line: &str| line.strip_prefix(idle)?.trim().parse::<u64>().ok();
        let idle = stat.lines().find_map(of).unwrap_or(0);
        Some(most.saturating_sub(number(group.join(taken))?.saturating_sub(idle)))
    };
    groups.filter_map(left).min()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::fs;

    #[test]
    #[cfg(target_os = "linux")]
    fn this_machine_has_memory() {
        let there = available().unwrap();
        assert!((1 << 24..1 << 50).contains(&there), "{there}");
    }

    #[test]
    fn the_tightest_group_counts() {
        let root = tempfile::tempdir().unwrap();
        let put = |name: &str, text: &str| {
            let path = root.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        put("a/b/memory.max", "max\n");
        put("a/memory.max", "1000\n");
        put("a/memory.current", "700\n");
        put("a/memory.stat", "anon 1\ninactive_file 100\n");
        put("memory/c/memory.limit_in_bytes", "5000\n");
        put("memory/c/memory.usage_in_bytes", "1000\n");
        put("memory/memory.limit_in_bytes", "9223372036854771712\n");
        put("memory/memory.usage_in_bytes", "1000\n");
        assert_eq!(of_group(root.path(), "0::/a/b"), Some(400));
        assert_eq!(of_group(root.path(), "7:cpu,memory:/c"), Some(4000));
        assert_eq!(of_group(root.path(), "3:cpu:/c"), None);
        assert_eq!(of_group(root.path(), "0::/nowhere"), None);
    }
}
