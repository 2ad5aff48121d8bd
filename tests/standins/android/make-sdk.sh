#!/usr/bin/env bash
# make-sdk.sh DIR [EMULATOR]: lays the stand-ins out as the folders that users have: DIR/qairt (a QAIRT SDK: QAIRT_SDK_ROOT), DIR/onnxruntime,
# DIR/onnxruntime-genai and DIR/mnn, for aarch64-android and for x86_64-linux-clang. Nothing in them is a vendor's: tools are scripts of
# ours, libraries are headers without code. With EMULATOR (the folder onnxruntime_qnn of the Python environment) the x86_64 libraries are
# links to the real ones there, and genie-t2t-run and genie-app really compute.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
out=$(mkdir -p "$1" && cd "$1" && pwd) emulator=${2:+$(cd "$2" && pwd)}
qairt=$out/qairt

# placeholder MACHINE FOLDER NAME...: an ELF header of that machine (183 aarch64, 62 x86_64, 164 Hexagon) and a line of text.
placeholder() {
    local code rest
    printf -v code '\\x%02x' "$1"
    printf -v rest '\\0%.0s' {1..40}
    for name in "${@:3}"; do
        printf '\177ELF\2\1\1\0\0\0\0\0\0\0\0\0\3\0'"$code"'\0\1\0\0\0'"$rest"'A stand-in for tests: a header, no library.\nv2.37.0.250724175447_124859\n' > "$2/lib$name.so"
    done
}

libraries=(QnnHtp QnnSystem QnnHtpNetRunExtensions QnnHtpPrepare QnnModelDlc QnnHtpProfilingReader Genie)
for target in aarch64-android x86_64-linux-clang; do
    [ $target = aarch64-android ] && machine=183 || machine=62
    mkdir -p "$qairt"/{bin,lib}/$target "$out"/{onnxruntime,onnxruntime-genai,mnn}/$target
    placeholder $machine "$qairt/lib/$target" "${libraries[@]}"
    placeholder $machine "$out/onnxruntime/$target" onnxruntime onnxruntime_providers_qnn QnnHtp QnnSystem
    placeholder $machine "$out/onnxruntime-genai/$target" onnxruntime onnxruntime-genai QnnHtp QnnSystem
    placeholder $machine "$out/mnn/$target" MNN MNN_Express llm
    echo "$target $qairt/bin/$target qnn-net-run qnn-profile-viewer qnn-throughput-net-run genie-t2t-run genie-app"
    echo "$target $out/onnxruntime/$target onnxruntime_perf_test"
    echo "$target $out/onnxruntime-genai/$target model_benchmark"
    echo "$target $out/mnn/$target llm_bench llm_demo"
done | python3 "$here/pack.py"
for arch in 68 69 73 75 79 81; do
    mkdir -p "$qairt/lib/hexagon-v$arch/unsigned"
    placeholder 183 "$qairt/lib/aarch64-android" "QnnHtpV${arch}Stub"
    placeholder 164 "$qairt/lib/hexagon-v$arch/unsigned" "QnnHtpV${arch}Skel"
    # Beside ONNX Runtime stand those that it was built with.
    for set in onnxruntime onnxruntime-genai; do
        placeholder 183 "$out/$set/aarch64-android" "QnnHtpV${arch}Stub"
        placeholder 164 "$out/$set/aarch64-android" "QnnHtpV${arch}Skel"
    done
done
placeholder 183 "$out/mnn/aarch64-android" MNN_CL
if [ -n "$emulator" ]; then
    for name in "${libraries[@]}"; do
        [ ! -e "$emulator/lib$name.so" ] || ln -sf "$emulator/lib$name.so" "$qairt/lib/x86_64-linux-clang/"
    done
    # The C++ library of the wheel stands in a folder beside it.
    ln -sf "$emulator.libs"/*.so* "$qairt/lib/x86_64-linux-clang/"
fi
printf '# A stand-in for tests, not the vendor'"'"'s SDK.\nversion: 2.37.0.250724\n' > "$qairt/sdk.yaml"
echo "$qairt"
