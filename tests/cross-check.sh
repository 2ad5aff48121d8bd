#!/usr/bin/env bash
# tests/cross-check.sh: the orchestrator compiles for the other systems from which a phone may be measured. `cargo check` links nothing, so
# the C compilers of those systems are not needed: what C code some dependencies build would only be linked (`true` stands for them).
set -euo pipefail
cd "$(dirname "$0")/.."
for target in aarch64-apple-darwin x86_64-pc-windows-gnu; do
    underscored=${target//-/_}
    env "CC_$underscored=true" "AR_$underscored=true" cargo check -q -p bench --target "$target"
    echo "bench compiles for $target"
done
