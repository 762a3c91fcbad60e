# Installs the programs that environments and learners are measured beside, from PyPI, for other scripts:
#
#   . scripts/peers/environments.sh
#   peer_environments FOLDER plain jax torch cleanrl    those that are named
#
# They are told apart since they want different versions of the same packages. All of them take 6 GB, since PyPI has PyTorch with CUDA only.
# Sets POLITY_JAXMARL_IPPO to JaxMARL's program of IPPO, which no package has; the variable can name a copy. Returns 75 without a network.
. scripts/python-environment.sh

peer_environments() {
    local folder="$1" name
    shift
    for name in "$@"; do
        case $name in
        plain) python_environment --exact "$folder/plain" numpy==2.4.6 gymnasium==1.4.0 pettingzoo==1.27.0 mpe2==1.1.1 || return ;;
        jax)
            python_environment --exact "$folder/jax" jaxmarl==0.2.0 six==1.17.0 || return
            peer_file "$folder/ippo_ff_mpe.py" a65d2a5f93d5b961142796108eeaef7edf8f87a7e007060dfc593373ce11f882 \
                https://raw.githubusercontent.com/FLAIROx/JaxMARL/c793d095618c6d3edfb5632802348f57b70a4b94/baselines/IPPO/ippo_ff_mpe.py
            ;;
        torch)
            # pufferlib-core wants this PyTorch and no other.
            python_environment --exact "$folder/torch" torch==2.9.0 vmas==1.5.2 stable-baselines3==2.9.0 pufferlib-core==3.0.23 gymnasium==1.4.0 \
                tensorboard==2.21.0 pygame==2.6.1 || return
            ;;
        # It asks for an older Python than it needs, and for an older PyTorch than there is for this one.
        cleanrl)
            [ -f "$folder/cleanrl/cleanrl/ppo.py" ] ||
                "$folder/torch/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps --ignore-requires-python --target \
                    "$folder/cleanrl" cleanrl==1.2.0 gym==0.23.1 gym-notices==0.1.0 cloudpickle==3.1.3 numpy==1.26.4 || return 75
            ;;
        esac
    done
}

# Fetches a file with a known digest, unless POLITY_JAXMARL_IPPO names a copy.
peer_file() {
    export POLITY_JAXMARL_IPPO="${POLITY_JAXMARL_IPPO:-$PWD/$1}"
    if [ ! -f "$POLITY_JAXMARL_IPPO" ] && ! curl --fail --silent --show-error --location --max-time 60 --output "$POLITY_JAXMARL_IPPO" "$3"; then
        echo "JaxMARL's IPPO needs $3, which cannot be fetched; POLITY_JAXMARL_IPPO can name a copy. Its rows will say so" >&2
        return 0
    fi
    echo "$2  $POLITY_JAXMARL_IPPO" | sha256sum --check --quiet
}
