#!/usr/bin/env bash
# make-sdk.sh DIR [EMULATOR]: lays the stand-ins out as the folders that users have: DIR/qairt (a QAIRT SDK: QAIRT_SDK_ROOT), DIR/onnxruntime,
# DIR/onnxruntime-genai and DIR/mnn, for aarch64-android and for x86_64-linux-clang. Nothing in them is a vendor's: tools are scripts of
# ours, libraries are headers without code. With EMULATOR (the folder onnxruntime_qnn of the Python environment) the x86_64 libraries are
# links to the real ones there, and genie-t2t-run and genie-app really compute.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
out=$(mkdir -p "$1" && cd "$1" && pwd) emulator=${2:+$(cd "$2" && pwd)}
python=$(command -v python3)

# tool NAME TARGET FILE: one executable out of the tool and what it shares: a Python archive.
tool() {
    local name=$1 target=$2 file=$3 work
    work=$(mktemp -d)
    cp "$here/$name" "$work/__main__.py"
    sed "s/@TARGET@/$target/g" "$here/common.py" > "$work/common.py"
    cp "$here/genie.py" "$work/"
    "$python" -m zipapp "$work" -o "$work.zip"
    # The test phone has its Python outside the PATH, as no phone has one.
    { printf '#!/bin/sh\nexec "$(command -v python3 || echo /usr/bin/python3)" "$0" "$@"\n'; cat "$work.zip"; } > "$file"
    chmod 755 "$file"
    rm -rf "$work" "$work.zip"
}

# placeholder FILE MACHINE: an ELF header of that machine (183 aarch64, 62 x86_64, 164 Hexagon) and a line of text.
placeholder() {
    { printf '\177ELF\2\1\1\0\0\0\0\0\0\0\0\0\3\0'; printf "\\x$(printf %02x "$2")"; printf '\0%042d' 0 | tr 0 '\0'
      printf 'A stand-in for tests: a header, no library.\nv2.37.0.250724175447_124859\n'; } > "$1"
}

qairt=$out/qairt
mkdir -p "$qairt"
printf '# A stand-in for tests, not Qualcomm'"'"'s SDK.\nversion: 2.37.0.250724\n' > "$qairt/sdk.yaml"
for target in aarch64-android x86_64-linux-clang; do
    mkdir -p "$qairt"/{bin,lib}/$target "$out"/{onnxruntime,onnxruntime-genai,mnn}/$target
    machine=$([ $target = aarch64-android ] && echo 183 || echo 62)
    for name in qnn-net-run qnn-profile-viewer qnn-throughput-net-run genie-t2t-run genie-app; do tool $name $target "$qairt/bin/$target/$name"; done
    for name in onnxruntime_perf_test; do tool $name $target "$out/onnxruntime/$target/$name"; done
    for name in model_benchmark; do tool $name $target "$out/onnxruntime-genai/$target/$name"; done
    for name in llm_bench llm_demo; do tool $name $target "$out/mnn/$target/$name"; done
    for name in QnnHtp QnnSystem QnnHtpNetRunExtensions QnnHtpPrepare QnnModelDlc QnnHtpProfilingReader Genie; do
        real=$emulator/lib$name.so
        if [ -n "$emulator" ] && [ $machine = 62 ] && [ -e "$real" ]; then ln -sf "$real" "$qairt/lib/$target/"; else placeholder "$qairt/lib/$target/lib$name.so" $machine; fi
    done
    for name in onnxruntime onnxruntime_providers_qnn; do placeholder "$out/onnxruntime/$target/lib$name.so" $machine; done
    for name in onnxruntime onnxruntime-genai; do placeholder "$out/onnxruntime-genai/$target/lib$name.so" $machine; done
    for name in MNN MNN_Express llm; do placeholder "$out/mnn/$target/lib$name.so" $machine; done
done
# The C++ library of the wheel stands beside the emulator's libraries.
[ -z "$emulator" ] || ln -sf "$emulator.libs"/*.so* "$qairt/lib/x86_64-linux-clang/"
placeholder "$out/mnn/aarch64-android/libMNN_CL.so" 183
for arch in 68 69 73 75 79 81; do
    mkdir -p "$qairt/lib/hexagon-v$arch/unsigned"
    placeholder "$qairt/lib/aarch64-android/libQnnHtpV${arch}Stub.so" 183
    placeholder "$qairt/lib/hexagon-v$arch/unsigned/libQnnHtpV${arch}Skel.so" 164
done
echo "$qairt"
