/**
 * The CNI_ variables and stdin of a call: all are read word for word, and bad ones are refused with the right code.
 */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import {
  checkContainerId,
  checkIfName,
  checkNetworkName,
  type Environment,
  parseInvocation,
  readEnvironment,
} from "../../src/cni/invocation.ts";
import { refusal } from "../support/outcome.ts";

const utf8 = (text: string) => new TextEncoder().encode(text);

const config = '{"cniVersion":"1.1.0","name":"net","type":"bridge"}';

const complete = {
  CNI_CONTAINERID: "ctr",
  CNI_NETNS: "/run/netns/a",
  CNI_IFNAME: "eth0",
  CNI_ARGS: "IP=1",
  CNI_PATH: "/opt/cni/bin",
};

function call(environment: Environment, stdin = config) {
  return parseInvocation(environment, () => utf8(stdin));
}

describe("parseInvocation()", () => {
  test("answers the parameters word for word", () => {
    expect(call({ ...complete, CNI_COMMAND: "ADD" })).toEqual({
      command: "ADD",
      containerId: "ctr",
      netnsPath: "/run/netns/a",
      ifName: "eth0",
      cniArgs: "IP=1",
      path: "/opt/cni/bin",
      stdin: config,
      document: JSON.parse(config),
    });
  });

  for (const [value, allowed] of [["1", true], ["True", true], ["yes", undefined], ["", undefined]] as const) {
    test(`CNI_NETNS_OVERRIDE=${value} ${allowed ? "allows" : "does not allow"} our own namespace`, () => {
      const environment = { ...complete, CNI_COMMAND: "ADD", CNI_NETNS_OVERRIDE: value };
      expect(call(environment).allowOwnNetns).toBe(allowed);
    });
  }

  test("VERSION does not read stdin", () => {
    const environment = { CNI_COMMAND: "VERSION" };
    const invocation = parseInvocation(environment, () => {
      throw new Error("read");
    });
    expect(invocation.command).toBe("VERSION");
    expect(invocation.stdin).toBe("");
  });

  const accepted: [environment: Environment, stdin: string][] = [
    [{ ...complete, CNI_COMMAND: "DEL", CNI_NETNS: "" }, config],
    [{ CNI_COMMAND: "GC", CNI_PATH: "/x", CNI_CONTAINERID: "%%", CNI_IFNAME: "a/b" }, config],
    [{ CNI_COMMAND: "STATUS", CNI_PATH: "/x" }, config],
    [{ ...complete, CNI_COMMAND: "CHECK" }, '{"NAME":"x","CNIVERSION":"1.0.0"}'],
    [{ ...complete, CNI_COMMAND: "ADD" }, '{"name":"x","NAME":null}'],
  ];
  for (const [environment, stdin] of accepted) {
    test(`accepts ${JSON.stringify(environment)} with ${stdin}`, () => {
      expect(call(environment, stdin).command).toBe(environment.CNI_COMMAND as "DEL");
    });
  }

  const required = (names: string) => [4, `required env variables [${names}] missing`] as const;
  const refused: [environment: Environment, stdin: string, refusal: readonly [number, string, string?]][] = [
    [{}, config, required("CNI_COMMAND")],
    [{ CNI_COMMAND: "ADD" }, config, required("CNI_CONTAINERID,CNI_NETNS,CNI_IFNAME,CNI_PATH")],
    [{ CNI_COMMAND: "DEL" }, config, required("CNI_CONTAINERID,CNI_IFNAME,CNI_PATH")],
    [{ CNI_COMMAND: "CHECK" }, config, required("CNI_CONTAINERID,CNI_NETNS,CNI_IFNAME,CNI_PATH")],
    [{ CNI_COMMAND: "GC" }, config, required("CNI_PATH")],
    [{ CNI_COMMAND: "STATUS" }, config, required("CNI_PATH")],
    [{ CNI_COMMAND: "ADD", CNI_CONTAINERID: "%%" }, config, [4, "invalid characters in containerID", "%%"]],
    [{ ...complete, CNI_COMMAND: "ADD", CNI_PATH: "", CNI_IFNAME: "." }, config, [
      4,
      "interface name is . or ..",
      'CNI_IFNAME is "."',
    ]],
    [{ ...complete, CNI_COMMAND: "ADD", CNI_IFNAME: "x".repeat(16) }, config, [
      4,
      "interface name is too long",
      'interface name should be less than 16 characters; CNI_IFNAME is "xxxxxxxxxxxxxxxx"',
    ]],
    [{ CNI_COMMAND: "NOPE" }, '{"name":"x"}', [4, "unknown CNI_COMMAND: NOPE"]],
    [{ CNI_COMMAND: "add" }, config, [4, "unknown CNI_COMMAND: add"]],
    [{ CNI_COMMAND: "NOPE" }, "{}", [7, "missing network name"]],
    [{ CNI_COMMAND: "NOPE" }, "", [6, "error unmarshall network config: unexpected end of JSON input"]],
    [{ CNI_COMMAND: "NOPE" }, "null", [7, "missing network name"]],
    [{ CNI_COMMAND: "NOPE" }, "[]", [6, "error unmarshall network config: it must be an object"]],
    [{ CNI_COMMAND: "NOPE" }, '{"name":5}', [
      6,
      'error unmarshall network config: "name" must be a string, got 5',
    ]],
    [{ CNI_COMMAND: "NOPE" }, '{"name":"a b"}', [7, "invalid characters found in network name", "a b"]],
  ];
  for (const [environment, stdin, expected] of refused) {
    test(`refuses ${JSON.stringify(environment)} with ${JSON.stringify(stdin)}`, () => {
      expect(refusal(() => call(environment, stdin)) as unknown).toEqual(expected);
    });
  }

  test("says what kept it from reading stdin", () => {
    const work = () =>
      parseInvocation({ ...complete, CNI_COMMAND: "ADD" }, () => {
        throw new Error("read: input/output error");
      });
    expect(refusal(work)).toEqual([5, "error reading from stdin: read: input/output error"]);
  });
});

describe("readEnvironment()", () => {
  test("keeps the CNI_ variables, values with further equals signs included", () => {
    const block = utf8("PATH=/bin\0CNI_COMMAND=ADD\0XCNI_COMMAND=DEL\0CNI_ARGS=A=1;B=2\0CNI_NETNS=\0");
    expect({ ...readEnvironment(block) }).toEqual({ CNI_COMMAND: "ADD", CNI_ARGS: "A=1;B=2", CNI_NETNS: "" });
  });

  test("a block that is cut off before its last zero, and an empty one", () => {
    expect({ ...readEnvironment(utf8("CNI_COMMAND=ADD")) }).toEqual({ CNI_COMMAND: "ADD" });
    expect({ ...readEnvironment(utf8("")) }).toEqual({});
  });

  test("knows no variable that was not set", () => {
    expect(readEnvironment(utf8("CNI_COMMAND=ADD\0")).constructor as unknown).toBeUndefined();
  });

  test("refuses a variable that is set twice, to the same value or not", () => {
    expect(refusal(() => readEnvironment(utf8("CNI_COMMAND=ADD\0A=\0CNI_COMMAND=DEL\0"))))
      .toEqual([4, "CNI_COMMAND is set twice"]);
    expect(refusal(() => readEnvironment(utf8("CNI_ARGS=\0CNI_ARGS=\0")))).toEqual([4, "CNI_ARGS is set twice"]);
  });

  test("refuses bytes that are not UTF-8, in CNI_ variables only", () => {
    const bad = new Uint8Array([0xff, 0x00]);
    expect(refusal(() => readEnvironment(new Uint8Array([...utf8("CNI_IFNAME="), ...bad]))))
      .toEqual([4, "CNI_IFNAME is not valid UTF-8"]);
    expect({ ...readEnvironment(new Uint8Array([...utf8("OTHER="), ...bad])) }).toEqual({});
  });

  test("finds what was put in, among whatever else", () => {
    const text = fc.string({ unit: "binary" }).map((value) => value.replaceAll("\0", ""));
    const value = text.filter((candidate) => candidate.isWellFormed());
    const others = fc.array(text.map((other) => `X${other}`));
    fc.assert(fc.property(value, value, others, (id, args, rest) => {
      const block = utf8([...rest, `CNI_CONTAINERID=${id}`, ...rest, `CNI_ARGS=${args}`, ...rest, ""].join("\0"));
      expect({ ...readEnvironment(block) }).toEqual({ CNI_CONTAINERID: id, CNI_ARGS: args });
    }));
  });
});

describe("identifiers", () => {
  test("a container ID", () => {
    for (const good of ["a", "0", "A_.-9", "a".repeat(300)]) expect(() => checkContainerId(good)).not.toThrow();
    expect(refusal(() => checkContainerId(""))).toEqual([3, "missing containerID"]);
    for (const bad of ["-a", "_", ".", "a/b", "a b", "a\n", "ü"]) {
      expect(refusal(() => checkContainerId(bad))).toEqual([4, "invalid characters in containerID", bad]);
    }
  });

  test("a network name", () => {
    expect(() => checkNetworkName("my-net_1.0")).not.toThrow();
    expect(refusal(() => checkNetworkName(""))).toEqual([7, "missing network name:"]);
    expect(refusal(() => checkNetworkName("../x"))).toEqual([7, "invalid characters found in network name", "../x"]);
  });

  test("an interface name has at most 15 bytes", () => {
    for (const good of ["a", "x".repeat(15), "ü".repeat(7), "eth0.5", "..."]) {
      expect(() => checkIfName(good)).not.toThrow();
    }
    for (const bad of ["x".repeat(16), "ü".repeat(8)]) {
      expect(refusal(() => checkIfName(bad)))
        .toEqual([4, "interface name is too long", "interface name should be less than 16 characters"]);
    }
    expect(refusal(() => checkIfName(""))).toEqual([4, "interface name is empty"]);
  });

  test("an interface name is no directory", () => {
    for (const bad of [".", ".."]) expect(refusal(() => checkIfName(bad))).toEqual([4, "interface name is . or .."]);
  });

  test("an interface name has no slash, no colon and none of Unicode's white space", () => {
    const whiteSpace = Array.from({ length: 0x10000 }, (_, code) => String.fromCharCode(code))
      .filter((character) => /\p{White_Space}/u.test(character));
    expect(whiteSpace).toHaveLength(25);
    for (const bad of ["/", ":", ...whiteSpace]) {
      expect(refusal(() => checkIfName(`a${bad}b`)))
        .toEqual([4, "interface name contains / or : or whitespace characters"]);
    }
    for (const good of ["\ufeff", "\u200b", "\u0001", "\\"]) expect(() => checkIfName(`a${good}b`)).not.toThrow();
  });
});
