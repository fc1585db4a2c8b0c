/**
 * The npm package as a user gets it: what is in it, its types, and the launcher of examples/, whose containers have
 * namespaces of their own.
 */
import { expect, test } from "bun:test";
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { makePackage } from "../../../compile/package.ts";
import { leftSince, quietMoment } from "../../support/leftovers.ts";
import { installedPackage } from "../../support/library/installed.ts";
import { conf } from "../../support/library/network.ts";
import { type Machine, openMachine } from "../../support/machine.ts";
import { PATCHBAY } from "../../support/plugins.ts";
import { childrenOf } from "../../support/resident.ts";
import { untilTrue } from "../../support/until-true.ts";

delete process.env.PATCHBAY_TEST_RESIDENT;

const root = resolve(import.meta.dir, "../../..");

test("the package has types, runs no scripts, needs no other package, and is for this processor alone", () => {
  const folder = join(installedPackage(), "node_modules/patchbay");
  const manifest = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  expect(manifest).toMatchObject({ name: "patchbay", version, private: true, os: ["linux"], cpu: ["x64"] });
  expect([manifest.scripts, manifest.dependencies]).toEqual([undefined, undefined]);
  for (const file of ["README.md", "LICENSE", "patchbay.js", "thread.js", manifest.types]) {
    expect(existsSync(join(folder, file))).toBe(true);
  }
  const modules = ["index.js", "needs-bun.js", "patchbay.js", "thread.js"];
  expect(readdirSync(folder).filter((name) => name.endsWith(".js")).sort()).toEqual(modules);
  // The small programs in C, and the build that residents are asked for.
  const code = readFileSync(join(folder, "patchbay.js"), "utf8");
  expect(code).not.toMatch(/\b(NATIVE_REAPER|NATIVE_HOLDER|PROGRAM_BUILD)\b/);
  expect(code).not.toContain(root);
});

test("the package is the same bytes wherever it is made", () => {
  const folder = join(installedPackage(), "../..", "elsewhere", "deeper");
  mkdirSync(folder, { recursive: true });
  const digests = [join(installedPackage(), "../.."), folder].map((out) =>
    new Bun.CryptoHasher("sha256").update(readFileSync(makePackage(PATCHBAY, out))).digest("hex")
  );
  expect(digests[1]).toBe(digests[0]!);
});

function runHere(words: string[]): string {
  const { stdout, stderr } = Bun.spawnSync(words, { cwd: installedPackage(), stdout: "pipe", stderr: "pipe" });
  return stdout.toString() + stderr.toString();
}

const wanted = /patchbay needs Bun ≥ \d+\.\d+\.\d+; this is (.*)/;

test.each([
  ['import("patchbay")', "Node.js v"],
  ['import("patchbay").then(({ open }) => open())', "Node.js v"],
  ['globalThis.Bun = { version: "1.4.4" }; import("patchbay")', "Bun 1.4.4"],
  ['globalThis.Bun = { version: "0.9.10" }; import("patchbay")', "Bun 0.9.10"],
])("Node.js, with %s, learns what the package needs", (code, runtime) => {
  const said = runHere(["node", "-e", `${code}.catch(({ message }) => console.log(message))`]);
  expect(wanted.exec(said)?.[1]).toStartWith(runtime);
});

test("Bun of that version or newer passes, and a program that imports names in Node.js learns the same", () => {
  for (const version of [Bun.version, "1.10.0", "2.0.0"]) {
    const code = `globalThis.Bun = { version: "${version}" }; import("./node_modules/patchbay/needs-bun.js");`;
    expect(runHere(["node", "-e", code])).toBe("");
  }
  writeFileSync(join(installedPackage(), "named.mjs"), 'import { open } from "patchbay";\nopen();\n');
  expect(runHere(["node", "named.mjs"])).toMatch(wanted);
});

test("a stack names the lines of the sources", () => {
  const code =
    'import { open } from "patchbay"; try { open({ configDirectory: 3 }); } catch (e) { console.log(e.stack); }';
  writeFileSync(join(installedPackage(), "stack.ts"), code);
  const stack = runHere([process.execPath, "stack.ts"]);
  const [, file, line] = /\(.*\/patchbay\/(src\/frontends\/library\/given\.ts):(\d+):\d+\)/.exec(stack) ?? [];
  expect(readFileSync(join(root, file!), "utf8").split("\n")[Number(line) - 1], stack).toContain("ArgumentError(");
  const map = readFileSync(join(installedPackage(), "node_modules/patchbay/patchbay.js.map"), "utf8");
  expect(map).not.toContain(root);
  // Positions alone: the texts would be two megabytes.
  expect(map.length).toBeLessThan(1_000_000);
});

const strict = {
  strict: true,
  noUncheckedIndexedAccess: true,
  exactOptionalPropertyTypes: true,
  noPropertyAccessFromIndexSignature: true,
  skipLibCheck: false,
  noEmit: true,
  target: "ESNext",
  lib: ["ESNext", "DOM"],
};

function typeErrors(file: string, options: Record<string, unknown>): string {
  const user = installedPackage(), settings = join(user, "tsconfig.json");
  writeFileSync(settings, JSON.stringify({ files: [file], compilerOptions: { ...strict, ...options } }));
  const { stdout } = Bun.spawnSync([join(root, "node_modules/.bin/tsc"), "-p", settings], {
    cwd: user,
    stdout: "pipe",
  });
  return stdout.toString();
}

test("its types hold in the strictest settings, without those of Bun, and refuse what is wrong", () => {
  const user = installedPackage();
  const lines = (wrong: string) => `
import { ArgumentError, CniError, open, openInThread, TRY_AGAIN_LATER, type Network, type NetworkEvent, type Result } from "patchbay";
const patchbay = open({ configDirectory: "/etc/cni/net.d", onWarning: (message: string) => void message });
const network: Network = patchbay.network("net");
const result: Result = patchbay.add(network, { containerId: "c1", netns: "/run/netns/c1", args: { K8S_POD_NAME: "web" } });
export const addresses: string[] = result.ips?.map(({ address }) => address) ?? [];
export const later: Promise<Result> = openInThread().add({ cniVersion: "1.1.0", name: "net", plugins: [{ type: "ptp" }] }, { containerId: "c1", netns: "/x" });
export async function first(): Promise<NetworkEvent | undefined> {
  for await (const event of patchbay.events({ existing: true })) return event;
  return undefined;
}
export const isBusy = (error: unknown) => error instanceof CniError && error.code === TRY_AGAIN_LATER;
export const key = (error: unknown) => error instanceof ArgumentError ? error.key : undefined;
${wrong}`;
  const check = (wrong: string, options: Record<string, unknown>) => {
    writeFileSync(join(user, "typed.ts"), lines(wrong));
    return typeErrors("typed.ts", { types: [], ...options });
  };
  for (const options of [{ module: "Preserve" }, { module: "NodeNext" }]) {
    expect(check("", options)).toBe("");
    expect(check('patchbay.add(network, { containerID: "c1", netns: "/x" });', options)).toContain("containerID");
    expect(check('patchbay.add(network, { containerId: "c1" });', options)).toContain("netns");
    expect(check("patchbay.gc(network, {});", options)).toContain("typed.ts");
    const capable = (capabilities: string) =>
      check(`patchbay.add(network, { containerId: "c1", netns: "/x", capabilities: { ${capabilities} } });`, options);
    expect(capable('portMappings: [], mac: "x", ips: [], "io.example/own": { a: 1 }')).toBe("");
    for (const slip of ["portMapping", "portmappings", "PortMappings", "ip", "ipranges", "deviceid"]) {
      expect([slip, capable(`${slip}: []`)]).toEqual([slip, expect.stringContaining("is not assignable to type")]);
    }
    expect(check('network.name = "other";', options)).toContain("read-only");
    expect(check("const text: string = patchbay.status(network);", options)).toContain("Pool[]");
  }
});

test("the examples of the documentation pass the strict check", () => {
  const page = readFileSync(join(root, "docs/library.md"), "utf8"), user = installedPackage();
  const blocks = [...page.matchAll(/^```ts\n([^]*?)^```$/gm)].map(([, block]) => block!);
  expect(blocks.length).toBeGreaterThan(3);
  for (const block of blocks) {
    const given = block.includes("import ") ? "" : 'import { open } from "patchbay";\nconst patchbay = open();\n';
    writeFileSync(join(user, "typed.ts"), `${given}${block}export {};\n`);
    shareBunTypes();
    expect([typeErrors("typed.ts", withBun), block]).toEqual(["", block]);
  }
});

const withBun = {
  types: ["bun"],
  lib: ["ESNext"],
  module: "Preserve",
  skipLibCheck: true,
  noPropertyAccessFromIndexSignature: false,
};

/** A user has @types/bun among his packages. */
function shareBunTypes(): void {
  for (const name of ["@types", "bun-types"]) {
    const path = join(installedPackage(), "node_modules", name);
    if (!existsSync(path)) symlinkSync(join(root, "node_modules", name), path);
  }
}

const launcher = join(root, "examples/launcher.ts");

test("the launcher has fifty lines, passes the strict check, and is in the package", () => {
  const text = readFileSync(launcher, "utf8"), user = installedPackage();
  expect(text.trimEnd().split("\n").length).toBeLessThanOrEqual(50);
  expect(readFileSync(join(user, "node_modules/patchbay/examples/launcher.ts"), "utf8")).toBe(text);
  copyFileSync(launcher, join(user, "launcher.ts"));
  shareBunTypes();
  expect(typeErrors("launcher.ts", withBun)).toBe("");
});

const FOLDER = "/run/root";
const PAGE = "a page of the container";

async function launching(): Promise<Machine> {
  const machine = await openMachine();
  await machine.sh(
    `mkdir -p /run/own/files /run/own/work
    mount -t overlay overlay -o lowerdir=/etc,upperdir=/run/own/files,workdir=/run/own/work /etc
    mkdir -p /etc/cni/net.d ${FOLDER}/bin ${FOLDER}/proc ${FOLDER}/www
    rm -f /etc/cni/net.d/*
    cat >/etc/cni/net.d/net.conflist
    cp /bin/busybox ${FOLDER}/bin; ln -s busybox ${FOLDER}/bin/sh
    echo "${PAGE}" >${FOLDER}/www/index.html`,
    { stdin: JSON.stringify(conf) },
  );
  copyFileSync(launcher, join(installedPackage(), "launcher.ts"));
  return machine;
}

function launch(machine: Machine, words: string[], { network = "net", publish = "" } = {}) {
  const launching = [process.execPath, join(installedPackage(), "launcher.ts"), network, FOLDER, ...words];
  return machine.start(["env", `PUBLISH=${publish}`, ...launching]);
}

const server = ["/bin/busybox", "httpd", "-f", "-p", "80", "-h", "/www"];
const nothing = ["/bin/busybox", "true"];
const published = { publish: "8080:80" };

async function untilPage(machine: Machine): Promise<void> {
  const ask = () => machine.run(["busybox", "wget", "-qO-", "http://10.1.0.1:8080/"]);
  await untilTrue(ask, ({ stdout }) => stdout.trim() === PAGE);
}

test("the launcher's container has a network, processes and files of its own, and leaves nothing", async () => {
  await using machine = await launching();
  const run = async (words: string[], more = {}) => {
    const container = launch(machine, words, more);
    const [out, err] = await Promise.all([container.stdout.text(), container.stderr.text(), container.exited]);
    return { out, err, code: container.exitCode };
  };
  await run(nothing, published);
  const moment = await quietMoment(machine);
  const script = 'busybox ip -o -4 addr show eth0; echo "process $$"; busybox ls /; exit 3';
  const { out, err, code } = await run(["/bin/sh", "-c", script]);
  const address = /: (10\.1\.0\.\d+\/24)/.exec(err)![1]!;
  expect([out.includes(`inet ${address}`), out.split("\n").slice(1)]).toEqual([
    true,
    ["process 1", "bin", "proc", "www", ""],
  ]);
  expect(code).toBe(3);
  expect(await leftSince(moment, machine)).toEqual([]);

  const serving = launch(machine, server, published);
  await untilPage(machine);
  serving.kill("SIGTERM");
  await serving.exited;
  expect(await leftSince(moment, machine)).toEqual([]);

  // What goes wrong is said, and nothing is left.
  const unknown = await run(nothing, { network: "nett" });
  const message = 'launcher: no net configuration with name "nett" in /etc/cni/net.d (CNI error 7)';
  expect([unknown.code, unknown.err]).toEqual([1, `${message} did you mean "net"? there is net\n`]);
  await machine.sh(`mv ${FOLDER} ${FOLDER}.kept`);
  const nowhere = await run(nothing);
  expect([nowhere.code, nowhere.err]).toEqual([1, expect.stringContaining("namespaces could not be made")]);
  await machine.sh(`mv ${FOLDER}.kept ${FOLDER}`);
  expect(await leftSince(moment, machine)).toEqual([]);
});

test("a launcher that was killed is cleaned up after by the next one, once its container has ended", async () => {
  await using machine = await launching();
  const before = launch(machine, nothing, published);
  await before.exited;
  const moment = await quietMoment(machine);
  const killed = launch(machine, server, published);
  await untilPage(machine);
  const [container] = childrenOf(killed.pid);
  killed.kill("SIGKILL");
  await killed.exited;
  // It lives on, and so does its network.
  const next = launch(machine, nothing);
  await next.exited;
  await untilPage(machine);
  process.kill(container!, "SIGKILL");
  await untilTrue(() => existsSync(`/proc/${container}/ns/net`), (isThere) => !isThere);
  const last = launch(machine, nothing);
  await last.exited;
  expect(await leftSince(moment, machine)).toEqual([]);
});
