#!/usr/bin/env bash
# Installs the official Python clients of the wires that the mock server speaks into target/venv, for the test `wire`: they show that its
# shapes are the real ones; with the word `inspect`, Inspect AI into target/venv-inspect, for the tests `arena` and `import`: it reads our logs, and we read its; with
# `polars`, Polars into target/venv-polars, for the test `platform`: it reads our tables; with `mcp`, the official package of MCP and FastMCP
# into target/venv-mcp, for the test `python` of crates/polity-mcp. Does nothing where they are there already. Exit code 75: there is no network to install them from.
set -euo pipefail
cd "$(dirname "$0")/.."
case "${1:-clients}" in
clients)
    venv=target/venv imports='openai, anthropic, google.genai, ollama'
    pinned=(openai==3.52.0 anthropic==2.12.0 google-genai==3.4.0 ollama==0.6.3)
    ;;
mcp) venv=target/venv-mcp imports='mcp, fastmcp' pinned=(mcp==2.3.0 fastmcp==4.1.2) ;;
polars) venv=target/venv-polars imports='polars' pinned=(polars==2.1.0) ;;
inspect) venv=target/venv-inspect imports='inspect_ai' pinned=(inspect-ai==0.3.285) ;;
*) echo "usage: $0 [clients|inspect|mcp|polars]" >&2 && exit 2 ;;
esac
installed() { "$venv/bin/python" -c "import $imports" >/dev/null 2>&1; }
installed && exit 0
mkdir -p target
# Two tests may want it at the same time.
exec 9>"$venv.lock"
if command -v flock >/dev/null; then flock 9; fi
installed && exit 0
# Debian has venv in a package of its own (python3-venv).
python3 -m venv "$venv"
install() { "$venv/bin/python" -m pip install --quiet --disable-pip-version-check "$@"; }
if install "${pinned[@]}" || install "${pinned[@]%%==*}"; then
    exit 0
fi
index='import socket; socket.create_connection(("pypi.org", 443), 5)'
if "$venv/bin/python" -c "$index" >/dev/null 2>&1; then
    echo "pip could not install ${pinned[*]}, though the package index can be reached; see above" >&2
    exit 1
fi
echo "${pinned[*]} are not in $venv, and there is no network to install them from" >&2
exit 75
