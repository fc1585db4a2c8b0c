/** The requests that wait for a lease, and the failures that STATUS tells. */
import { expect, test } from "bun:test";
import { FailedAdds } from "../../../../src/services/dhcp/service/failed-adds.ts";
import { type PendingRequest, PendingRequests } from "../../../../src/services/dhcp/service/pending-requests.ts";

const answer = { version: 1 };

function requestUntil(deadline: number, answered: number[]): PendingRequest {
  return { deadline, client: { answer: () => void answered.push(deadline), onGone: undefined } };
}

test("each request is answered once, when its time is over or all are", () => {
  const answered: number[] = [], pending = new PendingRequests();
  expect([pending.isEmpty, pending.due]).toEqual([true, Infinity]);
  for (const deadline of [7, 5, 9]) pending.add(requestUntil(deadline, answered));
  expect([pending.isEmpty, pending.due]).toEqual([false, 5]);
  pending.answerDue(4.9, () => answer);
  pending.answerDue(7, () => answer);
  expect([answered, pending.due]).toEqual([[7, 5], 9]);
  pending.answerAll(answer);
  pending.answerAll(answer);
  expect([answered, pending.isEmpty, pending.due]).toEqual([[7, 5, 9], true, Infinity]);
});

test("removing tells whether it was the last one", () => {
  const pending = new PendingRequests(),
    [one, other, stranger] = [1, 2, 3].map((deadline) => requestUntil(deadline, []));
  pending.add(one!);
  pending.add(other!);
  expect([pending.remove(one!), pending.remove(one!), pending.remove(stranger!)]).toEqual([false, false, false]);
  expect([pending.remove(other!), pending.remove(other!), pending.isEmpty]).toEqual([true, false, true]);
});

test("a failure of a network is remembered for its time, or until somebody has a lease there", () => {
  const failed = new FailedAdds(60);
  failed.add("net", "silence", 100);
  failed.add("other", "no", 100);
  failed.add("net", "silence again", 110);
  expect(failed.of("net", 110.5)).toEqual({ obstacle: "silence again", forgottenInS: 60 });
  expect(failed.of("net", 169.9)).toEqual({ obstacle: "silence again", forgottenInS: 1 });
  expect([failed.of("net", 170), failed.of("third", 0.5)]).toEqual([{}, {}]);
  failed.forget("net");
  expect([failed.of("net", 110), failed.of("other", 110)]).toEqual([{}, { obstacle: "no", forgottenInS: 50 }]);
});
