/** `explain --all`: what concerns the whole host, and every way that differs. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { overview } from "../../src/explain/explanation.schema.ts";
import { openTown, type Town } from "./town.ts";

let town: Town;
beforeAll(async () => {
  town = await openTown();
});
afterAll(() => town[Symbol.asyncDispose]());

async function overviewOf({ patchbay }: Town) {
  const { code, stdout } = await patchbay(["explain", "--all", "--json"]);
  const { host, ways } = overview.parse(JSON.parse(stdout));
  return { code, host, codes: ways.map(({ cause }) => cause?.code) };
}

test("each way that differs is named with its code, after what concerns the host", async () => {
  await town.machine.sh("iptables-legacy -A FORWARD -s 192.0.2.7 -j ACCEPT");
  const two = await town.patchbay(["explain", "--all"]);
  expect(two).toMatchObject({ code: 1, stdout: expect.stringContaining("two-backends  this host: ") });
  await town.machine.sh("iptables-legacy -F FORWARD");
  expect(await town.patchbay(["explain", "--all"])).toMatchObject({
    code: 0,
    stdout: "8 of 8 ways arrive or leave\n",
  });
  await town.machine.sh("iptables -P FORWARD DROP");
  const { code, host, codes } = await overviewOf(town);
  expect({ code, host }).toEqual({ code: 1, host: [] });
  expect(codes).toContain("forward-drop");
  await town.reset();
});

test("leases without an attachment, and attachments without their lease", async () => {
  const leases = "/var/lib/cni/networks/shop";
  await town.machine.sh(`printf 'gone\\r\\neth0' >${leases}/10.40.0.77
    mv ${leases}/10.40.0.3 /run/kept; cp ${leases}/10.40.0.2 /run/other; printf 'thief\\r\\neth0' >${leases}/10.40.0.2`);
  const { host } = await overviewOf(town);
  expect(host.map(({ code }) => code)).toEqual(["lease-unheld", "lease-missing", "lease-missing"]);
  expect(host[0]!.text).toStartWith("2 leases of shop without an attachment on record, such as 10.40.0.");
  expect(host[1]!.text).toContain("thief has one for it");
  await town.machine.sh(
    `rm ${leases}/10.40.0.77; mv /run/kept ${leases}/10.40.0.3; mv /run/other ${leases}/10.40.0.2`,
  );
  expect(await overviewOf(town)).toMatchObject({ code: 0, host: [] });
});

test("a file that resets forwarding when the host starts", async () => {
  await town.machine.sh("mkdir -p /run/sysctl.d; echo net.ipv4.ip_forward=0 >/run/sysctl.d/zz-last.conf");
  expect((await overviewOf(town)).host).toEqual([
    { code: "forwarding-reset", text: "/run/sysctl.d/zz-last.conf sets net.ipv4.ip_forward to 0" },
  ]);
  await town.machine.sh("rm /run/sysctl.d/zz-last.conf");
});

test("an operand that names nobody says what may have been meant", async () => {
  const said = async (...operands: string[]) => {
    const { code, stderr } = await town.patchbay(["explain", ...operands]);
    return { code, stderr: stderr.split("\n")[0] };
  };
  const unknown = (name: string, meant: string) => ({
    code: 3,
    stderr: `patchbay explain: no container "${name}" is known here, and it is no address; did you mean ${meant}?`,
  });
  expect(await said("wbe")).toEqual(unknown("wbe", "web"));
  expect(await said("jug", "hots:80")).toEqual(unknown("hots", "host"));
  expect(await said("jug", "web:65536")).toMatchObject({ code: 3, stderr: expect.stringContaining('"web:65536"') });
  expect(await town.explain(["jug", "web:80"])).toMatchObject({ code: 0, said: { protocol: "tcp/80" } });
});

test("a sender outside comes by the link that is named", async () => {
  expect(await town.explain(["outside@eth1", "host:8080"])).toMatchObject({
    code: 0,
    said: { from: "outside@eth1" },
  });
  const { said } = await town.explain(["198.18.0.2@shop0", "host:8080"]);
  expect(said).toMatchObject({ verdict: "unknown", cause: { code: "answer-elsewhere" } });
  expect(await town.explain(["outside@nolink", "host:8080"])).toMatchObject({
    code: 3,
    said: { text: "this host has no link nolink" },
  });
  expect((await town.patchbay(["explain", "web", "outside@eth1"])).code).toBe(3);
});
