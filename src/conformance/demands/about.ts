/** VERSION, and the call without a command. */
import { printedDocument, requireSilence, requireSuccess, told } from "../answer.ts";
import type { SpecDemand } from "../demand.ts";
import type { Trial } from "../trial.ts";
import { UnmetDemand } from "../unmet-demand.ts";

const must = { section: "Section 5, VERSION Success", strength: "must", since: "0.2.0" } as const;
const FORM = /^\d+\.\d+\.\d+$/;

function ask(trial: Trial, stdin: string): Record<string, unknown> {
  const answer = trial.run(stdin, { CNI_COMMAND: "VERSION" });
  requireSuccess(answer);
  return printedDocument(answer);
}

const asRuntimesAsk = (trial: Trial) => ask(trial, JSON.stringify({ cniVersion: trial.plugin.version }));

export function supportedVersions(document: Record<string, unknown>): string[] {
  const { supportedVersions: listed } = document;
  if (!Array.isArray(listed) || listed.length === 0 || listed.some((one) => typeof one !== "string")) {
    throw new UnmetDemand(`"supportedVersions" is no list of versions: ${JSON.stringify(document)}`);
  }
  return listed;
}

export const about: readonly SpecDemand[] = [
  {
    ...must,
    name: "version-lists-supported",
    sentence: 'VERSION prints a JSON object with "supportedVersions", a list of versions of the specification',
    check(trial) {
      const wrong = supportedVersions(asRuntimesAsk(trial)).filter((one) => !FORM.test(one));
      if (wrong.length > 0) {
        throw new UnmetDemand(`"supportedVersions" has what is no version: ${JSON.stringify(wrong)}`);
      }
    },
  },
  {
    ...must,
    name: "version-states-its-own",
    sentence: 'The answer to VERSION has "cniVersion", the version of the answer',
    check(trial) {
      const { cniVersion } = asRuntimesAsk(trial);
      if (typeof cniVersion !== "string" || !FORM.test(cniVersion)) {
        throw new UnmetDemand(`"cniVersion" is ${JSON.stringify(cniVersion)}`);
      }
    },
  },
  {
    name: "version-of-newer-runtime",
    sentence: "VERSION answers a runtime that states a version the plugin does not know: so the two find one",
    section: "libcni, which states its own newest",
    strength: "engines",
    since: "0.2.0",
    check: (trial) => void supportedVersions(ask(trial, JSON.stringify({ cniVersion: "99.0.0" }))),
  },
  {
    name: "version-without-stdin",
    sentence: "VERSION needs no configuration: it succeeds with an empty stdin",
    section: "people and packagers, who call it by hand",
    strength: "engines",
    since: "0.2.0",
    check: (trial) => void supportedVersions(ask(trial, "")),
  },
  {
    name: "about-without-command",
    sentence: "Without CNI_COMMAND it prints its version to stderr, nothing to stdout, and exits with 0",
    section: "nerdctl and Nomad, which learn the version of a plugin this way, and podman's info",
    strength: "engines",
    since: "0.1.0",
    check(trial) {
      const answer = trial.run("", {});
      requireSuccess(answer);
      requireSilence(answer);
      if (!/\bv?\d+\.\d+/.test(answer.stderr)) throw new UnmetDemand(`stderr names no version: ${told(answer)}`);
    },
  },
];
