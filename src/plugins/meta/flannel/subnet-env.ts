/** The file in which flanneld describes this node's subnets: lines of KEY=VALUE (flannel's pkg/subnet/subnet.go). */
import { CniError, DECODING_FAILURE, TRY_AGAIN_LATER } from "../../../cni/error.ts";
import { readConfiguredFile } from "../../../ffi/files.ts";
import { formatAddress, networkOf, parsePrefix } from "../../../net/address.ts";

export interface SubnetEnv {
  /** The cluster's networks, IPv4 first. */
  networks: string[];
  /** This node's subnets, in the same order. */
  subnets: string[];
  mtu: number;
  /** flanneld masquerades the containers' addresses itself. */
  ipMasq: boolean;
}

export function readSubnetEnv(path: string): SubnetEnv {
  const text = readConfiguredFile(path);
  if (text === undefined) throw failure(TRY_AGAIN_LATER, `open ${path}: no such file or directory`);
  const values: Record<string, string> = {};
  for (const line of text.split("\n")) {
    if (!line.startsWith("FLANNEL_")) continue;
    const equals = line.indexOf("=");
    if (equals < 0) throw failure(DECODING_FAILURE, `${path}: "${line}" has no value`);
    values[line.slice(0, equals)] = line.slice(equals + 1).trim();
  }
  const networksOf = (key: string) => {
    const networks: string[] = [];
    for (const prefix of (values[key] ?? "").split(",")) {
      const network = prefix === "" ? "" : networkText(prefix, `${path}: ${key}`);
      if (network !== "" && !networks.includes(network)) networks.push(network);
    }
    return networks;
  };
  const networks = [...networksOf("FLANNEL_NETWORK"), ...networksOf("FLANNEL_IPV6_NETWORK")];
  const subnets = [...networksOf("FLANNEL_SUBNET"), ...networksOf("FLANNEL_IPV6_SUBNET")];
  const missing: string[] = [];
  if (networks.length === 0) missing.push("FLANNEL_NETWORK", "FLANNEL_IPV6_NETWORK");
  if (subnets.length === 0) missing.push("FLANNEL_SUBNET", "FLANNEL_IPV6_SUBNET");
  for (const key of ["FLANNEL_MTU", "FLANNEL_IPMASQ"]) if (values[key] === undefined) missing.push(key);
  if (missing.length > 0) throw failure(DECODING_FAILURE, `${path} is missing ${missing.join(", ")}`);
  const mtu = values.FLANNEL_MTU === "" ? NaN : Number(values.FLANNEL_MTU);
  if (!Number.isInteger(mtu) || mtu < 0) {
    throw failure(DECODING_FAILURE, `${path}: FLANNEL_MTU "${values.FLANNEL_MTU}" is not an MTU`);
  }
  return { networks, subnets, mtu, ipMasq: values.FLANNEL_IPMASQ === "true" };
}

/** Clears the host bits, because flanneld writes the node's own address in its subnet. */
function networkText(text: string, where: string): string {
  const prefix = parsePrefix(text);
  if (prefix === undefined) throw failure(DECODING_FAILURE, `${where}: invalid CIDR address: ${text}`);
  return `${formatAddress(networkOf(prefix))}/${prefix.bits}`;
}

function failure(code: number, reason: string): CniError {
  return new CniError(
    code,
    `failed to load flannel 'subnet.env' file: ${reason}. Check the flannel pod log for this node.`,
  );
}
