/**
 * Makes a fresh Debian machine ready: npm packages, Debian packages, the built binary. Runs on plain Node.js, because
 * nothing else is there yet, and does only what is missing, so that it takes a moment and no network the second time.
 *
 * `node compile/setup.mjs [packages|tools|all]`: `packages` stops after the npm packages, `tools` before the build.
 */
import { spawn, spawnSync } from "node:child_process";
import { closeSync, existsSync, openSync, readdirSync, readFileSync, readSync, statSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

export const root = resolve(dirname(fileURLToPath(import.meta.url)), "..");
export const bun = join(root, "node_modules/.bin/bun");

/** Where the tests, the demo and the benchmark need something of Debian's: what shows that it is there, its package. */
const debianPackages = [
  ["ip", "iproute2"],
  ["ping", "iputils-ping"],
  ["nft", "nftables"],
  ["iptables-save", "iptables"],
  ["strace", "strace"],
  ["dbus-daemon", "dbus-daemon"],
  ["setcap", "libcap2-bin"],
  ["zsh", "zsh"],
  ["fish", "fish"],
  ["/usr/lib/cni/bridge", "containernetworking-plugins"],
  ["libnl-3.so.200", "libnl-3-200"],
];

class Missing extends Error {}

export async function setUp(upTo = "all") {
  await installNpmPackages();
  if (upTo === "packages") return;
  await installDebianPackages();
  if (upTo === "tools") return;
  buildIfOutdated();
}

async function installNpmPackages() {
  if (!npmPackagesAreCurrent()) {
    say("installing npm packages (npm ci)");
    const code = await run("npm", ["ci", "--no-audit", "--no-fund", "--loglevel=error"]);
    if (code !== 0) {
      throw new Missing("npm ci failed: the npm packages of package-lock.json are not here and could not be fetched");
    }
  }
  // npm may be told not to run install scripts, and from version 11 asks first; these two put programs in place.
  finishInstall("bun", "bin/bun.exe", "install.js");
  finishInstall("deno", "deno", "install.cjs");
  const answer = spawnSync(bun, ["--version"], { encoding: "utf8" });
  const wanted = readJson("node_modules/bun/package.json").version;
  if (answer.stdout?.trim() !== wanted) {
    const reason = answer.error?.message ?? answer.signal ?? (answer.stderr || answer.stdout).trim();
    throw new Missing(`node_modules/.bin/bun does not run (${reason}); Patchbay is built with Bun ${wanted}`);
  }
}

function npmPackagesAreCurrent() {
  return Object.entries(readJson("package-lock.json").packages).every(([path, locked]) => {
    if (path === "" || locked.optional) return true;
    return existsSync(join(root, path, "package.json")) &&
      readJson(join(path, "package.json")).version === locked.version;
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

async function installDebianPackages() {
  if (process.platform !== "linux") throw new Missing("Linux is needed");
  if (process.getuid() !== 0) throw new Missing("root is needed: network namespaces are made and entered");
  const missing = debianPackages.filter(([sign]) => !isInstalled(sign)).map(([, name]) => name);
  if (missing.length === 0) return;
  const names = missing.join(" ");
  if (!isInstalled("apt-get")) throw new Missing(`missing programs, and no apt-get to install them: ${names}`);
  say(`installing Debian packages: ${names}`);
  const environment = { ...process.env, DEBIAN_FRONTEND: "noninteractive" };
  await run("apt-get", ["update", "-qq"], environment);
  const install = ["install", "-y", "-qq", "--no-install-recommends", "-o", "Dpkg::Use-Pty=0", ...missing];
  const code = await run("apt-get", install, environment);
  if (code !== 0) throw new Missing(`could not install the Debian packages: ${names}`);
}

function isInstalled(sign) {
  if (sign.startsWith("/")) return existsSync(sign);
  const folders = sign.includes(".so.")
    ? ["/lib", "/usr/lib", `/usr/lib/${process.arch === "arm64" ? "aarch64" : "x86_64"}-linux-gnu`, "/usr/lib64"]
    : ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];
  return folders.some((folder) => existsSync(join(folder, sign)));
}

function buildIfOutdated() {
  const built = join(root, "dist/patchbay");
  const builtAt = existsSync(built) ? statSync(built).mtimeMs : 0;
  const inputs = ["src", "compile", "package.json", "package-lock.json", "node_modules/bun/package.json"];
  if (inputs.every((path) => newestChange(join(root, path)) < builtAt)) return;
  say("building dist/patchbay");
  const finished = spawnSync(bun, ["compile/build.ts"], { cwd: root, encoding: "utf8" });
  if (finished.status !== 0) throw new Missing(`the build failed\n${finished.stderr}`);
}

/** Of the file, or of a folder and all in it; a folder changes when something in it comes or goes. */
function newestChange(path) {
  const found = statSync(path);
  if (!found.isDirectory()) return found.mtimeMs;
  return Math.max(found.mtimeMs, ...readdirSync(path).map((name) => newestChange(join(path, name))));
}

/** Runs it with its output shown only when it fails, and a sign of life when it takes long. Answers its status. */
export function run(command, args, environment = process.env) {
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

function readJson(path) {
  return JSON.parse(readFileSync(join(root, path), "utf8"));
}

export function say(text) {
  console.log(`[patchbay] ${text}`);
}

/** Runs `work`; what is missing is said in one line, without a stack. Answers the exit status. */
export async function orSay(work) {
  try {
    return (await work()) ?? 0;
  } catch (error) {
    if (!(error instanceof Missing)) throw error;
    console.error(`[patchbay] ${error.message}`);
    return 1;
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  process.exitCode = await orSay(() => setUp(process.argv[2]));
}
