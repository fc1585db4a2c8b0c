/** What is known of an attachment: the ledgers' and the cache's, and which of both counts. */
import { beforeEach, describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import type { PluginConfig, PluginDefinition } from "../../../src/contract/plugin.ts";
import { readLedger } from "../../../src/engine/ledger/ledger.ts";
import {
  answeredEnds,
  type CachedAttachment,
  gistOf,
  isConfirmed,
  type KnownAttachment,
  type KnownPart,
  listAttachments,
  partsOf,
  recordedInvocation,
} from "../../../src/engine/operator/known-attachment.ts";
import { cachedWith, onlyKnown } from "../../support/cached-attachment.ts";
import {
  answerWith,
  asked,
  benchForEachTest,
  callOf,
  containerWith,
  hostWith,
  made,
  NETNS,
  owner,
  pluginOf,
  plugins,
  prevResult,
  recorded,
} from "../../support/engine-bench.ts";

const bench = benchForEachTest();
beforeEach(() => plugins["test"] = pluginOf([made("thing now")]));

const MAC = "02:00:00:00:00:0a";
const withLink = hostWith(containerWith({ eth0: MAC })), withoutLink = hostWith(containerWith({}));

/** `test patchbay: thing a, link b` */
const shown = (parts: readonly KnownPart[]) =>
  parts.map(({ plugin, madeBy, resources }) =>
    `${plugin} ${madeBy}: ${
      resources.map(({ name, kind, spec, isRestated }) =>
        kind === undefined ? name : `${name} ${(spec as { name: string }).name}${isRestated ? " restated" : ""}`
      ).join(", ")
    }`
  );
const parts = (cached?: CachedAttachment, host = withLink, path = "") =>
  shown(partsOf(onlyKnown(cached), host, path));

describe("the list", () => {
  const names = (list: readonly KnownAttachment[]) =>
    list.map(({ network, containerId, ifName, netnsPath, ledgers, cached }) =>
      [network, containerId, ifName, netnsPath, ledgers.map(({ header }) => header.plugin).join("+"), !!cached].join(
        " ",
      )
    );

  test("ledgers and cache together, in order; the plugin with the container's link comes first", () => {
    recorded([made("thing a")], { plugin: "a" });
    recorded([made("thing b"), made("link b")], { plugin: "b" });
    recorded([made("thing c")], { plugin: "c", containerId: "another", netnsPath: "/run/netns/y" });
    const uncached = { ...cachedWith(["test"]), network: "first" };
    expect(names(listAttachments([cachedWith(["test"]), uncached]))).toEqual([
      `first ctr eth0 ${NETNS}  true`,
      "net another eth0 /run/netns/y c false",
      `net ctr eth0 ${NETNS} b+a true`,
    ]);
    expect(names(listAttachments([], "another"))).toEqual(["net another eth0 /run/netns/y c false"]);
  });
});

describe("the parts", () => {
  test("without a cached result the last ADD that came to its end counts", () => {
    recorded([made("thing a")], {}, answerWith("veth1"));
    expect(parts()).toEqual(["test patchbay: thing a"]);
    recorded([made("thing b"), made("thing c")], {}, answerWith("veth2"));
    recorded([made("thing d")]);
    expect(parts()).toEqual(["test patchbay: thing b, thing c"]);
  });

  test("where none came to its end, the last one", () => {
    recorded([made("thing a")]);
    recorded([made("thing b")]);
    expect(parts()).toEqual(["test patchbay: thing b"]);
  });

  test("with a cached result whose link is there, the ADD that it confirms", () => {
    recorded([made("thing a")], {}, answerWith("veth1"));
    recorded([made("thing b")], {}, answerWith("veth2"));
    expect(parts(cachedWith(["test"]))).toEqual(["test patchbay: thing a"]);
    expect(parts(cachedWith(["test"]), withoutLink)).toEqual(["test patchbay: thing b"]);
  });

  test("where it confirms none, others made the attachment", () => {
    recorded([made("thing a")], {}, answerWith("veth2"));
    expect(parts(cachedWith(["test"]))).toEqual(["test others: thing now restated"]);
  });

  test("without a ledger the cached result counts, though its link is not there", () => {
    expect(parts(cachedWith(["test"]), withoutLink)).toEqual(["test others: thing now restated"]);
    plugins["test"] = pluginOf([]);
    expect(parts(cachedWith(["test"]))).toEqual(["test nobody: "]);
  });

  test("a cached chain without a result says nothing, and neither does one that cannot be read", () => {
    for (const conf of [{}, { prevResult: 7 }, { prevResult, cniVersion: "99" }]) {
      expect(parts(cachedWith(["test"], conf))).toEqual([]);
    }
    expect(parts(cachedWith([]))).toEqual([]);
  });

  test("a ledger is told by the name that the network gave its plugin", () => {
    plugins["other"] = pluginOf([made("thing other")]);
    recorded([made("thing a")], { stdin: callOf("ADD", { type: "my-test" }).stdin }, answerWith("veth1"));
    recorded([made("thing b")], { plugin: "other", stdin: "{}" }, answerWith("veth1"));
    expect(parts(cachedWith(["my-test", "other"]))).toEqual(["other patchbay: thing b", "test patchbay: thing a"]);
    expect(parts(cachedWith(["test"]))).toEqual([
      "other patchbay: thing b",
      "test patchbay: thing a",
      "test others: thing now restated",
    ]);
  });

  test("of a ledger that cannot be read the configuration tells", () => {
    recorded([made("thing a")], { plugin: "other", stdin: '{"type":"other"}' }, answerWith("veth1"));
    writeFileSync(`${bench.directory}/net/ctr@eth0@test`, "broken", { mode: 0o600 });
    const chain = cachedWith(["test"]);
    expect(parts(chain)).toEqual(["other patchbay: thing a", "test unreadable: thing now restated"]);
    expect(parts(cachedWith(["my-test"]))).toContain("my-test unreadable: thing now restated");
    expect(parts(cachedWith(["my-test", "test"]))).toEqual([
      "other patchbay: thing a",
      "my-test others: ",
      "test unreadable: thing now restated",
    ]);
  });

  test("of foreign plugins, and of those with a record of their own, there are no resources", () => {
    plugins["leases"] = pluginOf([made("thing x")], { name: "leases", del: () => {} });
    expect(parts(cachedWith(["test", "foreign", "leases", "my-test"]))).toEqual([
      "test others: thing now restated",
      "foreign others: ",
      "leases others: ",
      "my-test others: ",
    ]);
  });

  test("a story that cannot be told", () => {
    plugins["test"] = pluginOf([], {
      judge: (_, call) => {
        throw new Error(`not ${call!.prevResult!.ips![0]!.address}`);
      },
    });
    expect(parts(cachedWith(["test"]))).toEqual([
      "test others: what test made cannot be told: not 10.0.0.5/24",
    ]);
  });

  test("plugins and those that they call get a version that has CHECK, with the result in it", () => {
    const seen: unknown[] = [];
    const plugin: PluginDefinition<PluginConfig> = pluginOf([], {
      add(at) {
        seen.push(at.conf.cniVersion, at.prevResult, at.cniArgs, at.purpose);
        at.applyAll([made("thing now")]);
        return { cniVersion: "" };
      },
    });
    plugins["test"] = plugin;
    const old = { cniVersion: "0.2.0", ip4: { ip: "10.0.0.5/24" } };
    const known = onlyKnown(cachedWith(["test"], { cniVersion: "0.2.0", prevResult: old }));
    const [part] = partsOf(known, withLink, "");
    expect(seen).toEqual(["1.0.0", expect.objectContaining({ ips: [{ address: "10.0.0.5/24" }] }), "A=b", "check"]);
    plugins["called"] = pluginOf([made("thing called")]);
    expect(part!.host.delegate("called", "CHECK")).toBeUndefined();
    expect(asked).toEqual(["verify thing called restated"]);
  });

  test("those that a recorded plugin calls get what ADD got, and its answer", () => {
    const seen: unknown[] = [];
    plugins["called"] = pluginOf([], {
      check: ({ conf, prevResult, cniArgs }) => {
        seen.push(conf["args"], conf.cniVersion, prevResult?.ips, cniArgs);
        return [];
      },
    });
    const stdin = callOf("ADD", { args: { cni: 1 }, cniVersion: "0.3.0" }).stdin;
    recorded([made("thing a")], { stdin, cniArgs: "C=d" }, answerWith("veth1"));
    const [part] = partsOf(onlyKnown(), withLink, "");
    part!.host.delegate("called", "CHECK");
    expect(seen).toEqual([{ cni: 1 }, "1.0.0", [{ address: "10.0.0.5/24" }], "C=d"]);
  });
});

describe("the call of CHECK that a ledger gives", () => {
  const ips = [{ address: "10.0.0.7/24", gateway: "10.0.0.1" }];
  const call = () => recordedInvocation(readLedger(owner, "test")!.adds.at(-1)!, "/opt/cni/bin");

  test("has the answer's links and addresses, or the addresses of resources, which have gateways", () => {
    recorded([made("thing a")], {}, { links: ["veth1"], addresses: ["10.0.0.5/24"] });
    expect(call()).toMatchObject({ command: "CHECK", path: "/opt/cni/bin", ...owner });
    expect(JSON.parse(call().stdin)).toMatchObject({ cniVersion: "1.0.0", name: "net", type: "test" });
    expect(call().document!["prevResult"]).toEqual({
      cniVersion: "1.0.0",
      interfaces: [{ name: "veth1" }, { name: "eth0", mac: undefined, sandbox: NETNS }],
      ips: [{ address: "10.0.0.5/24" }],
    });
    recorded([made("addresses a", { ips })], {}, { links: [], mac: MAC, addresses: ["10.0.0.5/24"] });
    expect(call().document!["prevResult"]).toEqual({
      cniVersion: "1.0.0",
      interfaces: [{ name: "eth0", mac: MAC, sandbox: NETNS }],
      ips,
    });
  });

  test("of an ADD that did not end there is no answer", () => {
    recorded([made("thing a")]);
    expect(call().document!["prevResult"]).toMatchObject({ interfaces: [{ name: "eth0" }], ips: [] });
  });
});

describe("the cached result", () => {
  test("is confirmed where the container has its link", () => {
    expect(isConfirmed(onlyKnown(cachedWith(["test"])), withLink)).toBe(true);
    for (const host of [withoutLink, hostWith(undefined), hostWith(containerWith({ eth0: "02:00:00:00:00:0b" }))]) {
      expect(isConfirmed(onlyKnown(cachedWith(["test"])), host)).toBe(false);
    }
    recorded([made("thing a")]);
    expect(isConfirmed(onlyKnown(), withLink)).toBe(false);
    expect(isConfirmed(onlyKnown(cachedWith(["test"], {})), withLink)).toBe(false);
  });

  test("says which links on the host the container has the other ends of", () => {
    const interfaces = [
      { name: "veth1", mac: "02:00:00:00:00:01" },
      { name: "veth2" },
      { name: "eth1", mac: "02:00:00:00:00:0c", sandbox: NETNS },
      { name: "eth0", mac: MAC, sandbox: NETNS },
      { name: "eth0", mac: "02:00:00:00:00:0d" },
    ];
    expect(answeredEnds(onlyKnown(cachedWith(["test"], { prevResult: { ...prevResult, interfaces } })))).toEqual([
      { name: "veth1", mac: "02:00:00:00:00:01", farMac: MAC },
      { name: "veth2", mac: "", farMac: MAC },
      { name: "eth0", mac: "02:00:00:00:00:0d", farMac: MAC },
    ]);
    expect(answeredEnds(onlyKnown(cachedWith(["test"], {})))).toEqual([]);
    const outside = { ...prevResult, interfaces: [{ name: "veth1" }] };
    expect(answeredEnds(onlyKnown(cachedWith(["test"], { prevResult: outside })))).toEqual([
      { name: "veth1", mac: "", farMac: "" },
    ]);
  });
});

describe("the gist", () => {
  const ips = [{ address: "10.0.0.7/24" }];

  test("is of the parts that count, or of what was once made, or of the cached result", () => {
    recorded([made("addresses a", { ips: [{ address: "10.0.0.6/24" }] })], {}, answerWith("veth1"));
    recorded([made("thing a"), made("addresses a", { ips })]);
    expect(gistOf(onlyKnown()).addresses).toEqual(["10.0.0.7/24"]);
    const known = onlyKnown(cachedWith(["test"]));
    expect(gistOf(known).addresses).toEqual(["10.0.0.7/24"]);
    expect(gistOf(known, partsOf(known, withLink, ""))).toEqual({ addresses: ["10.0.0.6/24"], ports: [] });
    expect(gistOf(known, []).addresses).toEqual(["10.0.0.5/24"]);
  });

  test("of one thing without addresses there are none, though the cached result has some", () => {
    recorded([made("thing a")], {}, answerWith("veth1"));
    expect(gistOf(onlyKnown(cachedWith(["test"]))).addresses).toEqual([]);
  });
});
