"""ONNX Runtime's QNN plugin execution provider, as far as these scripts use it."""

import onnx
import onnxruntime as ort

from geometry import Unmakeable

_device = None


def _npu():
    """The plugin's device; its library may be registered once a process."""
    global _device
    if _device is None:
        import onnxruntime_qnn as plugin
        ort.register_execution_provider_library(plugin.EP_NAME, plugin.get_library_path())
        found = [d for d in ort.get_ep_devices() if d.ep_name == plugin.EP_NAME]
        if not found:
            raise Unmakeable("the QNN execution provider offers no device on this machine")
        _device = found[0], plugin.get_qnn_htp_path()
    return _device


def session(model, soc_model, htp_arch, entries=None):
    """A session on the HTP (on a PC: its emulator). An operator that the HTP can't run is an error, not a silent fallback."""
    device, backend = _npu()
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
    for key, value in (entries or {}).items():
        options.add_session_config_entry(key, value)
    provider = {"backend_path": backend, "soc_model": str(soc_model), "htp_arch": str(htp_arch), "offload_graph_io_quantization": "0"}
    options.add_provider_for_devices([device], provider)
    return ort.InferenceSession(str(model), options)


def compile_context(model, out, name, soc_model, htp_arch):
    """`out`/NAME.bin, the context binary of ONNX file `model`, and `out`/NAME.onnx, the wrapper with which ONNX Runtime loads it."""
    wrapper, binary = out / f"{name}.onnx", out / f"{name}.bin"
    try:
        session(model, soc_model, htp_arch, entries={
            "ep.context_enable": "1", "ep.context_file_path": str(wrapper), "ep.context_embed_mode": "0"})
    except Exception as e:
        raise Unmakeable(f"QNN did not compile the {name} graph for soc_model {soc_model}, htp_arch {htp_arch}: {e}") from e
    made = onnx.load(wrapper)
    nodes = [n for n in made.graph.node if n.op_type == "EPContext"]
    if len(nodes) != 1 or len(made.graph.node) != 1:
        raise Unmakeable(f"the {name} graph fell into {len(made.graph.node)} parts: not all of it is on the NPU")
    # ONNX Runtime picks the binary's name (NAME_qnn.bin). The wrapper refers to it relative to itself, so a folder can be moved.
    reference = next(a for a in nodes[0].attribute if a.name == "ep_cache_context")
    (out / reference.s.decode()).rename(binary)
    reference.s = binary.name.encode()
    onnx.save(made, wrapper)
