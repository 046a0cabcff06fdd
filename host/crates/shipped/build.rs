//! Compresses the components that the program carries, with the feature `components` alone.
//!
//! The output depends on the components and on nothing else of this machine: one thread compresses, and the generated
//! code has no absolute path.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-check-cfg=cfg(dependency_list)");
    #[cfg(feature = "components")]
    components::embed();
}

#[cfg(feature = "components")]
mod components {
    use sha2::{Digest as _, Sha256};
    use std::fmt::Write as _;
    use std::path::{Path, PathBuf};
    use std::{env, fs, io};

    /// Names the directory with the components, `NAME.wasm`, and at will [`DEPENDENCIES`].
    const VARIABLE: &str = "LONGHAUL_SHIPPED_DIRECTORY";

    /// The list of the program's dependencies as auditors of programs read it, or no such file.
    const DEPENDENCIES: &str = "dependencies.zlib";

    /// The highest level whose window is 8 MiB, so that unpacking needs little memory. It takes half a second a
    /// megabyte, once a release.
    const LEVEL: i32 = 19;

    /// Writes the table of components; what is wrong becomes an error of cargo's, in one line.
    pub fn embed() {
        println!("cargo::rerun-if-env-changed={VARIABLE}");
        let Some(directory) = env::var_os(VARIABLE).filter(|value| !value.is_empty()).map(PathBuf::from) else {
            println!(
                "cargo::error=the feature `shipped` carries built plugins: build them with `cargo xtask plugins`, and name their directory with {VARIABLE}, as `cargo xtask dist` does"
            );
            return;
        };
        let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
        match write(&directory, &out) {
            Ok(0) => println!("cargo::error={VARIABLE} names `{}`, which has no NAME.wasm", directory.display()),
            Ok(_) => {}
            Err(error) => println!("cargo::error={VARIABLE} names `{}`: {error}", directory.display()),
        }
    }

    /// Returns the number of components.
    fn write(directory: &Path, out: &Path) -> io::Result<usize> {
        println!("cargo::rerun-if-changed={}", directory.display());
        let mut components: Vec<PathBuf> =
            fs::read_dir(directory)?.map(|entry| Ok(entry?.path())).collect::<io::Result<_>>()?;
        components.retain(|path| path.extension().is_some_and(|extension| extension == "wasm"));
        components.sort();
        let mut table = "&[\n".to_owned();
        for component in &components {
            println!("cargo::rerun-if-changed={}", component.display());
            let name = component.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            let bytes = fs::read(component)?;
            fs::write(out.join(format!("{name}.zst")), zstd::bulk::compress(&bytes, LEVEL)?)?;
            let digest: [u8; 32] = Sha256::digest(&bytes).into();
            let (length, file) = (bytes.len(), format!("/{name}.zst"));
            let packed = format!("include_bytes!(concat!(env!(\"OUT_DIR\"), {file:?}))");
            writeln!(table, "Packed {{ name: {name:?}, digest: {digest:?}, length: {length}, packed: {packed} }},")
                .map_err(io::Error::other)?;
        }
        table.push(']');
        fs::write(out.join("components.rs"), table)?;
        let list = directory.join(DEPENDENCIES);
        if list.is_file() {
            println!("cargo::rerun-if-changed={}", list.display());
            println!("cargo::rustc-cfg=dependency_list");
            fs::write(out.join(DEPENDENCIES), fs::read(list)?)?;
        }
        Ok(components.len())
    }
}
