/** A network of a driver of our own: an attachment with a ledger, as by a CNI plugin. */
import type { Verb as Command } from "../../cni/invocation.ts";
import { asWritten } from "../../cni/json.ts";
import type { Result } from "../../cni/result.ts";
import type { PluginConfig, PluginDefinition } from "../../contract/plugin.ts";
import { readLedger } from "../../engine/ledger/ledger.ts";
import type { Session } from "../../engine/session.ts";
import { linkIndex } from "../../ffi/netlink/route/link.ts";
import type { StatusBlock } from "../wire/answer.ts";
import type { Driver, Wanted } from "./driver.ts";

/** What a driver makes of podman's documents. */
export interface Story<Conf extends PluginConfig> {
  plugin: PluginDefinition<Conf>;
  conf: Conf;
  /** `mac`: of the container's link. `result`: what the driver has answered. */
  status(mac: string, result: Result): StatusBlock;
}

export function told<Conf extends PluginConfig>(
  wanted: Wanted,
  { plugin, conf, status }: Story<Conf>,
): Pick<Driver, "setUp" | "tearDown"> {
  const { call, attachment: { interface_name: ifName } } = wanted;
  const invocation = (command: Command, netnsPath: string) => ({
    command,
    containerId: call.container_id,
    netnsPath,
    ifName,
    cniArgs: "",
    path: "",
    ...asWritten({ ...conf } as Record<string, unknown>),
  });
  const anyPlugin = plugin as unknown as PluginDefinition<PluginConfig>;
  return {
    setUp(session, netnsPath) {
      const result = session.runVerb(anyPlugin, invocation("ADD", netnsPath))!;
      return status(result.interfaces?.find(({ name, sandbox }) => name === ifName && sandbox)?.mac ?? "", result);
    },
    tearDown(session, netnsPath) {
      const ofDel = invocation("DEL", netnsPath), isMissing = hasLostLink(session, wanted, plugin.name, ofDel);
      session.runVerb(anyPlugin, ofDel);
      if (isMissing) throw missingLink(wanted);
    },
  };
}

/** Whether ADD made a link that is not in the container any more: another program has taken it away. */
function hasLostLink(
  session: Session,
  { call, network }: Wanted,
  plugin: string,
  invocation: Parameters<Session["withHost"]>[0],
): boolean {
  const { ifName } = invocation, owner = { network: network.name, containerId: call.container_id, ifName };
  const isMade = readLedger(owner, plugin)?.adds.at(-1)?.answer !== undefined;
  if (!isMade) return false;
  return session.withHost(
    invocation,
    true,
    ({ container }) => container !== undefined && linkIndex(container.route, ifName) === undefined,
  );
}

/** Everything else is removed all the same. */
function missingLink({ attachment, network }: Wanted): Error {
  const kind = network.driver === "bridge" ? "container veth" : `container ${network.driver}`;
  return new Error(
    `failed to delete ${kind} ${attachment.interface_name}: Netlink error: No such device (os error 19)`,
  );
}
