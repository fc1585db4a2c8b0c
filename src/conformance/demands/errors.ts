/** Errors: where they are printed, which codes they have. */
import { DECODING_FAILURE, INCOMPATIBLE_VERSION, INVALID_CONFIG, INVALID_ENVIRONMENT } from "../../cni/error.ts";
import { requireError, told } from "../answer.ts";
import type { SpecDemand } from "../demand.ts";
import { NETWORK, type Trial } from "../trial.ts";
import { UnmetDemand } from "../unmet-demand.ts";

const ERROR = "Section 5, Error", PARAMETERS = "Section 2, Parameters";
const should = { section: ERROR, strength: "should", since: "0.1.0" } as const;
const implied = { section: ERROR, strength: "implied", since: "0.1.0" } as const;

const NAMES_OF_NO_LINK = ["a/b", "sixteen-is-a-lot", ".."];

/** An ADD of nothing: it is refused before anything is done. */
function add(trial: Trial, changed: Record<string, string | undefined> = {}, conf: Record<string, unknown> = {}) {
  return addWith(trial, JSON.stringify(trial.configuration({ conf })), changed);
}

function addWith(trial: Trial, stdin: string, changed: Record<string, string | undefined> = {}) {
  const { path } = trial.container;
  const given = { CNI_COMMAND: "ADD", CNI_CONTAINERID: "conformance-c1", CNI_NETNS: path, CNI_IFNAME: "eth0" };
  return trial.run(stdin, { ...given, ...changed });
}

const unsupported = (trial: Trial) => add(trial, {}, { cniVersion: "99.0.0" });

function missing(variable: string): SpecDemand {
  const name = variable.slice("CNI_".length).toLowerCase();
  return {
    name: `error-without-${name}`,
    sentence: `ADD needs ${variable}; without it the error has code 4`,
    section: `Section 2, ADD; ${ERROR}`,
    strength: "implied",
    since: "0.1.0",
    check: (trial) => void requireError(add(trial, { [variable]: undefined }), INVALID_ENVIRONMENT),
  };
}

export const errors: readonly SpecDemand[] = [
  {
    ...should,
    name: "error-document",
    sentence: 'A plugin that fails prints a JSON object to stdout with "code", a number, and "msg", a text',
    check(trial) {
      const answer = unsupported(trial), { msg } = requireError(answer);
      if (typeof msg !== "string" || msg === "") throw new UnmetDemand(`the error has no "msg": ${told(answer)}`);
    },
  },
  {
    ...should,
    name: "error-states-version",
    sentence: 'The object of an error has "cniVersion", when the configuration could be read',
    check(trial) {
      const answer = unsupported(trial), { cniVersion } = requireError(answer);
      if (typeof cniVersion !== "string" || cniVersion === "") {
        throw new UnmetDemand(`"cniVersion" is ${JSON.stringify(cniVersion)}: ${told(answer)}`);
      }
    },
  },
  {
    name: "error-exit-status",
    sentence: "A plugin that fails ends with an exit status that is not 0",
    section: "Section 2, Errors",
    strength: "must",
    since: "0.1.0",
    check(trial) {
      const answer = unsupported(trial);
      if (answer.exitStatus === 0) throw new UnmetDemand(told(answer));
    },
  },
  {
    ...implied,
    name: "error-unsupported-version",
    sentence: "A version of the configuration that the plugin does not support is an error with code 1",
    check: (trial) => void requireError(unsupported(trial), INCOMPATIBLE_VERSION),
  },
  {
    ...implied,
    name: "error-unknown-command",
    sentence: "A CNI_COMMAND that the specification does not have is an error with code 4",
    section: `${PARAMETERS}; ${ERROR}`,
    check: (trial) => void requireError(add(trial, { CNI_COMMAND: "ATTACH" }), INVALID_ENVIRONMENT),
  },
  missing("CNI_CONTAINERID"),
  missing("CNI_NETNS"),
  missing("CNI_IFNAME"),
  {
    name: "error-invalid-containerid",
    sentence: "A container ID begins with a letter or digit, then has letters, digits, _, . and -; else code 4",
    section: `${PARAMETERS}; ${ERROR}`,
    strength: "implied",
    since: "0.4.0",
    check: (trial) => void requireError(add(trial, { CNI_CONTAINERID: "../c1" }), INVALID_ENVIRONMENT),
  },
  {
    name: "error-invalid-ifname",
    sentence: "An interface name that the plugin cannot use is an error",
    section: PARAMETERS,
    strength: "must",
    since: "0.4.0",
    check(trial) {
      for (const name of NAMES_OF_NO_LINK) requireError(add(trial, { CNI_IFNAME: name }));
    },
  },
  {
    ...implied,
    name: "error-invalid-ifname-code",
    sentence: "The error for an interface name that no link can have has code 4",
    since: "0.4.0",
    check(trial) {
      for (const name of NAMES_OF_NO_LINK) requireError(add(trial, { CNI_IFNAME: name }), INVALID_ENVIRONMENT);
    },
  },
  {
    ...implied,
    name: "error-undecodable",
    sentence: "A configuration that is no JSON is an error with code 6",
    since: "0.3.0",
    check: (trial) => void requireError(addWith(trial, `{"cniVersion":"${trial.plugin.version}"`), DECODING_FAILURE),
  },
  {
    name: "error-invalid-network-name",
    sentence: "The network's name begins with a letter or digit, then has letters, digits, _, . and -; else code 7",
    section: `Section 1; ${ERROR}`,
    strength: "implied",
    since: "0.4.0",
    check: (trial) => void requireError(add(trial, {}, { name: `../${NETWORK}` }), INVALID_CONFIG),
  },
];
