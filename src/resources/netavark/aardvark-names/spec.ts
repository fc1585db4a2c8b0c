/** The specification of a container's names in aardvark-dns. */

/** A network's part of a container's names. */
export interface NamesInNetwork {
  name: string;
  isInternal: boolean;
  /** The addresses of the bridge, where aardvark-dns listens. */
  gateways: readonly string[];
  /** The servers for names outside, for this network. */
  servers: readonly string[];
  addresses4: readonly string[];
  addresses6: readonly string[];
  names: readonly string[];
}

/** The aardvark-dns of one directory. */
export interface AardvarkDaemon {
  /** The directory of its files; `aardvark.lock` is beside it. */
  directory: string;
  binary: string;
  port: number;
  isRootless: boolean;
}

export interface NamesSpec extends AardvarkDaemon {
  containerId: string;
  /** The servers for names outside, for this container. */
  servers: readonly string[];
  networks: readonly NamesInNetwork[];
}
