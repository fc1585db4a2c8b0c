/**
 * Delegation to a foreign plugin: it gets the same call with another command, and its result is converted to the newest
 * version.
 */
import { afterEach, beforeEach, expect, test } from "bun:test";
import type { Invocation, Verb } from "../../src/cni/invocation.ts";
import { openSession } from "../../src/engine/run.ts";
import { type ScriptPlugins, scriptPlugins } from "../support/script-plugins.ts";

const delegate = (type: string, command: Verb, call: Invocation) =>
  openSession().delegate(type, { ...call, command });

let at: ScriptPlugins;
beforeEach(() => (at = scriptPlugins()));
afterEach(() => at[Symbol.dispose]());

const call = (stdin: unknown, changes = {}) => ({
  command: "DEL" as const,
  containerId: "ctr",
  netnsPath: "/run/netns/x",
  ifName: "eth0",
  cniArgs: "A=b",
  path: at.runtime.pluginPath,
  stdin: JSON.stringify(stdin),
  ...changes,
});

test("the delegate gets the same parameters and configuration, and the command", () => {
  at.plugin("ipam", { any: { stdout: "this is not looked at" } });
  const config = { name: "n", cniVersion: "1.0.0", type: "main", ipam: { type: "ipam" }, unknown: [1] };
  for (const command of ["CHECK", "DEL", "GC", "STATUS"] as const) {
    expect(delegate("ipam", command, call(config))).toBeUndefined();
    expect(at.stdin(`${command} ipam`)).toEqual(config);
    expect(at.environment(`${command} ipam`)).toEqual(
      expect.arrayContaining(["CNI_CONTAINERID=ctr", "CNI_NETNS=/run/netns/x", "CNI_IFNAME=eth0", "CNI_ARGS=A=b"]),
    );
  }
  expect(at.calls()).toEqual(["CHECK ipam", "DEL ipam", "GC ipam", "STATUS ipam"]);
});

test("the result is converted to the newest form from every version", () => {
  const config = { name: "n", cniVersion: "0.4.0" };
  at.plugin("ipam", { ADD: { stdout: { cniVersion: "0.2.0", ip4: { ip: "10.0.0.2/24", gateway: "10.0.0.1" } } } });
  expect(delegate("ipam", "ADD", call(config)))
    .toMatchObject({ cniVersion: "1.1.0", ips: [{ address: "10.0.0.2/24", gateway: "10.0.0.1" }] });
});

test("a result without a version has the configuration's, even if that key is in other letter case", () => {
  at.plugin("ipam", { ADD: { stdout: { ip4: { ip: "10.0.0.2/24" } } } });
  for (const config of [{ name: "n" }, { name: "n", CNIVersion: "0.2.0" }]) {
    expect(delegate("ipam", "ADD", call(config))?.ips).toEqual([{ address: "10.0.0.2/24" }]);
  }
  expect(delegate("ipam", "ADD", call({ name: "n", cniVersion: "1.0.0" }))?.ips ?? []).toEqual([]);
});

test("the delegate's error is passed on unchanged", () => {
  at.plugin("ipam", { any: { stdout: { code: 11, msg: "try", details: "later" }, exit: 1 } });
  expect(() => delegate("ipam", "ADD", call({ name: "n" }))).toThrow(
    expect.objectContaining({ code: 11, message: "try", details: "later" }),
  );
});

test("after an ADD that fails or returns no valid result, DEL runs", () => {
  at.plugin("ipam", { ADD: { stdout: "no result" } });
  expect(() => delegate("ipam", "ADD", call({ name: "n" }))).toThrow("failed to unmarshal raw result");
  at.plugin("ipam", { ADD: { stdout: { code: 11, msg: "try" }, exit: 1 } });
  expect(() => delegate("ipam", "ADD", call({ name: "n" }))).toThrow("try");
  expect(at.calls()).toEqual(["ADD ipam", "DEL ipam", "ADD ipam", "DEL ipam"]);
});

test("a missing delegate is reported with the search path", () => {
  expect(() => delegate("ipam", "ADD", call({ name: "n" })))
    .toThrow(`failed to find plugin "ipam" in path [${at.runtime.pluginPath}]`);
});
