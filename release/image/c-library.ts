/**
 * The C library of the image, from Debian's package `libc6` for each processor, which is downloaded and never installed.
 * Both are of one version, with its security updates; the cross-compiler's copy for arm64 gets none.
 */
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join, resolve } from "node:path";
import type { TarEntry } from "../tar.ts";

/** What the program and Bun load: `readelf -d dist/patchbay`. */
const LIBRARIES = ["libc.so.6", "libdl.so.2", "libm.so.6", "libpthread.so.0"];

/** How Debian calls the processor, and where programs look for their loader and libraries there. */
const debian = {
  x64: { name: "amd64", folder: "lib/x86_64-linux-gnu", loader: "lib64/ld-linux-x86-64.so.2" },
  arm64: { name: "arm64", folder: "lib/aarch64-linux-gnu", loader: "lib/ld-linux-aarch64.so.1" },
} as const;

/** Debian has no other C library. */
export type ImageArchitecture = keyof typeof debian;

const cache = resolve(import.meta.dir, "../../.cache/libc6");

export interface CLibrary {
  /** As Debian calls it. */
  architecture: string;
  version: string;
  /** Of Debian's package. */
  sha256: string;
  files: TarEntry[];
}

/** Downloads it when it is not in `.cache`: whoever wants a newer one removes it there. */
export function cLibrary(architecture: ImageArchitecture): CLibrary {
  const { name, folder, loader } = debian[architecture], unpacked = join(cache, name);
  if (!existsSync(join(unpacked, "sha256"))) download(name, unpacked);
  const read = (path: string) => readFileSync(join(unpacked, path));
  const control = read("control");
  return {
    architecture: name,
    sha256: read("sha256").toString(),
    version: /^Version: (.*)$/m.exec(control.toString())![1]!,
    files: [
      ...LIBRARIES.map((library) => ({
        path: `${folder}/${library}`,
        mode: 0o644,
        bytes: read(`${folder}/${library}`),
      })),
      // In Debian a link to a file among the libraries.
      { path: loader, mode: 0o755, bytes: read(`${folder}/${loader.slice(loader.lastIndexOf("/") + 1)}`) },
      { path: "usr/share/doc/libc6/copyright", mode: 0o644, bytes: read("usr/share/doc/libc6/copyright") },
      // Where scanners look for packages in images without a package manager.
      { path: "var/lib/dpkg/status.d/libc6", mode: 0o644, bytes: control },
    ],
  };
}

function download(name: string, unpacked: string): void {
  mkdirSync(cache, { recursive: true });
  const temporary = mkdtempSync(join(cache, "download-")), files = join(temporary, "files");
  for (const part of ["state/lists/partial", "archives/partial", "files"]) {
    mkdirSync(join(temporary, part), { recursive: true });
  }
  writeFileSync(join(temporary, "status"), "");
  // Lists of its own, so that nothing of this machine changes, and none of its settings but the sources count.
  const settings = {
    "APT::Sandbox::User": "root",
    "APT::Architecture": name,
    "APT::Architectures::": name,
    "Acquire::Languages": "none",
    "Dir::State": join(temporary, "state"),
    "Dir::State::status": join(temporary, "status"),
    "Dir::Cache": temporary,
  };
  const options = ["-qq", ...Object.entries(settings).flatMap(([key, value]) => ["-o", `${key}=${value}`])];
  try {
    run(["apt-get", ...options, "update"], temporary);
    run(["apt-get", ...options, "download", "libc6"], temporary);
    const archive = readdirSync(temporary).find((file) => file.endsWith(".deb"))!;
    run(["dpkg-deb", "--extract", archive, "files"], temporary);
    writeFileSync(join(files, "control"), run(["dpkg-deb", "--field", archive], temporary));
    const digest = new Bun.CryptoHasher("sha256").update(readFileSync(join(temporary, archive))).digest("hex");
    writeFileSync(join(files, "sha256"), digest);
    rmSync(unpacked, { recursive: true, force: true });
    renameSync(files, unpacked);
  } finally {
    rmSync(temporary, { recursive: true, force: true });
  }
}

function run(command: string[], cwd: string): Uint8Array {
  const { exitCode, stdout, stderr } = Bun.spawnSync(command, { cwd, stdin: "ignore" });
  if (exitCode !== 0) {
    throw new Error(
      `${command[0]} ${command.at(-1)}: exit ${exitCode}\n${stderr}${stdout}\n` +
        "The image needs Debian's libc6 of both processors: apt's sources have to have it.",
    );
  }
  return stdout;
}
