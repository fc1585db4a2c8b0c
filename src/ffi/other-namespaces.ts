/**
 * The network namespaces other than the host's and one container's, for what the container has moved out of its own: what
 * it has unshared, and what it keeps open without a process in it. Looks at every process of the machine, so it is for
 * what is missing where it belongs.
 */
import { linkTarget } from "./directory-entries.ts";
import { closeFile, identify, namesIn, O_PATH, openFile, readTextFile, whileOpen } from "./files.ts";
import { NETLINK_ROUTE, type NetlinkSocket, openNetlink } from "./netlink/socket.ts";
import { inNetns, openNetns, openOwnNetns } from "./netns.ts";
import { mountedNamespaces } from "./netns-in-sight.ts";

export interface OtherNamespace {
  /** rtnetlink socket inside. It is closed after the look. */
  socket: NetlinkSocket;
  /** The host's namespace, by its descriptor. */
  home: number;
  /** What holds it, for an error: `process 123`. */
  holder: string;
  /** It is held by a process that belongs to the container. */
  isContainers: boolean;
}

/**
 * Calls `look` for each that this process may enter, until it returns true. `container` is its namespace's descriptor;
 * without one it is not known what is a container's.
 */
export function someOtherNamespace(container: number | undefined, look: (other: OtherNamespace) => boolean): boolean {
  return whileOpen(openOwnNetns(), (home) => {
    const own = inodeOf(home), theirs = container === undefined ? "" : inodeOf(container);
    for (const [inode, { path, ...rest }] of placesInSight(theirs)) {
      if (inode === own || inode === theirs) continue;
      if (inSocketAt(path, home, (socket) => look({ socket, home, ...rest }))) return true;
    }
    return false;
  });
}

interface HeldNamespace extends Pick<OtherNamespace, "holder" | "isContainers"> {
  path: string;
}

/** By the inode, which a namespace shares with no other one that is there. */
function placesInSight(container: string): Map<string, HeldNamespace> {
  const found = new Map<string, HeldNamespace>(), processes = new Processes(container);
  const add = (inode: string | undefined, place: HeldNamespace) => {
    const before = inode === undefined ? undefined : found.get(inode);
    if (inode === undefined || (before !== undefined && (before.isContainers || !place.isContainers))) return;
    found.set(inode, place);
  };
  for (const path of mountedNamespaces()) add(inodeAt(path), { path, holder: path, isContainers: false });
  for (const pid of processes.all) {
    const holder = `process ${pid}`, isContainers = processes.isContainers(pid);
    for (const path of isContainers ? heldBy(pid) : [`/proc/${pid}/ns/net`]) {
      add(inodeIn(linkTarget(path)), { path, holder, isContainers });
    }
  }
  return found;
}

/** The namespaces of its threads, which are not always one, and those that it has open. */
function heldBy(pid: string): string[] {
  const threads = entriesOf(`/proc/${pid}/task`).map((thread) => `/proc/${pid}/task/${thread}/ns/net`);
  return [...threads, ...entriesOf(`/proc/${pid}/fd`).map((fd) => `/proc/${pid}/fd/${fd}`)];
}

/** None when the process has ended. */
function entriesOf(directory: string): string[] {
  try {
    return namesIn(directory);
  } catch {
    return [];
  }
}

/** A namespace's inode has 32 bits, which are the last part of what identifies a file. */
function inodeOf(netns: number | string): string {
  return identify(netns).id.split(":").at(-1)!;
}

function inodeAt(path: string): string | undefined {
  try {
    return inodeOf(path);
  } catch {
    // It is not mounted any more, or not ours to look at.
    return undefined;
  }
}

/** The text of a link to a namespace; the text of one to a file begins with another letter. */
function inodeIn(text: string | undefined): string | undefined {
  return /^net:\[([0-9]+)\]/.exec(text ?? "")?.[1];
}

/**
 * Who belongs to a container: a process in its network namespace, one in the process namespace of such a process, and what
 * comes from these. A process cannot leave its process namespace, and its parents end before it or stay above it.
 */
class Processes {
  readonly all = namesIn("/proc").filter((name) => /^[0-9]+$/.test(name));
  private readonly answers = new Map<string, boolean>();
  private readonly inContainer: Set<string>;
  private readonly namespaces = new Set<string>();

  constructor(container: string) {
    const own = linkTarget("/proc/self/ns/pid");
    this.inContainer = new Set(this.all.filter((pid) => inodeIn(linkTarget(`/proc/${pid}/ns/net`)) === container));
    for (const pid of this.inContainer) {
      const namespace = linkTarget(`/proc/${pid}/ns/pid`);
      if (namespace !== undefined && namespace !== own) this.namespaces.add(namespace);
    }
  }

  isContainers(pid: string): boolean {
    const known = this.answers.get(pid);
    if (known !== undefined) return known;
    // Against a circle, which numbers that are given again could make.
    this.answers.set(pid, false);
    const parent = parentOf(pid);
    const answer = this.inContainer.has(pid) || this.namespaces.has(linkTarget(`/proc/${pid}/ns/pid`) ?? "") ||
      (parent !== undefined && this.isContainers(parent));
    this.answers.set(pid, answer);
    return answer;
  }
}

/** proc_pid_stat(5): the name before it may contain anything. */
function parentOf(pid: string): string | undefined {
  const text = readTextFile(`/proc/${pid}/stat`) ?? "", parent = text.slice(text.lastIndexOf(")") + 2).split(" ")[1];
  return parent === undefined || parent === "0" ? undefined : parent;
}

/**
 * A container can put anything in the place of what it has open, so it is looked at before it is opened: a device or a file
 * system of the container's own could do something, or let us wait.
 */
function openSafely(path: string): number | undefined {
  let place: number | undefined;
  try {
    place = openFile(path, O_PATH);
    const itself = `/proc/self/fd/${place}`;
    return path.startsWith("/proc/") && inodeIn(linkTarget(itself)) === undefined ? undefined : openNetns(itself);
  } catch {
    // It has ended meanwhile, or is not ours to enter.
    return undefined;
  } finally {
    if (place !== undefined) closeFile(place);
  }
}

/** Returns undefined for one that has ended, and for one that is not ours to enter. */
function inSocketAt<T>(path: string, home: number, work: (socket: NetlinkSocket) => T): T | undefined {
  const netns = openSafely(path);
  if (netns === undefined) return undefined;
  let socket: NetlinkSocket | undefined;
  try {
    socket = socketIn(netns, home);
    return socket && work(socket);
  } finally {
    socket?.close();
    closeFile(netns);
  }
}

function socketIn(netns: number, home: number): NetlinkSocket | undefined {
  try {
    return inNetns(netns, home, () => openNetlink(NETLINK_ROUTE));
  } catch {
    return undefined;
  }
}
