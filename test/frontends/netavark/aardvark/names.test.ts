/** Debian's aardvark-dns serves the names of containers that come and go, and ends with the last. */
import { expect, test } from "bun:test";
import {
  AARDVARK,
  addNames,
  daemons,
  DIRECTORY,
  doNames,
  filesIn,
  LOCK,
  lookUp,
  names,
  ND,
  openBridged,
  pidFile,
  removeNames,
  untilKnown,
} from "../../../support/netavark/names.ts";
import { netavark } from "../../../support/netavark/netavark.ts";
import { untilTrue } from "../../../support/until-true.ts";

test("names of containers, until the last is gone", async () => {
  await using machine = await openBridged();
  const web = names("web1", "10.55.0.7", ["web", "www"]), other = names("web11", "10.55.0.8", ["jug", "www"]);
  expect(await addNames(machine, web)).toEqual([true]);
  // It listens when the call returns.
  expect(await lookUp(machine, "web")).toEqual(["10.55.0.7"]);
  expect(await lookUp(machine, "www.dns.podman")).toEqual(["10.55.0.7"]);
  const [daemon] = await daemons(machine);
  expect(await addNames(machine, other)).toEqual([true]);
  await untilKnown(machine, "www", ["10.55.0.7", "10.55.0.8"]);
  expect(await filesIn(machine)).toEqual({
    ...LOCK,
    "aardvark-dns/aardvark.pid": "a number",
    "aardvark-dns/n1": "10.55.0.1\nweb1 10.55.0.7  web,www\nweb11 10.55.0.8  jug,www\n",
  });
  expect(await removeNames(machine, web)).toEqual(["removed"]);
  await untilKnown(machine, "www", ["10.55.0.8"]);
  expect(await lookUp(machine, "web")).toEqual([]);
  expect(await daemons(machine)).toEqual([daemon!]);
  expect(await removeNames(machine, other)).toEqual(["removed"]);
  // It has ended when the call returns: the next container must not meet it ending.
  expect(await daemons(machine)).toEqual([]);
  expect(await filesIn(machine)).toEqual(LOCK);
});

test("nothing to remove is success, and names that are there already are replaced", async () => {
  await using machine = await openBridged();
  const web = names("web1", "10.55.0.7", ["web"]);
  expect(await removeNames(machine, web)).toEqual(["removed"]);
  expect(await filesIn(machine)).toEqual({});
  expect(await addNames(machine, web, web, names("web1", "10.55.0.9", ["web"]))).toEqual([true, true, true]);
  await untilKnown(machine, "web", ["10.55.0.9"]);
  expect((await filesIn(machine))["aardvark-dns/n1"]).toBe("10.55.0.1\nweb1 10.55.0.9  web\n");
  expect(await removeNames(machine, names("web", "10.55.0.9", []), web, web)).toEqual([
    "removed",
    "removed",
    "removed",
  ]);
  expect(await filesIn(machine)).toEqual(LOCK);
});

test("a container without a network, without aardvark-dns or with an id that no file can hold has no names", async () => {
  await using machine = await openBridged();
  const without = [
    names("web1", "10.55.0.7", ["web"], { networks: [] }),
    names("web1", "10.55.0.7", ["web"], { binary: "" }),
    names("web1", "10.55.0.7", ["web"], { binary: "/none/aardvark-dns" }),
    names("web 1", "10.55.0.7", ["web"]),
    names("", "10.55.0.7", ["web"]),
  ];
  expect(await addNames(machine, ...without)).toEqual([false, false, false, false, false]);
  expect(await filesIn(machine)).toEqual({});
});

test("names that the files cannot hold are left out, and said", async () => {
  await using machine = await openBridged();
  const spec = names("web1", "10.55.0.7", ["two words", "a,b", "end\nline", "", "bell\u0007", "web"]);
  const { outcomes, stderr } = await doNames(machine, [{ verb: "add", spec }], {
    env: { RUST_LOG: "netavark=warn" },
  });
  expect(outcomes).toEqual([true]);
  const warning = (name: string, reason = "name contains invalid chars") =>
    `[WARN  netavark::network::bridge] invalid network alias ${name}: ${reason}, ignoring this name`;
  expect(stderr.trim().split("\n")).toEqual([
    warning('"two words"'),
    warning('"a,b"'),
    warning('"end\\nline"'),
    warning('""', "name is empty"),
    warning('"bell\\u0007"'),
  ]);
  expect(await lookUp(machine, "web")).toEqual(["10.55.0.7"]);
  expect((await filesIn(machine))["aardvark-dns/n1"]).toBe("10.55.0.1\nweb1 10.55.0.7  web\n");
  await removeNames(machine, spec);
});

test("names of networks that are no names of files are refused", async () => {
  await using machine = await openBridged();
  for (const name of ["../n1", "aardvark.pid", "", ".", "a b", "a%int", "a/b"]) {
    expect(await addNames(machine, names("web1", "10.55.0.7", ["web"], { network: { name } }))).toEqual([
      `error while applying dns entries: network name ${
        JSON.stringify(name)
      } cannot be the name of a file for aardvark-dns`,
    ]);
  }
  expect(await filesIn(machine)).toEqual({});
});

test("two networks, one of them internal, with both families and servers", async () => {
  await using machine = await openBridged(2);
  await machine.sh("ip addr add fd55::1/64 dev br0 nodad");
  const spec = names("web1", "10.55.0.7", ["web"], { servers: ["192.0.2.1", "fd99::1"] });
  const [first] = spec.networks;
  const both = {
    ...spec,
    networks: [
      { ...first!, gateways: ["10.55.0.1", "fd55::1"], addresses6: ["fd55::7"], servers: ["192.0.2.53"] },
      { ...first!, name: "n2", isInternal: true, gateways: ["10.56.0.1"], addresses4: ["10.56.0.7"] },
    ],
  };
  expect(await addNames(machine, both)).toEqual([true]);
  expect(await filesIn(machine)).toEqual({
    ...LOCK,
    "aardvark-dns/aardvark.pid": "a number",
    "aardvark-dns/n1": "10.55.0.1,fd55::1 192.0.2.53\nweb1 10.55.0.7 fd55::7 web 192.0.2.1,fd99::1\n",
    "aardvark-dns/n2%int": "10.56.0.1\nweb1 10.56.0.7  web 192.0.2.1,fd99::1\n",
  });
  expect(await lookUp(machine, "web", "fd55::1")).toEqual(["10.55.0.7"]);
  expect(await lookUp(machine, "web", "10.56.0.1")).toEqual(["10.56.0.7"]);
  // A network that is no longer internal keeps its containers.
  const open = names("web2", "10.56.0.8", ["jug"], { network: { name: "n2", gateways: ["10.56.0.1"] } });
  expect(await addNames(machine, open)).toEqual([true]);
  expect(await machine.sh(`ls ${DIRECTORY}`)).toBe("aardvark.pid\nn1\nn2\n");
  await untilKnown(machine, "jug", ["10.56.0.8"], "10.56.0.1");
  expect(await lookUp(machine, "web", "10.56.0.1")).toEqual(["10.56.0.7"]);
  expect(await removeNames(machine, both, open)).toEqual(["removed", "removed"]);
  expect(await filesIn(machine)).toEqual(LOCK);
});

test("servers that are aardvark-dns itself are refused", async () => {
  await using machine = await openBridged(2);
  const spec = names("web1", "10.55.0.7", ["web"]), [first] = spec.networks;
  const second = { ...first!, name: "n2", gateways: ["10.56.0.1"] }, networks = [first!, second];
  const end = "; using it would cause aardvark-dns to forward queries to itself.";
  expect(
    await addNames(
      machine,
      { ...spec, networks, servers: ["192.0.2.1", "10.56.0.1"] },
      { ...spec, networks: [first!, { ...second, servers: ["10.55.0.1"] }] },
    ),
  ).toEqual([
    `error while applying dns entries: DNS server 10.56.0.1 is the gateway of network "n2"${end}`,
    `error while applying dns entries: network DNS server 10.55.0.1 matches the gateway of network "n1"${end}`,
  ]);
  expect(await filesIn(machine)).toEqual({});
});

test("a network's servers are asked, and not any more when they are cleared", async () => {
  await using machine = await openBridged();
  const container = await machine.container("c1");
  await machine.sh(`
    ip link add v0 master br0 up type veth peer name eth0 netns c1
    ip -n c1 addr add 10.55.0.7/24 dev eth0; ip -n c1 link set eth0 up
    ip addr add 192.0.2.53/32 dev br0; ip -n c1 route add default via 10.55.0.1
  `);
  const upstream = machine.start([
    "dnsmasq",
    "--keep-in-foreground",
    "--no-resolv",
    "--no-hosts",
    "--conf-file=/dev/null",
    "--pid-file=",
    "--user=root",
    "--bind-interfaces",
    "--listen-address=192.0.2.53",
    "--address=/outside.test/198.51.100.9",
  ]);
  await untilTrue(() => lookUp(machine, "outside.test", "192.0.2.53"), (found) => found.length > 0);
  const internal = names("web2", "10.55.0.8", ["jug"], { network: { name: "n2", isInternal: true } });
  const spec = names("web1", "10.55.0.7", ["web"]);
  expect(await addNames(machine, spec)).toEqual([true]);
  await machine.sh(`printf '10.55.0.1\\nweb2 10.55.0.8  jug\\n' >'${DIRECTORY}/n2%int'`);
  const ask = async () =>
    (await machine.run(["timeout", "20", "busybox", "nslookup", "-type=a", "outside.test", "10.55.0.1"], {
      in: container,
    })).stdout;
  const update = (network: string, servers: string) =>
    netavark(machine, ["-c", ND, "-a", AARDVARK, "update", network, "--network-dns-servers", servers], "null\n");
  expect(await update("n1", "192.0.2.53")).toMatchObject({ code: 0, stdout: "", stderr: "" });
  await untilTrue(ask, (answer) => answer.includes("198.51.100.9"));
  expect(await update("n1", "")).toMatchObject({ code: 0, stdout: "" });
  await untilTrue(ask, (answer) => !answer.includes("198.51.100.9"));
  expect(await update("n1", "192.0.2.53,192.0.2.54")).toMatchObject({ code: 0, stdout: "" });
  expect(await update("n2", "192.0.2.55")).toMatchObject({ code: 0, stdout: "" });
  expect(await update("n3", "192.0.2.55")).toMatchObject({ code: 0, stdout: "" });
  expect(await filesIn(machine)).toEqual({
    ...LOCK,
    "aardvark-dns/aardvark.pid": "a number",
    "aardvark-dns/n1": "10.55.0.1 192.0.2.53,192.0.2.54\nweb1 10.55.0.7  web\n",
    "aardvark-dns/n2%int": "10.55.0.1 192.0.2.55\nweb2 10.55.0.8  jug\n",
  });
  await removeNames(machine, internal, spec);
  upstream.kill("SIGKILL");
  await upstream.exited;
});

test("update starts aardvark-dns again where it has died", async () => {
  await using machine = await openBridged();
  const spec = names("web1", "10.55.0.7", ["web"]);
  await addNames(machine, spec);
  await machine.sh(`kill -KILL ${pidFile(machine)}`);
  await untilTrue(() => daemons(machine), (found) => found.length === 0);
  const update = (rootless: string) =>
    netavark(machine, [
      "-c",
      ND,
      "-a",
      AARDVARK,
      "-r",
      rootless,
      "update",
      "n1",
      "--network-dns-servers",
      "192.0.2.53",
    ]);
  // podman is outside of the rootless network namespace then.
  expect((await update("true")).code).toBe(0);
  expect(await daemons(machine)).toEqual([]);
  expect((await update("false")).code).toBe(0);
  expect(await lookUp(machine, "web")).toEqual(["10.55.0.7"]);
  await removeNames(machine, spec);
});
