/** The launcher keeps the documents of podman's calls for a resident: it knows the verbs that have one. */
import { expect, test } from "bun:test";
import { DRIVER_VERBS } from "../../src/podman/call-of-driver.ts";

test("the launcher knows the verbs of a driver that read stdin", async () => {
  const launcher = await Bun.file(`${import.meta.dir}/../../src/native/launch.h`).text();
  const [known] = /(?<=is_podmans\(const char \*verb\) \{)[^}]*/.exec(launcher)!;
  const verbs = [...known.matchAll(/is_same\(verb, "(\w+)"\)/g)].map(([, verb]) => verb);
  expect(verbs).toEqual(DRIVER_VERBS.filter((verb) => verb !== "info"));
});
