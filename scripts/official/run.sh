#!/usr/bin/env bash
# Runs the official program of a method on scripted replies and writes the facts to the method's official.json.
#   scripts/official/run.sh METHOD [FOLDER]
# FOLDER holds the official repository at the commit that README.md names; self-consistency and magentic-one need none. The virtual environments are
# made outside the repository: in POLITY_OFFICIAL, by default ~/.cache/polity-official.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
method=${1:?usage: scripts/official/run.sh METHOD [FOLDER]}
envs=${POLITY_OFFICIAL:-$HOME/.cache/polity-official}

# The first client of OpenAI for programs of 2023, the second for those of 2024.
case $method in
debate | dylan) name=client-0 needs='openai==0.27.6 backoff==2.2.1 sacrebleu==2.3.1 numpy pandas tqdm' ;;
mixture-of-agents | self-moa | sparse-moa) name=client-1 needs='openai==1.35.3 httpx<0.28 loguru fire requests' ;;
agentcoder) name=client-0-28 needs='openai==0.28.1 numpy tqdm python-dotenv' ;;
tree-of-thoughts) name=client-0-28-search needs='openai==0.28.1 backoff numpy pandas sympy' ;;
magentic-one) name=autogen needs='autogen-agentchat==0.7.5 autogen-ext[openai]==0.7.5' ;;
discussion) name=mallm needs='httpx rich langchain-core<0.2 openai<2 scikit-learn numpy requests json-repair tqdm' ;;
self-consistency) name= needs= ;;
*) echo "run.sh: no official program of $method is known here" >&2 && exit 2 ;;
esac
if [ -z "$name" ]; then
    exec python3 "$here/$method.py"
fi
# Magentic-One comes with its package.
[ "$method" = magentic-one ] || folder=$(cd "${2:?the folder of the official repository}" && pwd)
if [ ! -x "$envs/$name/bin/python" ]; then
    python3 -m venv "$envs/$name"
    # shellcheck disable=SC2086
    "$envs/$name/bin/pip" install --quiet $needs
fi
[ "$method" != magentic-one ] || exec "$envs/$name/bin/python" "$here/$method.py"
exec "$envs/$name/bin/python" "$here/$method.py" "$folder" "$(git -C "$folder" rev-parse HEAD)"
