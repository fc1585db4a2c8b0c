/** A host for one demand: a network namespace of its own, containers with paths in it, and the links that plugins need. */
import { ESRCH, isErrno, SyscallError } from "../ffi/errno.ts";
import { closeFile, createFile, makeDirectories, O_WRONLY, removeFile, replaceFile } from "../ffi/files.ts";
import { lastErrno } from "../ffi/libc.ts";
import { mountAgain, unmount } from "../ffi/namespaces.ts";
import { addAddress, delAddress, listAddresses } from "../ffi/netlink/route/address.ts";
import { vethKind } from "../ffi/netlink/route/link-kinds.ts";
import { addLink, delLink, getLink, type Link, setLink } from "../ffi/netlink/route/link.ts";
import { bringUpLoopback } from "../ffi/netlink/route/loopback.ts";
import { NETLINK_ROUTE, type NetlinkSocket, withNetlink } from "../ffi/netlink/socket.ts";
import { ENTERING, inNetns, isEntered, makeNetns, openOwnNetns } from "../ffi/netns.ts";
import { sendSignal, SIGKILL } from "../ffi/signals.ts";
import { forgetEnded } from "../ffi/spawn.ts";
import { parsePrefix } from "../net/address.ts";
import { NETNS_DIRECTORY } from "./run-directories.ts";
import { UnmetDemand } from "./unmet-demand.ts";

export interface TrialContainer {
  name: string;
  path: string;
  netns: number;
}

export class TrialHost {
  private readonly home = openOwnNetns();
  private readonly netns = makeNetns();
  private readonly containers: TrialContainer[] = [];
  /** Commands of a shell that make the same by hand, after those that make its files. */
  readonly byHand: string[];

  /** The thread is in the host's namespace until `end`. */
  constructor(filesByHand: readonly string[]) {
    if (!isEntered(this.netns)) throw new SyscallError(ENTERING, lastErrno(), "a host's network namespace");
    withRoutes(bringUpLoopback);
    this.byHand = [...filesByHand, "ip link set lo up"];
  }

  end(): void {
    isEntered(this.home);
    for (const { netns } of this.containers) closeFile(netns);
    closeFile(this.netns);
    closeFile(this.home);
    endStartedProcesses();
  }

  container(name: string): TrialContainer {
    const container = { name, path: `${NETNS_DIRECTORY}/${name}`, netns: makeNetns() };
    closeFile(createFile(container.path, O_WRONLY));
    mountAgain(`/proc/self/fd/${container.netns}`, container.path);
    this.containers.push(container);
    this.byHand.push(`ip netns add ${name}`);
    return container;
  }

  /** `staysAsFile`: as after a reboot, when nothing has removed the place where it was mounted. */
  removeContainer(container: TrialContainer, { staysAsFile = false } = {}): void {
    unmount(container.path);
    if (!staysAsFile) removeFile(container.path);
    closeFile(container.netns);
    this.containers.splice(this.containers.indexOf(container), 1);
    this.byHand.push(staysAsFile ? `umount ${container.path}` : `ip netns del ${container.name}`);
  }

  inside<T>(container: TrialContainer, work: (routes: NetlinkSocket) => T): T {
    return inNetns(container.netns, this.netns, () => withRoutes(work));
  }

  /** A link whose other end is in a namespace of its own, as a network card has a cable. */
  card(name: string): void {
    const far = this.container(`far-${name}`);
    addPair(name, "far0", far);
    this.inside(far, (routes) => setLink(routes, getLink(routes, "far0")!, { up: true }));
    this.byHand.push(
      `ip link add ${name} up type veth peer name far0 netns ${far.name}`,
      `ip -n ${far.name} link set far0 up`,
    );
  }

  /** Makes what an earlier plugin of a chain would have made, for plugins that only change something. */
  attach(container: TrialContainer, ifName: string, address: string): { host: Link; inside: Link } {
    const hostName = `h-${container.name}`, prefix = parsePrefix(address)!;
    addPair(hostName, ifName, container);
    const inside = this.inside(container, (routes) => {
      const link = getLink(routes, ifName)!;
      addAddress(routes, link.index, prefix);
      setLink(routes, link, { up: true });
      return getLink(routes, ifName)!;
    });
    this.byHand.push(
      `ip link add ${hostName} up type veth peer name ${ifName} netns ${container.name}`,
      `ip -n ${container.name} addr add ${address} dev ${ifName}; ip -n ${container.name} link set ${ifName} up`,
    );
    return { host: withRoutes((routes) => getLink(routes, hostName)!), inside };
  }

  removeLink(container: TrialContainer, ifName: string): void {
    this.inside(container, (routes) => {
      linkThatIsThere(routes, ifName);
      delLink(routes, ifName);
    });
    this.byHand.push(`ip -n ${container.name} link del ${ifName}`);
  }

  removeAddresses(container: TrialContainer, ifName: string): void {
    this.inside(container, (routes) => {
      const link = linkThatIsThere(routes, ifName);
      for (const address of listAddresses(routes, link.index)) delAddress(routes, link.index, address);
    });
    this.byHand.push(`ip -n ${container.name} addr flush dev ${ifName}`);
  }

  linkIn(container: TrialContainer, ifName: string): Link | undefined {
    return this.inside(container, (routes) => getLink(routes, ifName));
  }

  write(path: string, text: string): void {
    makeDirectories(path.slice(0, path.lastIndexOf("/")), 0o755);
    replaceFile(path, text, { mode: 0o644 });
    this.byHand.push(`mkdir -p $(dirname ${path}); printf '${text.replaceAll("\n", "\\n")}' > ${path}`);
  }
}

/** This is process 1 of its namespace, so all other processes in it are what plugins have started. */
function endStartedProcesses(): void {
  try {
    sendSignal(-1, SIGKILL);
  } catch (error) {
    if (!isErrno(error, ESRCH)) throw error;
  }
  forgetEnded();
}

/** The first link is here, the other one in the container. */
function addPair(ifName: string, inside: string, { netns }: TrialContainer): void {
  const kind = vethKind({ peer: { ifName: inside, netnsFd: netns } });
  withRoutes((routes) => addLink(routes, { ifName, kind, up: true }));
}

/** After an ADD that has answered with success. */
function linkThatIsThere(routes: NetlinkSocket, ifName: string): Link {
  const link = getLink(routes, ifName);
  if (link === undefined) throw new UnmetDemand(`ADD succeeded, and the container has no interface ${ifName}`);
  return link;
}

function withRoutes<T>(work: (routes: NetlinkSocket) => T): T {
  return withNetlink(NETLINK_ROUTE, work);
}
