#!/usr/bin/env bash
# Installs the official Python client of OpenAI into target/venv, for the test `wire`: it shows that the stand-in's shapes are the
# real ones. Does nothing where it is there already. Exit code 75: there is no network to install it from.
set -euo pipefail
cd "$(dirname "$0")/.."
venv=target/venv
installed() { "$venv/bin/python" -c 'import openai' >/dev/null 2>&1; }
installed && exit 0
mkdir -p target
# Two tests may want it at the same time.
exec 9>target/venv.lock
if command -v flock >/dev/null; then flock 9; fi
installed && exit 0
# Debian has venv in a package of its own (python3-venv).
python3 -m venv "$venv"
if "$venv/bin/pip" install --quiet --disable-pip-version-check openai==3.52.0 ||
    "$venv/bin/pip" install --quiet --disable-pip-version-check openai; then
    exit 0
fi
index='import socket; socket.create_connection(("pypi.org", 443), 5)'
if "$venv/bin/python" -c "$index" >/dev/null 2>&1; then
    echo "pip could not install the Python client \`openai\`, though the package index can be reached; see above" >&2
    exit 1
fi
echo "the Python client \`openai\` is not in $venv, and there is no network to install it from" >&2
exit 75
