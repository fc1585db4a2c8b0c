/** What is the same, and what is not, in each state of a lease, in simulated time. */
import { expect, test } from "bun:test";
import { ACK, NAK, OFFER, option } from "../../../../src/services/dhcp/v4/message/message.ts";
import { ip, seconds, type Sent, Simulation } from "../../../support/dhcp-simulation.ts";

const kinds = (sent: readonly Sent[]) => sent.map(({ kind, how }) => `${kind} ${how}`);
const has = ({ message }: Sent, number: number) => message.options.get(number);

/** Brings a client that probes into a state, whose name begins the entry's. `given`: the address that it has by then. */
const states: [name: string, given: string | undefined, reach: (it: Simulation) => void][] = [
  ["idle", undefined, () => {}],
  ["selecting", undefined, (it) => it.take(it.client.start(it.now))],
  ["requesting", "192.168.77.50", (it) => {
    it.take(it.client.start(it.now));
    it.answer(OFFER);
  }],
  ["rebooting", undefined, (it) => it.take(it.client.reboot(it.now, ip("192.168.77.50")))],
  ["probing", "192.168.77.50", (it) => {
    it.take(it.client.reboot(it.now, ip("192.168.77.50")));
    it.answer(ACK);
  }],
  ["declined", undefined, (it) => {
    it.take(it.client.reboot(it.now, ip("192.168.77.50")));
    it.answer(ACK);
    it.take(it.client.probed(true, it.now));
  }],
  ["bound", "192.168.77.50", (it) => bound(it)],
  ["renewing", "192.168.77.50", (it) => {
    bound(it);
    it.pass(500);
  }],
  ["rebinding", "192.168.77.50", (it) => {
    bound(it);
    it.pass(900);
  }],
  ["selecting after a refusal", undefined, (it) => {
    bound(it);
    it.pass(500);
    it.answer(NAK);
  }],
  ["selecting after the end", undefined, (it) => {
    bound(it);
    it.pass(1000);
  }],
];

function bound(it: Simulation): void {
  it.take(it.client.start(it.now));
  it.answer(OFFER);
  it.answer(ACK);
  it.take(it.client.probed(false, it.now));
}

test.each(states)("a release while it is %s", (name, given, reach) => {
  const it = new Simulation({ probe: true });
  reach(it);
  expect(name).toStartWith(it.client.state);
  const sent = it.take(it.client.release());
  expect(sent.map((one) => [one.kind, one.message.clientAddress!.join("."), has(one, 54)!.join(".")])).toEqual(
    given === undefined ? [] : [["RELEASE", given, "192.168.77.1"]],
  );
  expect([it.client.state, it.client.due, it.client.release()]).toEqual(["idle", Infinity, []]);
});

test.each(states)("while it is %s, nothing of a server that is not allowed counts", (name, _given, reach) => {
  for (const type of [OFFER, ACK, NAK]) {
    const it = new Simulation({ probe: true, allowsServer: (server) => server[3] === 1 });
    reach(it);
    if (it.sent.length === 0) continue;
    const { state, due, lease, obstacle } = it.client, before = it.sent.length;
    it.answer(type, [[54, ip("192.168.77.66")]]);
    expect(name).toStartWith(state);
    expect([it.client.state, it.client.due, it.client.lease]).toEqual([state, due, lease]);
    expect(it.sent.length).toBe(before);
    // A request for a first lease is answered with the reason.
    const reason = "server 192.168.77.66 is not allowed";
    expect(it.client.obstacle).toBe(state === "selecting" ? reason : obstacle);
  }
});

test("an address that was declined is not wished for any more", () => {
  const it = new Simulation({ probe: true });
  it.take(it.client.start(it.now, ip("192.168.77.50")));
  it.answer(OFFER);
  it.answer(ACK);
  it.take(it.client.probed(true, it.now));
  const [again] = it.pass(10) as [Sent];
  expect([again.kind, has(again, 50)]).toEqual(["DISCOVER", undefined]);
});

test("a server that refuses a lease right after it gave it is asked after a pause", () => {
  const it = new Simulation();
  it.bind([[option.renewalTime, seconds(4)], [option.rebindingTime, seconds(800)]]);
  it.pass(5);
  expect(it.client.state).toBe("renewing");
  expect([kinds(it.answer(NAK)), kinds(it.pass(1.9)), kinds(it.pass(0.1))]).toEqual([[], [], ["DISCOVER broadcast"]]);
});

test("from the third message on, every host of the link is to receive the answer", () => {
  const it = new Simulation({}, false);
  it.take(it.client.start(it.now));
  it.pass(60);
  expect(it.sent.map(({ message }) => message.broadcast)).toEqual([false, false, true, true, true]);
  it.answer(OFFER);
  it.pass(40);
  const requests = it.sent.filter(({ kind }) => kind === "REQUEST");
  expect(requests.map(({ message }) => message.broadcast)).toEqual([false, false, true, true]);
});

test("the second message of a renewal is a repeated one", () => {
  const it = new Simulation(), repeated: boolean[] = [];
  it.bind();
  for (let count = 0; count < 3; count++) {
    it.now = it.client.due;
    for (const action of it.client.tick(it.now)) if (action.do === "unicast") repeated.push(action.isRepeated);
  }
  expect(repeated).toEqual([false, true, true]);
});

test("a lease from before waits for its turn, and is wished for when it ends", () => {
  const before = new Simulation();
  before.bind();
  const lease = before.client.lease!;
  // A turn is half of the spread here: after T1, after the end, and when the end comes first.
  for (const [later, due] of [[600, 605], [1000, 1005], [997, 1000], [100, 487.5]] as const) {
    const it = new Simulation();
    it.now = lease.since + later;
    it.client.resume(it.now, lease, 10);
    expect([later, it.client.due - lease.since]).toEqual([later, due]);
  }
  const it = new Simulation();
  it.client.resume(it.now, lease, 0);
  const [, discover] = [it.pass(999), it.pass(1)[0]!];
  expect([discover.kind, has(discover, 50)]).toEqual(["DISCOVER", ip("192.168.77.50")]);
});

test("an acknowledgement or a refusal is no offer", () => {
  for (const type of [ACK, NAK]) {
    const it = new Simulation();
    it.take(it.client.start(it.now));
    expect([it.answer(type), it.client.state]).toEqual([[], "selecting"]);
  }
});

test("a client id in an answer is the client's own, or it is not for it", () => {
  const ids = [undefined, Uint8Array.of(1), Uint8Array.of(2)];
  const believed = ids.map((own) =>
    ids.map((said) => {
      const it = new Simulation({}, true, { clientId: own });
      it.take(it.client.start(it.now));
      return it.answer(OFFER, said === undefined ? [] : [[option.clientId, said]]).length > 0;
    })
  );
  expect(believed).toEqual([[true, false, false], [true, true, false], [true, false, true]]);
});

test("pauses are spread: by a tenth while somebody waits, by a second while nobody does (RFC 2131 section 4.1)", () => {
  const pausesWith = (random: number, isAwaited: boolean, seconds: number) => {
    const it = new Simulation({ random: () => random }, isAwaited);
    it.take(it.client.start(it.now));
    return it.pass(seconds).map(({ at }, index, all) => at - (all[index - 1]?.at ?? 1000));
  };
  const close = (pauses: number[]) => pauses.map((pause) => expect.closeTo(pause, 6));
  expect(pausesWith(0, true, 43)).toEqual(close([0.225, 0.9, 1.8, 3.6, 7.2, 14.4, 14.4]));
  expect(pausesWith(1, true, 50)).toEqual(close([0.275, 1.1, 2.2, 4.4, 8.8, 17.6]));
  expect(pausesWith(0, false, 120)).toEqual(close([3, 7, 15, 31, 63]));
  expect(pausesWith(1, false, 130)).toEqual(close([5, 9, 17, 33, 65]));
});

test("a server that takes a lease back within ten seconds is asked after a pause, later at once", () => {
  for (const [later, isAtOnce] of [[9.9, false], [10, true]] as const) {
    const it = new Simulation({ random: () => 0 });
    it.bind([[option.renewalTime, seconds(5)]]);
    it.pass(5);
    it.now = 1000 + later;
    expect(it.answer(NAK).length).toBe(isAtOnce ? 1 : 0);
  }
});

test("a renewal is repeated after half of what is left, but not sooner than a minute, or five seconds of a short lease", () => {
  const pauseOf = (lease: number, renew: number, rebind: number) => {
    const it = new Simulation({ random: () => 0 });
    const times = [[option.leaseTime, lease], [option.renewalTime, renew], [option.rebindingTime, rebind]] as const;
    it.bind(times.map(([number, value]) => [number, seconds(value)]));
    it.pass(renew);
    expect(it.sent.at(-1)!.at).toBe(1000 + renew);
    return it.client.due - it.now;
  };
  expect([pauseOf(1000, 500, 900), pauseOf(480, 100, 210), pauseOf(480, 100, 240)]).toEqual([200, 60, 70]);
  expect([pauseOf(479, 100, 210), pauseOf(479, 100, 109), pauseOf(479, 100, 104)]).toEqual([55, 5, 4]);
});

test("who goes on with a lease from before is not hurried, and what ends a lease is told", () => {
  const before = new Simulation();
  before.bind();
  const it = new Simulation();
  it.client.resume(it.now, before.client.lease!, 0);
  it.pass(1000);
  expect(it.actions.find((action) => action.do === "stopUsing")).toMatchObject({ isRefused: false });
  expect(it.pass(70).map(({ at }) => at - 2000)).toEqual([4, 12, 28, 60]);
  it.answer(OFFER);
  it.answer(ACK);
  it.pass(500);
  it.answer(NAK);
  expect(it.actions.findLast((action) => action.do === "stopUsing")).toMatchObject({ isRefused: true });
});

test("a decline and a release begin an exchange of their own", () => {
  const it = new Simulation({ probe: true });
  it.now += 5;
  it.take(it.client.start(it.now));
  it.now += 5;
  it.answer(OFFER);
  it.answer(ACK);
  const [declined] = it.take(it.client.probed(true, it.now)) as [Sent];
  it.pass(20);
  it.answer(OFFER);
  const released = it.client.release();
  const [told] = it.take(released) as [Sent];
  expect([declined.message.secs, told.message.secs]).toEqual([0, 0]);
  expect(new Set([it.sent[0]!, declined, told].map(({ message }) => message.xid)).size).toBe(3);
  expect(released).toMatchObject([{
    do: "unicast",
    isRepeated: false,
    from: ip("192.168.77.50"),
    to: ip("192.168.77.1"),
  }]);
});
