//! What ONNX Runtime's C API tells and the crate `ort` does not wrap.
#![expect(unsafe_code, reason = "three read-only queries of the C API that the crate `ort` does not wrap")]

use std::{
    collections::BTreeMap,
    ffi::{CStr, c_char},
    ptr, slice,
};

use bench_runner_protocol::with_causes;
use libloading::Library;
use ort::{AsPointer, device::Device, session::Session, sys};

/// The version of the library behind this path (`1.32.0`).
pub fn version(library: &str) -> Option<String> {
    // SAFETY: the library is the one that `ort` has already loaded, so nothing new runs; the symbol has this type in every
    // ONNX Runtime, and the string is static.
    unsafe {
        let library = Library::new(library).ok()?;
        let base = library.get::<unsafe extern "C" fn() -> *const sys::OrtApiBase>(b"OrtGetApiBase\0").ok()?();
        string(((*base).GetVersionString)())
    }
}

/// Why the dynamic linker does not load this library, which `ort` does not pass on.
pub fn linker_problem(library: &str) -> Option<String> {
    // SAFETY: the library is about to be this process's ONNX Runtime, so its initialisers were to run anyway.
    unsafe { Library::new(library) }.err().map(|e| with_causes(&e))
}

/// The version of an execution provider, from its device's metadata.
pub fn provider_version(device: &Device<'_>) -> Option<String> {
    let api = ort::api();
    let (mut keys, mut values, mut n) = (ptr::null(), ptr::null(), 0);
    // SAFETY: the device is alive, its metadata belongs to it, and the two arrays have n entries each.
    unsafe {
        let metadata = (api.EpDevice_EpMetadata)(device.ptr());
        if metadata.is_null() {
            return None;
        }
        (api.GetKeyValuePairs)(metadata, &raw mut keys, &raw mut values, &raw mut n);
        (0..n).find(|i| string(*keys.add(*i)).as_deref() == Some("version")).and_then(|i| string(*values.add(i)))
    }
}

/// The nodes of a session by execution provider, each as `name (operator)`; `None` if the session did not record them (entry
/// `session.record_ep_graph_assignment_info`). A context binary is one node.
pub fn nodes_by_provider(session: &Session) -> Option<BTreeMap<String, Vec<String>>> {
    let api = ort::api();
    let mut found = BTreeMap::<String, Vec<String>>::new();
    // SAFETY: the session outlives the calls; all that they return belongs to it and is copied before they end.
    unsafe {
        let (mut parts, mut n) = (ptr::null(), 0);
        ok((api.Session_GetEpGraphAssignmentInfo)(session.ptr(), &raw mut parts, &raw mut n))?;
        for part in entries(parts, n) {
            let (mut provider, mut nodes, mut n) = (ptr::null(), ptr::null(), 0);
            ok((api.EpAssignedSubgraph_GetEpName)(*part, &raw mut provider))?;
            ok((api.EpAssignedSubgraph_GetNodes)(*part, &raw mut nodes, &raw mut n))?;
            let list = found.entry(string(provider)?).or_default();
            for node in entries(nodes, n) {
                let (mut name, mut operator) = (ptr::null(), ptr::null());
                ok((api.EpAssignedNode_GetName)(*node, &raw mut name))?;
                ok((api.EpAssignedNode_GetOperatorType)(*node, &raw mut operator))?;
                list.push(format!("{} ({})", string(name)?, string(operator)?));
            }
        }
    }
    Some(found)
}

/// SAFETY: `status` comes from the C API and is not used again.
unsafe fn ok(status: sys::OrtStatusPtr) -> Option<()> {
    // SAFETY: as above; the error takes the status and frees it.
    unsafe { ort::Error::<()>::result_from_status(status) }.ok()
}

/// SAFETY: null, or `n` entries that live as long as the result is used.
unsafe fn entries<'a, T>(first: *const T, n: usize) -> &'a [T] {
    // SAFETY: as above.
    if first.is_null() { &[] } else { unsafe { slice::from_raw_parts(first, n) } }
}

/// SAFETY: null, or a string with its end.
unsafe fn string(text: *const c_char) -> Option<String> {
    // SAFETY: as above.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
}
