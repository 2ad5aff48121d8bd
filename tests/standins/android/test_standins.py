"""The stand-ins themselves: each with a wrong option, without a library, and with every failure that it knows; what they print is read by `bench parse`.

Run by tests/run.sh. BENCH names the `bench` to read with (target/debug/bench if it is not set).
"""

import json
import os
import struct
import subprocess
import tempfile
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
BENCH = Path(os.environ["BENCH"]).resolve() if "BENCH" in os.environ else HERE.parents[2] / os.environ.get("CARGO_TARGET_DIR", "target") / "debug/bench"
KNOBS = {"average_us": {"prefill": 6400}, "cycles": {"prefill": [0, 30000, 90000]}, "prefill_us": 100, "decode_us": 2000, "init_us": 1000, "inference_ms": 2.0, "sleep_s": 0}
# A context binary as far as a stand-in looks: the build of its library, and names.
CONTEXT = b"\0\1QNN\0v2.37.0.250724175447_124859\0graph\0input_ids\0past_key_0_in\0logits\0past_key_0_out\0"
TOOLS = {
    "qnn-net-run": ["--backend", "libQnnHtp.so", "--retrieve_context", "prefill.bin", "--input_list", "list.txt", "--output_dir", "out", "--use_native_input_files",
                    "--profiling_level", "detailed", "--num_inferences", "20", "--config_file", "outer.json"],
    "qnn-profile-viewer": ["--input_log", "out/qnn-profiling-data_0.log"],
    "qnn-throughput-net-run": ["--config", "throughput.json"],
    "genie-t2t-run": ["-c", "genie.json", "--prompt_file", "prompt.txt", "--profile", "profile.json"],
    "genie-app": ["-s", "script"],
    "onnxruntime_perf_test": ["-I", "-s", "-m", "times", "-r", "100", "-e", "qnn", "-i", "backend_path|libQnnHtp.so htp_performance_mode|burst", "m.onnx", "result.csv"],
    "model_benchmark": ["-i", "genai", "-b", "1", "-l", "64", "-g", "33", "-r", "5", "-w", "1"],
    "llm_bench": ["-m", "mnn/config.json", "-a", "cpu", "-t", "4", "-p", "0", "-n", "0", "-pg", "64,16", "-rep", "3", "-j", "bench.json"],
    "llm_demo": ["mnn/config.json", "prompt.txt", "8"],
}
# What each failure leaves: status (128 + signal as a shell says it; None for one that has to be ended) and words. From public outputs of the
# real tools; the tools themselves were not run.
DEVICE = "Failed to create device: 14001"
FAILURES = {
    "qnn-net-run": {
        "err5005": (1, "QnnDsp <E> Failed to create context from binary with err 5005"), "open-session": (1, "qnn_open failed, 0x80000406"),
        "remote-symbols": (1, "<E> Unable to load Remote symbols 4000"), "unfinished": (0, "Executing Graphs"), "no-results": (0, "Finished Executing Graphs"),
        "no-times": (0, "Finished Executing Graphs"), "crash": (139, "Executing Graphs"), "crash-at-exit": (139, "Finished Executing Graphs"),
        "hang": (None, "Executing Graphs"), "ssr": (1, "err 1007"), "endless": (None, "QnnDsp <W> xxxx")},
    "qnn-profile-viewer": {"no-times": (0, "De-Init Stats"), "unreadable": (1, "is not a profiling log")},
    "qnn-throughput-net-run": {"crash-at-exit": (139, "graphExecute"), "no-rows": (0, "PerformanceMonitor"), "hang": (None, ""),
                               "wrong-context": (1, "A Context with Name = c does not exist in this Backend")},
    "genie-t2t-run": {
        "err5005": (1, "Could not create context from binary for context index = 0 : err 5005"), "kernel-line": (1, "qcom,fastrpc-cb a300000.remoteproc:glink"),
        "no-valid-interface": (1, "Qnn getQnnInterface FAILED!"), "map-at": (1, "map::at:  key not found"), "open-session": (1, DEVICE),
        "context-exceeded": (1, "Context Size was exceeded."), "query-failed": (1, "Failed to query."), "crash": (139, "[BEGIN]: "),
        "crash-at-exit": (139, "[END]"), "hang": (None, "[BEGIN]: "), "killed": (137, "[BEGIN]: ")},
    "genie-app": {
        "err5005": (1, "err 5005"), "no-valid-interface": (1, "Unable to find a valid interface."), "map-at": (1, "map::at"), "open-session": (1, DEVICE),
        "context-exceeded": (1, "Context Size was exceeded."), "query-failed": (1, "Failed to query."), "crash": (139, "[BEGIN]: "),
        "crash-at-exit": (139, "> profile save"), "hang": (None, "[BEGIN]: ")},
    "onnxruntime_perf_test": {"setup-backend": (0, "QNN SetupBackend failed " + DEVICE.replace("device: ", "device. Error: ")), "run-failed": (255, "Run failed:"),
                              "crash": (139, ""), "crash-at-exit": (139, "P999 Latency"), "hang": (None, ""), "trace-cut": (0, "P999 Latency")},
    "model_benchmark": {"model-missing": (1, "File doesn't exist"), "provider": (1, "Unknown provider name"), "run-failed": (1, "Error code: 6031"),
                        "hang": (None, ""), "killed": (137, "")},
    "llm_bench": {"absurd": (0, "8000000.00"), "onforward": (0, "[Error]: onForward"), "killed": (137, ""), "hang": (None, ""), "json-missing": (0, "500.00")},
    "llm_demo": {"init": (0, "LLM init error"), "internal": (255, "Response generation failed due to internal error"), "no-block": (0, "prompt file is"),
                 "killed": (137, "prompt file is"), "hang": (None, "User: ")},
}


def tokenizer():
    """Letters, and `th`, `the` merged: `the theory` is the, Ġ, the, o, r, y."""
    letters = sorted(set("abcdefghijklmnopqrstuvwxyzĠ"))
    return {"model": {"type": "BPE", "vocab": {w: i for i, w in enumerate([*letters, "th", "the"])}, "merges": [["t", "h"], ["th", "e"]]}}


class Standins(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.made = tempfile.TemporaryDirectory()
        cls.sdk = Path(cls.made.name)
        subprocess.run([HERE / "make-sdk.sh", cls.sdk], check=True, stdout=subprocess.DEVNULL)
        cls.at = {path.name: path for path in cls.sdk.glob("*/**/aarch64-android/*") if path.name in TOOLS}

    @classmethod
    def tearDownClass(cls):
        cls.made.cleanup()

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.work = Path(self.folder.name)
        self.libraries = self.work / "lib"
        self.libraries.mkdir()
        arch = "75"
        for path in [*self.sdk.glob("*/lib/aarch64-android/*.so"), *self.sdk.glob("*/aarch64-android/*.so"), *self.sdk.glob(f"qairt/lib/hexagon-v{arch}/unsigned/*")]:
            if "Stub" not in path.name or f"V{arch}" in path.name:
                (self.libraries / path.name).write_bytes(path.read_bytes())
        put = lambda name, text: (self.work / name).write_text(text if isinstance(text, str) else json.dumps(text))
        put("standin.json", KNOBS)
        for name in ("prefill.bin", "decode.bin"):
            (self.work / name).write_bytes(CONTEXT)
        (self.work / "ids.raw").write_bytes(struct.pack("<4i", 1, 2, 3, 4))
        put("list.txt", "input_ids:=ids.raw past_key_0_in:=ids.raw\n")
        put("outer.json", {"backend_extensions": {"shared_library_path": "libQnnHtpNetRunExtensions.so", "config_file_path": "inner.json"}})
        put("inner.json", {"devices": [{"soc_model": 57, "dsp_arch": "v75", "cores": [{"core_id": 0, "perf_profile": "burst"}]}]})
        self.genie = {"dialog": {
            "version": 1, "type": "basic", "max-num-tokens": 8, "context": {"version": 1, "size": 128, "n-vocab": 29, "bos-token": 0, "eos-token": 1},
            "sampler": {"version": 1, "seed": 42, "temp": 1.0, "top-k": 1, "top-p": 1.0}, "tokenizer": {"version": 1, "path": "tokenizer.json"},
            "engine": {"version": 1, "n-threads": 3, "backend": {"version": 1, "type": "QnnHtp", "QnnHtp": {
                "version": 1, "use-mmap": False, "spill-fill-bufsize": 0, "mmap-budget": 0, "poll": True, "cpu-mask": "0xe0", "kv-dim": 64}},
                "model": {"version": 1, "type": "binary", "binary": {"version": 1, "ctx-bins": ["prefill.bin", "decode.bin"]}}}}}
        put("genie.json", self.genie)
        put("tokenizer.json", tokenizer())
        put("prompt.txt", "the theory")
        put("script", 'version\nprofile create p\ndialog config create c genie.json\ndialog config bind profile c p\ndialog create d c\ndialog query d prompt.txt answer.txt\n'
                      'dialog reset d\ndialog query d "the"\ndialog free d\nprofile save p app.json\n')
        put("throughput.json", {
            "backends": [{"backendName": "b", "backendPath": "libQnnHtp.so", "profilingLevel": "OFF"}], "contexts": [{"contextName": "c"}],
            "models": [{"modelName": "m", "modelPath": "prefill.bin", "loadFromCachedBinary": True, "inputPath": "list.txt", "inputDataType": "NATIVE"}],
            "testCase": {"iteration": 1, "threads": [{"threadName": "t", "backend": "b", "context": "c", "model": "m", "interval": 0, "loopUnit": "count", "loop": 10}]}})
        (self.work / "m.onnx").write_bytes(b"\x08\x08model")
        for name in ("genai", "mnn"):
            (self.work / name).mkdir()
        put("genai/genai_config.json", {"model": {"context_length": 128, "decoder": {"filename": "model.onnx", "session_options": {"provider_options": [{"qnn": {}}]}}}, "search": {"top_k": 1}})
        for name in ("genai/model.onnx", "genai/tokenizer.json", "mnn/llm.mnn", "mnn/tokenizer.txt"):
            put(name, "x")
        put("mnn/config.json", {"llm_model": "llm.mnn", "llm_weight": "llm.mnn.weight", "max_new_tokens": 16})
        (self.work / "mnn/llm.mnn.weight").write_bytes(bytes(3 << 20))

    def run_tool(self, name, args=None, fail=None, timeout=20, **env):
        """(status as a shell says it, standard output, standard error); None for one that has to be ended."""
        environment = {"PATH": os.environ["PATH"], "LD_LIBRARY_PATH": str(self.libraries), "ADSP_LIBRARY_PATH": f"{self.libraries};/vendor/dsp", **env}
        if fail:
            environment["STANDIN_FAIL"] = fail
        with open(self.work / "stdout", "w+") as out, open(self.work / "stderr", "w+") as err:
            child = subprocess.Popen([self.at[name], *(TOOLS[name] if args is None else args)], cwd=self.work, stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=environment)
            try:
                status = child.wait(timeout)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()
                status = None
        return status if status is None or status >= 0 else 128 - status, (self.work / "stdout").read_text(), (self.work / "stderr").read_text()

    def parse(self, backend, *files):
        """What `bench parse` makes of files; standard output is the last run's."""
        done = subprocess.run([BENCH, "parse", backend, *files], cwd=self.work, capture_output=True, text=True)
        return done.returncode, json.loads(done.stdout)

    def profiled(self):
        self.assertEqual(self.run_tool("qnn-net-run")[0], 0)

    # A run that works, and its reader

    def test_qnn(self):
        status, out, _ = self.run_tool("qnn-net-run")
        self.assertEqual(status, 0, out)
        self.assertIn("Finished Executing Graphs", out)
        self.assertEqual(sorted(p.name for p in (self.work / "out/Result_0").iterdir()), ["logits.raw", "past_key_0_out.raw"])
        self.assertIn(b'"perf_profile": "burst"', (self.work / "out/qnn-profiling-data_0.log").read_bytes())
        self.assertEqual(self.run_tool("qnn-profile-viewer")[0], 0)
        status, read = self.parse("qnn", "stdout")
        self.assertEqual((status, read["failure"]), (0, None))
        text = json.dumps(read)
        # 6400 us by standin.json; 90000 of 120000 cycles are three quarters.
        self.assertIn("6400", text)
        self.assertIn("feed_forward:OpId_27", text)

    def test_throughput(self):
        status, out, _ = self.run_tool("qnn-throughput-net-run")
        self.assertEqual(status, 0)
        self.assertRegex(out, r"t:m:graphExecute: +10 +6400 ")
        self.assertIn("6400", json.dumps(self.parse("qnn", "stdout")[1]))

    def test_genie(self):
        status, out, _ = self.run_tool("genie-t2t-run")
        self.assertEqual(status, 0, out)
        self.assertNotIn("[KPIS]", out)
        events = json.loads((self.work / "profile.json").read_text())["components"][0]["events"]
        self.assertEqual([e["type"] for e in events], ["GenieDialog_create", "GenieDialog_query", "GenieDialog_free"])
        # BOS, then the, Ġ, the, o, r, y.
        self.assertEqual((events[1]["num-prompt-tokens"]["value"], events[1]["num-generated-tokens"]["value"]), (7, 8))
        us = events[1]["token-generation-time"]["value"]
        self.assertGreaterEqual(us, 7 * 2000)
        self.assertEqual(events[1]["token-generation-rate"]["value"], 1e6 / (us // 8))
        status, read = self.parse("genie", "profile.json", "stdout")
        self.assertEqual((status, read["failure"]), (0, None))
        # The profile is never written over.
        status, _, err = self.run_tool("genie-t2t-run")
        self.assertEqual((status, err), (1, "ERROR: Invalid --profile argument. Output file profile.json already exists.\n"))

    def test_genie_of_old(self):
        (self.work / "standin.json").write_text(json.dumps(KNOBS | {"genie_version": "1.1.0"}))
        _, out, _ = self.run_tool("genie-t2t-run")
        self.assertIn("Using libGenie.so version 1.1.0", out)
        self.assertRegex(out, r"\[KPIS\]:\nInit Time: \d+ us\nPrompt Processing Time: \d+ us, Prompt Processing Rate : [0-9.]+ toks/sec\nToken Generation Time: ")
        self.assertEqual(self.parse("genie", "stdout")[0], 0)

    def test_genie_by_tokens(self):
        (self.work / "tokens.txt").write_text("5 6 7")
        status, out, _ = self.run_tool("genie-t2t-run", ["-c", "genie.json", "-tok", "tokens.txt", "--profile", "p.json"])
        self.assertEqual(status, 0, out)
        query = json.loads((self.work / "p.json").read_text())["components"][0]["events"][1]
        # It adds BOS itself.
        self.assertEqual(query["num-prompt-tokens"]["value"], 4)

    def test_genie_app(self):
        status, out, err = self.run_tool("genie-app")
        self.assertEqual(status, 0, out + err)
        self.assertIn("> version\nlibGenie.so = 1.13.0\n", out)
        events = json.loads((self.work / "app.json").read_text())["components"][0]["events"]
        self.assertEqual([e["num-prompt-tokens"]["value"] for e in events if e["type"] == "GenieDialog_query"], [7, 2])
        self.assertEqual(self.parse("genie", "app.json")[0], 0)

    def test_genie_configs(self):
        for change, words in ((lambda d: d["engine"]["backend"]["QnnHtp"].pop("poll"), "Missing QnnHtp field: poll"), (lambda d: d["context"].pop("n-vocab"), "n-vocab"),
                              (lambda d: d["engine"]["backend"]["QnnHtp"].update(turbo=1), "Unknown QnnHtp config key: turbo")):
            config = json.loads(json.dumps(self.genie))
            change(config["dialog"])
            (self.work / "genie.json").write_text(json.dumps(config))
            status, out, _ = self.run_tool("genie-t2t-run", fail=None)
            self.assertEqual(status, 1)
            self.assertIn(words, out)
            self.assertIn("Failed to create the dialog config.", out)
            self.assertFalse((self.work / "profile.json").exists())

    def test_genie_takes_no_more_than_its_context(self):
        (self.work / "prompt.txt").write_text("the " * 128)
        status, out, _ = self.run_tool("genie-t2t-run")
        self.assertEqual((status, out.splitlines()[-2:]), (1, ["[BEGIN]: Context Size was exceeded.", "Failed to query."]))

    def test_perf_test(self):
        status, out, err = self.run_tool("onnxruntime_perf_test")
        self.assertEqual(status, 0, err)
        # 100 runs of 2 ms; the spread is even about it to a hundredth.
        self.assertRegex(out, r"Average inference time cost total: (1\.99|2\.00)\d+ ms")
        self.assertEqual(len((self.work / "result.csv").read_text().splitlines()), 100)
        status, read = self.parse("ort-qnn", "stdout")
        self.assertEqual((status, read["failure"]), (0, None))

    def test_perf_test_falls_back_in_silence(self):
        (self.libraries / "libQnnHtpV75Skel.so").unlink()
        status, _, err = self.run_tool("onnxruntime_perf_test")
        self.assertEqual(status, 0)
        self.assertIn("QNN SetupBackend failed", err)
        status, _, err = self.run_tool("onnxruntime_perf_test", ["-C", "session.disable_cpu_ep_fallback|1", *TOOLS["onnxruntime_perf_test"]])
        self.assertEqual(status, 255)
        self.assertIn("fallback to CPU EP has been explicitly disabled by the user", err)

    def test_model_benchmark(self):
        status, out, err = self.run_tool("model_benchmark")
        self.assertEqual(status, 0, err)
        # 5 repetitions of 33 tokens, the first of which belongs to the prompt.
        self.assertIn("160 * 1 token(s)", out)
        status, read = self.parse("ort-genai", "stdout")
        self.assertEqual((status, read["failure"]), (0, None))
        status, _, err = self.run_tool("model_benchmark", ["-i", "genai", "-l", "120", "-g", "9"])
        self.assertEqual((status, err), (1, "Error: max_length (129) cannot be greater than model context_length (128)\n"))

    def test_llm_bench(self):
        status, out, _ = self.run_tool("llm_bench")
        self.assertEqual(status, 0)
        # 1e6 / 100 and 1e6 / 2000 tokens a second.
        self.assertRegex(out, r"\| mnn +\| +3\.00 MiB \| CPU +\| +4 \| Low +\| pp64\+tg16 +\| 10000\.00 ± [0-9.]+<br>500\.00 ± ")
        self.assertEqual(json.loads((self.work / "bench.json").read_text())["results"][0]["decode_tps"], 500.0)
        status, read = self.parse("mnn", "stdout", "bench.json")
        self.assertEqual((status, read["failure"]), (0, None))

    def test_llm_bench_lies(self):
        for args, words in ((["-m", "nope/config.json"], "17179869184.00 GiB"), (["-m", "mnn/config.json", "-a", "bogus"], "| CPU "),
                            (["-m", "mnn/config.json", "-a", "hexagon"], "Can't Find type=5 backend, use 0 instead")):
            status, out, _ = self.run_tool("llm_bench", [*args, "-p", "8", "-n", "4", "-rep", "1"])
            self.assertEqual(status, 0)
            self.assertIn(words, out)
        self.assertNotEqual(self.parse("mnn", "stdout")[0], 0)

    def test_llm_demo(self):
        status, out, _ = self.run_tool("llm_demo")
        self.assertEqual(status, 0)
        self.assertIn("decode tokens num = 8\n", out)
        status, read = self.parse("mnn", "stdout")
        self.assertEqual((status, read["failure"]), (0, None))
        self.assertEqual(self.run_tool("llm_demo", [])[:2], (0, f"Usage: {self.at['llm_demo']} config.json <prompt.txt>\n"))
        self.assertEqual(self.run_tool("llm_demo", ["mnn/config.json", "nope.txt"])[0], 1)
        status, out, _ = self.run_tool("llm_demo", ["nope/config.json", "prompt.txt"])
        self.assertEqual(status, 0)
        self.assertIn("[Error]: tokenizer file not found: nope/tokenizer.txt\nLLM init error\n", out)

    # What is wrong

    def test_every_tool_refuses_a_wrong_option(self):
        self.profiled()
        wrong = {"llm_bench": (255, "invalid parameter for argument: --bogus"), "onnxruntime_perf_test": (1, "Unknown command line flag 'bogus'"),
                 "model_benchmark": (1, "Unknown option: --bogus")}
        for name in TOOLS:
            if name == "llm_demo":
                continue  # it has no options
            status, words = wrong.get(name, (1, "Invalid argument passed: --bogus"))
            found, out, err = self.run_tool(name, [*TOOLS[name], "--bogus"])
            self.assertEqual(found, status, name)
            self.assertIn(words, out + err, name)

    def test_every_tool_misses_its_library(self):
        link = "CANNOT LINK EXECUTABLE"
        for name, words in {"qnn-net-run": 'dlopen failed: library "libQnnHtp.so" not found', "qnn-throughput-net-run": "Unable to load backend", "genie-t2t-run": link,
                            "genie-app": link, "onnxruntime_perf_test": link, "model_benchmark": link, "llm_bench": link, "llm_demo": link}.items():
            status, out, err = self.run_tool(name, LD_LIBRARY_PATH=str(self.work))
            self.assertEqual(status, 1, name)
            self.assertIn(words, out + err, name)

    def test_stub_skel_and_system_are_missed(self):
        for library, words in (("libQnnHtpV75Stub.so", DEVICE), ("libQnnHtpV75Skel.so", "0x80000406"), ("libQnnSystem.so", "libQnnSystem.so")):
            kept = (self.libraries / library).read_bytes()
            (self.libraries / library).unlink()
            for name in ("qnn-net-run", "genie-t2t-run"):
                status, out, _ = self.run_tool(name)
                self.assertEqual(status, 1, f"{name} without {library}")
                self.assertIn(words, out, f"{name} without {library}")
            (self.libraries / library).write_bytes(kept)
        # A library of another machine is none.
        (self.libraries / "libQnnHtp.so").write_bytes((self.libraries / "libQnnHtpV75Skel.so").read_bytes())
        self.assertIn("instead of EM 183", self.run_tool("qnn-net-run")[1])

    def test_inputs_are_read_strictly(self):
        for text, words in (("nobody:=ids.raw\n", "nobody"), ("input_ids:=nowhere.raw\n", "nowhere.raw")):
            (self.work / "list.txt").write_text(text)
            status, out, _ = self.run_tool("qnn-net-run")
            self.assertEqual(status, 1)
            self.assertIn(words, out)
        (self.work / "list.txt").write_text("input_ids:=ids.raw\n")
        (self.work / "standin.json").write_text(json.dumps(KNOBS | {"input_bytes": {"input_ids": 128}}))
        self.assertIn("Size mismatch", self.run_tool("qnn-net-run")[1])
        (self.work / "inner.json").write_text('{"devices": [{"soc": 57}]}')
        self.assertIn("Invalid key: devices/0/soc", self.run_tool("qnn-net-run")[1])

    def test_every_failure(self):
        for name, failures in FAILURES.items():
            for fail, (status, words) in failures.items():
                with self.subTest(tool=name, failure=fail):
                    for left in ("profile.json", "app.json", "bench.json"):
                        (self.work / left).unlink(missing_ok=True)
                    if name == "qnn-profile-viewer":
                        self.profiled()
                    found, out, err = self.run_tool(name, fail=fail, timeout=3 if status is None else 20)
                    self.assertEqual(found, status, out + err)
                    self.assertIn(words, out + err)

    def test_the_list_of_failures_is_whole(self):
        for name in TOOLS:
            status, _, err = self.run_tool(name, fail="nobody-knows-it")
            self.assertEqual(status, 99, name)
            self.assertEqual(sorted(err.split("there are ")[1].strip().split(", ")), sorted(FAILURES[name]), name)


if __name__ == "__main__":
    unittest.main()
