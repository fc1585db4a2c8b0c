/** ADD: what it makes, what its result says, in every version. */
import { resultFamily } from "../../cni/versions.ts";
import { listAddresses } from "../../ffi/netlink/route/address.ts";
import { formatPrefix, parseAddress, parsePrefix } from "../../net/address.ts";
import { requireError, told } from "../answer.ts";
import type { SpecDemand } from "../demand.ts";
import { everyKind } from "../subjects.ts";
import { listIn, type Trial, type TrialAttachment } from "../trial.ts";
import { UnmetDemand } from "../unmet-demand.ts";

const ADD = "Section 2, ADD", RESULT = "Section 5, ADD Success";
const ofMain = { section: ADD, strength: "should", since: "0.3.0", kinds: ["main"] } as const;

type Result = Record<string, unknown>;

const shown = (value: unknown) => JSON.stringify(value);

/** The entry of the container's interface. */
function entryOf({ ifName, container }: TrialAttachment, result: Result): Result {
  const found = listIn(result, "interfaces").find(({ name, sandbox }) =>
    name === ifName && sandbox === container.path
  );
  if (found === undefined) {
    throw new UnmetDemand(`no interface ${ifName} with sandbox ${container.path} in the result: ${shown(result)}`);
  }
  return found;
}

function wrongForm(version: string, result: Result): string | undefined {
  if (result.cniVersion !== version) return `"cniVersion" is ${shown(result.cniVersion)}`;
  const family = resultFamily(version), ips = listIn(result, "ips");
  if (family === "0.1") return "ips" in result ? '"ips", which this version has not' : undefined;
  if ("ip4" in result || "ip6" in result) return '"ip4" or "ip6", which this version has not';
  const hasVersions = ips.every(({ version }) => version === "4" || version === "6");
  if (family === "0.3" && !hasVersions) return 'an address without its "version"';
  if (family === "1.0" && ips.some((ip) => "version" in ip)) return 'an address with a "version", which is no more';
  return undefined;
}

function addIn(version: string, trial: Trial): string[] {
  const one = trial.attachment(`v${version.replaceAll(".", "")}`);
  const wrong = wrongForm(version, one.add({ version }));
  one.call("DEL", { version });
  return wrong === undefined ? [] : [`asked in ${version}: ${wrong}`];
}

/** Chains came with 0.3.0. */
function versionsOf({ subject, plugin }: Trial): readonly string[] {
  return plugin.versions.filter((version) => subject.kind !== "meta" || resultFamily(version) !== "0.1");
}

function wrongFields(result: Result, kind: string): string[] {
  const interfaces = listIn(result, "interfaces"), ips = listIn(result, "ips");
  const isWrong = (value: unknown, parse: (text: string) => unknown) =>
    value !== undefined && (typeof value !== "string" || parse(value) === undefined);
  const isNoIndex = (index: unknown) =>
    index !== undefined &&
    !(Number.isInteger(index) && (index as number) >= 0 && (index as number) < interfaces.length);
  return [
    ...interfaces.filter(({ name }) => typeof name !== "string" || name === "").map((one) =>
      `no name: ${shown(one)}`
    ),
    ...ips.filter(({ address }) => address === undefined || isWrong(address, parsePrefix)).map((ip) =>
      `no address with its prefix: ${shown(ip)}`
    ),
    ...ips.filter(({ gateway }) => isWrong(gateway, parseAddress)).map((ip) => `no gateway: ${shown(ip)}`),
    ...kind === "ipam" ? [] : ips.filter((ip) => isNoIndex(ip.interface)).map((ip) => `no interface: ${shown(ip)}`),
    ...listIn(result, "routes").filter(({ dst }) => dst === undefined || isWrong(dst, parsePrefix)).map((route) =>
      `no destination: ${shown(route)}`
    ),
  ];
}

/** Most other demands build on this one. */
export const addSucceeds: SpecDemand = {
  name: "add-succeeds",
  sentence: "ADD ends with exit status 0 and prints one JSON object, its result, and nothing else",
  section: `${ADD}; Section 2, Errors`,
  strength: "must",
  since: "0.1.0",
  kinds: everyKind,
  check: (trial) => void trial.attachment("c1").add(),
};

export const adding: readonly SpecDemand[] = [
  addSucceeds,
  {
    name: "result-in-version-asked-for",
    sentence: "The result is in the version that the configuration states, for each version that VERSION lists",
    section: `${RESULT}; earlier versions of the specification`,
    strength: "must",
    since: "0.1.0",
    kinds: everyKind,
    check(trial) {
      const wrong = versionsOf(trial).flatMap((version) => addIn(version, trial));
      if (wrong.length > 0) throw new UnmetDemand(wrong.join("; "));
    },
  },
  {
    name: "result-fields",
    sentence: "Interfaces have names, addresses a prefix, routes a destination; the index of an interface, and a " +
      "gateway, may be missing, but not be wrong",
    section: RESULT,
    strength: "must",
    since: "1.0.0",
    kinds: everyKind,
    check(trial) {
      const wrong = wrongFields(trial.attachment("c1").add(), trial.subject.kind);
      if (wrong.length > 0) throw new UnmetDemand(`the result has ${wrong.join("; ")}`);
    },
  },
  {
    ...ofMain,
    name: "result-names-interface",
    sentence: "The result lists the interface CNI_IFNAME with the path of its namespace as sandbox",
    section: RESULT,
    check(trial) {
      const one = trial.attachment("c1");
      entryOf(one, one.add());
    },
  },
  {
    name: "ipam-result-without-interfaces",
    sentence: "The result of an IPAM plugin has addresses and no interfaces, and its addresses name none",
    section: "Section 4; Section 5, Delegated plugins (IPAM)",
    strength: "must",
    since: "0.3.0",
    kinds: ["ipam"],
    check(trial) {
      const result = trial.attachment("c1").add();
      const isNamed = listIn(result, "ips").some((ip) => "interface" in ip);
      if ("interfaces" in result || isNamed) throw new UnmetDemand(`the result is ${shown(result)}`);
      if (listIn(result, "ips").length === 0) throw new UnmetDemand(`the result has no address: ${shown(result)}`);
    },
  },
  {
    ...ofMain,
    name: "add-makes-interface",
    sentence: "ADD makes the interface CNI_IFNAME in the namespace CNI_NETNS, with the MAC address of the result",
    check(trial) {
      const one = trial.attachment("c1"), entry = entryOf(one, one.add());
      const link = trial.host.linkIn(one.container, one.ifName);
      if (link === undefined) throw new UnmetDemand(`${one.ifName} is not in the namespace after ADD`);
      if (entry.mac !== undefined && entry.mac !== "" && entry.mac !== link.mac) {
        throw new UnmetDemand(`${one.ifName} has MAC address ${link.mac}, and the result says ${shown(entry.mac)}`);
      }
    },
  },
  {
    ...ofMain,
    name: "add-sets-addresses",
    sentence: "The addresses that the result gives to the container's interface are in its namespace",
    section: "Section 4",
    strength: "implied",
    check(trial) {
      const one = trial.attachment("c1"), interfaces = (result: Result) => listIn(result, "interfaces");
      const result = one.add(), index = interfaces(result).indexOf(entryOf(one, result));
      const wanted = listIn(result, "ips").filter((ip) => ip.interface === index).map(({ address }) =>
        String(address)
      );
      const held = trial.host.inside(one.container, (routes) => listAddresses(routes, 0).map(formatPrefix));
      const missing = wanted.filter((address) => !held.includes(address));
      if (missing.length > 0) {
        throw new UnmetDemand(`${missing.join(", ")} missing; there are ${held.join(", ") || "none"}`);
      }
    },
  },
  {
    ...ofMain,
    name: "add-refuses-existing-interface",
    sentence: "ADD of an interface that the namespace has already is an error",
    strength: "must",
    since: "0.1.0",
    unless: ({ subject }) => subject.ifName === "lo" ? "every namespace has lo" : undefined,
    check(trial) {
      const one = trial.attachment("c1");
      trial.host.attach(one.container, one.ifName, "10.98.0.2/24");
      const answer = one.call("ADD");
      requireError(answer);
      if (trial.host.linkIn(one.container, one.ifName)?.kind !== "veth") {
        throw new UnmetDemand(`the interface that was there is gone after the ADD that failed: ${told(answer)}`);
      }
    },
  },
  {
    name: "prevresult-passed-through",
    sentence: "A plugin that is given prevResult hands its interfaces and addresses on",
    section: `${ADD}; ${RESULT}`,
    strength: "must",
    since: "0.3.0",
    kinds: ["meta"],
    check(trial) {
      const one = trial.attachment("c1"), before = one.prevResult!, after = one.add();
      const names = listIn(after, "interfaces").map(({ name }) => name);
      const addresses = listIn(after, "ips").map(({ address }) => address);
      const lost = [
        ...listIn(before, "interfaces").filter(({ name }) => !names.includes(name)),
        ...listIn(before, "ips").filter(({ address }) => !addresses.includes(address)),
      ];
      if (lost.length > 0) throw new UnmetDemand(`the result lacks ${shown(lost)} of prevResult: ${shown(after)}`);
    },
  },
];
