/** What each of netavark's drivers is to `setup` and `teardown`. */
import type { Daemon } from "../../daemon/daemon.ts";
import type { CheckedCall } from "../../documents/container-call.ts";
import type { NamedAttachment, PodmanNetwork as Network } from "../../documents/netavark.schema.ts";
import type { Session } from "../../engine/session.ts";
import type { NamesInNetwork } from "../../resources/netavark/aardvark-names/spec.ts";
import type { StatusBlock } from "../wire/answer.ts";

/** One network that the container is to be attached to. */
export interface Wanted {
  network: Network;
  attachment: NamedAttachment;
  call: CheckedCall;
  /** For `teardown`. */
  isLeaving: boolean;
}

export type FirewallDriver = "nftables" | "firewalld" | "none";

/** What of the call's surroundings the drivers depend on. */
export interface DriverContext {
  /** What rules are written to. */
  firewall: FirewallDriver;
  dnsPort: number;
  /** Of bridges whose network does not say it: podman before 6 expects none. */
  isolatesByDefault: boolean;
  pluginDirectories: readonly string[];
  /** That of --config. */
  configDirectory: string;
  /** Where the state of the firewall is kept; undefined when it is not. */
  stateDirectory: string | undefined;
  /** Whether systemd may set sysctls of new links. */
  hasSystemd: boolean;
  /** What the container's names would be written to. */
  daemon: Daemon;
}

/** The network's driver, with what the network says checked. */
export interface Driver {
  /** Makes all or nothing. */
  setUp(session: Session, netnsPath: string): StatusBlock;
  /** Removes what is there; the namespace may be gone. */
  tearDown(session: Session, netnsPath: string): void;
  /** What aardvark-dns is told; undefined for a network without names. */
  names?: NamesInNetwork | undefined;
}
