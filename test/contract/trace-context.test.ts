/** TRACEPARENT: which values count, what spans are made beneath them, and what other programs get. */
import { afterEach, expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { spanWithin, traceparentOf } from "../../src/contract/trace-context.ts";
import { inCommand, inScene, note, spanForChild } from "../../src/contract/trace.ts";
import { endCall, leaveToCaller } from "../../src/process/calls.ts";
import { takeEnvironment } from "../../src/ffi/environment.ts";
import { addNetwork } from "../../src/runtime/chain.ts";
import { ScratchFile } from "../support/scratch-file.ts";
import { scriptPlugins } from "../support/script-plugins.ts";

const TRACE = "0af7651916cd43dd8448eb211c80319c", CALLER = "b7ad6b7169203331";
const VALID = `00-${TRACE}-${CALLER}-01`;

const take = (variables: Record<string, string>) =>
  takeEnvironment(
    new TextEncoder().encode(Object.entries(variables).map(([name, value]) => `${name}=${value}\0`).join("")),
  );
afterEach(() => take({}));

const passedOn = (traceparent: string) => {
  take({ TRACEPARENT: traceparent });
  const span = spanWithin(undefined);
  return span && traceparentOf(span).replace(span.spanId, "OURS");
};

test("valid values give a span of ours in the same trace, with the flags of version 00", () => {
  const same = (flags: string) => `00-${TRACE}-OURS-${flags}`;
  const later = VALID.replace(/^00/, "cc");
  expect(passedOn(VALID)).toBe(same("01"));
  expect(passedOn(`00-${TRACE}-${CALLER}-00`)).toBe(same("00"));
  expect(passedOn(`00-${TRACE}-${CALLER}-03`)).toBe(same("03"));
  // Flags that this version does not know must be zero.
  expect(passedOn(`00-${TRACE}-${CALLER}-ff`)).toBe(same("03"));
  expect(passedOn(`00-${TRACE}-${CALLER}-0a`)).toBe(same("02"));
  expect(passedOn(later)).toBe(same("01"));
  expect(passedOn(`${later}-what-is-new`)).toBe(same("01"));
  expect(passedOn(`${later}-${"x".repeat(100_000)}`)).toBe(same("01"));
});

test("other values count for nothing", () => {
  const refused = {
    "empty": "",
    "no dashes": VALID.replaceAll("-", ""),
    "version ff": VALID.replace(/^00/, "ff"),
    "a version in upper case": VALID.replace(/^00/, "AA"),
    "a version of one digit": VALID.slice(1),
    "a trace in upper case": VALID.replace(TRACE, TRACE.toUpperCase()),
    "a span in upper case": VALID.replace(CALLER, CALLER.toUpperCase()),
    "flags in upper case": `00-${TRACE}-${CALLER}-0A`,
    "a trace of zeros": VALID.replace(TRACE, "0".repeat(32)),
    "a span of zeros": VALID.replace(CALLER, "0".repeat(16)),
    "a trace that is short": VALID.replace(TRACE, TRACE.slice(1)),
    "a trace that is long": VALID.replace(TRACE, `${TRACE}0`),
    "other letters": VALID.replace("0af", "0ag"),
    "no flags": VALID.slice(0, -3),
    "flags of one digit": VALID.slice(0, -1),
    "more in version 00": `${VALID}-more`,
    "a longer later version without a dash": `${VALID.replace(/^00/, "cc")}.more`,
    "space before": ` ${VALID}`,
    "a line after": `${VALID}\n`,
    "100 KB": "0".repeat(100_000),
    "100 KB more": VALID + "0".repeat(100_000),
  };
  for (const [what, value] of Object.entries(refused)) expect([what, passedOn(value)]).toEqual([what, undefined]);
  take({});
  expect(spanWithin(undefined)).toBeUndefined();
});

test("every span has an id of its own, and its parent's", () => {
  take({ TRACEPARENT: VALID });
  const outer = spanWithin(undefined)!, inner = spanWithin(outer)!, second = spanWithin(undefined)!;
  expect(outer).toEqual({ traceId: TRACE, spanId: expect.stringMatching(/^[0-9a-f]{16}$/), parentSpanId: CALLER });
  expect(inner).toEqual({ traceId: TRACE, spanId: expect.anything(), parentSpanId: outer.spanId });
  expect(new Set([CALLER, outer.spanId, inner.spanId, second.spanId]).size).toBe(4);
});

const scene = (plugin: string) => ({ verb: "ADD", plugin, network: "n", containerId: "c", ifName: "eth0" });

/** What a command with two verbs writes, the second within the first. */
function traced(variables: Record<string, string>) {
  using scratch = new ScratchFile();
  take({ ...variables, PATCHBAY_TRACE: scratch.file });
  const children: string[] = [];
  const child = () => void children.push(spanForChild()["TRACEPARENT"] ?? "none");
  child();
  inCommand("add", () => {
    inScene(scene("outer"), () => {
      note("before", {});
      expect(() =>
        inScene(scene("inner"), () => {
          child();
          throw new Error("refused");
        })
      ).toThrow("refused");
      child();
    });
    child();
  });
  note("after", {});
  child();
  endCall();
  const lines = readFileSync(scratch.file, "utf8").trim().split("\n").map((line) => JSON.parse(line));
  const of = (facts: object) => lines.find((line) => Object.entries(facts).every(([key, is]) => line[key] === is));
  return { lines, of, children };
}

test("lines have the ids of their span, verbs are beneath the command, and children beneath what runs them", () => {
  const { of, children, lines } = traced({ TRACEPARENT: VALID });
  const [command, outer, inner] = [{ command: "add" }, { plugin: "outer", operation: "verb" }, { error: "refused" }]
    .map(of);
  expect(command).toMatchObject({ traceId: TRACE, parentSpanId: CALLER, operation: "command" });
  expect(outer).toMatchObject({ traceId: TRACE, parentSpanId: command.spanId, operation: "verb" });
  expect(inner).toMatchObject({ traceId: TRACE, parentSpanId: outer.spanId, plugin: "inner" });
  expect(of({ note: "before" })).toMatchObject({ spanId: outer.spanId, parentSpanId: outer.parentSpanId });
  expect(of({ note: "after" })).not.toContainAnyKeys(["traceId", "spanId", "parentSpanId"]);
  expect(lines).toHaveLength(5);
  const beneath = ({ spanId }: { spanId: string }) => `00-${TRACE}-${spanId}-01`;
  expect(children).toEqual(["none", beneath(inner), beneath(outer), beneath(command), "none"]);
});

test("a call that is left to its caller says so, and the caller writes what it does", () => {
  using scratch = new ScratchFile();
  take({ TRACEPARENT: VALID, PATCHBAY_TRACE: scratch.file });
  expect(() => inCommand("add", () => leaveToCaller("another program"))).toThrow("another program");
  endCall();
  expect(JSON.parse(readFileSync(scratch.file, "utf8"))).toMatchObject({
    command: "add",
    error: "left to the caller: another program",
  });
});

test("without a caller's span there are no ids", () => {
  for (const variables of [{}, { TRACEPARENT: "00-hello" }] as Record<string, string>[]) {
    const { lines, children } = traced(variables);
    for (const line of lines) expect(line).not.toContainAnyKeys(["traceId", "spanId", "parentSpanId"]);
    expect(new Set(children)).toEqual(new Set(["none"]));
  }
});

test("a plugin that is another program gets our span where there is a trace, the caller's otherwise, and the rest as it is", () => {
  using at = scriptPlugins();
  at.plugin("one", { ADD: { stdout: { cniVersion: "1.1.0" } } });
  const file = `${at.directory}/trace`;
  const request = { containerId: "c", netnsPath: "/run/netns/x", ifName: "eth0", cniArgs: [], capabilityArgs: {} };
  const environmentOf = (variables: Record<string, string>) => {
    take({ PATH: process.env.PATH!, PATCHBAY_STATE_DIR: process.env.PATCHBAY_STATE_DIR!, ...variables });
    inCommand("add", () => addNetwork(at.runtime, at.network(["one"]), request));
    endCall();
    return at.environment("ADD one").filter((entry) => /^(TRACEPARENT|TRACESTATE|BAGGAGE)=/.test(entry)).sort();
  };
  const rest = { TRACESTATE: `a=1,b=${"2".repeat(60_000)}`, BAGGAGE: "user=üñ;p=1, =" };
  const unchanged = [`BAGGAGE=${rest.BAGGAGE}`, `TRACESTATE=${rest.TRACESTATE}`];
  expect(environmentOf({ TRACEPARENT: VALID, ...rest })).toEqual([
    unchanged[0]!,
    `TRACEPARENT=${VALID}`,
    unchanged[1]!,
  ]);
  expect(existsSync(file)).toBe(false);
  const [, parent, ...more] = environmentOf({ TRACEPARENT: VALID, ...rest, PATCHBAY_TRACE: file });
  const command = readFileSync(file, "utf8").trim().split("\n").map((line) => JSON.parse(line)).at(-1);
  expect(command).toMatchObject({ operation: "command", parentSpanId: CALLER });
  expect([parent!, ...more]).toEqual([`TRACEPARENT=00-${TRACE}-${command.spanId}-01`, unchanged[1]!]);
  expect(environmentOf({ TRACEPARENT: "00-hello", ...rest, PATCHBAY_TRACE: file })).toEqual([
    unchanged[0]!,
    "TRACEPARENT=00-hello",
    unchanged[1]!,
  ]);
  expect(environmentOf({ ...rest, PATCHBAY_TRACE: file })).toEqual(unchanged);
});
