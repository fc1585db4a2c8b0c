/**
 * The open files and sockets that a process keeps from one piece of work to the next, each with what makes it stale. Facts
 * about the process and the boot may stay in variables of their modules. A resident keeps them from call to call. Others
 * keep nothing: what they give back is closed.
 *
 * Not kept, because others change it at any time: anything read from the kernel or from files (links, addresses, tables,
 * configurations, leases, ledgers), and anything of a container (its namespace, its sockets).
 */
import { closeFile, O_RDONLY, openExisting, readAt } from "../ffi/files.ts";
import { NETLINK_NETFILTER, NETLINK_ROUTE, type NetlinkSocket, openNetlink } from "../ffi/netlink/socket.ts";
import { openOwnNetns } from "../ffi/netns.ts";

let isKeeping = false;

/** From here on, what is given back stays open for the next who takes it. */
export function keepFromNowOn(): void {
  isKeeping = true;
}

/** Work in another host's namespace gets nothing that is kept, and leaves nothing. */
export function keepNothingDuring(work: () => void): void {
  const before = isKeeping;
  isKeeping = false;
  try {
    work();
  } finally {
    isKeeping = before;
  }
}

class KeptOpen<Value> {
  private value: Value | undefined;

  constructor(
    private readonly open: () => Value,
    private readonly close: (value: Value) => void,
    private readonly isFresh: (value: Value) => boolean,
  ) {}

  /** Until it is given back, other callers get another one. */
  take(): Value {
    if (!isKeeping) return this.open();
    const { value } = this;
    this.value = undefined;
    if (value === undefined) return this.open();
    if (this.isFresh(value)) return value;
    this.close(value);
    return this.open();
  }

  giveBack(value: Value): void {
    if (isKeeping && this.value === undefined) this.value = value;
    else this.close(value);
  }
}

/**
 * The namespace of this process. Never stale: a resident serves only callers in its own, and the thread is in another
 * one only while `inNetns` runs.
 */
export const ownNetns = new KeptOpen(openOwnNetns, closeFile, () => true);

/**
 * Sockets to the host's namespace. Stale when something is left to read: then a call ended between a request and its
 * answer. Closing the one to nf_tables is what it would wait for (`closesSlowly`).
 */
export const hostSockets = {
  route: socketTo(NETLINK_ROUTE),
  netfilter: socketTo(NETLINK_NETFILTER),
};

function socketTo(protocol: number): KeptOpen<NetlinkSocket> {
  return new KeptOpen(() => openNetlink(protocol), (socket) => socket.close(), (socket) => socket.isQuiet());
}

interface Connection {
  close(): void;
}

/** What the running verb has opened, by where they lead. */
let connections: Map<string, Connection> | undefined;

/** Runs a verb, and closes the connections that it has given back: a service may end before the next one. */
export function withOwnConnections<T>(work: () => T): T {
  const outer = connections, own = connections = new Map<string, Connection>();
  try {
    return work();
  } finally {
    connections = outer;
    for (const connection of own.values()) connection.close();
  }
}

/** One that was given back; undefined where none was. */
export function takeConnection<Kind extends Connection>(to: string): Kind | undefined {
  const connection = connections?.get(to) as Kind | undefined;
  connections?.delete(to);
  return connection;
}

/** For the next who takes one in this verb. Outside of a verb it is closed. */
export function giveBackConnection(to: string, connection: Connection): void {
  if (connections === undefined || connections.has(to)) connection.close();
  else connections.set(to, connection);
}

/**
 * Files of /proc that are read anew in each call. Never stale: a descriptor shows what is true when it is read, and of
 * the namespace in which it was opened. A file that does not exist is looked for each time.
 */
const procFiles = new Map<string, number>();

/** Whether there is anything in the file. */
export function hasContent(path: string): boolean {
  const kept = isKeeping ? procFiles.get(path) : undefined, fd = kept ?? openExisting(path, O_RDONLY);
  if (fd === undefined) return false;
  try {
    return readAt(fd, new Uint8Array(1), 0) !== 0;
  } finally {
    if (isKeeping) procFiles.set(path, fd);
    else closeFile(fd);
  }
}
