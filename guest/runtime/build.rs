//! Compiles the shim and passes the linker what a freestanding static PIE with our own entry needs.
use std::path::PathBuf;
use std::{env, fs};

/// Environment variables that name what is linked into the image.
const INPUTS: [&str; 2] = ["WCPOD_COMPONENT", "WCPOD_STDLIB"];

fn main() {
    let shim = PathBuf::from("../shim");
    println!("cargo:rerun-if-changed={}", shim.display());
    let generated = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    fs::write(generated.join("layout.h"), guest_abi::c_header::c_header()).expect("OUT_DIR can be written to");
    cc::Build::new()
        .include(&shim)
        .include(&generated)
        .files(["decode.c", "paging.c", "trap.c", "entry.S"].map(|file| shim.join(file)))
        .flag("-mgeneral-regs-only")
        .flag("-ffreestanding")
        .flag("-fno-stack-protector")
        .flag("-mno-red-zone")
        .flag("-fcf-protection=none")
        .flag("-fno-tree-loop-distribute-patterns")
        .flag("-fno-jump-tables")
        .flag("-fno-asynchronous-unwind-tables")
        .pic(true)
        .opt_level(2)
        .compile("shim");
    for argument in [
        "-nostdlib",
        "-nostartfiles",
        "-static-pie",
        "-Wl,-e,shim_entry",
        "-Wl,-z,norelro",
        "-Wl,-z,max-page-size=4096",
        "-Wl,--build-id=none",
    ] {
        println!("cargo:rustc-link-arg-bins={argument}");
    }
    for name in INPUTS {
        println!("cargo:rerun-if-env-changed={name}");
        match env::var(name) {
            Ok(path) => println!("cargo:rerun-if-changed={path}"),
            Err(_) => panic!("set {name}: `make guest` does it"),
        }
    }
}
