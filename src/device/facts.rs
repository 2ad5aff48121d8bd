//! What this machine is. No host name and no user: run folders are shared.

use bench_backend_api::{DeviceClass, DeviceFacts};
use sysinfo::{CpuRefreshKind, MemoryRefreshKind, RefreshKind, System};

/// Facts of the local machine; `soc_model` and `htp_arch` say which chip the HTP emulator stands for.
pub fn local(soc_model: u32, htp_arch: u32) -> DeviceFacts {
    let wanted = RefreshKind::nothing().with_cpu(CpuRefreshKind::nothing()).with_memory(MemoryRefreshKind::nothing().with_ram());
    let system = System::new_with_specifics(wanted);
    DeviceFacts {
        name: super::local::LOCAL.to_owned(),
        class: DeviceClass::Pc,
        os: std::env::consts::OS.to_owned(),
        arch: std::env::consts::ARCH.to_owned(),
        cpu: system.cpus().first().map(|c| c.brand().trim().to_owned()).filter(|b| !b.is_empty()),
        cores: u32::try_from(system.cpus().len()).ok().filter(|n| *n > 0),
        memory_mb: Some(system.total_memory() / 1_000_000).filter(|n| *n > 0),
        kernel: System::kernel_version(),
        soc_model,
        htp_arch,
        remote: false,
        soc: None,
        vtcm_mb: None,
        no_llm: None,
    }
}

/// Facts of a phone that is yet to be asked: what a plan can know.
pub fn phone(soc_model: u32, htp_arch: u32) -> DeviceFacts {
    DeviceFacts {
        name: "phone".to_owned(),
        class: DeviceClass::Phone,
        os: "android".to_owned(),
        arch: "aarch64".to_owned(),
        cpu: None,
        cores: None,
        memory_mb: None,
        kernel: None,
        soc_model,
        htp_arch,
        remote: true,
        soc: None,
        vtcm_mb: None,
        no_llm: None,
    }
}
