/** `hook del`: whose DEL is called, with which configuration, and what is told, with script plugins. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
import { errorText } from "../../../src/cni/error.ts";
import { whileWarning } from "../../../src/process/warn.ts";
import { addNetwork } from "../../../src/runtime/chain.ts";
import { loadNetwork } from "../../../src/runtime/conf/load.ts";
import { detachAll } from "../../../src/frontends/hook/detach.ts";
import { parseNetworks } from "../../../src/frontends/hook/request.ts";
import type { Runtime } from "../../../src/runtime/plugin-call.ts";
import { type ScriptPlugins, scriptPlugins } from "../../support/script-plugins.ts";

let at: ScriptPlugins;
beforeEach(() => {
  at = scriptPlugins();
  mkdirSync(at.runtime.configDirectory);
  for (const name of ["front", "back", "side"]) {
    at.plugin(name, { ADD: { stdout: { cniVersion: "1.1.0", ips: [{ address: "10.0.0.2/24" }] } } });
    configure(name);
  }
});
afterEach(() => at[Symbol.dispose]());

function configure(name: string, mark = "at first"): void {
  const network = { cniVersion: "1.1.0", name, plugins: [{ type: name, mark }] };
  writeFileSync(`${at.runtime.configDirectory}/${name}.conflist`, JSON.stringify(network));
}

/** Attaches the container to `front eth0 back eth1`, and forgets the calls. */
function attached(...places: [network: string, ifName: string][]): void {
  for (const [name, ifName] of places) {
    const request = { containerId: "web", netnsPath: "/run/netns/none", ifName, cniArgs: [], capabilityArgs: {} };
    addNetwork(at.runtime, loadNetwork(at.runtime.configDirectory, name), request);
  }
}

const list = (text: string | undefined) =>
  text === undefined ? undefined : parseNetworks({ text, source: "NETWORK" });

/** Returns warnings, and then what failed. */
function detach(only?: string, annotated?: string, runtime: Runtime = at.runtime): string[] {
  const said: string[] = [];
  try {
    whileWarning(
      (message) => said.push(message),
      () => detachAll(runtime, "web", { only: list(only), annotated: list(annotated) ?? [] }),
    );
    return said;
  } catch (error) {
    return [...said, errorText(error)];
  }
}
const dels = () => at.calls().filter((call) => call.startsWith("DEL")).map((call) => call.slice("DEL ".length));
const ifName = (name: string) => at.environment(`DEL ${name}`).find((line) => line.startsWith("CNI_IFNAME="));

describe("whose DEL is called", () => {
  beforeEach(() => attached(["front", "eth0"], ["back", "eth2"], ["side", "eth10"]));

  test("everything that is recorded, in reverse", () => {
    expect(detach()).toEqual([]);
    expect(dels()).toEqual(["side", "back", "front"]);
    expect(detach()).toEqual([]);
    expect(dels()).toHaveLength(3);
  });

  test("the networks that are named, or their interfaces", () => {
    expect(detach("back,side@eth10")).toEqual([]);
    expect([dels(), ifName("side"), ifName("back")]).toEqual([
      ["side", "back"],
      "CNI_IFNAME=eth10",
      "CNI_IFNAME=eth2",
    ]);
  });

  test("a network that is named with another interface than it has, by its configuration, with that interface", () => {
    expect(detach("back@eth7")).toEqual([]);
    expect([dels(), ifName("back")]).toEqual([["back"], "CNI_IFNAME=eth7"]);
  });

  test("what the container wanted, though it is not recorded; but what is recorded once", () => {
    configure("more");
    at.plugin("more");
    expect(detach(undefined, "front,more,none")).toEqual([]);
    expect(dels()).toEqual(["side", "back", "more", "front"]);
    expect(at.environment("DEL more")).toEqual(expect.arrayContaining(["CNI_IFNAME=eth1", "CNI_NETNS="]));
  });

  test("where networks are named, what the container wanted is of no account", () => {
    configure("more");
    at.plugin("more");
    detach("front", "more");
    expect(dels()).toEqual(["front"]);
  });
});

test("a network that is named, and neither recorded nor configured, is told", () => {
  attached(["front", "eth0"]);
  expect(detach("front,none")).toEqual([expect.stringContaining('no net configuration with name "none"')]);
  expect(dels()).toEqual([]);
});

test("DEL gets the configuration of ADD, and today's where that is not recorded", () => {
  attached(["front", "eth0"]);
  configure("front", "today");
  detach("front");
  expect(at.stdin("DEL front")["mark"]).toBe("at first");
  detach("front");
  expect(at.stdin("DEL front")["mark"]).toBe("today");
});

test("what fails is told for each, the others go, and a second call tries again", () => {
  attached(["front", "eth0"], ["back", "eth1"], ["side", "eth2"]);
  for (const name of ["front", "side"]) {
    at.plugin(name, { DEL: { stdout: { code: 11, msg: `${name} stuck` }, exit: 1 } });
  }
  const [error, ...more] = detach();
  expect(more).toEqual([]);
  expect(error!.split("\n").map((line) => line.replace(/: .*: /, ": "))).toEqual([
    "eth2 of container web cannot be detached from network side: side stuck",
    "eth0 of container web cannot be detached from network front: front stuck",
  ]);
  for (const name of ["front", "side"]) at.plugin(name, { DEL: { stdout: "" } });
  expect(detach()).toEqual([]);
  expect(dels()).toEqual(["side", "back", "front", "side", "front"]);
});

test("an empty ledger of an ADD that was killed goes with the container's last network, not with one that is named", () => {
  const directory = `${process.env.PATCHBAY_STATE_DIR}/front`, file = `${directory}/web@eth0@test`;
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  writeFileSync(file, "", { mode: 0o600 });
  attached(["front", "eth0"]);
  detach("front");
  expect(Bun.file(file).size).toBe(0);
  expect(Array.from(new Bun.Glob("*").scanSync(directory))).toEqual(["web@eth0@test"]);
  detach();
  expect(() => Array.from(new Bun.Glob("*").scanSync(directory))).toThrow();
});
