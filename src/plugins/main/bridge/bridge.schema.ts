/** The configuration of the bridge plugin. */
import { z } from "zod";
import {
  argsOf,
  capability,
  commonKeys,
  ipMasqBackend,
  linkMtu,
  macAddress,
  runtimeConfigOf,
} from "../../../cni/config.schema.ts";

type Issue = { input?: unknown };
const vlanError = (issue: Issue) => `invalid VLAN ID ${issue.input} (must be between 0 and 4094)`;
const trunkId = (key: string, meaning: string) => {
  const error = `incorrect trunk ${key} parameter`;
  return z.int().min(1, error).max(4094, error).optional().describe(meaning);
};

export type BridgeConf = z.infer<typeof bridgeConf>;

export const bridgeConf = z.object({
  ...commonKeys,
  bridge: z.string().default("cni0").meta({
    maxLength: 15,
    pattern: "^[^/:%\\s]*$",
    description: "The name of the bridge, which is made if missing.",
  }),
  isGateway: z.boolean().default(false).describe("Give the bridge the gateway's address and enable forwarding."),
  isDefaultGateway: z.boolean().default(false).describe("Like isGateway, and make it the container's default route."),
  forceAddress: z.boolean().default(false).describe("Replace a different address on the bridge instead of failing."),
  ipMasq: z.boolean().default(false).describe("Hide the container's addresses behind the host's."),
  ipMasqBackend,
  mtu: linkMtu.describe(
    "The MTU of a new bridge and of both ends of the pair; 0 keeps the kernel's.",
  ),
  hairpinMode: z.boolean().default(false).describe("Let the container reach itself through the bridge."),
  promiscMode: z.boolean().default(false).describe("Put the bridge into promiscuous mode."),
  vlan: z.int().min(0, { error: vlanError }).max(4094, { error: vlanError }).default(0).describe(
    "The container's VLAN, untagged; 0 for none.",
  ),
  vlanTrunk: z.array(
    z.object({
      minID: trunkId("minID", "The first VLAN of a range."),
      maxID: trunkId("maxID", "The last VLAN of a range."),
      id: trunkId("id", "A single VLAN."),
    }),
  ).optional().describe("VLANs that the container sees tagged: ranges, or single ones by id."),
  preserveDefaultVlan: z.boolean().default(false).describe(
    "Keep the VLANs that a port of the bridge has by default.",
  ),
  macspoofchk: z.boolean().default(false).describe("Drop frames whose source address is not the container's."),
  enabledad: z.boolean().default(false).describe("Wait for duplicate address detection of IPv6 addresses."),
  disableContainerInterface: z.boolean().default(false).describe("Leave the container's end down."),
  portIsolation: z.boolean().default(false).describe("Keep the container from other isolated ports of the bridge."),
  runtimeConfig: runtimeConfigOf({ mac: capability.mac.optional() }),
  args: argsOf(
    z.object({ mac: macAddress.optional().describe("The hardware address of the container's interface.") }),
  ),
}).meta({ title: "CNI bridge plugin configuration", required: ["cniVersion", "name", "type"] });
