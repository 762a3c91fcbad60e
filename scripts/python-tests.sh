#!/usr/bin/env bash
# Tests of the Python package with the dev build: crates/polity-python/tests, the page of the book on Python, and the notebook. Installs
# NumPy, Polars, pandas, PyArrow, Gymnasium, PettingZoo, NetworkX and Jupyter's kernel from PyPI into target/venv-python. Words after the script's
# name go to pytest. Exit code 75: there is no network to install them from.
set -euo pipefail
cd "$(dirname "$0")/.."
repository="$PWD"
target="${CARGO_TARGET_DIR:-$repository/target}"
venv="target/venv-python"
. scripts/python-environment.sh
. scripts/python-package.sh
python_environment "$venv" numpy==2.4.6 polars==2.1.0 pandas==3.1.1 pyarrow==26.0.1 gymnasium==1.4.0 pettingzoo==1.27.0 \
    networkx==3.6.1 pytest==9.2.0 nbclient==0.11.0 ipykernel==7.4.0
python_package "$target"
# The tests start themselves in other folders.
"$repository/$venv/bin/python" -m pytest -q -p no:cacheprovider crates/polity-python/tests "$@"
