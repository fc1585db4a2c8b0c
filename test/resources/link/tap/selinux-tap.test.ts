/** ip(8) makes the tap that is asked for. The context needs a kernel with SELinux, which tests do not have. */
import { expect, test } from "bun:test";
import { commandFor } from "../../../../src/resources/link/tap/selinux-tap.ts";
import { openMachine } from "../../../support/machine.ts";

test.each([
  [{}, { multi_queue: false }],
  [{ multiQueue: true, owner: 0 }, { multi_queue: true, user: "root" }],
  [{ multiQueue: false, group: 4000000000 }, { multi_queue: false, group: 4000000000 }],
])("a tap by ip(8): %j", async (settings, made) => {
  await using machine = await openMachine();
  const { code, stderr } = await machine.run(commandFor("tap0", { multiQueue: false, ...settings }));
  expect([code, stderr]).toEqual([0, ""]);
  const [{ linkinfo }] = JSON.parse(await machine.sh("ip -j -d link show tap0"));
  const { multi_queue, user, group } = linkinfo.info_data;
  expect(linkinfo.info_data).toMatchObject({ type: "tap", persist: true });
  expect(JSON.parse(JSON.stringify({ multi_queue, user, group }))).toEqual(made);
});
