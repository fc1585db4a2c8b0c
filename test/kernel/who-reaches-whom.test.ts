/**
 * Who reaches whom: every cell of docs/who-reaches-whom.md, by real packets of those who send as usual and of those who do
 * not (support/reach/). Policies are tried with each backend, and with networks of both.
 */
import { existsSync } from "node:fs";
import { describe, expect, test } from "bun:test";
import { lacks } from "../support/kernel-features.ts";
import { beside, policies, type Row, type Table, tables } from "../support/reach/matrix.ts";
import { roundsOf } from "../support/reach/networks.ts";
import { cellsFound, openTown } from "../support/reach/town.ts";

type Found = Record<string, string[]>;

/** For a column, by the name of the round, the cells of its rows. */
async function findIn(table: Table, index: number): Promise<Found> {
  const rows = testedIn(table, index), expected = rows.map(({ cells }) => cells[index]!);
  const found = roundsOf(table, table.columns[index]!.name).map(async ({ name, places, build }) => {
    await using town = await openTown(places);
    await build(town);
    return [name, await cellsFound(town, rows, expected)] as const;
  });
  return Object.fromEntries(await Promise.all(found));
}

function testedIn({ rows }: Table, index: number): Row[] {
  return rows.filter(({ cells }) => cells[index] !== "not tested");
}

const asksAboutBridged = existsSync("/proc/sys/net/bridge/bridge-nf-call-iptables");

for (const table of tables) {
  if (table.unasked !== undefined && !asksAboutBridged) continue;
  const isSkipped = table.columns.map(({ needs }) => needs.some(lacks));
  let started: (Promise<Found> | undefined)[] | undefined;

  /** Nearly all of the time is waited for what does not come, so the first test starts the columns of a table together. */
  const found = (index: number) => {
    started ??= isSkipped.map((skipped, index) => skipped ? undefined : findIn(table, index));
    // Each fails its own tests, also when another one's are still awaited.
    for (const one of started) one?.catch(() => {});
    return started[index]!;
  };

  for (const [index, { name: column }] of table.columns.entries()) {
    describe(`${table.name}: ${column}`, () => {
      testedIn(table, index).forEach(({ from, to, cells }, row) => {
        test.skipIf(isSkipped[index]!)(`from ${from} to ${to}`, async () => {
          const rounds = Object.entries(await found(index));
          expect(Object.fromEntries(rounds.map(([name, found]) => [name, found[row]!]))).toEqual(
            Object.fromEntries(rounds.map(([name]) => [name, cells[index]!])),
          );
        });
      });
    });
  }
}

for (const { name: column, needs } of beside.columns) {
  test.skipIf(needs.some(lacks))(`an ingress policy is refused behind ${column}`, async () => {
    const [{ places, build }] = roundsOf(beside, column) as [ReturnType<typeof roundsOf>[0]];
    for (const ingressPolicy of policies.slice(1)) {
      await using town = await openTown(places);
      await expect(build(town, ingressPolicy)).rejects.toThrow(/"code": 7,/);
    }
  });
}
