/** `hook add`: who is called with what, what is refused before anybody is, and what is taken back, with script plugins. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
import { errorText } from "../../../src/cni/error.ts";
import type { LedgerHeader } from "../../../src/engine/ledger/record.ts";
import { endCall, ownProcessId, takeCall } from "../../../src/process/calls.ts";
import { whileWarning } from "../../../src/process/warn.ts";
import { attachAll, type Attached } from "../../../src/frontends/hook/attach.ts";
import { hookSettingsOf } from "../../../src/frontends/hook/settings.ts";
import { hookRequestOf } from "../../../src/frontends/hook/request.ts";
import { addNetwork } from "../../../src/runtime/chain.ts";
import { documentOf } from "../../../src/runtime/plugin-call.ts";
import { containers, containerWith, made, recorded, replacedHosts } from "../../support/engine-bench.ts";
import { type ScriptPlugins, scriptPlugins } from "../../support/script-plugins.ts";

let at: ScriptPlugins;
const takes = { portMappings: true, mac: true };
beforeEach(() => {
  at = scriptPlugins();
  mkdirSync(at.runtime.configDirectory);
  configured("front", { capabilities: takes });
  configured("side", { capabilities: takes });
  configured("back", {});
  // With loopback in a chain, nothing is opened for it.
  for (const type of ["front", "side", "back", "loopback"]) at.plugin(type, { ADD: { stdout: result } });
  configured("lo", { type: "loopback" });
});
afterEach(() => at[Symbol.dispose]());

const result = { cniVersion: "1.1.0", ips: [{ address: "10.0.0.2/24" }] };
function configured(name: string, plugin: Record<string, unknown>): void {
  const network = { cniVersion: "1.1.0", name, plugins: [{ type: name, ...plugin }] };
  writeFileSync(`${at.runtime.configDirectory}/${name}.conflist`, JSON.stringify(network));
}

/** As the hook's arguments; a network of loopback comes last. */
function attach(
  settings: Record<string, string>,
  accept: (attached: readonly Attached[]) => void = () => {},
  netnsPath = "/run/netns/none",
): string[] {
  const args = Object.fromEntries(
    Object.entries(settings).map(([name, text]) => [name, { text, source: `--${name}` }]),
  );
  const warnings: string[] = [];
  const request = hookRequestOf(
    hookSettingsOf({}, { ...args, networks: { text: `${settings["networks"]},lo@lo`, source: "NETWORK" } }),
  );
  try {
    whileWarning(
      (message) => warnings.push(message),
      () => attachAll(at.runtime, { id: "web", netnsPath }, request, accept),
    );
    return warnings;
  } catch (error) {
    return [...warnings, errorText(error)];
  }
}
const runtimeConfig = (call: string) => at.stdin(call)["runtimeConfig"];

test("the networks are attached in order, and the results handed on", () => {
  const accepted: unknown[] = [];
  const note = (attached: readonly Attached[]) => {
    for (const { network, request, result } of attached) {
      accepted.push([network.name, request.ifName, documentOf(result)]);
    }
  };
  expect(attach({ networks: "front,back@net7", name: "web 1" }, note)).toEqual([]);
  expect(at.calls()).toEqual(["ADD front", "ADD back", "ADD loopback"]);
  expect(accepted).toEqual([["front", "eth0", result], ["back", "net7", result], ["lo", "lo", result]]);
  expect(at.environment("ADD back")).toEqual(expect.arrayContaining([
    "CNI_ARGS=IgnoreUnknown=1;K8S_POD_NAME=web 1",
    "CNI_CONTAINERID=web",
    "CNI_IFNAME=net7",
    "CNI_NETNS=/run/netns/none",
  ]));
});

describe("capabilities", () => {
  const [one, other] = ["02:00:00:00:00:01", "02:00:00:00:00:77"];

  test("ports go to the first network that takes them; a network's own words win over those for all", () => {
    const capabilities = JSON.stringify({ mac: one });
    expect(attach({ networks: `back,front mac=${other},side`, ports: "8080:80", capabilities })).toEqual([]);
    const portMappings = [{ hostPort: 8080, containerPort: 80, protocol: "tcp" }];
    expect(runtimeConfig("ADD front")).toEqual({ mac: other, portMappings });
    expect(runtimeConfig("ADD side")).toEqual({ mac: one });
    expect(runtimeConfig("ADD back")).toBeUndefined();
  });

  test("without ports no network has to take them, and those for all networks stay", () => {
    expect(attach({ networks: "back" })).toEqual([]);
    const portMappings = [{ hostPort: 1, containerPort: 1 }];
    attach({ networks: "front", capabilities: JSON.stringify({ portMappings }) });
    expect(runtimeConfig("ADD front")).toEqual({ portMappings });
  });

  test("one for all networks that none takes is warned of", () => {
    expect(attach({ networks: "front,back", capabilities: '{"mca":"x"}' })).toEqual([
      'capability argument "mca": no plugin of network front, back, lo takes it; did you mean "mac"?',
    ]);
  });

  test.each([
    [
      "ports that none takes",
      { networks: "back", ports: "8080:80" },
      "ports: no plugin of network back, lo takes them",
    ],
    [
      "a word that its network does not take",
      { networks: "front,back mac=02:00:00:00:00:01" },
      "NETWORK: mac: no plugin of network back takes them",
    ],
    [
      "the second word",
      { networks: "front mac=02:00:00:00:00:01 ingress=1M" },
      "NETWORK: bandwidth: no plugin of network front",
    ],
    ["a network that is not there", { networks: "front,none" }, 'no net configuration with name "none"'],
  ])("refused before anybody is called: %s", (_, settings, says) => {
    expect(attach(settings)).toEqual([expect.stringContaining(says)]);
    expect(at.calls()).toEqual([]);
  });
});

describe("all or none", () => {
  const broken = { stdout: { code: 11, msg: "no more" }, exit: 1 };

  test("when one fails, those before it are taken back, and the error names it", () => {
    at.plugin("side", { ADD: broken });
    expect(attach({ networks: "front,back,side" })).toEqual([
      'eth2 cannot be attached to network side: plugin type="side" failed (add): no more',
    ]);
    expect(at.calls()).toEqual(["ADD front", "ADD back", "ADD side", "DEL side", "DEL back", "DEL front"]);
  });

  test("when the results are not accepted, all are, in reverse", () => {
    const refuse = () => {
      throw new Error("not accepted");
    };
    expect(attach({ networks: "front,back" }, refuse)).toEqual(["not accepted"]);
    expect(at.calls().slice(3)).toEqual(["DEL loopback", "DEL back", "DEL front"]);
  });

  test("what cannot be taken back is told, and the rest is", () => {
    at.plugin("side", { ADD: broken });
    at.plugin("back", { DEL: { stdout: { code: 11, msg: "stuck" }, exit: 1 } });
    const [error] = attach({ networks: "front,back,side" });
    expect(error).toMatch(/^eth2 cannot be attached to network side: .*no more; taking it back failed: .*stuck$/);
    expect(at.calls().at(-1)).toBe("DEL front");
  });
});

describe("an attachment that is recorded", () => {
  const NETNS = "/run/netns/there", how = { networks: "front@eth5" };
  const left = (header: Partial<LedgerHeader>) =>
    recorded([made("thing a")], { network: "old", containerId: "web", ifName: "eth5", ...header });
  beforeEach(() => {
    replacedHosts.begin();
    containers[NETNS] = containerWith({}, { cookie: "1", netnsPath: NETNS });
  });
  afterEach(() => replacedHosts.end());

  // What another network namespace of the host has made lives as far as anybody knows.
  test("of a container in another namespace is another's: refused", () => {
    left({ netns: "2", hostNetns: "another" });
    expect(attach(how, undefined, NETNS)).toEqual([
      "another container web is attached to network old, in /run/netns/x; " +
      "ids must differ on a host, also between runtimes; 'hook del' detaches what container web has",
    ]);
    expect(at.calls()).toEqual([]);
  });

  test("of this one stays, and its interface is not made a second time", () => {
    left({ netns: "1", hostNetns: "another" });
    expect(attach(how, undefined, NETNS)).toEqual([
      "eth5 of container web is attached to network old already; " +
      "name another interface, as in NETWORK@eth7; 'hook del' detaches what container web has",
    ]);
    expect(attach({ networks: "front@eth6" }, undefined, NETNS)).toEqual([]);
    expect(at.calls()).toEqual(["ADD front", "ADD loopback"]);
  });

  test("that this process's call began in a resident that died is left, wherever it is", () => {
    left({ netns: "2", hostNetns: "another", caller: ownProcessId() });
    expect(attach(how, undefined, NETNS)).toEqual([]);
    takeCall({ id: ownProcessId, isGone: () => false });
    expect(attach(how, undefined, NETNS)).toEqual([expect.stringContaining("another container web is attached")]);
    endCall();
  });
});

describe("what an earlier container of the id has left", () => {
  const add = (name: string, ifName: string, netnsPath = "/run/netns/none") =>
    addNetwork(
      at.runtime,
      JSON.parse(JSON.stringify(at.network([name], { name }))),
      { containerId: "web", netnsPath, ifName, cniArgs: [], capabilityArgs: {} },
    );

  test("is removed first, in reverse, with the configuration that it had", () => {
    for (const [name, ifName] of [["back", "eth2"], ["side", "eth10"]] as const) add(name, ifName);
    expect(attach({ networks: "front" })).toEqual([]);
    expect(at.calls().slice(2)).toEqual(["DEL side", "DEL back", "ADD front", "ADD loopback"]);
  });

  test("that cannot be removed is told, and nothing is attached", () => {
    at.plugin("back", { DEL: { stdout: { code: 11, msg: "stuck" }, exit: 1 } });
    add("back", "eth2");
    expect(attach({ networks: "front" })).toEqual([
      expect.stringMatching(/^eth2 of container web cannot be detached from network back: .*stuck$/),
    ]);
    expect(at.calls()).toEqual(["ADD back", "DEL back"]);
  });
});
