/** Waiting until something is so. The kernel's notifications say when to look again. */
import { ENOBUFS, isErrno } from "../errno.ts";
import { check, libc } from "../libc.ts";
import { trySetOption } from "../socket/socket.ts";
import {
  type KernelTransport,
  NETLINK_NETFILTER,
  NETLINK_ROUTE,
  openTransport,
  type Transport,
} from "./transport.ts";
import { NFNLGRP_NFTRACE } from "./uapi/nf-tables.ts";

const SOL_NETLINK = 270;
const NETLINK_ADD_MEMBERSHIP = 1;
const QUEUE_BYTES = 1 << 20;
/** linux/netfilter/nfnetlink.h */
const NFNLGRP_NFTABLES = 7;

/**
 * Asks `isSo` now and after every notification of the group. False when it is not so in time. `inside` runs its
 * argument in the namespace that is watched.
 */
export function awaitChange(
  group: number,
  patienceMs: number,
  isSo: () => boolean,
  inside = <T>(work: () => T): T => work(),
): boolean {
  const events = inside(() => openEvents(group));
  try {
    return lookUntil(events, patienceMs, isSo);
  } finally {
    events.close();
  }
}

/** The kernel's notifications of the groups, in the namespace that the thread is in. */
export function openEvents(...groups: readonly number[]): KernelTransport {
  const events = openTransport(NETLINK_ROUTE);
  for (const group of groups) join(events, group);
  return events;
}

/** The kernel's notifications of changes to the rules of nf_tables, in the namespace that the thread is in. */
export function openNetfilterEvents(): KernelTransport {
  const events = openTransport(NETLINK_NETFILTER);
  join(events, NFNLGRP_NFTABLES);
  return events;
}

/** The kernel's traces of packets, in the namespace that the thread is in. */
export function openTraceEvents(): KernelTransport {
  const events = openTransport(NETLINK_NETFILTER);
  join(events, NFNLGRP_NFTRACE);
  return events;
}

/** A program that changes rules changes many, one after the other. */
const QUIET_MS = 100, LONGEST_MS = 5000;

/** Waits for a notification, and then until none has come for a moment, or they do not cease. */
export function untilQuiet(events: Transport, longestMs = LONGEST_MS): void {
  receives(events, undefined);
  for (const deadline = Date.now() + longestMs; Date.now() < deadline && receives(events, QUIET_MS););
}

function receives(events: Transport, patienceMs: number | undefined): boolean {
  try {
    return events.receive(patienceMs) !== undefined;
  } catch (error) {
    if (!isErrno(error, ENOBUFS)) throw error;
    return true;
  }
}

/** Nothing is read out of a notification, so it does not matter whether it is forged or one of many that were lost. */
export function lookUntil(events: Transport, patienceMs: number, isSo: () => boolean): boolean {
  const deadline = Date.now() + patienceMs;
  while (!isSo()) {
    const leftMs = deadline - Date.now();
    if (leftMs <= 0) return false;
    receives(events, leftMs);
  }
  return true;
}

function join({ fd }: KernelTransport, group: number): void {
  const joined = libc.setsockopt(fd, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, Int32Array.of(group), 4);
  check("setsockopt NETLINK_ADD_MEMBERSHIP", joined);
  trySetOption(fd, "SO_RCVBUF", Int32Array.of(QUEUE_BYTES));
}
