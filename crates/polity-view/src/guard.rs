//! Who may ask: this machine's own pages without a token, everybody else with one.
//!
//! A page of another site can make a browser send requests to a local port. It can forge neither `Origin` nor `Host`: so both must name
//! this server. `Host` also stops a foreign name that resolves to this machine (DNS rebinding).

use super::chat::PREFIX;
use super::problem::Problem;
use axum::http::{HeaderMap, Method, StatusCode, header};
use std::net::SocketAddr;

/// Minimum characters of a token.
const SHORTEST: usize = 16;

pub(crate) struct Guard {
    address: SocketAddr,
    token: Option<String>,
}

impl Guard {
    pub fn new(address: SocketAddr, token: Option<String>) -> Result<Self, String> {
        if let Some(token) = &token
            && (token.len() < SHORTEST || !token.chars().all(|c| c.is_ascii_graphic() && c != '&' && c != '#'))
        {
            return Err(format!("a token needs at least {SHORTEST} ASCII characters, without spaces, & and #"));
        }
        if !address.ip().is_loopback() && token.is_none() {
            return Err(format!(
                "{address} can be reached from other machines: give a token with --token, and serve it behind a proxy \
                 that encrypts; or listen on 127.0.0.1 and reach it through a tunnel (ssh -L)"
            ));
        }
        Ok(Guard { address, token })
    }

    pub fn url(&self) -> String {
        match &self.token {
            Some(token) => format!("http://{}/#token={token}", self.address),
            None => format!("http://{}/", self.address),
        }
    }

    /// Refuses a request that may come from somebody else.
    pub fn check(&self, method: &Method, path: &str, headers: &HeaderMap) -> Result<(), Problem> {
        let text = |name: header::HeaderName| headers.get(name).map(|value| value.to_str().unwrap_or("?"));
        if let Some(token) = &self.token {
            // The page itself holds nothing; what it asks for does.
            let is_open = !path.starts_with("/api/") && !path.starts_with(PREFIX);
            let given = text(header::AUTHORIZATION).and_then(|given| given.strip_prefix("Bearer ")).unwrap_or_default();
            if !is_open && !same(given.as_bytes(), token.as_bytes()) {
                let words = "a token is required: send `Authorization: Bearer TOKEN`, or open the URL that was printed";
                return Err(Problem::new(StatusCode::UNAUTHORIZED, words));
            }
        } else if !text(header::HOST).is_some_and(|host| self.is_own(host)) {
            let words = "the header `Host` does not name this server; open the URL that was printed";
            return Err(Problem::new(StatusCode::FORBIDDEN, words));
        }
        let foreign = text(header::ORIGIN).is_some_and(|origin| {
            let own = text(header::HOST).unwrap_or_default();
            let host = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
            host.is_none_or(|host| host != own)
        });
        if foreign {
            return Err(Problem::new(StatusCode::FORBIDDEN, "requests of pages of other sites are refused"));
        }
        let is_json = text(header::CONTENT_TYPE).is_some_and(|given| given.starts_with("application/json"));
        if *method == Method::POST && !is_json {
            let words = "send JSON, with `Content-Type: application/json`";
            return Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, words));
        }
        Ok(())
    }

    /// Whether `Host` names this server at a local address.
    fn is_own(&self, host: &str) -> bool {
        let port = self.address.port();
        ["localhost", "127.0.0.1", "[::1]"].iter().any(|name| host == format!("{name}:{port}"))
            || host == self.address.to_string()
    }
}

/// Compares in constant time.
fn same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |differs, (a, b)| differs | (a ^ b)) == 0
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use axum::http::HeaderValue;

    fn headers(pairs: &[(header::HeaderName, &str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.clone(), HeaderValue::from_str(value).unwrap())).collect()
    }

    #[test]
    fn other_sites_and_other_names_are_refused() {
        let guard = Guard::new("127.0.0.1:8080".parse().unwrap(), None).unwrap();
        let get = |pairs: &[_]| guard.check(&Method::GET, "/api/runs", &headers(pairs)).map_err(|p| p.status.as_u16());
        assert_eq!(get(&[(header::HOST, "127.0.0.1:8080")]), Ok(()));
        assert_eq!(get(&[(header::HOST, "localhost:8080"), (header::ORIGIN, "http://localhost:8080")]), Ok(()));
        assert_eq!(get(&[]), Err(403));
        assert_eq!(get(&[(header::HOST, "evil.example:8080")]), Err(403));
        assert_eq!(get(&[(header::HOST, "127.0.0.1:8080"), (header::ORIGIN, "http://evil.example")]), Err(403));
        assert_eq!(get(&[(header::HOST, "127.0.0.1:8080"), (header::ORIGIN, "null")]), Err(403));
        let post = |kind: &str| {
            let pairs = [(header::HOST, "127.0.0.1:8080"), (header::CONTENT_TYPE, kind)];
            guard.check(&Method::POST, "/api/runs/a/orders", &headers(&pairs)).map_err(|p| p.status.as_u16())
        };
        assert_eq!((post("application/json"), post("text/plain")), (Ok(()), Err(415)));
    }

    #[test]
    fn other_machines_need_a_token() {
        let everywhere = "0.0.0.0:8080".parse().unwrap();
        assert!(Guard::new(everywhere, None).err().unwrap().contains("--token"));
        assert!(Guard::new(everywhere, Some("short".into())).is_err());
        let guard = Guard::new(everywhere, Some("a-long-enough-token".into())).unwrap();
        let get = |path: &str, bearer: &str| {
            let given = headers(&[(header::AUTHORIZATION, bearer)]);
            guard.check(&Method::GET, path, &given).map_err(|p| p.status.as_u16())
        };
        assert_eq!(get("/api/runs", "Bearer a-long-enough-token"), Ok(()));
        assert_eq!(get("/api/runs", "Bearer a-long-enough-tokem"), Err(401));
        assert_eq!((get("/api/runs", ""), get("/v1/models", "")), (Err(401), Err(401)));
        assert_eq!((get("/", ""), get("/healthz", "")), (Ok(()), Ok(())));
    }
}
