/** The configuration of the ovs plugin: ovs-cni's, and `vxlanID`, which an example of CNI specification 0.3.1 has. */
import { z } from "zod";
import { argsOf, capability, commonKeys, linkMtu, runtimeConfigOf } from "../../../cni/config.schema.ts";

type Issue = { input?: unknown };

const HIGHEST_VLAN = 4095;
const trunkId = (key: string, meaning: string) => {
  const error = `incorrect trunk ${key} parameter`;
  return z.int().min(0, error).max(HIGHEST_VLAN, error).optional().describe(meaning);
};
const between = (key: string, low: number, high: number) => {
  const error = ({ input }: Issue) => `invalid "${key}": ${input} (must be between ${low} and ${high})`;
  return z.int().min(low, { error }).max(high, { error }).optional();
};

export type OvsConf = z.infer<typeof ovsConf>;

export const ovsConf = z.object({
  ...commonKeys,
  bridge: z.string().optional().describe(
    "The bridge of Open vSwitch, which has to exist; br-int when the container is a logical port of OVN.",
  ),
  vlan: between("vlan", 0, HIGHEST_VLAN).describe(
    "The container's VLAN, untagged. Without it and without trunk, the container sees all VLANs, tagged.",
  ),
  trunk: z.array(z.object({
    minID: trunkId("minID", "The first VLAN of a range."),
    maxID: trunkId("maxID", "The last VLAN of a range."),
    id: trunkId("id", "A single VLAN."),
  })).optional()
    .describe("VLANs that the container sees tagged: ranges, or single ones by id. Then vlan counts for nothing."),
  vxlanID: between("vxlanID", 1, 16777215).describe(
    "The virtual network that the container joins, by a tunnel port that the bridge has.",
  ),
  mtu: linkMtu.describe(
    "The MTU of both ends of the pair. 0: the kernel's, or with vxlanID what fits into the tunnel.",
  ),
  ofport_request: between("ofport_request", 0, 65279).describe(
    "The number of the port in OpenFlow; 0 leaves it to Open vSwitch.",
  ),
  interface_type: z.string().optional().describe("The type of the interface in Open vSwitch: system."),
  socket_file: z.string().optional().meta({
    description: "Where the database listens: unix:PATH or tcp:IP:PORT.",
    default: "unix:/var/run/openvswitch/db.sock",
  }),
  configuration_path: z.string().optional().describe(
    "A file with values for keys that are missing here; by default ovs.d/ovs.conf in /etc/kubernetes/cni/net.d or /etc/cni/net.d.",
  ),
  link_state_check_retries: z.int().optional().meta({
    description: "With the interval: how long ADD waits for Open vSwitch.",
    default: 5,
  }),
  link_state_check_interval: z.int().optional().meta({
    description: "The time between two looks, in milliseconds.",
    default: 600,
  }),
  deviceID: z.string().optional().meta({ description: "Not supported: hardware offload.", maxLength: 0 }),
  args: argsOf(z.record(z.string(), z.unknown()), "mac, and ovnPort: the container's logical port in OVN."),
  runtimeConfig: runtimeConfigOf({ mac: capability.mac.optional() }),
}).meta({ title: "CNI ovs plugin configuration", required: ["cniVersion", "name", "type"] });
