/**
 * Debian's packages: `patchbay` has the only copy of the program; `patchbay-cni` and `patchbay-opt-cni` have links to it, in
 * the places where Debian's engines and Kubernetes look for plugins.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { pluginNames } from "../src/plugins/table.ts";
import {
  completionEntries,
  fileOfCheckout,
  manEntries,
  onHosts,
  packagedDhcpUnits,
  unitEntries,
} from "./contents.ts";
import { changesOf, type Edition, SUMMARY } from "./edition.ts";
import { type Entry, gzip, writeEntries } from "./files.ts";
import { licenceEntries } from "./licences.ts";
import { output } from "./run.ts";

const PROGRAM = "usr/lib/patchbay/patchbay";
/** The reference plugins that ours behave as. */
const REFERENCE = "1.9.1";

interface Package {
  name: string;
  architecture: string;
  control: Record<string, string>;
  about: string;
  entries: Entry[];
  scripts: Record<string, string>;
}

export function makeProgramPackage(
  program: string,
  architecture: string,
  edition: Edition,
  work: string,
  out: string,
): string {
  return build(
    {
      name: "patchbay",
      architecture,
      control: {
        Depends: "libc6 (>= 2.17), init-system-helpers (>= 1.54~)",
        Recommends: "libnl-3-200",
        Suggests: "patchbay-cni",
        "Multi-Arch": "foreign",
      },
      about: ` One executable that is each of the CNI reference plugins, by the name that it
 is called by, and a runtime that attaches containers to whole networks. What
 an attachment consists of is recorded before it is made, so that it can be
 removed whatever happens.
 .
 The plugins are in patchbay-cni, for engines of this distribution, and in
 patchbay-opt-cni, for Kubernetes and others that look in /opt/cni/bin.`,
      entries: [
        { path: PROGRAM, copyOf: program, isExecutable: true },
        { path: "usr/bin/patchbay", leadsTo: "../lib/patchbay/patchbay" },
        { path: "usr/bin/cnitool", leadsTo: "../lib/patchbay/patchbay" },
        ...manEntries(edition, onHosts, true),
        ...completionEntries(onHosts),
        ...unitEntries(onHosts, `/${PROGRAM}`),
        ...licenceEntries("usr/share/doc/patchbay/"),
        {
          path: "usr/share/lintian/overrides/patchbay",
          text: fileOfCheckout("release/debian/patchbay.lintian-overrides"),
        },
      ],
      scripts: {
        postinst: fileOfCheckout("release/debian/patchbay.postinst"),
        prerm: fileOfCheckout("release/debian/patchbay.prerm"),
        postrm: fileOfCheckout("release/debian/patchbay.postrm"),
      },
    },
    edition,
    work,
    out,
  );
}

/** For hosts with podman, containerd and others from Debian. */
export function makeCniPackage(edition: Edition, work: string, out: string): string {
  const overrides = fileOfCheckout("release/debian/patchbay-cni.lintian-overrides");
  const aliases = [packagedDhcpUnits.socket, packagedDhcpUnits.service].map(({ name }) => ({
    path: `${onHosts.units}${name.replace("patchbay-dhcp", "cni-dhcp")}`,
    leadsTo: name,
  }));
  return build(
    linksPackage("patchbay-cni", "usr/lib/cni", "containernetworking-plugins", edition, {
      Provides: `container-network-stack (= 1), containernetworking-plugins (= ${REFERENCE})`,
    }, [...aliases, { path: "usr/share/lintian/overrides/patchbay-cni", text: overrides }]),
    edition,
    work,
    out,
  );
}

/** For kubelets, and engines that were installed by hand. */
export function makeOptCniPackage(edition: Edition, work: string, out: string): string {
  const provides = { Provides: `kubernetes-cni (= ${REFERENCE})` };
  const overrides = fileOfCheckout("release/debian/patchbay-opt-cni.lintian-overrides");
  return build(
    linksPackage("patchbay-opt-cni", "opt/cni/bin", "kubernetes-cni", edition, provides, [
      { path: "usr/share/lintian/overrides/patchbay-opt-cni", text: overrides },
    ]),
    edition,
    work,
    out,
  );
}

function linksPackage(
  name: string,
  directory: string,
  replaced: string,
  edition: Edition,
  control: Record<string, string>,
  more: Entry[],
): Package {
  // Debian Policy 10.5: relative within a directory of the root, absolute between two.
  const program = directory.startsWith("usr/lib/") ? "../patchbay/patchbay" : `/${PROGRAM}`;
  return {
    name,
    architecture: "all",
    control: {
      Depends: `patchbay (= ${edition.version})`,
      ...control,
      Conflicts: replaced,
      Replaces: replaced,
    },
    about: ` Links in /${directory} by which container engines call Patchbay, in the
 place of the plugins of ${replaced}.`,
    entries: [
      ...pluginNames.map((plugin) => ({ path: `${directory}/${plugin}`, leadsTo: program })),
      ...more,
    ],
    scripts: {
      prerm: fileOfCheckout("release/debian/links.prerm").replaceAll("DIRECTORY", directory).replaceAll("NAME", name),
    },
  };
}

/** Answers the path of the package. */
function build(one: Package, edition: Edition, work: string, out: string): string {
  const { name, architecture, entries, scripts } = one;
  const tree = join(work, `${name}_${architecture}`), documents = documentsOf(name, edition);
  const contents = [...entries, ...documents];
  writeEntries(tree, [
    ...contents,
    { path: "DEBIAN/control", text: controlOf(one, edition, sizeOf(contents)) },
    ...Object.entries(scripts).map(([script, text]) => ({ path: `DEBIAN/${script}`, text, isExecutable: true })),
    { path: "DEBIAN/md5sums", text: digestsOf(contents) },
  ], edition.epoch);
  const file = join(out, `${name}_${edition.version}_${architecture}.deb`);
  const env = { SOURCE_DATE_EPOCH: String(edition.epoch) };
  // xz saves a fifth of the size, and takes the node that installs it four times as long.
  output(["dpkg-deb", "--root-owner-group", "-Zgzip", "-z9", "--build", tree, file], work, env);
  return file;
}

/** Debian Policy 12.5 and 12.7. */
function documentsOf(name: string, edition: Edition): Entry[] {
  const folder = `usr/share/doc/${name}/`,
    date = new Date(edition.epoch * 1000).toUTCString().replace("GMT", "+0000");
  const log = `${name} (${edition.version}) stable; urgency=medium\n\n  * Release ${edition.version}.\n\n` +
    ` -- ${edition.maintainer}  ${date}\n`;
  return [
    { path: `${folder}changelog.gz`, bytes: gzip(name === "patchbay" ? `${changesOf(edition.version)}\n` : log) },
    ...name === "patchbay" ? [{ path: `${folder}changelog.Debian.gz`, bytes: gzip(log) }] : [],
    { path: `${folder}copyright`, text: fileOfCheckout("release/debian/copyright") },
  ];
}

function controlOf({ name, architecture, control, about }: Package, edition: Edition, kibibytes: number): string {
  const fields = {
    Package: name,
    Version: edition.version,
    Section: "admin",
    Priority: "optional",
    Architecture: architecture,
    Maintainer: edition.maintainer,
    "Installed-Size": String(kibibytes),
    ...control,
  };
  const lines = Object.entries(fields).map(([field, value]) => `${field}: ${value}\n`).join("");
  return `${lines}Description: ${SUMMARY}${name === "patchbay" ? "" : `: /${placeOf(name)}`}\n${about}\n`;
}

function placeOf(name: string): string {
  return name === "patchbay-cni" ? "usr/lib/cni" : "opt/cni/bin";
}

function bytesOf(entry: Entry): Uint8Array | undefined {
  if ("leadsTo" in entry) return undefined;
  if ("bytes" in entry) return entry.bytes;
  if ("text" in entry) return new TextEncoder().encode(entry.text);
  return readFileSync(entry.copyOf);
}

function sizeOf(entries: readonly Entry[]): number {
  return entries.reduce((sum, entry) => sum + Math.max(1, Math.ceil((bytesOf(entry)?.length ?? 0) / 1024)), 0);
}

function digestsOf(entries: readonly Entry[]): string {
  const digest = (bytes: Uint8Array) => new Bun.CryptoHasher("md5").update(bytes).digest("hex");
  return entries.flatMap((entry) => {
    const bytes = bytesOf(entry);
    return bytes === undefined ? [] : [`${digest(bytes)}  ${entry.path}\n`];
  }).join("");
}
