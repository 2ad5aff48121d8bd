#!/usr/bin/env bash
# tests/setup.sh PACKAGE...: installs the Debian packages that are missing, through the machine's own apt sources. Asks nothing.
set -euo pipefail
missing=()
for package in "$@"; do
    dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed || missing+=("$package")
done
[ ${#missing[@]} -gt 0 ] || exit 0
echo "installing ${missing[*]}"
root=()
[ "$(id -u)" = 0 ] || root=(sudo)
command -v apt-get >/dev/null || { echo "error: no apt-get here: install these by hand: ${missing[*]}" >&2; exit 1; }
"${root[@]}" apt-get update -qq </dev/null
"${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends "${missing[@]}" </dev/null >/dev/null
