/** The text of generated validator files: imports, exported functions, and the tables of validator-file.ts. */
import { basename, dirname, relative } from "node:path";
import type { z } from "zod";
import { groups, pascalCase, shared, ValidatorFile } from "./validator-file.ts";

export const SHARED_FILE = "src/cni/config.validate.gen.ts";

/** An exported function of a generated file. Its error messages start with `subject`. */
export interface Entry {
  name: string;
  schemaName: string;
  schema: z.ZodObject;
  subject?: string;
}

export function validatorText(schemaFile: string, entries: Entry[]): string {
  const file = new ValidatorFile(shared);
  const exported = entries.map(({ name, schemaName, schema, subject }) => {
    const decode = `${file.object(schema, schemaName)}(document ?? {}, "")`;
    if (subject !== undefined) file.pieces.add("decoding");
    const body = subject === undefined ? decode : `decoding(${JSON.stringify(subject)}, () => ${decode})`;
    return `export function ${name}(document: unknown): ${pascalCase(schemaName)} {\n  return ${body};\n}`;
  });
  const types = entries.map((entry) => pascalCase(entry.schemaName)).join(", ");
  const own = `import type { ${types} } from "./${basename(schemaFile)}";`;
  return [...headOf(schemaFile, file), own, ``, textOf(file), exported.join("\n\n"), ``].join("\n");
}

export function sharedText(): string {
  const file = new ValidatorFile(new Map());
  for (const [schema, name] of shared) file.object(schema as z.ZodObject, name);
  for (const [name, keys] of groups) file.group(keys, name);
  const text = textOf(file).replace(/^const /gm, "export const ");
  return [...headOf("src/cni/config.schema.ts", file), ``, text].join("\n");
}

function headOf(schemaFile: string, file: ValidatorFile): string[] {
  const from = (path: string) => {
    const way = relative(dirname(schemaFile), path);
    return `from "${way.startsWith(".") ? "" : "./"}${way}";`;
  };
  const names = [...file.sharedNames].sort();
  return [
    `// Generated from ${basename(schemaFile)} by compile/validators.ts; change those.`,
    `import { ${[...file.pieces].sort().map((name) => name === "Keys" ? "type Keys" : name).join(", ")} } ${
      from("src/cni/decode.ts")
    }`,
    ...names.length > 0 ? [`import { ${names.join(", ")} } ${from(SHARED_FILE)}`] : [],
  ];
}

function textOf(file: ValidatorFile): string {
  return `${file.tables.join("\n\n")}\n`;
}
