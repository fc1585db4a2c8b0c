/** CNI_ARGS: pairs are read as the reference library reads them, and refused by name. */
import { describe, expect, test } from "bun:test";
import { CniError } from "../../src/cni/error.ts";
import { invalidArg, parseCniArgs } from "../../src/cni/args.ts";

describe("parseCniArgs()", () => {
  const read: [text: string, pairs: Record<string, string>][] = [
    ["", {}],
    ["IP=10.0.0.5", { IP: "10.0.0.5" }],
    ["IP=10.0.0.5;MAC=", { IP: "10.0.0.5", MAC: "" }],
    ["IP=1;IP=2", { IP: "2" }],
    ["IgnoreUnknown=1;K8S_POD_NAME=x;IP=1", { IP: "1" }],
    ["K8S_POD_NAME=x;IgnoreUnknown=TRUE", {}],
    ["IgnoreUnknown=0;IgnoreUnknown=true;ip=1", {}],
  ];
  for (const [text, pairs] of read) {
    test(`reads ${JSON.stringify(text)}`, () => expect(parseCniArgs(text, ["IP", "MAC"])).toEqual(pairs));
  }

  const refused: [text: string, message: string][] = [
    ["IP=1;X=2", 'ARGS: unknown args ["X=2"]'],
    ["ip=1;X=2", 'ARGS: unknown args ["ip=1" "X=2"]'],
    ["X=2;IgnoreUnknown=false", 'ARGS: unknown args ["X=2"]'],
    ["IP=1;", 'ARGS: invalid pair ""'],
    ["IP", 'ARGS: invalid pair "IP"'],
    ["IgnoreUnknown=1;IP=a=b", 'ARGS: invalid pair "IP=a=b"'],
    [
      "IgnoreUnknown=yes",
      'ARGS: error parsing value of pair "IgnoreUnknown=yes": boolean unmarshal error: invalid input yes',
    ],
  ];
  for (const [text, message] of refused) {
    test(`refuses ${JSON.stringify(text)}`, () => {
      expect(() => parseCniArgs(text, ["IP", "MAC"])).toThrow(new CniError(4, message));
    });
  }

  test("keys of Object.prototype are unknown like any other", () => {
    expect(() => parseCniArgs("__proto__=1", ["IP"])).toThrow('ARGS: unknown args ["__proto__=1"]');
  });
});

test("invalidArg() names the pair and the environment variable", () => {
  const error = invalidArg("IP", "x", "invalid IP address: x");
  expect([error.code, error.message, error.details]).toEqual([
    4,
    'ARGS: error parsing value of pair "IP=x": invalid IP address: x',
    "CNI_ARGS",
  ]);
});
