/** A network's driver, as `setup` and `teardown` see it. */
import type {
  NamedAttachment,
  NetavarkConf,
  PodmanNetwork,
} from "../../../interop/podman-documents/netavark.schema.ts";
import type { CheckedCall } from "../../../interop/podman-documents/container-call.ts";
import type { StatusBlock } from "../../../interop/podman-documents/status-block.ts";
import type { Session } from "../../../engine/session.ts";
import type { PluginToCall } from "../../../process/calls.ts";
import type { NamesInNetwork } from "../../../resources/netavark/aardvark-names/spec.ts";

/** One network that the container is to be attached to, or detached from. */
export interface ContainerNetwork {
  network: PodmanNetwork;
  attachment: NamedAttachment;
  call: CheckedCall;
}

/** What the command line and the environment say. */
export interface NetavarkSettings
  extends Pick<NetavarkConf, "configDirectory" | "isRootless" | "firewall" | "dnsPort" | "isolatesByDefault"> {
  /** There may be no such file. */
  aardvarkBinary: string;
  pluginDirectories: readonly string[];
}

export interface Driver {
  /** Makes all or nothing. */
  setUp(session: Session, netnsPath: string): StatusBlock;
  /** Records that another container may have the ports from now on: `tearDown` may be killed, and is not called again. */
  yieldPorts?(): void;
  /** Removes what is there; the namespace may be gone. */
  tearDown(session: Session, netnsPath: string): void;
  /** The names for aardvark-dns; undefined for a network without names. */
  names?: NamesInNetwork | undefined;
  /** The plugin that does the work, with its configuration; undefined for another program. */
  plugin?: PluginToCall;
}
