/**
 * A netlink socket as two functions: one sends a datagram, one receives a datagram. What requests and answers mean is
 * above it (exchange.ts, batch.ts, events.ts), so that tests can put bytes of their own in the kernel's place.
 *
 * Sockets are opened through libnl-3 where the host has it and through socket(2) where not;
 * PATCHBAY_NETLINK=libnl|raw forces one.
 */
import { EAGAIN, EINTR, EMSGSIZE, SyscallError } from "../errno.ts";
import { variable } from "../environment.ts";
import { pollOne } from "../files.ts";
import { bind, lastErrno, libc, retrying } from "../libc.ts";
import { AF_NETLINK, MSG_DONTWAIT, MSG_TRUNC, openSocket, SOCK_RAW, trySetOption } from "../socket/socket.ts";

export const NETLINK_ROUTE = 0;
export const NETLINK_SOCK_DIAG = 4;
export const NETLINK_NETFILTER = 12;

export interface Datagram {
  bytes: Uint8Array;
  /** The length it was sent with; larger than `bytes` when it did not fit. */
  sentBytes: number;
  /** Port of the sender: 0 is the kernel. */
  sender: number;
}

export interface Transport {
  /** `what` names the request in errors. */
  send(bytes: Uint8Array, what: string): void;
  /**
   * The next datagram, whoever sent it; valid until the next call. Waits without end unless `timeoutMs` is given, and
   * then answers undefined when none came in time. Throws ENOBUFS after an overrun.
   */
  receive(timeoutMs?: number): Datagram | undefined;
}

/** The next datagram of the kernel's. Returns undefined when `wait` is false and there is none. */
export function receiveFromKernel(transport: Transport, wait = true): Uint8Array | undefined {
  for (;;) {
    const datagram = transport.receive(wait ? undefined : 0);
    if (datagram === undefined) return undefined;
    const { bytes, sentBytes, sender } = datagram;
    // Before a socket is connected, and to a group at any time, every process in the namespace can send to it.
    if (sender !== 0) continue;
    if (sentBytes > bytes.length) throw new SyscallError("recvfrom AF_NETLINK", EMSGSIZE, `${sentBytes} bytes`);
    return bytes;
  }
}

export interface KernelTransport extends Transport {
  readonly fd: number;
  readonly opened: "libnl" | "raw";
  close(): void;
}

const SOL_NETLINK = 270;
const NETLINK_CAP_ACK = 10;
const NETLINK_EXT_ACK = 11;
const NETLINK_GET_STRICT_CHK = 12;
const POLLIN = 0x1;
/**
 * A link's alternative names alone may have 64 KiB. A longer datagram is an error, never a shorter answer. The queue has
 * room for one, of which the kernel counts up to twice its length, and for the acknowledgement behind it.
 */
const RECEIVE_BYTES = 128 * 1024, QUEUE_BYTES = 2 * RECEIVE_BYTES;
/** What fits into the send buffer that libnl asks for, which is smaller than the kernel's default. */
const SEND_BYTES = 32 * 1024;

/** Shared by all sockets: requests are strictly one after another. */
let receiveBuffer: Uint8Array | undefined;

/** Opens a socket in the namespace the thread is in. It keeps that namespace when the thread leaves. */
export function openTransport(protocol: number): KernelTransport {
  const { fd, opened, close } = openDescriptor(protocol);
  connectToKernel(fd, close);
  const on = new Uint8Array([1, 0, 0, 0]);
  // Old kernels lack these options, which only make answers shorter and errors clearer.
  libc.setsockopt(fd, SOL_NETLINK, NETLINK_EXT_ACK, on, 4);
  libc.setsockopt(fd, SOL_NETLINK, NETLINK_CAP_ACK, on, 4);
  trySetOption(fd, "SO_RCVBUF", Int32Array.of(QUEUE_BYTES));
  if (protocol === NETLINK_ROUTE) libc.setsockopt(fd, SOL_NETLINK, NETLINK_GET_STRICT_CHK, on, 4);
  const address = new Uint8Array(12), addressView = new DataView(address.buffer); // struct sockaddr_nl
  const addressLength = new Uint8Array(4);
  return {
    fd,
    opened,
    close,
    send(bytes, what) {
      if (bytes.length > SEND_BYTES) raiseSendBuffer(fd, bytes.length);
      retrying("sendto AF_NETLINK", () => Number(libc.sendto(fd, bytes, bytes.length, 0, null, 0)), what);
    },
    receive(timeoutMs) {
      // Whether one has come in time is asked below.
      if (timeoutMs !== undefined && timeoutMs > 0) retrying("poll", () => pollOne(fd, POLLIN, timeoutMs));
      const flags = timeoutMs === undefined ? MSG_TRUNC : MSG_TRUNC | MSG_DONTWAIT;
      receiveBuffer ??= new Uint8Array(RECEIVE_BYTES);
      for (;;) {
        addressLength[0] = address.length;
        const sentBytes = Number(
          libc.recvfrom(fd, receiveBuffer, receiveBuffer.length, flags, address, addressLength),
        );
        if (sentBytes >= 0) {
          return { bytes: receiveBuffer.subarray(0, sentBytes), sentBytes, sender: addressView.getUint32(4, true) };
        }
        const errno = lastErrno();
        if (errno === EAGAIN) return undefined;
        if (errno !== EINTR) throw new SyscallError("recvfrom AF_NETLINK", errno);
      }
    },
  };
}

/**
 * From then on the kernel refuses what other processes send to the socket. Root of a container could otherwise fill the
 * queue of one in its namespace. Then the kernel's answer has no room, and a process that waits for it waits for ever.
 */
function connectToKernel(fd: number, close: () => void): void {
  const address = new Uint8Array(12); // struct sockaddr_nl: family u16, pad u16, port u32, groups u32
  address[0] = AF_NETLINK;
  if (libc.connect(fd, address, address.length) === 0) return;
  const errno = lastErrno();
  close();
  throw new SyscallError("connect AF_NETLINK", errno);
}

/** A datagram may not be larger than the socket's send buffer, of which the kernel counts twice what was asked for. */
function raiseSendBuffer(fd: number, bytes: number): void {
  if (trySetOption(fd, "SO_SNDBUFFORCE", Int32Array.of(bytes)) < 0) {
    trySetOption(fd, "SO_SNDBUF", Int32Array.of(bytes));
  }
}

function openDescriptor(protocol: number): Pick<KernelTransport, "fd" | "opened" | "close"> {
  const forced = variable("PATCHBAY_NETLINK");
  if (forced !== "raw") {
    const opened = openThroughLibnl(protocol);
    if (opened !== undefined) return opened;
    if (forced === "libnl") throw new Error("PATCHBAY_NETLINK=libnl, but libnl-3.so.200 cannot be loaded");
  }
  // Connecting gives it a port.
  const fd = openSocket("socket AF_NETLINK", AF_NETLINK, SOCK_RAW, protocol);
  return { fd, opened: "raw", close: () => void libc.close(fd) };
}

let libnl: ReturnType<typeof bindLibnl> | null | undefined;

function bindLibnl() {
  return bind({
    nl_socket_alloc: { args: [], returns: "ptr" },
    nl_connect: { args: ["ptr", "i32"], returns: "i32" },
    nl_socket_get_fd: { args: ["ptr"], returns: "i32" },
    nl_socket_free: { args: ["ptr"], returns: "void" },
  }, "libnl-3.so.200");
}

function openThroughLibnl(protocol: number): Pick<KernelTransport, "fd" | "opened" | "close"> | undefined {
  if (libnl === undefined) {
    try {
      libnl = bindLibnl();
    } catch {
      libnl = null;
    }
  }
  if (libnl === null) return undefined;
  const { nl_socket_free } = libnl, handle = libnl.nl_socket_alloc();
  if (handle === null) return undefined;
  if (libnl.nl_connect(handle, protocol) < 0) {
    libnl.nl_socket_free(handle);
    return undefined;
  }
  return { fd: libnl.nl_socket_get_fd(handle), opened: "libnl", close: () => nl_socket_free(handle) };
}
