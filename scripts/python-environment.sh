# Makes virtual environments of Python, for other scripts:
#
#   . scripts/python-environment.sh
#   python_environment [--exact] FOLDER PACKAGE==VERSION...
#
# Does nothing where FOLDER has the packages. Where these versions cannot be had (an older Python gets older packages) it takes others,
# but not with --exact. Returns 75 if there is no network to install them from.

# Whether an environment has some packages, in these versions (`yes`) or in any (`no`).
has_packages() {
    "$2/bin/python" - "$1" "${@:3}" <<'PYTHON' 2>/dev/null
import sys
from importlib.metadata import version

wanted = [package.split("==") for package in sys.argv[2:]]
sys.exit(not all([version(name) == number or sys.argv[1] == "no" for name, number in wanted]))
PYTHON
}

python_environment() {
    local exact=no
    if [ "$1" = --exact ]; then
        exact=yes
        shift
    fi
    local folder="$1"
    shift
    if has_packages "$exact" "$folder" "$@"; then return; fi
    mkdir -p "$(dirname "$folder")"
    (
        # Two scripts may want it at the same time.
        if command -v flock >/dev/null; then flock 9; fi
        if has_packages "$exact" "$folder" "$@"; then exit 0; fi
        # Debian has venv in a package of its own (python3-venv).
        python3 -m venv "$folder" || exit 1
        install() { "$folder/bin/python" -m pip install --quiet --disable-pip-version-check "$@"; }
        if install "$@"; then exit 0; fi
        if [ "$exact" = no ] && install "${@%%==*}"; then exit 0; fi
        index='import socket; socket.create_connection(("pypi.org", 443), 5)'
        if "$folder/bin/python" -c "$index" >/dev/null 2>&1; then
            echo "pip could not install $*, though the package index can be reached; see above" >&2
            exit 1
        fi
        echo "$* are not in $folder, and there is no network to install them from" >&2
        exit 75
    ) 9>"$folder.lock"
}
