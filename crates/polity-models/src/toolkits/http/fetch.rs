//! Requests to allowed hosts. Every hop of a redirect is checked as the first address is, and connected to the IP address that was checked.

use super::hosts::{Allowed, Hosts, is_public};
use crate::http::{Client, Failure, piece, uri};
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, LOCATION};
use http::{Method, StatusCode};
use std::future::Future;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use url::{Host, Url};

/// Redirects that are followed.
const HOPS: usize = 5;

/// Looks a name up.
type Lookup = Arc<dyn Fn(String) -> Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>> + Send + Sync>;

/// Asks allowed hosts.
#[derive(Clone)]
pub(in crate::toolkits) struct Fetcher {
    hosts: Hosts,
    /// For a request with all its redirects.
    patience: Duration,
    lookup: Lookup,
}

/// A request.
pub(in crate::toolkits) struct Asked {
    pub(in crate::toolkits) method: Method,
    pub(in crate::toolkits) url: Url,
    pub(in crate::toolkits) headers: HeaderMap,
    pub(in crate::toolkits) body: String,
}

impl Asked {
    pub(in crate::toolkits) fn get(url: Url) -> Self {
        Asked { method: Method::GET, url, headers: HeaderMap::new(), body: String::new() }
    }
}

/// What came back.
#[derive(Debug)]
pub(in crate::toolkits) struct Fetched {
    /// The address after redirects.
    pub(in crate::toolkits) url: Url,
    pub(in crate::toolkits) status: StatusCode,
    /// In lower case, with its parameters; empty if not given.
    pub(in crate::toolkits) content_type: String,
    /// At most as many bytes as were asked for.
    pub(in crate::toolkits) body: Vec<u8>,
    /// Whether there is more of the body.
    pub(in crate::toolkits) cut: bool,
    /// The declared length of the body.
    pub(in crate::toolkits) length: Option<u64>,
}

impl Fetcher {
    /// Reads the list of hosts.
    pub(in crate::toolkits) fn new(hosts: &[String], seconds: u64) -> Result<Self, String> {
        let lookup: Lookup = Arc::new(|name| {
            Box::pin(async move {
                let found = tokio::net::lookup_host((name, 0)).await?;
                Ok(found.map(|address| address.ip()).collect())
            })
        });
        Ok(Fetcher { hosts: Hosts::read(hosts)?, patience: Duration::from_secs(seconds), lookup })
    }

    /// The same with names of its own.
    #[cfg(test)]
    pub(super) fn with_lookup(self, lookup: Lookup) -> Self {
        Fetcher { lookup, ..self }
    }

    /// Sends a request and reads at most `most` bytes of the answer's body. The error is a sentence for the model.
    pub(in crate::toolkits) async fn fetch(&self, asked: Asked, most: usize) -> Result<Fetched, String> {
        let late = || {
            let seconds = self.patience.as_secs();
            format!("no whole answer from `{}` within {seconds} s", asked.url.host_str().unwrap_or_default())
        };
        let late = late();
        tokio::time::timeout(self.patience, self.follow(asked, most)).await.unwrap_or(Err(late))
    }

    async fn follow(&self, mut asked: Asked, most: usize) -> Result<Fetched, String> {
        for _ in 0..=HOPS {
            match self.hop(&asked, most).await? {
                Hop::Arrived(fetched) => return Ok(fetched),
                Hop::Onward(status, to) => asked = onward(asked, status, to)?,
            }
        }
        Err(format!("more than {HOPS} redirects, the last one to `{}`", asked.url))
    }

    async fn hop(&self, asked: &Asked, most: usize) -> Result<Hop, String> {
        let url = &asked.url;
        let to = self.checked(url).await?;
        let client = Client::at(url, &to, &asked.headers, self.patience)?;
        let request = client.request(asked.method.clone(), uri(url)?, asked.body.clone());
        let host = url.host_str().unwrap_or_default();
        let told = |failure: Failure| match failure {
            Failure::Unreached(why) => format!("no connection to `{host}`: {why}"),
            Failure::Broken(why) => format!("the answer of `{host}` broke off: {why}"),
            Failure::Late => format!("`{host}` did not answer in time"),
        };
        let answer = client.send(request).await.map_err(told)?;
        let (head, mut from) = answer.into_parts();
        let text = |name| head.headers.get(name).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
        if matches!(head.status.as_u16(), 301 | 302 | 303 | 307 | 308)
            && let Some(location) = text(LOCATION)
        {
            let to = url.join(&location).map_err(|error| format!("`{host}` redirects to no address: {error}"))?;
            return Ok(Hop::Onward(head.status, to));
        }
        if let Some(encoding) = text(CONTENT_ENCODING).filter(|encoding| !encoding.eq_ignore_ascii_case("identity")) {
            let encoding = polity_store::printable::on_one_line(&encoding).into_owned();
            return Err(format!(
                "`{host}` sent a body in the encoding `{encoding}`, which was not asked for and is not read"
            ));
        }
        let mut body = Vec::new();
        while body.len() <= most
            && let Some(piece) = piece(&mut from).await.map_err(told)?
        {
            body.extend_from_slice(&piece[..piece.len().min(most + 1 - body.len())]);
        }
        let cut = body.len() > most;
        body.truncate(most);
        let length = text(CONTENT_LENGTH).and_then(|length| length.parse().ok());
        let content_type = text(CONTENT_TYPE).unwrap_or_default().to_lowercase();
        Ok(Hop::Arrived(Fetched { url: url.clone(), status: head.status, content_type, body, cut, length }))
    }

    /// The IP addresses of a URL's host, all of them allowed.
    async fn checked(&self, url: &Url) -> Result<Vec<IpAddr>, String> {
        let allowed = self.hosts.check(url)?;
        let (name, found) = match url.host() {
            Some(Host::Ipv4(address)) => (address.to_string(), vec![IpAddr::V4(address)]),
            Some(Host::Ipv6(address)) => (address.to_string(), vec![IpAddr::V6(address)]),
            Some(Host::Domain(name)) => {
                let found = (self.lookup)(name.to_string()).await;
                (name.to_string(), found.map_err(|error| format!("the host `{name}` was not found: {error}"))?)
            }
            None => return Err("the address has no host".into()),
        };
        if found.is_empty() {
            return Err(format!("the host `{name}` has no IP address"));
        }
        // One that is not public makes all of them suspect.
        match found.iter().find(|&&address| allowed == Allowed::Public && !is_public(address)) {
            Some(address) => Err(format!(
                "`{name}` is refused: its IP address {address} is not public. A host of this machine or its network must \
                 be listed with its port"
            )),
            None => Ok(found),
        }
    }
}

enum Hop {
    Arrived(Fetched),
    Onward(StatusCode, Url),
}

/// The request that follows a redirect (RFC 9110, 15.4). What the caller sent along goes to no other origin.
fn onward(asked: Asked, status: StatusCode, to: Url) -> Result<Asked, String> {
    let (from, same) = (&asked.url, asked.url.origin() == to.origin());
    let safe = matches!(asked.method, Method::GET | Method::HEAD);
    let keeps = safe || matches!(status.as_u16(), 307 | 308);
    if !same && keeps && !safe {
        return Err(format!(
            "`{}` answered with status {} and asks to send the request to `{to}`, which is another host: send it there \
             yourself if you mean to",
            from.host_str().unwrap_or_default(),
            status.as_u16()
        ));
    }
    if from.scheme() == "https" && to.scheme() == "http" {
        return Err(format!("the redirect to `{to}` is refused: it goes from https to http"));
    }
    let mut headers = if same { asked.headers } else { HeaderMap::new() };
    if keeps {
        return Ok(Asked { url: to, headers, ..asked });
    }
    headers.remove(CONTENT_TYPE);
    Ok(Asked { headers, ..Asked::get(to) })
}
