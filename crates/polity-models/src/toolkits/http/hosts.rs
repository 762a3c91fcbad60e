//! Which hosts may be asked, and at which IP addresses.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use url::{Host, Url};

/// The list of hosts.
#[derive(Clone, Debug)]
pub(super) struct Hosts(Vec<Entry>);

#[derive(Clone, Debug)]
struct Entry {
    /// In the spelling of URLs; without the `*.` of a domain.
    host: String,
    /// Whether it stands for all hosts below it.
    below: bool,
    /// `None`: the scheme's own port.
    port: Option<u16>,
}

/// What the list says of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Allowed {
    /// Host and port are listed together, so that the host may be on this machine or in its network.
    Anywhere,
    /// The host may have public IP addresses only.
    Public,
}

impl Hosts {
    /// Reads entries such as `example.org`, `*.example.org` and `127.0.0.1:8080`.
    pub(super) fn read(entries: &[String]) -> Result<Self, String> {
        entries.iter().map(|entry| read(entry)).collect::<Result<_, _>>().map(Hosts)
    }

    /// Checks scheme, user, host and port of a URL.
    pub(super) fn check(&self, url: &Url) -> Result<Allowed, String> {
        if !matches!(url.scheme(), "http" | "https") {
            return Err(format!("addresses with `{}:` are refused: only http and https are allowed", url.scheme()));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err("addresses with a user name or a password are refused".into());
        }
        let host = url.host_str().map(|host| host.strip_suffix('.').unwrap_or(host)).unwrap_or_default();
        let (port, own) = (url.port_or_known_default(), url.port().is_none());
        let fits = |entry: &&Entry| {
            let named = match entry.below {
                true => host.strip_suffix(&entry.host).is_some_and(|rest| rest.ends_with('.') && rest.len() > 1),
                false => host == entry.host,
            };
            named && if entry.port.is_some() { entry.port == port } else { own }
        };
        let fitting: Vec<&Entry> = self.0.iter().filter(fits).collect();
        if fitting.is_empty() {
            let all: Vec<String> = self.0.iter().map(ToString::to_string).collect();
            let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
            return Err(format!("`{host}{port}` is not on the list of allowed hosts: {}", all.join(", ")));
        }
        match fitting.iter().any(|entry| !entry.below && entry.port.is_some()) {
            true => Ok(Allowed::Anywhere),
            false => Ok(Allowed::Public),
        }
    }
}

impl std::fmt::Display for Entry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}{}", if self.below { "*." } else { "" }, self.host)?;
        self.port.map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}

fn read(entry: &str) -> Result<Entry, String> {
    let wrong = |why: &str| {
        format!("`{entry}` {why}: write `example.org`, `*.example.org` for all hosts below it, or `127.0.0.1:8080`")
    };
    let (below, rest) = entry.strip_prefix("*.").map_or((false, entry), |rest| (true, rest));
    if rest.is_empty() || rest.contains(['*', '/', '@', '?', '#', ' ']) {
        return Err(wrong("is no host"));
    }
    // A URL drops the port that its scheme has anyway; this scheme has none.
    let plain = Url::parse(&format!("http://{rest}")).map_err(|error| wrong(&format!("is no host ({error})")))?;
    let port = Url::parse(&format!("none://{rest}")).ok().and_then(|url| url.port());
    let host = plain.host_str().unwrap_or_default();
    if below && !matches!(plain.host(), Some(Host::Domain(_))) {
        return Err(wrong("is no domain"));
    }
    Ok(Entry { host: host.strip_suffix('.').unwrap_or(host).to_string(), below, port })
}

/// Whether an IP address is a public one: not of this machine, its network, or a network for special use, where metadata services are.
pub(super) fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    // https://www.iana.org/assignments/iana-ipv4-special-registry
    !(matches!(a, 0 | 10 | 127 | 224..)
        || (a == 100 && (64..128).contains(&b))
        || (a, b) == (169, 254)
        || (a == 172 && (16..32).contains(&b))
        || (a, b) == (192, 168)
        || matches!((a, b, c), (192, 0, 0 | 2) | (192, 88, 99) | (198, 51, 100) | (203, 0, 113))
        || (a == 198 && matches!(b, 18 | 19))
        // Metadata of a large provider, at a public address.
        || address.octets() == [168, 63, 129, 16])
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let [a, b, .., g, h] = address.segments();
    let v4 = |high: u16, low: u16| Ipv4Addr::from((u32::from(high) << 16) | u32::from(low));
    match a {
        // An IPv4 address behind a translator.
        0x64 if b == 0xff9b && address.segments()[2..6] == [0; 4] => is_public_v4(v4(g, h)),
        // 6to4 holds an IPv4 address too.
        0x2002 => is_public_v4(v4(b, address.segments()[2])),
        // Teredo, benchmarks, ORCHID, documentation.
        0x2001 if b < 0x200 || b == 0xdb8 => false,
        0x3fff => false,
        // Global unicast; mapped IPv4 addresses are not in it and never needed.
        _ => (0x2000..0x4000).contains(&a),
    }
}
