/** `netavark update`: whom containers of a network ask for names outside of it. */
import { checkedAddresses } from "../../documents/network.ts";
import { exists } from "../../ffi/files.ts";
import { setServers } from "../../resources/netavark/aardvark-names/names.ts";
import { within } from "../../resources/netavark/shared/failure.ts";
import type { Call } from "./call.ts";

/** Does nothing without aardvark-dns, or without a container in the network: podman keeps the servers in its own file. */
export function update({ surroundings, operand: network, values }: Call): undefined {
  const { configDirectory, aardvarkBinary, dnsPort, isRootless } = surroundings;
  if (!exists(aardvarkBinary)) return;
  within("unable to modify network dns servers", () => {
    const servers = checkedAddresses(values.join().split(",").filter((text) => text !== ""), "network-dns-servers");
    const directory = `${configDirectory}/aardvark-dns`;
    setServers({ directory, binary: aardvarkBinary, port: dnsPort, isRootless }, network, servers);
  });
}
