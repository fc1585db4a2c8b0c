/**
 * A network as an engine uses it: one configuration. ADD results are kept and passed to later calls as prevResult.
 */
import type { Container, Machine } from "./machine.ts";
import { type Answer, type Call, cni, patchbayPlugins } from "./plugins.ts";

type Conf = Record<string, unknown> & { type: string };
type Change = Partial<Pick<Call, "args" | "env" | "ifName" | "containerId">> & { conf?: Record<string, unknown> };

export interface Network {
  /** Returns the outcome, also of a call that fails. */
  call(command: string, container: Container | undefined, change?: Change): Promise<Answer>;
  /** The following throw when the plugin fails. ADD returns its result. */
  // deno-lint-ignore no-explicit-any
  add(container: Container, change?: Change): Promise<any>;
  check(container: Container, change?: Change): Promise<void>;
  /** ADD and DEL: what then is left, stays for all containers of the network. */
  once(container: Container, change?: Change): Promise<void>;
  del(container: Container, change?: Change): Promise<void>;
  /** GC that keeps the attachments of these containers' eth0. */
  gc(valid: readonly Container[]): Promise<void>;
}

export interface NetworkOptions {
  /** What differs from container to container: prevResult of a chained plugin, runtimeConfig. */
  own?: (container: Container) => Record<string, unknown>;
  /** In every call's environment. */
  env?: Record<string, string>;
}

export function network(
  machine: Machine,
  conf: Conf,
  bin = patchbayPlugins(),
  { own = () => ({}), env }: NetworkOptions = {},
): Network {
  const results = new Map<string, unknown>();
  const key = (container: Container | undefined, change: Change) => `${container?.name} ${change.ifName ?? "eth0"}`;

  const call: Network["call"] = async (command, container, change = {}) => {
    const { conf: changedConf, ...rest } = change;
    const { prevResult: before, ...ownConf } = container === undefined ? {} : own(container);
    const prevResult = command === "ADD" ? before : results.get(key(container, change));
    const whole = { cniVersion: "1.1.0", name: "net", prevResult, ...conf, ...ownConf, ...changedConf };
    const answer = await cni(machine, bin, { plugin: conf.type, command, container, conf: whole, env, ...rest });
    if (command === "ADD" && answer.code === 0) results.set(key(container, change), answer.json);
    return answer;
  };
  const must = async (command: string, container: Container | undefined, change?: Change) => {
    const answer = await call(command, container, change);
    if (answer.code !== 0) throw new Error(`${command} ${container?.name ?? ""}: ${answer.stdout}${answer.stderr}`);
    return answer;
  };
  return {
    call,
    async once(container, change) {
      await must("ADD", container, change);
      await must("DEL", container, change);
    },
    add: async (container, change) => (await must("ADD", container, change)).json,
    check: async (container, change) => void await must("CHECK", container, change),
    del: async (container, change) => void await must("DEL", container, change),
    async gc(valid) {
      const attachments = valid.map(({ name }) => ({ containerID: `ctr-${name}`, ifname: "eth0" }));
      await must("GC", undefined, { conf: { "cni.dev/valid-attachments": attachments } });
    },
  };
}
