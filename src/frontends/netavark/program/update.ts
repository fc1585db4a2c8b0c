/** `netavark update`: the DNS servers that aardvark-dns asks for a network. */
import { exists } from "../../../ffi/files.ts";
import { setServers } from "../../../resources/netavark/aardvark-names/names.ts";
import { namesDirectory } from "../../../resources/netavark/shared/config-directory.ts";
import { within } from "../../../resources/netavark/shared/failure.ts";
import { checkedAddresses } from "../../../interop/podman-documents/network.ts";
import type { NetavarkCall } from "./call.ts";

const SERVERS = "network-dns-servers";

/** Does nothing without aardvark-dns, or without a container in the network: podman keeps the servers in its own file. */
export function update({ options, operand: network, values }: NetavarkCall): undefined {
  const { configDirectory, aardvarkBinary, dnsPort, isRootless } = options;
  if (!exists(aardvarkBinary)) return;
  within("unable to modify network dns servers", () => {
    const given = values(SERVERS).join().split(",").filter((text) => text !== "");
    const servers = checkedAddresses(given, SERVERS);
    const directory = namesDirectory(configDirectory);
    setServers({ directory, binary: aardvarkBinary, port: dnsPort, isRootless }, network, servers);
  });
}
