/** What `patchbay serve --status` says. */
import { expect, test } from "bun:test";
import { reportOf, type ResidentStatus, unseen } from "../../../src/frontends/resident/status-report.ts";

const worker = { pid: 701, ageSeconds: 59, served: 40, isStopped: false, memoryKib: 81_408, ownMemoryKib: 2_559 };
const status: ResidentStatus = {
  socket: "/run/patchbay/serve.sock",
  pid: 700,
  build: "this",
  declinesFromHere: undefined,
  refusedUpgrade: undefined,
  isByCall: false,
  ageSeconds: 90_061,
  served: 64,
  takenBack: 2,
  declined: { DHCP: 3, "foreign plugin": 4 },
  workersReplaced: 1,
  workers: [worker, { pid: 702, ageSeconds: 3600, served: 24, isStopped: false, memoryKib: 0, ownMemoryKib: 0 }],
};

test("a resident that serves", () => {
  const { isServing, text, facts } = reportOf(status);
  expect([isServing, facts]).toEqual([true, { ...status, problem: undefined }]);
  expect(text).toBe(`process 700 listens on /run/patchbay/serve.sock, for 1 d 1 h
calls of this program are served
calls: 64 served, 7 declined (DHCP 3, foreign plugin 4), 2 taken back
workers: 2, replaced: 1
  process 701: 40 served, 80 MiB (2 not shared), 59 s old
  process 702: 24 served, 0 MiB (0 not shared), 1 h 0 min old
`);
});

test("a resident that has not been upgraded, and has declined nothing", () => {
  const { isServing, text } = reportOf({
    ...status,
    refusedUpgrade: "/opt/patchbay was replaced",
    declined: {},
    workers: [worker],
  });
  expect(isServing).toBe(true);
  expect(text.split("\n").slice(1, 5)).toEqual([
    "calls of this program are served",
    "it has not been upgraded: /opt/patchbay was replaced",
    "calls: 64 served, 0 declined, 2 taken back",
    "workers: 1, replaced: 1",
  ]);
});

test.each<[problem: string, differs: Partial<ResidentStatus>]>([
  ["it is of another build", { build: "another", declinesFromHere: "uid", workers: [] }],
  ["it serves callers with another user or group", { declinesFromHere: "uid", workers: [] }],
  ["it serves callers with another mount, network, process or user namespace, or root directory", {
    declinesFromHere: "namespace",
  }],
  ["it serves callers with other capabilities", { declinesFromHere: "capabilities" }],
  ["it serves callers with another no_new_privs, seccomp mode or number of filters, or security label", {
    declinesFromHere: "confinement",
  }],
  ["it has no worker", { workers: [] }],
  ["its workers are stopped (SIGCONT lets them go on)", { workers: [{ ...worker, isStopped: true }] }],
])("calls run by themselves: %s", (problem, differs) => {
  const { isServing, text, facts } = reportOf({ ...status, ...differs });
  expect([isServing, facts]).toEqual([false, { ...status, ...differs, problem }]);
  expect(text.split("\n")[1]).toBe(`calls of this program run by themselves: ${problem}`);
});

test("what the caller brings along comes first", () => {
  const { isServing, facts } = reportOf({ ...status, declinesFromHere: "uid" }, "it is off here");
  expect([isServing, facts]).toMatchObject([false, { problem: "it is off here", declinesFromHere: "uid" }]);
});

test("nothing that can be seen", () => {
  expect(unseen("no resident listens there", "Calls run by themselves.")).toEqual({
    isServing: false,
    text: "no resident listens there\nCalls run by themselves.\n",
    facts: { socket: "/run/patchbay/serve.sock", problem: "no resident listens there" },
  });
});

test.each([
  [0, "0 s"],
  [1, "1 s"],
  [59, "59 s"],
  [60, "1 min 0 s"],
  [61, "1 min 1 s"],
  [3599, "59 min 59 s"],
  [3600, "1 h 0 min"],
  [7379, "2 h 2 min"],
  [86_399, "23 h 59 min"],
  [86_400, "1 d 0 h"],
  [349_199, "4 d 0 h"],
])("for %d seconds: %s", (ageSeconds, text) => {
  expect(reportOf({ ...status, ageSeconds }).text.split("\n")[0]).toEndWith(`, for ${text}`);
});
