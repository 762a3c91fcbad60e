//! The processes of a run over several, as flags and schedulers describe them.

use super::failure::{Exit, Failure};
use clap::Args;
use polity_driver::spread::Spread;
use std::net::{IpAddr, TcpListener, ToSocketAddrs};
use std::time::Duration;

/// The environment variable with what only the processes of a run know.
const TOKEN: &str = "POLITY_SPREAD_TOKEN";
/// The environment variable with the addresses of all processes, for `--spread env`.
const HOSTS: &str = "POLITY_SPREAD_HOSTS";
/// The first port, where a scheduler gives names of machines only.
const PORT: u16 = 7400;

/// One society over several processes.
#[derive(Args, Clone, Debug)]
pub struct Spreading {
    /// Compute one society in several processes: their addresses (A:7400,B:7400), `slurm` (started by srun), or `env` (started by
    /// mpirun or as an indexed job of Kubernetes). Start every process with the same command.
    #[arg(long, value_name = "ADDRESSES|slurm|env", requires = "out")]
    pub spread: Option<String>,
    /// Which of the addresses is this process's, from 0; needed if several are addresses of this machine.
    #[arg(long, requires = "spread")]
    pub spread_index: Option<usize>,
    /// Seconds to wait for the other processes to start.
    #[arg(long, requires = "spread", default_value_t = Spread::PATIENCE.as_secs())]
    pub spread_patience: u64,
    /// Seconds without a sign of life after which a process is lost.
    #[arg(long, requires = "spread", default_value_t = Spread::SILENCE.as_secs(), value_parser = clap::value_parser!(u64).range(2..))]
    pub spread_silence: u64,
}

fn wrong(message: impl Into<String>) -> Failure {
    Failure::new(Exit::Input, message)
}

impl Spreading {
    /// Returns this process's place among all; `None` for a run in one process.
    pub fn place(&self) -> Result<Option<Spread>, Failure> {
        let Some(given) = &self.spread else { return Ok(None) };
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let (addresses, index) = match given.as_str() {
            "slurm" => slurm(&variable).map_err(wrong)?,
            "env" => env(&variable).map_err(wrong)?,
            list => {
                let addresses: Vec<String> = list.split(',').map(|address| address.trim().to_string()).collect();
                let index = match self.spread_index {
                    Some(index) => index,
                    None => own(&addresses).map_err(wrong)?,
                };
                (addresses, index)
            }
        };
        let index = self.spread_index.unwrap_or(index);
        let token = match variable(TOKEN) {
            Some(token) => token,
            None if addresses.iter().all(|address| is_loopback(address)) => String::new(),
            None => {
                return Err(wrong(format!(
                    "processes on several machines need a token, so that nobody else can join: set {TOKEN} to the same secret for \
                     all of them, for instance with export {TOKEN}=$(openssl rand -hex 16)"
                )));
            }
        };
        let spread = Spread::over(addresses, index, token).map_err(wrong)?;
        let seconds = Duration::from_secs;
        Ok(Some(spread.waiting(seconds(self.spread_patience), seconds(self.spread_silence))))
    }
}

fn is_loopback(address: &str) -> bool {
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    host == "localhost" || host.trim_matches(['[', ']']).parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

/// Which address is one of this machine's.
fn own(addresses: &[String]) -> Result<usize, String> {
    let mut own = Vec::new();
    for (index, address) in addresses.iter().enumerate() {
        let mut resolved = address.to_socket_addrs().map_err(|error| {
            format!("--spread: {address} is not an address with a port, such as node1:{PORT}: {error}")
        })?;
        // A port of 0 is any free one: only the address counts.
        if resolved.any(|mut socket| {
            socket.set_port(0);
            TcpListener::bind(socket).is_ok()
        }) {
            own.push(index);
        }
    }
    match own.as_slice() {
        [index] => Ok(*index),
        [] => Err(format!(
            "none of the addresses {} belongs to this machine; say which is meant with --spread-index",
            addresses.join(", ")
        )),
        _ => Err(format!(
            "several of the addresses {} belong to this machine; number the processes with --spread-index, from 0",
            addresses.join(", ")
        )),
    }
}

fn number(variable: &dyn Fn(&str) -> Option<String>, names: &[&str]) -> Result<usize, String> {
    let found = names.iter().find_map(|name| Some((*name, variable(name)?)));
    let (name, value) = found.ok_or_else(|| format!("none of the variables {} is set", names.join(", ")))?;
    value.parse().map_err(|_| format!("the variable {name} is {value}, which is no number"))
}

/// The processes of a Slurm step: the tasks of each node have ports of their own.
fn slurm(variable: &dyn Fn(&str) -> Option<String>) -> Result<(Vec<String>, usize), String> {
    let started = |error: String| format!("--spread slurm: {error}; start the processes with srun");
    let index = number(variable, &["SLURM_PROCID"]).map_err(started)?;
    let nodes = variable("SLURM_STEP_NODELIST").or_else(|| variable("SLURM_JOB_NODELIST"));
    let nodes = hosts(&nodes.ok_or_else(|| started("the variable SLURM_STEP_NODELIST is not set".into()))?)?;
    let tasks = variable("SLURM_STEP_TASKS_PER_NODE").or_else(|| variable("SLURM_TASKS_PER_NODE"));
    let tasks = tasks_per_node(&tasks.unwrap_or_else(|| "1".into()), nodes.len())?;
    let of_node = |(node, tasks): (&String, usize)| {
        let node = node.clone();
        (0..tasks).map(move |task| format!("{node}:{}", usize::from(PORT) + task))
    };
    Ok((nodes.iter().zip(tasks).flat_map(of_node).collect(), index))
}

/// The processes of mpirun or of an indexed job.
fn env(variable: &dyn Fn(&str) -> Option<String>) -> Result<(Vec<String>, usize), String> {
    let started =
        |error: String| format!("--spread env: {error}; give the addresses instead (--spread A:{PORT},B:{PORT})");
    let ranks = ["OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "JOB_COMPLETION_INDEX"];
    let index = number(variable, &ranks).map_err(started)?;
    if let Some(hosts) = variable(HOSTS) {
        return Ok((hosts.split(',').map(|address| address.trim().to_string()).collect(), index));
    }
    let size = number(variable, &["OMPI_COMM_WORLD_SIZE", "PMI_SIZE"]).map_err(started)?;
    let local = number(variable, &["OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "PMI_LOCAL_SIZE"]).unwrap_or(0);
    if local != size {
        return Err(started(format!(
            "the processes are on several machines; list their addresses in the variable {HOSTS}, in order of ranks"
        )));
    }
    Ok(((0..size).map(|rank| format!("127.0.0.1:{}", usize::from(PORT) + rank)).collect(), index))
}

/// Expands a list of nodes, `node[1-3,07],login`.
fn hosts(list: &str) -> Result<Vec<String>, String> {
    let wrong = || format!("the list of nodes {list} cannot be read");
    let mut hosts = Vec::new();
    let mut rest = list;
    while !rest.is_empty() {
        let end = rest.find([',', '[']).unwrap_or(rest.len());
        let (prefix, tail) = rest.split_at(end);
        match tail.strip_prefix('[') {
            None => {
                hosts.push(prefix.to_string());
                rest = tail.strip_prefix(',').unwrap_or(tail);
            }
            Some(tail) => {
                let (ranges, tail) = tail.split_once(']').ok_or_else(wrong)?;
                let suffix_end = tail.find(',').unwrap_or(tail.len());
                let (suffix, tail) = tail.split_at(suffix_end);
                for range in ranges.split(',') {
                    let (first, last) = range.split_once('-').unwrap_or((range, range));
                    let (from, to): (u32, u32) =
                        (first.parse().map_err(|_| wrong())?, last.parse().map_err(|_| wrong())?);
                    hosts.extend((from..=to).map(|n| format!("{prefix}{n:0width$}{suffix}", width = first.len())));
                }
                rest = tail.strip_prefix(',').unwrap_or(tail);
            }
        }
    }
    match hosts.is_empty() {
        true => Err(wrong()),
        false => Ok(hosts),
    }
}

/// Expands the numbers of tasks, `2(x3),1`.
fn tasks_per_node(list: &str, nodes: usize) -> Result<Vec<usize>, String> {
    let wrong = || format!("the numbers of tasks {list} cannot be read for {nodes} nodes");
    let mut tasks = Vec::new();
    for part in list.split(',') {
        let (tasks_each, times) = match part.split_once("(x") {
            Some((tasks, times)) => (tasks, times.strip_suffix(')').ok_or_else(wrong)?),
            None => (part, "1"),
        };
        let (each, times): (usize, usize) =
            (tasks_each.parse().map_err(|_| wrong())?, times.parse().map_err(|_| wrong())?);
        tasks.extend(std::iter::repeat_n(each, times.min(nodes)));
    }
    match tasks.len() == nodes {
        true => Ok(tasks),
        false => Err(wrong()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables<'a>(all: &'a [(&'a str, &'a str)]) -> impl Fn(&str) -> Option<String> + 'a {
        |name| all.iter().find(|(known, _)| *known == name).map(|(_, value)| value.to_string())
    }

    #[test]
    fn tasks_of_slurm_have_addresses_in_order() {
        let step = [
            ("SLURM_PROCID", "2"),
            ("SLURM_STEP_NODELIST", "node[08-10,12],login"),
            ("SLURM_STEP_TASKS_PER_NODE", "2(x2),1(x3)"),
        ];
        let (addresses, index) = slurm(&variables(&step)).unwrap();
        let expected =
            ["node08:7400", "node08:7401", "node09:7400", "node09:7401", "node10:7400", "node12:7400", "login:7400"];
        assert_eq!((addresses.iter().map(String::as_str).collect::<Vec<_>>(), index), (expected.to_vec(), 2));
        assert!(slurm(&variables(&[])).unwrap_err().contains("srun"));
        assert!(hosts("node[1-").unwrap_err().contains("node[1-"));
        assert!(tasks_per_node("2(x2)", 3).is_err());
    }

    #[test]
    fn ranks_of_mpirun_on_one_machine_need_no_addresses() {
        let ranks = [("OMPI_COMM_WORLD_RANK", "1"), ("OMPI_COMM_WORLD_SIZE", "2"), ("OMPI_COMM_WORLD_LOCAL_SIZE", "2")];
        assert_eq!(env(&variables(&ranks)).unwrap(), (vec!["127.0.0.1:7400".into(), "127.0.0.1:7401".into()], 1));
        let far = [("PMI_RANK", "1"), ("PMI_SIZE", "2")];
        assert!(env(&variables(&far)).unwrap_err().contains(HOSTS));
        let pod = [("JOB_COMPLETION_INDEX", "0"), (HOSTS, "a-0.a:7400, a-1.a:7400")];
        assert_eq!(env(&variables(&pod)).unwrap(), (vec!["a-0.a:7400".into(), "a-1.a:7400".into()], 0));
    }

    #[test]
    fn only_loopback_needs_no_token() {
        assert!(is_loopback("127.0.0.1:7400") && is_loopback("localhost:1") && is_loopback("[::1]:7400"));
        assert!(!is_loopback("node1:7400") && !is_loopback("10.0.0.1:7400"));
    }

    #[test]
    fn an_address_of_this_machine_is_found() {
        let alone = ["198.51.100.7:7400".to_string(), "127.0.0.1:7400".to_string()];
        assert_eq!(own(&alone), Ok(1));
        let both = ["127.0.0.1:7400".to_string(), "127.0.0.1:7401".to_string()];
        assert!(own(&both).unwrap_err().contains("--spread-index"));
        assert!(own(&["198.51.100.7:7400".to_string()]).unwrap_err().contains("--spread-index"));
    }
}
