# Makes the Python package of the dev build importable, for other scripts:
#
#   . scripts/python-package.sh
#   python_package TARGET_FOLDER
#
# Builds it with the features of the tests, so that nothing is compiled twice, and sets PYTHONPATH.
python_package() {
    local target="$1" package="$1/python-path/polity" library="$1/debug/libpolity_python"
    cargo build --quiet --locked --workspace --features polity/local --lib --tests
    # The package as it is installed: its sources, and the library under the name by which Python finds it.
    rm -rf "$target/python-path"
    mkdir -p "$package"
    cp -R crates/polity-python/python/polity/. "$package/"
    if [ -f "$library.so" ]; then library="$library.so"; else library="$library.dylib"; fi
    ln -f "$library" "$package/_polity.abi3.so" 2>/dev/null || cp "$library" "$package/_polity.abi3.so"
    export PYTHONPATH="$target/python-path" PYTHONDONTWRITEBYTECODE=1
}
