/**
 * What is refused of the namespace that a hook is called for: here it is always this process's own, or nowhere. That of a
 * container is in hook.test.ts.
 */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import type { CniError } from "../../../src/cni/error.ts";
import { listDirectory } from "../../../src/ffi/files.ts";
import { containerNetns } from "../../../src/frontends/hook/container-netns.ts";
import type { ContainerState } from "../../../src/frontends/hook/state.ts";

let bundle: string;
beforeEach(() => (bundle = mkdtempSync(`${tmpdir()}/bundle-`)));
afterEach(() => rmSync(bundle, { recursive: true }));

const OWN = "/proc/self/ns/net";

function refused(
  config: unknown,
  state: Partial<ContainerState> = {},
): [code: number, message: string, next: string] {
  if (config !== undefined) {
    writeFileSync(`${bundle}/config.json`, typeof config === "string" ? config : JSON.stringify(config));
  }
  try {
    containerNetns({ id: "web", status: "creating", pid: process.pid, bundle, annotations: {}, ...state });
  } catch (error) {
    const { code, message, details } = error as CniError;
    return [code, message.replaceAll(bundle, "BUNDLE"), details];
  }
  throw new Error("it was not refused");
}

const network = (entry: object) => ({
  linux: { namespaces: [{ type: "pid", path: "/x" }, { type: "network", ...entry }] },
});
const shared = "container web has the network namespace of this process";
const inside = "this hook runs in the container's own namespaces, where the host's end of a link cannot be made";
const askForType = `add {"type": "network"} there, or take the hook out of a container in the host's network`;
const otherwise = "a container in the host's network needs no hook; otherwise call 'hook add' in createRuntime";

const rows: [what: string, config: unknown, message: string, next: string][] = [
  [
    "a new one",
    network({}),
    inside,
    "call 'hook add' in createRuntime (or prestart), not in createContainer or startContainer",
  ],
  ...["", null].map((path): [string, unknown, string, string] => [
    `a path that is ${JSON.stringify(path)}`,
    network({ path }),
    inside,
    "call 'hook add' in createRuntime (or prestart), not in createContainer or startContainer",
  ]),
  [
    "a path that leads here",
    network({ path: OWN }),
    `${shared}: config.json has its path ${OWN}`,
    "name a namespace of the container's own, and call 'hook add' in createRuntime",
  ],
  ...[
    { linux: { namespaces: [{ type: "pid" }] } },
    { linux: { namespaces: [5, null, { type: "mount" }] } },
    { linux: { namespaces: "network" } },
    { linux: 5 },
    {},
    [],
  ].map((config): [string, unknown, string, string] => [
    `none in ${JSON.stringify(config)}`,
    config,
    `${shared}: linux.namespaces of config.json has none of type "network"`,
    askForType,
  ]),
  ["no config.json", undefined, `${shared} (BUNDLE/config.json is not there)`, otherwise],
  [
    "one that cannot be read",
    "{",
    expect.stringContaining(`${shared} (BUNDLE/config.json: `) as unknown as string,
    otherwise,
  ],
];
test.each(rows)("%s", (_, config, message, next) => expect(refused(config)).toEqual([7, message, next]));

test.each(["netns", "a/b", "/run/\0x", 5, {}])("a path that is %p", (path) => {
  expect(refused(network({ path }))).toEqual([
    7,
    `BUNDLE/config.json: the network namespace's "path" is ${JSON.stringify(path)}`,
    "it must be an absolute path",
  ]);
});

test("a namespace that cannot be opened, by path and by process", () => {
  const byPath = refused(network({ path: "/run/netns/none" }));
  expect(byPath).toEqual([
    8,
    expect.stringContaining("the network namespace /run/netns/none cannot be opened: "),
    "linux.namespaces of config.json names it",
  ]);
  const byProcess = refused({}, { pid: 4_194_305 });
  expect(byProcess).toEqual([
    8,
    expect.stringContaining("the network namespace /proc/4194305/ns/net cannot be opened: "),
    "the container's process has ended",
  ]);
});

test("a container that has stopped, and one without a process", () => {
  expect(refused({}, { status: "stopped" })).toEqual([
    7,
    "container web has stopped",
    "'hook add' is for createRuntime, 'hook del' for poststop",
  ]);
  for (const config of [{}, network({})]) {
    expect(refused(config, { pid: undefined })).toEqual([
      7,
      "the state of container web has no pid",
      "without a path in linux.namespaces, 'hook add' needs the container's process: call it in createRuntime",
    ]);
  }
  // With a path it needs none.
  expect(refused(network({ path: OWN }), { pid: undefined })[1]).toContain("config.json has its path");
});

test("a config.json that is larger than 64 MiB is not read to its end", () => {
  writeFileSync(`${bundle}/config.json`, "");
  truncateSync(`${bundle}/config.json`, 64 * 1024 * 1024 + 1);
  expect(refused(undefined)[1]).toContain("file too large");
});

test("a directory in the place of config.json is not waited for, and nothing is left open", () => {
  const open = listDirectory("/proc/self/fd").length;
  mkdirSync(`${bundle}/config.json`);
  expect(refused(undefined)[1]).toContain(`${shared} (`);
  expect(listDirectory("/proc/self/fd").length).toBe(open);
});
