/** Parses ports of the host that lead to a container: `8080:80/tcp,127.0.0.1:53:53/udp,[::1]:8000-8009:80-89`. Pure. */
import { canonicalAddress } from "../../net/address.ts";
import { refusal, type Setting } from "./settings.ts";

/** An entry of the capability portMappings. */
export interface RequestedPort {
  hostPort: number;
  containerPort: number;
  protocol: string;
  hostIP?: string;
}

const PROTOCOLS = ["tcp", "udp", "sctp"];
/** Each port takes rules of its own. */
const MOST = 4096;

const FORM = "ports have the form [HOSTIP:]HOSTPORT[-LAST]:PORT[-LAST][/tcp|udp|sctp], joined by commas";

export function parsePorts(setting: Setting): RequestedPort[] {
  const mappings: RequestedPort[] = [];
  for (const item of setting.text.split(",")) {
    for (const mapping of parseItem(setting, item.trim())) {
      if (mappings.push(mapping) > MOST) throw refusal(setting, item, `there are more than ${MOST} ports`);
    }
  }
  return mappings;
}

function parseItem(setting: Setting, item: string): RequestedPort[] {
  const found = /^(?:(\[[^\]]*\]|[^:[\]]+):)?([0-9-]+):([0-9-]+)(?:\/([a-z]+))?$/.exec(item);
  if (found === null) throw refusal(setting, item, FORM);
  const [, address, onHost, inContainer, protocol = "tcp"] = found;
  if (!PROTOCOLS.includes(protocol)) throw refusal(setting, item, `protocols are ${PROTOCOLS.join(", ")}`);
  const isBracketed = address?.startsWith("[") === true;
  const hostIP = address === undefined ? undefined : canonicalAddress(isBracketed ? address.slice(1, -1) : address);
  if (address !== undefined && (hostIP === undefined || hostIP.includes(":") !== isBracketed)) {
    throw refusal(setting, item, "HOSTIP is an IPv4 address, or an IPv6 address in brackets");
  }
  const host = parseRange(onHost!), container = parseRange(inContainer!);
  if (host === undefined || container === undefined) {
    throw refusal(setting, item, "ports are numbers from 1 to 65535, and a range ends at a higher one");
  }
  if (host.count !== container.count) throw refusal(setting, item, "both ranges must have as many ports");
  return Array.from({ length: host.count }, (_, index) => ({
    hostPort: host.first + index,
    containerPort: container.first + index,
    protocol,
    ...hostIP !== undefined && { hostIP },
  }));
}

function parseRange(text: string): { first: number; count: number } | undefined {
  const [, first, last = first] = /^([0-9]{1,5})(?:-([0-9]{1,5}))?$/.exec(text) ?? [];
  if (first === undefined || Number(first) < 1 || Number(last) > 65535 || Number(last) < Number(first)) {
    return undefined;
  }
  return { first: Number(first), count: Number(last) - Number(first) + 1 };
}
