/**
 * Root directories of other hosts than this one: other releases of Debian, and one with musl in the place of glibc. Fetched
 * once into `.cache`, with apt-get and npm; run by itself, this file fetches all of them.
 */
import { existsSync, mkdirSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { bunExecutable, fetchBun } from "../../compile/bun-executable.mjs";
import { madeOnce } from "../../compile/made-once.ts";
import { privateApt } from "../../compile/private-apt.ts";
import { run } from "../vm/kernel.ts";
import { makeFolders, unpackArchive, unpackPackages } from "../vm/unpacked-packages.ts";

const cache = resolve(import.meta.dir, "../../.cache/hosts");
/** This machine's release. Its sources of packages lead to the other releases. */
const OWN_RELEASE = "bookworm";
const KEYS = "/usr/share/keyrings/debian-archive-keyring.gpg";

/** With its oldest glibc of them, and its newest. */
export const releases = { bullseye: "2.31", trixie: "2.41" } as const;
export type Release = keyof typeof releases;

const PROGRAMS = ["coreutils", "dash", "grep", "iproute2", "iptables", "libnl-3-200", "nftables", "sed"];

export function debianRelease(release: Release): string {
  return withPackages(release, release, PROGRAMS);
}

/** podman 5.4 with all it calls, among them its own netavark, 1.14, whose driver is nftables. */
export function debianPodman5(): string {
  const engine = ["podman", "conmon", "crun", "netavark", "aardvark-dns"];
  return withPackages("podman-5", "trixie", [...PROGRAMS, "findutils", "mount", "tar", "util-linux", ...engine]);
}

function withPackages(name: string, release: Release, packages: readonly string[]): string {
  return madeOnce(join(cache, name), (unfinished) => {
    const directory = aptDirectory(name), options = aptOptions(directory, release);
    unpackPackages({ options, cache: join(directory, "cache"), packages }, unfinished);
    if (!existsSync(join(unfinished, "bin/sh"))) symlinkSync("dash", join(unfinished, "bin/sh"));
  });
}

/** One for each root, because they may be fetched side by side. */
function aptDirectory(name: string): string {
  return join(cache, `apt-${name}`);
}

/** For lists and packages of that release, from where this machine has its own. */
function aptOptions(directory: string, release: Release): string[] {
  const targets = Bun.spawnSync([
    "apt-get",
    "indextargets",
    "--format",
    "$(RELEASE) $(REPO_URI)",
    "Created-By: Packages",
  ]);
  const places = targets.stdout.toString().split("\n").map((line) => line.split(" "));
  const own = [...new Set(places.filter(([one]) => one === OWN_RELEASE).map(([, place]) => place!))];
  if (own.length === 0) throw new Error(`apt-get has no source of packages for ${OWN_RELEASE}, as Debian 12 has`);
  const signed = existsSync(KEYS) ? `[signed-by=${KEYS}] ` : "";
  const sources = join(directory, "sources.list");
  mkdirSync(directory, { recursive: true });
  writeFileSync(sources, own.map((place) => `deb ${signed}${place} ${release} main\n`).join(""));
  return privateApt({ folder: directory, sources });
}

const MUSL_RELEASE = "trixie";
/** The compiler's library, which Alpine has a package of and Debian has for glibc alone. */
const COMPILERS = ["libstdc++-14-dev", "libgcc-14-dev"];

/**
 * musl 1.2.5, a shell, and nothing of glibc. `bun` is what needs the compiler's library: its functions that Bun asks for are
 * linked from Debian's archive, where they are not bound to a C library yet.
 */
export function muslRoot(bun: string): string {
  return madeOnce(join(cache, "musl"), (unfinished) => {
    const options = aptOptions(aptDirectory("musl"), MUSL_RELEASE), archives = `${unfinished}.archives`;
    mkdirSync(archives, { recursive: true });
    try {
      run(["apt-get", ...options, "update"], "/");
      run(["apt-get", ...options, "download", "musl", "busybox-static", ...COMPILERS], archives);
      const unpacked = (name: string) => {
        const into = join(archives, name);
        mkdirSync(into);
        unpackArchive(join(archives, readdirSync(archives).find((one) => one.startsWith(`${name}_`))!), into);
        return into;
      };
      makeFolders(unfinished);
      const library = join(unfinished, "lib/ld-musl-x86_64.so.1");
      run(["cp", join(unpacked("musl"), "usr/lib/x86_64-linux-musl/libc.so"), library], "/");
      symlinkSync("ld-musl-x86_64.so.1", join(unfinished, "lib/libc.musl-x86_64.so.1"));
      run(["cp", join(unpacked("busybox-static"), "usr/bin/busybox"), join(unfinished, "bin/busybox")], "/");
      for (const name of ["sh", "cat", "ls"]) symlinkSync("busybox", join(unfinished, "bin", name));
      const parts = COMPILERS.map((name) => join(unpacked(name), "usr/lib/gcc/x86_64-linux-gnu/14"));
      linkCompilersLibrary(bun, library, parts, join(unfinished, "lib/libstdc++.so.6"));
    } finally {
      rmSync(archives, { recursive: true, force: true });
    }
  });
}

/** What the archive takes from glibc and musl has not. */
const MISSING = `
typedef unsigned key;
int pthread_key_create(key *, void (*)(void *));
long getrandom(void *, unsigned long, unsigned);
void *__dso_handle __attribute__((visibility("hidden"))) = &__dso_handle;
char __libc_single_threaded = 0;
int __pthread_key_create(key *made, void (*end)(void *)) { return pthread_key_create(made, end); }
int _dl_find_object(void *at, void *found) { (void)at, (void)found; return -1; }
unsigned long strtoul(const char *, char **, int);
unsigned long __isoc23_strtoul(const char *from, char **end, int base) { return strtoul(from, end, base); }
unsigned long strftime_l(char *, unsigned long, const char *, const void *, void *);
unsigned long __strftime_l(char *into, unsigned long size, const char *format, const void *time, void *locale) {
  return strftime_l(into, size, format, time, locale);
}
unsigned arc4random(void) { unsigned value; getrandom(&value, sizeof value, 0); return value; }
`;

function linkCompilersLibrary(bun: string, musl: string, parts: string[], out: string): void {
  const [cpp, gcc] = parts, source = `${out}.c`;
  const has = new Set(symbols(["--dyn-syms", musl], / (?:GLOBAL|WEAK) .* (?!UND)\S+ (\w+)$/gm));
  const asked = [
    ...symbols(["--dyn-syms", bun], / GLOBAL .* UND (\w+)$/gm),
    ...symbols(["--relocs", bun], /R_X86_64_COPY +\w+ (\w+)/g),
  ].filter((name) => !has.has(name));
  writeFileSync(source, MISSING);
  const flags = ["-shared", "-nostdlib", "-fPIC", "-O1", "-ffreestanding", "-Wl,-soname,libstdc++.so.6"];
  const wanted = asked.map((name) => `-Wl,-u,${name}`);
  const archives = [join(cpp!, "libstdc++.a"), join(gcc!, "libgcc_eh.a"), join(gcc!, "libgcc.a")];
  run(["x86_64-linux-gnu-gcc", ...flags, ...wanted, "-o", out, source, ...archives], "/");
  rmSync(source);
}

function symbols(words: string[], pattern: RegExp): string[] {
  const { stdout } = Bun.spawnSync(["readelf", "--wide", ...words]);
  return [...stdout.toString().matchAll(pattern)].map(([, name]) => name!);
}

if (import.meta.main) {
  for (const release of Object.keys(releases) as Release[]) debianRelease(release);
  if (!existsSync(bunExecutable("x64-musl"))) fetchBun("x64-musl");
  muslRoot(bunExecutable("x64-musl"));
  debianPodman5();
}
