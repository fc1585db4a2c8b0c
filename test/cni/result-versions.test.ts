/**
 * Results in every version of the specification: printed, read, and converted to other versions.
 *
 * Longer than 300 lines: each version has an example in full, as the reference library prints it.
 */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import {
  convertResult,
  formatResult,
  newestResult,
  parsePluginResult,
  parsePrevResult,
  printResult,
  readResult,
} from "../../src/cni/result-versions.ts";
import { KNOWN_VERSIONS, resultFamily } from "../../src/cni/versions.ts";
import { refusal } from "../support/outcome.ts";
import type { Result } from "../../src/cni/result.ts";

const full: Result = {
  cniVersion: "1.1.0",
  interfaces: [
    { name: "cni0", mac: "00:11:22:33:44:55" },
    {
      name: "eth0",
      mac: "99:88:77:66:55:44",
      mtu: 1400,
      sandbox: "/run/netns/a",
      socketPath: "/s",
      pciID: "0000:00:1f.6",
    },
  ],
  ips: [
    { address: "10.1.0.5/16", gateway: "10.1.0.1", interface: 1 },
    { address: "fd00::5/64", gateway: "fd00::1", interface: 0 },
    { address: "10.2.0.5/16", interface: -1 },
  ],
  routes: [
    { dst: "0.0.0.0/0", gw: "10.1.0.1", mtu: 1300, advmss: 1200, priority: 7, table: 0, scope: 253 },
    { dst: "::/0" },
  ],
  dns: { nameservers: ["10.1.0.1"], domain: "d", search: ["s"], options: ["o"] },
};

/** With the keys in this order; the example of 0.2.0 below has the text itself. */
const printed = (document: object) => JSON.stringify(document, null, 4);

/** From the document's own version to another one, as a document again. */
function converted(document: Record<string, unknown>, version: string): unknown {
  return JSON.parse(printResult(convertResult(readResult(document, String(document.cniVersion)), version)));
}

describe("formatResult()", () => {
  test("1.1.0: alphabetical at every level, four spaces, no newline at the end", () => {
    expect(formatResult(full, "1.1.0")).toBe(printed({
      cniVersion: "1.1.0",
      dns: { domain: "d", nameservers: ["10.1.0.1"], options: ["o"], search: ["s"] },
      interfaces: [
        { mac: "00:11:22:33:44:55", name: "cni0" },
        {
          mac: "99:88:77:66:55:44",
          mtu: 1400,
          name: "eth0",
          pciID: "0000:00:1f.6",
          sandbox: "/run/netns/a",
          socketPath: "/s",
        },
      ],
      ips: [
        { address: "10.1.0.5/16", gateway: "10.1.0.1", interface: 1 },
        { address: "fd00::5/64", gateway: "fd00::1", interface: 0 },
        { address: "10.2.0.5/16", interface: -1 },
      ],
      routes: [
        { advmss: 1200, dst: "0.0.0.0/0", gw: "10.1.0.1", mtu: 1300, priority: 7, scope: 253, table: 0 },
        { dst: "::/0" },
      ],
    }));
  });

  test("1.0.0 differs from 1.1.0 by its label only", () => {
    expect(formatResult(full, "1.0.0")).toBe(formatResult(full, "1.1.0").replace("1.1.0", "1.0.0"));
  });

  test("0.4.0: a version at each address, the keys in declaration order, interfaces without what 1.1.0 brought", () => {
    expect(formatResult(full, "0.4.0")).toBe(printed({
      cniVersion: "0.4.0",
      interfaces: [
        { name: "cni0", mac: "00:11:22:33:44:55" },
        { name: "eth0", mac: "99:88:77:66:55:44", sandbox: "/run/netns/a" },
      ],
      ips: [
        { version: "4", interface: 1, address: "10.1.0.5/16", gateway: "10.1.0.1" },
        { version: "6", interface: 0, address: "fd00::5/64", gateway: "fd00::1" },
        { version: "4", interface: -1, address: "10.2.0.5/16" },
      ],
      routes: [
        { dst: "0.0.0.0/0", gw: "10.1.0.1", mtu: 1300, advmss: 1200, priority: 7, table: 0, scope: 253 },
        { dst: "::/0" },
      ],
      dns: { nameservers: ["10.1.0.1"], domain: "d", search: ["s"], options: ["o"] },
    }));
  });

  test("0.2.0: the first address of each family, its routes with destination and gateway", () => {
    expect(formatResult({ ...full, dns: undefined }, "0.2.0")).toBe(`{
    "cniVersion": "0.2.0",
    "ip4": {
        "ip": "10.1.0.5/16",
        "gateway": "10.1.0.1",
        "routes": [
            {
                "dst": "0.0.0.0/0",
                "gw": "10.1.0.1"
            }
        ]
    },
    "ip6": {
        "ip": "fd00::5/64",
        "gateway": "fd00::1",
        "routes": [
            {
                "dst": "::/0"
            }
        ]
    },
    "dns": {}
}`);
  });

  const empty: [version: string, text: string][] = [
    ["1.1.0", '{"cniVersion":"1.1.0"}'],
    ["0.4.0", '{"cniVersion":"0.4.0","dns":{}}'],
    ["0.3.0", '{"cniVersion":"0.3.0","dns":{}}'],
  ];
  for (const [version, text] of empty) {
    test(`leaves out what is empty in ${version}`, () => {
      const result = { cniVersion: "", interfaces: [], ips: [], routes: [], dns: { search: [], domain: "" } };
      expect(JSON.stringify(JSON.parse(formatResult(result, version)))).toBe(text);
    });
  }

  test("a network without addresses cannot be told in 0.2.0", () => {
    expect(refusal(() => formatResult({ cniVersion: "" }, "0.2.0")))
      .toEqual([1, "cannot convert: no valid IP addresses"]);
  });

  test("no version means 0.1.0", () => {
    expect(JSON.parse(formatResult(full, "")).cniVersion).toBe("0.1.0");
  });

  test("a version nobody knows has no converter", () => {
    expect(refusal(() => formatResult(full, "0.4")))
      .toEqual([1, "no converter for CNI result version 1.1.0 to 0.4"]);
  });
});

describe("convertResult()", () => {
  test("keeps index and gateway on the way from 0.4.0 to 1.0.0, whatever the version of the address says", () => {
    const ips = [{ version: "6", address: "1.1.1.1/8", interface: -1 }];
    expect(converted({ cniVersion: "0.4.0", ips }, "1.0.0"))
      .toEqual({ cniVersion: "1.0.0", ips: [{ address: "1.1.1.1/8", interface: -1 }] });
  });

  test("goes by the version, not by the address, from 0.4.0 to 0.2.0", () => {
    const ips = [{ version: "6", address: "1.1.1.1/8" }, { version: "4", address: "2.2.2.2/8" }];
    expect(converted({ cniVersion: "0.4.0", ips }, "0.2.0"))
      .toEqual({ cniVersion: "0.2.0", ip4: { ip: "2.2.2.2/8" }, ip6: { ip: "1.1.1.1/8" }, dns: {} });
  });

  test("an address without a version is none for 0.2.0", () => {
    const document = { cniVersion: "0.4.0", ips: [{ address: "1.1.1.1/8" }] };
    expect(refusal(() => converted(document, "0.2.0"))).toEqual([1, "cannot convert: no valid IP addresses"]);
  });

  test("joins the routes of both families, with all they carry, from 0.2.0 to 0.4.0", () => {
    const document = {
      cniVersion: "0.2.0",
      ip6: { ip: "fd00::5/64", routes: [{ dst: "::/0", mtu: 5 }] },
      ip4: { ip: "10.0.0.5/8", gateway: "10.0.0.1", routes: [{ dst: "0.0.0.0/0" }] },
      dns: { domain: "d" },
    };
    expect(converted(document, "0.4.0")).toEqual({
      cniVersion: "0.4.0",
      ips: [{ version: "4", address: "10.0.0.5/8", gateway: "10.0.0.1" }, { version: "6", address: "fd00::5/64" }],
      routes: [{ dst: "0.0.0.0/0" }, { dst: "::/0", mtu: 5 }],
      dns: { domain: "d" },
    });
  });

  test("drops the routes of a family that has no address on the way to 0.2.0", () => {
    const document = { cniVersion: "1.0.0", ips: [{ address: "10.0.0.5/8" }], routes: [{ dst: "::/0" }] };
    expect(converted(document, "0.2.0")).toEqual({ cniVersion: "0.2.0", ip4: { ip: "10.0.0.5/8" }, dns: {} });
  });

  test("within a family only the label changes, also where another version would not have the field", () => {
    const old = { cniVersion: "0.2.0", ip4: { ip: "1.1.1.1/8", routes: [{ dst: "2.0.0.0/8", table: 5 }] }, dns: {} };
    expect(converted(old, "0.1.0")).toEqual({ ...old, cniVersion: "0.1.0" });
    const wrong = { cniVersion: "0.4.0", ips: [{ version: "6", address: "1.1.1.1/8" }], dns: {} };
    expect(converted(wrong, "0.3.0")).toEqual({ ...wrong, cniVersion: "0.3.0" });
    expect(converted({ cniVersion: "0.2.0" }, "0.1.0")).toEqual({ cniVersion: "0.1.0", dns: {} });
  });
});

describe("readResult()", () => {
  test("prints addresses as Go does", () => {
    const ips = [
      { address: "10.1.2.3/8", gateway: "::FFFF:10.0.0.1" },
      { address: "::ffff:1.1.1.1/120", gateway: "" },
      { address: "FD00:0:0::0005/64" },
    ];
    expect(converted({ cniVersion: "1.0.0", ips }, "1.0.0")).toEqual({
      cniVersion: "1.0.0",
      ips: [{ address: "10.1.2.3/8", gateway: "10.0.0.1" }, { address: "1.1.1.1/24" }, { address: "fd00::5/64" }],
    });
  });

  test("folds the case of keys, drops unknown ones, and takes null for absent", () => {
    const document = {
      CNIVersion: "1.0.0",
      IPS: [{ Address: "1.1.1.1/8", gateway: null, x: 1 }],
      routes: null,
      y: 2,
    };
    expect(readResult(document, "1.0.0").result)
      .toEqual({ cniVersion: "1.0.0", ips: [{ address: "1.1.1.1/8" }] });
  });

  const refused: [document: Record<string, unknown>, version: string, message: string][] = [
    [{ cniVersion: "0.4.0" }, "1.0.0", 'result type supports [1.0.0 1.1.0] but unmarshalled CNIVersion is "0.4.0"'],
    [{}, "0.4.0", 'result type supports [0.3.0 0.3.1 0.4.0] but unmarshalled CNIVersion is ""'],
    [{ cniVersion: "1.0.0" }, "", 'result type supports [ 0.1.0 0.2.0] but unmarshalled CNIVersion is "1.0.0"'],
    [{ cniVersion: "2.0.0" }, "2.0.0", 'unsupported CNI result version "2.0.0"'],
  ];
  for (const [document, version, message] of refused) {
    test(`refuses ${JSON.stringify(document)} as a result of version "${version}"`, () => {
      expect(refusal(() => readResult(document, version))).toEqual([6, message]);
    });
  }

  const wrong: [part: Record<string, unknown>, message: string][] = [
    [{ ips: [{ address: "1.1.1.1" }] }, '"ips[0].address": invalid CIDR address: 1.1.1.1'],
    [{ ips: [{ address: "1.1.1.01/8" }] }, '"ips[0].address": invalid CIDR address: 1.1.1.01/8'],
    [{ ips: [{}] }, '"ips[0].address" is missing'],
    [{ ips: [{ address: "1.1.1.1/8", interface: 0.5 }] }, '"ips[0].interface" must be an integer, got 0.5'],
    [{ routes: [{ dst: "::/0", gw: "fe80::1%eth0" }] }, '"routes[0].gw": invalid IP address: fe80::1%eth0'],
    [{ routes: {} }, '"routes" must be a list, got {}'],
  ];
  for (const [part, message] of wrong) {
    test(`names the place in ${JSON.stringify(part)}`, () => {
      expect(refusal(() => readResult({ cniVersion: "1.0.0", ...part }, "1.0.0"))[1]).toBe(message);
    });
  }
});

describe("parsePrevResult()", () => {
  const ips = [{ address: "10.1.0.5/16" }];

  test("there is none", () => {
    expect(parsePrevResult({ cniVersion: "1.0.0" })).toBeUndefined();
    expect(parsePrevResult({ cniVersion: "1.0.0", prevResult: null })).toBeUndefined();
  });

  const accepted: [version: string, prevResult: Record<string, unknown>][] = [
    ["1.0.0", { ips }],
    ["1.0.0", { cniVersion: "1.1.0", ips }],
    ["1.0.0", { CNIVERSION: "1.0.0", ips }],
    ["1.1.0", { cniVersion: null, ips }],
    ["0.4.0", { cniVersion: "0.3.0", ips: [{ version: "4", address: "10.1.0.5/16" }] }],
    ["0.2.0", { cniVersion: "", ip4: { ip: "10.1.0.5/16" } }],
    ["", { ip4: { ip: "10.1.0.5/16" } }],
  ];
  for (const [cniVersion, prevResult] of accepted) {
    test(`reads ${JSON.stringify(prevResult)} in a configuration of version "${cniVersion}"`, () => {
      expect(parsePrevResult({ cniVersion, prevResult })).toMatchObject({ cniVersion: "1.1.0", ips });
    });
  }

  const refused: [version: string, prevResult: unknown, message: string][] = [
    ["1.0.0", { cniVersion: "0.4.0" }, 'result type supports [1.0.0 1.1.0] but unmarshalled CNIVersion is "0.4.0"'],
    ["1.0.0", { cniVersion: "" }, 'result type supports [1.0.0 1.1.0] but unmarshalled CNIVersion is ""'],
    ["1.0.0", { CniVersion: "" }, 'result type supports [1.0.0 1.1.0] but unmarshalled CNIVersion is ""'],
    ["2.0.0", {}, 'unsupported CNI result version "2.0.0"'],
    ["1.0.0", [], "the document must be an object, got []"],
    ["1.0.0", { ips: 5 }, '"ips" must be a list, got 5'],
  ];
  for (const [cniVersion, prevResult, message] of refused) {
    test(`refuses ${JSON.stringify(prevResult)} in a configuration of version ${cniVersion}`, () => {
      expect(refusal(() => parsePrevResult({ cniVersion, prevResult })))
        .toEqual([6, `could not parse prevResult: ${message}`]);
    });
  }
});

describe("parsePluginResult()", () => {
  const read: [stdout: string, version: string, result: Record<string, unknown>][] = [
    ["{}", "1.1.0", { cniVersion: "1.1.0" }],
    ["null", "", { cniVersion: "0.1.0" }],
    ['{"cniVersion":""}', "0.4.0", { cniVersion: "0.4.0" }],
    ['{"cniVersion":"0.4.0"}', "1.1.0", { cniVersion: "0.4.0" }],
    ['{"ips":[{"address":"1.1.1.1/8"}]}', "1.0.0", { cniVersion: "1.0.0", ips: [{ address: "1.1.1.1/8" }] }],
  ];
  for (const [stdout, version, result] of read) {
    test(`reads ${stdout} from a plugin called with version "${version}"`, () => {
      expect(parsePluginResult(stdout, version).result as unknown).toEqual(result);
    });
  }

  for (const stdout of ["", "[]", "{}{}", "5"]) {
    test(`refuses ${JSON.stringify(stdout)}`, () => {
      const [code, message] = refusal(() => parsePluginResult(stdout, "1.0.0"));
      expect(code).toBe(6);
      expect(message).toStartWith("failed to unmarshal raw result: ");
    });
  }
});

describe("for any result", () => {
  const text = fc.string({ minLength: 1 });
  const maybe = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined });
  const octet = fc.nat(255);
  const v4 = fc.tuple(octet, octet, octet, octet).map((bytes) => bytes.join("."));
  const v6 = fc.tuple(fc.nat(0xfffe), fc.nat(0xffff)).map(([a, b]) =>
    `fd01:${(a + 1).toString(16)}::${(b || 1).toString(16)}`
  );
  const ip = fc.oneof(v4, v6);
  const prefix = fc.oneof(
    fc.tuple(v4, fc.nat(32)).map((parts) => parts.join("/")),
    fc.tuple(v6, fc.nat(128)).map((parts) => parts.join("/")),
  );
  const count = fc.integer({ min: 1, max: 70000 });
  const list = <T>(arbitrary: fc.Arbitrary<T>) => maybe(fc.array(arbitrary, { minLength: 1, maxLength: 4 }));
  const result: fc.Arbitrary<Result> = fc.record({
    cniVersion: fc.constant("1.1.0"),
    interfaces: list(fc.record({
      name: fc.string(),
      mac: maybe(text),
      mtu: maybe(count),
      sandbox: maybe(text),
      socketPath: maybe(text),
      pciID: maybe(text),
    })),
    ips: list(fc.record({ address: prefix, gateway: maybe(ip), interface: maybe(fc.integer({ min: -1, max: 9 })) })),
    routes: list(fc.record({
      dst: prefix,
      gw: maybe(ip),
      mtu: maybe(count),
      advmss: maybe(count),
      priority: maybe(count),
      table: maybe(fc.nat(255)),
      scope: maybe(fc.nat(255)),
    })),
    dns: maybe(fc.record({ nameservers: list(text), domain: text, search: list(text), options: list(text) })),
  });

  for (const version of ["1.0.0", "1.1.0"]) {
    test(`printing in ${version} and reading again loses nothing`, () => {
      fc.assert(fc.property(result, (original) => {
        expect(newestResult(parsePluginResult(formatResult(original, version), "0.1.0"))).toEqual(original);
      }));
    });
  }

  test("printing in 0.4.0 and reading again loses the three keys of 1.1.0", () => {
    fc.assert(fc.property(result, (original) => {
      const interfaces = original.interfaces?.map(({ name, mac, sandbox }) => ({ name, mac, sandbox }));
      expect(newestResult(parsePluginResult(formatResult(original, "0.4.0"), "0.1.0")))
        .toEqual({ ...original, interfaces, dns: original.dns ?? {} });
    }));
  });

  test("there is a text in every version, or none because 0.1.0 and 0.2.0 need an address", () => {
    fc.assert(fc.property(result, fc.constantFrom(...KNOWN_VERSIONS), (original, version) => {
      if (resultFamily(version) === "0.1" && !original.ips) {
        expect(() => formatResult(original, version)).toThrow("cannot convert: no valid IP addresses");
      } else {
        expect(parsePluginResult(formatResult(original, version), "").result.cniVersion).toBe(version);
      }
    }));
  });

  test("what survives the way down to 0.2.0 survives every further way up and down", () => {
    fc.assert(fc.property(result.filter((original) => original.ips !== undefined), (original) => {
      const once = formatResult(original, "0.2.0");
      expect(formatResult(newestResult(parsePluginResult(once, "")), "0.2.0")).toBe(once);
    }));
  });
});
