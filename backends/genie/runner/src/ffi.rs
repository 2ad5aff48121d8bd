//! Genie's C functions behind safe types. The declarations are our own: names from the library's symbols, types from openly
//! licensed callers. Written against Genie API 1.21.
#![expect(unsafe_code, reason = "Genie has a C API only")]

use std::{
    ffi::{CString, c_char, c_void},
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
    ptr, slice,
    sync::{Mutex, PoisonError},
};

use bench_runner_protocol::{Failure, monotonic_ns, with_causes};
use libloading::Library;

type Handle = *mut c_void;
type Status = i32;
type TokenCallback = unsafe extern "C" fn(*const u32, u32, i32, *const c_void);
type AllocCallback = unsafe extern "C" fn(usize, *mut *const c_char);

/// The prompt is all of the query (`GENIE_DIALOG_SENTENCE_COMPLETE`).
const COMPLETE: i32 = 0;

macro_rules! functions {
    ($($name:ident : fn($($argument:ty),*) -> $result:ty;)*) => {
        #[expect(non_snake_case, reason = "the names of the C functions")]
        struct Functions { $($name: unsafe extern "C" fn($($argument),*) -> $result,)* }

        impl Functions {
            /// # Safety
            /// The library is Genie, so that its functions have these types, and is never unloaded.
            unsafe fn load(library: &'static Library) -> Result<Self, Failure> {
                // SAFETY: the caller's.
                Ok(Self { $($name: *unsafe { library.get(concat!(stringify!($name), "\0").as_bytes()) }
                    .map_err(|e| Failure::runtime(format!("not a Genie library: {}: {}", stringify!($name), with_causes(&e))))?,)* })
            }
        }
    };
}

functions! {
    Genie_getApiMajorVersion: fn() -> u32;
    Genie_getApiMinorVersion: fn() -> u32;
    Genie_getApiPatchVersion: fn() -> u32;
    GenieLog_create: fn(Handle, *const c_void, i32, *mut Handle) -> Status;
    GenieLog_free: fn(Handle) -> Status;
    GenieProfile_create: fn(Handle, *mut Handle) -> Status;
    GenieProfile_getJsonData: fn(Handle, AllocCallback, *mut *const c_char) -> Status;
    GenieProfile_free: fn(Handle) -> Status;
    GenieDialogConfig_createFromJson: fn(*const c_char, *mut Handle) -> Status;
    GenieDialogConfig_bindLogger: fn(Handle, Handle) -> Status;
    GenieDialogConfig_bindProfiler: fn(Handle, Handle) -> Status;
    GenieDialogConfig_free: fn(Handle) -> Status;
    GenieDialog_create: fn(Handle, *mut Handle) -> Status;
    GenieDialog_setMaxNumTokens: fn(Handle, u32) -> Status;
    GenieDialog_tokenQuery: fn(Handle, *const u32, u32, i32, TokenCallback, *const c_void) -> Status;
    GenieDialog_reset: fn(Handle) -> Status;
    GenieDialog_free: fn(Handle) -> Status;
}

/// The loaded library.
pub struct Genie {
    functions: Functions,
}

impl Genie {
    /// Loads `libGenie.so`.
    ///
    /// It is never unloaded: it starts threads and registers destructors of thread locals.
    pub fn load(path: &Path) -> Result<&'static Self, Failure> {
        // SAFETY: loading a vendor's library runs its initialisers; that is what this program is for.
        let library = unsafe { Library::new(path) }.map_err(|e| Failure::runtime(format!("{}: {}", path.display(), with_causes(&e))))?;
        let library: &'static Library = Box::leak(Box::new(library));
        // SAFETY: the job names this file as Genie; a library without these symbols is refused.
        let functions = unsafe { Functions::load(library) }?;
        Ok(Box::leak(Box::new(Self { functions })))
    }

    /// The version of the API, `major.minor.patch`.
    pub fn version(&self) -> String {
        let f = &self.functions;
        // SAFETY: these take nothing and have no state.
        let [major, minor, patch] =
            unsafe { [(f.Genie_getApiMajorVersion)(), (f.Genie_getApiMinorVersion)(), (f.Genie_getApiPatchVersion)()] };
        format!("{major}.{minor}.{patch}")
    }
}

/// Creates an object through an out-parameter, and remembers how to free it.
fn create(what: &str, free: unsafe extern "C" fn(Handle) -> Status, create: impl FnOnce(*mut Handle) -> Status) -> Result<Object, Failure> {
    let mut handle = ptr::null_mut();
    check(what, create(&raw mut handle))?;
    if handle.is_null() {
        return Err(Failure::runtime(format!("{what} gave no object")));
    }
    Ok(Object { handle, free })
}

/// A Genie object, freed when it is dropped.
struct Object {
    handle: Handle,
    free: unsafe extern "C" fn(Handle) -> Status,
}

impl Drop for Object {
    fn drop(&mut self) {
        // SAFETY: the handle comes from the matching create function and is freed once.
        let status = unsafe { (self.free)(self.handle) };
        if status != 0 {
            eprintln!("freeing a Genie object: status {status}");
        }
    }
}

/// Records what the dialog does.
pub struct Profile {
    genie: &'static Genie,
    object: Object,
}

/// Where the callback without a user pointer puts the JSON. Only [`Profile::json`] uses it, under [`JSON_IN_USE`].
static JSON: Mutex<Vec<u8>> = Mutex::new(Vec::new());
static JSON_IN_USE: Mutex<()> = Mutex::new(());

impl Profile {
    /// An empty profile.
    pub fn new(genie: &'static Genie) -> Result<Self, Failure> {
        let f = &genie.functions;
        // SAFETY: no configuration (null) is allowed.
        let object = create("GenieProfile_create", f.GenieProfile_free, |out| unsafe { (f.GenieProfile_create)(ptr::null_mut(), out) })?;
        Ok(Self { genie, object })
    }

    /// All that was recorded so far.
    pub fn json(&self) -> Result<Vec<u8>, Failure> {
        let _alone = JSON_IN_USE.lock().unwrap_or_else(PoisonError::into_inner);
        let mut data = ptr::null();
        // SAFETY: the callback keeps the memory that it gives until it is called again, which the lock prevents.
        check("GenieProfile_getJsonData", unsafe {
            (self.genie.functions.GenieProfile_getJsonData)(self.object.handle, on_alloc, &raw mut data)
        })?;
        let mut json = std::mem::take(&mut *JSON.lock().unwrap_or_else(PoisonError::into_inner));
        json.truncate(json.iter().position(|b| *b == 0).unwrap_or(json.len()));
        Ok(json)
    }
}

/// # Safety
/// Called by Genie with a valid out-pointer.
unsafe extern "C" fn on_alloc(size: usize, out: *mut *const c_char) {
    let mut buffer = JSON.lock().unwrap_or_else(PoisonError::into_inner);
    // One more than asked: whether the size counts the final zero is not said.
    *buffer = vec![0; size.saturating_add(1)];
    // SAFETY: the caller's; the buffer stays where it is until `json` takes it.
    unsafe { *out = buffer.as_ptr().cast() };
}

/// A loaded model.
pub struct Dialog<'p> {
    genie: &'static Genie,
    // Fields are dropped in their order: the dialog before what is bound to it.
    object: Object,
    _config: Object,
    _log: Object,
    _profile: &'p Profile,
}

/// A call of the token callback.
pub struct Call {
    /// When it came, [`monotonic_ns`].
    pub t_ns: u64,
    /// The tokens that it brought.
    pub ids: Vec<u32>,
}

impl<'p> Dialog<'p> {
    /// Loads the model that the configuration describes, logging to stdout from `log_level` (1 error .. 4 verbose) on.
    pub fn new(genie: &'static Genie, config_json: Vec<u8>, log_level: i32, profile: &'p Profile) -> Result<Self, Failure> {
        let f = &genie.functions;
        let text = CString::new(config_json).map_err(|e| Failure::model(format!("the Genie configuration: {e}")))?;
        let model = |e: Failure| Failure::model(e.message);
        // SAFETY of all below: handles are alive, out-pointers valid, the text has its end; without a callback Genie logs to stdout.
        let log =
            create("GenieLog_create", f.GenieLog_free, |out| unsafe { (f.GenieLog_create)(ptr::null_mut(), ptr::null(), log_level, out) })?;
        let config = create("GenieDialogConfig_createFromJson", f.GenieDialogConfig_free, |out| unsafe {
            (f.GenieDialogConfig_createFromJson)(text.as_ptr(), out)
        })
        .map_err(model)?;
        check("GenieDialogConfig_bindLogger", unsafe { (f.GenieDialogConfig_bindLogger)(config.handle, log.handle) })?;
        check("GenieDialogConfig_bindProfiler", unsafe { (f.GenieDialogConfig_bindProfiler)(config.handle, profile.object.handle) })?;
        let object =
            create("GenieDialog_create", f.GenieDialog_free, |out| unsafe { (f.GenieDialog_create)(config.handle, out) }).map_err(model)?;
        Ok(Self { genie, object, _config: config, _log: log, _profile: profile })
    }

    /// How many tokens a query may make.
    pub fn set_max_tokens(&self, n: u32) -> Result<(), Failure> {
        // SAFETY: the handle is alive.
        check("GenieDialog_setMaxNumTokens", unsafe { (self.genie.functions.GenieDialog_setMaxNumTokens)(self.object.handle, n) })
    }

    /// Answers a prompt of ids, before which Genie puts its BOS. Gives Genie's status (0 is success, 4 a full context, below 0 an
    /// error) and the callback's calls, of which room is made for `expected`.
    pub fn token_query(&self, ids: &[u32], expected: usize) -> (Status, Vec<Call>) {
        let sink = Mutex::new(Vec::with_capacity(expected));
        // SAFETY: the ids and the sink outlive the call, which returns after the last callback.
        let status = unsafe {
            (self.genie.functions.GenieDialog_tokenQuery)(
                self.object.handle,
                ids.as_ptr(),
                ids.len() as u32,
                COMPLETE,
                on_tokens,
                (&raw const sink).cast(),
            )
        };
        (status, sink.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

    /// Empties the KV cache.
    pub fn reset(&self) -> Result<(), Failure> {
        // SAFETY: the handle is alive.
        check("GenieDialog_reset", unsafe { (self.genie.functions.GenieDialog_reset)(self.object.handle) })
    }
}

/// May come on one of Genie's threads. It must not unwind into C++.
///
/// # Safety
/// Called by Genie with the sink of [`Dialog::token_query`] and `n` tokens.
unsafe extern "C" fn on_tokens(tokens: *const u32, n: u32, _code: i32, sink: *const c_void) {
    let t_ns = monotonic_ns();
    let _ = catch_unwind(AssertUnwindSafe(|| {
        // SAFETY: the caller's.
        let sink = unsafe { &*sink.cast::<Mutex<Vec<Call>>>() };
        let ids = if tokens.is_null() { &[] } else { unsafe { slice::from_raw_parts(tokens, n as usize) } };
        sink.lock().unwrap_or_else(PoisonError::into_inner).push(Call { t_ns, ids: ids.to_vec() });
    }));
}

fn check(what: &str, status: Status) -> Result<(), Failure> {
    if status == 0 { Ok(()) } else { Err(Failure::runtime(format!("{what}: status {status}"))) }
}
