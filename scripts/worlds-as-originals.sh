#!/usr/bin/env bash
# Environments of the catalogue that re-implement others', beside the original programs: both get the same starting states and the same
# 10,000 actions each, through the Python package (`scripts/peers/worlds.py` says what is compared and how, `scripts/peers/jaxmarl_worlds.py` for
# JaxMARL's versions of some). Fails where they differ. Words after the script's name are the environments to compare; "JaxMARL overcooked" is
# JaxMARL's version of one. Installs the programs from PyPI into folders of its own, target/peers/worlds and target/peers/jaxmarl, and
# fetches two programs that are not on PyPI from GitHub; POLITY_STAG_HUNT and POLITY_NEURAL_MMO can name copies. Exit code 75: there is no network.
set -euo pipefail
cd "$(dirname "$0")/.."
repository="$PWD"
target="${CARGO_TARGET_DIR:-$repository/target}"
. scripts/python-environment.sh
. scripts/python-package.sh
folder=target/peers/worlds
python_environment --exact "$folder/venv" numpy==2.4.6 gymnasium==1.4.0 pettingzoo==1.27.0 mpe2==1.1.1 lbforaging==2.0.0 minigrid==3.2.0 \
    overcooked_ai==1.1.0 rware==2.0.0 pillow==13.0.0 pygame==2.6.1
# Without what it needs for its other environments.
has_packages yes "$folder/venv" momaland==0.2.0 ||
    "$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps momaland==0.2.0
# It wants other versions of the same packages.
python_environment --exact target/peers/jaxmarl jaxmarl==0.2.0 pettingzoo==1.27.0
# The program of Böhmer and others (predator-prey), at the commit whose rules are compared.
stag_hunt="https://raw.githubusercontent.com/wendelinboehmer/dcg/4de100cddf7c3a7035cd89a47d7c1b8a878e7428/src/envs/stag_hunt.py"
digest=6a6405c42ee835be52ea7ac0d5125932d631a38676b8e1987ad00b2bd51218f9
export POLITY_STAG_HUNT="${POLITY_STAG_HUNT:-$folder/stag_hunt.py}"
if [ ! -f "$POLITY_STAG_HUNT" ]; then
    curl --fail --silent --show-error --location --max-time 60 --output "$folder/stag_hunt.py.part" "$stag_hunt" || {
        echo "predator-prey needs $stag_hunt, which cannot be fetched; POLITY_STAG_HUNT can name a copy" >&2
        exit 75
    }
    mv "$folder/stag_hunt.py.part" "$POLITY_STAG_HUNT"
fi
echo "$digest  $POLITY_STAG_HUNT" | sha256sum --check --quiet
# The first Neural MMO, without its pictures and maps.
neural_mmo=https://github.com/openai/neural-mmo
commit=38fd0310bc784de9b86e5144d0e78f4d31005e6b
if [ -z "${POLITY_NEURAL_MMO:-}" ]; then
    POLITY_NEURAL_MMO="$PWD/$folder/neural-mmo"
    if [ "$(git -C "$POLITY_NEURAL_MMO" rev-parse HEAD 2>&1)" != "$commit" ] || [ ! -f "$POLITY_NEURAL_MMO/configs.py" ]; then
        rm -rf "$POLITY_NEURAL_MMO"
        { git clone --quiet --filter=blob:none --no-checkout "$neural_mmo" "$POLITY_NEURAL_MMO" &&
            git -C "$POLITY_NEURAL_MMO" sparse-checkout set --no-cone /forge /configs.py &&
            git -C "$POLITY_NEURAL_MMO" checkout --quiet "$commit"; } || {
            echo "neural-mmo needs $neural_mmo, which cannot be fetched; POLITY_NEURAL_MMO can name a copy" >&2
            exit 75
        }
    fi
fi
export POLITY_NEURAL_MMO
python_package "$target"
worlds=() jaxmarl=()
for world in "$@"; do
    case $world in
    JaxMARL*) jaxmarl+=("$world") ;;
    *) worlds+=("$world") ;;
    esac
done
if [ $# = 0 ] || [ ${#worlds[@]} != 0 ]; then "$folder/venv/bin/python" scripts/peers/worlds.py compare ${worlds[@]+"${worlds[@]}"}; fi
if [ $# = 0 ] || [ ${#jaxmarl[@]} != 0 ]; then
    target/peers/jaxmarl/bin/python scripts/peers/jaxmarl_worlds.py compare ${jaxmarl[@]+"${jaxmarl[@]}"}
fi
