/**
 * The C library of the image, from Debian's package `libc6` for each processor, which is downloaded and never installed.
 * Both are of one version, with its security updates; the cross-compiler's copy for arm64 gets none.
 */
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import type { Distributions } from "../../compile/architectures.ts";
import { madeOnce } from "../../compile/made-once.ts";
import { privateApt } from "../../compile/private-apt.ts";
import type { File } from "../files.ts";

/** What the program and Bun load: `readelf -d dist/patchbay`. */
const LIBRARIES = ["libc.so.6", "libdl.so.2", "libm.so.6", "libpthread.so.0"];

const cache = resolve(import.meta.dir, "../../.cache/libc6");

export interface CLibrary {
  /** As Debian calls it. */
  architecture: string;
  version: string;
  purl: string;
  /** The digest of Debian's package. */
  sha256: string;
  files: File[];
}

/** Downloads it when it is not in `.cache`. Remove it there to get a newer one. */
export function cLibrary({ debian, libraries, loader }: Distributions): CLibrary {
  const unpacked = madeOnce(join(cache, debian), (unfinished) => download(debian, unfinished));
  const read = (path: string) => readFileSync(join(unpacked, path));
  const control = read("control");
  const version = /^Version: (.*)$/m.exec(control.toString())![1]!;
  return {
    architecture: debian,
    version,
    purl: `pkg:deb/debian/libc6@${encodeURIComponent(version)}?arch=${debian}`,
    sha256: read("sha256").toString(),
    files: [
      ...LIBRARIES.map((library) => `${libraries}/${library}`).map((path) => ({ path, bytes: read(path) })),
      // In Debian a link to a file among the libraries.
      { path: loader, bytes: read(`${libraries}/${loader.slice(loader.lastIndexOf("/") + 1)}`), isExecutable: true },
      { path: "usr/share/doc/libc6/copyright", bytes: read("usr/share/doc/libc6/copyright") },
      // Where scanners look for packages in images without a package manager.
      { path: "var/lib/dpkg/status.d/libc6", bytes: control },
    ],
  };
}

function download(architecture: string, into: string): void {
  const temporary = mkdtempSync(join(tmpdir(), "libc6-")), archives = join(temporary, "fetched");
  mkdirSync(archives);
  const options = privateApt({ folder: temporary, architecture });
  try {
    run(["apt-get", ...options, "update"], archives);
    run(["apt-get", ...options, "download", "libc6"], archives);
    const archive = join(archives, readdirSync(archives)[0]!);
    run(["dpkg-deb", "--extract", archive, into], archives);
    writeFileSync(join(into, "control"), run(["dpkg-deb", "--field", archive], archives));
    const digest = new Bun.CryptoHasher("sha256").update(readFileSync(archive)).digest("hex");
    writeFileSync(join(into, "sha256"), digest);
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
