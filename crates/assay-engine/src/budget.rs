//! Default memory limit of the coins.

use std::fs;
use std::path::{Path, PathBuf};

/// Smallest default: below it the tables on disk are read and written too often.
const CACHE_BYTES_MIN: u64 = 64 << 20;

/// Largest default: enough for tens of millions of coins, with a flush well under a minute.
const CACHE_BYTES_MAX: u64 = 4 << 30;

/// Default memory for coins: a quarter of the memory available to this process, between 64 MiB and 4 GiB.
///
/// Available is the kernel's estimate without swapping, or the rest in the control groups of the process, if less. If unknown,
/// the result is Bitcoin Core's 1 GiB.
pub fn default_cache_bytes() -> usize {
    let available = [meminfo_available(), cgroup_available()].into_iter().flatten().min();
    cache_bytes_for(available)
}

fn cache_bytes_for(available: Option<u64>) -> usize {
    let quarter = available.map_or(1 << 30, |bytes| bytes / 4);
    usize::try_from(quarter.clamp(CACHE_BYTES_MIN, CACHE_BYTES_MAX)).unwrap_or(usize::MAX)
}

fn meminfo_available() -> Option<u64> {
    available_in_meminfo(&fs::read_to_string("/proc/meminfo").ok()?)
}

fn available_in_meminfo(text: &str) -> Option<u64> {
    let value = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    value.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kib| kib << 10)
}

/// The least free memory in any control group of the process.
fn cgroup_available() -> Option<u64> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    groups.lines().filter_map(|line| least_room(line, Path::new("/sys/fs/cgroup"))).min()
}

/// Free memory in the group of one line of `/proc/self/cgroup`, and in its ancestors.
fn least_room(line: &str, mount: &Path) -> Option<u64> {
    let mut fields = line.splitn(3, ':').skip(1);
    let (controllers, path) = (fields.next()?, fields.next()?.trim_start_matches('/'));
    // Version 2 has one hierarchy and no controller names.
    let (root, limit, used) = match controllers {
        "" => (mount.to_owned(), "memory.max", "memory.current"),
        _ if controllers.split(',').any(|name| name == "memory") => {
            (mount.join("memory"), "memory.limit_in_bytes", "memory.usage_in_bytes")
        }
        _ => return None,
    };
    let number = |file: PathBuf| fs::read_to_string(file).ok()?.trim().parse::<u64>().ok();
    let room = |dir: &Path| Some(number(dir.join(limit))?.saturating_sub(number(dir.join(used))?));
    let group = root.join(path);
    // Inside a container the group may be mounted as the root, under another path than outside.
    let above = group.ancestors().take_while(|dir| dir.starts_with(&root)).chain([root.as_path()]);
    above.filter_map(room).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_is_a_quarter_of_available_memory_within_bounds() {
        let meminfo = "MemTotal:       24607204 kB\nMemAvailable:    8388608 kB\nBuffers: 1 kB\n";
        assert_eq!(available_in_meminfo(meminfo), Some(8 << 30));
        assert_eq!(available_in_meminfo("MemTotal: 1 kB\n"), None);
        assert_eq!(cache_bytes_for(Some(8 << 30)), 2 << 30);
        assert_eq!(cache_bytes_for(Some(1 << 20)), 64 << 20);
        assert_eq!(cache_bytes_for(Some(1 << 40)), 4 << 30);
        assert_eq!(cache_bytes_for(None), 1 << 30);
        assert!((64 << 20..=4 << 30).contains(&default_cache_bytes()));
    }

    #[test]
    fn the_tightest_control_group_counts() {
        let mount = tempfile::tempdir().unwrap();
        let dir = mount.path();
        let write = |path: &str, text: &str| {
            let path = dir.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("outer/inner/memory.max", "max\n");
        write("outer/inner/memory.current", "5000\n");
        write("outer/memory.max", "1000000\n");
        write("outer/memory.current", "400000\n");
        assert_eq!(least_room("0::/outer/inner", dir), Some(600_000));
        write("outer/inner/memory.max", "15000\n");
        assert_eq!(least_room("0::/outer/inner", dir), Some(10_000));
        assert_eq!(least_room("0::/elsewhere", dir), None);
        write("memory/memory.limit_in_bytes", "900\n");
        write("memory/memory.usage_in_bytes", "1000\n");
        assert_eq!(least_room("4:cpu,memory:/not/mounted/here", dir), Some(0));
        assert_eq!(least_room("3:cpu:/outer", dir), None);
        assert_eq!(least_room("nonsense", dir), None);
    }
}
