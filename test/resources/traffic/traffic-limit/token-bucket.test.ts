/** Bucket and queue sizes of bandwidth, as the reference plugin computes them, and where 32 bits overflow. */
import { expect, test } from "bun:test";
import {
  bufferTicks,
  isBufferOf,
  isQueueOf,
  queueBytes,
} from "../../../../src/resources/traffic/traffic-limit/token-bucket.ts";

const MAX = 2 ** 32 - 1;

test("a bucket is as long as it takes to fill, in ticks of 64 ns", () => {
  expect(bufferTicks({ rate: 1_000_000, burst: 200_000 })).toBe(3_125_000);
  expect(bufferTicks({ rate: 3, burst: 2 })).toBe(10_416_656);
  expect(bufferTicks({ rate: 50_000_000_000, burst: 1_000_000_000 })).toBe(312_500);
});

test("what does not fit into 32 bits is all that does, and the wrapped number is known again", () => {
  const kubelet = { rate: 125_000, burst: 268_435_455 };
  expect(bufferTicks(kubelet)).toBe(MAX);
  // 2,147,483,640 µs are 33,554,431,875 ticks.
  expect(isBufferOf(kubelet, 33_554_431_875 % 2 ** 32)).toBe(true);
  expect([isBufferOf(kubelet, MAX), isBufferOf(kubelet, MAX - 1)]).toEqual([true, false]);
  const fast = { rate: 400_000_000_000, burst: 10 };
  expect(queueBytes(fast)).toBe(MAX);
  expect(isQueueOf(fast, (10_000_000_000 % 2 ** 32) + 10)).toBe(true);
  expect([isQueueOf(fast, MAX), isQueueOf(fast, 10)]).toEqual([true, false]);
});

test("the queue holds 25 ms beside the burst", () => {
  expect(queueBytes({ rate: 1_000_000, burst: 200_000 })).toBe(225_000);
  expect(queueBytes({ rate: 39, burst: 1 })).toBe(1);
});
