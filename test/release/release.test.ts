/** `npm run release`, as a maintainer calls it: the same commit gives the same bytes, and all that is said of them holds. */
import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import manifest from "../../package.json";
import { architectureNames, architectures } from "../../compile/architectures.ts";
import { SIGNATURE, SIGNED_FOR, SUMS } from "../../release/sums.ts";
import { needs } from "../support/needs.ts";

needs("gcc", "root");

const root = resolve(import.meta.dir, "../..");
const directory = mkdtempSync(join(tmpdir(), "whole-release-"));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

function run(words: string[], cwd = directory, env: Record<string, string> = {}, stdin = ""): string {
  const all = { PATH: process.env.PATH!, HOME: process.env.HOME ?? "/root", ...env };
  const { exitCode, stdout, stderr } = Bun.spawnSync(words, {
    cwd,
    env: all,
    stdin: Buffer.from(stdin),
    stderr: "pipe",
  });
  if (exitCode !== 0) throw new Error(`${words.join(" ")}: exit ${exitCode}\n${stderr}${stdout}`);
  return stdout.toString();
}

/** A clone with the npm packages of this checkout. Returns where its release is. */
function release(name: string, env: Record<string, string>): string {
  const clone = join(directory, name);
  run(["git", "clone", "-q", "--no-hardlinks", root, clone]);
  for (const folder of ["node_modules", ".cache"]) symlinkSync(join(root, folder), join(clone, folder));
  const script = `umask ${env.UMASK}; exec npm run --silent release -- --key ../key`;
  run(["sh", "-c", script], clone, env);
  return join(clone, "dist/release");
}

test("two clones in different directories, with different environments, give the same files", () => {
  run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", "key"]);
  const one = release("one", { TZ: "UTC", UMASK: "022" });
  const other = release("a-longer-name", { TZ: "Asia/Kathmandu", UMASK: "077", LANG: "de_DE.UTF-8", CI: "true" });
  const sums = readFileSync(join(one, SUMS), "utf8");
  expect(readFileSync(join(other, SUMS), "utf8")).toBe(sums);
  expect(readFileSync(join(other, SIGNATURE), "utf8")).toBe(readFileSync(join(one, SIGNATURE), "utf8"));

  const { version } = manifest;
  const packaged = Object.values(architectures).flatMap(({ distributions }) => distributions ?? []);
  expect(readdirSync(one).sort()).toEqual([
    SUMS,
    SIGNATURE,
    ...architectureNames.map((name) => `patchbay-${version}-linux-${name}.tar.gz`),
    ...packaged.map(({ rpm }) => `patchbay-${version}-1.${rpm}.rpm`),
    ...packaged.map(({ debian }) => `patchbay_${version}_${debian}.deb`),
    ...["cni", "opt-cni"].flatMap((name) => [
      `patchbay-${name}_${version}_all.deb`,
      `patchbay-${name}-${version}-1.noarch.rpm`,
    ]),
    `patchbay-${version}-oci.tar`,
    `patchbay-${version}.cdx.json`,
    `patchbay-${version}.intoto.json`,
  ].sort());

  // docs/release.md, "Check what you have got".
  run(["sha256sum", "--check", "--status", SUMS], one);
  run(["sh", "-c", "echo releases $(cat key.pub) >keys"]);
  const verify = ["ssh-keygen", "-Y", "verify", "-f", join(directory, "keys"), "-I", "releases", "-n", SIGNED_FOR];
  run([...verify, "-s", SIGNATURE], one, {}, sums);
  const { subject } = JSON.parse(readFileSync(join(one, `patchbay-${version}.intoto.json`), "utf8"));
  for (const { name, digest } of subject) expect(sums).toContain(`${digest.sha256}  ${name}\n`);

  // "Install the archive".
  run(["tar", "-xf", join(one, `patchbay-${version}-linux-x64.tar.gz`)]);
  const unpacked = join(directory, `patchbay-${version}-linux-x64`);
  expect(run([join(unpacked, "patchbay"), "version"])).toContain(version);
  run([join(unpacked, "links.sh"), join(directory, "a directory")]);
  const said = run([join(directory, "a directory", "host-local")], directory, { CNI_COMMAND: "VERSION" });
  expect(JSON.parse(said).supportedVersions).toContain("1.1.0");
}, 1_800_000);
