#!/bin/bash
# make.sh [DIR]: unpacks the real adbd of Debian 13 with Android's shell and toybox, Python 3 for stand-ins, and what programs of this
# machine need (libstdc++, libgcc and libatomic: Qualcomm's x86_64 libraries and our runners run in the phone; libc-bin for the locale
# C.UTF-8, which a phone's C library has built in, and without which the shell complains) into DIR (60 MB), and dresses it as a phone (phone.sh). Prints DIR. Done once for each version of the scripts: a finished DIR is left alone.
#
# Older releases have no adbd, so a private apt configuration reads the newer release from the Debian mirror that this machine
# already uses (or BENCH_DEBIAN_MIRROR). The system's packages, lists and dpkg state are not touched.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
release=trixie arch=amd64
packages=(adbd mksh toybox libstdc++6 libgcc-s1 libatomic1 python3-minimal libpython3-stdlib libc-bin)
version=$(cat "$here/make.sh" "$here/phone.sh" $(find "$here/phone" -type f | sort) | sha256sum | cut -c 1-8)
# By version, because the phones of another checkout may be running on theirs.
dir=$(realpath -m "${1:-${XDG_CACHE_HOME:-$HOME/.cache}/bench/test-phone/$release-$arch-$version}")

# Two test programs may want it at the same time.
mkdir -p "$(dirname "$dir")"
exec 9> "$dir.lock"
flock 9
if [ "$(cat "$dir/.made" 2>/dev/null)" = "$version" ]; then
    echo "$dir"
    exit
fi

mirror() {
    [ -z "${BENCH_DEBIAN_MIRROR:-}" ] || { echo "$BENCH_DEBIAN_MIRROR"; return; }
    # The plain archive, not the one of security updates, which lacks most packages.
    apt-get indextargets --format '$(ORIGIN) $(CODENAME) $(REPO_URI)' 'Created-By: Packages' 2>/dev/null |
        awk '$1 == "Debian" && $2 !~ /security|updates|backports/ { print $3; exit }'
}
uri=$(mirror)
if [ -z "$uri" ]; then
    echo "make.sh: this machine's apt sources have no Debian mirror: set BENCH_DEBIAN_MIRROR to the address of one" >&2
    exit 1
fi
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
[ -r "$keyring" ] || { echo "make.sh: no $keyring: apt-get install debian-archive-keyring" >&2; exit 1; }

apt=$dir.apt
rm -rf "$apt" "$dir"
mkdir -p "$apt"/{sources,state/lists/partial,cache/archives/partial} "$dir"
: > "$apt/status"
printf 'Types: deb\nURIs: %s\nSuites: %s\nComponents: main\nSigned-By: %s\n' "$uri" "$release" "$keyring" > "$apt/sources/phone.sources"
cat > "$apt/apt.conf" <<A
Dir::Etc::sourcelist "/dev/null"; Dir::Etc::sourceparts "$apt/sources"; Dir::Etc::preferencesparts "/dev/null";
Dir::State "$apt/state"; Dir::State::status "$apt/status"; Dir::Cache "$apt/cache";
APT::Sandbox::User "root"; APT::Install-Recommends "false"; Acquire::Languages "none";
APT::Architecture "$arch"; APT::Architectures { "$arch"; };
A
export APT_CONFIG=$apt/apt.conf
apt-get -qq update >&2
apt-get -qq install --download-only -y "${packages[@]}" >&2
mkdir -p "$dir"/usr/{lib,lib64,bin,sbin}
for d in lib lib64 bin sbin; do ln -sfn "usr/$d" "$dir/$d"; done
for deb in "$apt"/cache/archives/*.deb; do dpkg-deb -x "$deb" "$dir"; done
rm -rf "$dir"/usr/share/{doc,man,lintian} "$apt"
"$here/phone.sh" "$dir"
find "$(dirname "$dir")" -mindepth 1 -maxdepth 1 -name "$release-*" -mtime +30 -exec rm -rf {} +
echo "$version" > "$dir/.made"
echo "$dir"
