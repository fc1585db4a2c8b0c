/** Exports of a module that a test replaces, in all modules that import them, until it puts them back. */
import { mock } from "bun:test";

export interface ReplacedExports {
  begin(): void;
  end(): void;
}

/** `path` is absolute, `module` the module as it is imported. */
export function replacedExports<Module extends object>(
  path: string,
  module: Module,
  replacements: Partial<Module>,
): ReplacedExports {
  const own = { ...module };
  return {
    begin: () => void mock.module(path, () => ({ ...own, ...replacements })),
    end: () => void mock.module(path, () => own),
  };
}
