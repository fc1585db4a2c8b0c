/** The conventions of CNI, and keys that a plugin does not know. */
import type { SpecDemand } from "../demand.ts";
import { more, onHost, requireNothingLeft } from "../leftovers.ts";
import { everyKind } from "../subjects.ts";
import { listIn, type Trial } from "../trial.ts";
import { Unmet } from "../unmet.ts";

const CONVENTIONS = "the conventions of CNI";
const NOT_THERE = "the plugin does not have the capability";
const withoutIps = ({ subject }: Trial) => subject.ip === undefined ? NOT_THERE : undefined;
const capability = {
  section: `Section 3, Deriving runtimeConfig; ${CONVENTIONS}`,
  strength: "should",
  kinds: everyKind,
} as const;

export const conventions: readonly SpecDemand[] = [
  {
    name: "args-ignored",
    sentence: 'Data below "args" that the plugin does not understand is ignored',
    section: "Section 1, args",
    strength: "should",
    since: "0.2.0",
    kinds: everyKind,
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
    section: CONVENTIONS,
    strength: "engines",
    since: "0.3.0",
    kinds: everyKind,
    check: (trial) =>
      void trial.attachment("c1").add({ conf: { runtimeConfig: { "com.example.unknown": { key: "value" } } } }),
  },
  {
    name: "args-ips",
    sentence: 'The container gets the addresses of "args", below "cni" and "ips"',
    section: CONVENTIONS,
    strength: "should",
    since: "0.2.0",
    kinds: everyKind,
    unless: withoutIps,
    check: (trial) => requireIp(trial, { args: { cni: { ips: [trial.subject.ip] } } }),
  },
  {
    name: "long-container-id",
    sentence: "A container ID of 64 digits works in every verb",
    section: "every engine",
    strength: "engines",
    since: "0.1.0",
    kinds: everyKind,
    check(trial) {
      const one = trial.attachment("c1", "0123456789abcdef".repeat(4));
      one.add();
      one.del();
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
      if (link?.mac !== mac) throw new Unmet(`${mac} was asked for, and ${one.ifName} has ${link?.mac}`);
    },
  },
  {
    ...capability,
    name: "capability-ips",
    sentence: "The container gets the addresses of runtimeConfig.ips",
    since: "0.4.0",
    unless: withoutIps,
    check: (trial) => requireIp(trial, { capabilities: { ips: true }, runtimeConfig: { ips: [trial.subject.ip] } }),
  },
  {
    ...capability,
    name: "capability-port-mappings",
    sentence: "The ports of runtimeConfig.portMappings are published, and no more after DEL",
    since: "0.3.0",
    unless: ({ subject }) => subject.portMappings === undefined ? NOT_THERE : undefined,
    check: (trial) => requireChangeOfHost(trial, { runtimeConfig: { portMappings: trial.subject.portMappings } }),
  },
  {
    ...capability,
    name: "capability-bandwidth",
    sentence: "The rates of runtimeConfig.bandwidth are set, and nothing is left of them after DEL",
    since: "0.4.0",
    unless: ({ subject }) => subject.bandwidth === undefined ? NOT_THERE : undefined,
    check(trial) {
      const { conf, bandwidth } = trial.subject, without = Object.keys(conf).map((key) => [key, undefined]);
      requireChangeOfHost(trial, { ...Object.fromEntries(without), runtimeConfig: { bandwidth } });
    },
  },
];

/** ADD makes something on the host, which is no more after DEL. */
function requireChangeOfHost(trial: Trial, conf: Record<string, unknown>): void {
  const one = trial.attachment("c1"), before = onHost(trial.host);
  one.add({ conf });
  if (more(before, onHost(trial.host)).length === 0) throw new Unmet("nothing on the host is new after ADD");
  one.del({ conf });
  const other = trial.attachment("c2"), between = onHost(trial.host);
  other.add({ conf });
  other.del({ conf });
  requireNothingLeft(between, () => onHost(trial.host), "left on the host after DEL");
}

function requireIp(trial: Trial, conf: Record<string, unknown>): void {
  const { ip } = trial.subject, result = trial.attachment("c1").add({ conf });
  const given = listIn(result, "ips").map(({ address }) => address);
  if (!given.includes(ip)) throw new Unmet(`${ip} was asked for, and the result has ${JSON.stringify(given)}`);
}
