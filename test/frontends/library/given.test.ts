/** What the library makes of its arguments, and how it refuses what cannot be meant: by key and value. */
import { expect, test } from "bun:test";
import { ArgumentError } from "../../../src/frontends/library/argument-error.ts";
import { open } from "../../../src/frontends/library/calls.ts";
import { anyRequest, checkedOptions, requestFrom } from "../../../src/frontends/library/given.ts";
import { thrown } from "../../support/outcome.ts";

const c1 = { containerId: "c1", netns: "/run/netns/c1" };

test("an attachment is a request, with what is usual for what it does not say", () => {
  const usual = { containerId: "c1", netnsPath: "/run/netns/c1", ifName: "eth0", cniArgs: [], capabilityArgs: {} };
  expect(requestFrom(c1, true)).toEqual(usual);
  expect(requestFrom({ ...c1, netns: "./../c1/ns" }, true)).toEqual({
    ...usual,
    netnsPath: `${process.cwd().replace(/\/[^/]*$/, "")}/c1/ns`,
  });
  const capabilities = { mac: "00:11:22:33:44:55" }, args = { IgnoreUnknown: "1", K8S_POD_NAME: "" };
  expect(() => requestFrom({ ...c1, args }, true)).toThrow("attachment.args.K8S_POD_NAME");
  expect(requestFrom({ ...c1, ifName: "net1", args: { A: "b", C: "d" }, capabilities }, true)).toEqual({
    ...usual,
    ifName: "net1",
    cniArgs: [["A", "b"], ["C", "d"]],
    capabilityArgs: capabilities,
  });
  expect(requestFrom(c1, false)).toEqual(usual);
  expect(requestFrom({ containerId: "c1" }, false)).toEqual({ ...usual, netnsPath: "" });
  expect(anyRequest()).toEqual({ ...usual, containerId: "any", netnsPath: "" });
});

test("options are taken as they are", () => {
  const options = { configDirectory: "/a", pluginPath: "b:/c", cacheDirectory: "/d", onWarning: () => {} };
  expect(checkedOptions(options)).toBe(options);
  expect(checkedOptions({ configDirectory: undefined, pluginPath: "" })).toEqual({ pluginPath: "" });
});

const attached = (more: object) => () => requestFrom({ ...c1, ...more }, true);
const optioned = (options: unknown) => () => checkedOptions(options);
const circular: Record<string, unknown> = {};
circular.itself = circular;

/** Nobody needs privileges to be refused. */
const patchbay = open({ configDirectory: "/nowhere" }) as unknown as Record<string, (...given: unknown[]) => unknown>;
const called = (name: string, ...given: unknown[]) => () => patchbay[name]!(...given);

test.each<[key: string, says: string, work: () => unknown]>([
  ["attachment", "undefined must be an object", () => requestFrom(undefined, true)],
  ["attachment", '"c1" must be an object', () => requestFrom("c1", false)],
  [
    "attachment.containerID",
    '"c1" is under an unknown key; did you mean containerId?',
    attached({ containerID: "c1" }),
  ],
  [
    "attachment.something",
    "1 is under an unknown key; there are containerId, netns, ifName, args, capabilities",
    attached({ something: 1 }),
  ],
  ["attachment.containerId", "7 must be a string that is not empty", attached({ containerId: 7 })],
  ["attachment.containerId", '"" must be a string that is not empty', attached({ containerId: "" })],
  ["attachment.containerId", '"c\\u0000d" must not contain NUL', attached({ containerId: "c\0d" })],
  ["attachment.netns", "undefined must be a string that is not empty", attached({ netns: undefined })],
  [
    "attachment.netns",
    "null must be a string that is not empty",
    () => requestFrom({ ...c1, netns: null }, false),
  ],
  ["attachment.netns", '"c1" is not a path; ip-netns(8) keeps namespaces in /run/netns', attached({ netns: "c1" })],
  ["attachment.ifName", "{} must be a string that is not empty", attached({ ifName: {} })],
  ["attachment.args", '["A=b"] must be an object', attached({ args: ["A=b"] })],
  ["attachment.args", '"" cannot be the key of a pair', attached({ args: { "": "b" } })],
  ["attachment.args", '"A=" cannot be the key of a pair', attached({ args: { "A=": "b" } })],
  ["attachment.args", '"A;B" cannot be the key of a pair', attached({ args: { "A;B": "b" } })],
  ["attachment.args.A", '"b;C=d" must not contain "=" or ";"', attached({ args: { A: "b;C=d" } })],
  ["attachment.args.A", "1 must be a string that is not empty", attached({ args: { A: 1 } })],
  ["attachment.capabilities", "3 must be an object", attached({ capabilities: 3 })],
  ["attachment.capabilities", "9 must be an object", attached({ capabilities: 9n }) as () => unknown],
  ["attachment.capabilities", "[object Object] must be an object", attached({ capabilities: [circular] })],
  ["attachment.capabilities", "Symbol(x) must be an object", attached({ capabilities: Symbol("x") })],
  ["options", "null must be an object", optioned(null)],
  ["options.pluginpaths", '"/a" is under an unknown key; did you mean pluginPath?', optioned({ pluginpaths: "/a" })],
  ["options.configDirectory", "7 must be a string", optioned({ configDirectory: 7 })],
  ["options.pluginPath", "[] must be a string", optioned({ pluginPath: [] })],
  ["options.cacheDirectory", '"d" must be an absolute path', optioned({ cacheDirectory: "d" })],
  ["options.onWarning", '"x" must be a function', optioned({ onWarning: "x" })],
  ["options.configDirectory", '"d" must be an absolute path', () => open({ configDirectory: "d" })],
  ["network", "5 must be a name, a configuration, or what network() answered", called("add", 5, c1)],
  ["network", "null must be a name, a configuration, or what network() answered", called("check", null, c1)],
  ["network", '"" must be a string that is not empty', called("network", "")],
  [
    "attachment.netns",
    "undefined must be a string that is not empty",
    called("add", "net", { containerId: "c1" }),
  ],
  [
    "attachment.netns",
    "undefined must be a string that is not empty",
    called("plan", "net", { containerId: "c1" }),
  ],
  ["attachment.containerId", "undefined must be a string that is not empty", called("del", "net", {})],
  ["attachment", "null must be an object", called("plan", "net", null)],
  ["kept", "{} must have one of valid and live", called("gc", "net", {})],
  [
    "kept",
    '{"valid":[],"live":true} must have one of valid and live',
    called("gc", "net", { valid: [], live: true }),
  ],
  ["kept.live", "false must be true", called("gc", "net", { live: false })],
  ["kept.valid", '"c1" must be a list of attachments', called("gc", "net", { valid: "c1" })],
  [
    "kept.valid[1].ifName",
    "undefined must be a string that is not empty",
    called("gc", "net", { valid: [{ containerId: "c1", ifName: "eth0" }, { containerId: "c2" }] }),
  ],
  [
    "kept.valid[0].containerId",
    "1 must be a string that is not empty",
    called("gc", "net", { valid: [{ containerId: 1, ifName: "eth0" }] }),
  ],
  [
    "wanted.container",
    '"c1" is under an unknown key; did you mean containerId?',
    called("inspect", { container: "c1" }),
  ],
  ["wanted.network", "5 must be a string that is not empty", called("inspect", { network: 5 })],
  ["wanted.containerId", '"" must be a string that is not empty', called("inspect", { containerId: "" })],
  ["options.signal", "{} must be an AbortSignal", called("events", { signal: {} })],
  ["options.existing", "1 must be true or false", called("events", { existing: 1 })],
])("%s: %s", (key, says, work) => {
  const error = thrown(work);
  expect(error).toBeInstanceOf(ArgumentError);
  expect(error).toMatchObject({ name: "ArgumentError", key, code: 4, message: `${key}: ${says}` });
});

test("what is read and refused is a CniError with the code of its kind", () => {
  const network = { cniVersion: "1.0.0", name: "net", plugins: [{ type: "loopback" }] };
  expect(patchbay.network!(network)).toMatchObject({ name: "net", plugins: [{ type: "loopback" }] });
  expect(thrown(called("network", { ...network, plugins: [] }))).toMatchObject({ name: "CniError", code: 7 });
  expect(thrown(called("network", "net"))).toMatchObject({ name: "CniError", code: 7 });
});
