/** Conntrack entries are deleted by port, address and answering side, on kernels with and without filtered dumps. */
import { expect, test } from "bun:test";
import { openMachine } from "../../../support/machine.ts";

// Linux 6.8 and later look for themselves; before, the kernel refuses, and all are listed for each.
test.each([
  { kernel: "this kernel", parameters: [], dumpsAllowed: [0, 4] },
  { kernel: "a kernel without filters", parameters: ["refusing"], dumpsAllowed: [4] },
])("$kernel: flows are deleted by port, address and who answers", async ({ parameters, dumpsAllowed }) => {
  await using machine = await openMachine();
  // Somebody has to ask for tracking.
  await machine.sh("nft 'table inet t { chain c { type filter hook output priority 0; ct state new accept; }; }'");
  const { code, stdout, stderr } = await machine.run([
    process.execPath,
    `${import.meta.dir}/session.ts`,
    ...parameters,
  ]);
  expect([code, stderr]).toEqual([0, ""]);
  const one = "127,0,0,1", two = "127,0,0,2", six = "0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,1";
  const flow = (address: string, port: number) => `${address} ${port} by ${address}`;
  const others = [flow(six, 53), flow(six, 54), flow(one, 53), flow(one, 54), flow(two, 54)];
  const { dumps, ...report } = JSON.parse(stdout);
  expect(dumpsAllowed).toContain(dumps);
  expect(report).toEqual({
    all: [...others.slice(0, 4), flow(two, 53), flow(two, 54)],
    oneAddress: others,
    answeredByNobody: others,
    onePort: [flow(six, 53), flow(six, 54), flow(one, 54), flow(two, 54)],
    oneByOne: [flow(six, 53)],
    establishedStays: true,
    establishedGoes: true,
  });
});
