/**
 * netavark's DHCP proxy: takes gRPC calls on a Unix socket, and has the service hold the leases, as the plugin dhcp does. The
 * service gives the container its address and routes, too, because netavark leaves that to the proxy.
 */
import { errorText } from "../../cni/error.ts";
import type { Answer } from "../../dhcp/order.ts";
import type { Attachment } from "../../dhcp/service/attachment.ts";
import { Callers } from "../../dhcp/service/callers.ts";
import type { Asker, Desk, Front } from "../../dhcp/service/front.ts";
import { preciseSecondsSinceBoot } from "../../ffi/clock.ts";
import { replaceFile } from "../../ffi/files.ts";
import { getLink } from "../../ffi/netlink/route/link.ts";
import { NETLINK_ROUTE, openNetlink } from "../../ffi/netlink/socket.ts";
import { openNetns } from "../../ffi/netns.ts";
import { Visit } from "../../dhcp/link/place.ts";
import { textOf } from "../../dhcp/journal/lease-text.ts";
import { failureText } from "../wire/failure.ts";
import { log } from "../wire/log.ts";
import { CallConnection, type Caller } from "./call-connection.ts";
import { answerWith, codes, GrpcError, messageIn, refusal } from "./grpc.ts";
import type { Request, Response } from "./http2/connection.ts";
import { type Lease, type NetworkConfig, readConfig, success, writeLease } from "./messages.ts";
import { checkConfig, hostNameOf, isSamePlace, leaseOf, macOf, noLease, ownerOf, wishesOf } from "./requests.ts";

const MODULE = "netavark::dhcp_proxy";
const MOST = 256;
const SERVICE = "/netavark_proxy.NetavarkProxy/";

export class Proxy implements Front {
  private readonly callers: Callers<CallConnection>;
  private lastCall = preciseSecondsSinceBoot();
  /** By hardware address, as last written. */
  private leases = new Map<string, Lease>();
  /** What netavark called the domain, by hardware address. */
  private readonly domains = new Map<string, string>();

  constructor(
    listening: number,
    private readonly desk: Desk,
    private readonly leaseFile: string,
    /** In seconds; Infinity for never. */
    private readonly idleAfter: number,
  ) {
    const serve = (request: Request, caller: Caller) => this.serve(request, caller);
    this.callers = new Callers(
      listening,
      MOST,
      (fd, now, forget) => new CallConnection(fd, now, serve, forget),
      (_, { text, hint }) => log("warn", MODULE, `a caller is sent away: ${text}; ${hint}`),
    );
  }

  get fds(): number[] {
    return this.callers.fds;
  }

  get due(): number {
    return Math.min(this.callers.due, this.isUnused ? this.lastCall + this.idleAfter : Infinity);
  }

  private get isUnused(): boolean {
    return this.callers.all.every(({ isIdle }) => isIdle) && this.leases.size === 0;
  }

  get isOver(): boolean {
    return this.isUnused && preciseSecondsSinceBoot() >= this.lastCall + this.idleAfter;
  }

  wake(ready: ReadonlySet<number>, now: number): void {
    this.callers.wake(ready, now);
  }

  leasesChanged(): void {
    const before = this.leases;
    this.leases = new Map();
    for (const attachment of this.desk.attachments()) {
      const lease = this.leaseOf(attachment);
      if (lease !== undefined) this.leases.set(attachment.place.mac, lease);
    }
    for (const [mac, lease] of this.leases) {
      const last = before.get(mac);
      if (last !== undefined && !isSamePlace(last, lease)) {
        log("info", MODULE, `ip or gateway for mac ${mac} changed, update address`);
      }
    }
    try {
      const document = Object.fromEntries([...this.leases].map(([mac, lease]) => [mac, [lease]]));
      replaceFile(this.leaseFile, JSON.stringify(document), { mode: 0o644 });
    } catch (error) {
      // The journal is what counts.
      log("error", MODULE, `the file of leases is old: ${errorText(error)}`);
    }
  }

  private leaseOf({ v4, place: { mac }, wishes, isAwaited }: Attachment): Lease | undefined {
    const lease = v4?.client.lease;
    if (lease === undefined || isAwaited) return undefined;
    return leaseOf(textOf(lease.offered), mac, hostNameOf(wishes), this.domains.get(mac));
  }

  private serve({ path, body }: Request, caller: Caller): void {
    this.lastCall = preciseSecondsSinceBoot();
    const method = path.startsWith(SERVICE) ? path.slice(SERVICE.length) : "";
    try {
      if (method === "Setup") this.setup(readConfig(messageIn(body)), caller);
      else if (method === "Teardown") caller.answer(this.teardown(readConfig(messageIn(body))));
      else if (method === "Clean") caller.answer(this.clean());
      else throw new GrpcError(codes.unimplemented, `there is no ${JSON.stringify(path)}`);
    } catch (error) {
      caller.answer(refusal(error instanceof GrpcError ? error : new GrpcError(codes.internal, failureText(error))));
    }
  }

  private setup(config: NetworkConfig, caller: Caller): void {
    checkConfig(config);
    requireLink(config.hostIface);
    const mac = macOf(config.containerMac);
    const asker: Asker = {
      onGone: undefined,
      answer: (answer) => caller.answer(this.answerOf(answer, mac, config)),
    };
    caller.onGone = () => asker.onGone?.();
    requireContainerLink(config, mac);
    const order = {
      do: "acquire",
      owner: ownerOf(config),
      netnsPath: config.netnsPath,
      wishes: wishesOf(config),
    } as const;
    this.desk.serve(order, asker, openNetns(config.netnsPath));
  }

  private answerOf(answer: Answer, mac: string, { domainName, hostName }: NetworkConfig): Response {
    if ("failure" in answer) return refusal(new GrpcError(codes.aborted, answer.failure));
    if (domainName !== "") this.domains.set(mac, domainName);
    this.leasesChanged();
    return answerWith(writeLease(leaseOf(answer.lease!, mac, hostName, domainName)));
  }

  /** netavark is told what the lease was. */
  private teardown(config: NetworkConfig): Response {
    const mac = macOf(config.containerMac), lease = this.leases.get(mac) ?? noLease;
    this.release((one) => one.place.mac === mac);
    this.domains.delete(mac);
    return answerWith(writeLease(lease));
  }

  private clean(): Response {
    this.release(() => true);
    return answerWith(success);
  }

  private release(isMeant: (attachment: Attachment) => boolean): void {
    for (const { owner } of [...this.desk.attachments()].filter(isMeant)) {
      this.desk.serve({ do: "release", owner }, { onGone: undefined, answer() {} }, undefined);
    }
  }
}

function requireLink(name: string): void {
  const socket = openNetlink(NETLINK_ROUTE);
  try {
    if (name === "" || getLink(socket, name) === undefined) throw noDevice("host", name);
  } finally {
    socket.close();
  }
}

function noDevice(where: "host" | "container", name: string): GrpcError {
  const text = `${where} interface ${JSON.stringify(name)}: Netlink error: No such device (os error 19)`;
  return new GrpcError(codes.invalidArgument, text);
}

function requireContainerLink({ netnsPath, containerIface: ifName }: NetworkConfig, mac: string): void {
  try {
    Visit.begin({ netnsPath, ifName, mac }).end();
  } catch (error) {
    const text = failureText(error);
    if (text.includes("Link not found")) throw noDevice("container", ifName);
    throw new GrpcError(codes.invalidArgument, `ns_path ${JSON.stringify(netnsPath)}: ${text}`);
  }
}
