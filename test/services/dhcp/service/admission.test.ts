/** Who may ask the service, by what the kernel says of the process that has connected. */
import { readdirSync } from "node:fs";
import { afterEach, beforeEach, expect, mock, spyOn, test } from "bun:test";
import { EMFILE, ENFILE, ENOENT, ENOMEM, SyscallError } from "../../../../src/ffi/errno.ts";
import * as peer from "../../../../src/ffi/socket/peer.ts";
import { ProcessFiles } from "../../../../src/ffi/process-files.ts";
import { whyRefused } from "../../../../src/services/dhcp/service/admission.ts";

const own = new ProcessFiles("self"), userNamespace = own.link("ns/user");
own.close();

let other: { pid: number; uid: number } | undefined;
let said: { user: string; capabilities: bigint; hasEnded: boolean };
let failure: Error | undefined, closed: number;

beforeEach(() => {
  other = { pid: 7, uid: 1000 };
  said = { user: userNamespace, capabilities: 0x3fffffffffn, hasEnded: false };
  [failure, closed] = [undefined, 0];
  spyOn(process as { geteuid(): number }, "geteuid").mockImplementation(() => 1000);
  spyOn(peer, "peerOf").mockImplementation(() => other);
  spyOn(peer.Peer, "of").mockImplementation(() => {
    if (failure !== undefined) throw failure;
    const files = { link: () => said.user, value: () => said.capabilities.toString(16).padStart(16, "0") };
    return { pid: 7, files, hasEnded: said.hasEnded, close: () => void closed++ } as unknown as peer.Peer;
  });
});
afterEach(() => mock.restore());

test("root and the service's own user, with the capabilities", () => {
  const open = () => readdirSync("/proc/self/fd").length, before = open();
  expect([whyRefused(3), closed, open()]).toEqual([undefined, 1, before]);
  other = { pid: 7, uid: 0 };
  expect([whyRefused(3), closed]).toEqual([undefined, 2]);
});

const NET_ADMIN = 1n << 12n, SYS_ADMIN = 1n << 21n;

test.each<[what: string, change: () => void, text: string, hint: string]>([
  ["another user", () => other = { pid: 7, uid: 1001 }, "serves root, and not user 1001", "call it as root"],
  ["nobody that is seen", () => other = undefined, "serves root, and not user -1", "call it as root"],
  [
    "a process of another process namespace",
    () => other = { pid: 0, uid: 0 },
    "does not see the process that asks: it has a process namespace of its own",
    "start the service in the process namespace of the container engine (hostPID: true, --pid=host)",
  ],
  [
    "another user namespace",
    () => said.user = "user:[1]",
    "serves its own user namespace, and process 7 is in another one",
    "call the plugin where the service was started, or start a service of its own there",
  ],
  [
    "one capability less",
    () => said.capabilities = SYS_ADMIN,
    "process 7 does not have CAP_NET_ADMIN, which the DHCP service asks",
    "call the plugin with the capabilities of the container engine",
  ],
  [
    "the other one less",
    () => said.capabilities = NET_ADMIN,
    "process 7 does not have CAP_SYS_ADMIN, which the DHCP service asks",
    "call the plugin with the capabilities of the container engine",
  ],
  [
    "none",
    () => said.capabilities = ~(NET_ADMIN | SYS_ADMIN) & 0x3fffffffffn,
    "process 7 does not have CAP_NET_ADMIN and CAP_SYS_ADMIN, which",
    "call the plugin with the capabilities of the container engine",
  ],
  ["one that has ended", () => said.hasEnded = true, "process 7 has ended", ""],
  [
    "one that cannot be looked at",
    () => failure = new SyscallError("open", ENOENT),
    "cannot look at process 7, which asks: open: no such file",
    "the service needs /proc, and CAP_SYS_PTRACE",
  ],
])("%s", (_what, change, text, hint) => {
  change();
  const refusal = whyRefused(3);
  expect([refusal?.text, refusal?.hint]).toEqual([expect.stringContaining(text), hint]);
});

test("what was read of a process that has ended meanwhile does not count", () => {
  said = { user: "user:[1]", capabilities: 0n, hasEnded: true };
  expect([whyRefused(3), closed]).toEqual([{ text: "process 7 has ended", hint: "" }, 1]);
});

test.each([EMFILE, ENFILE, ENOMEM])("a host without room for a look, errno %i, is nobody's fault", (errno) => {
  failure = new SyscallError("open", errno);
  expect(() => whyRefused(3)).toThrow(failure);
});
