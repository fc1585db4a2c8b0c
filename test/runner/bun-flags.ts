/** Options of `bun test` that it gets as they are. */
export const passedOn = {
  "test-name-pattern": {
    type: "string",
    short: "t",
    value: "REGEX",
    about: "only tests with such a name, by `bun test`",
  },
  bail: { type: "boolean", about: "ends a file at its first failure, by `bun test`" },
  only: { type: "boolean", about: "only `test.only`, by `bun test`" },
  todo: { type: "boolean", about: "also `test.todo`, by `bun test`" },
  "rerun-each": { type: "string", value: "N", about: "each file so often, by `bun test`" },
  seed: { type: "string", value: "N", about: "the order of tests, by `bun test`" },
  randomize: { type: "boolean", about: "tests in random order, by `bun test`" },
  timeout: { type: "string", value: "MS", about: "ends a test after this time, by `bun test`" },
} as const;

export function flagsOf(values: Readonly<Record<string, unknown>>): string[] {
  return Object.keys(passedOn).flatMap((name) => {
    const value = values[name];
    return value === undefined ? [] : value === true ? [`--${name}`] : [`--${name}=${value}`];
  });
}
