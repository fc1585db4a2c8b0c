/** What a container's names in aardvark-dns are, as plain data: enough to write them and to remove them. */

/** A network's part of a container's names. */
export interface NamesInNetwork {
  name: string;
  isInternal: boolean;
  /** Addresses of the bridge: there aardvark-dns listens. */
  gateways: readonly string[];
  /** Who is asked for names outside, from this network. */
  servers: readonly string[];
  addresses4: readonly string[];
  addresses6: readonly string[];
  names: readonly string[];
}

/** The aardvark-dns of one directory. */
export interface Daemon {
  /** Its files are here, `aardvark.lock` is beside it. */
  directory: string;
  binary: string;
  port: number;
  isRootless: boolean;
}

export interface NamesSpec extends Daemon {
  containerId: string;
  /** Who is asked for names outside, from this container. */
  servers: readonly string[];
  networks: readonly NamesInNetwork[];
}
