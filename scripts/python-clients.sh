#!/usr/bin/env bash
# Installs the official Python clients of the wires that the mock server speaks into target/venv, for the test `wire`: they show that its
# shapes are the real ones; with the word `inspect`, Inspect AI into target/venv-inspect, for the tests `arena` and `import`: it reads our logs, and we read its; with
# `polars`, Polars into target/venv-polars, for the test `platform`: it reads our tables; with `mcp`, the official package of MCP and FastMCP
# into target/venv-mcp, for the test `python` of crates/polity-mcp. Does nothing where they are there already. Exit code 75: there is no network to install them from.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/python-environment.sh
case "${1:-clients}" in
clients) python_environment target/venv openai==3.52.0 anthropic==2.12.0 google-genai==3.4.0 ollama==0.6.3 ;;
mcp) python_environment target/venv-mcp mcp==2.3.0 fastmcp==4.1.2 ;;
polars) python_environment target/venv-polars polars==2.1.0 ;;
inspect) python_environment target/venv-inspect inspect-ai==0.3.285 ;;
*) echo "usage: $0 [clients|inspect|mcp|polars]" >&2 && exit 2 ;;
esac
