/**
 * Prepares a fresh Debian machine: npm packages, Debian packages, the built program. Runs on plain Node.js, because a
 * fresh machine has nothing else. Does only what is missing, so the second time it takes a moment and no network.
 * `node compile/setup.mjs --help` says how much of it can be asked for. For arm64 and musl it builds into a folder of
 * `dist`, and fetches what only that build needs.
 */
import { spawn, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  closeSync,
  existsSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { orRefuse, readArguments, Refused, usage } from "./arguments.mjs";
import { bunExecutable, fetchBun, readJson, root } from "./bun-executable.mjs";

const bun = join(root, "node_modules/.bin/bun");
/** What `npm run build` builds, and the tests need. */
export const DEFAULT_ARCHITECTURE = "x64";

class Missing extends Error {}

export async function setUp(upTo = "all", architecture = DEFAULT_ARCHITECTURE) {
  await installNpmPackages();
  if (upTo === "packages") return;
  const packages = readJson("compile/debian-packages.json");
  const { processor } = readJson("compile/architectures.json")[architecture];
  const builds = packages.filter((one) => one.builds === processor);
  await installDebianPackages(upTo === "build" ? builds : [...builds, ...packages.filter((one) => !one.builds)]);
  if (upTo === "tools") return;
  if (architecture !== DEFAULT_ARCHITECTURE && !existsSync(bunExecutable(architecture))) {
    say(`fetching Bun for ${architecture} (50 MB)`);
    orMissing(() => fetchBun(architecture));
  }
  const digest = digestOfSources(), { builtFrom } = outputs(architecture);
  const isBuilt = existsSync(builtFrom) && readFileSync(builtFrom, "utf8") === buildRecord(digest, architecture);
  if (upTo === "build" || !isBuilt) build(digest, architecture);
}

/** The program, and the file that says which sources it was built from, and when. */
function outputs(architecture) {
  const directory = join(root, readJson("compile/architectures.json")[architecture].out);
  return { program: join(directory, "patchbay"), builtFrom: join(directory, "built-from") };
}

function orMissing(work) {
  try {
    return work();
  } catch (error) {
    throw new Missing(error.message);
  }
}

async function installNpmPackages() {
  await installLocked();
  // npm may have been told not to run install scripts, and asks first from version 11 on. These two install programs.
  finishInstall("bun", "bin/bun.exe", "install.js");
  finishInstall("deno", "deno", "install.cjs");
  const answer = spawnSync(bun, ["--version"], { encoding: "utf8" });
  const wanted = readJson("node_modules/bun/package.json").version;
  if (answer.stdout?.trim() !== wanted) {
    const reason = answer.error?.message ?? answer.signal ?? (answer.stderr || answer.stdout).trim();
    throw new Missing(`node_modules/.bin/bun does not run (${reason}); Patchbay is built with Bun ${wanted}`);
  }
}

/** The npm packages of a folder with a lockfile of its own, or of the checkout. */
export async function installLocked(folder = ".", ...flags) {
  if (npmPackagesAreCurrent(folder)) return;
  const where = folder === "." ? "" : ` in ${folder}`;
  say(`installing npm packages${where} (npm ci)`);
  const code = await run("npm", ["ci", "--prefix", folder, "--no-audit", "--no-fund", "--loglevel=error", ...flags]);
  if (code === 0) return;
  const lockfile = join(folder, "package-lock.json");
  throw new Missing(`npm ci failed: the npm packages of ${lockfile} are not here and could not be fetched`);
}

function npmPackagesAreCurrent(folder) {
  return Object.entries(readJson(join(folder, "package-lock.json")).packages).every(([path, locked]) => {
    if (path === "" || locked.optional) return true;
    return existsSync(join(root, folder, path, "package.json")) &&
      readJson(join(folder, path, "package.json")).version === locked.version;
  });
}

function finishInstall(name, program, script) {
  const folder = join(root, "node_modules", name);
  if (isElf(join(folder, program))) return;
  say(`finishing the installation of ${name}`);
  const finished = spawnSync(process.execPath, [script], { cwd: folder, encoding: "utf8" });
  if (finished.status !== 0 || !isElf(join(folder, program))) {
    throw new Missing(`${name}: its install script failed:\n${finished.stdout}${finished.stderr}`);
  }
}

function isElf(path) {
  if (!existsSync(path)) return false;
  const start = Buffer.alloc(4);
  const fd = openSync(path, "r");
  readSync(fd, start);
  closeSync(fd);
  return start.equals(Buffer.from("\x7fELF"));
}

async function installDebianPackages(needed) {
  if (process.platform !== "linux") throw new Missing("Linux is needed");
  const missing = needed.filter((one) => !isInstalled(one.has)).map((one) => one.name);
  const names = missing.join(" ");
  if (process.getuid() !== 0 && !needed.every(({ builds }) => builds)) {
    throw new Missing("root is needed to make network namespaces; npm run test:unit does without");
  }
  if (missing.length === 0) return;
  if (process.getuid() !== 0) {
    throw new Missing(`the build needs Debian packages, and root to install them: ${names}`);
  }
  if (!isInstalled("apt-get")) throw new Missing(`missing programs, and no apt-get to install them: ${names}`);
  say(`installing Debian packages: ${names}`);
  const environment = { ...process.env, DEBIAN_FRONTEND: "noninteractive" };
  await run("apt-get", ["update", "-qq"], environment);
  const install = ["install", "-y", "-qq", "--no-install-recommends", "-o", "Dpkg::Use-Pty=0", ...missing];
  const code = await withoutStartingServices(() => run("apt-get", install, environment));
  if (code !== 0) throw new Missing(`could not install the Debian packages: ${names}`);
}

/**
 * Packages with a daemon start it when they are installed, unless this file says no; images for containers have it. A
 * DHCP server must not serve the network of the machine that runs the tests.
 */
async function withoutStartingServices(work) {
  const policy = "/usr/sbin/policy-rc.d";
  if (existsSync(policy)) return await work();
  // Ctrl-C ends apt-get, too, and then the file goes.
  const waits = () => {};
  for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, waits);
  writeFileSync(policy, "#!/bin/sh\nexit 101\n", { mode: 0o755 });
  try {
    return await work();
  } finally {
    rmSync(policy, { force: true });
    for (const signal of ["SIGINT", "SIGTERM"]) process.off(signal, waits);
  }
}

function isInstalled(thing) {
  if (thing.startsWith("/")) return existsSync(thing);
  const folders = thing.includes(".so.")
    ? ["/lib", "/usr/lib", `/usr/lib/${process.arch === "arm64" ? "aarch64" : "x86_64"}-linux-gnu`, "/usr/lib64"]
    : ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];
  return folders.some((folder) => existsSync(join(folder, thing)));
}

/** Takes the digest before the build: sources that change meanwhile are built again the next time. */
function build(digest, architecture) {
  const { builtFrom } = outputs(architecture);
  rmSync(builtFrom, { force: true });
  const words = ["compile/build.ts", "--arch", architecture];
  const finished = spawnSync(bun, words, { cwd: root, encoding: "utf8" });
  if (finished.status !== 0) throw new Missing(`the build failed\n${finished.stdout}${finished.stderr}`);
  say(finished.stdout.trim());
  writeFileSync(builtFrom, buildRecord(digest, architecture));
}

/** With the program's own time, so that one that was built without this script is built again. */
function buildRecord(digest, architecture) {
  const { program } = outputs(architecture);
  return `${digest} ${existsSync(program) ? statSync(program).mtimeMs : "missing"}`;
}

/** The digest of all that a build reads. */
function digestOfSources() {
  const hash = createHash("sha256");
  for (const path of ["src", "compile", "types", "package.json", "package-lock.json", "tsconfig.json"]) add(path);
  return hash.digest("hex");

  function add(path) {
    if (statSync(join(root, path)).isDirectory()) {
      for (const name of readdirSync(join(root, path)).sort()) add(join(path, name));
    } else {
      hash.update(`${path}\0`).update(readFileSync(join(root, path))).update("\0");
    }
  }
}

/** Runs a command and answers its status. Shows its output only when it fails, and a sign of life when it takes long. */
function run(command, args, environment = process.env) {
  return new Promise((done) => {
    const child = spawn(command, args, { cwd: root, env: environment, stdio: ["ignore", "pipe", "pipe"] });
    let output = "";
    for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk) => (output += chunk));
    const started = Date.now();
    const alive = setInterval(() => say(`… ${command} (${Math.round((Date.now() - started) / 1000)} s)`), 15_000);
    child.on("error", (error) => (output += error.message));
    child.on("close", (code) => {
      clearInterval(alive);
      if (code !== 0) process.stderr.write(output.endsWith("\n") ? output : `${output}\n`);
      done(code ?? 1);
    });
  });
}

export function say(text) {
  console.log(`[patchbay] ${text}`);
}

/** Runs `work` and answers the exit status. A `Missing` becomes one line without a stack. */
export async function orSay(work) {
  try {
    return (await work()) ?? 0;
  } catch (error) {
    if (!(error instanceof Missing)) throw error;
    console.error(`[patchbay] ${error.message}`);
    return 1;
  }
}

const architectureNames = Object.keys(readJson("compile/architectures.json"));

const tool = {
  name: "setup",
  call: "node compile/setup.mjs",
  about: `Sets this machine up: fetches and builds what is missing.

  packages  npm packages
  tools     npm and Debian packages
  build     npm packages and the Debian packages of the build, and always builds: npm run build
  all       npm and Debian packages, and builds unless that is done (the default)`,
  words: "[packages|tools|build|all]",
  options: {
    arch: {
      type: "string",
      value: "NAME",
      about: `builds for this processor and C library: ${architectureNames.join(", ")}`,
    },
  },
};

async function main(argv) {
  const given = readArguments(tool, argv);
  if (given === undefined) return console.log(usage(tool));
  const { values: { arch }, positionals: [upTo, ...others] } = given;
  if (arch !== undefined && !architectureNames.includes(arch)) {
    throw new Refused(`there is no build for ${arch}; --arch takes ${architectureNames.join(", ")}`);
  }
  const unknown = upTo === undefined || ["packages", "tools", "build", "all"].includes(upTo) ? others : [upTo];
  if (unknown.length > 0) throw new Refused(`Unexpected argument '${unknown[0]}'; --help says what there is`);
  await setUp(upTo, arch);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  process.exitCode = await orRefuse(tool, () => orSay(() => main(process.argv.slice(2))));
}
