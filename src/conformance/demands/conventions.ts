/** The conventions of CNI, and keys that a plugin does not know. */
import { told } from "../answer.ts";
import type { SpecDemand } from "../demand.ts";
import { isLimit, limitTo, linesOnHost, more, packetRules, requireNothingLeftOnHost } from "../leftovers.ts";
import { everyKind } from "../subjects.ts";
import { listIn, type Trial } from "../trial.ts";
import { UnmetDemand } from "../unmet-demand.ts";
import { callsAfterAdd, isSuccessful } from "./collecting.ts";

const CONVENTIONS = "the conventions of CNI";
const NOT_THERE = "the plugin does not have the capability";
const withoutIps = ({ subject }: Trial) => subject.ip === undefined ? NOT_THERE : undefined;
const args = { section: CONVENTIONS, strength: "should", since: "0.2.0", kinds: everyKind } as const;
const capability = {
  section: `Section 3, Deriving runtimeConfig; ${CONVENTIONS}`,
  strength: "should",
  kinds: everyKind,
} as const;

export const conventions: readonly SpecDemand[] = [
  {
    ...args,
    name: "args-ignored",
    sentence: 'Data below "args" that the plugin does not understand is ignored',
    check: (trial) => void trial.attachment("c1").add({ conf: { args: { labels: [{ key: "app", value: "db" }] } } }),
  },
  {
    name: "cni-args-ignored",
    sentence: "With IgnoreUnknown=1 among CNI_ARGS, keys that the plugin does not know are ignored",
    section: `kubelets, by containerd and CRI-O; ${CONVENTIONS}`,
    strength: "engines",
    since: "0.1.0",
    kinds: everyKind,
    check: (trial) =>
      void trial.attachment("c1").add({
        env: { CNI_ARGS: "IgnoreUnknown=1;K8S_POD_NAMESPACE=default;K8S_POD_NAME=db-0" },
      }),
  },
  {
    name: "runtime-config-ignored",
    sentence: "A capability that the plugin does not have is no error, when a runtime sends it anyway",
    section: "containerd and CRI-O, which send what the configuration declares",
    strength: "engines",
    since: "0.3.0",
    kinds: everyKind,
    check: (trial) =>
      void trial.attachment("c1").add({ conf: { runtimeConfig: { "com.example.unknown": { key: "value" } } } }),
  },
  {
    ...args,
    name: "args-ips",
    sentence: 'The result has the addresses of "args", below "cni" and "ips"',
    unless: withoutIps,
    check: (trial) => requireIp(trial, { args: { cni: { ips: [trial.subject.ip] } } }),
  },
  {
    name: "long-container-id",
    sentence: "Every verb that works with a short container ID works with one of 64 digits",
    section: "every engine",
    strength: "engines",
    since: "0.1.0",
    kinds: everyKind,
    check(trial) {
      const ofShort = callsAfterAdd(trial.attachment("c1"));
      const ofLong = callsAfterAdd(trial.attachment("c2", "0123456789abcdef".repeat(4)));
      const refused = ofLong.find((ended, index) => !isSuccessful(ended) && isSuccessful(ofShort[index]!));
      if (refused !== undefined) throw refused instanceof UnmetDemand ? refused : new UnmetDemand(told(refused));
    },
  },
  {
    ...capability,
    name: "capability-mac",
    sentence: "The interface gets the MAC address of runtimeConfig.mac",
    since: "0.4.0",
    unless: ({ subject }) => subject.mac === undefined ? NOT_THERE : undefined,
    check(trial) {
      const one = trial.attachment("c1"), { mac } = trial.subject;
      one.add({ conf: { capabilities: { mac: true }, runtimeConfig: { mac } } });
      const link = trial.host.linkIn(one.container, one.ifName);
      if (link?.mac !== mac) throw new UnmetDemand(`${mac} was asked for, and ${one.ifName} has ${link?.mac}`);
    },
  },
  {
    ...capability,
    name: "capability-ips",
    sentence: "The result has the addresses of runtimeConfig.ips",
    since: "0.4.0",
    unless: withoutIps,
    check: (trial) => requireIp(trial, { capabilities: { ips: true }, runtimeConfig: { ips: [trial.subject.ip] } }),
  },
  {
    ...capability,
    name: "capability-port-mappings",
    sentence: "ADD makes packet rules for the ports of runtimeConfig.portMappings, and DEL removes them",
    since: "0.3.0",
    unless: ({ subject }) => subject.portMappings === undefined ? NOT_THERE : undefined,
    check: (trial) =>
      requireMadeAndRemoved(trial, { runtimeConfig: { portMappings: trial.subject.portMappings } }, (made) => {
        if (!packetRules().some((rule) => made.includes(rule))) {
          throw new UnmetDemand("no packet rule is new after ADD");
        }
      }),
  },
  {
    ...capability,
    name: "capability-bandwidth",
    sentence:
      "ADD sets the rates of runtimeConfig.bandwidth, of what comes in and what goes out, and DEL removes them",
    since: "0.4.0",
    unless: ({ subject }) => subject.bandwidth === undefined ? NOT_THERE : undefined,
    check(trial) {
      const { conf, bandwidth } = trial.subject, without = Object.keys(conf).map((key) => [key, undefined]);
      const { ingressRate, egressRate } = bandwidth!;
      requireMadeAndRemoved(trial, { ...Object.fromEntries(without), runtimeConfig: { bandwidth } }, (made) => {
        const limits = made.filter(isLimit);
        const missing = [ingressRate, egressRate].map(limitTo)
          .filter((wanted) => !limits.some((line) => line.startsWith(`${wanted} on `)));
        if (missing.length > 0) {
          throw new UnmetDemand(`no ${missing.join(" and no ")} after ADD; seen are ${limits.join(", ") || "none"}`);
        }
      });
    },
  },
];

/** What ADD has made on the host is as `requireMade` wants it, and no more after DEL. */
function requireMadeAndRemoved(
  trial: Trial,
  conf: Record<string, unknown>,
  requireMade: (made: readonly string[]) => void,
): void {
  const one = trial.attachment("c1"), before = linesOnHost();
  one.add({ conf });
  requireMade(more(before, linesOnHost()));
  one.del({ conf });
  const other = trial.attachment("c2"), between = linesOnHost();
  other.add({ conf });
  other.del({ conf });
  requireNothingLeftOnHost(between);
}

function requireIp(trial: Trial, conf: Record<string, unknown>): void {
  const { ip } = trial.subject, result = trial.attachment("c1").add({ conf });
  const given = listIn(result, "ips").map(({ address }) => address);
  if (!given.includes(ip)) throw new UnmetDemand(`${ip} was asked for, and the result has ${JSON.stringify(given)}`);
}
