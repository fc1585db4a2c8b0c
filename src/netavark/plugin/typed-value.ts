/** The text of an option as the value that the plugin's schema asks for. */
import { isObject } from "../../cni/json.ts";
import type { Schema } from "../../runtime/lint/schema.ts";

/** Throws what is wrong. Without a schema, what reads as JSON is JSON. */
export function typedValue(text: string, schema: Schema | undefined): unknown {
  switch (schema?.type) {
    case "string":
      return text;
    case "integer":
      if (/^-?[0-9]{1,15}$/.test(text)) return Number(text);
      throw new Error("it must be an integer");
    case "boolean":
      if (text === "true" || text === "false") return text === "true";
      throw new Error("it must be true or false");
    case "array":
      return listOf(text, schema.items);
    case "object": {
      const value = parsed(text);
      if (isObject(value)) return value;
      throw new Error('it must be a JSON object, such as {"key":"value"}');
    }
  }
  return parsed(text) ?? text;
}

/** Texts may also be joined by commas. */
function listOf(text: string, items: Schema | undefined): unknown {
  if (items?.type === "string" && !text.startsWith("[")) return text.split(",");
  const value = parsed(text);
  if (Array.isArray(value)) return value;
  throw new Error("it must be a JSON list");
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
