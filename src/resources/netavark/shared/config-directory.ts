/** What netavark has in the directory of --config. */

/** Files for aardvark-dns, one a network. */
export function namesDirectory(configDirectory: string): string {
  return `${configDirectory}/aardvark-dns`;
}

/** The state of the firewall. */
export function firewallDirectory(configDirectory: string): string {
  return `${configDirectory}/firewall`;
}

/** In the directory of the firewall's state: folders with a file a network and a file a container, and the driver's name. */
export function firewallFiles(directory: string): { networks: string; containers: string; driver: string } {
  return {
    networks: `${directory}/networks`,
    containers: `${directory}/ports`,
    driver: `${directory}/firewall-driver`,
  };
}
